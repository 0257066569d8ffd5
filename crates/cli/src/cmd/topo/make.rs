//! `selvedge topo read` and `topo vm`: topology files made from machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_driver::probe;
use selvedge_family::host::lint::Severity;
use selvedge_family::host::lspci;
use selvedge_family::host::machine::topology;
use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::xml::write;
use selvedge_family::host::sysfs::{self, GpuFacts};
use selvedge_family::host::vm::{self, Match, Options};
use serde::Serialize;

use crate::Globals;
use crate::cmd::topo::{name, read, root_of};
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::render;

#[derive(Debug, clap::Args)]
#[command(after_help = "What had to be assumed is told on standard error.\n\
                        To record a machine: (cd /sys && tar cf - bus/pci/devices devices \
                        class/infiniband module/nvidia_peermem), and /proc/cpuinfo beside it.")]
pub(crate) struct Read {
    /// A recorded tree that stands for /sys; its cpuinfo, if there is one, is that of the machine.
    #[arg(long, value_name = "DIR", conflicts_with = "hwloc")]
    sysfs: Option<PathBuf>,
    /// A file that `lstopo FILE.xml` wrote.
    #[arg(long, value_name = "FILE")]
    hwloc: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Devices are matched by --map, else by a NIC's GUID or MAC, else by device \
                        number and order, which is told as a finding.\n\
                        Exit status: 0 made, 1 made with an error among the findings, 2 error."
)]
pub(crate) struct Vm {
    /// The server's topology file, dumped on bare metal.
    #[arg(value_name = "XML")]
    bare: PathBuf,
    /// What `lspci -Dnnvv` printed in the guest, as root.
    #[arg(long, value_name = "FILE")]
    lspci: PathBuf,
    /// The server's and the guest's bus id of one device; may be given several times.
    #[arg(long, value_name = "SERVER=GUEST", value_parser = parse_map)]
    map: Vec<(String, String)>,
    /// Keep what the dump says of GPUs and ports, for `topo show`; NCCL fills that in itself.
    #[arg(long)]
    filled: bool,
}

#[derive(Debug, Serialize)]
struct Made {
    xml: String,
    assumed: Vec<String>,
}

#[derive(Debug, Serialize)]
struct MadeVm {
    xml: String,
    matches: Vec<Match>,
    findings: Vec<String>,
}

fn parse_map(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(a, b)| a.contains(':') && b.contains(':'));
    let (a, b) = pair.ok_or("write it as SERVER=GUEST, such as 0000:1a:00.0=0000:00:05.0")?;
    Ok((a.to_owned(), b.to_owned()))
}

pub(crate) fn run_read(args: &Read, globals: &Globals) -> Outcome {
    let machine = match (&args.hwloc, &args.sysfs) {
        (Some(file), _) => selvedge_family::host::hwloc::machine(&read(file)?, &name(file))
            .within(|| "this hwloc file cannot be used")?,
        (None, Some(folder)) => {
            let cpuinfo = fs::read_to_string(folder.join("cpuinfo")).unwrap_or_default();
            machine(folder, &cpuinfo, &[])?
        }
        (None, None) => {
            let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let gpus = probe::nvml().unwrap_or_default().into_iter();
            let fact = |it: probe::Gpu| GpuFacts {
                bus: it.bus,
                dev: it.index,
                sm: it.sm,
                links: it.links,
            };
            machine(Path::new("/sys"), &cpuinfo, &gpus.map(fact).collect::<Vec<_>>())?
        }
    };
    let xml = write(&topology(&machine));
    if globals.json {
        render::print_json(&Made { xml, assumed: machine.assumed })?;
    } else {
        for it in &machine.assumed {
            anstream::eprintln!("note: {it}");
        }
        render::print(&xml)?;
    }
    Ok(Answer::Yes)
}

fn machine(
    root: &Path,
    cpuinfo: &str,
    gpus: &[GpuFacts],
) -> Outcome<selvedge_family::host::machine::Machine> {
    let files = probe::sysfs(root).within(|| "the machine cannot be read")?;
    sysfs::machine(&files, cpuinfo, gpus).within(|| format!("in {}", root.display()))
}

pub(crate) fn run_vm(args: &Vm, globals: &Globals) -> Outcome {
    let bare = root_of(&read(&args.bare)?, &name(&args.bare), Profile::V2_30_7)?;
    let shown = name(&args.lspci);
    let guest = lspci::read(&read(&args.lspci)?).within(|| format!("{shown} cannot be used"))?;
    let map: BTreeMap<String, String> = args.map.iter().cloned().collect();
    if map.len() < args.map.len() {
        return Err(Failure::new("--map names one device of the server twice"));
    }
    let built = vm::build(&bare, &guest, &Options { map, filled: args.filled })
        .within(|| "no file can be made")?;
    let findings: Vec<String> =
        built.findings.iter().map(|(severity, what)| format!("{severity}: {what}")).collect();
    let is_wrong = built.findings.iter().any(|it| it.0 == Severity::Error);
    let xml = write(&built.root);
    if globals.json {
        render::print_json(&MadeVm { xml, matches: built.matches, findings })?;
    } else {
        for it in &findings {
            anstream::eprintln!("{it}");
        }
        render::print(&xml)?;
    }
    Ok(if is_wrong { Answer::No } else { Answer::Yes })
}
