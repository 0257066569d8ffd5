//! What replicas report to the launcher: a line of text each, written and read here alone.
//!
//! A line comes from a process that may err: what cannot be read is an error that names the line,
//! and nothing is put in its place.

use std::fmt;
use std::str::FromStr;

use crate::job::N_COUNTS;
use crate::quits::Quit;
use crate::verdict::{Double, REPLICAS_MAX, SetId};

/// The last signal that is not of real time.
const SIGNAL_MAX: u64 = 31;

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report<'t> {
    /// The program has called MPI_Init.
    Entering,
    /// It has come through it.
    Running,
    /// What the process has counted.
    Counts([u64; N_COUNTS]),
    /// Words for people; each replica of a cluster may say the same.
    Note(&'t str),
    /// A replica of this cluster differed.
    Mark(Differed),
    /// A replica of this cluster, which may be the one that says it, makes other calls.
    Strayed(Differed),
    /// A signal has come that the program handles; above its lowest 8 bits stands which of the
    /// program's timers has brought it.
    Signal(u64),
    /// The replica leads no more where another can, as it was asked to.
    Yielded,
    /// It listens at this port for siblings on other hosts.
    At(u16),
    /// Its link to this sibling has ended, and the sibling has not said why.
    Missed(SetId),
    /// This sibling, on another host, is to be ended.
    End(SetId),
    /// It asks what the kernel says of this sibling, on another host.
    Usage(SetId),
    /// The program has called MPI_Finalize.
    Ending,
    /// The process ends with this code, as its cluster has agreed.
    Ended(i32),
    /// The same without MPI_Finalize, which ends the program.
    Early(i32),
    /// The program ends with this code.
    Abort(i32),
    /// A thread that has no order among replicas would end the process.
    Quit(Quit),
    /// The replica dies of a fault.
    Fault(Quit),
    /// The program cannot begin, for this reason that all its processes have.
    Stop(&'t str),
    /// It does this, which is not served.
    Refuse(&'t str),
    /// The cluster cannot go on.
    Restart(Double),
    /// The process ends with this code and has not called MPI.
    Never(i32),
}

/// A replica that differed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differed {
    /// Which.
    pub set: SetId,
    /// The number of the compare.
    pub call: u64,
    /// The first byte that differs, where that is known.
    pub byte: Option<u64>,
}

/// A line that is no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// It begins with no word that a report begins with.
    #[error("`{line}`, which is no report")]
    Unknown {
        /// All of it.
        line: String,
    },
    /// What follows the word is not what does.
    #[error("`{line}`, which is no whole report")]
    Garbled {
        /// All of it.
        line: String,
    },
}

/// Why a cluster cannot go on, in a word.
const REASONS: [(Double, &str); 6] = [
    (Double::NoMajority, "majority"),
    (Double::NotDeterministic, "deterministic"),
    (Double::Lone, "lone"),
    (Double::Gone, "gone"),
    (Double::NoWholeSet, "set"),
    (Double::Early, "early"),
];

fn word_of(why: Double) -> &'static str {
    REASONS.iter().find(|it| it.0 == why).expect("each reason has its word").1
}

impl fmt::Display for Report<'_> {
    // Nothing is allocated here: a process that dies of a fault says so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entering => f.write_str("entering"),
            Self::Running => f.write_str("running"),
            Self::Counts(all) => {
                f.write_str("counts")?;
                all.iter().try_for_each(|it| write!(f, " {it}"))
            }
            Self::Note(text) => write!(f, "note {text}"),
            Self::Mark(it) => write!(f, "mark {it}"),
            Self::Strayed(it) => write!(f, "strayed {it}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Yielded => f.write_str("yielded"),
            Self::At(port) => write!(f, "at {port}"),
            Self::Missed(set) => write!(f, "missed {}", set.idx()),
            Self::End(set) => write!(f, "end {}", set.idx()),
            Self::Usage(set) => write!(f, "usage {}", set.idx()),
            Self::Ending => f.write_str("ending"),
            Self::Ended(code) => write!(f, "ended {code}"),
            Self::Early(code) => write!(f, "early {code}"),
            Self::Abort(code) => write!(f, "abort {code}"),
            Self::Quit(quit) => write!(f, "quit {quit}"),
            Self::Fault(quit) => write!(f, "fault {quit}"),
            Self::Stop(why) => write!(f, "stop {why}"),
            Self::Refuse(what) => write!(f, "refuse {what}"),
            Self::Restart(why) => write!(f, "restart {}", word_of(*why)),
            Self::Never(code) => write!(f, "never {code}"),
        }
    }
}

impl fmt::Display for Differed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.set.idx(), self.call)?;
        self.byte.map_or(Ok(()), |it| write!(f, " {it}"))
    }
}

impl Differed {
    fn from_text(text: &str, replicas: usize) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let (&[set, call] | &[set, call, _]) = &words[..] else { return None };
        let byte = words.get(2).map(|it| it.parse());
        let (set, call) = (set_of(set, replicas)?, call.parse().ok()?);
        Some(Self { set, call, byte: byte.transpose().ok()? })
    }
}

fn set_of(text: &str, replicas: usize) -> Option<SetId> {
    text.parse().ok().filter(|it| *it < replicas.min(REPLICAS_MAX)).map(SetId::new)
}

