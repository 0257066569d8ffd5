//! `cargo xtask test`: all that CI runs, in its order, and nothing that CI does not.
//!
//! fmt → lints and tests in one build → tests → absent dependencies → tidy → documentation →
//! planted defects → long tests.  A step is a row of `STEPS`.  The first step that fails ends the
//! run and its command is named; what could not be run is named at the end, whether or not
//! something failed.  On a slow machine the last steps are left out, and named.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::setup::Lacking;
use crate::tidy;
use crate::tree::Tree;

/// How the tests are run.
pub struct TestOptions {
    /// Whether missing packages and toolchain parts are installed first.
    pub install: bool,
    /// Whether the steps after a failing one run too.
    pub keep_going: bool,
}

/// One step of CI.
struct Step {
    name: &'static str,
    /// The toolchain part without which it cannot run.
    component: Option<&'static str>,
    /// Whether it calls programs of packages.
    calls_packages: bool,
    /// Whether it is left out when `LONG_BEFORE` has passed.
    is_long: bool,
    run: Run,
}

/// On two processors that take longer than this for everything else, all together would not end
/// within CI's ninety minutes.
const LONG_BEFORE: Duration = Duration::from_secs(40 * 60);

/// How cargo is called in all steps.
struct How {
    has_clippy: bool,
    /// Whether this build is the only one of its folder.
    once: bool,
}

/// Name and value of a variable of the environment.
type Variable = (&'static str, &'static str);

enum Run {
    /// cargo with these arguments, and these variables set.
    Cargo(&'static [&'static str], &'static [Variable]),
    /// Something of our own, by the command that repeats it.
    Own(&'static str, fn(&Tree, &Path) -> bool),
}

const STEPS: &[Step] = &[
    Step {
        name: "form",
        component: Some("rustfmt"),
        calls_packages: false,
        is_long: false,
        run: Run::Cargo(&["fmt", "--all", "--check"], &[]),
    },
    Step {
        name: "build",
        component: None,
        calls_packages: false,
        is_long: false,
        run: Run::Cargo(&["test", "--workspace", "--all-targets", "--no-run"], CHECKED),
    },
    Step {
        name: "tests",
        component: None,
        calls_packages: true,
        is_long: false,
        run: Run::Cargo(&["test", "--workspace", "--no-fail-fast"], CHECKED),
    },
    Step {
        name: "absent dependencies",
        component: None,
        calls_packages: false,
        is_long: false,
        run: Run::Own("cargo tree -e normal -p CRATE", absences),
    },
    Step {
        name: "tidy",
        component: None,
        calls_packages: false,
        is_long: false,
        run: Run::Own("cargo xtask tidy", is_tidy),
    },
    Step {
        name: "documentation",
        component: None,
        calls_packages: false,
        is_long: true,
        run: Run::Cargo(&["doc", "--workspace", "--no-deps"], DOCUMENTED),
    },
    Step {
        name: "planted defects",
        component: None,
        calls_packages: false,
        is_long: true,
        // With the features of the whole workspace, so that no dependency is built once more.
        run: Run::Cargo(
            &["test", "--workspace", "--features", "selvedge-sim/planted", "--test", "planted"],
            CHECKED,
        ),
    },
    Step {
        name: "long tests",
        component: None,
        calls_packages: true,
        is_long: true,
        run: Run::Cargo(&["test", "--workspace", "--no-fail-fast", "--", "--ignored"], CHECKED),
    },
];

/// The crates of the workspace are compiled and linted at once.
const CHECKED: &[Variable] = &[("RUSTC_WORKSPACE_WRAPPER", ".ci/rustc")];

/// A link that leads nowhere is an error.
const DOCUMENTED: &[Variable] = &[("RUSTDOCFLAGS", "-D warnings")];

/// The compiler's heap is in large pages and keeps what it has: a third of the page faults, which
/// are dear on a virtual machine.
const HEAP: Variable =
    ("MALLOC_CONF", "thp:always,metadata_thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1");

/// What is built from nothing, once, gains nothing by what a later build or a debugger would take
/// up (a panic names its line without it), nor by more pieces of a crate than are compiled at once.
fn once() -> [(&'static str, String); 3] {
    let n_processors = std::thread::available_parallelism().map_or(1, usize::from);
    [
        ("CARGO_INCREMENTAL", "0".to_owned()),
        ("CARGO_PROFILE_DEV_DEBUG", "0".to_owned()),
        ("CARGO_PROFILE_DEV_CODEGEN_UNITS", n_processors.min(16).to_string()),
    ]
}

/// Dependencies that a crate must not have, however deep.
struct Absence {
    /// Folders under crates/.
    of: &'static [&'static str],
    never: &'static [&'static str],
    why: &'static str,
}

