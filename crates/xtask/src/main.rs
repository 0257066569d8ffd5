//! The command line of [`xtask`].

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{bench, ci, fuzz, package, prove, soak, tidy, tree};

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
        /// Runs the later steps too when one fails.
        #[arg(long)]
        keep_going: bool,
    },
    /// Holds the rules that the compiler does not.
    Tidy,
    /// Builds the Debian package, which takes cargo-deb (`cargo install cargo-deb`).
    Deb,
    /// Compares instructions, memory and counts of the scenarios with bench/baseline.json.
    Bench {
        /// Writes what was measured as the new baseline.
        #[arg(long)]
        update: bool,
        /// Prints times too.
        #[arg(long)]
        wall: bool,
        /// Only scenarios whose name holds this.
        only: Option<String>,
    },
    /// Runs fresh seeds of the judge, with a crash at every sync, until the time is up.
    Soak {
        /// For how long.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The first seed; without it the moment says.
        #[arg(long)]
        seed: Option<u64>,
        /// Builds defects in on purpose, all or this one, and shows that the judge finds each.
        #[arg(long, value_name = "DEFECT", num_args = 0..=1, default_missing_value = "all")]
        planted: Option<String>,
    },
    /// Mutates inputs by the code that they reach, until the time is up or something breaks.
    Fuzz {
        /// Which target of fuzz/fuzz_targets.
        target: String,
        /// For how long.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
    /// Shows something by doing it, on this machine.
    Prove {
        /// Which; without a name, all are listed.
        name: Option<String>,
        /// Of `kill`: how many processes are killed.
        #[arg(long, default_value_t = 200)]
        kills: u64,
        /// Of `stmr-kills`, `stmr-flips` and `stmr-cost`: how many runs.
        #[arg(long)]
        runs: Option<u64>,
        /// Of all that throw dice: which, and when.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Of `stmr-cost`: the file that what was measured is written to.
        #[arg(long)]
        json: Option<std::path::PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().verb {
        Verb::Test { install, keep_going } => {
            ci::test(&xtask::root(), ci::TestOptions { install, keep_going })
        }
        Verb::Tidy => run_tidy(),
        Verb::Deb => match package::build(&xtask::root()) {
            Ok(deb) => {
                println!("{}", deb.display());
                true
            }
            Err(e) => failed(&e),
        },
        Verb::Bench { update, wall, only } => {
            let options = bench::BenchOptions { update, wall, only };
            bench::run(&xtask::root(), &options).unwrap_or_else(|e| failed(&e))
        }
        Verb::Soak { minutes, seed, planted } => {
            let options = soak::SoakOptions { minutes, seed, planted };
            soak::run(&xtask::root(), &options).unwrap_or_else(|e| failed(&e))
        }
        Verb::Fuzz { target, minutes } => {
            let options = fuzz::FuzzOptions { target, minutes };
            fuzz::run(&xtask::root(), &options).unwrap_or_else(|e| failed(&e))
        }
        Verb::Prove { name: None, .. } => {
            prove::PROOFS.iter().for_each(|it| println!("{:16} {}", it.name, it.what));
            true
        }
        Verb::Prove { name: Some(name), kills, runs, seed, json } => {
            let options = prove::ProofOptions { kills, runs, seed, json };
            match prove::run(&xtask::root(), &name, &options) {
                Ok(()) => true,
                Err(e) => failed(&e),
            }
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_tidy() -> bool {
    match tree::Tree::load(&xtask::root()) {
        Ok(tree) => tidy::report(&tidy::findings(&tree)) == 0,
        Err(e) => failed(&e),
    }
}

fn failed(error: &dyn Error) -> bool {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(it) = cause {
        eprintln!("  because: {it}");
        cause = it.source();
    }
    false
}
