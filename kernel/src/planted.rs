//! Wrong rules, switched on one at a time by the simulator to prove that its checks find them.
//!
//! A planted bug changes what a machine does, never what is checked. Without the feature `planted-bugs` this file is empty
//! and [`planted!`] is the constant `false`: a released binary cannot contain them.

/// Is this wrong rule switched on?
#[cfg(feature = "planted-bugs")]
macro_rules! planted {
    ($config:expr, $bug:ident) => {
        $crate::planted::is_on(&$config, $crate::planted::PlantedBug::$bug)
    };
}
#[cfg(not(feature = "planted-bugs"))]
macro_rules! planted {
    ($config:expr, $bug:ident) => {
        $crate::planted::never(&$config)
    };
}
pub(crate) use planted;

/// A machine's configuration, which says what is wrong.
#[cfg(feature = "planted-bugs")]
pub(crate) trait Planted {
    /// The wrong rule that is switched on.
    fn planted(&self) -> Option<PlantedBug>;
}

#[cfg(feature = "planted-bugs")]
impl<T: Planted> Planted for &T {
    fn planted(&self) -> Option<PlantedBug> {
        (**self).planted()
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) fn is_on(config: &impl Planted, bug: PlantedBug) -> bool {
    config.planted() == Some(bug)
}

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn never<T>(_: &T) -> bool {
    false
}

#[cfg(feature = "planted-bugs")]
macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident => $invariant:literal,)*) => {
        /// One wrong rule. Each says what it does instead; [`PlantedBug::invariant`] names the check that must find it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum PlantedBug {
            $($(#[$doc])* $name,)*
        }

        impl PlantedBug {
            /// All of them.
            pub const ALL: &'static [PlantedBug] = &[$(PlantedBug::$name,)*];

            /// The invariant that claims to find it.
            pub fn invariant(self) -> &'static str {
                match self {
                    $(PlantedBug::$name => $invariant,)*
                }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(PlantedBug::$name => stringify!($name),)*
                }
            }
        }
    };
}

