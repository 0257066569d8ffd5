//! What is mended in a file without asking, and that nothing gets worse by it.

use crate::host::change::Question;
use crate::host::lint::{Finding, Findings, Severity, rules, server};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::Element;
use crate::host::place::{TreePath, at_mut, ranks};

/// One change to the file.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// An attribute has that value.
    Set {
        /// Of which element.
        path: TreePath,
        /// Which.
        attr: String,
        /// Its value.
        value: String,
    },
    /// A child is gone.
    Drop {
        /// Of which element.
        path: TreePath,
        /// Which.
        child: Element,
    },
    /// A child is there.
    Add {
        /// Of which element.
        path: TreePath,
        /// Which.
        child: Element,
    },
}

impl Edit {
    /// Only leaves come and go, so paths hold in any order of changes.
    fn make(&self, root: &mut Element) {
        match self {
            Edit::Set { path, attr, value } => set(at_mut(root, path), attr, value),
            Edit::Drop { path, child } => at_mut(root, path).children.retain(|it| it != child),
            Edit::Add { path, child } => at_mut(root, path).children.push(child.clone()),
        }
    }
}

pub(super) fn set(element: &mut Element, name: &str, value: &str) {
    match element.attrs.iter_mut().find(|(it, _)| it == name) {
        Some((_, old)) => value.clone_into(old),
        None => element.attrs.push((name.to_owned(), value.to_owned())),
    }
}

/// How bad a file is: what a change must not make worse.
struct State {
    /// Findings that are errors.
    errors: usize,
    /// For each version and for one and two servers, whether NCCL takes it.
    taken: Vec<bool>,
}

impl State {
    fn of(root: &Element, profile: Profile) -> State {
        let mut findings = Findings::default();
        rules::file(root, &mut findings);
        server(root, profile, &mut findings);
        let is_error = |it: &&Finding| it.severity == Severity::Error;
        let errors = findings.found.iter().filter(is_error).count();
        let rank = ranks(root).into_iter().min().unwrap_or(0);
        let asked = Profile::ALL.into_iter().flat_map(|it| [(it, 1), (it, 2)]);
        let taken = asked.map(|(profile, nodes)| {
            let question = Question { nodes, rank, ..Question::new(root.clone(), profile) };
            question.view().is_ok()
        });
        State { errors, taken: taken.collect() }
    }

    fn is_worse_than(&self, before: &State) -> bool {
        let lost = before.taken.iter().zip(&self.taken).any(|(before, after)| *before && !after);
        lost || before.errors < self.errors
    }
}

/// The file with what mends the findings, and for each of them whether it is mended.
///
/// A change after which there would be more errors than before, or after which a version would
/// refuse the file that took it, is not made; nor are the others of its rule, for half of a
/// server's switches made wide is a server that there is not.
pub(super) fn mended(
    root: &Element,
    profile: Profile,
    found: &[Finding],
    edits: &[(usize, Edit)],
) -> (Element, Vec<bool>) {
    let mut is_mended = vec![false; found.len()];
    let mut fixed = root.clone();
    if edits.is_empty() {
        return (fixed, is_mended);
    }
    let before = State::of(root, profile);
    let mut rules: Vec<&str> = edits.iter().map(|(idx, _)| found[*idx].rule).collect();
    rules.sort_unstable();
    rules.dedup();
    // All at once, which is how it nearly always is; else one rule after the other.
    let one_by_one = rules.iter().map(|it| vec![*it]);
    for tried in std::iter::once(rules.clone()).chain(one_by_one) {
        let group = edits.iter().filter(|(idx, _)| tried.contains(&found[*idx].rule));
        let mut changed = fixed.clone();
        group.clone().for_each(|(_, edit)| edit.make(&mut changed));
        if State::of(&changed, profile).is_worse_than(&before) {
            continue;
        }
        fixed = changed;
        group.for_each(|(idx, _)| is_mended[*idx] = true);
        if tried.len() == rules.len() {
            break;
        }
    }
    (fixed, is_mended)
}
