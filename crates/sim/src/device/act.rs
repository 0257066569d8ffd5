//! What happens in a plant when its moment has come.

use super::*;
use selvedge_control::family::{clusters, host_at};
use selvedge_model::fault::Mark;
use selvedge_model::job::{Place, Work};

impl Plant {
    pub(super) fn happen(&mut self, event: Event, heard: &mut Vec<Input>) {
        let answer =
            match event {
                Event::Say(input) => return heard.push(*input),
                Event::Read { switch } => self.read(switch),
                Event::Write { switch, generation, remove, add, echoed } => {
                    self.written(switch, generation, &remove, &add, echoed)
                }
                Event::Train { errand, parts } => self.trained(errand, &parts),
                Event::Inspect { errand, hold } => self.answers(hold.part).then(|| {
                    Answer::Inspected { errand, part: hold.part, readings: self.inspect(hold) }
                }),
                Event::Exercise { errand, holds } => {
                    let all = holds.iter().all(|hold| self.answers(hold.part));
                    let failed = if all { self.exercise(errand, &holds) } else { Vec::new() };
                    all.then_some(Answer::Exercised { errand, failed })
                }
                Event::Discover { errand, hold } => self.answers(hold.part).then(|| {
                    Answer::Discovered { errand, part: hold.part, peers: self.discover(hold) }
                }),
                Event::Program { errand, hold, table } => self.answers(hold.part).then(|| {
                    let newer = self.truth.tables.set(hold, table).err();
                    Answer::Programmed { errand, part: hold.part, newer }
                }),
                Event::TasksStart { job, token } => self.tasks_start(job, token),
                Event::TasksEnd { job, token, how } => self.tasks_end(job, token, how),
                Event::FaultDue { kind, token } => {
                    self.fault_due(kind, token);
                    None
                }
                Event::Report { fault } => return heard.extend(self.report(fault)),
                Event::Flap { fault } => {
                    heard.extend(self.flap(fault));
                    return;
                }
                Event::Compare { job, attempt } => return self.compare(job, attempt, heard),
                Event::Poll => return self.poll(heard),
                Event::Missed { switch, since, n } => {
                    heard.extend(self.missed(switch, since, n));
                    return;
                }
                Event::CrewTakes { case } => {
                    self.crew_takes(case);
                    heard.push(said_by_crew(Ask::TakeRepair { case }));
                    return;
                }
                Event::CrewDone { case } => {
                    self.crew_done(case);
                    heard.push(said_by_crew(Ask::FinishRepair { case }));
                    return;
                }
            };
        let Some(answer) = answer else { return };
        if !self.truth.mischief.chance(self.truth.dials.lose) {
            heard.push(Input::Answer(answer));
        } else if matches!(answer, Answer::Stopped { .. }) {
            // Nobody asks after tasks that run: their end is said until it is heard.
            self.after(limits::REPEAT, Event::Say(Box::new(Input::Answer(answer))));
        }
    }

    /// A chip that computes wrongly under load shows where its replicas' siblings compute too: they
    /// outvote it.
    fn compare(&mut self, job: JobId, attempt: u32, heard: &mut Vec<Input>) {
        let task = self.truth.tasks.of(job).filter(|it| it.attempt == attempt && it.is_live());
        let Some(place) = task.and_then(|it| it.place.as_ref()) else { return };
        let faults = self.truth.faults.values().filter(|it| it.kind == FaultKind::LatentExercise);
        let is_held = |it: &&Fault| place.holds.iter().any(|hold| self.is_under(it.target, *hold));
        let erring: BTreeSet<Target> =
            faults.filter(is_held).filter_map(|it| host_at(&self.fabric, it.target)).collect();
        if !erring.is_empty() {
            let clusters = clusters(&self.fabric, place).machines;
            for target in erring {
                let find = |machines: &[Target; 3]| machines.iter().position(|it| *it == target);
                let seat = (0..).zip(&clusters).find_map(|(rank, it)| Some((rank, find(it)?)));
                // A machine in no cluster runs no replica.
                let Some((rank, set)) = seat else { continue };
                let set = u8::try_from(set).expect("one of three");
                let call = self.truth.fault_dice.below(1 << 20);
                let byte = Some(self.truth.fault_dice.below(1 << 16));
                let mark = Mark { job: Some(job), rank, set, call, byte };
                heard.push(Input::Marked { by: "mpirun".to_owned(), target, mark });
            }
        }
        self.after(limits::COMPARE, Event::Compare { job, attempt });
    }

