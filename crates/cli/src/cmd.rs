//! The verbs, one file each.

mod completions;

mod journal;

mod man;

mod plant;

mod sim;

mod wire;

use crate::Globals;
use crate::failure::Outcome;

/// What can be asked of `selvedge`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// The journal of a data directory, without a server.
    Journal(journal::Journal),
    /// Generate, inspect and compare plant files, without a server.
    Plant(plant::PlantArgs),
    /// Run the control plane in virtual time, and sum up what came of it.
    Sim(sim::Sim),
    /// Plan the mirrors of a slice without a server.
    Wire(wire::Wire),
    /// Print a shell's completions.
    Completions(completions::Completions),
    /// Write the manual pages.
    Man(man::Man),
}

/// Does what was asked.
pub(crate) fn run(verb: Verb, globals: &Globals) -> Outcome {
    match verb {
        Verb::Journal(args) => journal::run(&args, globals),
        Verb::Plant(args) => plant::run(&args, globals),
        Verb::Sim(args) => sim::run(&args, globals),
        Verb::Wire(args) => wire::run(&args, globals),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    }
}
