//! The command line of [`xtask`].

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{ci, tidy, tree};

/// Everything a developer or CI runs.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs all that CI runs, in CI's order.
    Test {
        /// First installs the packages and toolchain parts that are missing.
        #[arg(long)]
        install: bool,
    },
    /// Holds the rules that the compiler does not.
    Tidy,
}

fn main() -> ExitCode {
    let done = match Args::parse().verb {
        Verb::Test { install } => ci::test(&xtask::root(), ci::TestOptions { install }),
        Verb::Tidy => run_tidy(),
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_tidy() -> bool {
    match tree::Tree::load(&xtask::root()) {
        Ok(tree) => tidy::report(&tidy::findings(&tree)) == 0,
        Err(e) => {
            eprintln!("error: {e}");
            false
        }
    }
}
