//! What has happened, for whoever watches: a ring of the newest events and a live channel.
//!
//! Events are numbered by the notes that the core has told since its first input.  A snapshot holds
//! the ring, and a replay tells the same notes, so after a restart there are the same events under
//! the same numbers.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use selvedge_control::note::Note;
use selvedge_model::fabric::Fabric;
use selvedge_model::unit::Moment;

use crate::limits;
use crate::words;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Its place among all notes, from 1 on.
    pub(crate) number: u64,
    /// When.
    pub(crate) at: Moment,
    /// What.
    pub(crate) note: Note,
    /// The same in one line, with the paths that things have at that moment.
    pub(crate) text: String,
}

/// The ring and the channel.
#[derive(Debug)]
pub(crate) struct Feed {
    newest: u64,
    ring: VecDeque<Arc<Event>>,
    live: broadcast::Sender<Arc<Event>>,
}

/// What a reader gets that comes at a point of the feed.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// The number before which nothing is kept any longer, where events were lost.
    pub(crate) lost_to: Option<u64>,
    /// What was asked for and is kept.
    pub(crate) backlog: Vec<Arc<Event>>,
    /// What comes after it.
    pub(crate) live: broadcast::Receiver<Arc<Event>>,
}

impl Feed {
    /// A feed that goes on after `newest` events, of which these are kept, oldest first.
    pub(crate) fn after(newest: u64, kept: Vec<Event>) -> Self {
        let (live, _) = broadcast::channel(limits::EVENTS_BEHIND_MAX);
        Self { newest, ring: kept.into_iter().map(Arc::new).collect(), live }
    }

    /// The number of the newest event.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Tells a note.
    pub(crate) fn push(&mut self, at: Moment, note: Note, fabric: &Fabric) {
        self.newest += 1;
        let text = words::note(&note, fabric);
        let event = Arc::new(Event { number: self.newest, at, note, text });
        if limits::EVENTS_KEPT <= self.ring.len() {
            self.ring.pop_front();
        }
        self.ring.push_back(Arc::clone(&event));
        // Without readers there is nobody to tell.
        let _ = self.live.send(event);
    }

    /// The newest `n` events, oldest first.
    pub(crate) fn recent(&self, n: usize) -> Vec<Arc<Event>> {
        self.ring.iter().skip(self.ring.len().saturating_sub(n)).cloned().collect()
    }

    /// Everything after event `after`, or from now on.
    pub(crate) fn subscribe(&self, after: Option<u64>) -> Subscription {
        let live = self.live.subscribe();
        // A number from the future is of another journal: everything kept is new to its reader.
        let after = after.map(|it| if self.newest < it { 0 } else { it });
        let Some(after) = after else {
            return Subscription { lost_to: None, backlog: vec![], live };
        };
        let backlog: Vec<_> = self.ring.iter().filter(|it| after < it.number).cloned().collect();
        let oldest = backlog.first().map_or(self.newest + 1, |it| it.number);
        Subscription { lost_to: (after + 1 < oldest).then_some(oldest), backlog, live }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_model::id::JobId;

    use super::*;

    fn feed(n: u64) -> Feed {
        let (mut feed, fabric) = (Feed::after(0, vec![]), Fabric::new());
        for number in 0..n {
            let note = Note::JobFinished { job: JobId::new(number as u32) };
            feed.push(Moment::from_nanos(number), note, &fabric);
        }
        feed
    }

    #[test]
    fn a_reader_that_comes_back_misses_nothing_that_is_kept() {
        let mut feed = feed(5);
        let mut back = feed.subscribe(Some(3));
        assert_eq!(back.backlog.iter().map(|it| it.number).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(back.lost_to, None);
        feed.push(Moment::START, Note::JobFinished { job: JobId::new(9) }, &Fabric::new());
        assert_eq!(back.live.try_recv().unwrap().number, 6);
        assert!(feed.subscribe(Some(6)).backlog.is_empty());
        assert!(feed.subscribe(None).backlog.is_empty());
        assert_eq!(feed.recent(2)[0].number, 5);
    }

    #[test]
    fn a_reader_is_told_what_it_lost() {
        let feed = feed(limits::EVENTS_KEPT as u64 + 7);
        let back = feed.subscribe(Some(2));
        assert_eq!(back.lost_to, Some(8));
        assert_eq!(back.backlog.len(), limits::EVENTS_KEPT);
        let stranger = feed.subscribe(Some(1 << 40));
        assert_eq!(stranger.backlog.len(), limits::EVENTS_KEPT);
        // Where a snapshot held none, the numbers go on.
        let fresh = Feed::after(40, vec![]);
        assert_eq!(fresh.subscribe(Some(30)).lost_to, Some(41));
        assert_eq!(fresh.subscribe(Some(40)).lost_to, None);
    }
}