const ABSENCES: &[Absence] = &[
    Absence {
        of: &["model", "family", "collective", "control", "sim", "stmr"],
        never: &["tokio", "tracing", "rusqlite", "axum", "hyper", "mio", "rand"],
        why: "the core does no IO and is told time and dice",
    },
    Absence { of: &["driver"], never: &["axum", "hyper"], why: "only the server speaks HTTP" },
];

/// Runs every step and returns whether all that ran passed.
pub fn test(root: &Path, options: TestOptions) -> bool {
    let start = Instant::now();
    let mut installing = options.install.then(|| Lacking::find().install());
    let mut wait = || {
        if let Some(it) = installing.take() {
            it.wait();
            if let Err(e) = crate::prove::fetch(root) {
                println!("mpi4py's own tests are left out: {e}");
            }
        }
    };
    let lacking = Lacking::find();
    let tree = match Tree::load(root) {
        Ok(tree) => tree,
        Err(e) => {
            eprintln!("error: {e}");
            return false;
        }
    };
    let has_clippy = !lacking.components.iter().any(|it| it.command == "clippy");
    let how = How { has_clippy, once: options.install };
    let mut times = Vec::new();
    let mut failed: Vec<&Step> = Vec::new();
    let (mut unreached, mut too_late) = (&STEPS[..0], Vec::new());
    for (step_idx, step) in STEPS.iter().enumerate() {
        let is_lacking = |name| lacking.components.iter().any(|it| it.name == name);
        if step.component.is_some_and(is_lacking) {
            continue;
        }
        if step.is_long && LONG_BEFORE < start.elapsed() {
            too_late.push(step);
            continue;
        }
        println!("── {}: {}", step.name, step.run.command());
        let step_start = Instant::now();
        if step.calls_packages {
            wait();
        }
        let passed = step.run.go(&tree, root, &how);
        times.push((step.name, step_start.elapsed()));
        if !passed {
            failed.push(step);
        }
        if !passed && !options.keep_going {
            unreached = &STEPS[step_idx + 1..];
            break;
        }
    }
    wait();
    println!("── summary");
    times.push(("all", start.elapsed()));
    for (name, time) in times {
        println!("{name:20} {:7.1} s", time.as_secs_f64());
    }
    for it in left_out(&tree, &Lacking::find(), env::var_os("SELVEDGE_DATA").is_some()) {
        println!("not run: {it}");
    }
    report(&too_late, unreached, &failed);
    failed.is_empty()
}

fn report(too_late: &[&Step], unreached: &[Step], failed: &[&Step]) {
    for it in too_late {
        let minutes = LONG_BEFORE.as_secs() / 60;
        println!("not run: {}, after {minutes} minutes: {}", it.name, it.run.command());
    }
    for it in unreached {
        println!("not reached: {}: {}", it.name, it.run.command());
    }
    for step in failed {
        println!("failed: {}; repeat it with `{}`", step.name, step.run.command());
    }
    if failed.is_empty() {
        println!("passed: everything that could run here");
    }
}

impl Run {
    fn command(&self) -> String {
        match self {
            Self::Own(command, _) => (*command).to_owned(),
            Self::Cargo(args, variables) => {
                let variables =
                    variables.iter().map(|(name, value)| format!("{name}=\"{value}\" "));
                format!("{}cargo {}", variables.collect::<String>(), args.join(" "))
            }
        }
    }

    fn go(&self, tree: &Tree, root: &Path, how: &How) -> bool {
        match self {
            Self::Own(_, run) => run(tree, root),
            Self::Cargo(args, variables) => {
                let is_due = how.has_clippy || *variables != CHECKED;
                let variables = if is_due { *variables } else { &[] };
                let mut command = Command::new("cargo");
                command.args(*args).env(HEAP.0, HEAP.1).envs(variables.iter().copied());
                if how.once {
                    command.envs(once());
                }
                command.current_dir(root);
                match command.status() {
                    Ok(status) => status.success(),
                    Err(e) => {
                        eprintln!("cannot start cargo: {e}");
                        false
                    }
                }
            }
        }
    }
}

fn is_tidy(tree: &Tree, _root: &Path) -> bool {
    tidy::report(&tidy::findings(tree)) == 0
}

