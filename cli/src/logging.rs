//! Log lines: to standard error, with fields, above the progress lines if a terminal shows some.

use std::io::{IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::args::OutputFormat;
use crate::progress;

/// Begins to log. `URUTAU_LOG` says what, as `RUST_LOG` does elsewhere; `-v` says it in short.
pub(crate) fn begin(verbose: u8, format: OutputFormat) {
    let default = match verbose {
        0 => "warn,urutau=info,host=info,pump=info,jsonl=info,null=info,iceberg_sink=info",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("URUTAU_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| AboveProgress);
    match format {
        OutputFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
        OutputFormat::Json => lines.json().init(),
    }
}

struct AboveProgress;

impl Write for AboveProgress {
    /// A log line comes whole, in one call.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        progress::write_above(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
