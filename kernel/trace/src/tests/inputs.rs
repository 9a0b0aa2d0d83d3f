//! Any input that a coordinator can get, whatever is in it.

use kernel::coordinator::{ChunkAnswer, HeldBatch, Input, LogEvent, Operator, RowRange, RowsAnswer, Told, Touched, Visibility};
use kernel::id::{
    AttemptId, BatchId, Bound, CommandId, CommitId, EncodedKey, Identity, Incarnation, Session, StreamName, TableName, Token,
    TransactionName, Version,
};
use kernel::outcome::{CommitOutcome, LogFailure, StoreOutcome, WriteOutcome};
use kernel::position::{Coordinate, Cut, Digest, Interval, LogIdentity, Offset, Position, Transaction};
use kernel::state::{Ancestors, FORMAT, Phase, PipelineState, Range, Skipped, TableRecord, TableState};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Names as they are, and as nobody should call anything.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,6}(\\.[a-z_]{1,8})?",
        1 => Just(String::new()),
        1 => Just("-".into()),
        1 => Just("]".into()),
        2 => "[ \"\\\\{}\\[\\]@:~#=\\-\n\t\u{e9}\u{2028}a]{1,6}",
    ]
}

/// Numbers of all sizes.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..5u64, any::<u64>(), Just(u64::MAX)]
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    prop_oneof![(0..4u32).prop_map(Incarnation), any::<u32>().prop_map(Incarnation)]
}

fn command() -> impl Strategy<Value = CommandId> {
    (incarnation(), number()).prop_map(|(incarnation, number)| CommandId { incarnation, number })
}

fn attempt() -> impl Strategy<Value = AttemptId> {
    (incarnation(), number()).prop_map(|(incarnation, number)| AttemptId { incarnation, number })
}

fn commit() -> impl Strategy<Value = CommitId> {
    (incarnation(), number()).prop_map(|(incarnation, number)| CommitId { incarnation, number })
}

fn table() -> impl Strategy<Value = TableName> {
    name().prop_map(TableName::from)
}

fn token() -> impl Strategy<Value = Token> {
    name().prop_map(Token::from)
}

fn transaction_name() -> impl Strategy<Value = TransactionName> {
    name().prop_map(TransactionName::from)
}

fn bound() -> impl Strategy<Value = Bound> {
    name().prop_map(Bound::from)
}

fn key() -> impl Strategy<Value = EncodedKey> {
    vec(any::<u8>(), 0..6).prop_map(|bytes| EncodedKey::from(bytes.as_slice()))
}

fn transaction() -> impl Strategy<Value = Transaction> {
    (name(), number()).prop_map(|(stream, at)| Transaction { stream: stream.into(), at: Offset(at) })
}

fn coordinate() -> impl Strategy<Value = Coordinate> {
    (number(), any::<u32>()).prop_map(|(major, minor)| Coordinate { major, minor })
}

fn digest() -> impl Strategy<Value = Digest> {
    prop_oneof![(0..4u64).prop_map(crate::veil::changes), (number(), number()).prop_map(|(count, hash)| Digest { count, hash }),]
}

fn position() -> impl Strategy<Value = Position> {
    // Several of one stream are a set with holes.
    let interval = (number(), number()).prop_map(|(a, b)| Interval { from: Offset(a.min(b)), to: Offset(a.max(b)) });
    vec((name().prop_map(StreamName::from), interval), 0..4).prop_map(|intervals| intervals.into_iter().collect())
}

fn identity() -> impl Strategy<Value = LogIdentity> {
    let one = || name().prop_map(Identity::from);
    (btree_map(name().prop_map(StreamName::from), one(), 0..3), option::of(one()), option::of(one()))
        .prop_map(|(streams, coordinates, lineage)| LogIdentity { streams, coordinates, lineage })
}

fn cut() -> impl Strategy<Value = Cut> {
    (position(), vec((transaction(), coordinate(), digest()), 0..3)).prop_map(|(upto, within)| {
        let mut cut = Cut::at(upto);
        within.iter().for_each(|(transaction, last, digest)| cut.take(transaction, *last, *digest));
        cut
    })
}

