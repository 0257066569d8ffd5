//! What the machine must have beyond Rust itself, in one place.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// A Debian package that a step or a build needs.
pub struct Package {
    /// What apt calls it.
    pub name: &'static str,
    /// The program, or the file with its whole path, by which one sees that it is there.
    pub program: &'static str,
    /// What cannot be run without it.
    pub wanted_by: &'static str,
}

/// All packages that `cargo xtask test --install` installs.
pub const PACKAGES: &[Package] = &[
    Package {
        name: "faketime",
        program: "faketime",
        wanted_by: "the test of a clock that was set back",
    },
    Package { name: "gcc", program: "cc", wanted_by: "linking, and the bundled SQLite's C" },
    Package { name: "libopenmpi-dev", program: "mpicc", wanted_by: "programs of selvedge mpirun" },
    Package { name: "openmpi-bin", program: "mpirun", wanted_by: "selvedge mpirun" },
    Package {
        name: "libmpich-dev",
        program: "mpicc.mpich",
        wanted_by: "MPICH's programs of selvedge mpirun",
    },
    Package { name: "mpich", program: "mpiexec.hydra", wanted_by: "selvedge mpirun under MPICH" },
    Package { name: "gfortran", program: "gfortran", wanted_by: "Fortran under selvedge mpirun" },
    Package {
        name: "prometheus",
        program: "promtool",
        wanted_by: "the tests of packaging/prometheus and packaging/grafana",
    },
    Package { name: "valgrind", program: "valgrind", wanted_by: "cargo xtask bench" },
    Package {
        name: "python3-torch",
        program: "/usr/lib/python3/dist-packages/torch/__init__.py",
        wanted_by: "cargo xtask prove training, and its short form in the tests",
    },
    Package {
        name: "python3-mpi4py",
        program: "/usr/lib/python3/dist-packages/mpi4py/__init__.py",
        wanted_by: "cargo xtask prove stmr-programs, and its short form in the tests",
    },
    Package { name: "lammps", program: "lmp", wanted_by: "the same" },
    Package {
        name: "lammps-examples",
        program: "/usr/share/lammps/examples/melt/in.melt",
        wanted_by: "the same",
    },
    Package {
        name: "scalapack-mpi-test",
        program: "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests/xdlu",
        wanted_by: "the same",
    },
    Package { name: "gromacs", program: "gmx_mpi", wanted_by: "the same" },
    Package {
        name: "chromium",
        program: "/usr/bin/chromium",
        wanted_by: "cargo xtask prove browser, and its short form in the tests",
    },
];

/// A part of the Rust toolchain that a step needs.
pub struct Component {
    /// What rustup calls it.
    pub name: &'static str,
    /// The cargo command that it brings.
    pub command: &'static str,
}

/// All toolchain parts that `cargo xtask test --install` installs.
pub const COMPONENTS: &[Component] = &[
    Component { name: "rustfmt", command: "fmt" },
    Component { name: "clippy", command: "clippy" },
];

/// What this machine lacks.
#[derive(Default)]
pub struct Lacking {
    /// Packages.
    pub packages: Vec<&'static Package>,
    /// Toolchain parts.
    pub components: Vec<&'static Component>,
}

impl Lacking {
    /// Looks, and changes nothing.
    pub fn find() -> Self {
        Self {
            packages: PACKAGES.iter().filter(|it| !is_on_path(it.program)).collect(),
            components: COMPONENTS.iter().filter(|it| !answers(it.command)).collect(),
        }
    }