#[cfg(feature = "planted-bugs")]
bugs! {
    /// Acknowledges what was received instead of what is durable.
    AcknowledgesReceived => "position-covers-only-durable",
    /// Acknowledges the quiet position before the record that holds it is stored.
    AcknowledgesBeforeRecord => "quiet-before-acknowledged",
    /// Acknowledges 2^60.
    AcknowledgesTooMuch => "acknowledged-within-received",
    /// Acknowledges the quiet position as far as the tables' own cuts go, whether the stored record names them or not.
    AcknowledgesByOwnCuts => "start-within-streamable",
    /// Leaves idle tables out of the meet.
    IdleIgnoredInMeet => "position-covers-only-durable",
    /// Leaves halted and paused tables out of the meet.
    HaltedIgnoredInMeet => "release-before-pass",
    /// Takes the largest of the completes instead of their meet.
    HighestInsteadOfMeet => "effective-cut-never-falls",
    /// Chooses the 'smaller' of two incomparable positions.
    MinimumInsteadOfMeet => "position-covers-only-durable",
    /// Counts a keepalive inside a transaction.
    KeepaliveInsideTransaction => "empty-transactions-do-not-confirm",
    /// After `Unknown` tries again under another commit id.
    UnknownRetriedUnderNewId => "staged-kept-while-unknown",
    /// After `Unknown` deletes what was staged.
    UnknownDropsStaged => "staged-kept-while-unknown",
    /// After `Conflict` drops what an earlier unknown attempt staged.
    ConflictAfterUnknownDropsStaged => "staged-kept-while-unknown",
    /// Deletes older lives' files before its own first commit.
    DiscardsAtStart => "only-current-incarnation-deletes",
    /// A superseded life stops only its commits.
    SupersededStopsCommitsOnly => "superseded-means-stopped",
    /// Skips the first row of each transaction.
    SkipsFirstRow => "position-covers-only-durable",
    /// Takes rows that the cut covers.
    TakesCoveredRows => "covered-row-has-no-effect",
    /// Trusts the stored cut of the table alone, not the record.
    IgnoresQuietAtStart => "start-within-streamable",
    /// Calls a table lost only if its cut is below the floor.
    LostOnlyIfBelow => "start-within-streamable",
    /// Calls a table lost only if its last number is below the last one that is gone.
    LostByLastNumber => "start-within-streamable",
    /// Takes what has a lower number than the last one that it has for covered.
    CoveredByLastNumber => "position-covers-only-durable",
    /// Keeps tables by key of a source that does not promise the order of a row's changes.
    KeyOrderNotAsked => "key-order-is-one",
    /// Leaves a lost table in the meet.
    LostTableInMeet => "start-within-streamable",
    /// Compares numbers of another log.
    IdentityIgnored => "same-log-identity",
    /// Starts at the end of the log where the stored cut is beyond it.
    AheadClamped => "never-ahead-of-source",
    /// Goes on from what was read of the log before it became shorter.
    ShorterLogUnnoticed => "never-ahead-of-source",
    /// Goes on where a table has rows of a transaction that the log does not have any more.
    PartOfLostUnnoticed => "never-ahead-of-source",
    /// Puts a transaction into `upto` at its first event.
    UptoAtFirstEvent => "position-names-finished-transactions",
    /// Takes an answer that was meant for another life.
    StaleAnswersAccepted => "stale-incarnation-has-no-effect",
    /// Reads an incarnation equal to the one it tried to take as its own.
    UnknownTakeTrusted => "stale-incarnation-has-no-effect",
    /// Reads table states before it has taken its incarnation.
    StatesBeforeIncarnation => "start-within-streamable",
    /// On sinks without compare-and-set writes data before it has claimed the table.
    NoClaim => "position-covers-only-durable",
    /// Trusts the state of a table that was removed and added again.
    ReaddedTableTrusted => "join-has-a-base",
    /// Applies the start option to a table that has a state.
    StartOptionSurvives => "start-mode-only-without-state",
    /// Names the newest commit in the record.
    RecordNamesNewest => "record-claims-truth",
    /// Names only idle tables in the record.
    RecordListsIdleOnly => "record-claims-truth",
    /// Takes a higher commit number for a later commit.
    LineageByNumber => "record-claims-truth",
    /// What the reader had received counts as complete, not what the table had taken.
    QuietByArrival => "effective-cut-never-falls",
    /// Does not learn from a record that lands after a table was set back what it proves of the state that was found.
    LearnsNothingFromRecord => "position-covers-only-durable",
    /// On sinks without compare-and-set writes the state before the data.
    StateBeforeData => "position-covers-only-durable",
    /// On `Conflict` tries again whatever was found.
    ConflictRetriedBlindly => "position-covers-only-durable",
    /// After a foreign commit retries without asking whether a newer life has begun.
    RetryWithoutValidation => "only-current-incarnation-deletes",
    /// A claim takes a commit id of its own, so that the record no longer speaks of the state.
    ClaimTakesNewId => "effective-cut-never-falls",
    /// Keeps one divided transaction a cut.
    OneWithin => "commit-in-order-per-table",
    /// On going back chooses the reader's position for every table's cut.
    CutFromReader => "everything-owed-is-tracked",
    /// Two commits of a table run at once.
    TwoCommitsInFlight => "commit-in-order-per-table",
    /// Gives bytes back twice.
    BudgetReleasedTwice => "budget-conserved",
    /// Does not give a batch back.
    BatchNotReleased => "budget-conserved",
    /// Forgets to go back when a stalled table has caught up.
    StallNeverEnds => "converges-after-healing",
    /// Does not acknowledge again after the log was opened anew.
    AcknowledgedOnlyOnce => "converges-after-healing",
    /// Opens a lost log session again without validating its incarnation.
    ReconnectWithoutValidation => "converges-after-healing",
    /// Never asks whether a newer life has begun, unless it has something to write.
    NeverValidates => "superseded-is-learned-in-time",
    /// A halt by `Rejected` undoes a release.
    HaltUndoesRelease => "release-before-pass",
    /// Passes over an event before the record says that somebody wanted it.
    SkipsUnrecorded => "skip-recorded-before-passed",
    /// The versions of rows lack the incarnation.
    VersionWithoutIncarnation => "position-covers-only-durable",
    /// A truncate does not empty what was taken before it.
    TruncateKeepsRows => "position-covers-only-durable",
    /// Releases a chunk as soon as it is read.
    ReleasedBeforeFence => "chunk-released-after-its-fence",
    /// For a chunk remembers only what the log touches after it was asked for: a watermark by position.
    WatermarkByPosition => "visible-decides",
    /// Of a change of key remembers the new key only.
    OldKeyForgotten => "touched-keys-complete-and-bounded",
    /// Lets a chunk see any number of keys touched.
    TouchBoundIgnored => "touched-keys-complete-and-bounded",
    /// A TRUNCATE touches nothing of an open chunk.
    TruncateForgottenByChunks => "truncate-empties-open-chunks",
    /// Does not store what is in doubt.
    DoubtNotStored => "doubt-proven-before-chunk",
    /// Takes every transaction at the base for visible.
    DoubtEmptyAtJoin => "doubt-proven-before-chunk",
    /// A transaction that the cut divides leaves the doubt when the log shows it again.
    DividedLeavesDoubtWhenSeen => "doubt-proven-before-chunk",
    /// What one chunk's visibility proves is forgotten for all.
    ForgottenForAll => "forgetting-is-per-chunk",
    /// An open chunk outlives a reconnect.
    ChunkOutlivesReconnect => "chunk-of-this-log",
    /// Takes rows before the generation's beginning is durable.
    GenerationBeginsWithData => "generation-begins-durably",
    /// Releases a chunk under whatever schema the stream has.
    ChunkUnderAnotherSchema => "chunk-schema-equals-stream-schema",
    /// A chunk whose schema the stream does not show is read again, for ever.
    ChunkNeverBringsSchema => "converges-after-healing",
    /// Calls a snapshot complete without its last range.
    LastRangeForgotten => "snapshot-complete-means-every-range-durable",
    /// A new generation goes on with the ranges of the one before.
    RangesOfTwoGenerations => "snapshot-complete-means-every-range-durable",
    /// On sinks without compare-and-set sweeps without asking whether a newer life has begun.
    SweepByStaleLife => "only-current-incarnation-deletes",
    /// Does not remove what older generations left.
    NoSweep => "resnapshot-leaves-no-ghost",
    /// A row of a chunk fills a hole.
    ChunkRowFillsHole => "hole-filled-by-proof",
    /// Takes what was read for a hole whether the read saw its last transaction or not.
    RereadWithoutProof => "hole-filled-by-proof",
    /// Asks that a read saw the first transaction that opened a hole, not the last.
    RereadProvesFirst => "hole-filled-by-proof",
    /// Takes what was read for exact before the log has passed the read's fence.
    RereadBeforeFence => "hole-filled-by-proof",
    /// Takes a row that moved for one that has all values because its new key had them.
    FilledUnderNewKey => "absent-value-never-stored",
    /// A hole stays behind when its row moves to another key.
    HoleForgottenOverKeyChange => "absent-value-never-stored",
    /// Does not say that keys were taken as they were read.
    AheadNotNoted => "ahead-within-its-fence",
    /// The next commit says that no key is ahead any more, wherever it stands.
    AheadClearedTooEarly => "ahead-within-its-fence",
    /// What was read for an open checkpoint goes on waiting for the log when that has closed.
    ClosedWaitsForFence => "every-wait-has-an-exit",
    /// A value that was not sent becomes nothing.
    NullForAbsent => "absent-value-never-stored",
    /// At the budget's bound nothing closes inside a transaction.
    BudgetNeverCloses => "budget-conserved",
    /// Rows of open chunks count in the budget that stops the reader.
    ChunksStopTheReader => "every-wait-has-an-exit",
    /// A TRUNCATE does not raise the version below which rows are none of the table's.
    TruncateWithoutFloor => "position-covers-only-durable",
    /// A part counts as written when any attempt at it is.
    OldAttemptAccepted => "one-attempt-counts",
    /// A commit goes as soon as one part of its checkpoint is written.
    CommitWithoutOwner => "one-attempt-counts",
    /// A commit names what earlier attempts may have written, too.
    DeadAttemptsPublished => "one-attempt-counts",
    /// A slot's new worker gets what the one before it had not been sent.
    MoveKeepsSent => "one-attempt-counts",
    /// What a TRUNCATE begins again goes on under the attempt before it.
    AttemptReusedAfterTruncate => "one-attempt-counts",
    /// A part whose commit was sent is attempted again when its worker is lost.
    SentPartAttemptedAgain => "one-attempt-counts",
    /// A worker keeps its parts when a session ends, and knows parts by their names, not by their attempts.
    PartsOutliveSessions => "one-attempt-counts",
    /// A worker takes what comes late from a session that is over.
    LateMessagesTaken => "one-attempt-counts",
    /// The layout of a table changes inside a checkpoint.
    LayoutFlipsInside => "one-owner-per-key",
    /// A worker's look-ups count in its index before their commit is durable.
    IndexBeforeDurable => "index-at-its-base",
    /// An index goes on to a snapshot that holds another attempt's rows of its slot.
    IndexGoesOnBlindly => "index-at-its-base",
    /// An index is known by its slot, whatever the layout.
    IndexIgnoresLayout => "index-at-its-base",
    /// A commit that was found in the history counts as the one that made the newest snapshot.
    IndexBoundToHead => "index-at-its-base",
    /// After a foreign commit what was located before it counts at the new snapshot.
    NotLocatedAgain => "index-at-its-base",
    /// After a foreign commit only one part is located again.
    OnePartLocatedAgain => "index-at-its-base",
    /// Of several owners that delete rows of one file the last one's list is kept.
    OneVectorPerOwner => "one-vector-per-file",
    /// A worker numbers the rows that it writes itself.
    VersionByWorker => "a-version-names-one-row",
    /// A worker deletes what it staged when it forgets a part.
    WorkerCleansUp => "staged-kept-while-unknown",
    /// A checkpoint is given up while nobody knows whether it was committed.
    GivenUpWhileUnknown => "staged-kept-while-unknown",
    /// Nobody tells a worker that a part was given up.
    AbandonNotSaid => "rows-held-equal-rows-known",
    /// Bytes of a part are given back each time that it is called written.
    PartReleasedTwice => "budget-conserved",
    /// A part stays with its worker however long it takes.
    PartNeverMoves => "converges-after-healing",
    /// A worker waits in a session however long nothing is heard in it.
    SilenceIgnored => "converges-after-healing",
    /// Nobody asks whether a newer life has begun, neither when a worker tells of one nor on a timer.
    NeitherHelloNorTimer => "converges-after-healing",
}
