//! What became of a program.

use selvedge_stmr::job::N_COUNTS;
use selvedge_stmr::restarts::{Hindrance, Stop};

use super::input::Input;
use super::{Attempt, Mark};

/// What became of a program.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Processes as the program saw them.
    pub ranks: usize,
    /// Replicas of each.
    pub replicas: usize,
    /// Sends and contributions to collectives.
    pub sends: u64,
    /// Compares, which are more: the end of the program is one.
    pub compares: u64,
    /// Bytes compared.
    pub bytes: u64,
    /// Replicas found to differ.
    pub marks: u64,
    /// Replicas that lead and did not before.
    pub promotions: u64,
    /// What replicas told each other.
    pub link_messages: u64,
    /// The bytes that took.
    pub link_bytes: u64,
    /// The most that any replica kept for its siblings at a time, in bytes.
    pub log_bytes_max: u64,
    /// Processes that ended before the program did.
    pub deaths: u64,
    /// How long the program ran, all starts of it, in milliseconds.
    pub ms: u64,
    /// How long processes were in compares, all together, in milliseconds.
    pub compare_ms: u64,
    /// How often the program was started again.
    pub restarts: u32,
    /// `ok`, or why not.
    pub result: String,
    /// The program's exit code.
    pub code: i32,
    /// Who differed, and where.
    pub marked: Vec<Mark>,
    /// What was noticed on the way, for people.
    pub notes: Vec<String>,
    /// Whether the code is the program's own, which has come to its own end.
    pub has_own_end: bool,
}

impl Summary {
    /// The program is over; `words` say why, if it has not come to its own end.
    pub(super) fn stopped(mut self, stop: Stop, words: String, input: &Input) -> Self {
        let (hindrance, crashes) = match stop {
            Stop::Ended(code) => return self.ended(code),
            Stop::WithoutMpi(code) => return self.ended_without_mpi(code),
            Stop::Refused | Stop::NotStarted => (None, None),
            Stop::Failed { hindrance, crashes } => (Some(hindrance), crashes),
        };
        self.code = 1;
        self.result = words;
        if hindrance == Some(Hindrance::InputLost)
            && let Some(lost) = input.is_lost()
        {
            self.result += &format!("; the program cannot start again: {lost}");
        }
        if let Some(n) = crashes {
            let often = format!("; so it was in all {n} starts, as of a program that crashes");
            self.result += &(often + " by itself");
        }
        self
    }

    /// The program has come to its end, with this code.
    fn ended(mut self, code: i32) -> Self {
        self.has_own_end = true;
        // The system has eight bits of an exit code.
        self.code = code & 0xff;
        let code = self.code;
        self.result = if code == 0 { "ok".into() } else { format!("exit code {code}") };
        self
    }

    /// The same where it has not called MPI.
    fn ended_without_mpi(self, code: i32) -> Self {
        let result = format!("the program ended with {code} and never called MPI_Init");
        Self { result, ..self.ended(code) }
    }
}

impl Attempt<'_> {
    /// Adds what this start of the program came to.  What a process kept counts, however it ended.
    pub(super) fn sum_up(&self, summary: &mut Summary) {
        for (rank, cluster) in self.processes.iter().enumerate() {
            let counts = |set: usize| {
                let kept = self.folder.counts(rank * cluster.len() + set);
                let told = cluster[set].counts;
                std::array::from_fn(|it| kept[it].max(told[it]))
            };
            let all: Vec<[u64; N_COUNTS]> = (0..cluster.len()).map(counts).collect();
            let most = |idx: usize| all.iter().map(|it| it[idx]).max().unwrap_or(0);
            let sum = |idx: usize| all.iter().map(|it| it[idx]).sum::<u64>();
            summary.sends += most(0);
            summary.compares += most(1);
            summary.bytes += most(2);
            summary.marks += most(3) + cluster.iter().map(|it| it.misprints).sum::<u64>();
            summary.promotions += most(4);
            summary.link_messages += sum(5);
            summary.link_bytes += sum(6);
            summary.log_bytes_max = summary.log_bytes_max.max(most(7));
            summary.compare_ms += sum(8);
        }
        summary.ms += self.began.elapsed().as_millis() as u64;
        summary.deaths += self.deaths;
        summary.marked.extend(&self.marked);
        summary.notes.extend(self.notes.iter().cloned());
    }
}