    fn fault_due(&mut self, kind: FaultKind, token: u32) {
        if token == self.truth.rates_token {
            if let Some(target) = self.drawn(kind) {
                self.strike(kind, target);
            }
            self.next_fault(kind);
        }
    }

    fn crew_takes(&mut self, case: CaseId) {
        self.truth.crew.stage(case, Stage::Working);
        let work = self.truth.crew_dice.exponential(limits::CREW_WORKS.1);
        self.after(limits::CREW_WORKS.0 + work, Event::CrewDone { case });
    }

    fn read(&self, switch: PartId) -> Option<Answer> {
        let ocs = self.truth.switches.get(&switch).filter(|_| self.answers(switch))?;
        Some(Answer::SwitchRead { switch, generation: ocs.generation, pairs: ocs.pairs() })
    }

    fn written(
        &mut self,
        switch: PartId,
        generation: Generation,
        remove: &[Xconnect],
        add: &[Xconnect],
        echoed: bool,
    ) -> Option<Answer> {
        if !self.answers(switch) {
            return None;
        }
        let mut broken = BTreeSet::new();
        for fault in self.faults_on(switch) {
            if let (FaultKind::PortFailed, Target::Port(port)) = (fault.kind, fault.target) {
                let (_, local) = self.fabric.port_local(port);
                broken.insert(u16::try_from(local).expect("a switch has few ports"));
            }
        }
        let ocs = self.truth.switches.get_mut(&switch)?;
        let before = if echoed { ocs.pairs() } else { Vec::new() };
        let newest = ocs.generation;
        let taken = if self.truth.dials.deaf { generation.max(newest) } else { generation };
        let outcome = ocs.set(taken, remove, add, &broken);
        if outcome == selvedge_control::input::SetOutcome::Done {
            if generation < newest {
                self.truth.n_stale_writes += 1;
            }
            if echoed && ocs.pairs() != before {
                // Nobody waits for this answer: the change is told by the next poll.
                self.truth.meddled = Some(self.truth.now);
                self.truth.unpolled.insert(switch);
                self.poll_later();
            }
            self.turn(switch, remove.iter().chain(add));
            // Removing light from under a task is the controller's fault, and it shows.
            if !remove.is_empty() {
                let parts = self.parts_behind(switch, remove);
                self.lose_broken_among(|_, place| {
                    place.holds.iter().any(|it| parts.binary_search(&it.part).is_ok())
                });
            }
        }
        Some(Answer::SwitchSet { switch, generation, outcome })
    }

