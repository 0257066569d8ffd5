//! The line of those who wait, as a pass goes along it.
//!
//! While a pass goes on room only shrinks.  So whoever asks for the same as somebody who did not
//! fit does not fit either, and is passed over unread: an array of a hundred thousand jobs that
//! cannot start hides nobody who stands behind it, and nobody passes a job that asks for no more.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;

use selvedge_model::job::Need;
use selvedge_model::unit::Span;

use crate::schedule::Waiting;

/// One who waits, of whom no more is looked up than is asked.
pub trait Row<'a> {
    /// What its family made of what it asked for; those who asked for the same share it.
    fn need(&self) -> &'a Need;

    /// All that a pass may have to know.
    fn read(&self) -> Waiting<'a>;
}

impl<'a> Row<'a> for &Waiting<'a> {
    fn need(&self) -> &'a Need {
        self.need
    }

    fn read(&self) -> Waiting<'a> {
        **self
    }
}

/// What has not fitted in this pass: of each need the shortest limit for which it did not.
#[derive(Debug, Default)]
pub(crate) struct Misfits<'a> {
    /// By address, as equal needs are one.
    shortest: BTreeMap<*const Need, Span>,
    needs: PhantomData<&'a Need>,
}

impl<'a> Misfits<'a> {
    /// There is no room for `need`, however short it were.
    pub(crate) fn add(&mut self, need: &'a Need) {
        self.shortest.insert(need, Span::ZERO);
    }

    /// What room there is for `job` is kept for the head from whoever may run as long.
    pub(crate) fn add_from(&mut self, job: &Waiting<'a>) {
        self.shortest.insert(job.need, longest(job));
    }

    /// Whether there is no room for `need`, however short.
    pub(crate) fn has(&self, need: &'a Need) -> bool {
        self.shortest.get(&ptr::from_ref(need)) == Some(&Span::ZERO)
    }

    /// Whether one that did not fit needs the same as `job` for no longer.
    pub(crate) fn outlast(&self, job: &Waiting<'a>) -> bool {
        self.shortest.get(&ptr::from_ref(job.need)).is_some_and(|it| *it <= longest(job))
    }
}

/// How long a job may run.
fn longest(job: &Waiting<'_>) -> Span {
    job.limit.unwrap_or(Span::MAX)
}

#[cfg(test)]
mod tests {
    use selvedge_model::id::JobId;
    use selvedge_model::job::Demand;

    use super::*;

    #[test]
    fn whoever_needs_the_same_for_as_long_or_longer_does_not_fit_either() {
        let (demand, cube, pair) =
            (Demand::Parts(1), Need::Whole { n_parts: 1 }, Need::Whole { n_parts: 2 });
        let job = |need, hours: Option<u64>| {
            Waiting::new(JobId::new(0), &demand, need, hours.map(Span::hours))
        };
        let mut misfits = Misfits::default();
        misfits.add_from(&job(&cube, Some(4)));
        assert!(misfits.outlast(&job(&cube, Some(4))) && misfits.outlast(&job(&cube, None)));
        assert!(!misfits.outlast(&job(&cube, Some(3))) && !misfits.has(&cube));
        assert!(!misfits.outlast(&job(&pair, None)));
        misfits.add(&cube);
        assert!(misfits.has(&cube) && misfits.outlast(&job(&cube, Some(0))));
    }
}
