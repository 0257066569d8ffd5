//! What is mended in a file without asking, and that nothing gets worse by it.

use crate::host::change::Question;
use crate::host::lint::{Finding, Findings, Severity, rules, server};
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::Element;
use crate::host::place::{TreePath, at_mut};

/// One change to the file.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// An attribute has that value.
    Set {
        /// Of which element.
        path: TreePath,
        /// Which.
        attr: &'static str,
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
        let rank = rules::ranks(root).into_iter().min().unwrap_or(0);
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

/// The file with what mends the findings, by their places in the list, and for each whether it is
/// mended: a change after which there would be more errors than before, or after which a version
/// would refuse the file that took it, is not made.
pub(super) fn mended(
    root: &Element,
    profile: Profile,
    edits: &[(usize, Edit)],
    n_findings: usize,
) -> (Element, Vec<bool>) {
    /// Findings that are tried one by one; beyond, all or none of them are mended.
    const TRIED: usize = 16;
    let mut is_mended = vec![false; n_findings];
    if edits.is_empty() {
        return (root.clone(), is_mended);
    }
    let before = State::of(root, profile);
    let mut all = root.clone();
    edits.iter().for_each(|(_, edit)| edit.make(&mut all));
    if !State::of(&all, profile).is_worse_than(&before) {
        edits.iter().for_each(|(idx, _)| is_mended[*idx] = true);
        return (all, is_mended);
    }
    let mut fixed = root.clone();
    let groups: Vec<&[(usize, Edit)]> = edits.chunk_by(|a, b| a.0 == b.0).collect();
    if groups.len() > TRIED {
        return (fixed, is_mended);
    }
    for group in groups {
        let mut tried = fixed.clone();
        group.iter().for_each(|(_, edit)| edit.make(&mut tried));
        if !State::of(&tried, profile).is_worse_than(&before) {
            fixed = tried;
            is_mended[group[0].0] = true;
        }
    }
    (fixed, is_mended)
}
