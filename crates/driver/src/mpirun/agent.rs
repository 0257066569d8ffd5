//! Who speaks for a host to a launcher on another: what the launcher is to the processes on its own
//! host, this process is to those here, which notice no difference.
//!
//! The first of a job's processes on a host starts it ([`join`]), in a session of its own.  It has
//! a folder like the launcher's, and ends with its links to the launcher: nobody wants then what
//! runs here.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use nix::unistd::Uid;
use selvedge_stmr::digest::Digest;
use selvedge_stmr::greet::{Card, End, Secret};
use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;

use super::folder::{Folder, LAUNCHER, LIBRARY, MEMORY};
use super::hosts::{JOB, REACH, SECRET};
use super::letter::{self, Kind, Letter};
use super::outlet::Room;
use super::program::Known;
use super::readers::Readers;
use super::{Channel, Event, MpirunError, io_error, reach, signals, temporary, threads};

/// Where the agent is told its folder.
const OWN_FOLDER: &str = "SELVEDGE_HOST_FOLDER";

/// The folder of this host, with an agent in it, which is started if there is none yet.
pub(super) fn join() -> Result<PathBuf, MpirunError> {
    let job = env::var(JOB).unwrap_or_default();
    let path = temporary::temp_dir()?.join(format!("selvedge-mpi-{job}-{}", host_word()));
    let failed = || io_error(format!("use {}", path.display()));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed()(e)),
        Ok(()) | Err(_) => {}
    }
    let owner = fs::symlink_metadata(&path).map_err(failed())?;
    if !owner.is_dir() || owner.uid() != Uid::effective().as_raw() {
        return Err(failed()(io::Error::other("it is somebody else's")));
    }
    // Whoever holds it starts the agent; the others find one when it is theirs.
    let lock = File::create(path.join("lock")).map_err(failed())?;
    lock.lock().map_err(failed())?;
    if UnixStream::connect(path.join(LAUNCHER)).is_err() {
        let own = env::current_exe().map_err(io_error("find this program itself"))?;
        let mut agent = Command::new(own);
        agent.arg("mpirun-host").env(OWN_FOLDER, &path).stdin(Stdio::null());
        let ended = agent.stdout(Stdio::null()).status().map_err(io_error("start an agent"))?;
        if !ended.success() {
            let why = "the agent of this host did not reach the launcher";
            return Err(io_error("become a replica")(io::Error::other(why)));
        }
    }
    Ok(path)
}

/// A word for this host that another one with the same folders has not.
fn host_word() -> String {
    let name = reach::host_name();
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let all = [name.as_bytes(), &boot, network.as_os_str().as_encoded_bytes()].concat();
    format!("{:08x}", Digest::of(&all).0 as u32)
}

