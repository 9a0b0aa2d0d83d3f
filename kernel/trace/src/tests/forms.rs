//! One form for each thing, byte for byte, and nothing of a row in what is written through a veil.

use std::collections::BTreeSet;

use kernel::config::{Config, TableConfig};
use kernel::coordinator::{HeldBatch, Input, LogEvent, RowRange, Told, Touched};
use kernel::id::{BatchId, CommandId, EncodedKey, Incarnation, TableName};
use kernel::outcome::LogFailure;
use kernel::position::{Coordinate, Digest, Offset, Position, Transaction};
use kernel::time::{Duration, Time};
use proptest::prelude::*;

use super::inputs::input;
use crate::text::{Parse, Say, Text, Words};
use crate::veil::Veil;
use crate::{Heard, Reader, Writer};

fn told(thing: &impl Say, veil: Veil) -> String {
    let mut text = Text::new(veil);
    thing.say(&mut text);
    text.as_str().to_owned()
}

fn read<T: Parse>(text: &str) -> T {
    let mut words = Words::new(text);
    let thing = T::parse(&mut words).unwrap_or_else(|wrong| panic!("{wrong:?} in\n{text}"));
    words.end().unwrap_or_else(|wrong| panic!("{wrong:?} in\n{text}"));
    thing
}

proptest! {
    #[test]
    fn what_is_told_is_read_again_and_told_again_the_same(input in input()) {
        let text = told(&input, Veil::Lifted);
        let again: Input = read(&text);
        prop_assert_eq!(&again, &input);
        prop_assert_eq!(told(&again, Veil::Lifted), text);
    }

    #[test]
    fn what_is_told_through_a_veil_is_read_as_what_it_tells(input in input()) {
        let text = told(&input, Veil::draw());
        prop_assert_eq!(told(&read::<Input>(&text), Veil::Lifted), text);
    }

    #[test]
    fn whatever_inputs_are_written_come_out_of_a_reader_one_a_step(inputs in proptest::collection::vec(input(), 1..6)) {
        let (mut writer, first) = Writer::new("0.0.0");
        writer.begins(Time(0), &Config::new(Default::default()));
        for (now, input) in (1..).zip(&inputs) {
            writer.hears(Time(now), input);
        }
        let text = first + &writer.take();
        let mut reader = Reader::new(text.as_bytes()).unwrap();
        let mut heard = 0;
        for _ in 0..=inputs.len() {
            let step = reader.next_step().unwrap_or_else(|error| panic!("{error} in\n{text}")).unwrap();
            heard += usize::from(matches!(step.heard, Heard::Coordinator(_)));
        }
        prop_assert_eq!(heard, inputs.len());
    }
}

fn read_of_two_rows(keys: [&[u8]; 2], digest: Digest) -> Input {
    let id = CommandId { incarnation: Incarnation(3), number: 17 };
    let transaction = Transaction { stream: "changes".into(), at: Offset(120) };
    let keys = keys.iter().map(|key| EncodedKey::from(*key)).collect();
    let touched = Touched { by: "730".into(), keys, told: vec![Told::Whole, Told::Part] };
    let rows = LogEvent::Rows {
        table: "shop.orders".into(),
        transaction: transaction.clone(),
        rows: RowRange { batch: BatchId(9), rows: 0..2 },
        bytes: 100,
        first: Coordinate { major: 120, minor: 0 },
        last: Coordinate { major: 121, minor: 0 },
        digest,
        touched: Some(Box::new(touched)),
    };
    let ended = LogEvent::Ended { transaction, upto: Position::of("changes".into(), Offset(240)) };
    let batches = vec![HeldBatch { batch: BatchId(9), rows: 2, bytes: 100 }];
    Input::LogRead { id, batches, events: vec![rows, ended], finished: false }
}

#[test]
fn a_read_of_the_log_stands_there_for_people() {
    let text = told(&read_of_two_rows([&[1], &[2, 0xFF]], Digest { count: 2, hash: 0xAB }), Veil::Lifted);
    let expected = "log-read #3.17 finished no batches [ 9 rows 2 bytes 100 ] events [
  rows shop.orders changes@120 9:0..2 100 120.0 121.0 2+ab 730 [ k01 k02ff ] [ whole part ]
  ended changes@120 changes:240 ]";
    assert_eq!(text, expected);
}

#[test]
fn keys_bounds_identities_texts_and_sums_of_keys_do_not_pass_the_veil() {
    let veil = Veil::draw();
    let text = told(&read_of_two_rows([b"alice", b"bob"], Digest { count: 2, hash: 0x5EC4E7 }), veil.clone());
    for hidden in ["alice", "bob", "616c696365", "626f62", "5ec4e7"] {
        assert!(!text.to_lowercase().contains(hidden), "{hidden} stands in\n{text}");
    }
    assert!(text.contains(" 2 730 [ k"), "the count of a digest stands there without its sum:\n{text}");
    let why = "shop.orders: 'alice' is no number — give the column another type [jsonl-value]";
    let failed = Input::LogFailed {
        id: CommandId { incarnation: Incarnation(1), number: 1 },
        failure: LogFailure::Poison { why: why.into() },
    };
    let text = told(&failed, veil);
    assert!(text.starts_with("log-failed #1.1 poison jsonl-value~") && !text.contains("alice"), "{text}");
}

#[test]
fn a_text_in_brackets_that_is_no_code_does_not_pass_the_veil() {
    for hidden in ["it is [alice]", "it is [Alice-1]", "it is [alice-bob", "[12-34]"] {
        let text = told(&hidden.to_owned(), Veil::draw());
        assert!(text.starts_with('~') && text.len() == 17, "{hidden} became {text}");
    }
}

#[test]
fn equal_keys_stay_equal_in_a_file_and_are_others_in_the_next() {
    let key = |bytes: &[u8], veil: &Veil| told(&EncodedKey::from(bytes), veil.clone());
    let (one, other) = (Veil::draw(), Veil::draw());
    assert_eq!(key(b"alice", &one), key(b"alice", &one));
    let all = [key(b"alice", &one), key(b"bob", &one), key(b"", &one), key(b"alice", &other)];
    assert_eq!(BTreeSet::from(all.clone()).len(), 4, "{all:?}");
}

#[test]
fn every_field_of_a_configuration_is_told() {
    let mut config = Config::new([(TableName::from("shop.orders"), TableConfig::new())].into());
    (config.hold, config.retry.give_up_after) = (Some(Duration(7)), Some(Duration(8)));
    // What came later stands there only if it is not as usual: a trace of an older release has none of it, and reads as that.
    assert_eq!(read::<Config>(&told(&config, Veil::Lifted)), config);
    (config.source_keeps_key_order, config.hold_distance, config.intervals_max) = (false, Some(9), 10);
    let text = told(&config, Veil::Lifted);
    let shown = format!("{config:#?}");
    let fields: Vec<&str> =
        shown.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": ")).map(|(name, _)| name).collect();
    let own: Vec<&&str> = fields.iter().filter(|name| !name.starts_with(' ') && **name != "planted").collect();
    assert!(own.len() > 15, "a configuration shows its fields another way now: {fields:?}");
    for field in own {
        assert!(text.contains(&format!("\n  {field} ")), "{field} is not told in\n{text}");
    }
    assert_eq!(read::<Config>(&text), config);
}
