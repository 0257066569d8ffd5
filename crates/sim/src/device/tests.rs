use super::*;

use selvedge_control::input::{Readings, SetOutcome};
use selvedge_family::torus::{build, hardware};
use selvedge_model::fault::Symptom;
use selvedge_model::id::PoolId;
use selvedge_model::job::{Hold, Place, Work};

/// Two cubes joined in a ring along x at index 0 and 1, each looped on every other switch.
struct Bench {
    plant: Plant,
    fabric: Arc<Fabric>,
    cubes: [PartId; 2],
    now: Moment,
}

fn bench() -> Bench {
    let fabric = Arc::new(build::pods(1, 4).unwrap());
    let plant = Plant::new(
        Arc::clone(&fabric),
        1,
        Rates::NONE,
        Dials { untrained: Ppm::new(0), ..Dials::QUIET },
    );
    let cubes = ["cube0", "cube1"].map(|name| fabric.part_named(name).unwrap());
    let mut bench = Bench { plant, fabric, cubes, now: Moment::START };
    for switch in 0..hardware::SWITCHES {
        let cross = switch < hardware::FACE;
        let (a, b) = if cross { (1, 0) } else { (0, 1) };
        let add = [(0, a), (1, b)].map(|(north, south)| Xconnect { north, south: 64 + south });
        let answers = bench.ask(Command::SetSwitch {
            switch: PartId::at(switch),
            generation: Generation::new(1),
            remove: Vec::new(),
            add: add.to_vec(),
        });
        let done = matches!(&answers[..], [Answer::SwitchSet { outcome: SetOutcome::Done, .. }]);
        assert!(done, "{answers:?}");
    }
    bench
}

const CASE: Errand = Errand::Case(CaseId::new(0), 1);
const JOB: Errand = Errand::Job(JobId::new(0), 1);

impl Bench {
    /// Waits two minutes and returns what was heard.
    fn wait(&mut self) -> Vec<Input> {
        self.now = self.now + Span::mins(2);
        self.plant.advance(self.now)
    }

    fn ask(&mut self, command: Command) -> Vec<Answer> {
        self.plant.tell(self.now, &command);
        let heard = self.wait().into_iter();
        heard.filter_map(|it| if let Input::Answer(it) = it { Some(it) } else { None }).collect()
    }

    fn hold(&self, cube: usize) -> Hold {
        Hold { part: self.cubes[cube], seats: u64::MAX }
    }

    fn readings(&mut self, cube: usize) -> Readings {
        let hold = self.hold(cube);
        match self.ask(Command::Inspect { errand: CASE, hold }).pop() {
            Some(Answer::Inspected { readings, .. }) => readings,
            other => panic!("{other:?}"),
        }
    }

    fn exercise(&mut self) -> Vec<Target> {
        let holds = vec![self.hold(0), self.hold(1)];
        match self.ask(Command::Exercise { errand: JOB, holds }).pop() {
            Some(Answer::Exercised { failed, .. }) => failed,
            other => panic!("{other:?}"),
        }
    }

    fn peers(&mut self, cube: usize) -> Vec<Option<PortId>> {
        let hold = self.hold(cube);
        match self.ask(Command::Discover { errand: JOB, hold }).pop() {
            Some(Answer::Discovered { peers, .. }) => peers,
            other => panic!("{other:?}"),
        }
    }

    fn inject(&mut self, kind: FaultKind, path: &str) -> (Target, Vec<Input>) {
        let target = self.fabric.find(path);
        let target = target.unwrap_or_else(|| panic!("no {path}"));
        let spec = FaultSpec { kind, target: Some(target) };
        let target = self.plant.inject(self.now, spec).unwrap();
        (target, self.wait())
    }

    fn start(&mut self, job: u32, duration: Span) -> Vec<Answer> {
        self.ask(Command::Start {
            job: JobId::new(job),
            attempt: 1,
            place: Place::of(PoolId::new(0), vec![self.hold(0), self.hold(1)]),
            work: Work::Simulated {
                duration,
                step: Span::secs(1),
                checkpoint_every: Span::mins(1),
            },
            kept: 0,
            redundancy: 1,
        })
    }
}

