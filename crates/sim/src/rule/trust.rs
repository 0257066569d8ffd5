//! A part returns only after requalification and probation: the way of each case, followed by
//! what the core tells of it and by what devices answered meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_control::core::Core;
use selvedge_control::input::{Answer, Errand, Input};
use selvedge_control::note::{CaseState, Note, Owner};
use selvedge_model::fault::{Symptom, Target};
use selvedge_model::id::{CaseId, PartId};
use selvedge_model::unit::Moment;

use super::Violation;
use super::reach;

/// All cases.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    /// Where each stands, as far as it was told.
    cases: BTreeMap<CaseId, CaseState>,
    /// Cases about which a device has answered while they were being verified.
    answered: BTreeSet<CaseId>,
}

impl Trust {
    /// The core is about to hear a device's answer.
    pub(super) fn heard(&mut self, core: &Core, input: &Input) {
        match input {
            Input::Answer(
                Answer::Inspected { errand: Errand::Case(case, _), .. }
                | Answer::Exercised { errand: Errand::Case(case, _), .. },
            ) => self.answered(core, *case),
            Input::Answer(Answer::SwitchRead { switch, .. }) => {
                if let Some(&case) = core.state().open_cases.get(&Target::Part(*switch)) {
                    self.answered(core, case);
                }
            }
            _other => (),
        }
    }

    fn answered(&mut self, core: &Core, case: CaseId) {
        let known = core.state().cases.get(case);
        if known.is_some_and(|it| it.state == CaseState::Verifying) {
            self.answered.insert(case);
        }
    }

    /// After a crash: what was told and lost is taken from the core's own memory.
    pub(super) fn restarted(&mut self, core: &Core) {
        let cases = core.state().cases.pairs();
        let open = cases.filter(|(_, it)| it.state != CaseState::Closed);
        self.cases = open.map(|(case, it)| (case, it.state)).collect();
        self.answered = self.cases.keys().copied().collect();
    }

    /// The core tells of a case.
    pub(super) fn noted(&mut self, now: Moment, note: &Note, core: &Core) -> Option<Violation> {
        match note {
            &Note::CaseOpened { case, .. } => {
                self.cases.insert(case, CaseState::Observed);
                None
            }
            &Note::CaseMoved { case, state } => {
                let before = self.cases.insert(case, state)?;
                let answered = self.answered.contains(&case);
                if matches!(state, CaseState::Waiting | CaseState::Closed) {
                    self.answered.remove(&case);
                }
                if state == CaseState::Closed {
                    self.cases.remove(&case);
                }
                moved(now, core, case, (before, state), answered)
            }
            _other => None,
        }
    }

    /// What a case has taken out stays out until the case is over.
    pub(super) fn check(&self, core: &Core) -> Vec<Violation> {
        let state = core.state();
        let mut found = Vec::new();
        for (case, known) in state.cases.pairs() {
            let is_out = !matches!(known.state, CaseState::Observed | CaseState::Closed);
            let drains = state.drains.get(&known.target).into_iter().flatten();
            let holds = drains.into_iter().any(|it| it.by == Owner::Case(case));
            if is_out && !holds {
                let path = core.fabric().path(known.target);
                found.push(Violation::Unverified { case, path });
            }
        }
        found.extend(untested(core));
        for (idx, plan) in state.maintenances.iter().enumerate() {
            let is_at_work = |it: &&CaseId| state.cases[**it].maintenance == Some(idx as u32);
            let n_at_work = state.open_cases.values().filter(is_at_work).count();
            if (plan.n_at_once as usize) < n_at_work {
                found.push(Violation::OverBudget { n: n_at_work, n_at_once: plan.n_at_once });
            }
        }
        found
    }
}

/// Parts that have come again under the name of one that left, and have no case for it.
fn untested(core: &Core) -> impl Iterator<Item = Violation> + '_ {
    let parts = || core.fabric().parts().pairs();
    let retired = parts().filter(|(_, it)| it.retired).map(|(_, it)| &*it.name);
    let retired: BTreeSet<&str> = retired.collect();
    let again = parts().filter(move |(_, it)| !it.retired && retired.contains(&*it.name));
    let is_tested = |part: PartId| {
        let mut cases = core.state().cases.iter();
        cases.any(|it| it.target == Target::Part(part) && it.symptom == Symptom::Returned)
    };
    let untested = again.filter(move |(part, _)| !is_tested(*part));
    untested.map(|(_, it)| Violation::Untested { path: it.name.to_string() })
}

/// What is wrong with the step of a case from one state to another.
fn moved(
    now: Moment,
    core: &Core,
    case: CaseId,
    step: (CaseState, CaseState),
    answered: bool,
) -> Option<Violation> {
    let path = core.fabric().path(core.state().cases[case].target);
    match step {
        (CaseState::Verifying, CaseState::Probation { until }) => {
            if !answered && !nothing_to_ask(core, case) {
                return Some(Violation::Unverified { case, path });
            }
            // Told later than decided: the core says since when, while the case stands there.
            let (known, settings) = (&core.state().cases[case], &core.state().settings);
            let too_short = known.state == step.1 && until < known.since + settings.probation;
            too_short.then_some(Violation::NoProbation { case, path })
        }
        (_, CaseState::Probation { .. }) => Some(Violation::Unverified { case, path }),
        (CaseState::Probation { until }, CaseState::Closed) if until <= now => None,
        (CaseState::Observed, CaseState::Closed) => None,
        (_, CaseState::Closed) if is_excused(core, case) => None,
        (CaseState::Verifying, CaseState::Closed) => Some(Violation::NoProbation { case, path }),
        (_, CaseState::Closed) => Some(Violation::Unverified { case, path }),
        (
            _,
            CaseState::Observed
            | CaseState::Draining
            | CaseState::Waiting
            | CaseState::UnderRepair
            | CaseState::Verifying,
        ) => None,
    }
}

/// Whether a case may end early: its target has left the plant, or it is part of a larger one
/// that came after it.
fn is_excused(core: &Core, case: CaseId) -> bool {
    let (state, fabric) = (core.state(), core.fabric());
    let known = &state.cases[case];
    if !reach::is_there(fabric, known.target) {
        return true;
    }
    let is_whole = |(id, it): (CaseId, &selvedge_control::state::Case)| {
        id != case && known.opened <= it.opened && reach::contains(fabric, it.target, known.target)
    };
    known.symptom == Symptom::LinkDown && state.cases.pairs().any(is_whole)
}

/// Whether no device could be asked about a case: a port without a fibre.
fn nothing_to_ask(core: &Core, case: CaseId) -> bool {
    let fabric = core.fabric();
    let parts: Vec<PartId> = match core.state().cases[case].target {
        Target::Part(part) => vec![part],
        Target::Node(node) => vec![fabric.part_of_node(node)],
        Target::Port(port) => {
            fabric.peer_of(port).map(|it| fabric.part_of_port(it)).into_iter().collect()
        }
        Target::Link(link) => {
            reach::ends_of(fabric, link).map(|it| fabric.part_of_port(it)).to_vec()
        }
    };
    parts.is_empty()
}
