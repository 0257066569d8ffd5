//! `cargo xtask fuzz`: a fuzz target of `fuzz/` until the time is up, its corpus then cut down to
//! what reaches different code.
//!
//! It wants the nightly toolchain and `cargo-fuzz`, which nothing else here does.  The code under
//! test is safe Rust, so no sanitizer slows it down.

use std::path::Path;
use std::process::Command;

/// What is run.
pub struct FuzzOptions {
    /// Which target; one of `fuzz/fuzz_targets`.
    pub target: String,
    /// For how long.
    pub minutes: u64,
}

/// Why nothing ran.
#[derive(Debug, thiserror::Error)]
pub enum FuzzError {
    /// There is no such target.
    #[error("there is no fuzz target {target}; fuzz/fuzz_targets has {present}")]
    NoTarget {
        /// What was asked for.
        target: String,
        /// Those that are there.
        present: String,
    },
    /// cargo could not be started.
    #[error("cannot start cargo")]
    NotStarted {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Runs it and returns whether nothing was found.
///
/// # Errors
/// [`FuzzError`].
pub fn run(root: &Path, options: &FuzzOptions) -> Result<bool, FuzzError> {
    let present = targets(root);
    let target = &options.target;
    if !present.contains(target) {
        let present = present.join(", ");
        return Err(FuzzError::NoTarget { target: target.clone(), present });
    }
    for arguments in [run_arguments(options), cut_arguments(target)] {
        let mut command = Command::new("cargo");
        command.current_dir(root.join("fuzz")).args(arguments);
        let status = command.status().map_err(|source| FuzzError::NotStarted { source })?;
        if !status.success() {
            eprintln!(
                "hint: without them, `rustup toolchain add nightly`, `cargo install cargo-fuzz`"
            );
            return Ok(false);
        }
    }
    Ok(true)
}

/// The targets that there are, by name.
fn targets(root: &Path) -> Vec<String> {
    let folder = root.join("fuzz/fuzz_targets").read_dir().into_iter().flatten();
    let stem = |it: std::fs::DirEntry| it.path().file_stem()?.to_str().map(str::to_owned);
    let mut found: Vec<String> = folder.flatten().filter_map(stem).collect();
    found.sort();
    found
}

fn run_arguments(options: &FuzzOptions) -> Vec<String> {
    let words = ["+nightly", "fuzz", "run", "--sanitizer", "none", &options.target, "--"];
    let mut arguments: Vec<String> = words.into_iter().map(str::to_owned).collect();
    arguments.push("-dict=topology.dict".to_owned());
    arguments.extend(["-max_len=4096", "-timeout=60", "-rss_limit_mb=1024"].map(str::to_owned));
    arguments.push("-print_final_stats=1".to_owned());
    arguments.push(format!("-max_total_time={}", options.minutes * 60));
    arguments
}

/// Keeps of the corpus what is short and reaches what nothing shorter does.
fn cut_arguments(target: &str) -> Vec<String> {
    let words = ["+nightly", "fuzz", "cmin", "--sanitizer", "none", target, "--", "-max_len=1024"];
    words.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_a_program_of_the_folder_and_has_a_corpus() {
        let root = crate::root();
        let found = targets(&root);
        assert_eq!(found, ["server", "topology"]);
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        for target in found {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
            let corpus = root.join("fuzz/corpus").join(&target);
            assert!(corpus.read_dir().unwrap().next().is_some(), "{target}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_refused_with_those_that_are() {
        let options = FuzzOptions { target: "x".to_owned(), minutes: 1 };
        let error = run(&crate::root(), &options).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no fuzz target x; fuzz/fuzz_targets has server, topology"
        );
    }

    #[test]
    fn minutes_become_seconds() {
        let options = FuzzOptions { target: "topology".to_owned(), minutes: 60 };
        let last = run_arguments(&options).pop();
        assert_eq!(last.as_deref(), Some("-max_total_time=3600"));
    }
}
