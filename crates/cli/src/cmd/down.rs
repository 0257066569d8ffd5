//! `selvedge down`: ends a server and all that it started.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use selvedge_driver::lock;
use selvedge_server::runtime;
use serde_json::json;

use crate::Globals;
use crate::client::{self, Client};
use crate::cmd::watch::pause;
use crate::failure::{Answer, Failure, Outcome};
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Down {
    /// The server that owns this data directory, or what one has left there.
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    data: Option<PathBuf>,
}

/// How long a server may take to end: it syncs its journal and stops what it started.
const END_MAX: Duration = Duration::from_secs(30);

#[allow(clippy::disallowed_methods, reason = "a real process ends in real time")]
pub(crate) fn run(args: &Down, globals: &Globals) -> Outcome {
    let url = client::server_url(globals).filter(|_| args.data.is_none());
    let server = match &args.data {
        None if client::token_file(globals).is_some() => return end_elsewhere(globals),
        None => client::find(url.as_deref())?,
        Some(data) => match runtime::find_by_data(data) {
            Some(server) => server,
            None => return end_left(data, globals),
        },
    };
    let client = Client::of(&server, url.as_deref(), globals)?;
    client.post_text("/v1/shutdown", &json!({}))?;
    let since = Instant::now();
    while server.lives() {
        if END_MAX < since.elapsed() {
            let what = format!("process {} has not ended after {END_MAX:?}", server.pid);
            return Err(Failure::new(what).hint(format!("`kill {}` ends it", server.pid)));
        }
        pause(Duration::from_millis(20));
    }
    if globals.json {
        render::print_json(&json!({"ended": client.url(), "data": server.data}))?;
    } else {
        render::print(&format!("the server at {} has ended\n", client.url()))?;
    }
    Ok(Answer::Yes)
}

/// Tells a server of somebody else to end; its process cannot be looked at from here.
fn end_elsewhere(globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    client.post_text("/v1/shutdown", &json!({}))?;
    if globals.json {
        render::print_json(&json!({"ending": client.url()}))?;
    } else {
        render::print(&format!("the server at {} is ending\n", client.url()))?;
    }
    Ok(Answer::Yes)
}

/// Ends what a server that was killed or upgraded has left running.
fn end_left(data: &Path, globals: &Globals) -> Outcome {
    // Whoever holds the directory still keeps a server from coming up meanwhile.
    let _still = lock::hold_still(data)?;
    let n_starts = selvedge_server::end_left_tasks(data);
    let plant = selvedge_server::plant::end_left(data).map(|it| it.pid);
    if plant.is_none() && n_starts == 0 {
        let why =
            format!("no server of yours runs with {}, and none has left anything", data.display());
        return Err(Failure::refusal(why));
    }
    if globals.json {
        let ended = json!({"ended": null, "data": data, "plant_pid": plant, "starts": n_starts});
        render::print_json(&ended)?;
    } else {
        let plant = plant.map(|pid| format!("its plant, process {pid}"));
        let tasks = (0 < n_starts).then(|| number::counted(n_starts as u64, "real job"));
        let ended: Vec<String> = plant.into_iter().chain(tasks).collect();
        let data = data.display();
        render::print(&format!("no server runs with {data}; ended: {}\n", ended.join(", ")))?;
    }
    Ok(Answer::Yes)
}
