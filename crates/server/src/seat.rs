//! Connections, by who is known to sit at their other end.
//!
//! ```text
//!  accepted ──► stranger ── a request with a token or cookie ──► one of somebody's
//!                  └─ the oldest of too many strangers goes
//! ```
//! So whoever has no token keeps nobody out who has one, and nobody takes all that there are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use tokio::sync::Notify;

use crate::api::error::ApiError;
use crate::limits;
use crate::users::Who;

/// All connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// Those on which nobody is known, the oldest first.
    strangers: VecDeque<(u64, Arc<Notify>)>,
    /// How many connections are each one's.
    known: BTreeMap<Option<String>, usize>,
}

/// One connection's, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    all: Seats,
    number: u64,
    /// Who is known to sit there.
    whose: Mutex<Option<Option<String>>>,
    /// Told when another needs the place.
    leave: Arc<Notify>,
}

impl Seats {
    /// A seat for one more connection; the stranger who has sat longest gets up if there are too
    /// many.
    pub(crate) fn take(&self) -> Arc<Seat> {
        let mut taken = self.taken();
        if limits::STRANGERS_MAX <= taken.strangers.len()
            && let Some((_, oldest)) = taken.strangers.pop_front()
        {
            oldest.notify_one();
        }
        let (number, leave) = (taken.next, Arc::new(Notify::new()));
        taken.next += 1;
        taken.strangers.push_back((number, Arc::clone(&leave)));
        Arc::new(Seat { all: self.clone(), number, whose: Mutex::new(None), leave })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn forget_stranger(&mut self, number: u64) {
        // They are in the order of their numbers.
        if let Ok(idx) = self.strangers.binary_search_by_key(&number, |it| it.0) {
            self.strangers.remove(idx);
        }
    }

    fn give_up(&mut self, whose: &Option<String>) {
        if let Some(n) = self.known.get_mut(whose) {
            *n -= 1;
            if *n == 0 {
                self.known.remove(whose);
            }
        }
    }
}

impl Seat {
    /// Comes back once the connection is to end for another's sake.
    pub(crate) async fn must_leave(&self) {
        self.leave.notified().await;
    }

    /// Takes note that `who` sits here.
    ///
    /// # Errors
    /// 429 where they have as many connections as one person may.
    pub(crate) fn is_of(&self, who: &Who) -> Result<(), ApiError> {
        let mut whose = self.whose.lock().unwrap_or_else(PoisonError::into_inner);
        if whose.as_ref() == Some(&who.name) {
            return Ok(());
        }
        let mut taken = self.all.taken();
        let n_own = taken.known.get(&who.name).copied().unwrap_or(0);
        if limits::CONNECTIONS_EACH_MAX <= n_own {
            let (name, max) = (who.called(), limits::CONNECTIONS_EACH_MAX);
            let text =
                format!("{name} has {max} connections open, and no more may be one person's");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, text).hint("close some"));
        }
        match whose.take() {
            None => taken.forget_stranger(self.number),
            Some(before) => taken.give_up(&before),
        }
        *taken.known.entry(who.name.clone()).or_default() += 1;
        *whose = Some(who.name.clone());
        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let whose = self.whose.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut taken = self.all.taken();
        match whose {
            None => taken.forget_stranger(self.number),
            Some(whose) => taken.give_up(&whose),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn named(name: &str) -> Who {
        Who { name: Some(name.to_owned()), ..Who::KEEPER }
    }

    #[test]
    fn the_stranger_who_sat_longest_gets_up_and_whoever_is_known_stays() {
        let seats = Seats::default();
        let known = seats.take();
        known.is_of(&Who::KEEPER).unwrap();
        let mut strangers: Vec<_> = (0..limits::STRANGERS_MAX).map(|_| seats.take()).collect();
        let leaves = |it: &Seat| it.must_leave().now_or_never().is_some();
        assert!(!leaves(&strangers[0]));
        let _another = seats.take();
        assert!(leaves(&strangers[0]) && !leaves(&strangers[1]) && !leaves(&known));
        // One that goes by itself makes room.
        strangers.remove(7);
        let _room = seats.take();
        assert!(!leaves(&strangers[1]));
        drop((strangers, known));
        assert!(seats.taken().known.is_empty());
    }

    #[test]
    fn nobody_takes_all_and_what_is_closed_can_be_taken_again() {
        let seats = Seats::default();
        let ada = named("ada");
        let mut hers: Vec<_> = (0..limits::CONNECTIONS_EACH_MAX)
            .map(|_| {
                let seat = seats.take();
                seat.is_of(&ada).unwrap();
                seat.is_of(&ada).unwrap();
                seat
            })
            .collect();
        let more = seats.take();
        let refused = more.is_of(&ada).unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        more.is_of(&named("bo")).unwrap();
        hers.pop();
        more.is_of(&ada).unwrap();
        drop((hers, more));
        let taken = seats.taken();
        assert!(taken.known.is_empty() && taken.strangers.is_empty());
    }
}
