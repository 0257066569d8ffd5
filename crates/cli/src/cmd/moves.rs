//! `selvedge moves accept`: a proposed defragmentation.

use clap::Subcommand;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::failure::{Answer, Outcome};
use crate::render;

#[derive(Debug, clap::Args)]
pub(crate) struct Moves {
    #[command(subcommand)]
    verb: MovesVerb,
}

#[derive(Debug, Subcommand)]
enum MovesVerb {
    /// Move running jobs as `events` proposed it, so that a large one fits.
    Accept(Accept),
}

#[derive(Debug, clap::Args)]
struct Accept {
    /// The plan's number, as the event names it.
    #[arg(value_name = "PLAN")]
    plan: u32,
}

pub(crate) fn run(args: &Moves, globals: &Globals) -> Outcome {
    let MovesVerb::Accept(Accept { plan }) = &args.verb;
    let client = Client::connect(globals)?;
    let text = client.post_text(&format!("/v1/moves/{plan}/accept"), &json!({}))?;
    if globals.json {
        render::print_raw(&text)?;
    } else {
        render::print(&format!("plan {plan} is accepted\n"))?;
    }
    Ok(Answer::Yes)
}