/// What each sense tells of a fault: daemons, intent check, end-to-end check, chips.
fn senses(kind: FaultKind, path: &str) -> [bool; 4] {
    let mut bench = bench();
    let healthy = (bench.readings(0), bench.exercise(), bench.peers(0));
    assert_eq!(healthy.1, []);
    let (_, heard) = bench.inject(kind, path);
    let reported = heard.iter().any(|it| match it {
        Input::Report { symptom, .. } => Some(*symptom) == kind.symptom(),
        _other => false,
    });
    [
        reported,
        bench.readings(0) != healthy.0,
        !bench.exercise().is_empty(),
        bench.peers(0) != healthy.2,
    ]
}

#[test]
fn each_kind_of_fault_is_seen_by_the_senses_that_its_table_names() {
    let all = [true; 4];
    for (kind, path, seen) in [
        (FaultKind::MachineDown, "cube0/m05", all),
        (FaultKind::ChipFailed, "cube0/chip1.2.3", all),
        (FaultKind::PcieDegraded, "cube0/chip1.2.3", [true, true, false, false]),
        (FaultKind::LinkDown, "cube0/x/out/3", all),
        (FaultKind::LinkDown, "cube0/chip1.1.1/+x", all),
        (FaultKind::LinkFlapping, "cube0/x/out/3", [true, true, false, false]),
        (FaultKind::LinkDegraded, "cube0/y/in/3", [true, true, false, false]),
        (FaultKind::SwitchDown, "x7", all),
        (FaultKind::PortFailed, "x7/n0", all),
        (FaultKind::PortLossHigh, "x7/s0", [true, true, false, false]),
        (FaultKind::LatentIntent, "cube0/chip0.0.0", [false, true, false, false]),
        (FaultKind::LatentExercise, "cube0/chip0.0.0", [false, false, true, false]),
        (FaultKind::Miswired, "cube0/x/out/3", [false, false, false, true]),
    ] {
        assert_eq!(senses(kind, path), seen, "{kind} at {path}");
    }
}

#[test]
fn chips_see_across_the_mirrors_and_a_swapped_fibre_shows_the_wrong_cube() {
    let mut bench = bench();
    let end = |bench: &Bench, path: &str| match bench.fabric.find(path) {
        Some(Target::Port(port)) => port,
        other => panic!("{other:?}"),
    };
    let local = hardware::face_port(0, true, 3);
    assert_eq!(bench.peers(0)[local], Some(end(&bench, "cube1/x/in/3")));
    bench.inject(FaultKind::Miswired, "cube0/x/out/3");
    // Its fibre is swapped with cube1's, whose light goes to cube0.
    assert_eq!(bench.peers(0)[local], Some(end(&bench, "cube0/x/in/3")));
    let whole = bench.plant.misjoined(&[bench.cubes[0], bench.cubes[1]]);
    assert_eq!(whole, None, "within the two cubes all ends are still joined");
    bench.plant.clear(bench.now, Target::Port(end(&bench, "cube0/x/out/3"))).unwrap();
    assert_eq!(bench.peers(0)[local], Some(end(&bench, "cube1/x/in/3")));
}

#[test]
fn a_silent_part_answers_nothing_until_it_is_repaired() {
    let mut bench = bench();
    bench.inject(FaultKind::Silent, "cube0");
    let hold = bench.hold(0);
    assert_eq!(bench.ask(Command::Inspect { errand: CASE, hold }), []);
    assert_eq!(bench.ask(Command::Discover { errand: JOB, hold }), []);
    let holds = vec![bench.hold(1), hold];
    assert_eq!(bench.ask(Command::Exercise { errand: JOB, holds }), []);
    bench.inject(FaultKind::Silent, "x0");
    assert_eq!(bench.ask(Command::ReadSwitch { switch: PartId::new(0) }), []);
    bench.plant.clear_all(bench.now);
    // The first poll that is answered again.
    assert_eq!(bench.wait().len(), 1);
    assert_eq!(bench.ask(Command::Inspect { errand: CASE, hold }).len(), 1);
    assert_eq!(bench.ask(Command::ReadSwitch { switch: PartId::new(0) }).len(), 1);
}

