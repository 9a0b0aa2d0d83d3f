//! Plays a script's lines against a router, or against an owner. The words are told in `kernel/testdata/README.md`.

use std::fmt::Write;

use kernel::coordinator::RowRange;
use kernel::id::{
    AttemptId, BatchId, CheckpointNumber, FileName, Identity, Incarnation, LayoutName, Part, Slot, TableName, Token, Version,
    WorkerId, WorkerSession,
};
use kernel::outcome::WriteOutcome;
use kernel::route::{
    CommitAnswer, Deletions, FromOwner, IndexAt, IndexName, Layout, NotWritten, Owner, OwnerConfig, OwnerInput, OwnerOutput,
    Router, RouterConfig, RouterInput, RouterOutput, Run, ToOwner,
};
use kernel::time::{Duration, Time};

use crate::Player;
use crate::log::number;

/// A router and nothing else.
pub(crate) struct Routing {
    router: Router,
    now: u64,
    batches: u64,
    versions: u64,
}

impl Default for Routing {
    fn default() -> Self {
        let config = RouterConfig { part_wait: Duration::from_secs(10), ..RouterConfig::default() };
        Self { router: Router::new(Time(0), Incarnation(2), config), now: 0, batches: 0, versions: 0 }
    }
}

impl Player for Routing {
    fn play(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["waiting"] {
            return Ok(self.router.waiting().into_iter().map(|w| format!("{}; until {}", w.what, w.until)).collect());
        }
        let input = self.input(&words)?;
        self.router.handle_input(Time(self.now), input);
        let mut said: Vec<String> = std::iter::from_fn(|| self.router.poll_output()).map(|o| router_output(&o)).collect();
        said.extend(self.router.check().err().map(|v| format!("VIOLATION of {}: {}", v.rule, v.dump)));
        Ok(said)
    }
}

impl Routing {
    fn input(&mut self, words: &[&str]) -> Result<RouterInput, String> {
        let of = |table: &str| TableName::from(table);
        Ok(match words {
            ["table", table, "in", slots, "slots", kind @ ("located" | "appended")] => RouterInput::TableOpened {
                table: of(table),
                identity: Identity::from("u1"),
                layout: layout(slots)?,
                locates: *kind == "located",
            },
            [table, "takes", rows @ ..] => {
                let mut taken = vec![];
                for word in rows {
                    let (slot, count) = word.split_once(':').ok_or(format!("'{word}' is not SLOT:ROWS"))?;
                    self.batches += 1;
                    let count = u32::try_from(number(count)?).map_err(|e| e.to_string())?;
                    let rows = RowRange { batch: BatchId(self.batches), rows: 0..count };
                    taken.push((self::slot(slot)?, Run { rows, first: Version::new(Incarnation(2), self.versions + 1) }));
                    self.versions += u64::from(count);
                }
                RouterInput::Taken { table: of(table), rows: taken }
            }
            [table, "is", "truncated"] => RouterInput::Truncated { table: of(table) },
            [table, "closes", checkpoint] => {
                RouterInput::Closed { table: of(table), checkpoint: CheckpointNumber(number(checkpoint)?) }
            }
            [table, "turn", "of", checkpoint, "at", base] => RouterInput::TurnCame {
                table: of(table),
                checkpoint: CheckpointNumber(number(checkpoint)?),
                base: Token::from(*base),
            },
            [table, "commit", "sent"] => RouterInput::CommitSent { table: of(table) },
            [table, "commit", answer @ ..] => RouterInput::CommitAnswered { table: of(table), answer: self::answer(answer)? },
            [table, "given", "up"] => RouterInput::GivenUp { table: of(table) },
            [table, "divides", "into", slots] => RouterInput::LayoutWanted { table: of(table), layout: layout(slots)? },
            [table, "moves", slot] => RouterInput::MoveWanted { table: of(table), slot: self::slot(slot)? },
            ["worker", worker, "says", "hello", "in", session, "having", "served", life] => {
                let message = FromOwner::Hello {
                    worker: WorkerId(number(worker)?),
                    served: Incarnation(life.parse().map_err(|_| format!("'{life}' is no life"))?),
                };
                RouterInput::Heard { session: self::session(session)?, message }
            }
            [session, "is", "lost"] => RouterInput::SessionLost { session: self::session(session)? },
            [session, "wrote", attempt, "of", table, rest @ ..] => {
                RouterInput::Heard { session: self::session(session)?, message: written(attempt, table, rest)? }
            }
            [session, "could", "not", "write", attempt] => RouterInput::Heard {
                session: self::session(session)?,
                message: FromOwner::NotWritten {
                    attempt: self::attempt(attempt)?,
                    why: NotWritten::Transient { why: "the disk is full".into() },
                },
            },
            ["the", "record", "names", life] => {
                RouterInput::Validated { newest: Some(Incarnation(life.parse().map_err(|_| format!("'{life}' is no life"))?)) }
            }
            ["seconds", seconds] => {
                self.now += number(seconds)? * 1_000_000;
                RouterInput::Timeout
            }
            _ => return Err("nobody knows what this means".into()),
        })
    }
}

