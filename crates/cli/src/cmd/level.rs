//! `selvedge level show|set`: what is done without being asked.

use clap::{Subcommand, ValueEnum};
use selvedge_control::settings;
use serde::Deserialize;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::failure::{Answer, Outcome};
use crate::render;

#[derive(Debug, clap::Args)]
pub(crate) struct LevelArgs {
    #[command(subcommand)]
    verb: LevelVerb,
}

#[derive(Debug, Subcommand)]
enum LevelVerb {
    /// What may be done without being asked.
    Show,
    /// Change what may be done without being asked.
    Set(Set),
}

#[derive(Debug, clap::Args)]
struct Set {
    /// Each level includes those before it.
    level: Level,
}

/// What may be done without being asked when a part fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Open a case and say so.
    Observe,
    /// Place no new job on the part.
    Quarantine,
    /// Make running jobs leave it.
    Drain,
    /// Call a crew, test the part again and return it.
    Repair,
}

#[derive(Debug, Deserialize)]
struct Answered {
    level: Level,
}

pub(crate) fn run(args: &LevelArgs, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    let level = match &args.verb {
        LevelVerb::Show => client.get::<Answered>("/v1/status")?.level,
        LevelVerb::Set(args) => {
            let text = client.put_text("/v1/level", &json!({"level": args.level.word()}))?;
            client.read::<Answered>("/v1/level", &text)?.level
        }
    };
    if globals.json {
        render::print_json(&json!({"level": level.word()}))?;
    } else {
        render::print(&format!("{}\n", level.word()))?;
    }
    Ok(Answer::Yes)
}

impl Level {
    /// As the core says it.
    pub(crate) fn to_control(self) -> settings::Level {
        match self {
            Level::Observe => settings::Level::Observe,
            Level::Quarantine => settings::Level::Quarantine,
            Level::Drain => settings::Level::Drain,
            Level::Repair => settings::Level::Repair,
        }
    }

    /// What the core says.
    pub(crate) fn of_control(level: settings::Level) -> Self {
        match level {
            settings::Level::Observe => Level::Observe,
            settings::Level::Quarantine => Level::Quarantine,
            settings::Level::Drain => Level::Drain,
            settings::Level::Repair => Level::Repair,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Level::Observe => "observe",
            Level::Quarantine => "quarantine",
            Level::Drain => "drain",
            Level::Repair => "repair",
        }
    }
}
