//! `selvedge check`: what an independent check finds wrong.

use serde::Deserialize;

use crate::Globals;
use crate::client::Client;
use crate::failure::{Answer, Outcome};
use crate::render::{self, style};

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 nothing is wrong, 1 something is, 2 error.")]
pub(crate) struct Check;

#[derive(Debug, Deserialize)]
struct Checked {
    violations: Vec<String>,
}

pub(crate) fn run(_: &Check, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let text = client.get_text("/v1/check")?;
    let Checked { violations } = client.read("/v1/check", &text)?;
    if globals.json {
        render::print_raw(&text)?;
    } else if violations.is_empty() {
        let good = style::GOOD;
        render::print(&format!("{good}nothing is wrong{good:#}\n"))?;
    } else {
        render::print(&render::line(violations.join("\n")))?;
    }
    Ok(if violations.is_empty() { Answer::Yes } else { Answer::No })
}
