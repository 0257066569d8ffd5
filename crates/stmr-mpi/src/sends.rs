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
            Self::Core => "the cores and the memory of its host",
            Self::Wildcard => "a message from anybody",
            Self::Completion => "which request was complete",
        }
    }
}

/// Where what is sent is written down, if that is wanted.
pub(crate) struct Log {
    file: Option<File>,
    /// What is compared answers a member of this communicator, by its number, at a window.
    pub(crate) answers: Option<(u64, i32)>,
}

impl Log {
    pub(crate) fn open(told: &Told) -> Self {
        let file = std::env::var_os("SELVEDGE_SENDS").map(|folder| {
            let path = PathBuf::from(folder).join(format!("sends.{}", told.rank));
            let opened = File::create(&path);
            opened.unwrap_or_else(|e| real::fail(&format!("cannot write {}: {e}", path.display())))
        });
        Self { file, answers: None }
    }
}

impl State {
    /// Where two runs are compared, writes down what is sent and what it may depend on.  Accesses
    /// to a window are not answered at the same moment twice, so whom an answer is to is told.
    pub(crate) fn write_log(&mut self, digest: Digest, length: usize) {
        let sources = std::mem::take(&mut self.sources);
        let Log { file, answers } = &mut self.log;
        let doing = if answers.is_some() { "an answer at a window" } else { self.doing };
        if let Some(log) = file {
            let to = answers.map(|(comm, member)| format!("{comm}.{member}")).unwrap_or_default();
            let words: Vec<&str> = sources.iter().map(|it| it.name()).collect();
            let line = format!("{doing}\t{length}\t{digest:?}\t{}\t{to}\n", words.join(","));
            if log.write_all(line.as_bytes()).is_err() {
                real::fail("what is sent cannot be written down");
            }
        }
    }
}