fn absences(tree: &Tree, root: &Path) -> bool {
    let mut passed = true;
    for absence in ABSENCES {
        for name in absence.of.iter().filter(|it| tree.crates().any(|there| there == **it)) {
            let package = format!("selvedge-{name}");
            let args = ["tree", "-e", "normal", "--prefix", "none", "-p", &package];
            let listed = Command::new("cargo").args(args).current_dir(root).output();
            let listed = match listed {
                Ok(it) if it.status.success() => String::from_utf8_lossy(&it.stdout).into_owned(),
                Ok(it) => {
                    eprintln!("cargo {}\n{}", args.join(" "), String::from_utf8_lossy(&it.stderr));
                    passed = false;
                    continue;
                }
                Err(e) => {
                    eprintln!("cannot start cargo: {e}");
                    return false;
                }
            };
            let found = present(&listed, absence.never);
            for found in &found {
                println!("{package} depends on {found}: {}", absence.why);
            }
            let n_all = listed.lines().count();
            println!("{package}: {n_all} crates, {} of them unwanted", found.len());
            passed &= found.is_empty();
        }
    }
    passed
}

/// Which of `never` stand in what `cargo tree --prefix none` printed.
fn present(listed: &str, never: &[&'static str]) -> Vec<&'static str> {
    let is_there = |wanted: &str| listed.lines().any(|it| it.split(' ').next() == Some(wanted));
    never.iter().copied().filter(|it| is_there(it)).collect()
}

/// What could not be run here, and what it would take.
fn left_out(tree: &Tree, lacking: &Lacking, has_data: bool) -> Vec<String> {
    let mut left_out = Vec::new();
    for component in &lacking.components {
        let (name, command) = (component.name, component.command);
        left_out.push(format!("cargo {command}: {name} is missing; add --install"));
    }
    for package in &lacking.packages {
        let (name, wanted_by) = (package.name, package.wanted_by);
        left_out.push(format!("{wanted_by}: package {name} is missing; add --install"));
    }
    if !has_data {
        let tests = tests_of_real_inputs(tree);
        left_out.extend(tests.iter().map(|it| format!("{it}: SELVEDGE_DATA is not set")));
    }
    left_out
}

/// Tests that read the real inputs: those that name `real_input`, which looks in SELVEDGE_DATA.
fn tests_of_real_inputs(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, source) in tree.sources() {
        let reads = |it: &String| it.rsplit("::").next() == Some("real_input");
        let tests = source.functions.iter().filter(|it| it.is_test && it.names.iter().any(reads));
        found.extend(tests.map(|it| format!("{path}: {}", it.name)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{COMPONENTS, PACKAGES};

    #[test]
    fn an_unwanted_dependency_is_seen_by_its_whole_name() {
        let listed = "selvedge-model v0.1.0\nserde v1\ntracing-core v0.1\ntokio v1.2 (*)\n";
        assert_eq!(present(listed, &["tokio", "tracing", "serde_json"]), ["tokio"]);
    }

    #[test]
    fn everything_that_could_not_run_is_named() {
        let text = "#[test]\nfn crux_ends() { let Some(a) = testing::real_input(\"b\") else { return }; }\n\
                    #[test]\nfn other() {}\nfn real_input() {}";
        let tree = Tree::of(&[("crates/sim/tests/traces.rs", text)]);
        let lacking = Lacking {
            packages: PACKAGES.iter().filter(|it| it.name == "valgrind").collect(),
            components: COMPONENTS.iter().filter(|it| it.name == "clippy").collect(),
        };
        assert_eq!(
            left_out(&tree, &lacking, false),
            [
                "cargo clippy: clippy is missing; add --install",
                "cargo xtask bench: package valgrind is missing; add --install",
                "crates/sim/tests/traces.rs: crux_ends: SELVEDGE_DATA is not set",
            ]
        );
        assert!(left_out(&tree, &Lacking::default(), true).is_empty());
    }

    #[test]
    fn a_step_is_named_by_the_command_that_repeats_it() {
        let checked = "RUSTC_WORKSPACE_WRAPPER=\".ci/rustc\" cargo test --workspace";
        let planted = "--features selvedge-sim/planted --test planted";
        let commands: Vec<String> = STEPS.iter().map(|it| it.run.command()).collect();
        assert_eq!(
            commands,
            [
                "cargo fmt --all --check",
                &format!("{checked} --all-targets --no-run"),
                &format!("{checked} --no-fail-fast"),
                "cargo tree -e normal -p CRATE",
                "cargo xtask tidy",
                "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps",
                &format!("{checked} {planted}"),
                &format!("{checked} --no-fail-fast -- --ignored"),
            ]
        );
    }
}
