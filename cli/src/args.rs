//! The command line. What a command does is in the module of its name; here is only what can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// Change data capture that people can trust.
#[derive(Debug, Parser)]
#[command(name = "urutau", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How results are printed, on standard output
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub(crate) output: OutputFormat,

    /// Log more; twice for everything. Logs go to standard error, and URUTAU_LOG says finely what they hold
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// How log lines look
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub(crate) log_format: OutputFormat,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a fault in urutau itself, or another run has taken over; 2 usage or configuration; 3 a halted table or an \
event that can't be read; 4 a position lost; 5 a system stayed unreachable; 130 interrupted before a clean end.";

/// For whom something is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a pipeline file for a source, with the tables that it holds
    Init(InitArgs),
    /// Run the pipeline in this process until stopped
    Run(RunArgs),
    /// Check the pipeline file, without connecting to anything
    Validate(FileArgs),
    /// Check everything around the pipeline that could go wrong, without changing anything
    Doctor(FileArgs),
    /// Show what a run would do, without changing anything
    Plan(FileArgs),
    /// Show the state of each table, as the sink holds it
    #[command(visible_alias = "status")]
    Tables(FileArgs),
    /// Show some rows of a table, read back from the sink
    Peek(PeekArgs),
    /// Compare the copies with the source, also while the pipeline runs, and name the keys that differ
    Verify(VerifyArgs),
    /// Act on one table, also while the pipeline runs
    Table {
        #[command(subcommand)]
        action: TableAction,
    },
    /// Print the JSON Schema of the pipeline file
    Schema,
    /// List the sources and sinks of this binary
    Drivers,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the version, the commit it was built from, and the drivers
    Version,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct FileArgs {
    /// The pipeline file
    #[arg(short, long, default_value = PIPELINE_FILE)]
    pub(crate) file: PathBuf,
}

/// The pipeline file, if nobody names another.
pub(crate) const PIPELINE_FILE: &str = "pipeline.yaml";

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// The file of change events, a pattern such as 'changes/*.jsonl', or the address of a PostgreSQL database
    /// (postgres://user@host:5432/database; its password in PGPASSWORD); asked for on a terminal
    pub(crate) source: Option<String>,

    /// Where the pipeline file is written
    #[arg(short, long, default_value = PIPELINE_FILE)]
    pub(crate) file: PathBuf,

    /// The pipeline's name [default: from the change file's or the database's name]
    #[arg(long)]
    pub(crate) name: Option<String>,

    /// The directory of the Iceberg warehouse
    #[arg(long, default_value = "./warehouse")]
    pub(crate) warehouse: String,

    /// The namespace of the tables
    #[arg(long, default_value = "default")]
    pub(crate) namespace: String,

    /// Replace the pipeline file if there is one
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,

    /// The tables, by their names at the source or at the target [default: all]
    pub(crate) tables: Vec<String>,

    /// How many seconds a copy may take to come as far as the source was
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    pub(crate) wait: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,

    /// Stop once every table has committed what the source held at the start
    #[arg(long, visible_alias = "once")]
    pub(crate) until_current: bool,

    /// Where /metrics, /statusz, /healthz and /readyz are served: an address, or 'off' [default: 127.0.0.1:9464]
    #[arg(long, value_parser = parse_listen)]
    pub(crate) listen: Option<Listen>,

    /// Write what the machines hear and say into a new file, to be replayed elsewhere: no rows, and keys as hashes
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PeekArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,

    /// The table, by its name at the source or at the target
    pub(crate) table: String,

    /// At most so many rows
    #[arg(long, default_value_t = 10)]
    pub(crate) limit: usize,

    /// Only the row with this key; for a key of several columns once for each, in the key's order
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) key: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TableAction {
    /// Take no more rows of a table; the others go on
    Pause(TableArgs),
    /// Go on with a paused or halted table
    Resume(TableArgs),
    /// Pass over the event that a table halted at, and go on
    Skip(TableArgs),
    /// Read a table anew
    Resnapshot(TableArgs),
    /// Hold nothing for a table any more: only a new snapshot could bring it back. Its rows at the target stay
    Drop {
        #[command(flatten)]
        table: TableArgs,

        /// Yes, it can't be undone
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,

    /// The table, by its name at the source or at the target
    pub(crate) table: String,

    /// Where the running pipeline listens: an address, or 'off' if it does not run [default: 127.0.0.1:9464]
    #[arg(long, value_parser = parse_listen)]
    pub(crate) listen: Option<Listen>,
}

/// Where a run listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listen {
    Off,
    At(SocketAddr),
}

/// Where a run listens if nobody says.
pub(crate) const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9464);

fn parse_listen(text: &str) -> Result<Listen, String> {
    if text == "off" {
        return Ok(Listen::Off);
    }
    text.parse().map(Listen::At).map_err(|_| format!("'{text}' is neither 'off' nor an address such as {LISTEN}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([&["urutau"], words].concat())
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_run_reads_pipeline_yaml_and_listens_where_nobody_says() {
        let Command::Run(run) = parse(&["run"]).unwrap().command else { panic!("another command") };
        assert_eq!(run.file.file, PathBuf::from("pipeline.yaml"));
        assert!(!run.until_current);
        assert_eq!(run.listen, None);
    }

    #[test]
    fn once_is_another_word_for_until_current() {
        for word in ["--until-current", "--once"] {
            let Command::Run(run) = parse(&["run", word, "--listen", "off"]).unwrap().command else { panic!("another command") };
            assert!(run.until_current, "{word}");
            assert_eq!(run.listen, Some(Listen::Off));
        }
    }

    #[test]
    fn status_is_another_word_for_tables() {
        let args = parse(&["status", "-f", "other.yaml", "--output", "json"]).unwrap();
        let Command::Tables(tables) = args.command else { panic!("another command") };
        assert_eq!(tables.file, PathBuf::from("other.yaml"));
        assert_eq!(args.output, OutputFormat::Json);
    }

    #[test]
    fn an_address_that_is_none_is_refused_with_an_example() {
        let error = parse(&["run", "--listen", "9464"]).unwrap_err().to_string();
        assert!(error.contains("'9464' is neither 'off' nor an address such as 127.0.0.1:9464"), "{error}");
    }

    #[test]
    fn a_key_has_a_value_for_each_of_its_columns() {
        let key = |words: &[&str]| {
            let Command::Peek(peek) = parse(words).unwrap().command else { panic!("another command") };
            peek.key
        };
        assert_eq!(key(&["peek", "orders"]), None);
        assert_eq!(key(&["peek", "orders", "--key", "-7"]), Some(vec!["-7".into()]));
        assert_eq!(key(&["peek", "--key", "a,b", "--key", "2", "stock"]), Some(vec!["a,b".into(), "2".into()]));
    }

    #[test]
    fn an_action_on_a_table_names_the_table() {
        assert!(parse(&["table", "pause"]).is_err());
        let Command::Table { action: TableAction::Pause(pause) } = parse(&["table", "pause", "shop.orders"]).unwrap().command
        else {
            panic!("another command")
        };
        assert_eq!(pause.table, "shop.orders");
    }
}
