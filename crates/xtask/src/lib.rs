//! Everything a developer or CI runs: `cargo xtask test|tidy|bench|soak|fuzz|prove|deb`.
//!
//! In reading order: the repository as text ([`tree`]) and its Rust as tokens ([`source`]), the
//! rules that hold over both ([`tidy`]), what the machine must have ([`setup`]), the steps of CI
//! in their order ([`ci`]), what the scenarios cost ([`mod@bench`]), fresh seeds of the judge
//! ([`soak`]), inputs mutated by what they reach ([`fuzz`]), what is shown by doing it ([`prove`]),
//! and the Debian package ([`package`]).
#![allow(clippy::disallowed_methods, reason = "a developer's tool may read the clock")]

pub mod source;

pub mod tree;

pub mod tidy;

pub mod setup;

pub mod ci;

pub mod bench;

pub mod soak;

pub mod fuzz;

pub mod prove;

pub mod package;

/// The root of the repository.
pub fn root() -> std::path::PathBuf {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).expect("xtask lies in crates/xtask");
    root.to_owned()
}
