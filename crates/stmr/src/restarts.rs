//! Whether a program starts again when a start of it is over (seed 003, definition 8).
//!
//! ```text
//! its own end, a refusal ──────────────────────────────► Stop
//! not started, where hosts are avoided ────────────────► Back (to all hosts; no restart)
//! two errors in one cluster ──┬ first three contents ──► Again, compared in full
//!                             ├ three contents again ──► Stop: it is not deterministic
//!                             ├ two contents ──────────► Again, compared in full
//!                             ├ deaths alone ──────────► Again
//!                             └ nothing left for it ───► Stop
//! ```
//!
//! Two faults at once leave three different contents, as a program does that is not deterministic:
//! which of both it is shows when it starts again.

use crate::verdict::Double;

/// What a program may do.
#[derive(Clone, Copy, Debug)]
pub struct RestartOptions {
    /// How often it starts again at the most.
    pub restarts_max: u32,
    /// Of each process; one that is alone has nobody to differ from, and dies as it would plain.
    pub replicas: usize,
    /// It is started here, and not by somebody else.
    pub is_started_here: bool,
}

/// How a start of the program was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// By its own end, with this code.
    Ended(i32),
    /// The same where it has not called MPI.
    WithoutMpi(i32),
    /// It does something that is not served, or cannot begin.
    Refused,
    /// The launcher has not started it.
    NotStarted {
        /// It was to be started on other hosts than the first time.
        is_elsewhere: bool,
    },
    /// A cluster had two errors.
    Double {
        /// Which.
        why: Double,
        /// It has read input that cannot be given to it again.
        is_input_lost: bool,
    },
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start it again.
    Again {
        /// Compare contents in full, each before it leaves: it is to be found where they differ.
        compares_full: bool,
    },
    /// Start it where it started first.
    Back,
    /// It is over.
    Stop(Stop),
}

/// As what a program is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its own end, with this code.
    Ended(i32),
    /// The same where it has not called MPI.
    WithoutMpi(i32),
    /// It was refused.
    Refused,
    /// It was not started.
    NotStarted,
    /// Two errors in one cluster, and it does not start again.
    Failed {
        /// Why not.
        hindrance: Hindrance,
        /// So many starts, which are all and more than one, came to deaths alone.
        crashes: Option<u32>,
    },
}

/// Why a program does not start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Its input cannot be given to it again.
    InputLost,
    /// It is not deterministic.
    DiffersAgain,
    /// It has one replica of each process.
    NoReplicas,
    /// Somebody else starts it.
    NotStartedHere,
    /// It has started again as often as it may.
    Enough,
}

/// All starts of a program.
#[derive(Clone, Debug)]
pub struct Restarts {
    options: RestartOptions,
    n: u32,
    /// Three contents were different in one of them.
    had_three: bool,
    /// Replicas differed in one of them, and no majority was right.
    is_undecided: bool,
    /// So many were over by deaths alone.
    n_crashes: u32,
}

impl Restarts {
    /// Before the first start.
    #[must_use]
    pub fn new(options: RestartOptions) -> Self {
        Self { options, n: 0, had_three: false, is_undecided: false, n_crashes: 0 }
    }

    /// How often it has started again.
    #[must_use]
    pub fn n(&self) -> u32 {
        self.n
    }

