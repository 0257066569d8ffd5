//! What the power takes: the world's own end and new beginning, and crashes beside it.
//!
//! ```text
//!   synced rows ──► shadow ──► what survives of the tail ──► is all there that was acknowledged?
//!                     ▲                │ sync
//!        snapshot ────┘                └──► the rest ──► the same state as the core?
//! ```
//! Where the power may fail at every sync, each recovery would replay all rows since the snapshot.
//! They are those of the recovery before and a few more, so a shadow keeps that recovery: it takes
//! each row once as it becomes durable, read back from the torn bytes where those hold it, and
//! begins anew from each snapshot.  At drawn syncs a recovery is made from nothing but the journal.

use selvedge_control::commit::{Commit, Record};
use selvedge_control::core::Core;
use selvedge_control::input::Input;
use selvedge_model::unit::{Moment, Span};

use super::{World, WorldError};
use crate::dice::Dice;
use crate::rule::Violation;
use crate::store::Store;

/// Where the power fails at every sync, the world goes on from each so many of them: more often,
/// and reading 48 switches back would be all that it ever does.
pub(super) const LIVED_EVERY: u64 = 500;

/// Of so many syncs, one is recovered from in full beside the shadow.
const FULL_EVERY: u64 = 32;

/// The process that would start from the durable journal.
#[derive(Clone)]
pub(super) struct Shadow {
    core: Core,
    /// The number of the newest row that it has taken.
    newest: u64,
    /// The number of the newest row that is known to be durable.
    durable: u64,
    /// Draws when everything is read anew.
    dice: Dice,
}

impl Shadow {
    pub(super) fn new(seed: u64) -> Self {
        Self { core: Core::new(), newest: 0, durable: 0, dice: Dice::new(seed, "recoveries") }
    }

    /// Takes the next rows; those that it has taken already are passed over.
    fn take(&mut self, rows: &[&Record], now: Moment) -> Result<(), WorldError> {
        let before = self.newest;
        for record in rows.iter().filter(|it| before < it.number) {
            replay(&mut self.core, record, self.newest + 1, now)?;
            self.newest = record.number;
        }
        Ok(())
    }
}

impl World {
    /// Whether this sync is one of the `n` that are drawn among all up to `until`.
    ///
    /// Selection sampling (Knuth, TAOCP 2 §3.4.2, algorithm S), with the number of syncs still to
    /// come read off those that have come: how many there are is known only once the run is over.
    pub(super) fn is_drawn(&mut self, n: u64, until: Moment) -> bool {
        let left = n.saturating_sub(self.tally.n_crashes);
        if left == 0 {
            return false;
        }
        let (past, rest) = (self.now.since(Moment::START), until.since(self.now));
        let coming = u128::from(self.n_syncs) * u128::from(rest.as_nanos())
            / u128::from(past.as_nanos().max(1));
        let coming = u64::try_from(coming).unwrap_or(u64::MAX).max(left);
        self.crash_dice.below(coming) < left
    }

    /// The power fails before the sync: the journal's tail is lost or torn, the process starts
    /// again from what it finds, and the plant has gone on meanwhile.
    pub(super) fn crash(&mut self) -> Result<(), WorldError> {
        self.tally.n_crashes += 1;
        self.replay_all()?;
        let _n_survived = self.store.crash(&mut self.crash_dice);
        let down = self.crash_dice.span(Span::millis(500), Span::secs(40));
        let core = recover(&self.store, self.now)?;
        let newest = self.store.newest();
        if let Some(shadow) = &mut self.shadow {
            shadow.core = core.clone();
            (shadow.newest, shadow.durable) = (newest, newest);
        }
        self.commit = Commit::new(core, newest + 1);
        self.wakes.clear();
        self.planning.clear();
        self.sync_at = None;
        // Clients without an answer ask again, under the same key.
        self.again.extend(self.pending.drain(..).map(|it| it.spec));
        self.recount();
        self.build();
        self.now = self.now + down;
        let mut lost = Vec::new();
        self.plant.advance_into(self.now, &mut lost);
        self.tally.n_lost_inputs += lost.len() as u64;
        self.rules.restarted(self.now, self.commit.core(), newest);
        self.rules.remembers(self.now, self.commit.core(), &self.acknowledged);
        if newest == 0 {
            return self.begin();
        }
        self.offer(Input::Restarted);
        self.plant.reconnect(self.now);
        self.persist()
    }