/// An owner and nothing else.
pub(crate) struct Owning {
    owner: Owner,
    now: u64,
}

impl Default for Owning {
    fn default() -> Self {
        Self { owner: Owner::new(Time(0), OwnerConfig::new(WorkerId(1))), now: 0 }
    }
}

impl Player for Owning {
    fn play(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == ["indexes"] {
            let bound = |(name, binding): (&IndexName, &kernel::route::Binding)| format!("{} at {}", index(name), binding.bound);
            return Ok(self.owner.indexes().iter().map(bound).collect());
        }
        let input = self.input(&words)?;
        self.owner.handle_input(Time(self.now), input);
        let mut said: Vec<String> = std::iter::from_fn(|| self.owner.poll_output()).map(|o| owner_output(&o)).collect();
        said.extend(self.owner.check().err().map(|v| format!("VIOLATION of {}: {}", v.rule, v.dump)));
        Ok(said)
    }
}

impl Owning {
    fn input(&mut self, words: &[&str]) -> Result<OwnerInput, String> {
        let heard = |session: &str, message| Ok::<_, String>(OwnerInput::Heard { session: self::session(session)?, message });
        Ok(match words {
            ["reached", "in", session] => OwnerInput::Connected { session: self::session(session)? },
            [session, "is", "lost"] => OwnerInput::SessionLost { session: self::session(session)? },
            [session, "welcome", "by", life] => {
                let incarnation = Incarnation(life.parse().map_err(|_| format!("'{life}' is no life"))?);
                heard(session, ToOwner::Welcome { incarnation })?
            }
            [session, "rows", index, "of", attempt, of, count] => {
                let attempt = self::attempt(attempt)?;
                let (index, count) =
                    (index.parse::<u32>().map_err(|e| e.to_string())?, count.parse::<u32>().map_err(|e| e.to_string())?);
                let rows = RowRange { batch: BatchId(attempt.number * 10 + u64::from(index)), rows: 0..count };
                let run = Run { rows, first: Version::new(attempt.incarnation, 1) };
                heard(session, ToOwner::Rows { attempt, part: part(of)?, index, run })?
            }
            [session, "write", attempt, of, batches, rows, at @ ..] => {
                let part = part(of)?;
                let at = match at {
                    ["at", base, "by", layout] => Some(IndexAt { index: index_of(&part, layout), base: Token::from(*base) }),
                    _ => None,
                };
                let (batches, rows) = (batches.parse().map_err(|_| "how many batches?")?, number(rows)?);
                heard(session, ToOwner::Write { attempt: self::attempt(attempt)?, part, batches, rows, at })?
            }
            [session, "abandon", attempt] => heard(session, ToOwner::Abandon { attempt: self::attempt(attempt)? })?,
            [session, "committed", table, "by", layout, "from", from, "to", to, published @ ..] => {
                let mut attempts = std::collections::BTreeMap::new();
                for word in published {
                    let (slot, attempt) = word.split_once(':').ok_or(format!("'{word}' is not SLOT:ATTEMPT"))?;
                    attempts.insert(self::slot(slot)?, self::attempt(attempt)?);
                }
                let to = (*to != "somewhere").then(|| Token::from(*to));
                let (table, identity, layout) = (TableName::from(*table), Identity::from("u1"), LayoutName::from(*layout));
                heard(session, ToOwner::Committed { table, identity, layout, from: Token::from(*from), to, published: attempts })?
            }
            ["loaded", of, "at", base, "by", layout] => {
                let at = IndexAt { index: index_of(&part(of)?, layout), base: Token::from(*base) };
                OwnerInput::IndexLoaded { at, outcome: Ok(()) }
            }
            ["located", attempt, of, "at", base, "by", layout, places @ ..] => {
                let at = IndexAt { index: index_of(&part(of)?, layout), base: Token::from(*base) };
                OwnerInput::Located { attempt: self::attempt(attempt)?, at, deletions: deletions(places)? }
            }
            ["wrote", attempt] => OwnerInput::Wrote { attempt: self::attempt(attempt)?, outcome: WriteOutcome::Written },
            ["seconds", seconds] => {
                self.now += number(seconds)? * 1_000_000;
                OwnerInput::Timeout
            }
            _ => return Err("nobody knows what this means".into()),
        })
    }
}

