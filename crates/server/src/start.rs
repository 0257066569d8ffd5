//! From a data directory to a core that stands where the last one stopped.
//!
//! The newest good snapshot, then every row after it: a replay applies the recorded plans, so the
//! state is the same byte for byte.  The snapshot holds the newest events, and the replay tells
//! those that came after it.

use std::path::PathBuf;

use selvedge_control::commit::Record;
use selvedge_control::core::{Core, ReplayError, VERSION};
use selvedge_driver::store::{Opened, Store, StoreError};

use crate::feed::{Event, Feed};

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The notes told so far, so that events keep their numbers.
    pub(crate) n_notes: u64,
    /// The newest of them, oldest first, as they were told.
    pub(crate) events: Vec<Event>,
    /// The core's own snapshot.
    pub(crate) core: Vec<u8>,
}

/// Why a journal gives no state.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be read on.
    #[error("cannot read the journal in {data}")]
    Store {
        /// The data directory.
        data: PathBuf,
        /// The store's reason.
        #[source]
        source: Box<StoreError>,
    },
    /// A row is whole but is no record.
    #[error("row {number} of the journal is no record; run the version of selvedge that wrote it")]
    Record {
        /// The row.
        number: u64,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A row does not follow from the state before it.
    #[error("row {number} of the journal does not follow from the rows before it")]
    Replay {
        /// The row.
        number: u64,
        /// What the core said.
        #[source]
        source: ReplayError,
    },
}

/// A core brought back, and what goes with it.
pub(crate) struct Start {
    pub(crate) core: Core,
    pub(crate) feed: Feed,
    /// The newest row.
    pub(crate) last: u64,
    /// The row of the snapshot that it started from.
    pub(crate) snapshot_at: u64,
}

/// Brings the core back from `store`.
///
/// # Errors
/// [`StartError`].
pub(crate) fn start(
    store: &Store,
    opened: Opened,
    data: &std::path::Path,
) -> Result<Start, StartError> {
    for fault in &opened.set_aside {
        tracing::warn!(%fault, "a snapshot was passed over");
    }
    let (mut core, mut feed, mut after) = (Core::new(), Feed::after(0, Vec::new()), 0);
    // A snapshot of another version, or of another layout, is passed over: the rows say the same.
    let usable = opened.snapshot.as_ref().filter(|it| it.version == VERSION);
    if let Some((snapshot, kept)) = usable.and_then(|it| Some((it, decode(&it.body)?))) {
        match Core::restore(&kept.core) {
            Ok(restored) => {
                core = restored;
                (feed, after) = (Feed::after(kept.n_notes, kept.events), snapshot.number);
            }
            Err(fault) => {
                tracing::warn!(row = snapshot.number, %fault, "a snapshot was passed over");
            }
        }
    }
    let trouble = |source| StartError::Store { data: data.to_owned(), source: Box::new(source) };
    for row in store.rows_after(after).map_err(trouble)? {
        let row = row.map_err(trouble)?;
        let number = row.number;
        let record: Record = serde_json::from_str(&row.body)
            .map_err(|source| StartError::Record { number, source })?;
        let notes = record.replay_on(&mut core);
        for note in notes.map_err(|source| StartError::Replay { number, source })? {
            feed.push(record.now, note, core.fabric());
        }
    }
    Ok(Start { core, feed, last: store.last(), snapshot_at: after })
}

/// What a snapshot's body begins with: that it is one, and of which layout.
const LAYOUT: [u8; 8] = *b"selvedg2";

/// A snapshot's body: the layout, the number of notes, how many bytes of events there are, the
/// events as JSON, the core.
pub(crate) fn encode(kept: &Kept) -> Vec<u8> {
    let events = serde_json::to_vec(&kept.events).expect("an event's keys are text");
    let mut body = LAYOUT.to_vec();
    body.extend_from_slice(&kept.n_notes.to_le_bytes());
    body.extend_from_slice(&(events.len() as u64).to_le_bytes());
    body.extend_from_slice(&events);
    body.extend_from_slice(&kept.core);
    body
}

fn decode(body: &[u8]) -> Option<Kept> {
    let rest = body.strip_prefix(&LAYOUT)?;
    let (n_notes, rest) = rest.split_first_chunk()?;
    let (n_bytes, rest) = rest.split_first_chunk()?;
    let n_bytes = usize::try_from(u64::from_le_bytes(*n_bytes)).ok()?;
    let (events, core) = rest.split_at_checked(n_bytes)?;
    let events = serde_json::from_slice(events).ok()?;
    Some(Kept { n_notes: u64::from_le_bytes(*n_notes), events, core: core.to_vec() })
}

#[cfg(test)]
mod tests {
    use selvedge_control::note::Note;
    use selvedge_model::id::JobId;
    use selvedge_model::unit::Moment;

    use super::*;

    #[test]
    fn a_snapshot_reads_back() {
        let event = Event {
            number: 7,
            at: Moment::START,
            note: Note::JobFinished { job: JobId::new(3) },
            text: "job3 has finished".to_owned(),
        };
        let kept = Kept { n_notes: 7, events: vec![event], core: vec![1, 2, 3] };
        let body = encode(&kept);
        assert_eq!(decode(&body), Some(kept));
        // Neither what is cut short nor what an earlier version wrote.
        assert!((0..body.len() - 3).all(|it| decode(&body[..it]).is_none()));
        assert_eq!(decode(&[7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]), None);
    }
}
