//! A host under a program in replicas is lost whole.
//!
//! Goal: the program ends with the right output and exit code.  Method: three network namespaces
//! with a host name each are three hosts for Open MPI, which starts its daemon in each by an agent
//! of ours; processes of two hosts have no memory in common as far as MPI knows, but this machine's
//! kernel.  Set s runs on host s.  All that runs in one of them is killed -9 at once, the daemon
//! with it.  `cargo xtask prove stmr-hosts` draws more runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a host is lost at a drawn time")]

mod mpi;

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, process, thread};

use mpi::{Dice, Mpi, count, lines, told};

const RANKS: usize = 4;
const HOSTS: usize = 3;

/// Three network namespaces that reach each other and this one, gone with their owner.
struct Hosts {
    names: Vec<String>,
    bridge: String,
    network: String,
}

impl Hosts {
    /// Makes them; why not, if this machine does not permit it.
    fn make() -> Result<Self, String> {
        let number = process::id() % 100_000;
        let names = (0..HOSTS).map(|it| format!("sv{number}h{it}")).collect();
        // Of the addresses that nobody has outside, those by which few call their own networks.
        let network = format!("10.{}.{}", 100 + number / 250 % 100, number % 250);
        let this = Self { names, bridge: format!("sv{number}"), network };
        let Self { bridge, network, .. } = &this;
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {network}.254/24 dev {bridge}"))?;
        ip(&format!("link set {bridge} up"))?;
        for (idx, name) in this.names.iter().enumerate() {
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {name}e type veth peer name eth0 netns {name}"))?;
            ip(&format!("link set {name}e master {bridge} up"))?;
            ip(&format!("-n {name} addr add {network}.{}/24 dev eth0", idx + 1))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(this)
    }

    /// What Open MPI starts its daemons by.  It ends with 0 whatever becomes of a host: of an agent
    /// that does not, Open MPI thinks that its daemon never began, and ends the job.
    fn agent(folder: &Path) -> PathBuf {
        let path = folder.join("agent");
        let text = "#!/bin/sh\nhost=$1; shift\n\
                    ip netns exec $host unshare --uts sh -c \"hostname $host; $*\"\nexit 0\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// How a program is started on them, set s on host s.
    fn words(&self, agent: &Path) -> Vec<String> {
        let hosts: Vec<String> = self.names.iter().map(|it| format!("{it}:{RANKS}")).collect();
        let (hosts, network) = (hosts.join(","), format!("{}.0/24", self.network));
        let words = [
            ["--host", &hosts].to_vec(),
            ["--map-by", "node"].to_vec(),
            ["--mca", "plm_rsh_agent", agent.to_str().unwrap()].to_vec(),
            ["--mca", "oob_tcp_if_include", &network].to_vec(),
            ["--mca", "btl_tcp_if_include", &network].to_vec(),
        ];
        let given = |it: &&str| ["--launcher-arg".to_owned(), (*it).to_owned()];
        words.concat().iter().flat_map(given).collect()
    }

    /// Ends all that runs on a host, and says how many processes of the program that were.
    fn lose(&self, idx: usize, program: &Path) -> usize {
        let pids = ip(&format!("netns pids {}", self.names[idx])).unwrap();
        let pids: Vec<&str> = pids.split_whitespace().collect();
        let is_program =
            |pid: &&&str| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|it| it == program);
        let n = pids.iter().filter(is_program).count();
        mpi::succeed(Command::new("kill").arg("-9").args(&pids));
        n
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // What was never made is not there to be removed.
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
        let _ = ip(&format!("link del {}", self.bridge));
    }
}

fn ip(words: &str) -> Result<String, String> {
    let out = Command::new("ip").args(words.split(' ')).output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() { Ok(text) } else { Err(format!("ip {words}: {said}")) }
}

#[test]
fn a_host_that_is_lost_whole_is_outlived() {
    let Some(mpi) = Mpi::named("openmpi") else { return };
    let hosts = match Hosts::make() {
        Ok(it) => it,
        Err(why) => {
            let is_proof = std::env::var("SELVEDGE_PROOF").is_ok_and(|it| it == "full");
            assert!(!is_proof, "this machine does not permit network namespaces: {why}");
            println!("not run: hosts that are lost, for want of network namespaces: {why}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let program = mpi.compile("ring", folder.path());
    let args = ["800"];
    let wanted = mpi.plain(&program, &args);
    let (agent, summary) = (Hosts::agent(folder.path()), folder.path().join("summary.json"));
    let (runs, seed) = mpi::proof(1);
    for run in 0..runs {
        let mut dice = Dice::new(seed, run);
        let (host, after_ms) = (run as usize % HOSTS, dice.below(1500));
        let launched = hosts.words(&agent);
        let mut words: Vec<&str> = launched.iter().map(String::as_str).collect();
        words.push(program.to_str().unwrap());
        let mut command = mpi.tripled_on(RANKS as u32, &summary, &[&words, &args[..]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = vec![0; 1];
        out.read_exact(&mut text).unwrap();
        thread::sleep(Duration::from_millis(after_ms));
        let n = hosts.lose(host, &program);
        out.read_to_end(&mut text).unwrap();
        let ended = child.wait_with_output().unwrap();
        let what = format!("run {run}: host {host} lost after {after_ms} ms with {n} processes");
        let said = format!("{what}: {}", told(&ended));
        assert!(ended.status.success(), "{said}");
        assert_eq!(lines(&String::from_utf8_lossy(&text)), wanted, "{said}");
        for (name, wanted) in [("deaths", n as u64), ("marks", 0), ("restarts", 0)] {
            assert_eq!(count(&summary, name), wanted, "{name}: {said}");
        }
        println!("{what}: right");
    }
}
