//! `selvedge plant get|apply`: the plant of a running server.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::cmd::plant::sound_text;
use crate::failure::{Answer, Outcome};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
#[command(after_help = "Parts on which jobs run are not touched: drain them first.\n\
                        Exit status: 0 applied (or nothing to change), 1 refused because jobs run \
                        there or somebody else was faster, 2 error.")]
pub(crate) struct Apply {
    /// The plant file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Refuse if the server's plant is of another version than this; without, than the one that
    /// the shown changes were made from.
    #[arg(long, value_name = "N")]
    expected: Option<u64>,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Deserialize)]
struct Running {
    version: u64,
    plant: String,
}

#[derive(Debug, Deserialize)]
struct Applied {
    version: u64,
    changes: Vec<String>,
}

/// Prints the plant file that the server runs by.
pub(crate) fn get(globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let text = client.get_text("/v1/plant")?;
    if globals.json {
        render::print_raw(&text)?;
    } else {
        let Running { plant, .. } = client.read("/v1/plant", &text)?;
        render::print(&plant)?;
    }
    Ok(Answer::Yes)
}

pub(crate) fn apply(args: &Apply, globals: &Globals) -> Outcome {
    let plant = sound_text(&args.file)?;
    let client = Client::connect(globals)?;
    let expected = match args.expected {
        Some(expected) => expected,
        None => client.get::<Running>("/v1/plant")?.version,
    };
    let body = json!({"plant": plant, "expected": expected});
    let dry_path = "/v1/plant?dry_run=true";
    let dry_text = client.put_text(dry_path, &body)?;
    let dry: Applied = client.read(dry_path, &dry_text)?;
    let has_changes = !dry.changes.is_empty();
    if !globals.json {
        for change in &dry.changes {
            render::print(&format!("{change}\n"))?;
        }
    }
    if args.dry_run || !has_changes {
        if globals.json {
            render::print_raw(&dry_text)?;
        } else if !has_changes {
            render::print(&format!("nothing to change in version {expected}\n"))?;
        }
        return Ok(Answer::Yes);
    }
    let text = client.put_text("/v1/plant", &body)?;
    if globals.json {
        render::print_raw(&text)?;
    } else {
        let applied: Applied = client.read("/v1/plant", &text)?;
        let n = number::counted(applied.changes.len() as u64, "change");
        render::print(&format!("version {} with {n} is applied\n", applied.version))?;
    }
    Ok(Answer::Yes)
}