    /// What follows when a start is over.
    pub fn after(&mut self, over: Over) -> Next {
        let (why, is_input_lost) = match over {
            Over::Ended(code) => return Next::Stop(Stop::Ended(code)),
            Over::WithoutMpi(code) => return Next::Stop(Stop::WithoutMpi(code)),
            Over::Refused => return Next::Stop(Stop::Refused),
            Over::NotStarted { is_elsewhere: true } => return Next::Back,
            Over::NotStarted { is_elsewhere: false } => return Next::Stop(Stop::NotStarted),
            Over::Double { why, is_input_lost } => (why, is_input_lost),
        };
        let is_three = why == Double::NotDeterministic;
        let differs_again = is_three && self.had_three;
        self.had_three |= is_three;
        self.is_undecided |= !why.is_of_deaths();
        self.n_crashes += u32::from(why.is_of_deaths());
        let hindrances = [
            (is_input_lost, Hindrance::InputLost),
            (differs_again, Hindrance::DiffersAgain),
            (self.options.replicas == 1, Hindrance::NoReplicas),
            (!self.options.is_started_here, Hindrance::NotStartedHere),
            (self.options.restarts_max <= self.n, Hindrance::Enough),
        ];
        if let Some((_, hindrance)) = hindrances.into_iter().find(|it| it.0) {
            let n_crashes = self.n_crashes;
            let is_always = 1 < n_crashes && n_crashes == self.n + 1;
            let crashes = is_always.then_some(n_crashes);
            return Next::Stop(Stop::Failed { hindrance, crashes });
        }
        self.n += 1;
        Next::Again { compares_full: self.is_undecided }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: RestartOptions =
        RestartOptions { restarts_max: 3, replicas: 3, is_started_here: true };
    const AGAIN: Next = Next::Again { compares_full: false };
    const IN_FULL: Next = Next::Again { compares_full: true };

    fn double(why: Double) -> Over {
        Over::Double { why, is_input_lost: false }
    }

    fn failed(hindrance: Hindrance, crashes: Option<u32>) -> Next {
        Next::Stop(Stop::Failed { hindrance, crashes })
    }

    fn check(options: RestartOptions, rows: &[(Over, Next)]) {
        let mut restarts = Restarts::new(options);
        for (idx, (over, wanted)) in rows.iter().enumerate() {
            let before = restarts.n();
            assert_eq!(restarts.after(*over), *wanted, "{rows:?}, start {idx}");
            let is_again = matches!(wanted, Next::Again { .. });
            assert_eq!(restarts.n(), before + u32::from(is_again), "{rows:?}, start {idx}");
        }
    }

    #[test]
    fn what_ends_by_itself_or_is_refused_is_over() {
        check(OPTIONS, &[(Over::Ended(3), Next::Stop(Stop::Ended(3)))]);
        check(OPTIONS, &[(Over::WithoutMpi(0), Next::Stop(Stop::WithoutMpi(0)))]);
        check(OPTIONS, &[(Over::Refused, Next::Stop(Stop::Refused))]);
        let here = Over::NotStarted { is_elsewhere: false };
        check(OPTIONS, &[(here, Next::Stop(Stop::NotStarted))]);
        let elsewhere = Over::NotStarted { is_elsewhere: true };
        let lone = double(Double::Lone);
        check(OPTIONS, &[(lone, AGAIN), (elsewhere, Next::Back), (lone, AGAIN)]);
    }

    #[test]
    fn deaths_start_it_again_as_often_as_it_may_and_are_told_if_they_were_all() {
        for why in [Double::Lone, Double::Gone, Double::NoWholeSet, Double::Early] {
            let (it, enough) = (double(why), Hindrance::Enough);
            let last = failed(enough, Some(4));
            check(OPTIONS, &[(it, AGAIN), (it, AGAIN), (it, AGAIN), (it, last)]);
            let never = RestartOptions { restarts_max: 0, ..OPTIONS };
            check(never, &[(it, failed(enough, None))]);
            let once = RestartOptions { restarts_max: 1, ..OPTIONS };
            check(once, &[(double(Double::NoMajority), IN_FULL), (it, failed(enough, None))]);
            check(once, &[(it, AGAIN), (double(Double::NoMajority), failed(enough, None))]);
        }
    }

    #[test]
    fn what_differs_is_compared_in_full_from_then_on() {
        let (two, lone) = (double(Double::NoMajority), double(Double::Lone));
        let last = failed(Hindrance::Enough, None);
        check(OPTIONS, &[(two, IN_FULL), (two, IN_FULL), (two, IN_FULL), (two, last)]);
        check(OPTIONS, &[(lone, AGAIN), (two, IN_FULL), (lone, IN_FULL)]);
    }

    #[test]
    fn three_contents_twice_are_a_program_that_is_not_deterministic() {
        let (three, two) = (double(Double::NotDeterministic), double(Double::NoMajority));
        let last = failed(Hindrance::DiffersAgain, None);
        check(OPTIONS, &[(three, IN_FULL), (three, last)]);
        check(OPTIONS, &[(three, IN_FULL), (two, IN_FULL), (three, last)]);
    }

    #[test]
    fn nothing_starts_again_without_replicas_a_launcher_or_its_input() {
        for why in [Double::NoMajority, Double::NotDeterministic, Double::Lone] {
            let check_once = |options, over, hindrance| {
                check(options, &[(over, failed(hindrance, None))]);
            };
            let one = RestartOptions { replicas: 1, ..OPTIONS };
            check_once(one, double(why), Hindrance::NoReplicas);
            let none = RestartOptions { is_started_here: false, ..OPTIONS };
            check_once(none, double(why), Hindrance::NotStartedHere);
            let lost = Over::Double { why, is_input_lost: true };
            check_once(OPTIONS, lost, Hindrance::InputLost);
        }
        let lost = Over::Double { why: Double::Lone, is_input_lost: true };
        let last = failed(Hindrance::InputLost, Some(2));
        check(OPTIONS, &[(double(Double::Lone), AGAIN), (lost, last)]);
    }
}
