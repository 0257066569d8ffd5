//! Builds the library that `selvedge mpirun` preloads, so that the program carries it.
//!
//! A dependency cannot be had as a shared library (docs/decisions/0015), so cargo builds it once
//! more, in a folder of its own: it never waits for the lock of the build that runs this.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = Path::new("../..");
    for path in ["crates/stmr/src", "crates/stmr-mpi", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO");
    let target = out.join("mpi");
    let is_shipped = env::var("PROFILE").is_ok_and(|it| it == "release");
    let built = Command::new(cargo)
        .args(["build", "--release", "--locked", "--package", "selvedge-stmr-mpi"])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // Each run unpacks it, and none looks at lines of its source.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
        .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo")
        // Each call of MPI goes through three crates and the standard library. Tests are built in
        // half the time without it.
        .env("CARGO_PROFILE_RELEASE_LTO", if is_shipped { "fat" } else { "off" })
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", if is_shipped { "1" } else { "2" })
        // What was meant for the build that runs this: lints, coverage, another target.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .status();
    match built {
        Ok(status) if status.success() => {}
        Ok(status) => {
            panic!("the library for MPI programs was not built: cargo ended with {status}")
        }
        Err(e) => panic!("the library for MPI programs was not built: {e}"),
    }
    let library = out.join("selvedge-mpi.so");
    fs::copy(target.join("release/libselvedge_mpi.so"), &library)
        .unwrap_or_else(|e| panic!("the library for MPI programs is not where cargo puts it: {e}"));
    println!("cargo::rustc-env=SELVEDGE_MPI_LIBRARY={}", library.display());
}
