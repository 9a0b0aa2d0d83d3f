//! The pipeline file: every field of it, described once. The sections below the top have a file each.

mod sink;
mod source;
mod table;

use crate::field::{Field, Form, Shape, Zero, field, name};
use crate::words::{Compat, SnapshotMode};

pub(crate) use sink::SINK;
pub(crate) use source::SOURCE;
pub(crate) use table::{FILTER, TABLE};

/// The whole file.
pub(crate) static PIPELINE: &[Field] = &[
    field(
        "pipeline",
        name("the pipeline's name", Form::PipelineName),
        "The pipeline's name. Its record at the sink is the table `urutau_<pipeline>`, so two pipelines of \
            one namespace have different names.",
    )
    .required(),
    field(
        "compat",
        Shape::Word(Compat::WORDS),
        "`go` restores the defaults of the Go urutau where they differ from the ones here.",
    )
    .without("the defaults of this page"),
    field("source", Shape::Section(SOURCE), "Where changes come from.").required(),
    field("sink", Shape::Section(SINK), "Where rows go.").required(),
    field("tables", Shape::Sections(TABLE), "The tables to copy, at least one.").without("a source that discovers its tables"),
    field("retry", Shape::Section(RETRY), "What happens while something is away."),
    field("snapshot", Shape::Section(SNAPSHOT), "How rows that are older than the log get to the target."),
];

static RETRY: &[Field] = &[field(
    "giveUpAfter",
    Shape::Duration(Zero::Allowed),
    "How long a transient fault (a server away, a disk full) is retried before the run ends with exit code 5; 0 is for ever.",
)
.without("`15m`; `2m` with `--until-current`")];

static SNAPSHOT: &[Field] = &[
    field(
        "mode",
        Shape::Word(SnapshotMode::WORDS),
        "When rows are read from the table itself; of no meaning for sources whose log tells every row.",
    )
    .default("initial"),
    field("chunkRows", Shape::Number { least: 1, most: u32::MAX as u64 }, "Rows of one read.").default("20000"),
    field("parallelism", Shape::Number { least: 1, most: 64 }, "Reads of one table at the same time.").default("2"),
];
