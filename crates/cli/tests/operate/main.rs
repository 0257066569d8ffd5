//! What an operator relies on: who may do what, what is watched, and what the documents tell people
//! to type.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

mod documents;

mod hostile;

mod load;

mod monitoring;

mod packaging;

mod secure;

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

pub(crate) use support::{Up, program};

/// A file of the repository.
pub(crate) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Whether this machine has `name`; says what is not run where it has not.
pub(crate) fn has_program(name: &str, wanted_for: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|it| it.join(name).is_file()));
    if !found {
        println!("not run: {wanted_for}, because {name} is not here");
    }
    found
}
