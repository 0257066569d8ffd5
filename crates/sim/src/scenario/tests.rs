use super::*;
use crate::fault::{FaultKind, FaultSpec};
use expect_test::{Expect, expect};
use selvedge_model::id::JobId;

fn check(text: &str, expect: Expect) {
    expect.assert_eq(&Scenario::parse("s.toml", text).unwrap_err().to_string());
}

const HEAD: &str = "format = 1\nname = \"t\"\n[plant]\ncubes = 4\n";

#[test]
fn a_scenario_says_plant_jobs_rates_and_events() {
    let text = format!(
        "{HEAD}[jobs]\nmix = 10\nload = 0.5\nscale = \"durations\"\n\
         [rates.chip_failed]\nppm_per_day = 12\nsource = \"assumed\"\n\
         [dials]\nlose_ppm = 7\n[means]\npreempt = false\n\
         [[event]]\nat = \"2h\"\nfault = \"machine_down\"\npath = \"cube1/m05\"\n"
    );
    let scenario = Scenario::parse("s.toml", &text).unwrap();
    assert_eq!(scenario.plant, PlantFrom::Pods { pods: 1, cubes: 4 });
    let mix = JobsFrom::Mix { n_jobs: 10, load: Ppm::new(500_000), scaled: Scaled::Durations };
    assert_eq!(scenario.jobs, mix);
    assert_eq!(scenario.rates.of(FaultKind::ChipFailed), Ppm::new(12));
    assert_eq!(scenario.rates.of(FaultKind::MachineDown), Ppm::new(800));
    assert_eq!(scenario.dials.lose, Ppm::new(7));
    assert!(!scenario.settings.means.preempt && scenario.settings.means.backfill);
    assert_eq!(scenario.events[0].0, Moment::START + Span::hours(2));
}

