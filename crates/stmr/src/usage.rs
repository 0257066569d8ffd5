//! What a process does, as the kernel says in `/proc/PID/stat`, and how far it has come, as it says
//! itself: a replica that its siblings wait for is judged by it, on whatever host it is.

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its processor time so far, in milliseconds.
    pub cpu_ms: u64,
    /// It has a processor or wants one.
    pub runs: bool,
    /// How many events it has behind it.
    pub events: u64,
}

impl Usage {
    /// Reads the text of `/proc/PID/stat` of a process that has so many `events` behind it.
    #[must_use]
    pub fn read(stat: &str, events: u64) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_ascii_whitespace();
        // A process that waits for a disk goes on by itself.
        let runs = ["R", "D"].contains(&words.next()?);
        let mut words = words.skip(10);
        let user: u64 = words.next()?.parse().ok()?;
        let system: u64 = words.next()?.parse().ok()?;
        // The kernel counts in hundredths of a second on Linux, whatever its own tick is.
        Some(Self { cpu_ms: (user + system) * 10, runs, events })
    }

    /// As one host tells it another.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{} {} {}", self.cpu_ms, u8::from(self.runs), self.events)
    }

    /// What [`Usage::to_text`] wrote.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let [cpu_ms, runs, events] = [words.next()?, words.next()?, words.next()?];
        let [cpu_ms, events] = [cpu_ms.parse().ok()?, events.parse().ok()?];
        Some(Self { cpu_ms, runs: runs == "1", events })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is_and_told_as_it_was_read() {
        let row = |state: &str| {
            format!("77 (a (b) c) {state} 1 77 77 0 -1 4194304 9 0 0 0 123 45 0 0 20 0 1 0 9 9")
        };
        for (state, runs) in [("R", true), ("D", true), ("S", false), ("T", false)] {
            let usage = Usage::read(&row(state), 7).unwrap();
            assert_eq!(usage, Usage { cpu_ms: 1680, runs, events: 7 });
            assert_eq!(Usage::from_text(&usage.to_text()), Some(usage));
        }
        assert_eq!(Usage::read("77 (a) R 1", 0), None);
        assert_eq!(Usage::from_text("x 1 2"), None);
    }
}
