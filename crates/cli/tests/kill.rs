//! Kill -9 at random moments, under load: nothing that was acknowledged is lost or done twice.
//!
//! Goal: a server, one that is only starting, a plant, both, or the supervisor of a task may be
//! killed at any point.  Method: clients submit with keys
//! (parts of cubes, whole cubes that mirrors are moved for, and programs), cancel and drain, and
//! repeat what got no answer until it gets one, while processes are killed and started again.
//! Then their logs are compared with what the server says, the journal is replayed from its first
//! row and compared with every digest that a server told, and each mirror of a job that ran
//! throughout must not have moved; its real tasks must still be the same processes, and no program
//! may have been started twice for one attempt.
//! The same seed kills the same processes after the same waits.
//! `cargo xtask prove kill` runs the long form of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "real processes die in real time")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use selvedge_control::commit::Record;
use selvedge_control::core::Core;
use selvedge_driver::process::Process;
use selvedge_driver::store::Store;
use selvedge_model::unit::Ppm;
use selvedge_sim::dice::Dice;
use serde_json::{Value, json};

use support::{PATIENCE, end_left, program};

/// What this run does.
struct Measure {
    n_kills: u64,
    seed: u64,
    n_clients: u64,
    /// Between two kills, in milliseconds.
    wait_ms: (u64, u64),
    /// Whether it is the proof.
    is_full: bool,
}

