//! Many servers: those of equal decisions stand together, and the odd ones stand out.

use serde::Serialize;

use crate::host::views::{Alike, Seen, differing_alike};

/// What NCCL decides about a server in the view of each rank, or why it refuses.
pub type Outcome = Result<Vec<Seen>, String>;

/// One server by name.
pub type Member = (String, Outcome);

/// Servers about which everything is decided alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Their names, in order.
    pub servers: Vec<String>,
    /// Why NCCL refuses them, where it does.
    pub error: Option<String>,
    /// How they differ from the largest group.
    pub differences: Vec<Alike>,
}

/// The groups, largest first; of equal ones the one with the first server.
pub fn group(mut members: Vec<Member>) -> Vec<Group> {
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let mut sets: Vec<(Outcome, Vec<String>)> = Vec::new();
    for (name, outcome) in members {
        match sets.iter_mut().find(|it| it.0 == outcome) {
            Some((_, names)) => names.push(name),
            None => sets.push((outcome, vec![name])),
        }
    }
    // What is refused is never what the others are held against.
    sets.sort_by_key(|(outcome, names)| (outcome.is_err(), std::cmp::Reverse(names.len())));
    let usual = sets.iter().find_map(|it| it.0.as_ref().ok()).cloned();
    let differences = |outcome: &Outcome| match (&usual, outcome) {
        (Some(usual), Ok(own)) => differing_alike(usual, own),
        _ => Vec::new(),
    };
    let group = |(outcome, servers): (Outcome, Vec<String>)| Group {
        differences: differences(&outcome),
        error: outcome.err(),
        servers,
    };
    sets.into_iter().map(group).collect()
}
