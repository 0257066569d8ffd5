//! `selvedge completions SHELL`.

use clap::CommandFactory as _;

use crate::failure::{Answer, Outcome};
use crate::{Selvedge, render};

#[derive(Debug, clap::Args)]
#[command(after_help = "For bash: selvedge completions bash > \
                        ~/.local/share/bash-completion/completions/selvedge")]
pub(crate) struct Completions {
    /// For which shell.
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Completions) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Selvedge::command(), "selvedge", &mut script);
    render::print(&String::from_utf8_lossy(&script))?;
    Ok(Answer::Yes)
}