/// A signal that is not of real time: the library counts no others.
fn signal_of(text: &str) -> Option<u64> {
    number(text).filter(|it| (1..=SIGNAL_MAX).contains(&(it & 0xff)))
}

/// Numbers with one space between each two.
fn counts_of(text: &str) -> Option<[u64; N_COUNTS]> {
    let all: Result<Vec<u64>, _> = text.split(' ').map(FromStr::from_str).collect();
    all.ok()?.try_into().ok()
}

fn reason_of(text: &str) -> Option<Double> {
    REASONS.iter().find(|it| it.1 == text).map(|it| it.0)
}

/// A number, of which nothing else stands beside it.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

impl<'t> Report<'t> {
    /// Reads a line that a process of a cluster of so many `replicas` said.
    ///
    /// # Errors
    /// [`ReportError`] if it is none that a replica of such a cluster writes.
    pub fn from_text(line: &'t str, replicas: usize) -> Result<Self, ReportError> {
        let (word, rest) = line.split_once(' ').map_or((line, None), |it| (it.0, Some(it.1)));
        let text = rest.unwrap_or_default();
        let alone = |report: Self| rest.is_none().then_some(report);
        let found = match word {
            "entering" => alone(Self::Entering),
            "running" => alone(Self::Running),
            "counts" => counts_of(text).map(Self::Counts),
            "note" => Some(Self::Note(text)),
            "mark" => Differed::from_text(text, replicas).map(Self::Mark),
            "strayed" => Differed::from_text(text, replicas).map(Self::Strayed),
            "signal" => signal_of(text).map(Self::Signal),
            "yielded" => alone(Self::Yielded),
            "at" => number(text).map(Self::At),
            "missed" => set_of(text, replicas).map(Self::Missed),
            "end" => set_of(text, replicas).map(Self::End),
            "usage" => set_of(text, replicas).map(Self::Usage),
            "ending" => alone(Self::Ending),
            "ended" => number(text).map(Self::Ended),
            "early" => number(text).map(Self::Early),
            "abort" => number(text).map(Self::Abort),
            "quit" => Quit::from_text(text).map(Self::Quit),
            "fault" => Quit::from_text(text).map(Self::Fault),
            "stop" => Some(Self::Stop(text)),
            "refuse" => Some(Self::Refuse(text)),
            "restart" => reason_of(text).map(Self::Restart),
            "never" => number(text).map(Self::Never),
            _ => return Err(ReportError::Unknown { line: line.to_owned() }),
        };
        found.ok_or_else(|| ReportError::Garbled { line: line.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Report<'static>> {
        let set = SetId::new(2);
        let at = Differed { set, call: 21, byte: None };
        let quit = Quit { code: 134, place: None };
        let mut all = vec![
            Report::Entering,
            Report::Running,
            Report::Counts(std::array::from_fn(|it| it as u64)),
            Report::Note("rank 1: `ended 3` was said"),
            Report::Mark(at),
            Report::Mark(Differed { byte: Some(654), ..at }),
            Report::Strayed(at),
            Report::Signal(1),
            Report::Signal(31),
            Report::Signal(7 << 16 | 1 << 8 | 14),
            Report::Yielded,
            Report::At(u16::MAX),
            Report::Missed(set),
            Report::End(set),
            Report::Usage(set),
            Report::Ending,
            Report::Ended(-1),
            Report::Early(3),
            Report::Abort(137),
            Report::Quit(quit),
            Report::Fault(Quit { place: Some(7), ..quit }),
            Report::Stop("two MPIs"),
            Report::Refuse("MPI_Comm_spawn"),
            Report::Never(0),
        ];
        all.extend(REASONS.iter().map(|it| Report::Restart(it.0)));
        all
    }

    #[test]
    fn what_is_written_is_read() {
        for report in all() {
            assert_eq!(Report::from_text(&report.to_string(), 3), Ok(report));
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_no_report() {
        let check = |line: &str, wanted: &str| {
            let read = Report::from_text(line, 3).map_err(|it| it.to_string());
            assert_eq!(read, Err(format!("`{line}`, which is no {wanted}")));
        };
        for line in ["", "end3d 0", "Ended 0", " ended 0"] {
            check(line, "report");
        }
        let garbled = "ended|ended x|ended 0 0|ended 99999999999|running 1|mark 2|mark 3 1|\
                       mark 2 1 x|mark 2 1 2 3|at 70000|missed 3|counts 1 2|restart|\
                       restart majorty|quit 5|fault|never|signal|signal 0|signal 32|signal 90|signal -1";
        for line in garbled.split('|') {
            check(line, "whole report");
        }
    }

    #[test]
    fn a_set_that_the_cluster_has_not_is_no_report() {
        for line in ["mark 2 1", "strayed 2 1", "missed 2", "end 2", "usage 2"] {
            let garbled = Err(ReportError::Garbled { line: line.to_owned() });
            assert!(Report::from_text(line, 3).is_ok(), "{line}");
            assert_eq!(Report::from_text(line, 2), garbled);
        }
        assert!(Report::from_text("mark 3 1", 9).is_err(), "no cluster has so many");
    }
}