/// Starts the agent of this host apart from all that is here, and waits until it is ready.
///
/// # Errors
/// [`MpirunError`] with what it said, if it does not become so.
pub fn start_host() -> Result<(), MpirunError> {
    // Those who started this process wait for what they share with it to be closed.
    crate::process::keep_files();
    let own = env::current_exe().map_err(io_error("find this program itself"))?;
    let mut agent = Command::new(own);
    agent.args(["mpirun-host", "--serve"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child =
        agent.stdout(Stdio::piped()).spawn().map_err(io_error("start an agent for this host"))?;
    let mut said = String::new();
    let out = child.stdout.take().expect("it was asked for");
    io::BufReader::new(out).read_line(&mut said).map_err(io_error("hear an agent"))?;
    match said.trim() {
        "ready" => Ok(()),
        why => Err(io_error("reach the launcher from this host")(io::Error::other(why))),
    }
}

/// Speaks for this host until the job is over.
///
/// # Errors
/// [`MpirunError`] if it cannot begin; whoever waits for that is told.
pub fn serve_host() -> Result<(), MpirunError> {
    match Agent::begin() {
        Ok(mut agent) => {
            let _ = io::stdout().write_all(b"ready\n");
            agent.serve();
            Ok(())
        }
        Err(e) => {
            let why =
                std::error::Error::source(&e).map_or_else(String::new, |it| format!(": {it}"));
            let _ = writeln!(io::stdout(), "{e}{why}");
            Err(e)
        }
    }
}

/// A process of this host.
struct Local {
    link: Option<Arc<UnixStream>>,
    pid: i32,
    known: Known,
}

/// What a replica of the first process is to read: where it goes in, and where it comes out until
/// that replica is there.
struct Input {
    pipe: Option<Sender<Vec<u8>>>,
    chunks: Option<Receiver<Vec<u8>>>,
}

struct Agent {
    folder: Folder,
    events: Receiver<Event>,
    sender: Sender<Event>,
    outbox: Sender<Letter>,
    locals: BTreeMap<(Rank, SetId), Local>,
    inputs: BTreeMap<SetId, Input>,
    /// For what processes here print and the launcher has not let go.
    room: Room,
    readers: Readers,
    /// The launcher's folder by its name, which an MPI may have made here.
    left: Option<PathBuf>,
}

impl Agent {
    fn begin() -> Result<Self, MpirunError> {
        crate::process::own_session().map_err(io_error("leave the session of a launcher"))?;
        env::set_current_dir("/").map_err(io_error("leave this folder"))?;
        let missing = || io::Error::other("selvedge mpirun starts it with its variables set");
        let word = |name: &str| env::var(name).ok().filter(|it| !it.is_empty());
        let (Some(secret), Some(reach), Some(path)) =
            (word(SECRET).and_then(|it| Secret::from_text(&it)), word(REACH), word(OWN_FOLDER))
        else {
            return Err(io_error("speak for a host")(missing()));
        };
        let addresses: Vec<_> = reach.split(' ').filter_map(|it| it.parse().ok()).collect();
        let id = u128::from_le_bytes(reach::draw().map_err(io_error("read /dev/urandom"))?);
        let card = |from| {
            let digest = Digest(id);
            Card { from, to: End::Launcher, pid: process::id(), digest }
        };
        let call = |from| {
            reach::call(&addresses, secret, card(from)).map_err(io_error("call the launcher"))
        };
        let stream = call(End::Agent)?;
        let copy = stream.try_clone().map_err(io_error("share a link"))?;
        let (sender, events) = mpsc::channel();
        let outbox = letter::outbox(copy, &sender);
        hear(stream, sender.clone(), 0);
        hear(call(End::Pulse)?, sender.clone(), 1);
        let told: Vec<String> = reach::addresses().iter().map(ToString::to_string).collect();
        let _ = outbox.send(Letter::plain(Kind::Addresses, told.join(" ")));
        let _ = outbox.send(Letter::plain(Kind::Name, reach::host_name()));
        let folder = Self::make_folder(Path::new(&path), &events)?;
        let failed = "make a socket for the replicas";
        // One that is there is that of an agent that was ended.
        let _ = fs::remove_file(folder.path().join(LAUNCHER));
        let listener =
            UnixListener::bind(folder.path().join(LAUNCHER)).map_err(io_error(failed))?;
        let readers = Readers::begin(listener, &sender)?;
        let left = word("SELVEDGE_FOLDER").map(PathBuf::from);
        let (locals, inputs) = (BTreeMap::new(), BTreeMap::new());
        let room = Room::default();
        Ok(Self { folder, events, sender, outbox, locals, inputs, room, readers, left })
    }

    /// The first that the launcher sends is the library.
    fn make_folder(path: &Path, events: &Receiver<Event>) -> Result<Folder, MpirunError> {
        let failed = "get the library for MPI programs from the launcher";
        let lost = || io_error(failed)(io::ErrorKind::UnexpectedEof.into());
        match events.recv() {
            Ok(Event::HostSaid(_, Letter { kind: Kind::Library, bytes, .. })) => {
                let folder = Folder::around(path.to_owned(), &bytes)?;
                let _ = fs::remove_file(path.join(MEMORY));
                symlink(folder.memory(), path.join(MEMORY))
                    .map_err(io_error("name the memory that replicas share"))?;
                Ok(folder)
            }
            Ok(_) | Err(_) => Err(lost()),
        }
    }

    fn serve(&mut self) {
        while let Ok(event) = self.events.recv() {
            match event {
                Event::Called(rank, set, pid, link) => self.called(rank, set, pid, link),
                Event::Said(rank, set, line) => self.post(Kind::Said, rank, set, line),
                Event::Gone(rank, set) => {
                    if let Some(it) = self.locals.get_mut(&(rank, set)) {
                        it.link = None;
                    }
                    self.post(Kind::Gone, rank, set, []);
                }
                Event::Printed(Channel::Out, rank, set, bytes) => {
                    self.post(Kind::Out, rank, set, bytes);
                }
                Event::Printed(Channel::Err, rank, set, bytes) => {
                    self.post(Kind::Err, rank, set, bytes);
                }
                Event::Closed(Channel::Out, rank, set) => self.post(Kind::OutEnd, rank, set, []),
                Event::Closed(Channel::Err, rank, set) => self.post(Kind::ErrEnd, rank, set, []),
                Event::HostSaid(_, letter) => self.take(letter),
                // The launcher hears that this host is gone.
                Event::HostGone(..) | Event::Failed(_) => break,
                // Nobody else sends anything here.
                Event::LauncherEnded(_)
                | Event::Signalled(_)
                | Event::HostCalled(..)
                | Event::Pulse(..)
                | Event::Stranger(_) => {}
            }
        }
        self.end();
    }

    fn post(&self, kind: Kind, rank: Rank, set: SetId, bytes: impl Into<Vec<u8>>) {
        // When the launcher is gone this process ends by that.
        let _ = self.outbox.send(Letter::of(kind, rank, set, bytes));
    }

    fn called(&mut self, rank: Rank, set: SetId, pid: i32, link: Arc<UnixStream>) {
        self.post(Kind::Called, rank, set, pid.to_string());
        for channel in [Channel::Out, Channel::Err] {
            let read = self.folder.read_pipe(channel, rank, set, &self.room, &self.readers);
            if let Err(e) = read {
                let _ = self.sender.send(Event::Failed(e));
            }
        }
        if rank == Rank(0)
            && let Some(chunks) = self.input(set).chunks.take()
        {
            let outbox = self.outbox.clone();
            let taken = move |length: Option<usize>| {
                let letter = match length {
                    Some(n) => Letter::of(Kind::Taken, rank, set, n.to_string()),
                    None => Letter::of(Kind::InputEnd, rank, set, []),
                };
                let _ = outbox.send(letter);
            };
            self.folder.write_input(set, &self.sender, move || chunks.recv().ok(), taken);
        }
        self.locals.insert((rank, set), Local { link: Some(link), pid, known: Known::of(pid) });
    }

    fn input(&mut self, set: SetId) -> &mut Input {
        self.inputs.entry(set).or_insert_with(|| {
            let (pipe, chunks) = mpsc::channel();
            Input { pipe: Some(pipe), chunks: Some(chunks) }
        })
    }

    /// Does what the launcher wants.
    fn take(&mut self, letter: Letter) {
        let (rank, set) = (letter.rank, letter.set);
        let local = self.locals.get_mut(&(rank, set));
        match letter.kind {
            Kind::Tell => {
                if let Some(link) = local.and_then(|it| it.link.as_ref()) {
                    let _ = writeln!(&**link, "{}", letter.text());
                }
            }
            Kind::Input => {
                if let Some(pipe) = &self.input(set).pipe {
                    let _ = pipe.send(letter.bytes);
                }
            }
            Kind::InputEnd => self.input(set).pipe = None,
            Kind::Taken => self.room.leave(letter.text().parse().unwrap_or(0)),
            // Without them nobody here begins.
            Kind::Locals => {
                if self.folder.tell_locals(&letter.text()).is_err() {
                    self.end();
                }
            }
            Kind::Held => self.folder.tell_held(letter.bytes == [1]),
            Kind::Broken => {
                // Without memory for it nobody here could be told, and all of them are lost.
                match self.folder.tell_broken(set) {
                    Ok(()) => self.post(Kind::Broken, rank, set, []),
                    Err(_) => self.end(),
                }
            }
            Kind::End => {
                if let Some(it) = local.filter(|it| it.link.is_some()) {
                    it.known.kill();
                }
            }
            Kind::Usage => {
                let &[asker, replicas] = &letter.bytes[..] else { return };
                let number = rank.0 as usize * usize::from(replicas) + set.idx();
                let usage = local.and_then(|it| self.folder.usage(number, it.pid));
                if let Some(usage) = usage {
                    self.post(Kind::Usage, rank, set, format!("{asker} {}", usage.to_text()));
                }
            }
            Kind::Handles => {
                let signal = i32::from(letter.bytes.first().copied().unwrap_or(0));
                let live = self.locals.values().filter(|it| it.link.is_some());
                let any = live.map(|it| it.pid).any(|it| signals::is_handled(it, signal));
                self.post(Kind::Handles, rank, set, [u8::from(any)]);
            }
            // They are this process's to write, and the library came first.
            Kind::Library
            | Kind::Addresses
            | Kind::Name
            | Kind::Called
            | Kind::Said
            | Kind::Gone
            | Kind::Out
            | Kind::Err
            | Kind::OutEnd
            | Kind::ErrEnd => {}
        }
    }

    /// Ends all that is here.
    fn end(&mut self) -> ! {
        for it in self.locals.values().filter(|it| it.link.is_some()) {
            it.known.kill();
        }
        let _ = fs::remove_dir_all(self.folder.path());
        // Another host's folder, seen from here as well, has its library in it.
        if let Some(left) = self.left.take().filter(|it| !it.join(LIBRARY).exists()) {
            let _ = fs::remove_dir_all(left);
        }
        process::exit(0)
    }
}

/// Hears the launcher on a thread; that a link ends is told as well.
fn hear(stream: TcpStream, sender: Sender<Event>, id: u128) {
    threads::begin(&sender.clone(), move || {
        let ended =
            letter::read_all(&stream, |letter| sender.send(Event::HostSaid(id, letter)).is_ok());
        let _ = sender.send(Event::HostGone(id, ended.err()));
    });
}
