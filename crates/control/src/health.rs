//! How bad a symptom is.
//!
//! Rules are data.  A symptom has a severity of its own, and rises by one step when it was seen
//! often enough within a window; a transient one that is not seen again clears by itself after
//! its sticky window (notes of operators: flap, drop, sticky and auto-clear windows).

use selvedge_model::fault::{Severity, Symptom};
use selvedge_model::hardware::Thresholds;
use selvedge_model::unit::{Moment, Span};

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// For which symptom.
    pub symptom: Symptom,
    /// How bad one sighting is.
    pub severity: Severity,
    /// So many sightings …
    pub n_repeats: u32,
    /// … within this window make it one step worse.
    pub window: Span,
    /// How long a case that may pass stays open after the last sighting.
    pub sticky: Span,
}

const fn rule(symptom: Symptom, severity: Severity, n_repeats: u32, window: Span) -> Rule {
    // gpud's PR #1110: a port drop that cleared after 30 s left operators with contradictory
    // states; ten minutes did not.
    Rule { symptom, severity, n_repeats, window, sticky: Span::mins(10) }
}

/// All rules, one for each symptom.
pub const RULES: [Rule; 18] = [
    rule(Symptom::MachineDown, Severity::Fatal, 1, Span::hours(1)),
    rule(Symptom::ChipFailed, Severity::Fatal, 1, Span::hours(1)),
    rule(Symptom::PcieDegraded, Severity::Critical, 2, Span::hours(24)),
    rule(Symptom::LinkDown, Severity::Fatal, 1, Span::hours(1)),
    // How many flaps within which window are one too many stands in the plant's thresholds.
    rule(Symptom::LinkFlapped, Severity::Degraded, u32::MAX, Span::ZERO),
    rule(Symptom::LinkDegraded, Severity::Degraded, 3, Span::hours(1)),
    rule(Symptom::SwitchDown, Severity::Fatal, 1, Span::hours(1)),
    rule(Symptom::PortFailed, Severity::Critical, 2, Span::hours(24)),
    rule(Symptom::PortLossHigh, Severity::Degraded, 3, Span::hours(24)),
    rule(Symptom::ExerciseFailed, Severity::Critical, 2, Span::hours(24)),
    rule(Symptom::Miswired, Severity::Critical, 2, Span::hours(24)),
    rule(Symptom::Silent, Severity::Critical, 2, Span::hours(24)),
    rule(Symptom::Planned, Severity::Critical, u32::MAX, Span::hours(24)),
    rule(Symptom::Returned, Severity::Critical, u32::MAX, Span::hours(24)),
    // One may be the program's own doing, and takes nothing out; two jobs on one machine within a
    // day are the machine's (NVSentinel: on different units software, on the same unit hardware).
    rule(Symptom::TaskHung, Severity::Transient, 2, Span::hours(24)),
    // What an error of `topo lint` says does not pass, nor does it grow by being seen again.
    rule(Symptom::TopologyFaulty, Severity::Critical, u32::MAX, Span::hours(24)),
    // A warning of it is told and takes nothing out.
    rule(Symptom::TopologyDoubtful, Severity::Transient, u32::MAX, Span::hours(24)),
    // One flip is what replicas are for.  A machine whose replicas are outvoted three times a day
    // carries no new work; what runs on it goes on, for its siblings outvote it.
    rule(Symptom::Marked, Severity::Transient, 3, Span::hours(24)),
];

/// How bad it is that a circuit switch does not answer, however often: nobody new is wired through
/// it, and nobody who is leaves it, for its mirrors stand and light runs on.  What its fibres or
/// whoever looks at the switch itself show makes it worse.
pub const SILENT_SWITCH: Severity = Severity::Degraded;

/// The rule of a symptom.
pub fn rule_of(symptom: Symptom) -> &'static Rule {
    let found = RULES.iter().find(|it| it.symptom == symptom);
    found.expect("every symptom has a rule: a test holds it")
}

/// The rule of a symptom on a plant with these thresholds.
pub fn rule_on(symptom: Symptom, thresholds: &Thresholds) -> Rule {
    let rule = *rule_of(symptom);
    match symptom {
        Symptom::LinkFlapped => Rule {
            n_repeats: u32::from(thresholds.flaps_max) + 1,
            window: thresholds.flap_window,
            ..rule
        },
        _ => rule,
    }
}

/// How bad `symptom` is, seen at these moments (the newest last).
pub fn grade(symptom: Symptom, sightings: &[Moment], thresholds: &Thresholds) -> Severity {
    let rule = rule_on(symptom, thresholds);
    let Rule { n_repeats, window, .. } = rule;
    let Some(&newest) = sightings.last() else { return rule.severity };
    let n_seen = sightings.iter().filter(|&&at| newest.since(at) <= window).count();
    if n_repeats as usize <= n_seen { worse(rule.severity) } else { rule.severity }
}

/// One step worse.
pub fn worse(severity: Severity) -> Severity {
    match severity {
        Severity::Transient => Severity::Degraded,
        Severity::Degraded => Severity::Critical,
        Severity::Critical | Severity::Fatal => Severity::Fatal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Symptom; 18] = [
        Symptom::MachineDown,
        Symptom::ChipFailed,
        Symptom::PcieDegraded,
        Symptom::LinkDown,
        Symptom::LinkFlapped,
        Symptom::LinkDegraded,
        Symptom::SwitchDown,
        Symptom::PortFailed,
        Symptom::PortLossHigh,
        Symptom::ExerciseFailed,
        Symptom::Miswired,
        Symptom::Silent,
        Symptom::Planned,
        Symptom::Returned,
        Symptom::TaskHung,
        Symptom::TopologyFaulty,
        Symptom::TopologyDoubtful,
        Symptom::Marked,
    ];

    #[test]
    fn every_symptom_has_exactly_one_rule() {
        for symptom in ALL {
            assert_eq!(RULES.iter().filter(|it| it.symptom == symptom).count(), 1, "{symptom:?}");
            assert_eq!(rule_of(symptom).symptom, symptom);
        }
        assert_eq!(RULES.len(), ALL.len());
    }

    #[test]
    fn a_third_flap_within_ten_minutes_is_critical_and_a_late_one_is_not() {
        let at = |mins| Moment::START + Span::mins(mins);
        let flaps = |mins: &[u64]| {
            let at: Vec<Moment> = mins.iter().map(|&it| at(it)).collect();
            grade(Symptom::LinkFlapped, &at, &Thresholds::GOLDEN)
        };
        assert_eq!(flaps(&[0, 5]), Severity::Degraded);
        assert_eq!(flaps(&[0, 5, 9]), Severity::Critical);
        assert_eq!(flaps(&[0, 5, 11]), Severity::Degraded);
    }

    #[test]
    fn a_plant_says_itself_how_many_flaps_are_too_many() {
        let at = [Moment::START, Moment::START + Span::mins(5)];
        let strict = Thresholds { flaps_max: 1, ..Thresholds::GOLDEN };
        assert_eq!(grade(Symptom::LinkFlapped, &at, &strict), Severity::Critical);
        let short = Thresholds { flap_window: Span::mins(4), ..strict };
        assert_eq!(grade(Symptom::LinkFlapped, &at, &short), Severity::Degraded);
    }
}