#[test]
fn errors_name_the_place_and_what_would_be_right() {
    check(
        "format = 9\n",
        expect![[r#"
        s.toml:1:10: format 9 is newer than this program reads
         1 | format = 9
           |          ^
           right: format = 1, or a newer program"#]],
    );
    check(
        &format!("{HEAD}[rates.gremlins]\nppm_per_day = 1\nsource = \"x\"\n"),
        expect![[r#"
            s.toml:5:8: rates knows no fault called "gremlins"
             5 | [rates.gremlins]
               |        ^^^^^^^^
               right: one of machine_down, chip_failed, pcie_degraded, link_down, link_flapping, link_degraded, switch_down, port_failed, port_loss_high, latent_intent, latent_exercise, miswired, silent, foreign_change"#]],
    );
    check(
        &format!("{HEAD}[rates.silent]\nppm_per_day = 1\nsource = \"\"\n"),
        expect![[r#"
            s.toml:7:10: rates.silent.source is empty
             7 | source = ""
               |          ^^
               right: where the figure is from, or "assumed""#]],
    );
    check(
        &format!("{HEAD}[[event]]\nat = \"soon\"\nclear = \"all\"\n"),
        expect![[r#"
            s.toml:6:6: event.at is "soon"
             6 | at = "soon"
               |      ^^^^^^
               right: a time such as 90s, 15m, 2h or 30d"#]],
    );
    check(
        &format!("{HEAD}[[event]]\nat = \"1h\"\n"),
        expect![[r#"
            s.toml:5:1: this event says nothing that happens
             5 | [[event]]
               | ^^^^^^^^^
               right: exactly one of fault, clear, drain, undrain"#]],
    );
    check(
        "format = 1\nname = \"t\"\n[plant]\ncubes = 65\n",
        expect![[r#"
            s.toml:4:9: plant.cubes is 65
             4 | cubes = 65
               |         ^^
               right: a number from 1 to 64"#]],
    );
    check(
        "format = 1\nname = \"t\"\nwarp = 9\n[plant]\n",
        expect![[r#"
            s.toml:3:1: unknown field `warp`
             3 | warp = 9
               | ^^^^
               right: one of `format`, `name`, `seed`, `end`, `plant`, `jobs`, `means`, `rates`, `published_rates`, `dials`, `event`"#]],
    );
}

#[test]
fn errors_of_values_that_exclude_one_another_stand_at_their_place() {
    check(
        &format!("{HEAD}[jobs]\nload = 0.5\n"),
        expect![[r#"
        s.toml:5:1: jobs has neither a trace nor a mix
         5 | [jobs]
           | ^^^^^^
           right: trace = "FILE", or mix = N"#]],
    );
    check(
        &format!("{HEAD}[jobs]\ntrace = \"t.csv\"\nmix = 3\n"),
        expect![[r#"
        s.toml:6:9: jobs.trace stands beside jobs.mix
         6 | trace = "t.csv"
           |         ^^^^^^^
           right: a trace, or a mix"#]],
    );
    check(
        &format!("{HEAD}[jobs]\ntrace = \"t.csv\"\nscale = \"durations\"\n"),
        expect![[r#"
        s.toml:7:9: a trace keeps its durations
         7 | scale = "durations"
           |         ^^^^^^^^^^^
           right: "arrivals", which load then scales"#]],
    );
    check(
        &format!("{HEAD}[jobs]\nmix = 3\nload = 1000\n"),
        expect![[r#"
        s.toml:7:8: jobs.load is 1000
         7 | load = 1000
           |        ^^^^
           right: a load such as 0.85, from 0.001 to 100"#]],
    );
    check(
        &format!("{HEAD}file = \"p.toml\"\n"),
        expect![[r#"
        s.toml:5:8: plant.file stands beside pods or cubes
         5 | file = "p.toml"
           |        ^^^^^^^^
           right: a file, or pods and cubes"#]],
    );
    check(
        &format!("{HEAD}[dials]\nlose_ppm = 1000001\n"),
        expect![[r#"
        s.toml:6:12: dials.lose_ppm is 1000001
         6 | lose_ppm = 1000001
           |            ^^^^^^^
           right: at most 1000000 (always)"#]],
    );
    check(
        &format!("{HEAD}[dials]\nluck = 1\n"),
        expect![[r#"
        s.toml:6:1: there is no dial called "luck"
         6 | luck = 1
           | ^^^^
           right: one of lose_ppm, echo_ppm, untrained_ppm, stubborn_ppm, fail_ppm, botch_ppm"#]],
    );
    check(
        &format!("{HEAD}[[event]]\nat = \"1h\"\nclear = \"x5\"\ndrain = \"x5\"\n"),
        expect![[r#"
            s.toml:5:1: this event says 2 things that happen
             5 | [[event]]
               | ^^^^^^^^^
               right: exactly one of fault, clear, drain, undrain"#]],
    );
    check(
        &format!("{HEAD}[[event]]\nat = \"1h\"\ndrain = \"x5\"\npath = \"x5\"\n"),
        expect![[r#"
            s.toml:8:8: event.path stands without a fault
             8 | path = "x5"
               |        ^^^^
               right: the path as the value of clear, drain or undrain"#]],
    );
    check(
        "format = 1\nname = \"t\"\nend = \"2h\"\n[[event]]\nat = \"3h\"\nclear = \"x5\"\n",
        expect![[r#"
            s.toml:5:6: this event comes behind the end
             5 | at = "3h"
               |      ^^^^
               right: a moment up to 2h, or a later end"#]],
    );
    check(
        "format = 1\nseed = \"one\"\nname = \"t\"\n",
        expect![[r#"
            s.toml:2:8: invalid type: string "one"
             2 | seed = "one"
               |        ^^^^^
               right: a whole number, not below 0"#]],
    );
    check(
        "format = 1\n",
        expect![[r#"
            s.toml: missing field `name`
              right: a line with `name`; docs/scenarios.md says what a scenario may hold"#]],
    );
    check(
        "name = \"t\"\n",
        expect![[r#"
            s.toml: missing field `format`
              right: a line with `format`; docs/scenarios.md says what a scenario may hold"#]],
    );
    check(
        "",
        expect![[r#"
            s.toml: missing field `format`
              right: a line with `format`; docs/scenarios.md says what a scenario may hold"#]],
    );
    check(
        "format = 1\nname = t\n",
        expect![[r#"
            s.toml:2:8: invalid boolean
             2 | name = t
               |        ^
               right: true, false, or a text in quotes"#]],
    );
}

#[test]
fn what_events_name_is_looked_for_before_anything_runs() {
    let refused = |event: &str| {
        let text = format!("{HEAD}[[event]]\nat = \"900d\"\n{event}\n");
        let error = setup(&Scenario::parse("s.toml", &text).unwrap()).unwrap_err();
        let cause = std::error::Error::source(&error).map(|it| format!(": {it}"));
        format!("{error}{}", cause.unwrap_or_default())
    };
    let no_cube9 = "the plant has no \"cube9\"; `selvedge plant show` lists what there is";
    assert_eq!(refused("drain = \"cube9\""), no_cube9);
    assert_eq!(refused("clear = \"cube9\""), no_cube9);
    assert_eq!(refused("fault = \"chip_failed\"\npath = \"cube9\""), no_cube9);
    let wrong = refused("fault = \"machine_down\"\npath = \"x5\"");
    assert!(wrong.contains("machine_down cannot happen to x5; it takes"), "{wrong}");
    let twice = "fault = \"machine_down\"\npath = \"cube1/m05\"";
    let text = format!("{HEAD}[[event]]\nat = \"1h\"\n{twice}\n[[event]]\nat = \"2h\"\n{twice}\n");
    setup(&Scenario::parse("s.toml", &text).unwrap()).unwrap();
}

#[test]
fn a_scenario_without_a_plant_is_about_one_full_pod() {
    let scenario = Scenario::parse("s.toml", "format = 1\nname = \"t\"\n").unwrap();
    assert_eq!(scenario.plant, PlantFrom::Pods { pods: 1, cubes: 64 });
    let scenario = Scenario::parse("s.toml", "format = 1\nname = \"t\"\n[plant]\n").unwrap();
    assert_eq!(scenario.plant, PlantFrom::Pods { pods: 1, cubes: 64 });
}

/// Goal: an attempt's end never ends the next attempt.  Method: a crowded pod whose jobs are put
/// back into the queue; work that was kept must fit into the time in which hardware was held.
#[test]
fn no_job_keeps_more_work_than_it_held_hardware_for() {
    let mut scenario = Scenario::new(8, 3);
    scenario.jobs = JobsFrom::Mix {
        n_jobs: 400,
        load: Ppm::new(1_200_000),
        scaled: crate::trace::Scaled::Durations,
    };
    // Everything is put back into the queue now and then, where it runs just then.
    for hour in 0..2000u32 {
        let order = selvedge_control::input::JobOrder::Requeue;
        let what = selvedge_control::input::Ask::Job { job: JobId::new(hour % 400), order };
        let at = Moment::START + Span::mins(7).times(u64::from(hour));
        scenario.events.push((at, Happening::Ask { by: "test".to_owned(), what }));
    }
    let mut world = begin(&scenario).unwrap();
    let end = Moment::START + Span::days(3650);
    while !world.is_done() && world.step(end).unwrap() {}
    let (mut n_again, mut n_jobs) = (0, 0);
    for (id, job) in world.core().state().jobs.pairs() {
        let (duration, step, _) = job.spec.work.steps();
        let kept = step.times(job.kept).min(duration);
        assert!(kept <= job.allocated, "{id}: kept {kept}, held for {}", job.allocated);
        n_again += job.attempt.saturating_sub(1);
        n_jobs += 1;
    }
    assert!(10 < n_again, "{n_again} of {n_jobs} jobs ran again: too few to tell");
}

/// Traces that count seconds from 1970 have their first job in the fifties of the plant's years.
#[test]
fn a_job_that_arrives_after_decades_runs_too() {
    let text = "#h\n1,1700000000,CLOS,8,8,60\n2,1700003600,CLOS,8,8,60\n".to_owned();
    let jobs = JobsFrom::Trace { name: "t.csv".to_owned(), text, load: None };
    let scenario = Scenario { jobs, rates: Rates::NONE, ..Scenario::new(4, 1) };
    let summary = run(&scenario, &mut |_| ()).unwrap();
    assert_eq!((summary.jobs.submitted, summary.jobs.finished), (2, 2));
}

/// Goal: a study that is ended counts what was held and waited for until then.  Method: one job
/// fills the pod for ever, another waits behind it, a third comes too late.
#[test]
fn what_runs_and_waits_when_the_study_is_ended_is_counted_until_then() {
    let text = "#h\n1,0,T3D_NT,4x4x8,128,90000\n2,3600,T3D_NT,4x4x8,128,60\n\
                3,90000,T3D_NT,4x4x4,64,60\n"
        .to_owned();
    let jobs = JobsFrom::Trace { name: "t.csv".to_owned(), text, load: None };
    let end = Some(Moment::START + Span::hours(6));
    let quiet = Scenario { jobs, end, rates: Rates::NONE, ..Scenario::new(2, 1) };
    let summary = run(&quiet, &mut |_| ()).unwrap();
    let counts = summary.jobs;
    assert_eq!((counts.submitted, counts.lost), (2, 2));
    assert_eq!((counts.running, counts.waiting), (1, 1));
    // The first holds the whole pod from the first minutes on.
    assert_eq!(summary.simulated_s, 21_600.0);
    assert!((0.99..=1.0).contains(&summary.utilisation), "{}", summary.utilisation);
    // What a checkpoint each ten minutes has kept of not quite six hours.
    assert!((0.95..1.0).contains(&summary.goodput), "{}", summary.goodput);
    // The second has waited five hours so far.
    assert_eq!(summary.wait_s.p99, 18_000.0);

    // Without an end all of them are over, and nothing is left to be counted so.
    let whole = run(&Scenario { end: None, ..quiet }, &mut |_| ()).unwrap();
    assert_eq!((whole.jobs.submitted, whole.jobs.finished), (3, 3));
    assert_eq!((whole.jobs.lost, whole.jobs.running, whole.jobs.waiting), (0, 0, 0));
}

/// Goal: an idle pod hears of a switch that does not answer.  Method: nothing is written to it.
#[test]
fn a_silent_switch_has_a_case_within_a_few_polls_and_is_repaired() {
    let mut scenario = Scenario { rates: Rates::NONE, ..Scenario::new(2, 1) };
    let at = Moment::START + Span::mins(10);
    let fault = Happening::Fault { kind: FaultKind::Silent, path: Some("x5".to_owned()) };
    scenario.events.push((at, fault));
    let mut world = begin(&scenario).unwrap();
    while world.step(at + Span::mins(4)).unwrap() {}
    let state = world.core().state();
    let [case] = state.cases.iter().collect::<Vec<_>>()[..] else { panic!("{:?}", state.cases) };
    assert_eq!(world.core().fabric().path(case.target), "x5");
    let polls = selvedge_model::fault::Symptom::Silent;
    assert_eq!(case.evidence, [(at + Span::mins(3), polls, Some(3))]);
    while world.step(at + Span::hours(12)).unwrap() {}
    let case = world.core().state().cases.iter().next().unwrap();
    assert_eq!(case.closed, Some(selvedge_control::state::Closing::Requalified));
    assert!(case.n_repairs != 0 && case.n_seen == 1, "{case:?}");
}

/// Goal: silence costs nobody anything.  Method: a pod full of jobs, four minutes in which no
/// switch answers, then a switch that stays silent until a crew has been there.
#[test]
fn switches_that_fall_silent_under_running_jobs_interrupt_none_of_them() {
    let mut scenario = Scenario { rates: Rates::NONE, ..Scenario::new(4, 1) };
    for number in 0..3 {
        let shape = ["4x4x8", "4x4x4", "4x4x4"][number];
        let job = trace::TraceJob {
            number: number as u64,
            at: Span::secs(1),
            shape: shape.to_owned(),
            n_chips: 64,
            size: 64,
            duration: Span::hours(8),
        };
        let mut spec = trace::spec(&job, 1);
        spec.limit = None;
        scenario.events.push((Moment::START + Span::secs(1), Happening::Submit(spec)));
    }
    let mut world = begin(&scenario).unwrap();
    let at = |mins| Moment::START + Span::mins(mins);
    while world.step(at(30)).unwrap() {}
    let inject = |world: &mut World, now: Moment, path: &str| {
        let target = world.core().fabric().find(path);
        world.plant_mut().inject(now, FaultSpec { kind: FaultKind::Silent, target }).unwrap();
    };
    for name in (0..48).map(|it| format!("{}{}", ["x", "y", "z"][it / 16], it % 16)) {
        inject(&mut world, at(30), &name);
    }
    while world.step(at(34)).unwrap() {}
    let n_silent = |world: &World| {
        world.core().state().switches.values().filter(|it| it.silent.is_some()).count()
    };
    assert_eq!(n_silent(&world), 48);
    world.plant_mut().clear_all(at(34));
    while world.step(at(36)).unwrap() {}
    assert_eq!(n_silent(&world), 0);
    while world.step(at(60)).unwrap() {}
    let state = world.core().state();
    assert!(state.drains.is_empty(), "{:?}", state.cases);
    inject(&mut world, at(60), "y3");
    while world.step(at(64)).unwrap() {}
    assert_eq!(n_silent(&world), 1);
    while world.step(at(1200)).unwrap() {}
    let state = world.core().state();
    for job in state.jobs.iter() {
        assert_eq!((job.state.word(), job.attempt, job.n_interrupted), ("finished", 1, 0));
    }
    let requalified = Some(selvedge_control::state::Closing::Requalified);
    assert_eq!(state.cases.len(), 49);
    assert!(state.cases.iter().all(|it| it.closed == requalified));
    assert_eq!(world.rules().list(), []);
}

/// Two hosts whose NICs lead to the ports of one switch, in order.
fn cabled_hosts() -> String {
    use std::fmt::Write as _;
    let mut text = "format = 1\nname = \"h\"\n[[pod]]\nfamily = \"hosts\"\nhosts = 2\n\
                    [[template]]\nname = \"leaf\"\nrole = \"packet-switch\"\n\
                    nodes = [{ name = \"sw\", kind = \"switch\" }]\nports = [\n"
        .to_owned();
    for port in 0..16 {
        writeln!(text, "  {{ name = \"p{port}\", node = \"sw\" }},").unwrap();
    }
    text += "]\n[[part]]\nname = \"leaf\"\ntemplate = \"leaf\"\n";
    for port in 0..16 {
        let (host, nic) = (port / 8, port % 8);
        let a = format!("host{host}/nic{nic}/port");
        writeln!(text, "[[cable]]\na = \"{a}\"\nb = \"leaf/p{port}\"").unwrap();
    }
    text
}

/// Goal: a cable of a host that is plugged in wrongly is found before a job runs over it.
#[test]
fn a_miswired_nic_of_a_host_is_found_before_a_job_starts() {
    let mut scenario = Scenario { rates: Rates::NONE, ..Scenario::new(1, 1) };
    scenario.plant = PlantFrom::Text(cabled_hosts());
    let at = |mins| Moment::START + Span::mins(mins);
    let path = Some("host0/nic5/port".to_owned());
    scenario.events.push((at(1), Happening::Fault { kind: FaultKind::Miswired, path }));
    let job = trace::TraceJob {
        number: 0,
        at: Span::mins(2),
        shape: String::new(),
        n_chips: 16,
        size: 16,
        duration: Span::mins(10),
    };
    let mut spec = trace::spec(&job, 1);
    spec.demand = selvedge_model::job::Demand::Parts(2);
    scenario.events.push((at(2), Happening::Submit(spec)));
    let mut world = begin(&scenario).unwrap();
    while world.step(at(6)).unwrap() {}
    let (state, fabric) = (world.core().state(), world.core().fabric());
    let mut seen: Vec<String> = (state.cases.iter())
        .filter(|it| it.symptom == selvedge_model::fault::Symptom::Miswired)
        .map(|it| fabric.path(it.target))
        .collect();
    seen.sort();
    // It was swapped with the next: both see another port of the switch.
    assert_eq!(seen, ["host0/nic0/port", "host0/nic5/port"]);
    assert_eq!(state.jobs[JobId::new(0)].first_started, None);
    while world.step(at(24 * 60)).unwrap() {}
    assert!(world.is_done(), "{:?}", world.core().state().jobs[JobId::new(0)].state);
    assert_eq!(world.rules().n_found(), 0, "{:?}", world.rules().list());
}
