//! A program in replicas on a slice of the control plane's: marks are evidence against the machines
//! that the slice file gives its clusters, and replicas of a machine that is drained lead no more
//! (docs/jobs.md).

use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::{env, fs};

use selvedge_driver::mpirun::{Mark, Places};
use selvedge_driver::task::NOTICE_VARIABLE;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Globals;
use crate::client::Client;
use crate::failure::{Failure, Outcome, Within as _};

/// What is read of a slice file.
#[derive(Debug, Deserialize)]
struct Slice {
    job: u32,
    tasks: Vec<Task>,
    /// The tasks on the machines of each cluster, the meta's first.
    #[serde(default)]
    clusters: Vec<[usize; 3]>,
}

#[derive(Debug, Deserialize)]
struct Task {
    machine: String,
}

impl Slice {
    /// What a file says, if it has clusters.
    fn read(path: &Path) -> Outcome<Option<Self>> {
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

    /// The machine of a replica: rank h goes to cluster h mod c, and replica s to its s-th machine.
    fn machine(&self, mark: &Mark) -> Option<&str> {
        let cluster = self.clusters.get(mark.rank as usize % self.clusters.len())?;
        Some(&self.tasks[*cluster.get(usize::from(mark.set))?].machine)
    }

    /// The machines of all clusters, and where it says that one is to go.
    fn places(&self) -> Option<Places> {
        let notice = env::var_os(NOTICE_VARIABLE)?.into();
        let machine = |task: usize| self.tasks[task].machine.clone();
        let clusters = self.clusters.iter().map(|it| it.map(machine)).collect();
        Some(Places { clusters, notice })
    }

    /// What the control plane is told of a mark.
    fn form(&self, mark: &Mark) -> Option<Value> {
        let mut form = as_json(mark);
        form["machine"] = self.machine(mark)?.into();
        form["job"] = self.job.into();
        Some(form)
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
    marks: Option<Sender<Mark>>,
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
        Ok(Self { thread: Some(thread), marks: Some(sender), places })
    }

    /// Where marks are to go; whoever has it lets go of it before [`Evidence::finish`].
    pub(super) fn marks(&mut self) -> Option<Sender<Mark>> {
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

fn tell(slice: &Slice, marks: &Receiver<Mark>, globals: &Globals) {
    for mark in marks {
        let Some(form) = slice.form(&mark) else { continue };
        let told = Client::connect(globals).and_then(|it| it.post_text("/v1/mark", &form));
        if let Err(failure) = told {
            let Mark { rank, set, .. } = mark;
            anstream::eprintln!(
                "selvedge: nobody could be told that set{set} of rank {rank} erred"
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
    fn a_mark_is_told_of_the_machine_that_its_replica_has() {
        let text = format!("{{{TASKS}, \"clusters\": [[1, 0, 2], [4, 3, 5]]}}");
        let slice = slice(&text).unwrap().unwrap();
        let mark = |rank, set| Mark { rank, set, call: 9, byte: Some(64) };
        let machines = [(0, 0), (0, 1), (1, 2), (2, 2), (3, 0)]
            .map(|(rank, set)| slice.machine(&mark(rank, set)).unwrap().to_owned());
        assert_eq!(machines, ["b", "a", "f", "c", "e"]);
        let wanted = json!({"machine": "f", "rank": 1, "set": 2, "call": 9, "byte": 64, "job": 7});
        assert_eq!(slice.form(&mark(1, 2)), Some(wanted));
    }

    #[test]
    fn a_slice_without_clusters_has_no_evidence_and_a_wrong_one_is_named() {
        assert!(slice(&format!("{{{TASKS}}}")).unwrap().is_none());
        let wrong = slice(&format!("{{{TASKS}, \"clusters\": [[1, 0, 6]]}}"));
        assert!(wrong.is_err(), "task 6 of 6");
        assert!(slice("{").is_err());
    }
}
