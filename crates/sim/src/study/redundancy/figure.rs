//! Figure 13, and what the paper says of it and of its formulas.

use serde::Serialize;

use crate::study::redundancy::class::{self, Class, Fit, Order, SAME};
use crate::study::redundancy::speedup::{Case, Constants, Growth, Mechanism, Network, Reading};

/// The largest machine of figure 13.
pub const P_MAX: f64 = 2e9;

/// One panel of figure 13.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// a to d.
    pub letter: char,
    /// What is drawn.
    pub case: Case,
}

/// What is drawn in each panel: plain, TMR, and STMR by each reading of D_size.
pub const CURVES: [Mechanism; 5] = [
    Mechanism::Plain,
    Mechanism::Tmr,
    Mechanism::Stmr(Reading::Constant),
    Mechanism::Stmr(Reading::Share),
    Mechanism::Stmr(Reading::Literal),
];

/// The four panels (§4.1): scalable programs above, weakly scalable ones below; a constant
/// bisection on the left, √P on the right.
pub fn panels(constants: Constants) -> [Panel; 4] {
    let panel = |letter, network, other, traffic| Panel {
        letter,
        case: Case { constants, network, other, traffic },
    };
    [
        panel('a', Network::CONSTANT, Growth::Constant, Growth::Constant),
        panel('b', Network::ROOT, Growth::Constant, Growth::Root),
        panel('c', Network::CONSTANT, Growth::Root, Growth::Root),
        panel('d', Network::ROOT, Growth::Root, Growth::Linear),
    ]
}

/// One curve as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Whose.
    pub mechanism: Mechanism,
    /// The fit of its last three decades.
    pub fit: Fit,
    /// The class in the limit.
    pub class: Class,
    /// S^R by S at the last point.
    pub share_at_end: f64,
}

/// What `mechanism` comes to.
pub fn curve(case: &Case, mechanism: Mechanism) -> Curve {
    Curve {
        mechanism,
        fit: class::fit(case, mechanism, P_MAX),
        class: class::class(case, mechanism),
        share_at_end: case.redundant_speedup(mechanism, P_MAX) / case.speedup(P_MAX),
    }
}

/// Whether the formulas bear a sentence out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They do.
    Holds,
    /// Of Θ: what it speaks of stays below that order, but falls under it.
    UpperBoundOnly,
    /// They do not.
    No,
}

impl Verdict {
    /// For people.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::UpperBoundOnly => "O, not Θ",
            Verdict::No => "no",
        }
    }

    const fn of(holds: bool) -> Self {
        if holds { Verdict::Holds } else { Verdict::No }
    }
}

/// A sentence of the paper, and whether the formulas bear it out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    /// Where it stands.
    pub place: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Under each reading of D_size; all alike where it does not speak of it.
    pub verdicts: [Verdict; 3],
    /// The figures that the verdicts rest on, one line each.
    pub found: Vec<String>,
}

/// S^R is "the same as S" where it is no less than this share of it at the last point.
pub const COINCIDES: f64 = 0.9;

/// The paper's sentences that these formulas can bear out or not.
pub fn sentences(constants: Constants) -> Vec<Sentence> {
    let mut sentences = networks(constants);
    let panels = panels(constants);
    for (panel, says) in panels.iter().zip([
        "TMR tends to a constant: not scalable",
        "TMR grows weaker than P: weakly scalable",
        "TMR tends to a constant: not scalable",
        "TMR grows weaker than P: weakly scalable",
    ]) {
        let said =
            if panel.letter == 'a' || panel.letter == 'c' { Class::Not } else { Class::Weakly };
        let class = class::class(&panel.case, Mechanism::Tmr);
        sentences.push(Sentence {
            place: place(panel.letter),
            says,
            verdicts: [Verdict::of(class == said); 3],
            found: vec![format!(
                "S^R grows as {}, S as {}{}",
                class::redundant_order(&panel.case, Mechanism::Tmr),
                class::speedup_order(&panel.case),
                other_than(class, said)
            )],
        });
    }
    for panel in &panels {
        let share = |reading| {
            let mechanism = Mechanism::Stmr(reading);
            (class::class(&panel.case, mechanism), curve(&panel.case, mechanism).share_at_end)
        };
        let shares = Reading::ALL.map(share);
        let found = by_reading("S^R/S at the end:", |nth| {
            format!("{:.3}{}", shares[nth].1, other_than(shares[nth].0, Class::Scalable))
        });
        sentences.push(Sentence {
            place: place(panel.letter),
            says: "STMR is scalable and its curve is that of S",
            verdicts: shares
                .map(|(class, share)| Verdict::of(class == Class::Scalable && COINCIDES <= share)),
            found,
        });
    }
    sentences
}

