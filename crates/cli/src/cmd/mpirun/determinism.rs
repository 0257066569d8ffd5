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
    let processes: Vec<Row> = runs[0]
        .iter()
        .zip(&runs[1])
        .enumerate()
        .map(|(rank, (first, second))| {
            let (differ, told) = compare(first, second);
            Row { rank, sends: first.len(), differ, told }
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

/// How many sends of a process differ, and what there is to say of that.
///
/// When somebody who comes to a window is answered, time tells, and replicas get that from one of
/// them: its answers are compared with its answers, and what else is sent with what else is.
fn compare(first: &[Send], second: &[Send]) -> (usize, Option<String>) {
    let all = first.iter().chain(second);
    let whom: BTreeSet<&str> = all.map(|it| it.answers.as_str()).collect();
    let (mut n, mut missing, mut differing) = (0, 0, Vec::new());
    for answers in whom {
        let [a, b] = [first, second].map(|sends| {
            let sends = sends.iter().enumerate();
            sends.filter(|it| it.1.answers == answers).collect::<Vec<_>>()
        });
        missing += a.len().abs_diff(b.len());
        let pairs = a.iter().zip(&b).filter(|(a, b)| !a.1.is_same(b.1));
        differing.extend(pairs.clone().next().map(|(a, b)| (a.0, a.1, b.1)));
        n += pairs.count();
    }
    n += missing;
    let Some(&(at, send, other)) = differing.iter().min_by_key(|it| it.0) else {
        let told = (0 < missing)
            .then(|| format!("{} sends in one run and {} in the other", first.len(), second.len()));
        return (n, told);
    };
    let before = first[..=at].iter().flat_map(|it| &it.sources);
    let before: BTreeSet<&str> = before.map(String::as_str).collect();
    let why = if before.is_empty() {
        "nothing that replicas would share came before it: look for memory that was never written, \
         addresses, other threads, files"
            .to_owned()
    } else {
        let before: Vec<&str> = before.into_iter().collect();
        format!("before it came {}, which all replicas get from one of them", before.join(", "))
    };
    let what = if send.call == other.call && send.length == other.length {
        format!("{} of {} bytes", send.call, send.length)
    } else {
        let (a, b) = (&send.call, &other.call);
        format!("{a} of {} bytes in one and {b} of {} in the other", send.length, other.length)
    };
    let told =
        format!("{n} of {} sends differ; the first is send {at}, {what}; {why}", first.len());
    (n, Some(told))
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
        assert_eq!(compare(&first, &other), (0, None));
        let other = [to("3.1", "b"), to("3.1", "e"), to("3.2", "c"), own];
        let (n, told) = compare(&first, &other);
        assert_eq!(n, 1);
        let told = told.unwrap();
        assert!(told.contains("the first is send 3, an answer at a window of 8 bytes"), "{told}");
        assert!(told.contains("before it came a message from anybody"), "{told}");
    }

    #[test]
    fn the_first_send_that_differs_is_named_with_what_came_before_it() {
        let first = [send("MPI_Send", "a", "clocks"), send("MPI_Allreduce", "b", "")];
        assert_eq!(compare(&first, &first), (0, None));
        let second = [first[0].clone(), send("MPI_Allreduce", "c", "")];
        let (n, told) = compare(&first, &second);
        assert_eq!(n, 1);
        assert_eq!(
            told.unwrap(),
            "1 of 2 sends differ; the first is send 1, MPI_Allreduce of 8 bytes; before it came \
             clocks, which all replicas get from one of them"
        );
        let (n, told) = compare(&first, &first[..1]);
        assert_eq!((n, told.unwrap().as_str()), (1, "2 sends in one run and 1 in the other"));
    }
}