fn table_state() -> impl Strategy<Value = Box<TableState>> {
    let range = (option::of(name()), any::<bool>()).prop_map(|(end, durable)| Range { end, durable });
    let names = (identity(), vec(range, 0..3), vec(name(), 0..3), option::of(name()));
    let numbers = (incarnation(), commit(), vec(commit(), 0..3), number(), number(), number());
    (cut(), names, numbers, position(), position()).prop_map(|(cut, names, numbers, base, ahead)| {
        let (identity, tiling, in_doubt, schema) = names;
        let (incarnation, commit, built_upon, sequence, generation, begun) = numbers;
        let mut ancestors = Ancestors::default();
        for commit in built_upon.into_iter().filter(|commit| commit.number < u64::MAX) {
            ancestors.push(commit);
        }
        Box::new(TableState {
            format: FORMAT,
            cut,
            identity,
            incarnation,
            commit,
            ancestors,
            sequence,
            generation,
            base,
            begun: Version(begun),
            tiling,
            in_doubt,
            ahead,
            schema,
        })
    })
}

fn pipeline_state() -> impl Strategy<Value = Box<PipelineState>> {
    let phase = prop_oneof![Just(Phase::Pending), Just(Phase::Streaming), Just(Phase::NeedsSnapshot)];
    let skip = (incarnation(), transaction(), coordinate()).prop_map(|(incarnation, transaction, coordinate)| Skipped {
        incarnation,
        stream: transaction.stream,
        at: transaction.at,
        coordinate,
    });
    let entry = (phase, number(), option::of(commit()), vec(skip, 0..2), option::of(name()))
        .prop_map(|(phase, generation, named, skipped, why)| TableRecord { phase, generation, named, skipped, why });
    (incarnation(), identity(), position(), btree_map(table(), entry, 0..3)).prop_map(|(incarnation, identity, quiet, tables)| {
        Box::new(PipelineState { format: FORMAT, incarnation, identity, quiet, tables })
    })
}

fn held() -> impl Strategy<Value = HeldBatch> {
    (number(), any::<u32>(), number()).prop_map(|(batch, rows, bytes)| HeldBatch { batch: BatchId(batch), rows, bytes })
}

fn rows() -> impl Strategy<Value = RowRange> {
    (number(), any::<u32>(), any::<u32>()).prop_map(|(batch, start, end)| RowRange { batch: BatchId(batch), rows: start..end })
}

fn visibility() -> impl Strategy<Value = Visibility> {
    let names = || btree_set(transaction_name(), 0..3);
    (names(), option::of(names())).prop_map(|(proven, unfinished)| Visibility { proven, unfinished })
}

fn touched() -> impl Strategy<Value = Box<Touched>> {
    let told = prop_oneof![Just(Told::Whole), Just(Told::Gone), Just(Told::Part), Just(Told::PartOfMoved), Just(Told::PartOfNew)];
    (transaction_name(), vec(key(), 0..3), vec(told, 0..3)).prop_map(|(by, keys, told)| Box::new(Touched { by, keys, told }))
}

fn event() -> impl Strategy<Value = LogEvent> {
    let place = || (table(), transaction(), coordinate());
    prop_oneof![
        4 => (place(), rows(), number(), coordinate(), digest(), option::of(touched())).prop_map(
            |((table, transaction, first), rows, bytes, last, digest, touched)| LogEvent::Rows {
                table, transaction, rows, bytes, first, last, digest, touched
            }
        ),
        1 => (place(), option::of(transaction_name()))
            .prop_map(|((table, transaction, coordinate), by)| LogEvent::Truncated { table, transaction, coordinate, by }),
        1 => (place(), name(), option::of(transaction_name())).prop_map(|((table, transaction, coordinate), schema, by)| {
            LogEvent::Schema { table, transaction, coordinate, schema, by }
        }),
        1 => (place(), name())
            .prop_map(|((table, transaction, coordinate), why)| LogEvent::Refused { table, transaction, coordinate, why }),
        2 => (transaction(), position()).prop_map(|(transaction, upto)| LogEvent::Ended { transaction, upto }),
        1 => position().prop_map(|upto| LogEvent::Keepalive { upto }),
    ]
}

fn operator() -> impl Strategy<Value = Operator> {
    prop_oneof![
        table().prop_map(Operator::Pause),
        table().prop_map(Operator::Resume),
        table().prop_map(Operator::Skip),
        table().prop_map(Operator::Release),
        table().prop_map(Operator::Resnapshot),
        Just(Operator::Drain),
    ]
}

fn stored() -> impl Strategy<Value = StoreOutcome> {
    prop_oneof![
        token().prop_map(|token| StoreOutcome::Stored { token }),
        (option::of(pipeline_state()), token()).prop_map(|(found, token)| StoreOutcome::Conflict { found, token }),
        name().prop_map(|why| StoreOutcome::Unknown { why }),
    ]
}

