//! A world in miniature: devices that answer after fixed times and misbehave as a script says.
//!
//! A script is lines of `verb argument …`; `World::play` lists the verbs.  What the core notes is
//! written down with its moment; what it is refused, and what a script asks to be shown, too.

mod devices;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use expect_test::Expect;
use selvedge_model::fault::{Mark, Symptom, Target};
use selvedge_model::id::{CaseId, JobId, PartId, PlanId, PortId};
use selvedge_model::job::{Demand, JobSpec, Work};
use selvedge_model::unit::{Generation, Moment, Span};

use crate::core::{Adopted, Core, Refused, VERSION};
use crate::input::{Answer, Ask, Exit, Input, JobOrder};
use crate::note::Note;
use crate::output::{Output, Request};
use crate::preflight::even;
use crate::settings::Settings;
use devices::{Mirrors, Tasks};

/// Plays a script on a pod of four cubes and compares what was written down.
pub(super) fn check(script: &str, expect: Expect) {
    check_on(&pods(&[4]), script, expect);
}

/// The same on another plant.
pub(super) fn check_on(plant: &str, script: &str, expect: Expect) {
    let mut world = World::new(plant, Settings::simulated());
    world.play(script);
    world.replay_all();
    expect.assert_eq(&world.lines);
}

/// The plant text of pods with so many cubes each.
pub(super) fn pods(n_cubes: &[usize]) -> String {
    let mut text = "format = 1\nname = \"t\"\n".to_owned();
    for n in n_cubes {
        writeln!(text, "[[pod]]\nfamily = \"tpuv4\"\ncubes = {n}").unwrap();
    }
    text
}

/// One accepted input with the plans adopted for it.
pub(super) type Row = (Moment, Input, Vec<Adopted>);

#[derive(Clone)]
pub(super) struct World {
    pub(super) core: Core,
    pub(super) now: Moment,
    pub(super) records: Vec<Row>,
    pub(super) lines: String,
    pub(super) jobs: BTreeMap<String, JobId>,
    due: BTreeMap<(Moment, u64), Input>,
    n_due: u64,
    wake: Option<Moment>,
    switches: BTreeMap<PartId, Mirrors>,
    tasks: BTreeMap<JobId, Tasks>,
    silent: BTreeSet<PartId>,
    dark: BTreeSet<Target>,
    bad: BTreeSet<Target>,
    sick: BTreeSet<Target>,
    crossed: BTreeMap<PortId, PortId>,
    failing: BTreeMap<JobId, (Exit, Span)>,
    stubborn: BTreeSet<JobId>,
    crew: Option<Span>,
    quiet: bool,
    stages: bool,
    pub(super) plans: Plans,
}

/// When what is planned outside the core comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plans {
    Promptly,
    After(Span),
    Never,
}

impl World {
    pub(super) fn new(plant: &str, settings: Settings) -> Self {
        let mut world = Self {
            core: Core::new(),
            now: Moment::START,
            records: Vec::new(),
            lines: String::new(),
            jobs: BTreeMap::new(),
            due: BTreeMap::new(),
            n_due: 0,
            wake: None,
            switches: BTreeMap::new(),
            tasks: BTreeMap::new(),
            silent: BTreeSet::new(),
            dark: BTreeSet::new(),
            bad: BTreeSet::new(),
            sick: BTreeSet::new(),
            crossed: BTreeMap::new(),
            failing: BTreeMap::new(),
            stubborn: BTreeSet::new(),
            crew: None,
            quiet: true,
            stages: false,
            plans: Plans::Promptly,
        };
        world.tell(Input::Begin { plant: plant.to_owned(), settings }).unwrap();
        world.run(Span::secs(5));
        world.quiet = false;
        world
    }

