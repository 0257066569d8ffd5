//! `selvedge pod show|drain|undrain`.

use std::fs;
use std::path::PathBuf;

use clap::Subcommand;
use serde::Deserialize;

use crate::Globals;
use crate::client::Client;
use crate::cmd::cube::{Cubes, cube_table};
use crate::cmd::drain::{self, Drain, DrainRow, Undrain};
use crate::cmd::watch::Watch;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::table::Table;
use crate::render::{self, number};

#[derive(Debug, clap::Args)]
pub(crate) struct Pod {
    #[command(subcommand)]
    verb: PodVerb,
}

#[derive(Debug, Subcommand)]
enum PodVerb {
    /// All pods, or one with its cubes.
    Show(Show),
    /// Take all cubes of a pod out of use; running jobs leave after a notice.
    Drain(Drain),
    /// Take back your own drains of a pod's cubes.
    Undrain(Undrain),
}

#[derive(Debug, clap::Args)]
struct Show {
    /// Such as pod0; all without.
    #[arg(value_name = "POD")]
    name: Option<String>,
    /// Draw who uses which cube into this file.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    watch: Watch,
}

#[derive(Debug, Deserialize)]
struct Pods {
    pods: Vec<PodRow>,
}

#[derive(Debug, Deserialize)]
struct PodRow {
    name: String,
    n_cubes: u32,
    n_switches: u32,
    n_chips: u32,
    chips_used: u32,
    chips_out: u32,
    cubes_free: u32,
}

#[derive(Debug, Deserialize)]
struct Drains {
    drains: Vec<DrainRow>,
}

pub(crate) fn run(args: &Pod, globals: &Globals) -> Outcome {
    let client = Client::connect(globals)?;
    match &args.verb {
        PodVerb::Show(args) => show(args, &client, globals),
        PodVerb::Drain(args) => {
            let cubes = cubes_of(args.target(), &client)?;
            let names: Vec<&str> = cubes.iter().map(String::as_str).collect();
            drain::drain_all("cube", &names, args.why(), &client, globals)
        }
        PodVerb::Undrain(args) => {
            let cubes = cubes_of(args.target(), &client)?;
            let names: Vec<&str> = cubes.iter().map(String::as_str).collect();
            drain::undrain_all("cube", &names, &client, globals)
        }
    }
}

fn show(args: &Show, client: &Client, globals: &Globals) -> Outcome {
    if let Some(file) = &args.svg {
        let picture = crate::cmd::pod_picture::draw(client, args.name.as_deref())?;
        fs::write(file, picture).within(|| format!("cannot write {}", file.display()))?;
        render::print(&format!("{}\n", file.display()))?;
        return Ok(Answer::Yes);
    }
    args.watch.show(|| {
        let text = client.get_text("/v1/pods")?;
        if globals.json {
            return Ok(render::line(text));
        }
        let Pods { mut pods } = client.read("/v1/pods", &text)?;
        if let Some(name) = &args.name {
            pods.retain(|it| it.name == *name);
            if pods.is_empty() {
                return Err(no_pod(name));
            }
        }
        let mut page = pod_table(&pods);
        if args.name.is_some() || pods.len() == 1 {
            let Cubes { mut cubes } = client.get("/v1/cubes")?;
            cubes.retain(|it| pods.iter().any(|pod| pod.name == it.pod));
            page.push_str(&format!("\n{}", cube_table(&cubes)));
        }
        let Drains { drains } = client.get("/v1/drains")?;
        for drain in drains {
            page.push_str(&format!("\n{}", drain.line()));
        }
        Ok(render::line(page))
    })?;
    Ok(Answer::Yes)
}

fn pod_table(pods: &[PodRow]) -> String {
    let mut table =
        Table::new(&["pod", ">cubes", ">free", ">switches", ">chips", ">used", ">out", ">in use"]);
    for pod in pods {
        let count = |n: u32| number::grouped(u64::from(n));
        table.row([
            (&pod.name).into(),
            pod.n_cubes.into(),
            pod.cubes_free.into(),
            pod.n_switches.into(),
            count(pod.n_chips).into(),
            count(pod.chips_used).into(),
            count(pod.chips_out).into(),
            number::share(f64::from(pod.chips_used) / f64::from(pod.n_chips)).into(),
        ]);
    }
    table.to_string()
}

fn cubes_of(pod: &str, client: &Client) -> Outcome<Vec<String>> {
    let Cubes { cubes } = client.get("/v1/cubes")?;
    let own = cubes.into_iter().filter(|it| it.pod == pod);
    let names: Vec<String> = own.map(|it| it.name).collect();
    if names.is_empty() { Err(no_pod(pod)) } else { Ok(names) }
}

pub(crate) fn no_pod(name: &str) -> Failure {
    Failure::new(format!("there is no pod {name:?}")).hint("`selvedge pod show` lists all")
}
