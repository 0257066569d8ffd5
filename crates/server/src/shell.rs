//! The only event loop: one thread that owns the core, its journal, its plant and its clock.
//!
//! ```text
//!   requests ─┐                        ┌─► answers
//!   plant ────┼─► offer ─► append, sync┼─► a step of the plant: commands, and how far to go
//!   timers ───┘     (one batch)        └─► notes to the feed
//! ```
//! Nothing is answered, told or shown before the rows that it follows from are on the disk.  While
//! they cannot be written, plant time stands still, changes are refused before the core sees them,
//! readers are shown what is on the disk (`shown`), and the rows that wait are tried again.
//!
//! The loop never waits for the plant: a change is acknowledged after its append and sync, also
//! while a step is under way.  Plant time does not pass a step, nor a plant that is away.

mod shown;

mod steps;

mod told;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use selvedge_control::commit::{Commit, Record, Said};
use selvedge_control::core::{Accepted, Core, Refused, VERSION};
use selvedge_control::input::{Ask, Input, Task};
use selvedge_control::note::Note;
use selvedge_control::output::{Command, Output};
use selvedge_control::state::JobState;
use selvedge_driver::process::Process;
use selvedge_driver::store::{Row, Snapshot, StoreError};
use selvedge_model::unit::Moment;
use selvedge_sim::fault::FaultSpec;
use selvedge_sim::world::Happening;

use crate::clock::{Clock, Speed};
use crate::feed::{Event, Feed};
use crate::journal::Journal;
use crate::limits;
use crate::meter::Meter;
use crate::planner::Planner;
use crate::plant::{self, Nature, News, Opened, Parting, Remote, Tamper};
use crate::runner::{Launch, Reason, Runner};
use crate::shell::shown::Shown;
use crate::shell::told::Told;
use crate::slice;
use crate::start::{Kept, encode};
use crate::up::UpError;

/// Why a change was not made.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The core refuses it.
    Refused(Refused),
    /// The plant refuses it, in its words.
    Fault(String),
    /// The plant is away, and why.
    PlantAway(String),
    /// Nothing was backed up, and why.
    NotBackedUp(String),
    /// There is no simulated plant to do it to.
    NotSimulated,
    /// The journal cannot be written: the store's words.
    NotSaved {
        /// What the store said.
        error: String,
        /// Whether room on the disk would help.
        full: bool,
        /// Whether the request may still come to be.
        in_doubt: bool,
    },
}

/// What is done with the outcome of a change, once it is durable.
pub(crate) type Then = Box<dyn FnOnce(&Shell, Result<Accepted, Trouble>) + Send>;

/// Something to be shown everything.
pub(crate) type Look = Box<dyn FnOnce(Result<&Shell, Trouble>) + Send>;

/// One request to the loop.
pub(crate) enum Request {
    /// Change something.
    Ask {
        /// What, and who asks.
        input: Input,
        /// Why, in words.
        reason: Option<String>,
        /// What then.
        then: Then,
    },
    /// What the runner of real tasks saw, or the planner planned.
    Heard(Input),
    /// Do something to the simulated plant.
    Tamper {
        /// What.
        tamper: Tamper,
        /// What then.
        then: Then,
    },
    /// Copy the journal and the plant to a new directory.
    Backup {
        /// The new directory.
        to: PathBuf,
        /// What then.
        then: Then,
    },
    /// Look at everything.
    Look(Look),
    /// Something was heard of the plant.
    Plant(News),
    /// Write what there is to write, and end.
    Stop(Parting),
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Request::Ask { .. } => "Ask",
            Request::Heard(_) => "Heard",
            Request::Tamper { .. } => "Tamper",
            Request::Look(_) => "Look",
            Request::Backup { .. } => "Backup",
            Request::Plant(_) => "Plant",
            Request::Stop(_) => "Stop",
        })
    }
}

