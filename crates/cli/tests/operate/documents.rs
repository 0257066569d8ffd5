//! The commands that GUIDE.md and docs/operate.md tell people to type, as they stand there.
//!
//! What a machine has and a test has not is stood in for by scripts in front of the path: `sudo`
//! only runs what it is given, `systemctl` starts and ends the server with the words and signals of
//! the unit, `install` cannot give files to the user `selvedge`, and `cargo build` has been done.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::root;

/// A directory in place of the whole machine.
struct Machine {
    dir: tempfile::TempDir,
}

/// Waits until a server answers, as a person would who types the next line.
const ANSWERS: &str = "n=0; until selvedge status >/dev/null 2>&1; do n=$((n+1)); \
                       test $n -lt 600; sleep 0.1; done";

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let machine = Self { dir };
        for it in ["bin", "run", "var/lib", "var/backups", "etc/selvedge", "home"] {
            fs::create_dir_all(machine.path(it)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_selvedge"), machine.path("bin/selvedge"))
            .unwrap();
        machine.script("sudo", "if [ \"$1\" = -u ]; then shift 2; fi; exec \"$@\"");
        machine.script("cargo", "test \"$*\" = 'build --release'");
        machine.script(
            "install",
            "test \"$1 $2 $3 $4 $5\" = '-d -o selvedge -g selvedge'; shift 5; \
             exec /usr/bin/install -d \"$@\"",
        );
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nset -eu\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a script with this machine's programs first; returns what it printed.
    fn run(&self, script: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", script]).current_dir(self.path("home"));
        shell.env("PATH", format!("{}:{path}", self.path("bin").display()));
        shell.env("SELVEDGE_RUNTIME_DIR", self.path("run")).env("USER", "root");
        let log = self.path("log");
        shell.stdin(Stdio::null()).stdout(fs::File::create(&log).unwrap());
        shell.stderr(fs::File::options().append(true).open(&log).unwrap());
        let status = shell.status().unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(status.success(), "{status}:\n{text}");
        text
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Whatever a test that failed has left running.
        for data in ["var/lib/selvedge", "demo"] {
            let mut down = crate::program(&self.path("home"));
            down.env("SELVEDGE_RUNTIME_DIR", self.path("run"));
            let _ = down.args(["down", "--data"]).arg(self.path(data)).output();
        }
    }
}

/// The commands of the blocks that are marked as such, in order.
fn commands(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap();
    let mut commands = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            line if is_inside => commands.push(line.to_owned()),
            _ => (),
        }
    }
    commands
}

#[test]
fn ten_commands_lead_from_a_clone_to_a_healed_fault() {
    let machine = Machine::new();
    let commands = commands(&root("GUIDE.md"));
    assert_eq!(commands.len(), 10, "{commands:?}");
    let demo = machine.path("demo").display().to_string();
    let mut script = String::new();
    for command in &commands {
        assert!(!command.contains("--listen"), "a test must not share a port: {command}");
        let mut command = command.replace("/tmp/selvedge-demo", &demo);
        if let Some((up, wait)) = command.split_once(" & ") {
            // Two tests of this machine may run at once.
            command = format!("{up} --listen 127.0.0.1:0 & {wait}");
        }
        script.push_str(&format!("echo '$ {}'\n{command}\n", command.replace('\'', "")));
    }
    let told = machine.run(&script);
    for part in ["case0 opened: cube0/m05", "case0 closed", "job0 running, start 2"] {
        assert!(told.contains(part), "not {part:?}:\n{told}");
    }
}

#[test]
fn what_operators_are_told_to_type_does_what_is_said() {
    let machine = Machine::new();
    // What the package installs.
    let config = fs::read_to_string(root("packaging/selvedge.example.toml")).unwrap();
    let config = config.replace("127.0.0.1:7070", "127.0.0.1:0");
    let config = config.replace("/var/lib", &machine.path("var/lib").display().to_string());
    fs::write(machine.path("etc/selvedge/selvedge.toml"), config).unwrap();
    machine.script("systemctl", &systemctl(&machine));
    let mut script = String::new();
    for command in commands(&root("docs/operate.md")) {
        let command = ["/var/lib/", "/var/backups/"].into_iter().fold(command, |it, path| {
            it.replace(path, &format!("{}{path}", machine.dir.path().display()))
        });
        script.push_str(&format!("echo '$ {}'\n{command}\n", command.replace('\'', "")));
    }
    assert!(30 <= script.matches("echo '$ ").count(), "{script}");
    let told = machine.run(&script);
    for part in [
        "user ada added as user",
        "joined the team",
        "running",
        "whole: ",
        "cube9/m05",
        "ended: its plant",
    ] {
        assert!(told.contains(part), "not {part:?}:\n{told}");
    }
}

/// What systemd does with the unit's words, without systemd.
fn systemctl(machine: &Machine) -> String {
    let unit = fs::read_to_string(root("packaging/selvedge.service")).unwrap();
    for line in ["Type=notify", "KillMode=process", "KillSignal=SIGTERM", "StateDirectory=selvedge"]
    {
        assert!(unit.lines().any(|it| it == line), "{line}");
    }
    let start = unit.lines().find_map(|it| it.strip_prefix("ExecStart=")).unwrap();
    let etc = machine.path("etc").display().to_string();
    let start = start.replace("/usr/bin/selvedge", "selvedge").replace("%E", &etc);
    let pid = machine.path("run/pid").display().to_string();
    let log = machine.path("run/journal").display().to_string();
    format!(
        "stop() {{ kill -s TERM $(cat {pid}); \
           while grep -qs '^State:.[^Z]' /proc/$(cat {pid})/status; do sleep 0.05; done; }}
         start() {{ {start} </dev/null >>{log} 2>&1 & echo $! >{pid}; {ANSWERS}; }}
         case \"$*\" in
           'enable --now selvedge'|'start selvedge') start;;
           'stop selvedge') stop;;
           'restart selvedge') stop; start;;
           *) echo \"systemctl $*: not known\" >&2; exit 2;;
         esac"
    )
}
