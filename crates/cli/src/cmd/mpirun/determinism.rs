//! Whether a program sends the same when it is run twice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, process};

use selvedge_driver::mpirun::{self, MpirunOptions};
use serde::Serialize;
use serde_json::json;

use crate::Globals;
use crate::failure::{Answer, Failure, Outcome, Within as _};

/// Runs the program twice without replicas and compares what its processes send: no if some of it
/// differs.
pub(super) fn check(options: &MpirunOptions, globals: &Globals) -> Outcome {
    let folder = Folder::make()?;
    let mut runs = Vec::new();
    for (idx, name) in ["first", "second"].into_iter().enumerate() {
        let sends = folder.0.join(name);
        fs::create_dir(&sends).within(|| format!("cannot make {}", sends.display()))?;
        let options = MpirunOptions {
            replicas: 1,
            restarts_max: 0,
            sends: Some(sends.clone()),
            is_silent: idx == 1,
            ..options.clone()
        };
        let summary =
            mpirun::run(&options).within(|| format!("cannot run the program a {name} time"))?;
        if summary.code != 0 {
            return Err(Failure::new(format!("the {name} run ended with {}", summary.result)));
        }
        let read = |rank| read(&sends.join(format!("sends.{rank}")));
        runs.push((0..options.ranks).map(read).collect::<Outcome<Vec<_>>>()?);
    }
    let compared: Vec<Compared> =
        runs[0].iter().zip(&runs[1]).map(|(first, second)| compare(first, second)).collect();
    let shared = |it: &Compared| it.first.as_ref().is_some_and(|it| !it.before.is_empty());
    let shared = compared.iter().position(shared);
    let processes: Vec<Row> = compared
        .iter()
        .enumerate()
        .map(|(rank, it)| {
            let told = it.told(shared);
            Row { rank, sends: it.sends, differ: it.differ, told }
        })
        .collect();
    let n_sends: usize = processes.iter().map(|it| it.sends).sum();
    let n_differ: usize = processes.iter().map(|it| it.differ).sum();
    if globals.json {
        // One line, behind what the program printed.
        let all = json!({ "sends": n_sends, "differ": n_differ, "processes": processes });
        println!("{all}");
    } else {
        for Row { rank, told, .. } in &processes {
            if let Some(told) = told {
                println!("rank {rank}: {told}");
            }
        }
        println!("{n_differ} of {n_sends} sends differ between two runs without replicas");
    }
    Ok(if n_differ == 0 { Answer::Yes } else { Answer::No })
}

/// What there is to say of a process.
#[derive(Serialize)]
struct Row {
    rank: usize,
    sends: usize,
    differ: usize,
    told: Option<String>,
}

/// One send as a process wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Send {
    call: String,
    length: u64,
    digest: String,
    /// What came in before it that two runs may differ in.
    sources: Vec<String>,
    /// Whom it answers at a window, or nobody.
    answers: String,
}

impl Send {
    fn is_same(&self, other: &Self) -> bool {
        (&self.call, self.length, &self.digest) == (&other.call, other.length, &other.digest)
    }
}

fn read(path: &Path) -> Outcome<Vec<Send>> {
    let text = fs::read_to_string(path).within(|| format!("cannot read {}", path.display()))?;
    let send = |line: &str| {
        let mut words = line.split('\t');
        let (call, length) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let (digest, sources) = (words.next()?.to_owned(), words.next().unwrap_or_default());
        let sources = sources.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        let answers = words.next().unwrap_or_default().to_owned();
        Some(Send { call, length, digest, sources, answers })
    };
    Ok(text.lines().filter_map(send).collect())
}

/// Two runs of a process.
#[derive(Debug, PartialEq, Eq)]
struct Compared {
    sends: usize,
    differ: usize,
    first: Option<Difference>,
}

/// The first send that differs.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    at: usize,
    what: String,
    /// What came in before it that replicas would share.
    before: BTreeSet<String>,
}

/// How the sends of two runs differ.
///
/// Accesses to a window are not answered at the same moment twice, and replicas get that from one
/// of them: answers are compared with those to the same member, other sends with each other.
fn compare(first: &[Send], second: &[Send]) -> Compared {
    let whom: BTreeSet<&str> = first.iter().chain(second).map(|it| &*it.answers).collect();
    let (mut sends, mut differ, mut earliest) = (0, 0, None::<(usize, String)>);
    for answers in whom {
        let [a, b] = [first, second].map(|sends| {
            let sends = sends.iter().enumerate();
            sends.filter(|it| it.1.answers == answers).collect::<Vec<_>>()
        });
        for idx in 0..a.len().max(b.len()) {
            sends += 1;
            let (at, what) = match (a.get(idx), b.get(idx)) {
                (Some((_, a)), Some((_, b))) if a.is_same(b) => continue,
                (Some((at, a)), Some((_, b))) => (*at, a.beside(b)),
                (Some((at, it)), None) => (*at, format!("{}, in one run only", it.named())),
                (None, Some((_, it))) => (first.len(), format!("{}, in one run only", it.named())),
                (None, None) => continue,
            };
            differ += 1;
            if earliest.as_ref().is_none_or(|it| at < it.0) {
                earliest = Some((at, what));
            }
        }
    }
    let first = earliest.map(|(at, what)| {
        let before = [first, second].into_iter().flat_map(|it| it.iter().take(at + 1));
        let before = before.flat_map(|it| &it.sources).cloned().collect();
        Difference { at, what, before }
    });
    Compared { sends, differ, first }
}

