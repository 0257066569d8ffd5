//! `selvedge ring`: a ring through every chip of some groups of a hyper-square machine, or the
//! rings of jobs on hosts.

mod hosts;

use std::path::PathBuf;

use selvedge_family::hypersquare::group::Group;
use selvedge_family::hypersquare::machine::Machine;
use selvedge_model::fabric::Fabric;
use selvedge_model::spec::Plant;
use serde::Serialize;

use crate::Globals;
use crate::cmd::plant;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render::{self, number, style};

#[derive(Debug, clap::Args)]
#[command(after_help = "Any set of groups that sound cables join has such a ring; \
                        docs/hypersquare.md says why.\n\
                        Of jobs on hosts with topology files: NCCL's channels over all hosts, the \
                        ports by which they leave and enter, and what each link, from GPU to GPU, \
                        allows; of several jobs what they leave each other (docs/topo.md).\n\
                        Exit status: 0 here it is, 1 there is none, which is proved, or none was \
                        found, 2 the groups or hosts cannot have one.")]
pub(crate) struct Ring {
    /// The plant file.
    #[arg(long, value_name = "FILE", required_unless_present = "job")]
    plant: Option<PathBuf>,
    /// The groups, each as row,column; every board that is there without it.
    #[arg(long, value_name = "R,C", num_args = 1..)]
    groups: Vec<Group>,
    /// Which pod of the plant [default: its only hyper-square machine].
    #[arg(long, value_name = "N")]
    pod: Option<usize>,
    /// The hosts of a job in the order of their ranks, such as host[0-3],host7:0-3; once for each
    /// job.
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["groups", "pod"])]
    hosts: Vec<String>,
    /// A job that a running server has placed on hosts; once for each job.
    #[arg(long, value_name = "ID", conflicts_with_all = ["plant", "groups", "pod", "hosts"])]
    job: Vec<u64>,
    #[command(flatten)]
    setting: hosts::Setting,
}

/// The fixed form of the answer.
#[derive(Debug, Serialize)]
struct Found {
    pod: String,
    n_groups: usize,
    /// Each as `row,column,letter`, in the order of the ring; none where there is no ring.
    nodes: Vec<String>,
    /// Whether there is a ring; not known where the search was too long.
    exists: Option<bool>,
    /// Why no ring is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub(crate) fn run(args: &Ring, globals: &Globals) -> Outcome {
    render::told_as_json(answer(args, globals), globals)
}

fn answer(args: &Ring, globals: &Globals) -> Outcome {
    let Some(file) = &args.plant else {
        return hosts::run_placed(&args.job, &args.setting, globals);
    };
    let (plant, fabric) = plant::load(file)?;
    if !args.hosts.is_empty() {
        return hosts::run((&plant, &fabric), &args.hosts, &args.setting, globals);
    }
    let pod = args.pod.map_or_else(|| only_machine(&plant), Ok)?;
    let machine = machine(&plant, &fabric, pod)?;
    let groups = if args.groups.is_empty() { machine.groups() } else { args.groups.clone() };
    let [rows, columns] = machine.spec.groups;
    let (pod_name, n_groups) = (format!("pod{pod}"), groups.len());
    let found = match machine.ring(&groups) {
        Ok(ring) => {
            let nodes = ring.iter().map(ToString::to_string).collect();
            Found { pod: pod_name, n_groups, nodes, exists: Some(true), why: None }
        }
        Err(error) => {
            let Some(is_proved) = error.is_proof() else {
                let no =
                    || format!("no ring found in pod{pod}, a machine of {rows}x{columns} groups");
                return Err(error).within(no);
            };
            let (exists, why) = (is_proved.then_some(false), Some(error.to_string()));
            Found { pod: pod_name, n_groups, nodes: Vec::new(), exists, why }
        }
    };
    if globals.json {
        render::print_json(&found)?;
    } else {
        render::print(&page(&found))?;
    }
    Ok(if found.exists == Some(true) { Answer::Yes } else { Answer::No })
}

/// The hyper-square machine that pod number `pod` is.
pub(super) fn machine<'f>(plant: &Plant, fabric: &'f Fabric, pod: usize) -> Outcome<Machine<'f>> {
    Machine::of_pod(plant, fabric, pod).ok_or_else(|| match plant.pods.get(pod) {
        Some(it) => Failure::new(format!("pod{pod} is of family {}", it.family.word()))
            .hint("this is of hyper-square machines, family hypersquare"),
        None => Failure::new(format!("the plant has no pod{pod}"))
            .hint(format!("it has {}", number::counted(plant.pods.len() as u64, "pod"))),
    })
}

/// The number of the plant's only hyper-square machine.
pub(super) fn only_machine(plant: &Plant) -> Outcome<usize> {
    let is_machine = |it: &&(usize, &str)| it.1 == "hypersquare";
    let pods: Vec<_> = plant.pods.iter().map(|it| it.family.word()).enumerate().collect();
    match pods.iter().filter(is_machine).collect::<Vec<_>>()[..] {
        [(pod, _)] => Ok(*pod),
        [] => Err(Failure::new("the plant has no hyper-square machine")
            .hint("selvedge plant new hypersquare --groups RxC writes one")),
        [..] => Err(Failure::new("the plant has several hyper-square machines")
            .hint("say which by --pod N, counted from 0")),
    }
}

/// Groups of four chips to a line.
fn page(found: &Found) -> String {
    let title = style::TITLE;
    let n_chips = number::counted(found.nodes.len() as u64, "chip");
    let n_groups = number::counted(found.n_groups as u64, "group");
    if let Some(why) = &found.why {
        return format!("{title}{}{title:#}: no ring through {n_groups}: {why}\n", found.pod);
    }
    let mut page = format!("{title}{}{title:#}: a ring of {n_chips} in {n_groups}\n\n", found.pod);
    for nodes in found.nodes.chunks(8) {
        page.push_str(&format!("{}\n", nodes.join("  ")));
    }
    page
}
