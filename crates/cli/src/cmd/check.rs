//! `selvedge check`: what an independent check finds wrong.

use serde::Deserialize;

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::{self, style};

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 nothing is wrong, 1 something is, 2 error.")]
pub(crate) struct Check {
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
struct Checked {
    violations: Vec<String>,
}

pub(crate) fn run(args: &Check, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let mut answer = Answer::Yes;
    args.watch.show(|| {
        let text = client.get_text("/v1/check")?;
        let Checked { violations } = client.read("/v1/check", &text)?;
        answer = if violations.is_empty() { Answer::Yes } else { Answer::No };
        let good = style::GOOD;
        Ok(match () {
            () if globals.json => render::line(text),
            () if violations.is_empty() => format!("{good}nothing is wrong{good:#}\n"),
            () => render::line(violations.join("\n")),
        })
    })?;
    Ok(answer)
}
