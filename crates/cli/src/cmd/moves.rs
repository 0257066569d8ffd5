//! `selvedge moves show|accept`: a proposed defragmentation, to be looked at and accepted.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Outcome};
use crate::render::facts::Facts;
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
pub(crate) struct Moves {
    #[command(subcommand)]
    verb: MovesVerb,
}

#[derive(Debug, Subcommand)]
enum MovesVerb {
    /// The proposal there is: which running jobs would go where, for which job, and the cost.
    Show(Show),
    /// Move running jobs as it is proposed, so that a large one fits.
    Accept(Accept),
}

#[derive(Debug, clap::Args)]
struct Show {
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, clap::Args)]
struct Accept {
    /// The plan's number, as `moves show` and the event name it.
    #[arg(value_name = "PLAN")]
    plan: u32,
}

#[derive(Debug, Deserialize)]
struct Proposed {
    proposal: Option<Proposal>,
}

#[derive(Debug, Deserialize)]
struct Proposal {
    id: u32,
    job: u32,
    lost_chip_hours: f64,
    moves: Vec<Move>,
}

#[derive(Debug, Deserialize)]
struct Move {
    job: u32,
    chips: u32,
    from: Vec<String>,
    to: Vec<String>,
}

pub(crate) fn run(args: &Moves, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        MovesVerb::Show(args) => show(args, &client, globals),
        MovesVerb::Accept(args) => accept(args, &client, globals),
    }
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    args.watch.show(|| {
        let text = client.get_text("/v1/moves")?;
        if globals.json {
            return Ok(render::line(text));
        }
        let Proposed { proposal } = client.read("/v1/moves", &text)?;
        Ok(proposal.map_or("nothing is proposed\n".to_owned(), |it| page(&it)))
    })?;
    Ok(Answer::Yes)
}

fn page(proposal: &Proposal) -> String {
    let title = style::TITLE;
    let (id, job) = (proposal.id, proposal.job);
    let mut facts = Facts::new(format!("{title}plan {id}{title:#} for job {job}, which waits"));
    facts.add("costs", format!("{:.1} chip-hours of work not kept", proposal.lost_chip_hours));
    let moves = proposal.moves.iter().map(|it| {
        let chips = number::counted(u64::from(it.chips), "chip");
        format!("job {}, {chips}: {} → {}", it.job, it.from.join(" "), it.to.join(" "))
    });
    facts.add_list("moves", moves.collect());
    facts.add("accept it", format!("selvedge moves accept {id}"));
    facts.to_string()
}

fn accept(args: &Accept, client: &Client, globals: &Globals) -> Outcome {
    let plan = args.plan;
    let text = client.post_text(&format!("/v1/moves/{plan}/accept"), &json!({}))?;
    if globals.json {
        render::print_raw(&text)?;
    } else {
        render::print(&format!("plan {plan} is accepted\n"))?;
    }
    Ok(Answer::Yes)
}
