//! One line on a terminal's standard error that says how far a long work has come.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

/// A line that is written over and over, and wiped in the end.
#[derive(Debug)]
pub(crate) struct Progress {
    /// None where nobody watches.
    last: Option<Instant>,
    has_line: bool,
}

/// Faster is not read.
const EVERY: Duration = Duration::from_millis(100);

#[allow(clippy::disallowed_methods, reason = "a person watches; no core is told this time")]
impl Progress {
    /// Nothing is written unless standard error is a terminal.
    pub(crate) fn new() -> Self {
        Self { last: stderr().is_terminal().then(Instant::now), has_line: false }
    }

    /// Writes what `line` returns, if it is time to.
    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        let Some(last) = &mut self.last else { return };
        if EVERY <= last.elapsed() {
            *last = Instant::now();
            self.has_line = true;
            // A progress line that cannot be written is no reason to stop the work.
            let _ = write!(stderr(), "\r\x1b[2K{}", line());
            let _ = stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.has_line {
            let _ = write!(stderr(), "\r\x1b[2K");
            let _ = stderr().flush();
        }
    }
}
