//! A program in replicas on a slice of the control plane's: marks are evidence against the machines
//! on which replicas erred, and replicas of a machine that is drained lead no more (docs/jobs.md).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::{env, fs};

use selvedge_driver::mpirun::{Mark, Marked, Places};
use selvedge_driver::task::NOTICE_VARIABLE;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Globals;
use crate::client::Client;
use crate::cmd::redundancy::names;
use crate::failure::{Failure, Outcome, Within as _};

/// What is read of a slice file.
#[derive(Debug, Deserialize)]
pub(crate) struct Slice {
    job: u32,
    tasks: Vec<Task>,
    /// The tasks on the machines of each cluster, the meta's first.
    #[serde(default)]
    clusters: Vec<[usize; 3]>,
}

#[derive(Debug, Deserialize)]
struct Task {
    /// Its number, which is its place in the list.
    task: Option<usize>,
    machine: String,
    address: Option<IpAddr>,
}

impl Task {
    /// Where its machine is, unless it is simulated: that is on this host.
    fn real_address(&self) -> Option<IpAddr> {
        self.address.filter(|it| !it.is_loopback())
    }

    /// What launchers call its machine: its address, or by its path where it is simulated.
    fn host(&self) -> String {
        self.real_address().map_or_else(|| names::plain(&self.machine), |it| it.to_string())
    }
}

impl Slice {
    /// What a file says, if it has clusters.
    pub(crate) fn read(path: &Path) -> Outcome<Option<Self>> {
        let within = || format!("cannot read the slice {}", path.display());
        let text = fs::read_to_string(path).within(within)?;
        let slice: Self = serde_json::from_str(&text).within(within)?;
        if let Some((what, hint)) = slice.wrong() {
            return Err(Failure::new(what).hint(hint).within(within()));
        }
        Ok((!slice.clusters.is_empty()).then_some(slice))
    }

    /// What launchers call the machines of all clusters, the meta's of each first.
    pub(crate) fn hosts(&self) -> Vec<[String; 3]> {
        self.clusters.iter().map(|it| it.map(|task| self.tasks[task].host())).collect()
    }

    /// What is wrong with it, and what would be right.
    fn wrong(&self) -> Option<(String, &'static str)> {
        let n = self.tasks.len();
        let is_misplaced = |(idx, it): &(usize, &Task)| it.task.is_some_and(|it| it != *idx);
        if let Some(it) = self.clusters.iter().flatten().find(|it| n <= **it) {
            let what = format!("a cluster has task {it}, and there are {n} tasks");
            return Some((what, "clusters name tasks by their numbers, from 0 on"));
        }
        if let Some((idx, it)) = self.tasks.iter().enumerate().find(is_misplaced) {
            let what = format!("tasks[{idx}] is task {}", it.task.unwrap_or_default());
            return Some((what, "list the tasks in their order"));
        }
        let mut hosts = BTreeMap::new();
        for task in self.clusters.iter().flatten() {
            let host = self.tasks[*task].host();
            let what = match hosts.insert(host.clone(), task) {
                None => continue,
                Some(first) if first == task => format!("task {task} stands twice in clusters"),
                Some(first) => format!("tasks {first} and {task} of clusters are both on {host}"),
            };
            return Some((what, "each machine is in one cluster, and once"));
        }
        None
    }

    /// The machines of all clusters, the meta's of each first.
    fn clusters(&self) -> Vec<[String; 3]> {
        let machine = |task: usize| self.tasks[task].machine.clone();
        self.clusters.iter().map(|it| it.map(machine)).collect()
    }

    /// The same with their addresses, and where it says that one is to go.
    fn places(&self) -> Places {
        let named = |it: &Task| Some((it.real_address()?, it.machine.clone()));
        let machines = self.tasks.iter().filter_map(named).collect();
        let notice = env::var_os(NOTICE_VARIABLE).map(Into::into);
        Places { clusters: self.clusters(), machines, notice }
    }

    /// What the control plane is told of a mark.
    fn form(&self, mark: &Mark, machine: &str) -> Value {
        let mut form = as_json(mark);
        form["machine"] = machine.into();
        form["job"] = self.job.into();
        form
    }
}

/// A mark in a summary.
pub(super) fn as_json(mark: &Mark) -> Value {
    let Mark { rank, set, call, byte } = mark;
    json!({"rank": rank, "set": set, "call": call, "byte": byte})
}

/// What tells the control plane of marks, if there is one to be told.
#[derive(Default)]
pub(super) struct Evidence {
    thread: Option<JoinHandle<()>>,
    marks: Option<Sender<Marked>>,
    places: Option<Places>,
}