/// The figure of each reading, in one line.
fn by_reading(what: &str, of: impl Fn(usize) -> String) -> Vec<String> {
    vec![format!("{what} {}", [0, 1, 2].map(of).join(", "))]
}

/// The class that was found where another is said.
fn other_than(found: Class, said: Class) -> String {
    if found == said { String::new() } else { format!(": {}", found.word()) }
}

fn place(letter: char) -> &'static str {
    match letter {
        'a' => "§4.2, (a)",
        'b' => "§4.2, (b)",
        'c' => "§4.2, (c)",
        _ => "§4.2, (d)",
    }
}

/// Whether T_R is Θ(`order`): in the limit by the formulas, and by the fit of T_R itself on figure
/// 13's largest machines.  Θ bounds from both sides.
pub fn is_theta(case: &Case, mechanism: Mechanism, order: Order) -> Verdict {
    let own = class::overhead_order(case, mechanism);
    let power = class::fit(case, mechanism, P_MAX).overhead_power;
    let (Some(own), Some(power)) = (own, power) else { return Verdict::UpperBoundOnly };
    let beyond = power - order.power();
    if order < own || SAME <= beyond {
        Verdict::No
    } else if own < order || beyond <= -SAME {
        Verdict::UpperBoundOnly
    } else {
        Verdict::Holds
    }
}

/// §1.2 and §2.4, of scalable programs on networks that there are.
fn networks(constants: Constants) -> Vec<Sentence> {
    let case =
        |network| Case { constants, network, other: Growth::Constant, traffic: Growth::Constant };
    let class = |network| class::class(&case(network), Mechanism::Tmr);
    let found = |network| {
        let fit = class::fit(&case(network), Mechanism::Tmr, P_MAX);
        let order = class::overhead_order(&case(network), Mechanism::Tmr);
        let order = order.map_or_else(String::new, |it| it.to_string());
        // A power does not see a logarithm.
        let other = other_than(fit.class, class(network));
        vec![format!("T_R grows as {order}; fitted {}{other}", power(fit.overhead_power))]
    };
    let on_mesh = match class(Network::MESH) {
        Class::Weakly => is_theta(&case(Network::MESH), Mechanism::Tmr, Order::of(Growth::Root)),
        Class::Not | Class::Scalable => Verdict::No,
    };
    let mut sentences = vec![Sentence {
        place: "§1.2",
        says: "TMR is weakly scalable on a 2D mesh, T_R = Θ(√P)",
        verdicts: [on_mesh; 3],
        found: found(Network::MESH),
    }];
    for (network, says) in [
        (Network::TORUS, "TMR is not scalable either on a torus"),
        (Network::FAT_TREE, "TMR is not scalable either on a fat tree"),
    ] {
        sentences.push(Sentence {
            place: "§1.2",
            says,
            verdicts: [Verdict::of(class(network) < Class::Scalable); 3],
            found: found(network),
        });
    }
    sentences.push(formula_9(constants));
    sentences
}

/// With the traffic of panel (b), the most that §4 gives a scalable program.
fn formula_9(constants: Constants) -> Sentence {
    let (network, other, traffic) = (Network::MESH, Growth::Constant, Growth::Root);
    let case = Case { constants, network, other, traffic };
    let fitted = |reading| class::fit(&case, Mechanism::Stmr(reading), P_MAX).overhead_power;
    let whole = by_reading("T_R fitted", |nth| power(fitted(Reading::ALL[nth])));
    let sends = by_reading("its sends alone", |nth| {
        class::sends_order(&case, Reading::ALL[nth]).to_string()
    });
    Sentence {
        place: "§2.4, (9)",
        says: "T_R of STMR is Θ(1)",
        verdicts: Reading::ALL.map(|it| is_theta(&case, Mechanism::Stmr(it), Order::ONE)),
        found: [whole, sends].concat(),
    }
}

fn power(fitted: Option<f64>) -> String {
    // Without the sign of a zero.
    fitted.map_or_else(
        || "no T_R".to_owned(),
        |it| format!("P^{:.2}", libm::round(it * 100.0) / 100.0 + 0.0),
    )
}
