//! The loop and the plant: when a step is due, what comes of it, and what happens while it is away.

use std::time::Instant;

use selvedge_control::core::Accepted;
use selvedge_control::input::Input;
use selvedge_model::unit::Moment;

use super::{Round, Shell, Then, Trouble};
use crate::limits;
use crate::plant::{self, News, Remote};

impl Shell {
    /// Whether what was heard may share its append with what the plant says next: nothing follows
    /// from it, nobody waits, and the next step is due.
    pub(super) fn may_save_later(
        &self,
        outcomes: &[(Then, Result<Accepted, Trouble>)],
        round: &Round,
    ) -> bool {
        self.journal_error.is_none()
            && outcomes.is_empty()
            && round.looks.is_empty()
            && !self.commit.is_waiting()
            && self.is_step_due()
            && self.n_put_off < limits::BATCH_MAX
    }

    /// Something was heard of the plant.
    pub(super) fn hear_plant(
        &mut self,
        news: News,
        outcomes: &mut Vec<(Then, Result<Accepted, Trouble>)>,
    ) {
        let Some(plant) = &mut self.plant else { return };
        match news {
            News::Stepped(mut stepped) => {
                plant.stepped(&mut stepped);
                self.last = self.last.max(stepped.at);
                for done in stepped.extras {
                    let Some(Some(then)) = self.tampers.pop_front() else {
                        if let Err(error) = done {
                            tracing::info!(error, "a happening of the scenario");
                        }
                        continue;
                    };
                    let done = done.map(|_| Accepted::Done).map_err(Trouble::Fault);
                    outcomes.push((then, done));
                }
                self.offer_all(stepped.heard);
            }
            News::Copied(done) => {
                plant.copied();
                if let Some((_, then)) = self.backups.pop_front() {
                    let done = done.map(|_| Accepted::Done).map_err(Trouble::NotBackedUp);
                    outcomes.push((then, done));
                }
            }
            News::Back(welcome) => {
                tracing::info!(pid = welcome.process.pid, "the plant's process is back");
                plant.welcomed(&welcome);
                self.last = self.last.max(welcome.now);
                self.clock.catch_up(self.last);
                self.settle_clock();
                // Nothing that was told can be trusted to have arrived.
                let ahead = welcome.ahead.map(Input::Ahead);
                self.offer_all(ahead.into_iter().chain([Input::Restarted]).collect());
            }
            News::Lost(why) => {
                if plant.away() != Some(&*why) {
                    tracing::warn!(why, "the plant is away");
                }
                plant.lost(why.clone());
                self.settle_clock();
                for then in self.tampers.drain(..).flatten() {
                    outcomes.push((then, Err(Trouble::PlantAway(why.clone()))));
                }
            }
        }
    }

    /// A backup takes a simulated plant that is there.
    pub(super) fn refuse_backups(&mut self, outcomes: &mut Vec<(Then, Result<Accepted, Trouble>)>) {
        let why = match self.plant.as_ref().map(Remote::away) {
            Some(None) => return,
            Some(Some(why)) => format!("the plant is away: {why}"),
            None => "a plant with real devices has a journal only: selvedge journal backup".into(),
        };
        for (_, then) in self.backups.drain(..) {
            outcomes.push((then, Err(Trouble::NotBackedUp(why.clone()))));
        }
    }

    /// Time stands still while there is no journal, or no plant, to go on with.
    pub(super) fn settle_clock(&mut self) {
        let is_away = self.plant.as_ref().is_some_and(|it| it.away().is_some());
        if is_away || self.journal_error.is_some() {
            self.clock.hold();
        } else {
            self.clock.resume();
        }
    }

    /// Begins a step of the plant, if there is something to tell or something happens in it.
    pub(super) fn step(&mut self) {
        let due = self.is_step_due();
        let (now, until) = (self.last, self.step_until());
        let plants = &self.commit.core().state().plants;
        let Some(plant) = &mut self.plant else { return };
        if plant.retry_at().is_some_and(|at| at <= Instant::now()) {
            let told = plant::told(self.commit.core());
            plant.look_for(plants.clone(), now, told);
        }
        let may = self.journal_error.is_none() && !plant.is_busy();
        // A backup comes between two steps, when all that was told has been carried out.
        if may
            && !plant.has_orders()
            && let Some((to, _)) = self.backups.front()
        {
            plant.back_up(&self.data, to);
            return;
        }
        if may && (due || plant.has_orders()) {
            plant.step(now, until);
        }
    }

    /// Whether the next thing to happen is the plant's.
    pub(super) fn is_step_due(&self) -> bool {
        let Some(plant) = self.plant.as_ref().filter(|it| !it.is_busy()) else { return false };
        plant.next_at().is_some_and(|at| at <= self.step_until())
    }

    /// How far the plant may go: to now, and not past what the loop has to do itself.
    pub(super) fn step_until(&self) -> Moment {
        self.own_next_at().map_or(self.now(), |at| at.min(self.now()))
    }
}
