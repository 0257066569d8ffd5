//! `selvedge backup` and `selvedge restore`: a copy of a running server, and a server from a copy.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_driver::files;
use selvedge_driver::plant::PLANT_DIR;
use selvedge_driver::store;
use selvedge_server::plant::{MANIFEST_FILE, Manifest};
use selvedge_server::users::USERS_FILE;
use serde_json::json;

use crate::Globals;
use crate::client::Client;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The journal and the simulated plant are copied as they stand at one moment, \
                        while the server goes on, with the people who have tokens.\nWhat real tasks \
                        have written (DATA/tasks) is not in it, nor is the directory's own token: a \
                        restored one has a new one."
)]
pub(crate) struct Backup {
    /// A new directory on the server's machine.
    #[arg(value_name = "DIR")]
    to: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// A directory that `selvedge backup` made.
    #[arg(value_name = "DIR")]
    from: PathBuf,
    /// The new data directory, for `selvedge up --data`.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

pub(crate) fn back_up(args: &Backup, globals: &Globals) -> Outcome {
    let to = std::path::absolute(&args.to).within(|| "cannot tell where that is")?;
    let client = Client::connect(globals)?;
    client.post_text("/v1/backup", &json!({ "to": to }))?;
    let manifest = read(&to)?;
    tell(&to, &manifest, globals)
}

pub(crate) fn restore(args: &Restore, globals: &Globals) -> Outcome {
    let manifest = read(&args.from)?;
    let report = store::verify(&args.from)?;
    let chain = report.chain.to_string();
    if !report.is_sound() || report.last_good != manifest.rows || chain != manifest.chain {
        let what = format!("{} is not as it was made", args.from.display());
        return Err(Failure::new(what).hint("`selvedge journal verify` says what is wrong with it"));
    }
    files::own_new_dir(&args.data)?;
    copy(&args.from, &args.data, store::JOURNAL_FILE)?;
    if manifest.plant {
        let (from, to) = (args.from.join(PLANT_DIR), args.data.join(PLANT_DIR));
        files::own_new_dir(&to)?;
        for name in ["state", "log.1"] {
            copy(&from, &to, name)?;
        }
    }
    if manifest.users {
        copy(&args.from, &args.data, USERS_FILE)?;
    }
    files::sync_dir(&args.data).within(|| format!("cannot sync {}", args.data.display()))?;
    tell(&args.data, &manifest, globals)
}

fn copy(from: &Path, to: &Path, name: &str) -> Outcome<()> {
    let (from, to) = (from.join(name), to.join(name));
    let bytes = fs::read(&from).within(|| format!("cannot read {}", from.display()))?;
    let written = files::write_atomically(&to, &bytes, files::FILE_MODE);
    written.within(|| format!("cannot write {}", to.display()))
}

fn read(dir: &Path) -> Outcome<Manifest> {
    let path = dir.join(MANIFEST_FILE);
    let bytes = fs::read(&path)
        .map_err(|error| Failure::from(error).hint("a backup without it was cut off; take another"))
        .within(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).within(|| format!("{} does not read", path.display()))?;
    match manifest.format {
        1 => Ok(manifest),
        format => Err(Failure::new(format!("{} has format {format}", path.display()))
            .hint(format!("this program reads format 1; use selvedge {}", manifest.program))),
    }
}

fn tell(dir: &Path, manifest: &Manifest, globals: &Globals) -> Outcome {
    if globals.json {
        render::print_json(&json!({"dir": dir, "rows": manifest.rows, "plant": manifest.plant,
                "users": manifest.users}))?;
    } else {
        let plant = if manifest.plant { " and the simulated plant" } else { "" };
        let rows = number::counted(manifest.rows, "input");
        render::print(&format!("{rows}{plant} are in {}\n", dir.display()))?;
    }
    Ok(Answer::Yes)
}
