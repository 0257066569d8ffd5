//! A plant that falls silent or has no room, clients that stop in the middle, a clock that is set
//! back, and more jobs at once than anybody needs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support;
use crate::{Up, has_program, program};

/// How long anything here may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn up(options: &[&str]) -> Up {
    Up::start_with(support::dir(), options)
}

#[test]
fn a_plant_that_falls_silent_is_ended_and_started_anew_with_its_mirrors() {
    let up = up(&[]);
    up.text(&["job", "submit", "--shape", "4x4x8", "--name", "n", "--duration", "30d"]);
    up.text(&["job", "wait", "0", "--running", "--timeout", "60"]);
    let before = up.json(&["ocs", "show", "x3"])["pairs"].clone();
    let plant = up.json(&["status"])["plant_pid"].to_string();
    support::signal("STOP", &plant);
    // Nobody waits for it meanwhile.
    let since = Instant::now();
    up.text(&["job", "submit", "--shape", "2x2x1", "--name", "later", "--duration", "1m"]);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    let after = up.until_within(PATIENCE, &["status"], |it| {
        it["plant_losses"] == 1 && it["plant_ok"] == true
    });
    assert_ne!(after["plant_pid"].to_string(), plant);
    up.until_within(PATIENCE, &["ocs", "show", "x3"], |it| it["known"] == true);
    assert_eq!(up.json(&["ocs", "show", "x3"])["pairs"], before, "no mirror has moved");
    up.text(&["job", "wait", "1", "--timeout", "120"]);
    assert_eq!(up.json(&["job", "show", "0"])["attempt"], 1);
}

#[test]
fn a_plant_without_room_for_its_state_stands_still_and_goes_on_once_there_is() {
    if !has_program("prlimit", "a plant's process on a full disk") {
        return;
    }
    // A file that may not grow is refused like a disk that is full, not by a signal.
    let dir = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    let script = "trap '' XFSZ; exec \"$0\" up --json --listen 127.0.0.1:0 --data data";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_selvedge")]).current_dir(dir.path());
    shell.env("SELVEDGE_RUNTIME_DIR", dir.path()).stdin(Stdio::null());
    let up = Up::of(shell, dir);
    up.text(&["job", "submit", "--shape", "4x4x4", "--name", "a", "--duration", "30d"]);
    up.text(&["job", "wait", "0", "--running", "--timeout", "60"]);
    let plant = up.json(&["status"])["plant_pid"].to_string();
    let limit = |bytes: &str| {
        let mut prlimit = Command::new("prlimit");
        prlimit.args(["--pid", &plant, &format!("--fsize={bytes}")]);
        assert!(prlimit.status().unwrap().success());
    };
    limit("1:unlimited");
    up.text(&["job", "submit", "--shape", "4x4x4", "--name", "b", "--duration", "30d"]);
    let why = |it: &Value| it["plant_error"].as_str().unwrap_or_default().to_owned();
    let status = up.until_within(PATIENCE, &["status"], |it| !why(it).is_empty());
    assert!(why(&status).contains("File too large"), "{status}");
    assert_eq!(status["plant_pid"].to_string(), plant, "it is the same process");
    assert_ne!(up.json(&["job", "show", "1"])["state"], "running");
    limit("unlimited:unlimited");
    up.text(&["job", "wait", "1", "--running", "--timeout", "120"]);
    let status = up.json(&["status"]);
    assert_eq!(status["plant_pid"].to_string(), plant, "{status}");
    assert_eq!(up.json(&["check"])["violations"], serde_json::json!([]));
    assert_eq!(up.json(&["job", "show", "0"])["attempt"], 1);
}