    /// The commands that would bring the toolchain's parts, then those that would bring the
    /// packages, in order.
    #[must_use]
    pub fn commands(&self, by: Rights) -> [Vec<Vec<&'static str>>; 2] {
        let sudo: &[&str] = if by == Rights::Sudo { &["sudo"] } else { &[] };
        let apt = |rest: &[&'static str]| [sudo, &["apt-get"], rest].concat();
        let (mut components, mut packages) = (Vec::new(), Vec::new());
        if !self.components.is_empty() {
            let names = self.components.iter().map(|it| it.name);
            components.push(["rustup", "component", "add"].into_iter().chain(names).collect());
        }
        if !self.packages.is_empty() {
            let names: Vec<&str> = self.packages.iter().map(|it| it.name).collect();
            // A fresh image has no package lists.
            packages.push(apt(&["update"]));
            packages
                .push(apt(&[&["install", "-y", "--no-install-recommends"], &names[..]].concat()));
        }
        [components, packages]
    }

    /// Says what it will install, then installs it: the toolchain's parts before it returns, and
    /// packages while the tests are built, which takes none of them.  What failed is what is
    /// lacking afterwards.
    pub fn install(&self) -> Installing {
        let [components, packages] = self.commands(Rights::here());
        if components.is_empty() && packages.is_empty() {
            println!("nothing to install: all packages and toolchain parts are here");
        } else {
            println!("this installs, packages beside the build:");
        }
        for package in &self.packages {
            println!("  {:13} for {}", package.name, package.wanted_by);
        }
        for component in &self.components {
            println!("  {:13} for cargo {}", component.name, component.command);
        }
        for command in components {
            println!("{}", carried_out(&command));
        }
        Installing(thread::spawn(move || {
            packages.iter().map(|it| carried_out(it)).collect::<Vec<_>>().join("\n")
        }))
    }
}

/// Packages on their way.
pub struct Installing(thread::JoinHandle<String>);

impl Installing {
    /// Waits for them, and prints what their commands did.
    pub fn wait(self) {
        let told = self.0.join().expect("what installs does not panic");
        if !told.is_empty() {
            println!("{told}");
        }
    }
}

/// A command, all that it printed, and how it ended if that was not well.
fn carried_out(command: &[&str]) -> String {
    let mut told = format!("$ {}", command.join(" "));
    let (program, args) = command.split_first().expect("a command has a program");
    let out = Command::new(program).args(args).env("DEBIAN_FRONTEND", "noninteractive").output();
    match out {
        Ok(out) => {
            for text in [&out.stdout, &out.stderr].map(|it| String::from_utf8_lossy(it)) {
                told.extend(text.lines().map(|it| format!("\n{it}")));
            }
            if !out.status.success() {
                told += &format!("\n{program} ended with {}", out.status);
            }
        }
        Err(e) => told += &format!("\ncannot start {program}: {e}"),
    }
    told
}

/// How packages are installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Directly.
    Root,
    /// Through sudo.
    Sudo,
}

impl Rights {
    fn here() -> Self {
        let answer = Command::new("id").arg("-u").output();
        let is_root = answer.is_ok_and(|it| it.stdout.trim_ascii() == b"0");
        if is_root { Self::Root } else { Self::Sudo }
    }
}

fn is_on_path(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|it| Path::new(&it).join(program).is_file())
}

/// Whether cargo has this command.
pub(crate) fn answers(command: &str) -> bool {
    let asked = Command::new("cargo")
        .args([command, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|it| it.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_installed_where_nothing_is_lacking() {
        assert!(Lacking::default().commands(Rights::Root).iter().all(Vec::is_empty));
    }

    #[test]
    fn what_a_command_printed_and_how_it_ended_is_told() {
        let told = carried_out(&["sh", "-c", "echo one; echo two >&2; exit 3"]);
        assert!(told.ends_with("\none\ntwo\nsh ended with exit status: 3"), "{told}");
        assert!(carried_out(&["no-such-program"]).contains("cannot start no-such-program: "));
    }

    #[test]
    fn packages_come_through_sudo_unless_one_is_root_and_components_never_do() {
        let lacking = Lacking {
            packages: PACKAGES.iter().collect(),
            components: COMPONENTS.iter().collect(),
        };
        let shown = |by| lacking.commands(by).concat().iter().map(|it| it.join(" ")).collect();
        let packages = "apt-get install -y --no-install-recommends faketime gcc libopenmpi-dev \
                        openmpi-bin libmpich-dev mpich gfortran prometheus valgrind python3-torch \
                        python3-mpi4py lammps lammps-examples scalapack-mpi-test gromacs \
                        chromium";
        let components = "rustup component add rustfmt clippy";
        let as_root: Vec<String> = shown(Rights::Root);
        assert_eq!(as_root, [components, "apt-get update", packages]);
        let sudo = format!("sudo {packages}");
        assert_eq!(shown(Rights::Sudo), [components, "sudo apt-get update", &sudo]);
    }
}
