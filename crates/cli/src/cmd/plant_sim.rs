//! `selvedge plant-sim`: the process of a simulated plant, started by `selvedge up`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use selvedge_driver::plant::PLANT_DIR;
use selvedge_driver::process;
use selvedge_server::plant::serve_plant;

use crate::cmd::watch::pause;
use crate::failure::{Answer, Outcome, Within as _};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "`selvedge up` starts it and finds it again; it outlives a server that is killed \
                        or upgraded, and keeps its state in DIR/plant.\n`selvedge down --data DIR` \
                        ends one that was left."
)]
pub(crate) struct PlantSim {
    /// The data directory of the server.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// How often it is looked at whether the plant's folder is still there.
const FOLDER_LOOKED_AT_EVERY: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &PlantSim) -> Outcome {
    // A person who tries it from a shell leads a group already, and may well end it by Ctrl-C.
    let _ = process::own_session();
    let dir = args.data.join(PLANT_DIR);
    end_with(&dir);
    serve_plant(&dir).within(|| format!("no simulated plant in {}", dir.display()))?;
    Ok(Answer::Yes)
}

/// Ends this process when its folder has been removed: nobody could find it any more.
fn end_with(dir: &Path) {
    let dir = dir.to_owned();
    std::thread::spawn(move || {
        loop {
            pause(FOLDER_LOOKED_AT_EVERY);
            if !dir.exists() {
                std::process::exit(0);
            }
        }
    });
}