impl Evidence {
    /// Begins to tell, if this program runs on a slice with clusters.
    pub(super) fn begin(globals: &Globals) -> Outcome<Self> {
        let Some(path) = env::var_os("SELVEDGE_SLICE_FILE") else { return Ok(Self::default()) };
        let Some(slice) = Slice::read(Path::new(&path))? else { return Ok(Self::default()) };
        let (sender, marks) = mpsc::channel();
        let places = slice.places();
        // A program that runs right is not kept waiting by a server, and does not end with it.
        let globals = globals.clone();
        let thread = thread::spawn(move || tell(&slice, &marks, &globals));
        Ok(Self { thread: Some(thread), marks: Some(sender), places: Some(places) })
    }

    /// Where marks are to go; whoever has it lets go of it before [`Evidence::finish`].
    pub(super) fn marks(&mut self) -> Option<Sender<Marked>> {
        self.marks.take()
    }

    /// Where the replicas run.
    pub(super) fn places(&mut self) -> Option<Places> {
        self.places.take()
    }

    /// Waits until all that was found has been told.
    pub(super) fn finish(self) {
        drop(self.marks);
        if let Some(thread) = self.thread {
            // What it could not do, it has said.
            let _ = thread.join();
        }
    }
}

fn tell(slice: &Slice, marks: &Receiver<Marked>, globals: &Globals) {
    for Marked { mark, machine } in marks {
        let Mark { rank, set, .. } = mark;
        let Some(machine) = machine else {
            anstream::eprintln!(
                "selvedge: set{set} of rank {rank} erred on a host that is no machine of the slice"
            );
            continue;
        };
        let form = slice.form(&mark, &machine);
        let told = Client::connect(globals).and_then(|it| it.post_text("/v1/mark", &form));
        if let Err(failure) = told {
            anstream::eprintln!(
                "selvedge: nobody could be told that set{set} of rank {rank} erred on {machine}"
            );
            failure.print();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(text: &str) -> Outcome<Option<Slice>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slice.json");
        fs::write(&path, text).unwrap();
        Slice::read(&path)
    }

    const TASKS: &str = r#""job": 7, "tasks": [{"machine": "a"}, {"machine": "b"},
        {"machine": "c"}, {"machine": "d"}, {"machine": "e"}, {"machine": "f"}]"#;

    #[test]
    fn a_mark_is_told_of_with_its_machine_and_machines_of_their_own_have_addresses() {
        let text = format!("{{{TASKS}, \"clusters\": [[1, 0, 2], [4, 3, 5]]}}");
        let read = slice(&text).unwrap().unwrap();
        assert_eq!(read.clusters(), [["b", "a", "c"], ["e", "d", "f"]]);
        let mark = Mark { rank: 1, set: 2, call: 9, byte: Some(64) };
        let wanted = json!({"machine": "f", "rank": 1, "set": 2, "call": 9, "byte": 64, "job": 7});
        assert_eq!(read.form(&mark, "f"), wanted);
        assert!(read.places().machines.is_empty(), "nothing is known of where they are");
        assert_eq!(read.hosts()[1], ["e", "d", "f"]);
        let at = |address: &str| {
            let with = format!("{{\"machine\": \"a\", \"address\": \"{address}\"}}");
            let text = text.replace("{\"machine\": \"a\"}", &with);
            slice(&text).unwrap().unwrap().places().machines
        };
        assert!(at("127.16.48.1").is_empty(), "it is simulated");
        assert_eq!(at("10.0.0.7"), [("10.0.0.7".parse().unwrap(), "a".to_owned())].into());
    }

    #[test]
    fn a_slice_without_clusters_has_no_evidence_and_a_wrong_one_is_named() {
        assert!(slice(&format!("{{{TASKS}}}")).unwrap().is_none());
        let wrong = slice(&format!("{{{TASKS}, \"clusters\": [[1, 0, 6]]}}"));
        assert!(wrong.is_err(), "task 6 of 6");
        for clusters in ["[[1, 0, 1]]", "[[0, 1, 2], [3, 4, 2]]"] {
            let twice = slice(&format!("{{{TASKS}, \"clusters\": {clusters}}}"));
            assert!(twice.is_err(), "a task is in {clusters} twice");
        }
        let alike = TASKS.replace("\"b\"", "\"a\"");
        assert!(slice(&format!("{{{alike}, \"clusters\": [[0, 1, 2]]}}")).is_err(), "one machine");
        let misplaced = TASKS.replace("{\"machine\": \"b\"}", "{\"task\": 0, \"machine\": \"b\"}");
        assert!(slice(&format!("{{{misplaced}, \"clusters\": [[0, 1, 2]]}}")).is_err());
        assert!(slice("{").is_err());
    }
}
