//! The devices of a plant, reached over a local socket (docs/decisions/0013-plant-interface.md).
//!
//! ```text
//!   server                                     plant
//!     │── hello: protocol, plant files, now, told►│   again after every break of the line
//!     │◄─ welcome: process, now, next_at, ahead ─│   or refused, in words
//!     │── step: now, orders, until ─────────────►│   keeps them, carries them out, and goes on
//!     │◄─ stepped: at, heard, next_at ───────────│   to `until` or to the first thing heard
//!     │── end ──────────────────────────────────►│   the process ends
//! ```
//! The server owns the clock: a plant is never later than the newest `until` or `now` that it was
//! told.  One step is under way at a time.  An order told twice is as good as told once.  What a
//! plant has answered it has kept first, so that its process may die at any point.
//!
//! A frame is a length of four bytes, big end first, and so many bytes of JSON.  This interface
//! is where the drivers of real devices stand; `extra` and `truth` are a simulated plant's own.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use selvedge_control::input::{Ahead, Input};
use selvedge_control::output::Command;
use selvedge_model::id::JobId;
use selvedge_model::unit::{Generation, Moment};

use crate::limits::FRAME_BYTES_MAX;
use crate::process::Process;

/// The form of the messages below.
pub const PROTOCOL: u32 = 1;

/// The plant's folder in a data directory.
pub const PLANT_DIR: &str = "plant";

/// In the plant's folder: where its process listens.
const SOCKET_FILE: &str = "socket";

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first thing said.
    Hello(Hello),
    /// Go on.
    Step(Step),
    /// Copy all that is kept to this directory, as it stands.
    Copy {
        /// A directory that is there.
        to: PathBuf,
    },
    /// End the process.
    End,
}

/// Who speaks, and what they know of the plant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The server's version, for people.
    pub program: String,
    /// Every version of the plant file, oldest first: together they give the ids.
    pub plants: Vec<String>,
    /// The moment that holds.
    pub now: Moment,
    /// How a plant is to be made that nobody has seen before; absent where there must be one.
    pub create: Option<String>,
    /// What the server remembers of what it has told; the plant says what that lacks.
    #[serde(default)]
    pub told: Told,
}

/// What a server remembers of what it has told a plant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// How many jobs there have been.
    pub n_jobs: u32,
    /// The newest start of each that is not over.
    pub starts: Vec<(JobId, u32)>,
    /// The newest generation of a write.
    pub generation: Generation,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The plant's version, for people.
    pub program: String,
    /// Its process.
    pub process: Process,
    /// The newest moment that it has come to.
    pub now: Moment,
    /// When something happens next.
    pub next_at: Option<Moment>,
    /// All that a simulated plant shows of itself.
    pub truth: Option<String>,
    /// What its devices were told beyond what the server remembers.
    #[serde(default)]
    pub ahead: Option<Ahead>,
}

/// What is told and how far to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The moment of the orders.
    pub now: Moment,
    /// What is told, in this order.
    pub orders: Vec<Order>,
    /// How far to go at most; never before `now`.
    pub until: Moment,
}

/// One thing told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// To a device.
    Tell(Command),
    /// The plant file has changed: every version, oldest first.
    Plant(Vec<String>),
    /// To a simulated plant itself; each has its answer in [`Stepped::extras`].
    Extra(String),
}

/// How far it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stepped {
    /// The moment that it has come to: where something was heard, else `until`.
    pub at: Moment,
    /// What was answered and reported, all at `at`.
    pub heard: Vec<Input>,
    /// When something happens next.
    pub next_at: Option<Moment>,
    /// What each [`Order::Extra`] came to.
    pub extras: Vec<Result<String, String>>,
    /// What a simulated plant shows of itself that has changed.
    pub truth: Option<String>,
}

/// What the plant says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To a hello.
    Welcome(Welcome),
    /// To a step.
    Stepped(Stepped),
    /// To a copy.
    Copied,
    /// To a step or a copy: it could not be kept, so nothing was done; it may be asked again.
    NotKept {
        /// What the system said.
        why: String,
    },
    /// To anything: it is not understood, or must not be.  The line is then closed.
    Refused {
        /// The plant's own [`PROTOCOL`].
        protocol: u32,
        /// What is wrong and what to do.
        why: String,
    },
}

