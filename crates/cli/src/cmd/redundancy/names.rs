//! What launchers call the hosts of a plant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use selvedge_family::cluster::hosts::Hosts;
use selvedge_model::fabric::Fabric;

use crate::failure::{Failure, Outcome, Within as _};

/// The name of each host: as in `file`, else by its path.
pub(super) fn of(file: Option<&Path>, fabric: &Fabric, hosts: &Hosts) -> Outcome<Vec<String>> {
    let paths: Vec<String> = hosts.hosts.iter().map(|it| it.path(fabric)).collect();
    let Some(file) = file else {
        let names: Vec<String> = paths.iter().map(|it| plain(it)).collect();
        return match twice(names.iter()) {
            Some(twice) => Err(Failure::new(format!("two hosts would be called {twice}"))
                .hint("give each host its name with --names")),
            None => Ok(names),
        };
    };
    let shown = file.display().to_string();
    let text = fs::read_to_string(file).within(|| format!("cannot read {shown}"))?;
    let given = parse(&text).map_err(|it| it.within(format!("cannot use {shown}")))?;
    for (path, (line, _)) in &given {
        if fabric.find(path).is_none() {
            return Err(Failure::new(format!("line {line}: the plant has no {path}"))
                .hint("write a path as `selvedge plant show` has it, then the host's name")
                .within(format!("cannot use {shown}")));
        }
    }
    let name = |path: &String| given.get(path).map_or_else(|| plain(path), |it| it.1.clone());
    let names: Vec<String> = paths.iter().map(name).collect();
    match twice(names.iter()) {
        Some(twice) => Err(Failure::new(format!("two hosts are called {twice}"))
            .hint("two replicas would run on one machine; give each host its own name")
            .within(format!("cannot use {shown}"))),
        None => Ok(names),
    }
}

/// What a host is called by its path, with `-` for each `/` and `.`, where launchers would end it.
pub(crate) fn plain(path: &str) -> String {
    path.replace(['/', '.'], "-")
}

/// The first that stands twice.
fn twice<T: Ord + Clone>(mut names: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = BTreeSet::new();
    names.find(|it| !seen.insert(it.clone()))
}

/// Holds names against what Open MPI makes of them: it cuts them at the first dot, unless they are
/// addresses, so that hosts that differ behind it are one.
///
/// # Errors
/// Two of them that are one to it.
pub(super) fn for_open_mpi(names: &[String]) -> Outcome<()> {
    let mut short: BTreeMap<&str, &str> = BTreeMap::new();
    for name in names.iter().filter(|it| it.parse::<IpAddr>().is_err()) {
        let cut = name.split('.').next().unwrap_or(name);
        if let Some(other) = short.insert(cut, name)
            && other != name
        {
            return Err(Failure::new(format!(
                "{other} and {name} are one host to Open MPI, which cuts names at the first dot"
            ))
            .hint("name hosts that differ before it, or by address, in --names"));
        }
    }
    Ok(())
}

/// Lines of a path and a name, by path; `#` begins a comment.
fn parse(text: &str) -> Outcome<BTreeMap<String, (usize, String)>> {
    let mut given = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split('#').next().unwrap_or("").split_whitespace().collect();
        match words[..] {
            [] => (),
            [path, name] => {
                if let Some((first, _)) = given.insert(path.to_owned(), (line, name.to_owned())) {
                    return Err(Failure::new(format!("lines {first} and {line} both name {path}"))
                        .hint("name each host once"));
                }
            }
            [..] => {
                return Err(Failure::new(format!("line {line} has {} words", words.len()))
                    .hint("write a path in the plant and the host's name"));
            }
        }
    }
    Ok(given)
}