#[test]
fn clients_that_stop_in_the_middle_are_let_go_and_hold_nobody_up() {
    let up = up(&[]);
    let address = up.url.strip_prefix("http://").unwrap();
    let open = |said: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        stream
    };
    let token = std::fs::read_to_string(up.dir().join("data/token")).unwrap();
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"name\":",
        token.trim()
    );
    let since = Instant::now();
    let half_head = format!("GET /v1/status HTTP/1.1\r\nHost: {address}\r\nX-Slow: ");
    let mut streams: Vec<TcpStream> = (0..200).map(|_| open("")).collect();
    streams.push(open(&half_head));
    let mut body = open(&head);
    // One that sends a byte now and then is no faster for it.
    let mut drip = open(&half_head);
    let dripping = std::thread::spawn(move || {
        while drip.write_all(b"x").is_ok() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    for _ in 0..3 {
        let asked = Instant::now();
        up.text(&["status"]);
        assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    }
    let mut answer = String::new();
    // What comes after the answer is the end of the connection.
    let _ = body.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    for mut stream in streams {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    dripping.join().unwrap();
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    assert_eq!(up.json(&["job", "list"])["jobs"], serde_json::json!([]));
}

#[test]
fn whoever_has_no_token_keeps_nobody_out_who_has_one() {
    if !has_program("prlimit", "a thousand clients without a token") {
        return;
    }
    // More than the server has places, and the server and this test a file for each.
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &std::process::id().to_string(), "--nofile=4096:"]);
    if !prlimit.status().unwrap().success() {
        println!("not run: a thousand clients without a token: this machine opens fewer files");
        return;
    }
    let up = Up::start();
    let address = up.url.trim_start_matches("http://").to_owned();
    let half_head = format!("GET /openapi.json HTTP/1.1\r\nHost: {address}\r\nX-Slow: ");
    let strangers: Vec<TcpStream> = (0..1100)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(half_head.as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..3 {
        let asked = Instant::now();
        up.text(&["status"]);
        assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    }
    drop(strangers);
}

#[test]
fn a_clock_that_was_set_back_is_shown_and_changes_nothing_else() {
    let arch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let library = format!("{arch}/faketime/libfaketimeMT.so.1");
    if !Path::new(&library).is_file() {
        println!("not run: a server whose clock was set back, because {library} is not here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let up = |dir: tempfile::TempDir, days: &str| {
        let mut faked = program(dir.path());
        faked.args(["up", "--json", "--listen", "127.0.0.1:0", "--data", "data"]);
        // Only the clock that people set; the one that counts goes on.
        faked.env("LD_PRELOAD", &library).env("FAKETIME", days).env("DONT_FAKE_MONOTONIC", "1");
        Up::of(faked, dir)
    };
    let first = up(dir, "+1d");
    first.text(&["job", "submit", "--shape", "4x4x8", "--name", "n", "--duration", "30d"]);
    first.text(&["job", "wait", "0", "--running", "--timeout", "60"]);
    let before = first.json(&["job", "show", "0"]);
    let dir = first.leave();
    let second = up(dir, "-2d");
    let after = second.json(&["status"]);
    let started = before["started_s"].as_f64().unwrap();
    assert!(started <= after["now_s"].as_f64().unwrap(), "{after}");
    let job = second.json(&["job", "show", "0"]);
    assert_eq!((&job["state"], &job["attempt"]), (&"running".into(), &1.into()), "{job}");
    second.text(&["job", "submit", "--shape", "4x4x4", "--name", "later"]);
    second.text(&["job", "wait", "1", "--running", "--timeout", "60"]);
    assert_eq!(second.json(&["check"])["violations"], serde_json::json!([]));
    // The trail keeps the order of the journal, and what the clock said each time.
    let trail = second.json(&["events", "--audit"])["orders"].clone();
    let submits: Vec<&Value> = trail
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["what"].as_str().unwrap().starts_with("submit"))
        .collect();
    assert!(submits[0]["what"].as_str().unwrap().contains("later"), "{trail}");
    assert!(submits[1]["row"].as_u64() < submits[0]["row"].as_u64(), "{trail}");
    assert!(submits[0]["unix_s"].as_u64() < submits[1]["unix_s"].as_u64(), "{trail}");
    assert!(submits[1]["at_s"].as_f64() < submits[0]["at_s"].as_f64(), "{trail}");
}

#[test]
fn an_array_of_ten_thousand_jobs_is_taken_and_others_are_served_meanwhile() {
    let up = up(&[]);
    // Whatever comes waits behind one that takes all.
    up.text(&["pod", "drain", "pod0"]);
    let mut array = program(up.dir());
    array.args(["--server", &up.url, "job", "submit", "--json", "--name", "sweep", "--key", "k"]);
    array.args(["--shape", "2x2x1", "--array", "10000"]).stdout(Stdio::piped());
    let since = Instant::now();
    let child = array.spawn().unwrap();
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        let asked = Instant::now();
        up.text(&["status"]);
        slowest = slowest.max(asked.elapsed());
    }
    let done = child.wait_with_output().unwrap();
    println!(
        "an array of 10,000: {:?}; the slowest answer meanwhile: {slowest:?}",
        since.elapsed()
    );
    let ids: Value = serde_json::from_slice(&done.stdout).unwrap();
    let ids = ids["ids"].as_array().unwrap();
    assert_eq!(ids.len(), 10_000);
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    assert_eq!(up.json(&["status"])["jobs"]["queued"], 10_000);
    let last = up.json(&["job", "show", &ids[9999].to_string()]);
    assert_eq!(last["name"], "sweep[9999]");
    let refused =
        up.refusal(&["job", "submit", "--name", "n", "--shape", "2x2x1", "--array", "10001"]);
    assert!(refused.contains("10000"), "{refused}");
}