/// Goal: nobody writes to a switch, and each poll that it misses is told all the same; so is the
/// first that it answers again.
#[test]
fn a_silent_switch_is_told_of_at_each_poll_that_it_misses_and_once_when_it_answers() {
    let mut bench = bench();
    let (silent, heard) = bench.inject(FaultKind::Silent, "x0");
    let Target::Part(switch) = silent else { panic!("{silent:?}") };
    let missed = |heard: &[Input]| {
        assert!(heard.iter().all(|it| *it == Input::Unanswered { switch }), "{heard:?}");
        heard.len() as u64
    };
    let n_missed = missed(&heard) + missed(&bench.wait()) + missed(&bench.wait());
    let n_switches = hardware::SWITCHES as u64;
    let n_all = bench.now.since(Moment::START).div(limits::POLL_EVERY) * n_switches;
    assert_eq!((n_missed, bench.plant.n_polls_missed(bench.now)), (6, 6));
    assert_eq!(bench.plant.n_polls(bench.now), n_all - 6);

    bench.plant.clear(bench.now, silent).unwrap();
    let heard = bench.wait();
    let [Input::Answer(Answer::SwitchRead { switch: read, .. })] = heard[..] else {
        panic!("{heard:?}")
    };
    assert_eq!(read, switch);
    assert_eq!(bench.wait(), []);

    // One that answers again before it was polled has nothing to tell.
    bench
        .plant
        .inject(bench.now, FaultSpec { kind: FaultKind::Silent, target: Some(silent) })
        .unwrap();
    bench.plant.clear(bench.now, silent).unwrap();
    assert_eq!(bench.wait(), []);
    assert_eq!(bench.plant.n_polls_missed(bench.now), 6);
    // A cube is not polled: what is silent of it shows when it is asked.
    assert_eq!(bench.inject(FaultKind::Silent, "cube0").1, []);
    assert_eq!(bench.wait(), []);
}

#[test]
fn a_switch_that_was_down_returns_dark_with_its_generation_and_the_poll_says_so() {
    let mut bench = bench();
    bench.inject(FaultKind::SwitchDown, "x0");
    let switch = PartId::new(0);
    assert_eq!(bench.ask(Command::ReadSwitch { switch }), []);
    bench.plant.clear(bench.now, Target::Part(switch)).unwrap();
    let generation = Generation::new(1);
    let read = Input::Answer(Answer::SwitchRead { switch, generation, pairs: Vec::new() });
    assert_eq!(bench.wait(), [read]);
    assert_eq!(bench.wait(), [], "an unchanged switch is polled and says nothing");
}

#[test]
fn a_foreign_change_is_told_by_the_next_poll() {
    let mut bench = bench();
    let (_, heard) = bench.inject(FaultKind::ForeignChange, "x0");
    let [Input::Answer(Answer::SwitchRead { switch, pairs, .. })] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert_eq!(*switch, PartId::new(0));
    assert_ne!(pairs.len(), 2);
}

#[test]
fn writes_take_as_long_as_published_and_keep_their_order() {
    let mut bench = bench();
    let mut took = Vec::new();
    for n in 0..2000u64 {
        let switch = PartId::new(47);
        let (remove, add) = (Vec::new(), Vec::new());
        let generation = Generation::new(2 + n);
        bench.plant.tell(bench.now, &Command::SetSwitch { switch, generation, remove, add });
        let at = bench.plant.next_at().unwrap();
        took.push(at - bench.now);
        bench.now = at;
        assert_eq!(bench.plant.advance(at).len(), 1);
    }
    took.sort();
    assert!(Span::nanos(1_100_000) < took[1000] && took[1000] < Span::nanos(1_250_000));
    assert!(took[1980] < Span::millis(3), "{}", took[1980]);
}

