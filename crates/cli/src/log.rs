//! What a server notes while it runs, as lines on standard error.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::filter::LevelFilter;

use crate::failure::{Failure, Outcome};

/// How much is said: `error`, `warn`, `info`, `debug`, `trace` or `off`; `info` without it.
const LEVEL_VARIABLE: &str = "SELVEDGE_LOG";

/// Lets this process write down what it notes from now on.
pub(crate) fn begin() -> Outcome<()> {
    let level = match std::env::var(LEVEL_VARIABLE) {
        Err(_) => LevelFilter::INFO,
        Ok(text) => text.parse().map_err(|_| {
            Failure::new(format!("{LEVEL_VARIABLE} is {text:?}"))
                .hint("write error, warn, info, debug, trace or off")
        })?,
    };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    // A service manager that reads the lines has the time of each.
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        lines.without_time().init();
    } else {
        lines.init();
    }
    Ok(())
}
