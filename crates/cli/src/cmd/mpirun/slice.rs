//! A program in replicas on a slice of the control plane's: marks are evidence against the machines
//! on which replicas erred, and replicas of a machine that is drained lead no more (docs/jobs.md).

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
    machine: String,
    address: Option<IpAddr>,
}

impl Task {
    /// Where its machine is, unless it is simulated: that is on this host.
    fn real_address(&self) -> Option<IpAddr> {
        self.address.filter(|it| !it.is_loopback())
    }
}

impl Slice {
    /// What a file says, if it has clusters.
    pub(crate) fn read(path: &Path) -> Outcome<Option<Self>> {
        let within = || format!("cannot read the slice {}", path.display());
        let text = fs::read_to_string(path).within(within)?;
        let slice: Self = serde_json::from_str(&text).within(within)?;
        if let Some(it) = slice.clusters.iter().flatten().find(|it| slice.tasks.len() <= **it) {
            let n = slice.tasks.len();
            let what = format!("a cluster has task {it}, and there are {n} tasks");
            return Err(Failure::new(what).within(within()));
        }
        Ok((!slice.clusters.is_empty()).then_some(slice))
    }

    /// What launchers call the machines of all clusters: their addresses, or their paths with `-`
    /// for each `/` and `.` where they are simulated and all on this host.
    pub(crate) fn hosts(&self) -> Vec<[String; 3]> {
        let plain = |it: &Task| it.machine.replace(['/', '.'], "-");
        let host = |task: usize| {
            let task = &self.tasks[task];
            task.real_address().map_or_else(|| plain(task), |it| it.to_string())
        };
        self.clusters.iter().map(|it| it.map(host)).collect()
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
        assert!(slice("{").is_err());
    }
}