#[test]
fn a_port_that_failed_is_refused_by_its_place() {
    let mut bench = bench();
    bench.inject(FaultKind::PortFailed, "z3/n2");
    let switch = bench.fabric.part_named("z3").unwrap();
    let add = vec![Xconnect { north: 2, south: 66 }];
    let generation = Generation::new(2);
    let answers = bench.ask(Command::SetSwitch { switch, generation, remove: Vec::new(), add });
    let outcome = SetOutcome::Refused { ports: vec![2] };
    assert_eq!(answers, [Answer::SwitchSet { switch, generation, outcome }]);
}

#[test]
fn tasks_run_their_time_and_answers_are_repeated_when_told_again() {
    let mut bench = bench();
    let job = JobId::new(7);
    let started = Answer::Started { job, attempt: 1 };
    assert_eq!(bench.start(7, Span::mins(3)), std::slice::from_ref(&started));
    assert_eq!(bench.start(7, Span::mins(3))[0], started);
    let stopped = Answer::Stopped { job, attempt: 1, exit: Exit::Done, kept: 180 };
    bench.wait();
    assert_eq!(bench.start(7, Span::mins(3)), std::slice::from_ref(&stopped));
    assert_eq!(bench.ask(Command::Kill { job, attempt: 1 }), [stopped]);
}

#[test]
fn the_end_drawn_for_one_attempt_does_not_end_the_next() {
    let mut bench = bench();
    let job = JobId::new(0);
    bench.start(0, Span::mins(30));
    bench.ask(Command::Kill { job, attempt: 1 });
    let (place, work) = (
        Place::of(PoolId::new(0), vec![bench.hold(0)]),
        Work::Simulated {
            duration: Span::mins(30),
            step: Span::secs(1),
            checkpoint_every: Span::mins(1),
        },
    );
    bench.wait();
    let begun = bench.now;
    bench
        .plant
        .tell(bench.now, &Command::Start { job, attempt: 2, place, work, kept: 0, redundancy: 1 });
    let ended = loop {
        let at = bench.plant.next_at().unwrap();
        let heard = bench.plant.advance(at);
        if heard.iter().any(|it| matches!(it, Input::Answer(Answer::Stopped { .. }))) {
            break at;
        }
    };
    assert!(Span::mins(30) <= ended - begun, "after {}", ended - begun);
}

#[test]
fn a_noticed_job_saves_what_it_has_if_the_grace_is_long_enough() {
    // It has run for some 3:55; three minutes of that are in checkpoints.
    for (grace, kept) in [(Span::secs(60), 181..=290), (Span::secs(1), 180..=180)] {
        let mut bench = bench();
        let job = JobId::new(0);
        bench.start(0, Span::hours(5));
        bench.wait();
        bench.plant.tell(bench.now, &Command::Notify { job, attempt: 1, grace });
        let heard = bench.wait();
        let [Input::Answer(Answer::Stopped { exit: Exit::Told, kept: steps, .. })] = &heard[..]
        else {
            panic!("{heard:?}")
        };
        assert!(kept.contains(steps), "{steps} of {kept:?}");
    }
}

#[test]
fn tasks_lose_their_work_since_the_last_checkpoint_with_their_hardware() {
    for (kind, path) in [
        (FaultKind::MachineDown, "cube1/m00"),
        (FaultKind::LinkDown, "cube1/z/in/9"),
        (FaultKind::SwitchDown, "y4"),
        (FaultKind::PortFailed, "x4/s1"),
    ] {
        let mut bench = bench();
        bench.start(0, Span::hours(5));
        let (_, heard) = bench.inject(kind, path);
        let lost = heard.iter().any(|it| match it {
            Input::Answer(Answer::Stopped { exit, kept, .. }) => *exit == Exit::Lost && *kept == 60,
            _other => false,
        });
        assert!(lost, "{kind}: {heard:?}");
    }
}