/// The loop's belongings.
pub(crate) struct Shell {
    commit: Commit,
    journal: Box<dyn Journal>,
    plant: Option<Remote>,
    /// Who waits for the outcome of what was done to the plant, in the order in which it was told;
    /// nobody waits for a scenario's.
    tampers: VecDeque<Option<Then>>,
    /// Backups asked for, in order.
    backups: VecDeque<(PathBuf, Then)>,
    data: PathBuf,
    /// Who runs real tasks, where any may run.
    runner: Option<Runner>,
    /// Who plans what takes long.
    planner: Option<Planner>,
    /// What was said beside the loop and the core has not been told.
    heard: VecDeque<Input>,
    clock: Clock,
    told: Told,
    /// How fast plant time runs while no real task does.
    speed: Speed,
    feed: Feed,
    meter: Meter,
    /// Rows that could not be written yet.
    unsaved: Vec<Row>,
    /// Rounds whose rows share the next append.
    n_put_off: usize,
    /// Why.
    journal_error: Option<String>,
    /// What readers see.
    shown: Shown,
    /// The newest row on the disk.
    saved: u64,
    snapshot_at: u64,
    bytes_since_snapshot: usize,
    wakes: BTreeSet<Moment>,
    /// What a scenario lets happen, soonest first.
    script: VecDeque<(Moment, Happening)>,
    /// The newest moment that the core was told.
    last: Moment,
}

/// What a shell is made of.
pub(crate) struct Parts {
    pub(crate) core: Core,
    pub(crate) journal: Box<dyn Journal>,
    pub(crate) clock: Clock,
    pub(crate) feed: Feed,
    pub(crate) meter: Meter,
    /// The data directory.
    pub(crate) data: PathBuf,
    /// The newest row on the disk.
    pub(crate) saved: u64,
    /// The row of the newest snapshot.
    pub(crate) snapshot_at: u64,
}

impl Shell {
    pub(crate) fn new(parts: Parts) -> Self {
        let told = Told::of(&parts.data);
        let last = parts.core.state().now;
        // A data directory without a journal begins at the beginning.
        let last = if parts.saved == 0 { last } else { last.max(told.newest()) };
        let mut clock = parts.clock;
        clock.catch_up(last);
        Self {
            commit: Commit::new(parts.core, parts.saved + 1),
            journal: parts.journal,
            plant: None,
            tampers: VecDeque::new(),
            backups: VecDeque::new(),
            data: parts.data,
            runner: None,
            planner: None,
            heard: VecDeque::new(),
            speed: clock.speed(),
            clock,
            told,
            feed: parts.feed,
            meter: parts.meter,
            unsaved: Vec::new(),
            n_put_off: 0,
            journal_error: None,
            shown: Shown::Newest,
            saved: parts.saved,
            snapshot_at: parts.snapshot_at,
            bytes_since_snapshot: 0,
            wakes: BTreeSet::new(),
            script: VecDeque::new(),
            last,
        }
    }

    /// The simulated plant, where there is one.
    pub(crate) fn plant(&self) -> Option<&Remote> {
        self.plant.as_ref()
    }

    /// The clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What has happened.
    pub(crate) fn feed(&self) -> &Feed {
        &self.feed
    }

    /// What was measured.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The newest row on the disk.
    pub(crate) fn saved(&self) -> u64 {
        self.saved
    }

    /// Why the journal cannot be written, while it cannot.
    pub(crate) fn journal_error(&self) -> Option<&str> {
        self.journal_error.as_deref()
    }

    /// Gives real tasks to `runner`.
    pub(crate) fn run_tasks_by(&mut self, runner: Runner) {
        self.runner = Some(runner);
    }

