//! The few colours of the command line, by meaning.

use anstyle::{AnsiColor, Style};

/// Plain text.
pub(crate) const PLAIN: Style = Style::new();
/// A table's head, and what matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What a page is about.
pub(crate) const TITLE: Style = Style::new().bold();
/// Works, runs, is done.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// On its way, or to be looked at.
pub(crate) const WAIT: Style = AnsiColor::Yellow.on_default();
/// Broken or refused.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What to do next.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
