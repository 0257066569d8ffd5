//! Figure 13, and what the paper says of it and of its formulas.

use serde::Serialize;

use crate::study::redundancy::class::{self, Class, Fit};
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

/// A sentence of the paper, and whether the formulas bear it out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    /// Where it stands.
    pub place: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Under each reading of D_size; all alike where it does not speak of it.
    pub holds: [bool; 3],
    /// What is found where it does not hold, or beside.
    pub found: String,
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
            holds: [class == said; 3],
            found: format!(
                "{}: S^R grows as {}, S as {}",
                class.word(),
                class::redundant_order(&panel.case, Mechanism::Tmr),
                class::speedup_order(&panel.case)
            ),
        });
    }
    for panel in &panels {
        let share = |reading| {
            let mechanism = Mechanism::Stmr(reading);
            (class::class(&panel.case, mechanism), curve(&panel.case, mechanism).share_at_end)
        };
        let shares = Reading::ALL.map(share);
        sentences.push(Sentence {
            place: place(panel.letter),
            says: "STMR is scalable and its curve is that of S",
            holds: shares.map(|(class, share)| class == Class::Scalable && COINCIDES <= share),
            found: shares
                .iter()
                .zip(Reading::ALL)
                .map(|((class, share), reading)| {
                    format!("{}: {}, {:.3} of S", reading.word(), class.word(), share)
                })
                .collect::<Vec<_>>()
                .join("; "),
        });
    }
    sentences
}

fn place(letter: char) -> &'static str {
    match letter {
        'a' => "§4.2, (a)",
        'b' => "§4.2, (b)",
        'c' => "§4.2, (c)",
        _ => "§4.2, (d)",
    }
}

/// §1.2 and §2.4, of scalable programs on networks that there are.
fn networks(constants: Constants) -> Vec<Sentence> {
    let case = |network, traffic| Case { constants, network, other: Growth::Constant, traffic };
    let tmr = |network| {
        let case = case(network, Growth::Constant);
        let order = class::overhead_order(&case, Mechanism::Tmr);
        (class::class(&case, Mechanism::Tmr), order, class::fit(&case, Mechanism::Tmr, P_MAX))
    };
    let found = |(class, order, fit): (Class, class::Order, Fit)| {
        format!("T_R grows as {order}: {}; fitted: {}", class.word(), fit.class.word())
    };
    let mesh = tmr(Network::MESH);
    let mut sentences = vec![Sentence {
        place: "§1.2",
        says: "TMR is weakly scalable on a 2D mesh, T_R = Θ(√P)",
        holds: [mesh.0 == Class::Weakly; 3],
        found: found(mesh),
    }];
    for (network, says) in [
        (Network::TORUS, "TMR is not scalable either on a torus"),
        (Network::FAT_TREE, "TMR is not scalable either on a fat tree"),
    ] {
        let it = tmr(network);
        sentences.push(Sentence {
            place: "§1.2",
            says,
            holds: [it.0 < Class::Scalable; 3],
            found: found(it),
        });
    }
    // With the traffic of panel (b), the most that §4 gives a scalable program.
    let case = case(Network::MESH, Growth::Root);
    let stmr = |reading| class::overhead_order(&case, Mechanism::Stmr(reading));
    let orders = Reading::ALL.map(stmr);
    sentences.push(Sentence {
        place: "§2.4, (9)",
        says: "T_R of STMR is Θ(1)",
        holds: Reading::ALL.map(|it| class::class(&case, Mechanism::Stmr(it)) == Class::Scalable),
        found: Reading::ALL
            .iter()
            .zip(orders)
            .map(|(reading, order)| format!("{}: {order}", reading.word()))
            .collect::<Vec<_>>()
            .join("; "),
    });
    sentences
}