#[test]
fn the_crew_comes_takes_repairs_and_says_so_once() {
    let mut bench = bench();
    let (target, _) = bench.inject(FaultKind::MachineDown, "cube2/m05");
    let case = CaseId::new(3);
    let call = Command::CallCrew { case, target, symptom: Symptom::MachineDown };
    bench.plant.tell(bench.now, &call);
    bench.plant.tell(bench.now, &call);
    bench.now = bench.now + Span::days(1);
    let by = CREW.to_owned();
    let take = Input::Ask { by: by.clone(), what: Ask::TakeRepair { case } };
    let finish = Input::Ask { by, what: Ask::FinishRepair { case } };
    assert_eq!(bench.plant.advance(bench.now), [take, finish]);
    assert_eq!(bench.plant.faults().count(), 0);
}

#[test]
fn a_killed_attempt_that_never_began_does_not_begin_late() {
    let mut bench = bench();
    let job = JobId::new(0);
    let stopped = Answer::Stopped { job, attempt: 1, exit: Exit::Told, kept: 0 };
    assert_eq!(bench.ask(Command::Kill { job, attempt: 1 }), std::slice::from_ref(&stopped));
    assert_eq!(bench.start(0, Span::hours(1)), [stopped]);
}

#[test]
fn a_saved_plant_goes_on_as_the_one_that_was_never_stopped() {
    let mut bench = bench();
    bench
        .plant
        .set_rates(bench.now, Rates::published().with(FaultKind::Miswired, Ppm::new(20_000)));
    bench.start(0, Span::hours(50));
    let fabric = Arc::clone(&bench.fabric);
    let mut restored = Plant::restore(Arc::clone(&fabric), &bench.plant.save()).unwrap();
    let mut n_heard = 0;
    for _ in 0..60 {
        bench.now = bench.now + Span::days(1);
        let heard = bench.plant.advance(bench.now);
        n_heard += heard.len();
        assert_eq!(restored.advance(bench.now), heard);
        let hold = bench.hold(0);
        assert_eq!(restored.discover(hold), bench.plant.discover(hold));
        assert_eq!(restored.inspect(hold), bench.plant.inspect(hold));
    }
    assert!(5 < n_heard, "{n_heard}");
    let err = Plant::restore(Arc::clone(&bench.fabric), b"{\"format\":9").unwrap_err();
    assert!(matches!(err, PlantError::Damaged { .. }));
}

#[test]
fn a_fault_that_cannot_happen_there_is_refused_with_what_it_takes() {
    let mut bench = bench();
    let target = Some(Target::Part(PartId::new(0)));
    let inject = |bench: &mut Bench, kind, target| {
        bench.plant.inject(bench.now, FaultSpec { kind, target }).unwrap_err().to_string()
    };
    assert_eq!(
        inject(&mut bench, FaultKind::MachineDown, target),
        "machine_down cannot happen to x0; it takes a machine"
    );
    bench.inject(FaultKind::Silent, "x0");
    assert_eq!(
        inject(&mut bench, FaultKind::Silent, target),
        "x0 has silent already; clear it first"
    );
    let cube = Target::Part(bench.cubes[0]);
    let err = bench.plant.clear(bench.now, cube).unwrap_err().to_string();
    assert_eq!(err, "cube0 has no fault; `fault list` shows those that stand");
}

#[test]
fn published_rates_give_as_many_faults_as_published() {
    let fabric = Arc::new(build::pods(1, 64).unwrap());
    let mut plant = Plant::new(fabric, 5, Rates::published(), Dials::QUIET);
    // Nobody repairs, so what is drawn is what is left: count over 100 days.
    for day in 1..=100u64 {
        plant.advance(Moment::START + Span::days(day));
        plant.clear_all(Moment::START + Span::days(day));
    }
    let n = plant.n_faults();
    // 1,024 machines at 0.08 % a day; 6,144 fibres and 5,120 cables inside cubes at 0.005 %;
    // 48 switches at 0.04 %.
    let machines = n[FaultKind::MachineDown.idx()];
    assert!((60..=105).contains(&machines), "{machines}");
    let links = n[FaultKind::LinkDown.idx()];
    assert!((38..=78).contains(&links), "{links}");
    assert!(n[FaultKind::SwitchDown.idx()] <= 6);
}
