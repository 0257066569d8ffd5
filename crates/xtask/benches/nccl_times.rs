//! How long NCCL's decisions take here, over real topology files.
//!
//! `SELVEDGE_DATA=… cargo bench -p xtask --bench nccl_times [-- VERSION [TOPOLOGY|all]…]` prints
//! for each version the median and the worst of paths (built, searched twice, trimmed) and of the
//! search, over the files of `nccl/expected` on one and on two servers, and for a rack of 72 GPUs.
//! Each figure is the best of several runs, in time that the program was running.  It is only
//! printed: nothing is compared.
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use selvedge_family::host::nccl::profile::Profile;
use selvedge_family::host::nccl::rack::{RackShape, rack};
use selvedge_family::host::nccl::search;
use selvedge_family::host::nccl::settings::Settings;
use selvedge_family::host::nccl::view::{Ask, View};
use selvedge_family::host::nccl::xml::{Element, Strictness, read};

fn main() {
    let Some(data) = env::var_os("SELVEDGE_DATA") else {
        println!("not run: SELVEDGE_DATA is not set, so there are no files to take");
        return;
    };
    let folder = Path::new(&data).join("nccl");
    // `cargo bench` adds an argument of its own; a version or a topology's name chooses.
    let wanted: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    for profile in Profile::ALL {
        if wanted.is_empty() || wanted.contains(&profile.to_string()) {
            files(&folder, profile, &wanted);
            if profile.has_devices() && wanted.len() < 2 {
                rack_of_72(profile);
            }
        }
    }
}

fn files(folder: &Path, profile: Profile, wanted: &[String]) {
    let (mut paths, mut searches) = (Vec::new(), Vec::new());
    let recorded = folder.join("expected").join(profile.to_string());
    let all = wanted.iter().any(|it| it == "all");
    let named = |it: &String| all || wanted.len() < 2 || wanted.contains(it);
    let folder_of_names = if all { folder.join("topos") } else { recorded };
    for topology in topologies(&folder_of_names).into_iter().filter(named) {
        let root = topology_root(&folder.join("topos").join(format!("{topology}.xml")), profile);
        for nodes in [1, 2] {
            let name = format!("{topology}.{nodes}n");
            let (view, path_time) = best(9, || view(&root, profile, nodes));
            let (graphs, search_time) = best(3, || search::graphs(&view));
            paths.push((path_time, name.clone(), 0));
            searches.push((search_time, name, graphs.map_or(0, |it| it.calls)));
        }
    }
    print(profile, "paths", &mut paths);
    print(profile, "search", &mut searches);
}

/// The largest NVLink domain, made by our own generator.
fn rack_of_72(profile: Profile) {
    let root = rack(RackShape::NVL72);
    for nodes in [1, 2] {
        let (view, path_time) = best(9, || view(&root, profile, nodes));
        let (found, search_time) = best(3, || search::graphs(&view).expect("a rack has ports"));
        let (calls, rings) = (found.calls, found.found[0].channels.len());
        println!(
            "{profile} rack of {} GPUs, {nodes}: paths {path_time:?}, search {search_time:?}, \
             {calls} calls, {rings} rings",
            view.gpus().len()
        );
    }
}

fn topologies(recorded: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(recorded) else { return BTreeSet::new() };
    let names = entries.filter_map(|it| it.ok()?.file_name().into_string().ok());
    names.filter_map(|it| Some(it.split_once('.')?.0.to_owned())).collect()
}

fn topology_root(file: &PathBuf, profile: Profile) -> Element {
    let text = fs::read_to_string(file).expect("the file is part of the data");
    let strictness = Strictness::as_nccl(profile);
    read(&text, strictness).expect("NCCL takes the file").root
}

fn view(root: &Element, profile: Profile, nodes: u32) -> View {
    let settings = Settings::defaults(profile);
    let broken = BTreeSet::new();
    let ask = Ask { profile, nodes, rank: 0, settings, broken, shm_pairs: false };
    View::of(root, ask).expect("NCCL takes the server")
}

/// Time that this thread was running, which a busy machine does not lengthen by much.
fn running() -> Duration {
    let ran = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(ran).expect("no thread has run for less than nothing")
}

fn best<T>(times: usize, run: impl Fn() -> T) -> (T, Duration) {
    let timed = || {
        let start = running();
        let result = run();
        (result, running() - start)
    };
    let mut best = timed();
    for _ in 1..times {
        let next = timed();
        if next.1 < best.1 {
            best = next;
        }
    }
    best
}

fn print(profile: Profile, what: &str, times: &mut [(Duration, String, u64)]) {
    times.sort();
    let (Some(median), Some(worst)) = (times.get(times.len() / 2), times.last()) else { return };
    println!("{profile} {what}: median {:?}, worst {:?} ({})", median.0, worst.0, worst.1);
    for (time, name, calls) in times.iter().rev() {
        println!("  {time:>12.1?}  {name}  {calls}");
    }
}