impl Measure {
    fn of_this_run() -> Self {
        let number = |name| std::env::var(name).ok().and_then(|it| it.parse().ok());
        let full = std::env::var_os("SELVEDGE_PROOF").is_some();
        Self {
            n_kills: number("SELVEDGE_KILLS").unwrap_or(if full { 200 } else { 6 }),
            seed: number("SELVEDGE_SEED").unwrap_or(1),
            n_clients: 32,
            wait_ms: if full { (20, 900) } else { (100, 500) },
            is_full: full,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Server,
    Plant,
    Both,
    /// A server, and then one to three more before they answer.
    Start,
    /// That of a real task, which then begins again.
    Supervisor,
}

impl Victim {
    /// Each once, then drawn.  Supervisors are for the proof, as what happened to a task is waited
    /// for in real minutes.
    fn nth(nth: u64, is_full: bool, dice: &mut Dice) -> Self {
        let first = [Self::Server, Self::Plant, Self::Both, Self::Start, Self::Supervisor];
        let first = if is_full { &first[..] } else { &first[..4] };
        let drawn = dice.below(if is_full { 10 } else { 9 });
        first.get(nth as usize).copied().unwrap_or(match drawn {
            0..=2 => Self::Server,
            3..=5 => Self::Plant,
            6..=7 => Self::Both,
            8 => Self::Start,
            _ => Self::Supervisor,
        })
    }
}

/// A server, what it started, and how it is asked.
struct House {
    dir: PathBuf,
    child: Option<Child>,
    address: Arc<Mutex<SocketAddr>>,
    token: String,
}

impl House {
    fn new(dir: &Path) -> Self {
        let address = Arc::new(Mutex::new("127.0.0.1:1".parse().unwrap()));
        let mut house = Self { dir: dir.to_owned(), child: None, address, token: String::new() };
        house.up();
        let token = fs::read_to_string(house.data().join("token")).unwrap();
        house.token = token.trim().to_owned();
        house
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Starts the server; returns once it answers.
    fn up(&mut self) {
        let (child, url) = support::begin(&self.dir, &[]);
        *self.address.lock().unwrap() = url.trim_start_matches("http://").parse().unwrap();
        self.child = Some(child);
    }

    fn client(&self) -> Client {
        Client { address: Arc::clone(&self.address), token: self.token.clone() }
    }

    fn plant(&self) -> Process {
        let text = fs::read(self.data().join("plant/process")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// Kills, and sees to it that all is there again; not for a supervisor.
    fn kill(&mut self, victim: Victim, dice: &mut Dice) {
        if matches!(victim, Victim::Plant | Victim::Both) {
            self.plant().kill().unwrap();
        }
        if victim == Victim::Plant {
            return;
        }
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let n_starts = if victim == Victim::Start { 1 + dice.below(3) } else { 0 };
        for _ in 0..n_starts {
            let mut up = support::up(&self.dir, &[]);
            let mut child = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(dice.below(START_MS)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.up();
    }

    fn json(&self, args: &[&str]) -> Value {
        let url = format!("http://{}", self.address.lock().unwrap());
        let done =
            program(&self.dir).args(["--server", &url, "--json"]).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Whatever is left: the next server ends what it finds, in order.
        if std::thread::panicking() {
            end_left(&self.dir);
        }
    }
}

/// Somebody who asks a server that may be dying.
#[derive(Clone)]
struct Client {
    address: Arc<Mutex<SocketAddr>>,
    token: String,
}

impl Client {
    /// Asks once; an error says nothing about whether it was done.
    fn try_ask(
        &self,
        method: &str,
        path: &str,
        by: &str,
        body: &Value,
    ) -> std::io::Result<(u16, Value)> {
        let address = *self.address.lock().unwrap();
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let body = if method == "GET" { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Selvedge-By: {by}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.token,
            body.len()
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).ok_or_else(cut)?;
        Ok((status, serde_json::from_str(body).map_err(|_| cut())?))
    }

    /// Asks until there is an answer that is one; counts how often it was asked in vain.
    fn ask(
        &self,
        method: &str,
        path: &str,
        by: &str,
        body: &Value,
        n_vain: &AtomicU64,
    ) -> (u16, Value) {
        let since = Instant::now();
        loop {
            match self.try_ask(method, path, by, body) {
                Ok((status, value)) if status < 500 => return (status, value),
                Ok(_) | Err(_) => {
                    n_vain.fetch_add(1, Ordering::Relaxed);
                    assert!(since.elapsed() < PATIENCE, "{method} {path} is not answered");
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, "judge", &Value::Null, &AtomicU64::new(0));
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let value = self.get(path);
            if holds(&value) {
                return value;
            }
            assert!(since.elapsed() < PATIENCE, "{path} still says {value}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Row and digest, as one server told them together.
    fn digest(&self) -> (u64, String) {
        let status = self.get("/v1/status");
        (status["journal"].as_u64().unwrap(), status["digest"].as_str().unwrap().to_owned())
    }

    /// How often the mirrors of each xconnect that `job` holds were moved, by the switches' count.
    fn moves(&self, job: u64) -> BTreeMap<String, u64> {
        let pairs = self.pairs().into_iter().filter(|(_, it)| it["job"] == job);
        pairs.map(|(name, it)| (name, it["moves"].as_u64().unwrap())).collect()
    }

    /// The xconnects that jobs other than `job` hold, as `x0 17-17 of 42`.
    fn held_by_others(&self, job: u64) -> BTreeSet<String> {
        let pairs = self.pairs().into_iter();
        let others = pairs.filter(|(_, it)| it["job"].is_u64() && it["job"] != job);
        others.map(|(name, it)| format!("{name} of {}", it["job"])).collect()
    }

    /// All xconnects, each by its switch and ports.
    fn pairs(&self) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        for switch in self.get("/v1/switches")["switches"].as_array().unwrap() {
            let name = switch["name"].as_str().unwrap();
            let pairs = self.get(&format!("/v1/switches/{name}"))["pairs"].clone();
            let named =
                |it: &Value| (format!("{name} {}-{}", it["north"], it["south"]), it.clone());
            found.extend(pairs.as_array().unwrap().iter().map(named));
        }
        found
    }
}

/// What one client was told.
#[derive(Default)]
struct Log {
    /// Name and number of each job.
    submitted: Vec<(String, u64)>,
    /// Those of them that are programs.
    programs: Vec<u64>,
    cancelled: Vec<u64>,
    /// Whether its machine is drained by it.
    drained: bool,
    n_drains: u64,
}

/// A server that starts is killed within so many milliseconds: about as long as it takes to answer.
const START_MS: u64 = 400;

/// The file in which each program says once, for each time that it is started, which it is.
const STARTS: &str = "starts";

/// The `nth` job of a client: each of the first few a program, then most a part of a cube, and some
/// whole cubes, which come first and for which mirrors are moved.
fn form(key: &str, nth: usize, starts: &Path, dice: &mut Dice) -> Value {
    if nth < N_PROGRAMS {
        let starts = starts.display();
        let say = format!("echo $SELVEDGE_JOB_ID.$SELVEDGE_ATTEMPT.$SELVEDGE_TASK >> {starts}");
        let command = ["sh", "-c", &say];
        return json!({"name": key, "key": key, "shape": "2x2x2", "priority": 8,
            "command": command});
    }
    let (shape, priority) = match dice.below(20) {
        0 => ("4x4x8", 6),
        1..=3 => ("4x4x4", 6),
        _ => ("2x2x1", 3),
    };
    let duration = format!("{}s", 2 + dice.below(30));
    json!({"name": key, "key": key, "shape": shape, "priority": priority, "duration": duration})
}

/// Programs of each client.
const N_PROGRAMS: usize = 3;

/// One client's work, until it is to stop: nothing is begun then, and nothing left unanswered.
fn work(
    client: &Client,
    nth: u64,
    starts: &Path,
    seed: u64,
    (stop, n_vain): (&AtomicBool, &AtomicU64),
) -> Log {
    let mut dice = Dice::new(seed, &format!("client {nth}"));
    let (mut log, by) = (Log::default(), format!("client{nth}"));
    let machine = format!("cube{}/m{:02}", 62 + nth / 16, nth % 16);
    let post = |path: &str, body: Value| client.ask("POST", path, &by, &body, n_vain);
    while !stop.load(Ordering::Relaxed) {
        match dice.below(10) {
            0..=4 => {
                let n_before = log.submitted.len();
                let key = format!("{by}-{n_before}");
                let (status, job) = post("/v1/jobs", form(&key, n_before, starts, &mut dice));
                assert!(status == 200 || status == 201, "{key}: {status} {job}");
                let id = job["id"].as_u64().unwrap();
                if n_before < N_PROGRAMS {
                    log.programs.push(id);
                }
                log.submitted.push((key, id));
            }
            5..=7 => {
                let mut ids = log.submitted.iter().skip(N_PROGRAMS).map(|it| it.1);
                let Some(id) = ids.find(|it| !log.cancelled.contains(it)) else {
                    continue;
                };
                let (status, answer) = post(&format!("/v1/jobs/{id}/cancel"), json!({}));
                // Over already, or cancelled by the ask that got no answer.
                assert!(status == 200 || status == 409, "{id}: {status} {answer}");
                log.cancelled.push(id);
            }
            8 => {
                let verb = if log.drained { "undrain" } else { "drain" };
                let mut form = json!({ "target": machine });
                if !log.drained {
                    form["why"] = "proof".into();
                }
                let (status, answer) = post(&format!("/v1/{verb}"), form);
                // An undrain that was carried out unheard has nothing to take back.
                assert!(status == 200 || log.drained, "{machine}: {status} {answer}");
                log.drained = !log.drained;
                log.n_drains += 1;
            }
            _ => drop(client.get("/v1/drains")),
        }
        std::thread::sleep(Duration::from_millis(20 + dice.below(150)));
    }
    log
}

#[test]
fn what_was_acknowledged_is_there_exactly_once_whoever_is_killed() {
    let measure = Measure::of_this_run();
    let dir = support::dir();
    let mut house = House::new(dir.path());
    let client = house.client();
    let held = held_job(&house, &client);
    let moves = client.moves(held);
    assert_eq!(moves.len(), 8 * 48, "8 cubes, 3 dimensions, 16 switches each");
    let real = real_tasks(&house, &client);
    let tasks = tasks_of(&client, real);
    assert_eq!(tasks.len(), 4);
    let starts = dir.path().join(STARTS);
    let (stop, n_vain) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..measure.n_clients)
        .map(|nth| {
            let (client, stop, n_vain) = (client.clone(), Arc::clone(&stop), Arc::clone(&n_vain));
            let (seed, starts) = (measure.seed, starts.clone());
            std::thread::spawn(move || work(&client, nth, &starts, seed, (&stop, &n_vain)))
        })
        .collect();
    let watched = Watched { held, real, tasks: &tasks };
    let Struck { mut told, took, orphans, wired } = strike(&measure, &mut house, &client, watched);
    assert!(!wired.is_empty(), "no mirror was set while processes died");
    stop.store(true, Ordering::Relaxed);
    let logs: Vec<Log> = clients.into_iter().map(|it| it.join().unwrap()).collect();
    told.push(client.digest());
    for &(job, task) in &orphans {
        begins_again(&client, job, task);
    }
    compare(&client, &logs, 2 + orphans.len());
    let n_starts = check_starts(&client, &logs, &starts);
    client.until("/v1/switches", |it| {
        it["switches"].as_array().unwrap().iter().all(|it| it["known"] == true)
    });
    assert_eq!(client.moves(held), moves, "a mirror of a job that runs was moved");
    let job = client.get(&format!("/v1/jobs/{held}"));
    assert_eq!((&job["state"], &job["attempt"]), (&json!("running"), &json!(1)), "{job}");
    assert_eq!(tasks_of(&client, real), tasks, "a real task is another process");
    assert_eq!(client.get("/v1/check"), json!({ "violations": [] }));
    told.push(client.digest());
    end(&mut house);
    let n_rows = replay(&house.data(), &told);
    print(&measure, &took, &logs, n_rows, n_vain.load(Ordering::Relaxed));
    let jobs: BTreeSet<&str> = wired.iter().filter_map(|it| it.split(" of ").nth(1)).collect();
    let n_wired = (wired.len(), jobs.len());
    println!(
        "{} xconnects seen held by {} other jobs; {n_starts} starts; {} supervisors killed",
        n_wired.0,
        n_wired.1,
        orphans.len()
    );
}

/// What must not change while processes die.
#[derive(Clone, Copy)]
struct Watched<'a> {
    /// A job that holds xconnects.
    held: u64,
    /// A job of real tasks.
    real: u64,
    tasks: &'a [Process],
}

/// What was seen while processes died.
struct Struck {
    /// Digests that servers told, with their rows.
    told: Vec<(u64, String)>,
    took: BTreeMap<Victim, Vec<Duration>>,
    /// Jobs whose supervisor was killed, and their task.
    orphans: Vec<(u64, Process)>,
    /// Xconnects that jobs of the clients held.
    wired: BTreeSet<String>,
}

/// Kills one after the other.
fn strike(
    measure: &Measure,
    house: &mut House,
    client: &Client,
    Watched { held, real, tasks }: Watched<'_>,
) -> Struck {
    let mut dice = Dice::new(measure.seed, "kills");
    let mut told = vec![client.digest()];
    let mut took: BTreeMap<Victim, Vec<Duration>> = BTreeMap::new();
    let (mut orphans, mut wired) = (Vec::new(), BTreeSet::new());
    for nth in 0..measure.n_kills {
        let wait = measure.wait_ms.0 + dice.below(measure.wait_ms.1 - measure.wait_ms.0);
        std::thread::sleep(Duration::from_millis(wait));
        let victim = Victim::nth(nth, measure.is_full, &mut dice);
        if victim == Victim::Supervisor {
            orphans.push(orphan(client, orphans.len()));
            continue;
        }
        told.push(client.digest());
        let since = Instant::now();
        let plant = house.plant().pid;
        house.kill(victim, &mut dice);
        // A plant that has just died is thought to live until it is looked at.
        let is_new = matches!(victim, Victim::Plant | Victim::Both);
        let is_back = |it: &Value| !is_new || it["plant_pid"] != plant;
        client.until("/v1/status", |it| it["plant_ok"] == true && is_back(it));
        took.entry(victim).or_default().push(since.elapsed());
        told.push(client.digest());
        // Half of the kills hit a server that is still reading its devices back.
        if dice.chance(Ppm::new(500_000)) {
            assert_eq!(tasks_of(client, real), tasks, "a real task is another process");
        }
        wired.extend(client.held_by_others(held));
    }
    Struck { told, took, orphans, wired }
}

/// A job that holds xconnects on every switch throughout.
fn held_job(house: &House, client: &Client) -> u64 {
    let job =
        house.json(&["job", "submit", "--shape", "8x8x8", "--name", "held", "--duration", "900d"]);
    let id = job["id"].as_u64().unwrap();
    client.until(&format!("/v1/jobs/{id}"), |it| it["state"] == "running");
    id
}

/// A job whose tasks are real processes.
fn real_tasks(house: &House, client: &Client) -> u64 {
    let submit = ["job", "submit", "--shape", "2x2x4", "--name", "real", "--", "sleep", "100000"];
    let id = house.json(&submit)["id"].as_u64().unwrap();
    client.until(&format!("/v1/jobs/{id}"), |it| it["state"] == "running");
    id
}

/// Kills the supervisor of a job's only task; returns both.
fn orphan(client: &Client, nth: usize) -> (u64, Process) {
    let form = json!({"name": format!("orphan{nth}"), "shape": "2x2x1", "priority": 9,
        "command": ["sleep", "100000"]});
    let (status, job) = client.ask("POST", "/v1/jobs", "judge", &form, &AtomicU64::new(0));
    assert!(status == 200 || status == 201, "{status} {job}");
    let job = job["id"].as_u64().unwrap();
    let task = tasks_of(client, job)[0];
    let stat = fs::read_to_string(format!("/proc/{}/stat", task.pid)).unwrap();
    let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    Process::of(parent.parse().unwrap()).unwrap().kill().unwrap();
    (job, task)
}

/// A job whose supervisor was killed goes on in another process, once what happened is found out.
fn begins_again(client: &Client, job: u64, task: Process) {
    let path = format!("/v1/jobs/{job}");
    let again = client
        .until(&path, |it| 1 < it["attempt"].as_u64().unwrap() && it["tasks"][0]["pid"].is_u64());
    assert!(!task.lives(), "its task outlives the supervisor: {again}");
    assert_eq!(again["n_failed"], 0, "a lost task is no failure of the job's own: {again}");
}

fn tasks_of(client: &Client, job: u64) -> Vec<Process> {
    let path = format!("/v1/jobs/{job}");
    let job = client.until(&path, |it| it["tasks"][0]["pid"].is_u64());
    let pids = job["tasks"].as_array().unwrap().iter().map(|it| it["pid"].as_u64().unwrap());
    let process = |pid| Process::of(u32::try_from(pid).unwrap());
    pids.map(|it| process(it).expect("a running task is a process")).collect()
}

/// Each program ran, none failed, and none was started twice for one attempt; returns how many
/// starts there were.
fn check_starts(client: &Client, logs: &[Log], starts: &Path) -> usize {
    for id in logs.iter().flat_map(|it| &it.programs) {
        client.until(&format!("/v1/jobs/{id}"), |it| it["state"] == "finished");
    }
    let text = fs::read_to_string(starts).unwrap();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        assert!(seen.insert(line), "a task was started twice: {line}");
    }
    for id in logs.iter().flat_map(|it| &it.programs) {
        let attempt = &client.get(&format!("/v1/jobs/{id}"))["attempt"];
        for task in 0..2 {
            let line = format!("{id}.{attempt}.{task}");
            assert!(seen.contains(&*line), "{line} never ran");
        }
    }
    seen.len()
}

/// What the clients were told, against what the server says.
fn compare(client: &Client, logs: &[Log], n_ours: usize) {
    let jobs = client.get("/v1/jobs");
    let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for job in jobs["jobs"].as_array().unwrap() {
        by_name.entry(job["name"].as_str().unwrap()).or_default().push(job);
    }
    let n_all: usize = logs.iter().map(|it| it.submitted.len()).sum();
    assert_eq!(by_name.len(), n_all + n_ours, "jobs that nobody was told of");
    for log in logs {
        for (name, id) in &log.submitted {
            let found = by_name.get(&**name).map(Vec::as_slice);
            let ids: Vec<_> = found.unwrap_or_default().iter().map(|it| &it["id"]).collect();
            assert_eq!(ids, [&json!(id)], "{name} is there exactly once");
            let is_over =
                |word: &Value| word != "queued" && word != "starting" && word != "running";
            let state = &found.unwrap()[0]["state"];
            assert!(is_over(state) || !log.cancelled.contains(id), "{name} was cancelled: {state}");
        }
    }
    let drains = client.get("/v1/drains");
    for (nth, log) in logs.iter().enumerate() {
        let by = format!("client{nth}");
        let n = drains["drains"].as_array().unwrap().iter().filter(|it| it["by"] == by).count();
        assert_eq!(n, usize::from(log.drained), "drains of {by}");
    }
}

/// Ends everything in order, and sees to it that nothing is left.
fn end(house: &mut House) {
    let plant = house.plant();
    let down = end_left(&house.dir);
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    house.child.take().unwrap().wait().unwrap();
    assert!(!plant.lives());
}

/// Replays the journal from its first row; every digest that was told must be that of its row.
fn replay(data: &Path, told: &[(u64, String)]) -> u64 {
    let told: BTreeMap<u64, &str> = told.iter().map(|(row, it)| (*row, &**it)).collect();
    let (store, _) = Store::open(data).unwrap();
    let mut core = Core::new();
    let mut n_compared = 0;
    for row in store.rows_after(0).unwrap() {
        let row = row.unwrap();
        let record: Record = serde_json::from_str(&row.body).unwrap();
        record.replay_on(&mut core).unwrap();
        if let Some(digest) = told.get(&row.number) {
            assert_eq!(format!("{:016x}", core.digest()), *digest, "row {}", row.number);
            n_compared += 1;
        }
    }
    assert_eq!(n_compared, told.len(), "rows that were told and are gone");
    store.last()
}

fn print(
    measure: &Measure,
    took: &BTreeMap<Victim, Vec<Duration>>,
    logs: &[Log],
    n_rows: u64,
    n_vain: u64,
) {
    let sum = |count: fn(&Log) -> usize| -> usize { logs.iter().map(count).sum() };
    println!("seed {}: {} kills, {} clients", measure.seed, measure.n_kills, logs.len());
    println!("{:10} {:>6} {:>12} {:>12}", "killed", "times", "back, median", "slowest");
    for (victim, times) in took {
        let mut times = times.clone();
        times.sort();
        let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
        let word = format!("{victim:?}").to_lowercase();
        println!("{word:10} {:>6} {median:>12.0?} {slowest:>12.0?}", times.len());
    }
    println!(
        "acknowledged: {} submits, {} cancels, {} drains; asked in vain {n_vain} times; {n_rows} rows",
        sum(|it| it.submitted.len()),
        sum(|it| it.cancelled.len()),
        logs.iter().map(|it| it.n_drains).sum::<u64>(),
    );
}
