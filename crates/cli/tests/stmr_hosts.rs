//! A host under a program in replicas is lost whole, or its network is.
//!
//! Goal: the program ends with the right output and exit code.  Method: three network namespaces
//! with a host name, processes, a folder for what is not kept and an environment of their own are
//! three hosts for Open MPI, which starts its daemon in each by an agent of ours.  Set s runs on
//! host s, and nothing on this one: replicas of a process have no socket, no memory and no folder
//! in common, and reach each other by TCP alone.  Then all that runs in one of them is killed -9
//! at once, the daemon with it, or its cable is cut, so that nobody hears of an end.  `cargo xtask
//! prove stmr-hosts` draws more runs.  Strangers call at the port of a program that runs on this
//! host.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "a host is lost at a drawn time")]

mod mpi;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use selvedge_stmr::digest::Digest;
use selvedge_stmr::greet::{Card, End, Greeting, SECRET_BYTES, Secret, Side};
use selvedge_stmr::limits::{GREETING_MAX_MS, SILENCE_MAX_MS};

use mpi::{Dice, Mpi, count, lines, told};

const RANKS: usize = 4;

const SILENCE_MAX: Duration = Duration::from_millis(SILENCE_MAX_MS);
const GREETING_MAX: Duration = Duration::from_millis(GREETING_MAX_MS);

/// What a run takes beside the time that a silent host is waited for, at the most.
const REST_MAX: Duration = Duration::from_secs(40);

const HOSTS: usize = 3;

/// How networks of IPv6 begin that nobody has outside; the number of a test's follows.
const V6: &str = "fd13:0:0:";

/// The same as the kernel writes it in its table of connections.
const V6_WORDS: &str = "000013FD";

/// Three network namespaces that reach each other and this one, gone with their owner.
struct Hosts {
    names: Vec<String>,
    bridge: String,
    network: String,
}