/// Why a plant cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum PlantError {
    /// The line is gone, or gives no answer in time.
    #[error("the plant's process does not answer")]
    Lost {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Neither side knows how to read the other.
    #[error(
        "the plant's process speaks protocol {theirs}, this program {PROTOCOL}; end it with the \
         version of selvedge that started it (`selvedge down`), then start again"
    )]
    OtherProtocol {
        /// The other side's.
        theirs: u32,
    },
    /// It will not serve.
    #[error("{why}")]
    Refused {
        /// Its words.
        why: String,
    },
    /// Its state cannot be written: nothing was done.
    #[error("the plant cannot keep its state: {why}")]
    NotKept {
        /// Its words.
        why: String,
    },
    /// A frame that is too long, is no JSON, or is out of place.
    #[error("the plant's process says what nobody understands: {what}")]
    Garbled {
        /// What was wrong.
        what: String,
    },
}

/// A plant's devices, on the plant's side of the line.
pub trait Devices {
    /// Somebody has come.
    ///
    /// # Errors
    /// Why they are not served, in words.
    fn hello(&mut self, hello: &Hello) -> Result<Welcome, String>;

    /// Keeps and carries out orders, then goes on.
    ///
    /// # Errors
    /// Why nothing was done, in words.
    fn step(&mut self, step: Step) -> Result<Stepped, String>;