impl Send {
    fn named(&self) -> String {
        format!("{} of {} bytes", self.call, self.length)
    }

    /// What there is to say of two that differ.
    fn beside(&self, other: &Self) -> String {
        let (a, b) = (self.named(), other.named());
        if a == b { a } else { format!("{a} in one and {b} in the other") }
    }
}

impl Compared {
    /// What there is to say, if something differs; `shared` is a process that differs in what
    /// replicas would share, if there is one.
    fn told(&self, shared: Option<usize>) -> Option<String> {
        let Self { sends, differ, first } = self;
        let Difference { at, what, before } = first.as_ref()?;
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let why = match (&before[..], shared) {
            ([], Some(rank)) => format!(
                "nothing that replicas would share came before it, but it may have received what \
                 differs from rank {rank}, or from others that did"
            ),
            ([], None) => "nothing that replicas would share came before it: look for memory that \
                           was never written, addresses, other threads, files"
                .to_owned(),
            (all, _) => {
                format!(
                    "before it came {}, which all replicas get from one of them",
                    all.join(", ")
                )
            }
        };
        Some(format!("{differ} of {sends} sends differ; the first is send {at}, {what}; {why}"))
    }
}

/// A folder that is gone when the check is over.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Outcome<Self> {
        let path = mpirun::temp_dir()
            .within(|| "cannot make a folder".to_owned())?
            .join(format!("selvedge-sends-{}", process::id()));
        fs::create_dir(&path).within(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(call: &str, digest: &str, source: &str) -> Send {
        let sources = if source.is_empty() { vec![] } else { vec![source.to_owned()] };
        let answers = String::new();
        Send { call: call.to_owned(), length: 8, digest: digest.to_owned(), sources, answers }
    }

    #[test]
    fn what_is_sent_beside_messages_has_words_of_its_own() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "its end\t8\ta\tclocks\nMPI_Send\t8\tb\t\n").unwrap();
        assert_eq!(
            read(file.path()).unwrap(),
            [send("its end", "a", "clocks"), send("MPI_Send", "b", "")]
        );
    }

    #[test]
    fn answers_at_windows_are_compared_whenever_they_are_given() {
        let to = |answers: &str, digest| {
            let answers = answers.to_owned();
            Send { answers, ..send("an answer at a window", digest, "a message from anybody") }
        };
        let own = send("MPI_Bcast", "a", "");
        let first = [own.clone(), to("3.1", "b"), to("3.2", "c"), to("3.1", "d")];
        let other = [to("3.2", "c"), to("3.1", "b"), own.clone(), to("3.1", "d")];
        assert_eq!(compare(&first, &other), Compared { sends: 4, differ: 0, first: None });
        let other = [to("3.1", "b"), to("3.1", "e"), to("3.2", "c"), own.clone()];
        assert_eq!(
            compare(&first, &other).told(None).unwrap(),
            "1 of 4 sends differ; the first is send 3, an answer at a window of 8 bytes; before it \
             came a message from anybody, which all replicas get from one of them"
        );
        // Each has one that the other has not, though there are as many.
        let other = [own, to("3.1", "b"), to("3.2", "c"), to("3.2", "d")];
        let told = compare(&first, &other).told(None).unwrap();
        assert!(told.starts_with("2 of 5 sends differ; the first is send 3, an answer"), "{told}");
        assert!(told.contains(" of 8 bytes, in one run only; before"), "{told}");
    }

    #[test]
    fn the_first_send_that_differs_is_named_with_what_came_before_it() {
        let first = [send("MPI_Send", "a", "clocks"), send("MPI_Allreduce", "b", "")];
        assert_eq!(compare(&first, &first).told(None), None);
        let second = [first[0].clone(), send("MPI_Allreduce", "c", "")];
        assert_eq!(
            compare(&first, &second).told(None).unwrap(),
            "1 of 2 sends differ; the first is send 1, MPI_Allreduce of 8 bytes; before it came \
             clocks, which all replicas get from one of them"
        );
        for (a, b) in [(&first[..], &first[..1]), (&first[..1], &first[..])] {
            let told = compare(a, b).told(None).unwrap();
            assert!(told.starts_with("1 of 2 sends differ; the first is send 1, MPI_A"), "{told}");
        }
        // Who has it from another looks there first.
        let [a, b] = ["a", "b"].map(|digest| [send("MPI_Send", digest, "")]);
        let told = compare(&a, &b).told(Some(3)).unwrap();
        assert!(
            told.ends_with("may have received what differs from rank 3, or from others that did")
        );
        assert!(compare(&a, &b).told(None).unwrap().contains("look for memory"));
    }
}