    /// Takes over into the light how the mirrors of these pairs' ports stand.
    fn turn<'a>(&mut self, switch: PartId, pairs: impl Iterator<Item = &'a Xconnect>) {
        let ocs = &self.truth.switches[&switch];
        for port in pairs.flat_map(|pair| [pair.north, pair.south]) {
            let to = ocs.joined(port).map(|it| self.fabric.port_at(switch, usize::from(it)));
            self.light.turn(self.fabric.port_at(switch, usize::from(port)), to);
        }
    }

    fn turn_all(&mut self, switch: PartId) {
        let ocs = &self.truth.switches[&switch];
        for port in 0..ocs.n_ports() {
            let joined = u16::try_from(port).ok().and_then(|it| ocs.joined(it));
            let to = joined.map(|it| self.fabric.port_at(switch, usize::from(it)));
            self.light.turn(self.fabric.port_at(switch, port), to);
        }
    }

    /// Light is seen at its far end too, so a part that is silent itself keeps nobody waiting.
    fn trained(&mut self, errand: Errand, parts: &[PartId]) -> Option<Answer> {
        let mut failed = self.dark_ends(parts);
        let n_ends: usize = parts.iter().map(|&part| self.outer_ends(part).count()).sum();
        let chance = u64::from(self.truth.dials.untrained.parts()) * n_ends as u64;
        let chance = Ppm::new(u32::try_from(chance.min(500_000)).expect("below a million"));
        if self.truth.delays.chance(chance) {
            let nth = self.truth.delays.index(n_ends);
            failed.extend(parts.iter().flat_map(|&part| self.outer_ends(part)).nth(nth));
        }
        failed.sort();
        failed.dedup();
        Some(Answer::LinksTrained { errand, failed })
    }

    // ── faults ──

    pub(super) fn next_fault(&mut self, kind: FaultKind) {
        let rate = u64::from(self.truth.rates.of(kind).parts());
        let n_things = self.n_things(kind) as u64;
        if rate == 0 || n_things == 0 {
            return;
        }
        let mean = Span::days(1).as_nanos() as u128 * 1_000_000 / u128::from(rate * n_things);
        let mean = Span::nanos(u64::try_from(mean).unwrap_or(u64::MAX / 64));
        let wait = self.truth.fault_dice.exponential(mean);
        let token = self.truth.rates_token;
        self.after(wait, Event::FaultDue { kind, token });
    }

    /// The target that a person means, in the form that the kind stands on.
    pub(super) fn named(&self, kind: FaultKind, target: Target) -> Result<Target, FaultError> {
        let found = self.fitting(kind, target).ok_or_else(|| FaultError::WrongTarget {
            kind,
            target: self.fabric.path(target),
            takes: takes(kind),
        })?;
        if self.stands(kind, found) {
            return Err(FaultError::Stands { kind, target: self.fabric.path(found) });
        }
        Ok(found)
    }

    /// A fault begins.
    pub(super) fn strike(&mut self, kind: FaultKind, target: Target) {
        self.truth.n_faults[kind.idx()] += 1;
        let mut partner = None;
        match (kind, target) {
            (FaultKind::ForeignChange, Target::Part(switch)) => return self.meddle(switch),
            (FaultKind::SwitchDown, Target::Part(switch)) => {
                if let Some(ocs) = self.truth.switches.get_mut(&switch) {
                    ocs.lose_mirrors();
                    self.turn_all(switch);
                }
            }
            (FaultKind::Miswired, Target::Port(port)) => {
                let Some(other) = self.swappable(port) else { return };
                self.light.swap(port, other);
                partner = Some(other);
            }
            (_kind, _target) => (),
        }
        let value = self.value(kind);
        self.truth.fault_id += 1;
        let id = self.truth.fault_id;
        self.truth.faults.insert(id, Fault { kind, target, partner, value, since: self.truth.now });
        self.light.relight(&self.fabric, &self.truth.faults);
        self.hearken();
        self.report_soon(id);
        self.lose_broken();
    }

    /// What is measured of a fault: beyond every golden threshold, within what devices count.
    fn value(&mut self, kind: FaultKind) -> u16 {
        let (low, high) = match kind {
            // Half the lanes, or a quarter, of 126 Gb/s.
            FaultKind::PcieDegraded => return [63, 31][self.truth.fault_dice.index(2)],
            FaultKind::LinkFlapping | FaultKind::LinkDegraded => (200, 20_000),
            FaultKind::PortLossHigh => (350, 900),
            FaultKind::LatentIntent => (100, 10_000),
            FaultKind::MachineDown
            | FaultKind::ChipFailed
            | FaultKind::LinkDown
            | FaultKind::SwitchDown
            | FaultKind::PortFailed
            | FaultKind::LatentExercise
            | FaultKind::Miswired
            | FaultKind::Silent
            | FaultKind::ForeignChange => return 0,
        };
        low + u16::try_from(self.truth.fault_dice.below(high - u64::from(low))).expect("small")
    }

    pub(super) fn report_soon(&mut self, id: u32) {
        let Some(fault) = self.truth.faults.get(&id) else { return };
        if fault.kind.symptom().is_none() {
            return;
        }
        let flaps = fault.kind == FaultKind::LinkFlapping;
        let event = if flaps { Event::Flap { fault: id } } else { Event::Report { fault: id } };
        self.after_drawn(limits::REPORT, event);
    }

    /// One flap of a link, and the next some time later.
    fn flap(&mut self, fault: u32) -> Option<Input> {
        let told = self.report(fault)?;
        let wait = self.truth.fault_dice.exponential(limits::FLAP_EVERY);
        self.after(wait, Event::Flap { fault });
        Some(told)
    }

    fn report(&self, id: u32) -> Option<Input> {
        let fault = self.truth.faults.get(&id)?;
        let symptom = fault.kind.symptom()?;
        let value = (fault.value != 0).then_some(u32::from(fault.value));
        Some(Input::Report { target: fault.target, symptom, value })
    }

    /// Takes away all faults on and in `target`; returns how many there were.
    pub(super) fn repair(&mut self, target: Target) -> usize {
        let gone: Vec<u32> = (self.truth.faults.iter())
            .filter(|(_, fault)| self.covers(target, fault))
            .map(|(&id, _)| id)
            .collect();
        self.truth.meddled = Some(self.truth.now);
        for id in &gone {
            let Some(fault) = self.truth.faults.remove(id) else { continue };
            if let (Target::Port(port), Some(partner)) = (fault.target, fault.partner) {
                self.light.swap(port, partner);
            }
            if let (FaultKind::SwitchDown, Target::Part(switch)) = (fault.kind, fault.target)
                && self.truth.switches.contains_key(&switch)
            {
                self.truth.unpolled.insert(switch);
                self.poll_later();
            }
        }
        self.light.relight(&self.fabric, &self.truth.faults);
        self.hearken();
        gone.len()
    }

    /// Whether work on `target` puts `fault` right: on the thing itself, on what lies in it, and
    /// on the cables that are plugged there.
    fn covers(&self, target: Target, fault: &Fault) -> bool {
        if target == fault.target {
            return true;
        }
        let inside = |port: PortId| match target {
            Target::Part(part) => self.fabric.part_of_port(port) == part,
            Target::Node(node) => self.is_in(self.fabric.node_of_port(port), node),
            Target::Port(it) => it == port,
            Target::Link(link) => {
                let link = self.fabric.link(link);
                link.source == port || link.target == port
            }
        };
        match fault.target {
            Target::Part(_) => false,
            Target::Node(node) => match target {
                Target::Part(part) => self.fabric.part_of_node(node) == part,
                Target::Node(whole) => self.is_in(node, whole),
                Target::Port(_) | Target::Link(_) => false,
            },
            Target::Port(port) => {
                let peer = self.fabric.peer_of(port);
                inside(port) || peer.is_some_and(inside) || fault.partner.is_some_and(inside)
            }
            Target::Link(link) => {
                let link = self.fabric.link(link);
                inside(link.source) || inside(link.target)
            }
        }
    }

    fn is_in(&self, node: selvedge_model::id::NodeId, whole: selvedge_model::id::NodeId) -> bool {
        let mut at = Some(node);
        while let Some(here) = at {
            if here == whole {
                return true;
            }
            at = self.fabric.parent_of(here);
        }
        false
    }

    fn crew_done(&mut self, case: CaseId) {
        let done = Stage::Done { at: self.truth.now };
        let Some(target) = self.truth.crew.stage(case, done) else { return };
        if !self.truth.crew_dice.chance(self.truth.dials.botch) {
            self.repair(target);
        }
        // What still is wrong nearby, or was put right badly, daemons see again.
        let part = match target {
            Target::Part(part) => part,
            Target::Node(node) => self.fabric.part_of_node(node),
            Target::Port(port) => self.fabric.part_of_port(port),
            Target::Link(link) => self.fabric.part_of_port(self.fabric.link(link).source),
        };
        for id in self.light.on_part[part].clone() {
            self.report_soon(id);
        }
    }

    /// Somebody turns a mirror: cuts a pair, or joins two free ports.
    fn meddle(&mut self, switch: PartId) {
        self.truth.meddled = Some(self.truth.now);
        let Some(ocs) = self.truth.switches.get_mut(&switch) else { return };
        let pairs = ocs.pairs();
        let cuts = !pairs.is_empty() && self.truth.fault_dice.below(2) == 0;
        if cuts {
            let pair = pairs[self.truth.fault_dice.index(pairs.len())];
            ocs.cut_at(pair.north);
            self.turn(switch, std::iter::once(&pair));
        } else {
            let n_ports = ocs.n_ports() as u64;
            let mut port = || u16::try_from(self.truth.fault_dice.below(n_ports)).expect("few");
            let pairs = [(); 16].map(|()| Xconnect { north: port(), south: port() });
            let Some(pair) = pairs.into_iter().find(|&pair| ocs.join_free(pair)) else { return };
            self.turn(switch, std::iter::once(&pair));
        }
        self.truth.unpolled.insert(switch);
        self.poll_later();
        self.lose_broken();
    }

    pub(super) fn poll_later(&mut self) {
        if self.truth.poll_at.is_some() || self.truth.unpolled.is_empty() {
            return;
        }
        let n_polls = self.truth.now.as_nanos() / limits::POLL_EVERY.as_nanos() + 1;
        let at = Moment::START + limits::POLL_EVERY.times(n_polls);
        self.truth.poll_at = Some(at);
        self.at(at, Event::Poll);
    }

    /// Looks which circuit switches answer, after faults have come or gone.  Each poll that one
    /// does not answer is told, and the first that it answers again.
    pub(super) fn hearken(&mut self) {
        let (now, n_polls) = (self.truth.now, polls_until(self.truth.now));
        let was = std::mem::take(&mut self.truth.mute);
        let faults = self.truth.faults.values();
        let mute: BTreeSet<PartId> = faults
            .filter(|it| matches!(it.kind, FaultKind::SwitchDown | FaultKind::Silent))
            .filter_map(|it| if let Target::Part(part) = it.target { Some(part) } else { None })
            .filter(|it| self.truth.switches.contains_key(it))
            .collect();
        for (&switch, since) in was.iter().filter(|it| !mute.contains(it.0)) {
            let n_missed = n_polls - polls_until(*since);
            self.truth.n_missed += n_missed;
            if n_missed != 0 {
                self.truth.unpolled.insert(switch);
                self.poll_later();
            }
        }
        for switch in mute {
            let since = was.get(&switch).copied();
            self.truth.mute.insert(switch, since.unwrap_or(now));
            if since.is_none() {
                self.miss(switch, now, 1);
            }
        }
    }

    /// What is told of a poll that a switch misses, if it is still mute.
    fn missed(&mut self, switch: PartId, since: Moment, n: u64) -> Option<Input> {
        if self.truth.mute.get(&switch) != Some(&since) {
            return None;
        }
        self.miss(switch, since, n + 1);
        Some(Input::Unanswered { switch })
    }

    /// The poll that is the `n`th that a switch misses since then.
    fn miss(&mut self, switch: PartId, since: Moment, n: u64) {
        let at = Moment::START + limits::POLL_EVERY.times(polls_until(since) + n);
        self.at(at, Event::Missed { switch, since, n });
    }

    /// A poll tells of the switches that have changed by themselves; all others only count.
    fn poll(&mut self, heard: &mut Vec<Input>) {
        self.truth.poll_at = None;
        for switch in std::mem::take(&mut self.truth.unpolled) {
            match self.read(switch) {
                Some(answer) => heard.push(Input::Answer(answer)),
                None => {
                    self.truth.unpolled.insert(switch);
                }
            }
        }
        self.poll_later();
    }

    /// Works the light out anew, after the fabric or everything else has changed.
    pub(super) fn relight_all(&mut self) {
        let switches: Vec<PartId> = self.truth.switches.keys().copied().collect();
        for switch in switches {
            self.turn_all(switch);
        }
        for fault in self.truth.faults.values() {
            if let (Target::Port(port), Some(partner)) = (fault.target, fault.partner) {
                self.light.swap(port, partner);
            }
        }
        self.light.relight(&self.fabric, &self.truth.faults);
    }

    // ── tasks ──

    pub(super) fn start(
        &mut self,
        job: JobId,
        attempt: u32,
        place: &Place,
        work: &Work,
        kept: u64,
    ) {
        if let Some(task) = self.truth.tasks.of(job) {
            if attempt < task.attempt {
                return;
            }
            if attempt == task.attempt {
                let (phase, kept) = (task.phase, task.kept);
                return self.repeat(job, attempt, phase, kept);
            }
        }
        let token = self.truth.tasks.begin(job, attempt, place.clone(), work, kept);
        self.after_drawn(limits::START, Event::TasksStart { job, token });
    }

    /// Says again what is known of an attempt.
    fn repeat(&mut self, job: JobId, attempt: u32, phase: Phase, kept: u64) {
        let answer = match phase {
            Phase::Starting => return,
            Phase::Running { .. } => Answer::Started { job, attempt },
            Phase::Over { exit } => Answer::Stopped { job, attempt, exit, kept },
        };
        self.after(Span::millis(100), Event::Say(Box::new(Input::Answer(answer))));
    }

    fn tasks_start(&mut self, job: JobId, token: u32) -> Option<Answer> {
        let task = self.truth.tasks.of_mut(job).filter(|task| task.token == token)?;
        task.phase = Phase::Running { since: self.truth.now };
        let (attempt, remaining) = (task.attempt, task.remaining());
        let (wait, how) = if self.truth.task_dice.chance(self.truth.dials.fail) {
            (self.truth.task_dice.span(Span::ZERO, remaining), End::Failed)
        } else {
            (remaining, End::Done)
        };
        self.after(wait, Event::TasksEnd { job, token, how });
        self.lose_broken_among(|it, _| it == job);
        Some(Answer::Started { job, attempt })
    }

    fn tasks_end(&mut self, job: JobId, token: u32, how: End) -> Option<Answer> {
        let now = self.truth.now;
        let task = self.truth.tasks.of(job).filter(|task| task.token == token)?;
        let (exit, kept) = match how {
            End::Done => (Exit::Done, task.n_steps()),
            End::Failed => (Exit::Failed(1), task.kept_at_death(now)),
            End::Saved => (Exit::Told, task.kept_by_checkpoint(now)),
            End::Killed => (Exit::Told, task.kept_at_death(now)),
            End::Lost { kept } => (Exit::Lost, kept),
        };
        let attempt = task.attempt;
        self.truth.tasks.end(job, exit, kept);
        Some(Answer::Stopped { job, attempt, exit, kept })
    }

    pub(super) fn notify(&mut self, job: JobId, attempt: u32, grace: Span) {
        let saving = self.truth.task_dice.span(limits::CHECKPOINT.0, limits::CHECKPOINT.1);
        let stubborn = self.truth.task_dice.chance(self.truth.dials.stubborn);
        let now = self.truth.now;
        let Some(task) = self.truth.tasks.of_mut(job) else { return };
        if task.attempt != attempt || !task.is_live() || stubborn {
            return;
        }
        if let Phase::Running { since } = task.phase
            && now.since(since) + saving >= task.remaining()
        {
            // It is done before it has written its checkpoint.
            return;
        }
        task.token += 1;
        let token = task.token;
        // Tasks that cannot save in time stop as they are.
        let (wait, how) = if saving <= grace { (saving, End::Saved) } else { (grace, End::Killed) };
        self.after(wait, Event::TasksEnd { job, token, how });
    }

    pub(super) fn kill(&mut self, job: JobId, attempt: u32) {
        let known =
            self.truth.tasks.of(job).map(|it| (it.attempt, it.is_live(), it.phase, it.kept));
        match known {
            Some((newest, ..)) if attempt < newest => (),
            Some((newest, false, phase, kept)) if newest == attempt => {
                self.repeat(job, attempt, phase, kept);
            }
            Some((newest, true, ..)) if newest == attempt => {
                let Some(task) = self.truth.tasks.of_mut(job) else { return };
                task.token += 1;
                let token = task.token;
                self.after_drawn(limits::KILL, Event::TasksEnd { job, token, how: End::Killed });
            }
            Some(_) | None => {
                // The start never arrived, and if it comes late it finds the attempt over.
                let kept = self.truth.tasks.bury(job, attempt);
                let exit = Exit::Told;
                let answer = Answer::Stopped { job, attempt, exit, kept };
                self.after(Span::millis(100), Event::Say(Box::new(Input::Answer(answer))));
            }
        }
    }

    /// The parts whose ends these pairs of a switch join, ascending.
    fn parts_behind(&self, switch: PartId, pairs: &[Xconnect]) -> Vec<PartId> {
        let ports = pairs.iter().flat_map(|it| [it.north, it.south]);
        let ends = ports
            .filter_map(|local| self.light.end(self.fabric.port_at(switch, usize::from(local))));
        let mut parts: Vec<PartId> = ends.map(|end| self.fabric.part_of_port(end)).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Tasks that have lost a chip or a link notice after a while.
    pub(super) fn lose_broken(&mut self) {
        self.lose_broken_among(|_, _| true);
    }

    /// The same for those tasks only that something was done to.
    fn lose_broken_among(&mut self, concerned: impl Fn(JobId, &Place) -> bool) {
        let broken: Vec<JobId> = (self.truth.tasks.live())
            .filter(|(_, task)| matches!(task.phase, Phase::Running { .. }))
            .filter(|(job, task)| {
                let place = task.place.as_ref().expect("live tasks hold hardware");
                concerned(*job, place)
                    && place.holds.iter().any(|&hold| self.is_broken(hold, place))
            })
            .map(|(job, _)| job)
            .collect();
        for job in broken {
            let now = self.truth.now;
            let Some(task) = self.truth.tasks.of_mut(job) else { continue };
            let kept = task.kept_at_death(now);
            task.token += 1;
            let token = task.token;
            self.after_drawn(limits::LOSE, Event::TasksEnd { job, token, how: End::Lost { kept } });
        }
    }
}

fn said_by_crew(what: Ask) -> Input {
    Input::Ask { by: CREW.to_owned(), what }
}

fn takes(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::MachineDown => "a machine",
        FaultKind::ChipFailed
        | FaultKind::PcieDegraded
        | FaultKind::LatentIntent
        | FaultKind::LatentExercise => "a chip",
        FaultKind::LinkDown | FaultKind::LinkFlapping | FaultKind::LinkDegraded => {
            "a link, or a port with one"
        }
        FaultKind::SwitchDown => "a switch",
        FaultKind::PortFailed | FaultKind::PortLossHigh => "a port of a circuit switch",
        FaultKind::Miswired => "a port of a machine with a fibre or cable to a switch",
        FaultKind::Silent => "a whole part",
        FaultKind::ForeignChange => "a circuit switch",
    }
}