    /// Copies all that is kept to a directory.
    ///
    /// # Errors
    /// Why nothing was copied, in words.
    fn copy(&mut self, to: &Path) -> Result<(), String>;
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parted {
    /// The other side has gone; it or another may come again.
    Gone,
    /// The process is to end.
    End,
}

/// Answers one server for as long as it stays.
///
/// # Errors
/// [`PlantError`]: what came cannot be understood, or the line broke in the middle.
pub fn serve(
    line: &mut (impl Read + Write),
    devices: &mut dyn Devices,
) -> Result<Parted, PlantError> {
    let mut is_known = false;
    while let Some(bytes) = read_frame(line)? {
        let request = match understood(&bytes) {
            Ok(request) => request,
            Err(why) => {
                write_frame(line, &Reply::Refused { protocol: PROTOCOL, why: why.clone() })?;
                return Err(PlantError::Garbled { what: why });
            }
        };
        let kept = |done: Result<Reply, String>| done.unwrap_or_else(|why| Reply::NotKept { why });
        let reply = match request {
            Request::End => return Ok(Parted::End),
            Request::Hello(hello) => match devices.hello(&hello) {
                Ok(welcome) => {
                    is_known = true;
                    Reply::Welcome(welcome)
                }
                Err(why) => Reply::Refused { protocol: PROTOCOL, why },
            },
            Request::Step(_) | Request::Copy { .. } if !is_known => {
                let why = "a conversation begins with a hello".to_owned();
                Reply::Refused { protocol: PROTOCOL, why }
            }
            Request::Step(step) => kept(devices.step(step).map(Reply::Stepped)),
            Request::Copy { to } => kept(devices.copy(&to).map(|()| Reply::Copied)),
        };
        write_frame(line, &reply)?;
        if matches!(reply, Reply::Refused { .. }) {
            return Ok(Parted::Gone);
        }
    }
    Ok(Parted::Gone)
}

/// A hello of another protocol is told so before anything else of it is read.
fn understood(bytes: &[u8]) -> Result<Request, String> {
    let value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| format!("not JSON: {error}"))?;
    let theirs = value.pointer("/hello/protocol").and_then(serde_json::Value::as_u64);
    if let Some(theirs) = theirs.filter(|it| *it != u64::from(PROTOCOL)) {
        return Err(format!(
            "this plant's process speaks protocol {PROTOCOL}, not {theirs}; end it with the \
             version of selvedge that started it (`selvedge down`), then start again"
        ));
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The server's side of the line.
#[derive(Debug)]
pub struct Line {
    stream: UnixStream,
}

impl Line {
    /// The line to the process that listens in `dir`, the plant's folder.
    ///
    /// # Errors
    /// If nobody does.
    pub fn to(dir: &Path, answer_max: std::time::Duration) -> io::Result<Self> {
        let folder = File::open(dir)?;
        let stream = UnixStream::connect(short(&folder))?;
        stream.set_read_timeout(Some(answer_max))?;
        stream.set_write_timeout(Some(answer_max))?;
        Ok(Self { stream })
    }

    /// Says hello.
    ///
    /// # Errors
    /// [`PlantError`].
    pub fn hello(&mut self, hello: &Hello) -> Result<Welcome, PlantError> {
        match self.ask(&Request::Hello(hello.clone()))? {
            Reply::Welcome(welcome) => Ok(welcome),
            other => Err(out_of_place(&other)),
        }
    }

    /// Tells and goes on.
    ///
    /// # Errors
    /// [`PlantError`]; after [`PlantError::NotKept`] the same step may be told again.
    pub fn step(&mut self, step: Step) -> Result<Stepped, PlantError> {
        match self.ask(&Request::Step(step))? {
            Reply::Stepped(stepped) => Ok(stepped),
            other => Err(out_of_place(&other)),
        }
    }

    /// Lets the plant copy what it keeps to a directory that is there.
    ///
    /// # Errors
    /// [`PlantError`].
    pub fn copy(&mut self, to: &Path) -> Result<(), PlantError> {
        match self.ask(&Request::Copy { to: to.to_owned() })? {
            Reply::Copied => Ok(()),
            other => Err(out_of_place(&other)),
        }
    }

    /// Ends the process; it closes the line when it does.
    ///
    /// # Errors
    /// [`PlantError::Lost`].
    pub fn end(mut self) -> Result<(), PlantError> {
        write_frame(&mut self.stream, &Request::End)?;
        read_frame(&mut self.stream).map(drop)
    }

    /// Whether the other side is still there, as far as can be told without asking.
    pub fn is_open(&mut self) -> bool {
        let looked = self.stream.set_nonblocking(true).and_then(|()| {
            let looked = self.stream.read(&mut [0]);
            self.stream.set_nonblocking(false)?;
            looked
        });
        matches!(looked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, PlantError> {
        write_frame(&mut self.stream, request)?;
        let gone = || PlantError::Lost { source: io::ErrorKind::UnexpectedEof.into() };
        let bytes = read_frame(&mut self.stream)?.ok_or_else(gone)?;
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| garbled(&error))?;
        let theirs = value.pointer("/refused/protocol").and_then(serde_json::Value::as_u64);
        if let Some(theirs) = theirs.filter(|it| *it != u64::from(PROTOCOL)) {
            let theirs = u32::try_from(theirs).unwrap_or(u32::MAX);
            return Err(PlantError::OtherProtocol { theirs });
        }
        match serde_json::from_value(value).map_err(|error| garbled(&error))? {
            Reply::Refused { why, .. } => Err(PlantError::Refused { why }),
            Reply::NotKept { why } => Err(PlantError::NotKept { why }),
            reply => Ok(reply),
        }
    }
}

/// Listens in `dir`, the plant's folder, in place of whoever did before.
///
/// # Errors
/// If the system refuses.
pub fn listen(dir: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(dir.join(SOCKET_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => (),
    }
    let folder = File::open(dir)?;
    UnixListener::bind(short(&folder))
}

/// A name of the socket that fits a socket's address however deep its folder lies.
fn short(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_FILE}", folder.as_raw_fd()))
}

fn write_frame(line: &mut impl Write, message: &impl Serialize) -> Result<(), PlantError> {
    let lost = |source| PlantError::Lost { source };
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(|error| garbled(&error))?;
    let n_bytes = bytes.len() - 4;
    if FRAME_BYTES_MAX < n_bytes {
        let what = format!("a message of {n_bytes} bytes is longer than {FRAME_BYTES_MAX}");
        return Err(PlantError::Garbled { what });
    }
    let length = u32::try_from(n_bytes).expect("the limit is below 4 GiB");
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    line.write_all(&bytes).and_then(|()| line.flush()).map_err(lost)
}

/// The next frame; none where the other side has gone between two.
fn read_frame(line: &mut impl Read) -> Result<Option<Vec<u8>>, PlantError> {
    let lost = |source| PlantError::Lost { source };
    let mut length = [0; 4];
    loop {
        match line.read(&mut length[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(source) => return Err(lost(source)),
        }
    }
    line.read_exact(&mut length[1..]).map_err(lost)?;
    let n_bytes = u32::from_be_bytes(length) as usize;
    if FRAME_BYTES_MAX < n_bytes {
        let what = format!("a frame of {n_bytes} bytes is longer than {FRAME_BYTES_MAX}");
        return Err(PlantError::Garbled { what });
    }
    let mut bytes = Vec::new();
    let n_read = line.take(n_bytes as u64).read_to_end(&mut bytes).map_err(lost)?;
    if n_read < n_bytes {
        return Err(lost(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Some(bytes))
}

fn garbled(error: &serde_json::Error) -> PlantError {
    PlantError::Garbled { what: error.to_string() }
}

fn out_of_place(reply: &Reply) -> PlantError {
    let word = match reply {
        Reply::Welcome(_) => "a welcome",
        Reply::Stepped(_) => "a step",
        Reply::Copied => "a copy",
        Reply::NotKept { .. } | Reply::Refused { .. } => "a refusal",
    };
    PlantError::Garbled { what: format!("{word} that nobody asked for") }
}