// ---- the words that go in

fn layout(slots: &str) -> Result<Layout, String> {
    let slots = slots.parse().map_err(|_| format!("'{slots}' is no number of slots"))?;
    Layout::new(slots).map_err(|e| e.to_string())
}

fn slot(text: &str) -> Result<Slot, String> {
    text.parse().map(Slot).map_err(|_| format!("'{text}' is no slot"))
}

fn session(text: &str) -> Result<WorkerSession, String> {
    let number = text.strip_prefix('s').and_then(|n| n.parse().ok());
    number.map(WorkerSession).ok_or(format!("'{text}' is no session"))
}

fn attempt(text: &str) -> Result<AttemptId, String> {
    let (life, number) = text.strip_prefix('a').and_then(|t| t.split_once('.')).ok_or(format!("'{text}' is no attempt"))?;
    let incarnation = life.parse().map(Incarnation).map_err(|_| format!("'{text}' is no attempt"))?;
    Ok(AttemptId { incarnation, number: self::number(number)? })
}

/// `orders/1/0`: a table, a checkpoint, a slot.
fn part(text: &str) -> Result<Part, String> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [table, checkpoint, slot] => {
            let checkpoint = CheckpointNumber(number(checkpoint)?);
            Ok(Part { table: TableName::from(*table), checkpoint, slot: self::slot(slot)? })
        }
        _ => Err(format!("'{text}' is no part")),
    }
}

fn index_of(part: &Part, layout: &str) -> IndexName {
    let (table, identity) = (part.table.clone(), Identity::from("u1"));
    IndexName { table, identity, layout: LayoutName::from(layout), slot: part.slot }
}

/// `f1:3` a row in a file.
fn deletions(places: &[&str]) -> Result<Deletions, String> {
    let mut deletions = Deletions::default();
    for place in places {
        let (file, position) = place.split_once(':').ok_or(format!("'{place}' is not FILE:ROW"))?;
        deletions.delete(FileName::from(file), number(position)?);
    }
    Ok(deletions)
}

fn written(attempt: &str, of: &str, rest: &[&str]) -> Result<FromOwner, String> {
    let (base, places) = match rest {
        ["at", base, places @ ..] => (Some(Token::from(*base)), places),
        places => (None, places),
    };
    let deletions = deletions(places)?;
    Ok(FromOwner::Written { attempt: self::attempt(attempt)?, part: part(of)?, base, deletions })
}

fn answer(words: &[&str]) -> Result<CommitAnswer, String> {
    Ok(match words {
        ["durable", "at", token] => CommitAnswer::Durable { token: Token::from(*token), made_by_it: true },
        ["found", "token", "is", token] => CommitAnswer::Durable { token: Token::from(*token), made_by_it: false },
        ["foreign", "token", "is", token] => CommitAnswer::Foreign { base: Token::from(*token) },
        ["unknown"] => CommitAnswer::Unknown,
        ["set", "back"] => CommitAnswer::SetBack,
        _ => return Err("nobody knows this outcome".into()),
    })
}

// ---- the words that come out

fn shown(part: &Part) -> String {
    format!("{}/{}/{}", part.table, part.checkpoint.0, part.slot.0)
}

fn places(deletions: &Deletions) -> String {
    let mut text = String::new();
    for (file, positions) in deletions.files() {
        for position in positions {
            let _ = write!(text, " {file}:{position}");
        }
    }
    text
}

fn index(name: &IndexName) -> String {
    format!("{} slot {} by {}", name.table, name.slot.0, name.layout)
}

fn runs(run: &Run) -> String {
    let rows = &run.rows;
    format!(
        "batch {} rows {}..{} from version {}/{}",
        rows.batch.0,
        rows.rows.start,
        rows.rows.end,
        run.first.incarnation(),
        run.first.sequence()
    )
}

