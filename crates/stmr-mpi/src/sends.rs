//! What is sent, written down where two runs of a program are compared (`--check-determinism`).

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use selvedge_stmr::digest::Digest;

use crate::real;
use crate::state::State;
use crate::told::Told;

/// What two runs of one program may differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Clock,
    Random,
    Pid,
    Core,
    Wildcard,
    Completion,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Clock => "clocks",
            Self::Random => "random bytes",
            Self::Pid => "process numbers",
            Self::Core => "the core that it runs on",
            Self::Wildcard => "a message from anybody",
            Self::Completion => "which request was complete",
        }
    }
}

/// Where what is sent is written down, if that is wanted.
pub(crate) fn open(told: &Told) -> Option<File> {
    let folder = PathBuf::from(std::env::var_os("SELVEDGE_SENDS")?);
    let path = folder.join(format!("sends.{}", told.rank));
    let opened = File::create(&path);
    Some(opened.unwrap_or_else(|e| real::fail(&format!("cannot write {}: {e}", path.display()))))
}

impl State {
    /// Where two runs are compared, writes down what is sent and what it may depend on.  When those
    /// are answered who come to a window, time tells; but each has one answer after the other.
    pub(crate) fn write_log(&mut self, digest: Digest, length: usize) {
        let sources = std::mem::take(&mut self.sources);
        let doing = if self.answers.is_some() { "an answer at a window" } else { self.doing };
        let to = self.answers.map(|(comm, member)| format!("{comm}.{member}")).unwrap_or_default();
        if let Some(log) = &mut self.log {
            let words: Vec<&str> = sources.iter().map(|it| it.name()).collect();
            let line = format!("{doing}\t{length}\t{digest:?}\t{}\t{to}\n", words.join(","));
            if log.write_all(line.as_bytes()).is_err() {
                real::fail("what is sent cannot be written down");
            }
        }
    }
}