    /// All that was appended replays to the state that there is.
    fn replay_all(&mut self) -> Result<(), WorldError> {
        let mut store = self.store.clone();
        store.sync();
        let core = recover(&store, self.now)?;
        if core.digest() != self.commit.core().digest() {
            self.rules.found(self.now, Violation::ReplayDiffers { number: store.newest() });
        }
        Ok(())
    }

    /// A crash that only the shadow suffers: of the tail it reads what the torn bytes hold.
    pub(super) fn crash_beside(&mut self) -> Result<(), WorldError> {
        let Some(mut shadow) = self.shadow.take() else { return Ok(()) };
        self.tally.n_crashes += 1;
        let survivors = self.store.tear(&mut self.crash_dice);
        shadow.take(&survivors.iter().collect::<Vec<_>>(), self.now)?;
        self.rules.remembers(self.now, &shadow.core, &self.acknowledged);
        if shadow.dice.below(FULL_EVERY) == 0 {
            self.crash_copy(&mut shadow.dice)?;
        }
        self.shadow = Some(shadow);
        Ok(())
    }

    /// A crash of a copy of the journal, from which a process starts that knows nothing else.
    fn crash_copy(&mut self, dice: &mut Dice) -> Result<(), WorldError> {
        let mut store = self.store.clone();
        let _n_survived = store.crash(dice);
        let core = recover(&store, self.now)?;
        self.rules.remembers(self.now, &core, &self.acknowledged);
        let all = store.newest() + 1 == self.commit.next_number();
        if all && core.digest() != self.commit.core().digest() {
            self.rules.found(self.now, Violation::ReplayDiffers { number: store.newest() });
        }
        Ok(())
    }

    /// The shadow takes what has become durable: it must stand where the core stands.
    pub(super) fn follow(&mut self) -> Result<(), WorldError> {
        let Some(mut shadow) = self.shadow.take() else { return Ok(()) };
        let rows = self.store.rows_after(shadow.durable);
        for (expected, number) in (shadow.durable + 1..).zip(rows.iter().map(|it| it.number)) {
            if number != expected {
                return Err(WorldError::Gap { number, expected, now: self.now });
            }
        }
        shadow.take(&rows, self.now)?;
        shadow.durable = shadow.newest;
        if shadow.core.state() != self.commit.core().state() {
            self.rules.found(self.now, Violation::ReplayDiffers { number: shadow.newest });
        }
        self.shadow = Some(shadow);
        Ok(())
    }

    /// The shadow begins anew from the snapshot that was just made: what a snapshot does not hold,
    /// a process that starts from it does not know.
    pub(super) fn refresh_shadow(&mut self) -> Result<(), WorldError> {
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        let (Some((newest, bytes)), _) = self.store.read() else { return Ok(()) };
        let restored = Core::restore_on(bytes, &shadow.core);
        shadow.core = restored.map_err(|source| WorldError::Restore { now: self.now, source })?;
        (shadow.newest, shadow.durable) = (newest, newest);
        Ok(())
    }
}

/// The core that a new process builds from what a journal holds.
fn recover(store: &Store, now: Moment) -> Result<Core, WorldError> {
    let (snapshot, records) = store.read();
    let mut core = match snapshot {
        Some((_, bytes)) => {
            Core::restore(bytes).map_err(|source| WorldError::Restore { now, source })?
        }
        None => Core::new(),
    };
    let first = snapshot.map_or(0, |it| it.0) + 1;
    for (expected, record) in (first..).zip(records) {
        replay(&mut core, record, expected, now)?;
    }
    Ok(core)
}

/// Applies the record that must have the number `expected`.
fn replay(core: &mut Core, record: &Record, expected: u64, now: Moment) -> Result<(), WorldError> {
    let number = record.number;
    if number != expected {
        return Err(WorldError::Gap { number, expected, now });
    }
    let replayed = record.replay_on(core);
    replayed.map_err(|source| WorldError::Replay { number, now, source })?;
    Ok(())
}