fn committed() -> impl Strategy<Value = CommitOutcome> {
    prop_oneof![
        token().prop_map(|token| CommitOutcome::Durable { token }),
        (option::of(table_state()), token()).prop_map(|(found, token)| CommitOutcome::Conflict { found, token }),
        name().prop_map(|why| CommitOutcome::Unknown { why }),
        Just(CommitOutcome::Superseded),
        name().prop_map(|why| CommitOutcome::Rejected { why }),
        name().prop_map(|why| CommitOutcome::Transient { why }),
    ]
}

fn wrote() -> impl Strategy<Value = WriteOutcome> {
    prop_oneof![
        Just(WriteOutcome::Written),
        name().prop_map(|why| WriteOutcome::Rejected { why }),
        name().prop_map(|why| WriteOutcome::Transient { why }),
    ]
}

fn failure() -> impl Strategy<Value = LogFailure> {
    prop_oneof![
        name().prop_map(|why| LogFailure::SessionLost { why }),
        name().prop_map(|why| LogFailure::Poison { why }),
        name().prop_map(|why| LogFailure::PositionLost { why }),
        name().prop_map(|why| LogFailure::Config { why }),
    ]
}

fn chunk() -> impl Strategy<Value = Box<ChunkAnswer>> {
    let read = (option::of(held()), vec(key(), 0..4), option::of(bound()));
    (read, visibility(), position(), option::of(name()), identity()).prop_map(|(read, visibility, fence, schema, identity)| {
        let (rows, keys, end) = read;
        Box::new(ChunkAnswer { rows, keys, end, visibility, fence, schema, identity })
    })
}

fn answer() -> impl Strategy<Value = Box<RowsAnswer>> {
    let read = (option::of(held()), vec(key(), 0..4), vec(key(), 0..4));
    (read, visibility(), position(), identity()).prop_map(|(read, visibility, fence, identity)| {
        let (rows, keys, gone) = read;
        Box::new(RowsAnswer { rows, keys, gone, visibility, fence, identity })
    })
}

/// Any input.
pub(super) fn input() -> impl Strategy<Value = Input> {
    let of_start =
        prop_oneof![
            (command(), option::of(pipeline_state()), token()).prop_map(|(id, state, token)| Input::PipelineStateRead {
                id,
                state,
                token
            }),
            (command(), stored()).prop_map(|(id, outcome)| Input::PipelineStateStored { id, outcome }),
            (command(), table(), option::of(table_state()), token())
                .prop_map(|(id, table, state, token)| Input::TableRecovered { id, table, state, token }),
            (command(), number(), identity(), position(), position()).prop_map(|(id, session, identity, floor, end)| {
                Input::LogOpened { id, session: Session(session), identity, floor, end }
            }),
        ];
    let of_log = prop_oneof![
        3 => (command(), vec(held(), 0..3), vec(event(), 0..6), any::<bool>())
            .prop_map(|(id, batches, events, finished)| Input::LogRead { id, batches, events, finished }),
        1 => (command(), failure()).prop_map(|(id, failure)| Input::LogFailed { id, failure }),
    ];
    let of_snapshot = prop_oneof![
        (command(), vec(bound(), 0..4)).prop_map(|(id, bounds)| Input::RangesPlanned { id, bounds }),
        (command(), chunk()).prop_map(|(id, chunk)| Input::ChunkRead { id, chunk }),
        (command(), visibility()).prop_map(|(id, visibility)| Input::VisibilityRead { id, visibility }),
        (command(), answer()).prop_map(|(id, answer)| Input::RowsRead { id, answer }),
    ];
    let of_commits = prop_oneof![
        (attempt(), wrote()).prop_map(|(attempt, outcome)| Input::Written { attempt, outcome }),
        (command(), table(), committed()).prop_map(|(id, table, outcome)| Input::Committed { id, table, outcome }),
        (command(), table(), any::<bool>(), token()).prop_map(|(id, table, found, token)| Input::Resolved {
            id,
            table,
            found,
            token
        }),
    ];
    let others = prop_oneof![
        (command(), name()).prop_map(|(id, why)| Input::Failed { id, why }),
        (command(), name()).prop_map(|(id, why)| Input::Refused { id, why }),
        operator().prop_map(Input::Operator),
        Just(Input::Timeout),
    ];
    prop_oneof![1 => of_start, 2 => of_log, 1 => of_snapshot, 1 => of_commits, 1 => others]
}
