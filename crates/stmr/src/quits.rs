//! Ends of a program by a thread whose calls have no order among replicas.
//!
//! ```text
//! exit(5) in a worker, the first thread between two calls ──► 5, after such and such calls
//! most of those that live say the same of both ──► that thread has the order, and ends the process
//! most say the same code, and where the first thread is there is no telling ──► the program ends
//! ```
//! Of a fault, which ends a replica at once, the same is said: if most die of one at one place, the
//! program does.
//!
//! The thread waits with its word given, and the first thread waits for it at its next call.  So
//! one replica alone that errs is found as any that does not arrive.

/// What a thread says that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quit {
    /// What it ends with.
    pub code: i32,
    /// All that the ordered thread has called, if it is in no call.
    pub place: Option<u64>,
}

impl Quit {
    /// What it is written as.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let (code, place) = text.split_once(' ')?;
        let place = if place == "-" { None } else { Some(place.parse().ok()?) };
        Some(Self { code: code.parse().ok()?, place })
    }
}

/// As one line's words.
impl std::fmt::Display for Quit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Some(place) => write!(f, "{} {place}", self.code),
            None => write!(f, "{} -", self.code),
        }
    }
}

/// What follows from what the replicas of a process have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreed {
    /// Others may say something yet, or never.
    NotYet,
    /// Who has said this ends as its first thread would there.
    InOrder(Quit),
    /// The program ends with this code.
    AtOnce(i32),
    /// All have said something, and no two the same.
    Never,
}

/// What follows from what each of the replicas that live has said.
#[must_use]
pub fn agree(said: &[Option<Quit>]) -> Agreed {
    let quits = || said.iter().flatten();
    let is_most = |count: usize| said.len() < 2 * count;
    let alike = |it: &&Quit| is_most(quits().filter(|other| other == it).count());
    match quits().find(alike) {
        Some(Quit { place: None, code }) => return Agreed::AtOnce(*code),
        Some(quit) => return Agreed::InOrder(*quit),
        None if said.is_empty() || quits().count() < said.len() => return Agreed::NotYet,
        None => {}
    }
    let has_code = |it: &&Quit| is_most(quits().filter(|other| other.code == it.code).count());
    quits().find(has_code).map_or(Agreed::Never, |it| Agreed::AtOnce(it.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quit(code: i32, place: u64) -> Option<Quit> {
        Some(Quit { code, place: Some(place) })
    }

    #[test]
    fn most_of_those_that_live_end_a_program_where_they_are_alike() {
        let lost = Some(Quit { code: 5, place: None });
        let at = Quit { code: 5, place: Some(9) };
        let check = |said: &[Option<Quit>], wanted| assert_eq!(agree(said), wanted, "{said:?}");
        check(&[quit(5, 9), None, None], Agreed::NotYet);
        check(&[quit(5, 9), None], Agreed::NotYet);
        check(&[quit(5, 9)], Agreed::InOrder(at));
        check(&[], Agreed::NotYet);
        check(&[quit(5, 9), quit(5, 9), None], Agreed::InOrder(at));
        check(&[quit(7, 9), quit(5, 9), quit(5, 9)], Agreed::InOrder(at));
        // They are alike in the code alone: others may come that are alike in both.
        check(&[quit(5, 8), quit(5, 9), None], Agreed::NotYet);
        check(&[quit(5, 8), quit(5, 9), quit(6, 9)], Agreed::AtOnce(5));
        check(&[lost, lost, None], Agreed::AtOnce(5));
        check(&[lost, quit(5, 9), quit(5, 9)], Agreed::InOrder(at));
        check(&[quit(1, 9), quit(2, 9), quit(3, 9)], Agreed::Never);
        check(&[quit(1, 9), quit(2, 9)], Agreed::Never);
    }

    #[test]
    fn what_is_written_can_be_read() {
        for quit in [Quit { code: -1, place: Some(u64::MAX) }, Quit { code: 134, place: None }] {
            assert_eq!(Quit::from_text(&quit.to_string()), Some(quit));
        }
        for text in ["", "5", "x 9", "5 x", "5 -1", "5 9 9"] {
            assert_eq!(Quit::from_text(text), None, "{text:?}");
        }
    }
}
