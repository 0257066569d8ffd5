//! `--watch`: the same page again and again.

use std::io::IsTerminal as _;
use std::time::Duration;

use crate::failure::Outcome;
use crate::render;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Watch {
    /// Show it again every so many seconds, until Ctrl-C.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "2", value_parser = seconds)]
    watch: Option<Duration>,
}

impl Watch {
    /// Prints what `draw` returns, once or again and again.
    pub(crate) fn show(self, mut draw: impl FnMut() -> Outcome<String>) -> Outcome<()> {
        let Some(every) = self.watch else { return Ok(render::print(&draw()?)?) };
        let clears = std::io::stdout().is_terminal();
        loop {
            let page = draw()?;
            // Home and clear to the end: the page does not flicker.
            let page = if clears { format!("\x1b[H\x1b[2J\x1b[3J{page}") } else { page };
            render::print(&page)?;
            pause(every);
        }
    }
}

/// Waits for `span` of real time.
#[allow(clippy::disallowed_methods, reason = "a person watches; no core is told this time")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.1..=86_400.0).contains(&number) {
        return Err("must be from 0.1 to 86400 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(number))
}
