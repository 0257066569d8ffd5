//! The program `selvedge`: one file per verb in [`cmd`], what people see in [`render`], and how
//! a running server is found and asked in `client`.
//!
//! Exit status: 0 done, 1 answered no, 2 error.  What was asked for goes to standard output,
//! everything else to standard error.
#![allow(clippy::print_stdout, reason = "printing is what a command line is for")]

mod failure;

mod client;

mod render;

mod cmd;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// The self-finished edge that keeps a fabric from unravelling: one control plane for
/// accelerator clusters.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, arg_required_else_help = true)]
pub(crate) struct Selvedge {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: cmd::Verb,
}

const EVERYWHERE: &str = "Everywhere";

/// What every verb takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Globals {
    /// The server to ask, such as http://127.0.0.1:7070; without it $SELVEDGE_SERVER, or the one
    /// that runs on this machine.
    #[arg(long, global = true, value_name = "URL", help_heading = EVERYWHERE)]
    server: Option<String>,
    /// The file with your token for a server of somebody else; without it $SELVEDGE_TOKEN_FILE.
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    token_file: Option<PathBuf>,
    /// Whom to believe about a server's certificate, as PEM; without it $SELVEDGE_CA, or whom this
    /// machine believes.
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    ca: Option<PathBuf>,
    /// Why you change something, for the audit trail.
    #[arg(long, global = true, value_name = "TEXT", help_heading = EVERYWHERE)]
    reason: Option<String>,
    /// Print JSON for programs.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
}

fn main() -> ExitCode {
    let Selvedge { globals, verb } = Selvedge::parse();
    match cmd::run(verb, &globals) {
        Ok(answer) => answer.into(),
        // Whoever read our output has seen enough, as `| head` does.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