    /// Whether jobs may run programs.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.runner.is_some()
    }

    /// Takes the first inputs of this run, before anybody is served, and finds or starts the
    /// simulated plant of a data directory.
    ///
    /// # Errors
    /// The core's refusal, why they cannot be journalled, or why the plant cannot be used.
    pub(crate) fn begin(
        &mut self,
        mut inputs: Vec<Input>,
        plant: Option<First<'_>>,
        news: SyncSender<Request>,
    ) -> Result<(), UpError> {
        // No time passes until the plant is there.
        self.clock.hold();
        let to_loop = news.clone();
        let say = Box::new(move |input| to_loop.send(Request::Heard(input)).is_ok());
        self.planner = Some(Planner::begin(say).map_err(|source| UpError::Thread { source })?);
        let is_new = self.core().state().plants.is_empty();
        // A first plant file is looked at before devices are made of it; later, the devices say
        // first how far they have come.
        if is_new {
            self.offer_first(inputs.clone())?;
        }
        if let Some(first) = plant {
            let plants = self.core().state().plants.clone();
            let create = (is_new || first.new_plant).then_some(&first.nature);
            let now = self.now();
            let told = plant::told(self.core());
            let opened = Opened::open(first.data, &plant::hello(plants, now, create, told))?;
            if let Some(ahead) = opened.welcome.ahead.clone() {
                tracing::warn!(
                    n_strays = ahead.strays.len(),
                    "the plant was told more than the journal has: it was salvaged or put back"
                );
                inputs.insert(0, Input::Ahead(ahead));
            }
            self.last = self.last.max(opened.welcome.now);
            self.clock.catch_up(self.last);
            let remote = Remote::new(opened, news);
            self.plant = Some(remote.map_err(|source| UpError::Thread { source })?);
            // What came before the last start has happened.
            let comes = |it: &(Moment, Happening)| is_new || self.last < it.0;
            self.script = first.happenings.into_iter().filter(comes).collect();
        }
        if !is_new {
            self.offer_first(inputs)?;
        }
        self.save().map_err(|error| not_saved(&error, false))?;
        self.release();
        self.settle_clock();
        self.step();
        Ok(())
    }

    fn offer_first(&mut self, inputs: Vec<Input>) -> Result<(), UpError> {
        let now = self.now();
        for input in inputs {
            self.commit.offer(now, input).map_err(Trouble::Refused)?;
        }
        Ok(())
    }

    /// Serves until it is told to stop.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        let mut stopping = None;
        while stopping.is_none() {
            let mut round = Round::default();
            stopping = self.collect(requests, &mut round);
            self.turn(round);
        }
        let parting = stopping.unwrap_or(Parting::Leave);
        if let Some(runner) = self.runner.as_ref().filter(|_| parting == Parting::End) {
            runner.end_all();
        }
        // What was heard last may still wait for its append.
        if self.journal_error.is_none() && self.save().is_ok() && self.snapshot_at < self.saved {
            self.take_snapshot();
        }
        self.told.keep(self.plant_now(), self.commit.core().state().now);
        self.part(parting, requests);
    }

    /// Goes without having served: a plant that was started for it ends.
    pub(crate) fn give_up(mut self, requests: &Receiver<Request>) {
        let was_there = self.plant.as_ref().is_some_and(Remote::was_there);
        self.part(if was_there { Parting::Leave } else { Parting::End }, requests);
    }

    /// Lets the plant be, or ends it.
    fn part(&mut self, parting: Parting, requests: &Receiver<Request>) {
        let Some(remote) = self.plant.take() else { return };
        std::thread::scope(|scope| {
            let parted = scope.spawn(|| remote.part(parting));
            // Its thread may have to say something before it ends.
            while !parted.is_finished() {
                let _ = requests.recv_timeout(limits::PLANT_LOOK_EVERY);
            }
        });
    }

    /// One round: everything that is due and asked for, one append, then all that follows.
    fn turn(&mut self, mut round: Round) {
        let begun = Instant::now();
        let mut outcomes: Vec<(Then, Result<Accepted, Trouble>)> = Vec::new();
        for news in round.news.drain(..) {
            self.hear_plant(news, &mut outcomes);
        }
        if self.journal_error.is_none() {
            self.advance();
            self.hear_tasks();
        }
        for (input, reason, then) in round.asks.drain(..) {
            let outcome = self.ask(input, reason);
            outcomes.push((then, outcome));
        }
        for (tamper, then) in round.tampers.drain(..) {
            if let Err((then, trouble)) = self.tamper(tamper, Some(then)) {
                outcomes.extend(then.map(|then| (then, Err(trouble))));
            }
        }
        self.refuse_backups(&mut outcomes);
        if self.may_save_later(&outcomes, &round) {
            self.n_put_off += 1;
        } else if let Err(error) = self.save() {
            for (_, outcome) in &mut outcomes {
                // What the core has taken is in the rows that wait, and will be tried again.
                let key_used = matches!(outcome, Err(Trouble::Refused(Refused::KeyUsed { .. })));
                if outcome.is_ok() || key_used {
                    *outcome = Err(not_saved(&error, true));
                }
            }
        } else {
            self.release();
        }
        self.step();
        if !outcomes.is_empty() || !round.looks.is_empty() {
            self.told.keep(self.plant_now(), self.commit.core().state().now);
        }
        for (then, outcome) in outcomes {
            then(self, outcome);
        }
        for look in round.looks.drain(..) {
            look(self.readable());
        }
        self.snapshot_if_due();
        self.clock.wait_for(self.last, limits::LAG_MAX);
        self.meter.turned(begun.elapsed());
    }

    /// Waits until something is due or asked for; says whether and how to stop.
    fn collect(&mut self, requests: &Receiver<Request>, round: &mut Round) -> Option<Parting> {
        let first = match requests.recv_timeout(self.patience()) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => return Some(Parting::Leave),
        };
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Ask { input, reason, then } => round.asks.push((input, reason, then)),
                Request::Heard(input) => self.heard.push_back(input),
                Request::Tamper { tamper, then } => round.tampers.push((tamper, then)),
                Request::Look(look) => round.looks.push(look),
                Request::Backup { to, then } => self.backups.push_back((to, then)),
                Request::Plant(news) => round.news.push(news),
                Request::Stop(parting) => return Some(parting),
            }
            let full = limits::BATCH_MAX <= round.asks.len() + round.looks.len();
            next = if full { None } else { requests.try_recv().ok() };
        }
        None
    }

    fn patience(&self) -> Duration {
        if self.journal_error.is_some() {
            return limits::JOURNAL_RETRY;
        }
        let until = match &self.plant {
            // It will be heard of.
            Some(plant) if plant.is_busy() => plant
                .retry_at()
                .map_or(limits::SLEEP_MAX, |at| at.saturating_duration_since(Instant::now())),
            Some(_) | None => self.next_at().map_or(limits::SLEEP_MAX, |at| self.clock.until(at)),
        };
        until.min(limits::SLEEP_MAX)
    }

    fn next_at(&self) -> Option<Moment> {
        let plant = self.plant.as_ref().and_then(Remote::next_at);
        plant.into_iter().chain(self.own_next_at()).min()
    }

    /// When the loop has something to do itself.
    fn own_next_at(&self) -> Option<Moment> {
        let script = self.script.front().map(|it| it.0);
        self.wakes.first().copied().into_iter().chain(script).min()
    }

    /// Plant time as a person is told it: the loop may lie a little behind the clock.
    pub(crate) fn plant_now(&self) -> Moment {
        let now = self.now();
        self.next_at().map_or(now, |due| due.min(now)).max(self.last)
    }

    /// What the clock says; never before what the core was told.
    fn now(&self) -> Moment {
        self.clock.now().max(self.last)
    }

    /// Offers what is due, each thing at its own moment, until one of them has consequences: those
    /// leave, after the sync, at that very moment.  So a plant behaves the same at every speed, and
    /// a disk that is slow makes time slow, not devices.  What is due in the plant itself takes a
    /// step of it, which time waits for.
    fn advance(&mut self) {
        for _ in 0..limits::BATCH_MAX {
            let is_busy = self.plant.as_ref().is_some_and(Remote::is_busy);
            if is_busy || self.commit.is_waiting() || self.is_step_due() {
                return;
            }
            let now = self.now();
            let Some(due) = self.own_next_at().filter(|at| *at <= now) else {
                self.last = now;
                return;
            };
            self.last = due.max(self.last);
            self.offer_due();
        }
    }

    /// Offers what is due at `last` by the loop's own count.
    fn offer_due(&mut self) {
        let at = self.last;
        let mut inputs = Vec::new();
        let n_due = self.wakes.iter().take_while(|it| **it <= at).count();
        for _ in 0..n_due {
            self.wakes.pop_first();
        }
        if 0 < n_due {
            inputs.push(Input::Tick);
        }
        while self.script.front().is_some_and(|it| it.0 <= at) {
            let Some((_, happening)) = self.script.pop_front() else { break };
            inputs.extend(self.happen(happening));
        }
        self.offer_all(inputs);
    }

    fn offer_all(&mut self, inputs: Vec<Input>) {
        for input in inputs {
            self.meter.heard(self.last, &input);
            // An answer that nobody waits for any longer is no trouble.
            if let Err(refused) = self.commit.offer(self.last, input) {
                tracing::debug!(%refused, "an input of the plant");
            }
        }
    }

    /// Tells the core what the runner saw and the planner planned.
    fn hear_tasks(&mut self) {
        while let Some(input) = self.heard.pop_front() {
            if let Some(runner) = &mut self.runner {
                runner.heard(&input);
            }
            self.meter.heard(self.last, &input);
            // It says again what it was asked again.
            if let Err(refused) = self.commit.offer(self.last, input) {
                tracing::debug!(%refused, "an answer from beside the loop");
            }
        }
        self.keep_pace();
    }

    /// Plant time runs as real time does while real tasks run.
    fn keep_pace(&mut self) {
        let is_busy = self.runner.as_ref().is_some_and(Runner::is_busy);
        self.clock.go_at(if is_busy { Speed::REAL } else { self.speed });
    }

    /// Gives a command about real tasks to the runner; says whether it was one.
    fn run_task(&mut self, command: &Command) -> bool {
        let core = self.commit.core();
        let (job, attempt) = match command {
            Command::Start { job, attempt, .. }
            | Command::Notify { job, attempt, .. }
            | Command::Kill { job, attempt } => (*job, *attempt),
            _ => return false,
        };
        // What nobody remembers is known to the plant alone, whatever has its number since.
        let known = core.state().jobs.get(job);
        let known = known.filter(|_| !core.state().strays.contains_key(&(job, attempt)));
        let (Some(known), Some(runner)) = (known, &mut self.runner) else { return false };
        let Some(program) = known.spec.work.program() else { return false };
        match command {
            Command::Start { place, .. } => {
                let launch = Launch {
                    name: known.spec.name.clone(),
                    submitted_ns: known.submitted.as_nanos(),
                    program: program.clone(),
                    slice: slice::of(core, job, place),
                    begun: match known.state {
                        JobState::Running { .. } => Some(known.tasks.iter().map(process).collect()),
                        _ => None,
                    },
                };
                runner.start((job, attempt), launch);
            }
            Command::Notify { grace, .. } => {
                runner.notify((job, attempt), *grace, Reason::of(known, core.fabric()));
            }
            _ => runner.kill((job, attempt)),
        }
        self.keep_pace();
        true
    }

    /// What a scenario lets happen: to the plant at once, to the core as an input.
    fn happen(&mut self, happening: Happening) -> Option<Input> {
        let core = self.commit.core();
        let find = |path: Option<String>| match path {
            Some(path) => core.fabric().find(&path).map(Some).ok_or(path),
            None => Ok(None),
        };
        let found = match happening {
            Happening::Submit(spec) => {
                let (by, key) = (spec.owner.clone(), Some(spec.name.clone()));
                return Some(Input::Ask { by, what: Ask::Submit { key, spec } });
            }
            Happening::Ask { by, what } => return Some(Input::Ask { by, what }),
            Happening::Drain { path, undo } => match find(Some(path)) {
                Ok(Some(target)) => {
                    let drain = || Ask::Drain { target, why: "scenario".to_owned() };
                    let what = if undo { Ask::Undrain { target } } else { drain() };
                    return Some(Input::Ask { by: "operator".to_owned(), what });
                }
                Ok(None) => Ok(None),
                Err(path) => Err(path),
            },
            Happening::Fault { kind, path } => {
                find(path).map(|target| Some(Tamper::Inject(FaultSpec { kind, target })))
            }
            Happening::Clear { path } => {
                find(path).map(|target| Some(target.map_or(Tamper::ClearAll, Tamper::Clear)))
            }
        };
        match found {
            Err(path) => tracing::warn!(path, "the scenario names what the plant has not"),
            Ok(Some(tamper)) => {
                if let Err((_, trouble)) = self.tamper(tamper, None) {
                    tracing::info!(?trouble, "a happening of the scenario");
                }
            }
            Ok(None) => (),
        }
        None
    }

    fn ask(&mut self, input: Input, reason: Option<String>) -> Result<Accepted, Trouble> {
        if let Some(trouble) = self.not_writable() {
            return Err(trouble);
        }
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let said = Some(Said { unix_s, reason });
        let accepted = self.commit.offer_said(self.last, input, said);
        accepted.map(|(_, accepted)| accepted).map_err(Trouble::Refused)
    }

    /// Does something to the plant with its next step; `then` hears what came of it.
    fn tamper(
        &mut self,
        tamper: Tamper,
        then: Option<Then>,
    ) -> Result<(), (Option<Then>, Trouble)> {
        let Some(plant) = &mut self.plant else { return Err((then, Trouble::NotSimulated)) };
        if let Some(why) = plant.away() {
            return Err((then, Trouble::PlantAway(why.to_owned())));
        }
        plant.tamper(tamper);
        self.tampers.push_back(then);
        Ok(())
    }

    /// Writes all rows that wait, in one append.
    fn save(&mut self) -> Result<(), StoreError> {
        self.unsaved.extend(self.commit.to_append().iter().map(row));
        let Some(newest) = self.unsaved.last().map(|it| it.number) else { return Ok(()) };
        let begun = Instant::now();
        match self.journal.append(&self.unsaved) {
            Ok(()) => {
                let n_bytes: usize = self.unsaved.iter().map(|it| it.body.len()).sum();
                self.bytes_since_snapshot += n_bytes;
                self.meter.synced(begun.elapsed(), self.unsaved.len(), n_bytes);
                self.unsaved.clear();
                self.n_put_off = 0;
                self.saved = newest;
                self.commit.synced(newest);
                self.shown = Shown::Newest;
                if self.journal_error.take().is_some() {
                    tracing::info!(row = newest, "the journal can be written again");
                    self.settle_clock();
                }
                Ok(())
            }
            Err(error) => {
                let text = crate::api::error::chain(&error);
                if self.journal_error.is_none() {
                    tracing::error!(error = text, "the journal cannot be written");
                }
                self.meter.disk_full = matches!(error, StoreError::Full { .. });
                self.meter.n_failed_appends += 1;
                self.journal_error = Some(text);
                self.show_durable();
                self.settle_clock();
                Err(error)
            }
        }
    }

    /// Lets out what the synced rows allow.
    fn release(&mut self) {
        while let Some(output) = self.commit.release() {
            match output {
                Output::Do(command) => {
                    self.meter.told(self.last, &command);
                    if self.run_task(&command) {
                        continue;
                    }
                    if let Some(plant) = &mut self.plant {
                        plant.tell(command);
                    }
                }
                Output::Plan(request) => {
                    let question = self.commit.core().question(request);
                    if let (Some(question), Some(planner)) = (question, &self.planner) {
                        planner.ask(question);
                    }
                }
                Output::WakeAt(at) => {
                    self.wakes.insert(at);
                }
                Output::Note(note) => self.tell(note),
            }
        }
    }

    fn tell(&mut self, note: Note) {
        if let (Note::PlantApplied { .. } | Note::PortMoved { .. }, Some(plant)) =
            (&note, &mut self.plant)
        {
            plant.adopt(self.commit.core().state().plants.clone());
        }
        self.feed.push(self.last, note, self.commit.core().fabric());
    }

    fn snapshot_if_due(&mut self) {
        let many_rows = limits::ROWS_PER_SNAPSHOT <= self.saved - self.snapshot_at;
        let many_bytes = limits::BYTES_PER_SNAPSHOT <= self.bytes_since_snapshot;
        let whole = self.journal_error.is_none() && self.n_put_off == 0;
        if whole && (many_rows || many_bytes) {
            self.take_snapshot();
        }
    }

    fn take_snapshot(&mut self) {
        let events = self.feed.recent(limits::EVENTS_KEPT);
        let kept = Kept {
            n_notes: self.feed.newest(),
            events: events.iter().map(|it| Event::clone(it)).collect(),
            core: self.commit.core().snapshot(),
        };
        let snapshot = Snapshot {
            number: self.saved,
            at_ns: self.last.as_nanos(),
            version: VERSION.to_owned(),
            body: encode(&kept),
        };
        match self.journal.snapshot(&snapshot) {
            Ok(()) => {
                self.snapshot_at = self.saved;
                self.bytes_since_snapshot = 0;
            }
            // A start without it replays more rows; nothing else is lost.
            Err(error) => tracing::warn!(%error, "no snapshot could be written"),
        }
    }
}

/// The simulated plant that a run begins with.
pub(crate) struct First<'a> {
    /// The data directory.
    pub(crate) data: &'a Path,
    /// How it is made if it is new.
    pub(crate) nature: Nature,
    /// Whether a new one may take the place of one that is gone.
    pub(crate) new_plant: bool,
    /// What a scenario lets happen, soonest first.
    pub(crate) happenings: Vec<(Moment, Happening)>,
}

/// What one round has to do.
#[derive(Default)]
struct Round {
    news: Vec<News>,
    asks: Vec<(Input, Option<String>, Then)>,
    tampers: Vec<(Tamper, Then)>,
    looks: Vec<Look>,
}

fn process(task: &Task) -> Process {
    Process { pid: task.pid, started: task.began }
}

fn row(record: &Record) -> Row {
    let body = serde_json::to_string(record).expect("a record's keys are text or numbers");
    Row { number: record.number, at_ns: record.now.as_nanos(), body }
}

fn not_saved(error: &StoreError, in_doubt: bool) -> Trouble {
    let full = matches!(error, StoreError::Full { .. });
    Trouble::NotSaved { error: crate::api::error::chain(error), full, in_doubt }
}
