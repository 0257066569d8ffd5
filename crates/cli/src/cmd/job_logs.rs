//! `selvedge job logs`: what the tasks of a job wrote.

use std::io::Write as _;
use std::time::Duration;

use serde::Deserialize;

use crate::Globals;
use crate::client::Client;
use crate::cmd::watch::pause;
use crate::failure::{Answer, Outcome};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --task, lines of a job with several tasks begin with their task's \
                        number.  With -f it goes on until the job is over, over all its starts."
)]
pub(crate) struct Logs {
    /// The job's number, as `job list` shows it.
    #[arg(value_name = "JOB")]
    id: u32,
    /// Only this task, by rank, byte for byte as it wrote.
    #[arg(long, value_name = "I")]
    task: Option<usize>,
    /// Which start; the newest without.
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    attempt: Option<u32>,
    /// Go on as more is written, until the job is over.
    #[arg(long, short)]
    follow: bool,
}

#[derive(Debug, Deserialize)]
struct Job {
    state: String,
    attempt: u32,
    n_tasks: usize,
}

impl Job {
    fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "finished" | "failed" | "cancelled")
    }
}

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &Logs, client: &Client, globals: &Globals) -> Outcome {
    let mut client = client.clone();
    let path = format!("/v1/jobs/{}", args.id);
    let job: Job = client.get(&path)?;
    if job.n_tasks == 0 {
        // The server says what is wrong, and what would be right.
        client.get_text(&format!("{path}/logs"))?;
    }
    let tasks = match args.task {
        Some(task) => task..task + 1,
        None => 0..job.n_tasks,
    };
    let mut attempt = args.attempt.unwrap_or(job.attempt);
    let mut readers: Vec<Reader> =
        tasks.clone().map(|it| Reader::of(it, args.task.is_none())).collect();
    if tasks.len() == 1 {
        readers[0].prefixed = false;
    }
    loop {
        // Asked before the output is read, so that its last lines are not missed.
        let job: Job = client.patiently(globals, |it| it.get(&path))?;
        for reader in &mut readers {
            reader.read_on(&mut client, globals, &path, attempt)?;
        }
        if !args.follow || job.is_over() && job.attempt == attempt {
            break;
        }
        if attempt < job.attempt {
            readers.iter_mut().try_for_each(Reader::finish)?;
            if attempt != 0 {
                // A last line without its end stays as it is; what is said here begins a new one.
                let is_open = readers.iter_mut().any(|it| std::mem::take(&mut it.is_open));
                let break_ = if is_open { "\n" } else { "" };
                anstream::eprintln!("{break_}── start {} ──", job.attempt);
            }
            attempt = job.attempt;
            continue;
        }
        pause(ASK_EVERY);
    }
    readers.iter_mut().try_for_each(Reader::finish)?;
    Ok(Answer::Yes)
}

/// One task's output, as far as it has been read.
struct Reader {
    task: usize,
    /// Whether lines begin with the task's number.
    prefixed: bool,
    from: u64,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// Whether what was printed last is such a beginning.
    is_open: bool,
}

impl Reader {
    fn of(task: usize, prefixed: bool) -> Self {
        Self { task, prefixed, from: 0, partial: Vec::new(), is_open: false }
    }

    fn read_on(
        &mut self,
        client: &mut Client,
        globals: &Globals,
        path: &str,
        attempt: u32,
    ) -> Outcome<()> {
        loop {
            let (task, from) = (self.task, self.from);
            let path = format!("{path}/logs?task={task}&attempt={attempt}&from={from}");
            let bytes = client.patiently(globals, |it| it.get_bytes(&path))?;
            if bytes.is_empty() {
                return Ok(());
            }
            self.from += bytes.len() as u64;
            self.print(&bytes)?;
        }
    }

    fn print(&mut self, bytes: &[u8]) -> Outcome<()> {
        let mut out = std::io::stdout().lock();
        if !self.prefixed {
            out.write_all(bytes)?;
            self.is_open = bytes.last().is_some_and(|it| *it != b'\n');
            return Ok(out.flush()?);
        }
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        let rest = self.partial.split_off(whole);
        for line in self.partial.split_inclusive(|it| *it == b'\n') {
            write!(out, "[{}] ", self.task)?;
            out.write_all(line)?;
        }
        self.partial = rest;
        Ok(out.flush()?)
    }

    /// The end of this start: a last line without its end is printed too.
    fn finish(&mut self) -> Outcome<()> {
        self.from = 0;
        if self.partial.is_empty() {
            return Ok(());
        }
        self.print(b"\n")
    }
}