    /// Carries out a script, line by line.
    ///
    /// ```text
    /// submit NAME SHAPE|hosts=N [for=1h] [limit=2h] [prio=5] [owner=o] [firm] [retries=2] [key=k]
    ///     [redundancy=3]
    /// cancel|hold|release|requeue NAME     run 10m     level repair     restart
    /// drain|undrain WHO PATH     take|finish WHO CASE     report PATH SYMPTOM     move PORT PORT
    /// mark WHO PATH RANK SET CALL
    /// maintain N WORK PATH …     defragment PLAN     show     stages on|off     crew 10m
    /// plans promptly|never|10s
    /// broken PORT   refuses SWITCH   silent PART   dark PORT   bad CHIP   sick CHIP
    /// cross END END
    /// heal PATH     ahead SWITCH GENERATION     fails NAME STATUS 1m     stubborn NAME
    /// ```
    pub(super) fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
            if line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            self.step(&words);
        }
    }

    fn step(&mut self, words: &[&str]) {
        match *words {
            ["submit", name, shape, ref options @ ..] => self.submit(name, shape, options),
            ["run", span] => self.run(Span::parse(span).unwrap()),
            [order @ ("cancel" | "hold" | "release" | "requeue"), name] => {
                let order = match order {
                    "cancel" => JobOrder::Cancel,
                    "hold" => JobOrder::Hold,
                    "release" => JobOrder::Release,
                    _ => JobOrder::Requeue,
                };
                self.ask("ops", Ask::Job { job: self.jobs[name], order });
            }
            ["level", level] => self.ask("ops", Ask::SetLevel { level: parsed(level) }),
            ["restart"] => self.restart(),
            ["drain", who, path] => {
                let target = self.find(path);
                self.ask(who, Ask::Drain { target, why: "asked".to_owned() });
            }
            ["undrain", who, path] => self.ask(who, Ask::Undrain { target: self.find(path) }),
            ["take", who, case] => self.ask(who, Ask::TakeRepair { case: case_id(case) }),
            ["finish", who, case] => self.ask(who, Ask::FinishRepair { case: case_id(case) }),
            ["report", path, symptom] => {
                let (target, symptom): (_, Symptom) = (self.find(path), parsed(symptom));
                let told = self.tell(Input::Report { target, symptom, value: None });
                self.say_refused(told);
            }
            ["mark", who, path, rank, set, call] => {
                let mark = Mark {
                    job: self.jobs.values().next().copied(),
                    rank: rank.parse().unwrap(),
                    set: set.parse().unwrap(),
                    call: call.parse().unwrap(),
                    byte: Some(17),
                };
                let (by, target) = (who.to_owned(), self.find(path));
                let told = self.tell(Input::Marked { by, target, mark });
                self.say_refused(told);
            }
            ["move", from, to] => {
                let (from, to) = (self.port(from), self.port(to));
                self.ask("ops", Ask::MovePort { from, to });
            }
            ["maintain", n, work, ref paths @ ..] => {
                let targets = paths.iter().map(|it| self.find(it)).collect();
                let (n_at_once, work) = (n.parse().unwrap(), Span::parse(work).unwrap());
                let why = "planned".to_owned();
                self.ask("ops", Ask::Maintain { targets, n_at_once, work, why });
            }
            ["defragment", plan] => {
                let plan = PlanId::new(plan.parse().unwrap());
                self.ask("ops", Ask::Defragment { plan });
            }
            ["show"] => self.show(),
            ["stages", word] => self.stages = word == "on",
            ["plans", "promptly"] => self.plans = Plans::Promptly,
            ["plans", "never"] => self.plans = Plans::Never,
            ["plans", span] => self.plans = Plans::After(Span::parse(span).unwrap()),
            _ => self.misbehave(words),
        }
    }

    /// What makes devices, links and tasks differ from the plan.
    fn misbehave(&mut self, words: &[&str]) {
        match *words {
            ["crew", span] => self.crew = Some(Span::parse(span).unwrap()),
            ["broken", port] => {
                let (switch, local) = self.core.fabric().port_local(self.port(port));
                self.switches.entry(switch).or_default().broken.insert(local as u16);
            }
            ["refuses", switch] => {
                let switch = self.part(switch);
                self.switches.entry(switch).or_default().refuses_all = true;
            }
            ["ahead", switch, generation] => {
                let switch = self.part(switch);
                let generation = Generation::new(generation.parse().unwrap());
                self.switches.entry(switch).or_default().generation = generation;
            }
            ["silent", part] => {
                let part = self.part(part);
                self.fall_silent(part);
            }
            ["dark", port] => {
                let link = self.core.fabric().link_from(self.port(port)).unwrap();
                self.dark.insert(Target::Link(even(link)));
            }
            ["bad", path] => {
                let target = self.find(path);
                self.bad.insert(target);
            }
            ["sick", path] => {
                let target = self.find(path);
                self.sick.insert(target);
            }
            ["cross", a, b] => {
                let (a, b) = (self.port(a), self.port(b));
                self.crossed.insert(a, b);
                self.crossed.insert(b, a);
            }
            ["heal", path] => self.heal(self.find(path)),
            ["fails", name, status, after] => {
                let after = Span::parse(after).unwrap();
                let exit = match status {
                    "lost" => Exit::Lost,
                    status => Exit::Failed(status.parse().unwrap()),
                };
                self.failing.insert(self.jobs[name], (exit, after));
            }
            ["stubborn", name] => {
                self.stubborn.insert(self.jobs[name]);
            }
            _ => panic!("no such line: {words:?}"),
        }
    }

    fn heal(&mut self, target: Target) {
        let named = match target {
            Target::Port(port) => {
                self.core.fabric().link_from(port).map(|it| Target::Link(even(it)))
            }
            Target::Part(_) | Target::Node(_) | Target::Link(_) => None,
        };
        for target in [Some(target), named].into_iter().flatten() {
            self.dark.remove(&target);
            self.bad.remove(&target);
            self.sick.remove(&target);
            let fabric = self.core.fabric();
            match target {
                Target::Part(part) => {
                    self.silent.remove(&part);
                    if let Some(mirrors) = self.switches.get_mut(&part) {
                        mirrors.refuses_all = false;
                        mirrors.broken.clear();
                    }
                }
                Target::Link(link) => {
                    let link = fabric.link(link);
                    for port in [link.source, link.target] {
                        let (part, local) = fabric.port_local(port);
                        if let Some(mirrors) = self.switches.get_mut(&part) {
                            mirrors.broken.remove(&(local as u16));
                        }
                    }
                }
                Target::Node(_) | Target::Port(_) => (),
            }
        }
    }

    fn submit(&mut self, name: &str, shape: &str, options: &[&str]) {
        let demand = match shape.strip_prefix("hosts=") {
            Some(n) => Demand::Parts(n.parse().unwrap()),
            None => Demand::Shape(shape.to_owned()),
        };
        let mut spec = spec(name, demand);
        let mut key = None;
        for option in options {
            let (word, value) = option.split_once('=').unwrap_or((option, ""));
            let Work::Simulated { duration, .. } = &mut spec.work else { unreachable!() };
            match word {
                "for" => *duration = Span::parse(value).unwrap(),
                "limit" => spec.limit = Some(Span::parse(value).unwrap()),
                "prio" => spec.priority = value.parse().unwrap(),
                "owner" => value.clone_into(&mut spec.owner),
                "firm" => spec.preemptible = false,
                "retries" => spec.retries = value.parse().unwrap(),
                "key" => key = Some(value.to_owned()),
                "redundancy" => spec.redundancy = value.parse().unwrap(),
                _ => panic!("no such option: {option}"),
            }
        }
        let n = self.core.state().jobs.len();
        let what = Ask::Submit { key, spec };
        let told = self.tell(Input::Ask { by: "ops".to_owned(), what });
        if self.core.state().jobs.len() != n {
            self.jobs.insert(name.to_owned(), JobId::at(n));
        }
        self.say_refused(told);
    }

    pub(super) fn ask(&mut self, by: &str, what: Ask) {
        let told = self.tell(Input::Ask { by: by.to_owned(), what });
        self.say_refused(told);
    }

    /// Applies a plant text made from version `expected`.
    pub(super) fn apply(&mut self, plant: &str, expected: u64) {
        self.ask("ops", Ask::ApplyPlant { plant: plant.to_owned(), expected });
    }

    fn say_refused(&mut self, told: Result<(), Refused>) {
        if let Err(refused) = told {
            writeln!(self.lines, "  refused: {refused}").unwrap();
        }
    }

    /// Offers one input and carries out what comes of it.
    pub(super) fn tell(&mut self, input: Input) -> Result<(), Refused> {
        let before = self.core.digest();
        let told = self.core.handle(self.now, input.clone());
        if told.is_err() {
            assert_eq!(before, self.core.digest(), "refused, but not without a trace: {input:?}");
        }
        let plans = self.core.take_adopted();
        let (mut commands, mut requests) = (Vec::new(), Vec::new());
        while let Some(output) = self.core.poll() {
            match output {
                Output::Do(command) => commands.push(command),
                Output::Plan(request) => requests.push(request),
                Output::WakeAt(at) => self.wake = Some(self.wake.map_or(at, |it| it.min(at))),
                Output::Note(note) => self.write(&note),
            }
        }
        let violations = self.core.check();
        assert!(violations.is_empty(), "after {input:?}: {violations:?}\n{}", self.lines);
        told?;
        self.records.push((self.now, input, plans));
        commands.into_iter().for_each(|command| self.carry_out(command));
        requests.into_iter().for_each(|request| self.plan(request));
        Ok(())
    }

    /// Plans, on what there is as it is asked for, and answers in a while.
    fn plan(&mut self, request: Request) {
        // A later request of the same moment has taken its place.
        let Some(question) = self.core.question(request) else { return };
        match self.plans {
            Plans::Promptly => self.tell(question.answer()).unwrap(),
            Plans::After(span) => self.after(span, question.answer()),
            Plans::Never => (),
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            let next = self.due.first_key_value().map(|((at, _), _)| *at);
            let wake = self.wake.unwrap_or(Moment::NEVER);
            let at = next.unwrap_or(Moment::NEVER).min(wake);
            if until < at {
                break;
            }
            self.now = self.now.max(at);
            if next == Some(at) {
                let (_, input) = self.due.pop_first().expect("looked at");
                let input = match input {
                    Input::Unanswered { switch } => self.polled(switch),
                    input => Some(input),
                };
                let Some(input) = input else { continue };
                let is_crew = matches!(&input, Input::Ask { .. });
                match self.tell(input) {
                    Ok(()) | Err(Refused::Stale | Refused::NothingDue) => (),
                    Err(refused) if is_crew => drop(refused),
                    Err(refused) => writeln!(self.lines, "  refused: {refused}").unwrap(),
                }
            } else {
                self.wake = None;
                drop(self.tell(Input::Tick));
                if self.wake.is_none() {
                    self.wake = self.core.state().timers.first().map(|it| it.0);
                }
            }
        }
        self.now = until;
    }

    /// The process dies and comes back from its snapshot; answers on their way are lost.
    pub(super) fn restart(&mut self) {
        self.due.retain(|_, it| matches!(it, Input::Ask { .. } | Input::Unanswered { .. }));
        let bytes = self.core.snapshot();
        self.core = Core::restore(&bytes).unwrap();
        assert_eq!(self.core.snapshot(), bytes);
        self.wake = None;
        self.tell(Input::Restarted).unwrap();
        let live: Vec<JobId> = self.tasks.keys().copied().collect();
        // The ends that were on their way are still to come: tasks do not die with the core.
        for job in live {
            self.plan_end(job);
        }
    }

    /// Replays every record on a new core, planned anew and as another version's record, with a
    /// restart from a snapshot half way.
    pub(super) fn replay_all(&self) {
        self.replay_as(&[VERSION, "another"]);
    }

    /// The same as the record of each of these versions.
    pub(super) fn replay_as(&self, versions: &[&str]) {
        for version in versions {
            let mut core = Core::new();
            for (idx, (now, input, plans)) in self.records.iter().enumerate() {
                if idx == self.records.len() / 2 {
                    core = Core::restore(&core.snapshot()).unwrap();
                }
                let replayed = core.replay(*now, input.clone(), plans, version);
                replayed.unwrap_or_else(|err| panic!("{idx} {input:?} as {version}: {err}"));
            }
            assert!(core.snapshot() == self.core.snapshot(), "replay as {version} differs");
        }
    }

    fn after(&mut self, span: Span, input: Input) {
        self.n_due += 1;
        self.due.insert((self.now + span, self.n_due), input);
    }

    fn answer(&mut self, secs: u64, answer: Answer) {
        self.after(Span::secs(secs), Input::Answer(answer));
    }

    fn write(&mut self, note: &Note) {
        if self.quiet || matches!(note, Note::JobStaged { .. }) && !self.stages {
            return;
        }
        let text = compact(&self.core, &format!("{note:?}"));
        let secs = self.now.since(Moment::START).as_secs();
        writeln!(self.lines, "{secs}s {text}").unwrap();
    }

    /// Writes down where jobs, drains and open cases stand.
    fn show(&mut self) {
        let state = self.core.state();
        let mut lines = String::new();
        for (name, &job) in &self.jobs {
            let known = &state.jobs[job];
            let place = known.place.as_ref().map(|place| {
                let on = place.holds.iter().map(|hold| {
                    let part = &self.core.fabric().part(hold.part).name;
                    let all = self.core.fabric().template_of(hold.part).all_seats();
                    if hold.seats == all {
                        part.to_string()
                    } else {
                        format!("{part}:{:x}", hold.seats)
                    }
                });
                on.collect::<Vec<_>>().join(" ")
            });
            let place = place.map(|it| format!(" on {it}")).unwrap_or_default();
            let state = compact(&self.core, &format!("{:?}", known.state));
            writeln!(lines, "  {name} attempt {} {state}{place}", known.attempt).unwrap();
        }
        for (target, drains) in &state.drains {
            let by = drains.iter().map(|it| format!("{:?}", it.by)).collect::<Vec<_>>().join(", ");
            writeln!(lines, "  out {} by {by}", self.core.fabric().path(*target)).unwrap();
        }
        for &case in state.open_cases.values() {
            let known = &state.cases[case];
            let text = format!("{:?} {:?} {:?}", known.target, known.symptom, known.state);
            writeln!(lines, "  {case} {}", compact(&self.core, &text)).unwrap();
        }
        self.lines.push_str(&lines);
    }

    pub(super) fn find(&self, path: &str) -> Target {
        self.core.fabric().find(path).unwrap_or_else(|| panic!("there is no {path}"))
    }

    fn part(&self, path: &str) -> PartId {
        let Target::Part(part) = self.find(path) else { panic!("{path} is no part") };
        part
    }

    fn port(&self, path: &str) -> PortId {
        let Target::Port(port) = self.find(path) else { panic!("{path} is no port") };
        port
    }
}