impl Hosts {
    /// Makes them, with addresses of IPv6 as well or without; why not, if this machine does not
    /// permit it.
    fn make(has_v6: bool) -> Result<Self, String> {
        // Tests of one process make theirs at the same time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let n = NUMBER.fetch_add(1, Ordering::Relaxed);
        let number = (process::id() * 4 + n) % 65_536;
        let names = (0..HOSTS).map(|it| format!("sv{number}h{it}")).collect();
        // Of the addresses that nobody has outside, those by which few call their own networks.
        let network = format!("10.{}.{}", 100 + number / 250 % 100, number % 250);
        let this = Self { names, bridge: format!("sv{number}"), network };
        let Self { bridge, network, .. } = &this;
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {network}.254/24 dev {bridge}"))?;
        if has_v6 {
            ip(&format!("addr add {V6}{number:x}::fe/64 dev {bridge} nodad"))?;
        }
        ip(&format!("link set {bridge} up"))?;
        for (idx, name) in this.names.iter().enumerate() {
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {name}e type veth peer name eth0 netns {name}"))?;
            ip(&format!("link set {name}e master {bridge} up"))?;
            ip(&format!("-n {name} addr add {network}.{}/24 dev eth0", idx + 1))?;
            if has_v6 {
                ip(&format!("-n {name} addr add {V6}{number:x}::{}/64 dev eth0 nodad", idx + 1))?;
            }
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(this)
    }

    /// What Open MPI starts its daemons by: a host of its own but for the kernel and the programs.
    /// It has run for another time, has its own processes and its own folder for what is not kept,
    /// and gets nothing of the launcher's environment, as by ssh.  The agent ends with 255 when
    /// its host is lost, as ssh does: of such a one Open MPI thinks that its daemon never began.
    fn agent(folder: &Path) -> PathBuf {
        let (path, own) = (folder.join("agent"), own_folder(folder));
        let own = own.display();
        // The second has run for less than the first, and the third for months.
        let text = format!(
            "#!/bin/sh\nhost=$1; shift\nCOMMAND=\"$*\"; export COMMAND host\n\
             ran=$(cut -d. -f1 /proc/uptime)\n\
             case $host in\n*h0) ran=-$((ran / 3));;\n*h1) ran=-$((ran / 2));;\n\
             *) ran=4000000;;\nesac\n\
             ip netns exec $host unshare --uts --mount --ipc --pid --fork --mount-proc --time \
             --monotonic $ran --boottime $ran sh -c '\
             hostname $host && mount -t tmpfs tmpfs {own} && \
             exec env -i PATH=\"$PATH\" HOME=/root TMPDIR={own} sh -c \"$COMMAND\"' || exit 255\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// How a program is started on some of them, on three of them set s on host s.
    fn words(&self, hosts: &[usize], agent: &Path) -> Vec<String> {
        let slots = RANKS * 3 / hosts.len();
        let hosts: Vec<String> =
            hosts.iter().map(|it| format!("{}:{slots}", self.names[*it])).collect();
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

    fn pids(&self, idx: usize) -> Vec<String> {
        let pids = ip(&format!("netns pids {}", self.names[idx])).unwrap();
        pids.split_whitespace().map(str::to_owned).collect()
    }

    /// How many processes of the program run on a host.
    fn count(&self, idx: usize, program: &Path) -> usize {
        let is_program =
            |pid: &&String| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|it| it == program);
        self.pids(idx).iter().filter(is_program).count()
    }

    /// Ends all that runs on a host, and says how many processes of the program that were.
    fn lose(&self, idx: usize, program: &Path) -> usize {
        let n = self.count(idx, program);
        // The first that ends takes others along.
        Command::new("kill").arg("-9").args(self.pids(idx)).stderr(Stdio::null()).status().unwrap();
        n
    }

    /// How many connections of IPv6 a host has.
    fn count_v6(&self, idx: usize) -> usize {
        const ESTABLISHED: &str = " 01 ";
        let cat = format!("netns exec {} cat /proc/net/tcp6", self.names[idx]);
        let text = ip(&cat).unwrap();
        let is_v6 = |it: &&str| it.contains(V6_WORDS) && it.contains(ESTABLISHED);
        text.lines().filter(is_v6).count()
    }

    /// Takes a host's cable out: nobody is told anything.
    fn cut(&self, idx: usize) {
        ip(&format!("link set {}e down", self.names[idx])).unwrap();
    }

    /// Puts it back, and waits until the host can be reached again.
    fn mend(&self, idx: usize) {
        ip(&format!("link set {}e up", self.names[idx])).unwrap();
        // Nobody listens there, and that is an answer.
        let at: SocketAddr = format!("{}.{}:9", self.network, idx + 1).parse().unwrap();
        let until = Instant::now() + REST_MAX;
        let answers = || {
            let e = TcpStream::connect_timeout(&at, Duration::from_secs(1)).unwrap_err();
            e.kind() == ErrorKind::ConnectionRefused
        };
        while !answers() {
            assert!(Instant::now() < until, "host {idx} is not reached any more");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // What was never made is not there to be removed.
        for (idx, name) in self.names.iter().enumerate() {
            if let Ok(pids) = ip(&format!("netns pids {name}"))
                && !pids.trim().is_empty()
            {
                // What a daemon without its launcher left behind.
                let mut kill = Command::new("kill");
                let _ = kill.arg("-9").args(self.pids(idx)).stderr(Stdio::null()).status();
            }
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

/// The folder for what is not kept, which is another on each host.
fn own_folder(folder: &Path) -> PathBuf {
    folder.join("own")
}

/// What a run is made of.
struct Bench {
    mpi: Mpi,
    hosts: Hosts,
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Bench {
    /// Nothing where there is no Open MPI, or this machine does not permit hosts.
    fn make(has_v6: bool) -> Option<Self> {
        let mpi = Mpi::named("openmpi")?;
        let hosts = match Hosts::make(has_v6) {
            Ok(it) => it,
            Err(why) => {
                mpi::missing(&format!("network namespaces, which stand for hosts: {why}"));
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(own_folder(folder.path())).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let program = mpi.compile("ring", folder.path());
        Some(Self { mpi, hosts, folder, program })
    }

    /// Where the program runs, on all hosts.
    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn summary(&self) -> PathBuf {
        self.folder.path().join("summary.json")
    }

    fn command(&self, hosts: &[usize], args: &[&str]) -> Command {
        let agent = Hosts::agent(self.folder.path());
        let launched = self.hosts.words(hosts, &agent);
        let mut words: Vec<&str> = launched.iter().map(String::as_str).collect();
        words.push(self.program.to_str().unwrap());
        let words = [&words, args].concat();
        let mut command = self.mpi.tripled_on(RANKS as u32, &self.summary(), &words);
        command.env("TMPDIR", own_folder(self.folder.path())).current_dir(self.work());
        command
    }

    /// The program on these hosts.  `then` is called once so many lines are printed, and the output
    /// and what was said are returned.
    fn run(
        &self,
        hosts: &[usize],
        args: &[&str],
        n_lines: u64,
        then: impl FnOnce(),
    ) -> (String, Output) {
        let mut command = self.command(hosts, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        for n in 0..n_lines {
            if out.read_line(&mut text).unwrap() == 0 {
                panic!("{n} lines were printed: {}", told(&child.wait_with_output().unwrap()));
            }
        }
        then();
        out.read_to_string(&mut text).unwrap();
        (lines(&text), child.wait_with_output().unwrap())
    }

    /// The program prints what is wanted though the host of all that lead is lost after so many
    /// lines; what was said is returned.
    fn outlives_the_first_host(&self, args: &[&str], n_lines: u64, wanted: &str) -> String {
        let (text, ended) = self.run(&[0, 1, 2], args, n_lines, || {
            self.hosts.lose(0, &self.program);
        });
        let said = told(&ended);
        assert!(ended.status.success(), "{said}");
        assert_eq!(text, wanted, "{said}");
        let counts = [("deaths", RANKS as u64), ("marks", 0), ("restarts", 0)];
        mpi::check_counts(&self.summary(), &counts, &said);
        said
    }
}

#[test]
fn a_host_that_is_lost_whole_is_outlived() {
    let Some(bench) = Bench::make(false) else { return };
    let args = ["1600"];
    let wanted = bench.mpi.plain(&bench.program, &args);
    let (runs, seed) = mpi::proof(1);
    for run in 0..runs {
        let mut dice = Dice::new(seed, run);
        let host = run as usize % HOSTS;
        let mut n_lines = 1 + dice.below(wanted.lines().count() as u64 / 2);
        let said = loop {
            let mut n = 0;
            let (text, ended) = bench.run(&[0, 1, 2], &args, n_lines, || {
                n = bench.hosts.lose(host, &bench.program);
            });
            let said = format!("run {run}, host {host} after {n_lines} lines: {}", told(&ended));
            assert!(ended.status.success(), "{said}");
            assert_eq!(text, wanted, "{said}");
            assert_eq!(n, RANKS, "{said}");
            // Where the host was found when the program had come to its end, it is lost earlier.
            if n_lines == 1 || count(&bench.summary(), "deaths") != 0 {
                break said;
            }
            n_lines = n_lines.div_ceil(2);
        };
        let what = format!("run {run}: host {host} lost after {n_lines} lines");
        mpi::check_counts(
            &bench.summary(),
            &[("deaths", RANKS as u64), ("marks", 0), ("restarts", 0)],
            &said,
        );
        println!("{what}: right");
    }
}

/// Goal: a process finds its number among those of its host, the same in all its replicas, which
/// send it.  Method: each set has a host of its own, then two hosts share all; see numbers.c.
#[test]
fn processes_are_numbered_on_each_host() {
    let Some(mut bench) = Bench::make(false) else { return };
    bench.program = bench.mpi.compile("numbers", bench.folder.path());
    let apart = [(0, 4), (1, 4), (2, 4), (3, 4)];
    // Of the first set the processes are by turns on the one and on the other.
    let shared = [(0, 2), (0, 2), (1, 2), (1, 2)];
    for (hosts, wanted) in [(&[0, 1, 2][..], apart), (&[0, 1], shared)] {
        let (text, ended) = bench.run(hosts, &[], 0, || {});
        let said = format!("{hosts:?}: {text}\n{}", told(&ended));
        assert!(ended.status.success(), "{said}");
        for (rank, (own, n)) in wanted.into_iter().enumerate() {
            let start = format!("rank {rank}: {own} of {n}, ");
            let line = text.lines().find(|it| it.starts_with(&start)).unwrap_or_default();
            assert!(line.contains(&format!(", {own} of {n}; ")), "not `{start}`: {said}");
        }
        let counts = [("deaths", 0), ("marks", 0), ("restarts", 0)];
        mpi::check_counts(&bench.summary(), &counts, &said);
    }
}

/// Goal: a program's clocks go on by the hour when who answers is on another host, and it waits
/// until a time of theirs as long as it wants.  Method: the hosts have run for times of their own;
/// see hours.c.
#[test]
fn clocks_go_on_from_another_host() {
    let Some(mut bench) = Bench::make(false) else { return };
    bench.program = bench.mpi.compile("hours", bench.folder.path());
    let args = ["60"];
    let wanted = bench.mpi.plain(&bench.program, &args);
    bench.outlives_the_first_host(&args, 20, &wanted);
}

/// Goal: files are what a plain run leaves, though who wrote them was on a host that is lost.
#[test]
fn files_go_on_from_another_host() {
    let Some(mut bench) = Bench::make(false) else { return };
    bench.program = bench.mpi.compile("files", bench.folder.path());
    let plain = bench.folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    let words = [bench.program.to_str().unwrap(), "200"];
    let ended = mpi::succeed(bench.mpi.plain_command(&words).current_dir(&plain));
    let wanted = lines(&String::from_utf8_lossy(&ended.stdout));
    let said = bench.outlives_the_first_host(&words[1..], 1, &wanted);
    // Those that are named by the set are each replica's own.
    let left: BTreeMap<_, _> = mpi::tree(&bench.work())
        .into_iter()
        .filter(|it| !it.0.to_string_lossy().starts_with("own."))
        .collect();
    assert!(left == mpi::tree(&plain), "files differ: {said}");
}

/// Goal: a mark is evidence against the machine that a replica ran on, wherever its job's clusters
/// would have it.  Method: the slice's clusters name each host for another set than runs there, and
/// its control plane is not there to be told.
#[test]
fn a_mark_names_the_machine_that_its_replica_ran_on() {
    let Some(mut bench) = Bench::make(false) else { return };
    bench.program = bench.mpi.compile("differ", bench.folder.path());
    let task = |it: usize| {
        let address = format!("{}.{}", bench.hosts.network, it + 1);
        serde_json::json!({"machine": format!("board{it}"), "address": address})
    };
    let tasks: Vec<_> = (0..HOSTS).map(task).collect();
    let text = serde_json::json!({"job": 3, "tasks": tasks, "clusters": [[1, 2, 0]]}).to_string();
    let slice = bench.folder.path().join("slice.json");
    fs::write(&slice, text).unwrap();
    let mut command = bench.command(&[0, 1, 2], &["one"]);
    command.env("SELVEDGE_SLICE_FILE", &slice).env("SELVEDGE_SERVER", "http://127.0.0.1:9");
    let ended = command.output().unwrap();
    let said = told(&ended);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("that set2 of rank 1 erred on board2"), "{said}");
}

#[test]
fn a_host_whose_cable_is_cut_is_outlived_within_the_heartbeats_limit() {
    let Some(bench) = Bench::make(false) else { return };
    let args = ["800"];
    let wanted = bench.mpi.plain(&bench.program, &args);
    let runs = mpi::proof(1).0.div_ceil(10);
    for run in 0..runs as usize {
        let host = run % HOSTS;
        let mut cut = Instant::now();
        let (text, ended) = bench.run(&[0, 1, 2], &args, 1, || {
            bench.hosts.cut(host);
            cut = Instant::now();
        });
        let after = cut.elapsed();
        let what = format!("run {run}: host {host} cut off, and the end {after:?} after that");
        let said = format!("{what}: {}", told(&ended));
        assert!(ended.status.success(), "{said}");
        assert_eq!(text, wanted, "{said}");
        mpi::check_counts(
            &bench.summary(),
            &[("deaths", RANKS as u64), ("marks", 0), ("restarts", 0)],
            &said,
        );
        assert!(SILENCE_MAX / 2 < after && after < SILENCE_MAX + REST_MAX, "{said}");
        // What ran there ends by itself: nobody wants it.
        let until = Instant::now() + SILENCE_MAX + REST_MAX;
        while 0 < bench.hosts.count(host, &bench.program) {
            assert!(Instant::now() < until, "replicas on host {host} outlive their job");
            thread::sleep(Duration::from_millis(100));
        }
        bench.hosts.mend(host);
        println!("{what}: right");
    }
}

/// Goal: a program that two errors in one cluster started again does so on other hosts than theirs.
/// Method: two replicas of a process are killed, on two of three hosts; all the rest happens on the
/// third.
#[test]
fn a_program_starts_again_without_the_hosts_on_which_replicas_erred() {
    let Some(bench) = Bench::make(false) else { return };
    let args = ["800"];
    let wanted = bench.mpi.plain(&bench.program, &args);
    let (text, ended) = bench.run(&[0, 1, 2], &args, 1, || {
        for set in [0, 1] {
            let pid = mpi::replica(&bench.program, set, 1).unwrap();
            mpi::succeed(Command::new("kill").args(["-9", &pid]));
        }
        let until = Instant::now() + REST_MAX;
        let counts = || [0, 1, 2].map(|it| bench.hosts.count(it, &bench.program));
        while counts() != [0, 0, 3 * RANKS] {
            assert!(Instant::now() < until, "{:?} processes on the three hosts", counts());
            thread::sleep(Duration::from_millis(20));
        }
    });
    let said = told(&ended);
    assert!(ended.status.success(), "{said}");
    assert_eq!(text, wanted, "{said}");
    mpi::check_counts(&bench.summary(), &[("restarts", 1), ("marks", 0)], &said);
    let [first, second, _] = &bench.hosts.names[..] else { panic!("there are three hosts") };
    let note = format!("replicas erred on {first}, {second}: the program starts without");
    assert!(said.contains(&note), "{said}");
}

#[test]
fn replicas_on_one_host_and_on_two_and_their_dead_are_served_alike() {
    let Some(bench) = Bench::make(true) else { return };
    let args = ["400"];
    let wanted = bench.mpi.plain(&bench.program, &args);
    // On two hosts each cluster has two replicas on one of them, joined by memory, and one on the
    // other, joined by TCP.  One that is stopped for a while is no death.
    for kills in [0, 1_u64] {
        let (text, ended) = bench.run(&[0, 1], &args, 1, || {
            // Each of the four clusters has two links between these hosts, and each host one to
            // the launcher with its pulse.
            assert!(2 * RANKS + 2 <= bench.hosts.count_v6(0), "IPv6 is there and not used");
            let pid = mpi::replica(&bench.program, kills, 1).unwrap();
            if 0 < kills {
                mpi::succeed(Command::new("kill").args(["-9", &pid]));
            } else {
                mpi::succeed(Command::new("kill").args(["-STOP", &pid]));
                thread::sleep(SILENCE_MAX + Duration::from_secs(3));
                mpi::succeed(Command::new("kill").args(["-CONT", &pid]));
            }
        });
        let said = format!("{kills} killed: {}", told(&ended));
        assert!(ended.status.success(), "{said}");
        assert_eq!(text, wanted, "{said}");
        mpi::check_counts(
            &bench.summary(),
            &[("deaths", kills), ("marks", 0), ("restarts", 0)],
            &said,
        );
    }
}

#[test]
fn strangers_at_the_port_are_refused_told_of_and_keep_nobody_out() {
    let Some(mpi) = Mpi::named("openmpi") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (program, summary) = (mpi.compile("ring", folder.path()), folder.path().join("summary"));
    let args = ["--between-hosts", "yes", program.to_str().unwrap(), "1500"];
    let wanted = mpi.plain(&program, &["1500"]);
    let mut command = mpi.tripled(&summary, &args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = vec![0; 1];
    out.read_exact(&mut text).unwrap();
    let pid = mpi::replica(&program, 0, 0).unwrap();
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ);
    let word = |name: &str| {
        let row = environ.split('\0').find_map(|it| it.strip_prefix(name)).unwrap();
        row.to_owned()
    };
    let reach: SocketAddr = word("SELVEDGE_REACH=").split(' ').next().unwrap().parse().unwrap();
    let secret = Secret::from_text(&word("SELVEDGE_SECRET=")).unwrap();
    // The program waits for one of its replicas meanwhile.
    mpi::succeed(Command::new("kill").args(["-STOP", &pid]));
    // One that says nothing, from the beginning to the end.
    let silent = TcpStream::connect(reach).unwrap();
    let mut garbage = TcpStream::connect(reach).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(is_closed(&garbage), "garbage is answered");
    let card = |from| Card { from, to: End::Launcher, pid: 1, digest: Digest(7) };
    let wrong = Secret::new([1; SECRET_BYTES]);
    let refused = greet(reach, wrong, card(End::Agent));
    assert!(refused.is_err(), "another secret is taken");
    let refused = greet(reach, secret, Card { to: End::Replica(0, 1), ..card(End::Agent) });
    assert!(refused.is_err(), "a caller at the wrong door is taken");
    assert!(is_closed(&silent), "who says nothing is waited for");
    mpi::succeed(Command::new("kill").args(["-CONT", &pid]));
    out.read_to_end(&mut text).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = told(&ended);
    assert!(ended.status.success(), "{said}");
    assert_eq!(lines(&String::from_utf8_lossy(&text)), wanted, "{said}");
    mpi::check_counts(&summary, &[("deaths", 0), ("marks", 0), ("restarts", 0)], &said);
    for (what, n) in [
        ("what it says is no greeting of this version", 1),
        ("it does not know this job's secret", 1),
        ("it calls Replica(0, 1), and this is Launcher", 1),
        ("it does not say who it is", 1),
    ] {
        assert_eq!(said.lines().filter(|it| it.contains(what)).count(), n, "{what}: {said}");
    }
}

/// Whether the other end closes a link without a proof, in time.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(GREETING_MAX + REST_MAX)).unwrap();
    let mut bytes = Vec::new();
    // Its hello is no secret.
    stream
        .read_to_end(&mut bytes)
        .map_or_else(|e| e.kind() == ErrorKind::ConnectionReset, |it| it < 72)
}

/// Calls as a process of the job does.
fn greet(at: SocketAddr, secret: Secret, own: Card) -> std::io::Result<Card> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(REST_MAX))?;
    let mut greeting = Greeting::new(Side::Caller, secret, own, [9; SECRET_BYTES]);
    stream.write_all(&greeting.hello())?;
    loop {
        let mut bytes = vec![0; greeting.wants()];
        stream.read_exact(&mut bytes)?;
        let turn = greeting.take(&bytes).map_err(std::io::Error::other)?;
        stream.write_all(&turn.send)?;
        if let Some(card) = turn.met {
            return Ok(card);
        }
    }
}
