//! Every state against every input: what is accepted, and what it is refused for.

use std::fmt::Write as _;

use expect_test::expect;
use selvedge_model::id::PartId;
use selvedge_model::unit::Span;

use super::world::{World, pods};
use crate::core::Refused;
use crate::input::{Answer, Ask, Errand, Exit, Input, JobOrder, Readings};
use crate::settings::Settings;

/// The states of a job, each by the script that leads to it.
const JOB_STATES: [(&str, &str); 16] = [
    ("queued", "submit x 4x4x16 firm\n submit a 4x4x8"),
    ("held", "submit x 4x4x16 firm\n submit a 4x4x8\n hold a"),
    ("backing off", "submit a 4x4x8 retries=1\n fails a 3 1m\n run 90s"),
    ("wiring", "submit a 4x4x8"),
    ("training", "submit a 4x4x8\n run 1s"),
    ("inspecting", "submit a 4x4x8\n run 6s"),
    ("exercising", "submit a 4x4x8\n run 8s"),
    ("discovering", "submit a 4x4x8\n run 18s"),
    ("programming", "submit a 4x4x8\n run 19s"),
    ("dispatching", "submit a 4x4x8\n run 20s"),
    ("running", "submit a 4x4x8\n run 1m"),
    ("stopping", "submit a 4x4x8\n run 1m\n requeue a"),
    ("undoing", "broken x3/n1\n submit a 4x4x8\n run 1s"),
    ("finished", "submit a 4x4x8 for=1m\n run 5m"),
    ("failed", "submit a 4x4x8\n fails a 3 1m\n run 5m"),
    ("cancelled", "submit x 4x4x16 firm\n submit a 4x4x8\n cancel a"),
];

fn job_inputs(world: &World) -> Vec<(&'static str, Input)> {
    let job = world.jobs["a"];
    let known = &world.core.state().jobs[job];
    let attempt = known.attempt;
    let part = known.place.as_ref().map_or(PartId::new(48), |it| it.holds[0].part);
    let errand = Errand::Job(job, attempt);
    let order = |order| Input::Ask { by: "o".to_owned(), what: Ask::Job { job, order } };
    let stopped =
        |attempt| Input::Answer(Answer::Stopped { job, attempt, exit: Exit::Failed(1), kept: 0 });
    let readings = Readings {
        chip_errors: vec![0; 64],
        pcie_gbps: vec![126; 64],
        link_errors: vec![0; 384],
        loss: vec![100; 384],
    };
    let inspected = |readings| Input::Answer(Answer::Inspected { errand, part, readings });
    let peers = |n| Input::Answer(Answer::Discovered { errand, part, peers: vec![None; n] });
    vec![
        ("cancel", order(JobOrder::Cancel)),
        ("hold", order(JobOrder::Hold)),
        ("release", order(JobOrder::Release)),
        ("requeue", order(JobOrder::Requeue)),
        ("trained", Input::Answer(Answer::LinksTrained { errand, failed: Vec::new() })),
        ("inspected", inspected(readings)),
        ("few readings", inspected(Readings::default())),
        ("exercised", Input::Answer(Answer::Exercised { errand, failed: Vec::new() })),
        ("discovered", peers(384)),
        ("few peers", peers(3)),
        ("programmed", Input::Answer(Answer::Programmed { errand, part, newer: None })),
        ("started", Input::Answer(Answer::Started { job, attempt })),
        ("stopped", stopped(attempt)),
        ("stopped before", stopped(attempt.wrapping_sub(1))),
    ]
}

/// One cell: `+` where it is accepted, else a letter for the kind of refusal.
fn cell(told: &Result<(), Refused>) -> char {
    match told {
        Ok(()) => '+',
        Err(Refused::Stale) => '.',
        Err(Refused::JobState { .. }) => 'j',
        Err(Refused::CaseState { .. }) => 'c',
        Err(Refused::CaseTaken { .. }) => 't',
        Err(Refused::Readings(_)) => 'r',
        Err(Refused::NotYours { .. }) => 'd',
        Err(other) => panic!("{other}"),
    }
}