/// A job of one hour that writes a checkpoint every ten minutes.
pub(super) fn spec(name: &str, demand: Demand) -> JobSpec {
    JobSpec {
        name: name.to_owned(),
        owner: "o".to_owned(),
        project: "p".to_owned(),
        demand,
        priority: 0,
        preemptible: true,
        limit: None,
        retries: 0,
        redundancy: 1,
        work: Work::Simulated {
            duration: Span::hours(1),
            step: Span::secs(1),
            checkpoint_every: Span::mins(10),
        },
    }
}

/// A note's debug form without its punctuation, and with paths for ids of the plant.
fn compact(core: &Core, text: &str) -> String {
    type Named = (&'static str, fn(u32) -> Target);
    let mut text = text.replace(" { ", " ").replace(" }", "").replace(", ", " ");
    let fabric = core.fabric();
    let kinds: [Named; 4] = [
        ("Part(part", |it| Target::Part(PartId::new(it))),
        ("Node(node", |it| Target::Node(selvedge_model::id::NodeId::new(it))),
        ("Port(port", |it| Target::Port(PortId::new(it))),
        ("Link(link", |it| Target::Link(selvedge_model::id::LinkId::new(it))),
    ];
    for (opening, target) in kinds {
        while let Some(start) = text.find(opening) {
            let digits = start + opening.len();
            let end = digits + text[digits..].find(')').unwrap();
            let path = fabric.path(target(text[digits..end].parse().unwrap()));
            text.replace_range(start..=end, &path);
        }
    }
    if let Some(start) = text.find("switch: part") {
        let digits = start + "switch: part".len();
        let end = text[digits..].find(' ').map_or(text.len(), |it| digits + it);
        let part = PartId::new(text[digits..end].parse().unwrap());
        let name = format!("switch: {}", fabric.part(part).name);
        text.replace_range(start..end, &name);
    }
    text
}

fn case_id(text: &str) -> CaseId {
    CaseId::new(text.trim_start_matches("case").parse().unwrap())
}

fn parsed<T: serde::de::DeserializeOwned>(word: &str) -> T {
    serde_json::from_str(&format!("{word:?}")).unwrap()
}
