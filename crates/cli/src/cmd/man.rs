//! `selvedge man DIR`.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::failure::{Answer, Outcome, Within as _};
use crate::{Selvedge, render};

#[derive(Debug, clap::Args)]
#[command(after_help = "Then: man -M DIR selvedge-job-submit")]
pub(crate) struct Man {
    /// The directory; pages go into its man1.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(args: &Man) -> Outcome {
    let dir = args.dir.join("man1");
    fs::create_dir_all(&dir).within(|| format!("cannot make {}", dir.display()))?;
    let command = Selvedge::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &dir)
        .within(|| format!("cannot write pages to {}", dir.display()))?;
    let n_pages = fs::read_dir(&dir).within(|| format!("cannot read {}", dir.display()))?.count();
    render::print(&format!("{n_pages} pages in {}\n", dir.display()))?;
    Ok(Answer::Yes)
}
