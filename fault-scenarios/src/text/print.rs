//! A scenario as text, always in the same form.

use std::fmt::{self, Write};

use crate::scenario::Scenario;
use crate::workload::{Change, GROUP_WORDS, GROUPS, Kind, Transaction, Workload};

/// Numbers of dice in a line.
const DICE_IN_A_LINE: usize = 32;

pub(super) fn scenario(scenario: &Scenario, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let workload = &scenario.workload;
    let mut parts: [String; 7] = Default::default();
    notes(&mut parts[0], &scenario.about)?;
    for finds in &scenario.finds {
        writeln!(parts[1], "finds {} by {}", finds.bug, finds.invariant)?;
    }
    for mark in &scenario.reaches {
        writeln!(parts[1], "reaches {mark}")?;
    }
    for (word, value) in scenario.options.unusual() {
        writeln!(parts[2], "{word} {value}")?;
    }
    head(&mut parts[3], workload)?;
    for transaction in &workload.transactions {
        tell(&mut parts[4], workload, transaction)?;
    }
    for step in &scenario.steps {
        notes(&mut parts[5], &step.note)?;
        writeln!(parts[5], "{}: {}", step.when, step.then)?;
    }
    for line in scenario.dice.0.chunks(DICE_IN_A_LINE) {
        let digits: String = line.iter().map(|n| format!("{n:02x}")).collect();
        writeln!(parts[6], "dice {digits}")?;
    }
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    f.write_str(&parts.join("\n"))
}

/// What may be said of a transaction behind its stream, in this order.
pub(super) const DELAYS: [&str; 5] = ["gap", "early", "hidden", "unlisted", "late"];

/// The same, in the same order.
pub(super) fn delays(of: &mut Transaction) -> [&mut u64; 5] {
    [&mut of.gap, &mut of.early, &mut of.hidden, &mut of.unlisted, &mut of.late]
}

fn notes(out: &mut String, lines: &[String]) -> fmt::Result {
    for line in lines {
        if line.is_empty() { writeln!(out, "#")? } else { writeln!(out, "# {line}")? }
    }
    Ok(())
}

fn head(out: &mut String, workload: &Workload) -> fmt::Result {
    for stream in &workload.streams {
        let appears = if stream.appears > 0 { format!(" appears {}", stream.appears) } else { String::new() };
        writeln!(out, "stream {}{appears}", stream.name)?;
    }
    for (n, table) in workload.tables.iter().enumerate() {
        writeln!(out, "table t{n} {table}")?;
    }
    for value in &workload.refused {
        writeln!(out, "refuse {value}")?;
    }
    Ok(())
}

fn tell(out: &mut String, workload: &Workload, transaction: &Transaction) -> fmt::Result {
    notes(out, &transaction.note)?;
    let stream = workload.streams.get(transaction.stream).map_or(String::new(), |s| format!(" {}", s.name));
    write!(out, "tx {}{stream}", transaction.time)?;
    for (word, n) in DELAYS.iter().zip(delays(&mut transaction.clone())) {
        if *n > 0 {
            write!(out, " {word} {n}")?;
        }
    }
    writeln!(out)?;
    let mut changes = transaction.changes.as_slice();
    while let Some(Change { table, kind, without }) = changes.first() {
        let (many, step) = run(changes);
        changes = &changes[many..];
        let last = many as u32 - 1;
        let what = match kind {
            Kind::Set(key, value) if many == 1 => format!("{key} = {value}"),
            Kind::Set(key, value) if step == 0 => format!("{key} = {value}..{}", value + last),
            Kind::Set(key, value) => format!("{key}..{} = {value}..{}", u32::from(*key) + last, value + last),
            Kind::Gone(key) => format!("{key} gone"),
            Kind::Moved(from, to, value) => format!("{from} -> {to} = {value}"),
            Kind::Truncated => "truncated".into(),
            Kind::Schema => "schema".into(),
            Kind::Refused => "refused".into(),
        };
        let left_out = GROUP_WORDS.iter().zip(without).filter(|(_, out)| **out).map(|(word, _)| format!(" {word}"));
        let left_out: String = left_out.collect();
        let without = if left_out.is_empty() { String::new() } else { format!(" without{left_out}") };
        writeln!(out, "  t{table} {what}{without}")?;
    }
    Ok(())
}

/// How many of these changes are told in one line, and by how much the key grows from one to the next: values that follow each
/// other, of one key or of neighbouring ones. Fewer than three are no row of them.
fn run(changes: &[Change]) -> (usize, u32) {
    let of = |c: &Change| match c.kind {
        Kind::Set(key, value) if c.table == changes[0].table && c.without == [false; GROUPS] => Some((u32::from(key), value)),
        _ => None,
    };
    let Some((key, value)) = of(&changes[0]) else { return (1, 0) };
    let follow = |step: u32| {
        let numbered = changes.iter().zip(0u32..);
        numbered.take_while(|(c, n)| Some(*n).and_then(|n| Some((key + n * step, value.checked_add(n)?))) == of(c)).count()
    };
    let (hot, wide) = (follow(0), follow(1));
    match (hot, wide) {
        (0..3, 0..3) => (1, 0),
        _ if hot >= wide => (hot, 0),
        _ => (wide, 1),
    }
}
