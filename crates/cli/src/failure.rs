//! How a verb ends: with an answer, or with a chain of causes and a hint.

use std::io;
use std::process::ExitCode;

/// What a verb that worked has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, or "yes"; exit status 0.
    Yes,
    /// Answered no: the question was good, its answer is negative; exit status 1.
    No,
}

/// Why a verb has nothing to show.
#[derive(Debug)]
pub(crate) struct Failure {
    error: anyhow::Error,
    /// What to do about it.
    hint: Option<String>,
    /// Whether the question was good and the answer is no, as things stand.
    is_refusal: bool,
}

/// What every verb returns.
pub(crate) type Outcome<T = Answer> = Result<T, Failure>;

impl From<Answer> for ExitCode {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Yes => ExitCode::SUCCESS,
            Answer::No => ExitCode::from(1),
        }
    }
}

impl Failure {
    /// An error with nothing beneath it.
    pub(crate) fn new(what: impl std::fmt::Display) -> Self {
        Self { error: anyhow::anyhow!("{what}"), hint: None, is_refusal: false }
    }

    /// The answer no, with its reason.
    pub(crate) fn refusal(why: impl std::fmt::Display) -> Self {
        Self { is_refusal: true, ..Self::new(why) }
    }

    /// The same with what to do about it, where nothing nearer to the cause has said so.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }

    /// The same failure as the cause of `what`.
    #[must_use]
    pub(crate) fn within(self, what: impl std::fmt::Display) -> Self {
        Self { error: self.error.context(what.to_string()), ..self }
    }

    /// The chain of causes on one line.
    pub(crate) fn text(&self) -> String {
        let causes: Vec<String> = self.error.chain().map(ToString::to_string).collect();
        causes.join(": ")
    }

    /// Whether the question was good and the answer is no.
    pub(crate) fn is_refusal(&self) -> bool {
        self.is_refusal
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_refusal { Answer::No.into() } else { ExitCode::from(2) }
    }

    /// What failed, from the outermost to the cause.
    pub(crate) fn causes(&self) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
        self.error.chain()
    }

    /// Whether whoever read our output went away.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            let cause = cause.downcast_ref::<io::Error>();
            cause.is_some_and(|it| it.kind() == io::ErrorKind::BrokenPipe)
        })
    }

    /// `error:` or `no:`, the chain of causes one a line, then `hint:`.
    pub(crate) fn print(&self) {
        let (red, blue) = (crate::render::style::BAD, crate::render::style::HINT);
        let word = if self.is_refusal { "no" } else { "error" };
        for (depth, cause) in self.error.chain().enumerate() {
            let text = cause.to_string();
            match depth {
                0 => anstream::eprintln!("{red}{word}:{red:#} {}", text.trim_end()),
                _ => anstream::eprintln!("  because: {}", text.trim_end().replace('\n', "\n  ")),
            }
        }
        if let Some(hint) = &self.hint {
            anstream::eprintln!("{blue}hint:{blue:#} {hint}");
        }
    }
}

impl<E> From<E> for Failure
where
    anyhow::Error: From<E>,
{
    fn from(error: E) -> Self {
        Self { error: error.into(), hint: None, is_refusal: false }
    }
}

/// Says what was being done when something failed.
pub(crate) trait Within<T> {
    /// The error as the cause of `what`.
    fn within<S: std::fmt::Display>(self, what: impl FnOnce() -> S) -> Outcome<T>;
}

impl<T, E: Into<Failure>> Within<T> for Result<T, E> {
    fn within<S: std::fmt::Display>(self, what: impl FnOnce() -> S) -> Outcome<T> {
        self.map_err(|error| error.into().within(what()))
    }
}