fn to_owner(message: &ToOwner) -> String {
    match message {
        ToOwner::Welcome { incarnation } => format!("welcome by {incarnation}"),
        ToOwner::Alive => "still here".into(),
        ToOwner::Rows { attempt, part, index, run } => format!("rows {index} of a{attempt} {}: {}", shown(part), runs(run)),
        ToOwner::Write { attempt, part, batches, rows, at } => {
            let at = at.as_ref().map_or(String::new(), |at| format!(", located at {} by {}", at.base, at.index.layout));
            format!("write a{attempt} {}: {batches} batches, {rows} rows{at}", shown(part))
        }
        ToOwner::Abandon { attempt } => format!("abandon a{attempt}"),
        ToOwner::Committed { table, layout, from, to, published, .. } => {
            let to = to.as_ref().map_or("somewhere", |to| to.as_str());
            let attempts: Vec<String> = published.iter().map(|(slot, attempt)| format!("{}:a{attempt}", slot.0)).collect();
            format!("committed {table} by {layout} from {from} to {to}: {}", attempts.join(" "))
        }
    }
}

fn from_owner(message: &FromOwner) -> String {
    match message {
        FromOwner::Hello { worker, served } => format!("hello, worker {}, has served {served}", worker.0),
        FromOwner::Alive => "still here".into(),
        FromOwner::Written { attempt, part, base, deletions } => {
            let base = base.as_ref().map_or(String::new(), |base| format!(" at {base}, goes:{}", places(deletions)));
            format!("a{attempt} {} is written{base}", shown(part))
        }
        FromOwner::NotWritten { attempt, why } => format!("a{attempt} is not written: {why:?}"),
    }
}

fn router_output(output: &RouterOutput) -> String {
    let rows = |rows: &[RowRange]| rows.iter().map(|r| r.batch.0.to_string()).collect::<Vec<_>>().join(" ");
    let attempts = |attempts: &[AttemptId]| attempts.iter().map(|a| format!("a{a}")).collect::<Vec<_>>().join(" ");
    match output {
        RouterOutput::Send { session, message } => format!("s{}: {}", session.0, to_owner(message)),
        RouterOutput::HangUp { session } => format!("hang up s{}", session.0),
        RouterOutput::ReleaseRows { rows: released } => format!("release batches {}", rows(released)),
        RouterOutput::Gathered { table, checkpoint, base, staged, deletions } => {
            format!("gathered {table} {} at {base}: {}, goes:{}", checkpoint.0, attempts(staged), places(deletions))
        }
        RouterOutput::DeleteStaged { table, attempts: whose } => format!("delete what {} staged in {table}", attempts(whose)),
        RouterOutput::SetBack { table } => format!("set {table} back"),
        RouterOutput::Rejected { table, checkpoint, why } => format!("{table} {} is refused: {why}", checkpoint.0),
        RouterOutput::Unreachable { table, why } => format!("{table} can't be written: {why}"),
        RouterOutput::Validate => "read the record: is this life the newest?".into(),
        RouterOutput::Superseded { by } => format!("stop: life {by} has begun"),
        RouterOutput::NoWorker { since } => format!("no worker since {} s", since / 1_000_000),
    }
}

fn owner_output(output: &OwnerOutput) -> String {
    match output {
        OwnerOutput::Send { session, message } => format!("s{}: {}", session.0, from_owner(message)),
        OwnerOutput::HangUp { session } => format!("hang up s{}", session.0),
        OwnerOutput::LoadIndex { at, from } => {
            let from = from.as_ref().map_or(String::new(), |from| format!(", from {from}"));
            format!("load the index of {} at {}{from}", index(&at.index), at.base)
        }
        OwnerOutput::Locate { attempt, at } => format!("locate a{attempt} in {} at {}", index(&at.index), at.base),
        OwnerOutput::Apply { attempt, index: name } => format!("apply a{attempt} to {}", index(name)),
        OwnerOutput::DropIndex { index: name } => format!("drop the index of {}", index(name)),
        OwnerOutput::Write { attempt, part, runs: all } => {
            format!("write a{attempt} {}: {}", shown(part), all.iter().map(runs).collect::<Vec<_>>().join("; "))
        }
        OwnerOutput::Forget { attempt } => format!("forget a{attempt}"),
        #[allow(unreachable_patterns, reason = "there is one more where wrong rules are built in, and none of them is on here")]
        _ => "what no owner says".into(),
    }
}
