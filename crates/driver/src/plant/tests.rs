//! What each side makes of another side that is of another version, says too much, or stops in the
//! middle.

use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use super::*;

/// Devices that nothing ever happens in.
#[derive(Default)]
struct Still {
    n_steps: usize,
}

impl Devices for Still {
    fn hello(&mut self, hello: &Hello) -> Result<Welcome, String> {
        Ok(Welcome {
            protocol: PROTOCOL,
            program: "0".to_owned(),
            process: Process { pid: 1, started: 1 },
            now: hello.now,
            next_at: None,
            truth: None,
            ahead: None,
        })
    }

    fn step(&mut self, step: Step) -> Result<Stepped, String> {
        self.n_steps += 1;
        Err(format!("step {} to {} is not kept: the disk is full", self.n_steps, step.until))
    }

    fn copy(&mut self, _: &Path) -> Result<(), String> {
        Ok(())
    }
}

fn hello(protocol: u32) -> Hello {
    let (program, plants) = ("0".to_owned(), Vec::new());
    Hello { protocol, program, plants, now: Moment::START, create: None, told: Told::default() }
}

/// What a plant answers to `bytes`, and how the conversation ended for it.
fn told(bytes: &[u8]) -> (String, Result<Parted, PlantError>) {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let plant = thread::spawn(move || serve(&mut theirs, &mut Still::default()));
    // A plant that has heard enough may close before all of it is written.
    let _ = ours.write_all(bytes);
    let _ = ours.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = ours.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(answer.get(4..).unwrap_or_default()).into_owned();
    (text, plant.join().unwrap())
}

fn frame(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat()
}

/// A server's line to a plant that answers whatever comes with `answer`, or not at all.
fn line_to(answer: Option<Vec<u8>>) -> (Line, thread::JoinHandle<()>) {
    let (stream, mut plant) = UnixStream::pair().unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let plant = thread::spawn(move || {
        let _ = read_frame(&mut plant);
        if let Some(answer) = answer {
            let _ = plant.write_all(&answer);
            return;
        }
        // Silent until the other side has given up.
        let _ = plant.read(&mut [0]);
    });
    (Line { stream }, plant)
}

/// What a server makes of a plant that answers its hello so.
fn made_of(answer: Option<Vec<u8>>) -> PlantError {
    let (mut line, plant) = line_to(answer);
    let error = line.hello(&hello(PROTOCOL)).unwrap_err();
    drop(line);
    plant.join().unwrap();
    error
}

#[test]
fn another_version_is_told_so_on_both_sides() {
    let request = serde_json::to_vec(&Request::Hello(hello(PROTOCOL + 1))).unwrap();
    let (answer, parted) = told(&frame(&request));
    assert!(answer.contains("speaks protocol 1, not 2"), "{answer}");
    assert!(matches!(parted, Err(PlantError::Garbled { .. })), "{parted:?}");
    // Also one whose hello has fields that nobody knows here.
    let (answer, _) = told(&frame(br#"{"hello": {"protocol": 9, "secret": []}}"#));
    assert!(answer.contains("not 9"), "{answer}");
    let refusal = br#"{"refused": {"protocol": 7, "why": "no", "more": 1}}"#;
    let error = made_of(Some(frame(refusal)));
    assert!(matches!(error, PlantError::OtherProtocol { theirs: 7 }), "{error:?}");
    assert!(error.to_string().contains("selvedge down"), "{error}");
}

#[test]
fn a_frame_beyond_the_limit_is_refused_before_it_is_read() {
    let claims = u32::try_from(FRAME_BYTES_MAX + 1).unwrap().to_be_bytes();
    let (answer, parted) = told(&claims);
    assert!(answer.is_empty());
    assert!(parted.unwrap_err().to_string().contains("is longer than"), "nothing is kept of it");
    let error = made_of(Some([&claims[..], b"{}"].concat()));
    assert!(error.to_string().contains("is longer than"), "{error}");
    assert!(made_of(Some(u32::MAX.to_be_bytes().to_vec())).to_string().contains("longer"));
}

#[test]
fn a_frame_that_stops_in_the_middle_is_a_line_that_broke() {
    for cut in [&b"\0\0"[..], &b"\0\0\0\x08{\"he"[..]] {
        let (_, parted) = told(cut);
        assert!(matches!(parted, Err(PlantError::Lost { .. })), "{parted:?}");
        let error = made_of(Some(cut.to_vec()));
        assert!(matches!(error, PlantError::Lost { .. }), "{error:?}");
    }
    let (_, parted) = told(b"");
    assert_eq!(parted.unwrap(), Parted::Gone, "between two frames anybody may go");
}

#[test]
fn what_is_no_request_is_answered_with_what_is_wrong_with_it() {
    for (body, words) in [
        (&b"not json"[..], "not JSON"),
        (br#"{"sing": 1}"#, "unknown variant"),
        (br#"{"step": {"now": 0, "orders": [], "until": 0}}"#, "begins with a hello"),
        (br#"{"hello": {}}"#, "missing field"),
    ] {
        let (answer, _) = told(&frame(body));
        assert!(answer.contains(words), "{words:?}: {answer}");
    }
    assert!(matches!(made_of(Some(frame(b"[]"))), PlantError::Garbled { .. }));
    let copied = serde_json::to_vec(&Reply::Copied).unwrap();
    let error = made_of(Some(frame(&copied))).to_string();
    assert!(error.contains("a copy that nobody asked for"), "{error}");
}

#[test]
fn a_plant_that_says_nothing_is_given_up_after_its_time() {
    let error = made_of(None);
    assert!(matches!(error, PlantError::Lost { .. }), "{error:?}");
}

#[test]
fn a_plant_that_cannot_keep_a_step_says_so_and_may_be_told_it_again() {
    let (stream, mut theirs) = UnixStream::pair().unwrap();
    let plant = thread::spawn(move || serve(&mut theirs, &mut Still::default()).unwrap());
    let mut line = Line { stream };
    line.hello(&hello(PROTOCOL)).unwrap();
    for n in 1..=2 {
        let step = Step { now: Moment::START, orders: Vec::new(), until: Moment::START };
        let error = line.step(step).unwrap_err();
        assert!(matches!(error, PlantError::NotKept { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("step {n} ")), "{error}");
    }
    line.end().unwrap();
    assert_eq!(plant.join().unwrap(), Parted::End);
}