fn table(states: &[(&str, &str)], inputs: fn(&World) -> Vec<(&'static str, Input)>) -> String {
    let mut rows: Vec<String> = Vec::new();
    for (name, script) in states {
        let mut world = World::new(&pods(&[4]), Settings::simulated());
        world.play(script);
        let inputs = inputs(&world);
        if rows.is_empty() {
            rows = inputs.iter().map(|(input, _)| format!("{input:<15}")).collect();
            rows.push(format!("{:<15}", ""));
        }
        for (row, (_, input)) in rows.iter_mut().zip(inputs) {
            let mut copy = world.clone();
            let told = copy.tell(input);
            write!(row, " {}", cell(&told)).unwrap();
            // Whatever was accepted, the world goes on to a quiet end.
            copy.run(Span::hours(12));
            copy.replay_all();
        }
        let last = rows.last_mut().expect("pushed above");
        write!(last, " {}", &name[..1]).unwrap();
    }
    let names: Vec<&str> = states.iter().map(|(name, _)| *name).collect();
    format!("{}\n{}\n", names.join(", "), rows.join("\n"))
}

#[test]
fn every_job_state_accepts_or_refuses_every_input_by_name() {
    expect![[r#"
        queued, held, backing off, wiring, training, inspecting, exercising, discovering, programming, dispatching, running, stopping, undoing, finished, failed, cancelled
        cancel          + + + + + + + + + + + + + j j j
        hold            + j + j j j j j j j j j j j j j
        release         j + j j j j j j j j j j j j j j
        requeue         j j j + + + + + + + + j j j j j
        trained         . . . . + . . . . . . . . . . .
        inspected       . . . . . + . . . . . . . . . .
        few readings    . . . . . r . . . . . . . . . .
        exercised       . . . . . . + . . . . . . . . .
        discovered      . . . . . . . + . . . . . . . .
        few peers       . . . . . . . r . . . . . . . .
        programmed      . . . . . . . . + . . . . . . .
        started         . . . . . . . . . + . . . . . .
        stopped         . . . . . . . . . + + + . . . .
        stopped before  . . . . . . . . . . . . . . . .
                        q h b w t i e d p d r s u f f c
    "#]].assert_eq(&table(&JOB_STATES, job_inputs));
}

/// The states of a case, each by the script that leads to it.
const CASE_STATES: [(&str, &str); 8] = [
    ("observed", "level observe\n report cube0 machine_down"),
    ("draining", "submit a 4x4x4\n run 1m\n report cube0/m00 miswired"),
    ("waiting", "report cube0 machine_down"),
    ("under repair", "report cube0 machine_down\n take bob case0"),
    ("verifying", "report cube0 machine_down\n take bob case0\n finish bob case0"),
    ("exercised", "report cube0 machine_down\n take bob case0\n finish bob case0\n run 2s"),
    ("probation", "report cube0 machine_down\n take bob case0\n finish bob case0\n run 1m"),
    ("closed", "report cube0 machine_down\n take bob case0\n finish bob case0\n run 1h"),
];

fn case_inputs(world: &World) -> Vec<(&'static str, Input)> {
    let case = selvedge_model::id::CaseId::new(0);
    let target = world.core.state().cases[case].target;
    let ask = |by: &str, what| Input::Ask { by: by.to_owned(), what };
    let n_tests = world.core.state().cases[case].n_tests;
    let errand = |n| Errand::Case(case, n);
    let failed = Vec::new();
    let symptom = selvedge_model::fault::Symptom::MachineDown;
    let why = String::new();
    vec![
        ("take", ask("bob", Ask::TakeRepair { case })),
        ("finish", ask("bob", Ask::FinishRepair { case })),
        ("finish by ann", ask("ann", Ask::FinishRepair { case })),
        ("seen again", Input::Report { target, symptom, value: None }),
        ("drain", ask("bob", Ask::Drain { target, why })),
        ("undrain", ask("bob", Ask::Undrain { target })),
        ("exercised", Input::Answer(Answer::Exercised { errand: errand(n_tests), failed })),
        (
            "exercised once",
            Input::Answer(Answer::Exercised { errand: errand(99), failed: Vec::new() }),
        ),
    ]
}

#[test]
fn every_case_state_accepts_or_refuses_every_input_by_name() {
    expect![[r#"
        observed, draining, waiting, under repair, verifying, exercised, probation, closed
        take            + c + c c c c c
        finish          c c c + c c c c
        finish by ann   c c c t c c c c
        seen again      + + + + + + + +
        drain           + + + + + + + +
        undrain         d d d d d d d d
        exercised       . . . . . + . .
        exercised once  . . . . . . . .
                        o d w u v e p c
    "#]]
    .assert_eq(&table(&CASE_STATES, case_inputs));
}
