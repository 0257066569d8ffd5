//! How a start of the program comes to its end: what is still on its way is heard, what still runs
//! is ended, and all that was let out is written.

use std::time::{Duration, Instant};

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;

use super::{Attempt, Ended, Event, LINE_WAIT, program, signals};

/// How long ended processes have to close their output, and mpirun to end.
const END_WAIT: Duration = Duration::from_secs(3);

/// How long mpirun has where processes were on other hosts: of those that end there Open MPI 4's
/// daemons name one, and it waits for the others for ever.
const FAR_WAIT: Duration = Duration::from_secs(1);

impl Attempt<'_> {
    /// Hears what was still on its way, and ends what still runs.
    pub(super) fn finish(&mut self, mut ended: Ended) -> Ended {
        if matches!(ended, Ended::Again(..)) {
            ended = self.hear_of_the_dead().unwrap_or(ended);
        }
        let is_its_own = matches!(ended, Ended::With(_) | Ended::WithoutMpi(_));
        if !is_its_own || self.processes.iter().flatten().any(|it| !it.ended) {
            self.cut_outputs();
            self.kill_all();
        }
        let mut deadline = Instant::now() + END_WAIT;
        let has_far = !self.hosts.is_empty();
        let far_deadline = Instant::now() + FAR_WAIT;
        let (mut undecided, mut unwanted) = (None, None);
        for rank in 0..self.processes.len() {
            for set in SetId::all(self.options.replicas) {
                undecided = self.end_outputs(Rank(rank as u32), set, true).or(undecided);
            }
        }
        let mut running = self.launchers.len() - self.launchers_ended;
        while Instant::now() < deadline {
            let open = self.outputs.iter().flatten().any(|it| !it.output.has_ended());
            let is_far_over = || has_far && far_deadline < Instant::now();
            if !open && (running == 0 || is_far_over()) {
                break;
            }
            if self.out.is_full() {
                // Who reads our output may take as long as he likes.
                deadline = Instant::now() + END_WAIT;
            }
            match self.next_event(LINE_WAIT) {
                Ok(Event::Printed(_, rank, set, _) | Event::Closed(_, rank, set))
                    if self.process(rank, set).is_parted => {}
                Ok(Event::Printed(channel, rank, set, bytes)) => {
                    self.printing(channel, rank).output.print(set, &bytes);
                    undecided = self.print(channel, rank).or(undecided);
                }
                Ok(Event::Closed(channel, rank, set)) => {
                    self.process(rank, set).closed[channel as usize] = true;
                    undecided = self.end_outputs(rank, set, true).or(undecided);
                }
                Ok(Event::LauncherEnded(_)) => running -= 1,
                Ok(Event::Signalled(signal)) if signals::is_impatient(signal) => {
                    if self.out.is_full() {
                        unwanted = Some(signal);
                        break;
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
        self.print_rest(!matches!(ended, Ended::Again(..)));
        if 0 < running {
            self.launchers.iter_mut().for_each(program::end);
        }
        self.kill_all();
        let unwanted = unwanted.or_else(|| self.write_out());
        self.out.room.open();
        if let (Ended::Again(..), Some(signal)) = (&ended, unwanted) {
            return Ended::With(128 + signal);
        }
        match (undecided, &ended) {
            // The last output decides as the last send does.
            (Some(it), Ended::With(0)) => it,
            _ => ended,
        }
    }

    /// Those that go on are about to be killed, each in the middle of what it prints.
    fn cut_outputs(&mut self) {
        for (cluster, printings) in self.processes.iter().zip(&mut self.outputs) {
            for (set, process) in SetId::all(cluster.len()).zip(cluster) {
                if !process.ended {
                    printings.iter_mut().for_each(|it| it.output.cut(set));
                }
            }
        }
    }

    /// A program starts again for deaths of which the launcher itself may hear a moment later than
    /// those that have outlived them; a signal may end it instead.
    fn hear_of_the_dead(&mut self) -> Option<Ended> {
        let deadline = Instant::now() + LINE_WAIT;
        while let Ok(event) = self.next_event(deadline.saturating_duration_since(Instant::now())) {
            if let Ok(Some(ended @ Ended::With(_))) = self.take(event) {
                return Some(ended);
            }
        }
        None
    }

    fn kill_all(&self) {
        for (rank, cluster) in self.processes.iter().enumerate() {
            for (set, process) in SetId::all(cluster.len()).zip(cluster) {
                if process.pid != 0 && process.link.is_some() && !process.ended {
                    self.end_process(Rank(rank as u32), set);
                }
            }
        }
    }
}
