//! The `urutau` binary: the one place that names concrete drivers.
//!
//! `args` is what can be typed; each command has a module of its name and returns an `output::Answer` or a `Failure`, which
//! are printed here, for people or as JSON. Deliberately absent: anything that decides about rows, positions or phases. The
//! commands read what source and sink say, and ask the kernel (`host::survey`) or a running pipeline (`table`).

mod about;
mod args;
mod cell;
mod doctor;
mod drivers;
mod grid;
mod init;
mod logging;
mod output;
mod peek;
mod pipeline;
mod plan;
mod progress;
mod run;
mod signals;
mod table;
mod tables;
mod validate;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use output::{Answer, Failure, exit};

fn main() -> ExitCode {
    let args = Args::parse();
    logging::begin(args.verbose, args.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime can't start: {error}");
            return ExitCode::from(exit::FAULT);
        }
    };
    let result = runtime.block_on(carry_out(&args));
    // A read that still waits for a file must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(output::say(result, args.output))
}

async fn carry_out(args: &Args) -> Result<Answer, Failure> {
    match &args.command {
        Command::Init(init) => init::init(init, args.output).await,
        Command::Run(run) => run::run(run, args.output).await,
        Command::Validate(file) => validate::validate(file),
        Command::Doctor(file) => doctor::doctor(file).await,
        Command::Plan(file) => plan::plan(file).await,
        Command::Tables(file) => tables::tables(file).await,
        Command::Peek(peek) => peek::peek(peek).await,
        Command::Verify(args) => verify::verify(args).await,
        Command::Table { action } => table::act(action).await,
        Command::Schema => Ok(about::schema()),
        Command::Drivers => Ok(about::list_drivers()),
        Command::Completions { shell } => Ok(about::completions(*shell)),
        Command::Version => Ok(about::version()),
    }
}
