//! `cargo xtask soak`: fresh seeds of the judge until the time is up, or defects built in on
//! purpose.
//!
//! The runs are in `examples/soak.rs`, which is built for speed and, for defects, with a feature
//! that no product has.

use std::path::Path;
use std::process::Command;

/// What is run.
pub struct SoakOptions {
    /// For how long.
    pub minutes: u64,
    /// The first seed; drawn from the clock if absent.
    pub seed: Option<u64>,
    /// The defect to build in, or `all`.
    pub planted: Option<String>,
}

/// Why nothing ran.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// cargo could not be started.
    #[error("cannot start cargo")]
    NotStarted {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Runs it and returns whether all was well.
///
/// # Errors
/// [`SoakError`].
pub fn run(root: &Path, options: &SoakOptions) -> Result<bool, SoakError> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(arguments(options));
    let status = command.status().map_err(|source| SoakError::NotStarted { source })?;
    Ok(status.success())
}

fn arguments(options: &SoakOptions) -> Vec<String> {
    let words = ["run", "--quiet", "--release", "--package", "xtask", "--example", "soak"];
    let mut arguments: Vec<String> = words.into_iter().map(ToOwned::to_owned).collect();
    if options.planted.is_some() {
        arguments.extend(["--features", "planted"].map(ToOwned::to_owned));
    }
    arguments.push("--".to_owned());
    match &options.planted {
        Some(defect) => arguments.extend(["planted".to_owned(), defect.clone()]),
        None => arguments.extend(["minutes".to_owned(), options.minutes.to_string()]),
    }
    arguments.extend(options.seed.map(|it| it.to_string()));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_are_built_only_where_they_are_asked_for() {
        let minutes = SoakOptions { minutes: 3, seed: Some(7), planted: None };
        let line = arguments(&minutes).join(" ");
        assert_eq!(line, "run --quiet --release --package xtask --example soak -- minutes 3 7");
        let planted = SoakOptions { minutes: 3, seed: None, planted: Some("all".to_owned()) };
        let line = arguments(&planted).join(" ");
        let wanted = "run --quiet --release --package xtask --example soak --features planted";
        assert_eq!(line, format!("{wanted} -- planted all"));
    }
}
