//! `up`: from options to a server that answers, and back to nothing.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::watch;

use selvedge_control::input::{Ask, Input};
use selvedge_control::settings::{Level, Settings};
use selvedge_driver::account::{Account, AccountError};
use selvedge_driver::lock::{self, LockError};
use selvedge_driver::store::{Store, StoreError};
use selvedge_model::spec::Plant;
use selvedge_model::spec::plant::Family;
use selvedge_sim::device::Dials;
use selvedge_sim::fault::Rates;
use selvedge_sim::world::Setup;

use crate::api;
use crate::api::error::ApiError;
use crate::api::guard::Guard;
use crate::clock::{Clock, Speed};
use crate::example::Example;
use crate::house::House;
use crate::journal::Journal;
use crate::limits;
use crate::listen;
use crate::meter::Meter;
use crate::plant::{LinkError, Nature, Parting};
use crate::runner::Runner;
use crate::runtime::{self, Presence, Server};
use crate::secret::Secrets;
use crate::shell::{First, Parts, Request, Shell, Trouble};
use crate::start::{self, StartError};
use crate::tls::{Renewed, TlsError, TlsFiles};
use crate::users::{UserError, Who};

/// A plant file as it was read.
#[derive(Clone, Debug)]
pub struct PlantFile {
    /// Its name, for errors.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// How to come up.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Where everything is kept.
    pub data: PathBuf,
    /// The plant; where absent the one of the data directory, or a whole simulated pod.
    pub plant: Option<PlantFile>,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The certificate and key to serve by TLS with; needed beyond loopback.
    pub tls: Option<TlsFiles>,
    /// How fast plant time runs.
    pub speed: Speed,
    /// What may be done without being asked; where absent what the plant suggests.
    pub level: Option<Level>,
    /// The seed of a simulated plant.
    pub seed: u64,
    /// How often things fail in a simulated plant.
    pub rates: Rates,
    /// The program whose hidden verbs supervise real tasks; without it jobs run no programs.
    pub supervisor: Option<PathBuf>,
    /// A scenario: its plant, settings, seed, rates and what happens when, in place of those above
    /// that it gives.  What lies before the last start has happened.
    pub scenario: Option<Setup>,
    /// A simulated plant whose state is gone begins anew, with dark mirrors and healthy devices.
    pub new_plant: bool,
    /// The machine's account that commands run under unless their owner has one; the server's own
    /// where absent.
    pub task_account: Option<String>,
}

impl UpOptions {
    /// A simulated pod in `data`, as `up` without options brings it up.
    pub fn of(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            plant: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: None,
            speed: Speed::DEFAULT,
            level: None,
            seed: 1,
            rates: Rates::NONE,
            supervisor: None,
            scenario: None,
            new_plant: false,
            task_account: None,
        }
    }
}

impl UpOptions {
    /// The simulated plant that this run begins with.
    fn first<'a>(&self, data: &'a Path) -> First<'a> {
        let (seed, rates, dials) = match &self.scenario {
            Some(it) => (it.seed, it.rates, it.dials),
            None => (self.seed, self.rates, Dials::QUIET),
        };
        let happenings = self.scenario.as_ref().map(|it| it.happenings.clone()).unwrap_or_default();
        First { data, nature: Nature { seed, rates, dials }, new_plant: self.new_plant, happenings }
    }
}

/// Why it does not come up.
#[derive(Debug, thiserror::Error)]
pub enum UpError {
    /// A token must not pass through a network that others can listen to.
    #[error(
        "{listen} can be reached from other machines, which takes TLS; \
         give --tls-cert and --tls-key, or listen on 127.0.0.1"
    )]
    NotLoopback {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address asked for.
        listen: SocketAddr,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data directory or its journal cannot be used.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// The journal gives no state.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no simulated plant to talk to.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A file of the data directory cannot be used.
    #[error("cannot use {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// No task can run under an account.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The token or the list of users cannot be used.
    #[error(transparent)]
    Users(#[from] UserError),
    /// The plant file is wrong; the text says where.
    #[error("{text}")]
    Plant {
        /// File, line, caret, and what would be right.
        text: String,
    },
    /// The data directory is of another plant.
    #[error(
        "{data} runs another plant; change it with `selvedge plant apply {name}`, \
         or name another data directory"
    )]
    OtherPlant {
        /// The data directory.
        data: PathBuf,
        /// The plant file.
        name: String,
    },
    /// The core or the journal refuses the first input.
    #[error("the control core does not begin: {text}")]
    Begin {
        /// What was said.
        text: String,
    },
    /// The system gives no thread.
    #[error("cannot start the loop's thread")]
    Thread {
        /// Its reason.
        #[source]
        source: io::Error,
    },
    /// The loop ended by itself, which is a bug.
    #[error("the loop ended by itself; what it had acknowledged is in the journal, so start again")]
    Died,
}

/// A server that answers.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    link: String,
    raised: Raised,
    serving: tokio::task::JoinHandle<()>,
    _presence: Presence,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a client writes it.
    pub fn url(&self) -> &str {
        self.raised.house.guard().url()
    }

    /// A link that opens the dashboard once.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// What it does without being asked.
    pub fn level(&self) -> Level {
        self.raised.level
    }

    /// Whether its plant is simulated.
    pub fn is_simulated(&self) -> bool {
        self.raised.is_simulated
    }

    /// Whether its data directory was new.
    pub fn is_new(&self) -> bool {
        self.raised.is_new
    }

    /// What one could do first on its plant.
    pub fn example(&self) -> &Example {
        &self.raised.example
    }

    /// Something to end it with from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.raised.house.clone())
    }

    /// Waits until it is told to stop, by `selvedge down` or a [`Stopper`], then ends, with
    /// everything that `up` started unless that was asked to be left.
    ///
    /// # Errors
    /// [`UpError::Died`].
    pub async fn ended(self) -> Result<(), UpError> {
        listen::stopped(&mut self.raised.house.stopping()).await;
        // Answers under way are given before the loop goes; who reads too slowly goes without.
        let abort = self.serving.abort_handle();
        if tokio::time::timeout(limits::STOP_WAIT_MAX, self.serving).await.is_err() {
            abort.abort();
        }
        let raised = self.raised;
        let parting = raised.house.parting();
        let lowered = tokio::task::spawn_blocking(move || raised.lower(parting));
        lowered.await.unwrap_or(Err(UpError::Died))
    }
}

/// Ends a server.
#[derive(Clone, Debug)]
pub struct Stopper(House);

impl Stopper {
    /// Asks it to end, alone or with all that it has started.
    pub fn stop(&self, parting: Parting) {
        self.0.stop(parting);
    }
}

/// Brings a server up.
///
/// # Errors
/// [`UpError`]; nothing then runs, and the data directory is as it was or as a crash leaves it.
pub async fn up(options: UpOptions) -> Result<Running, UpError> {
    let listen = options.listen;
    if !listen.ip().is_loopback() && options.tls.is_none() {
        return Err(UpError::NotLoopback { listen });
    }
    let tls = options.tls.as_ref().map(Renewed::read).transpose()?;
    let bound = TcpListener::bind(listen).await.and_then(|it| Ok((it.local_addr()?, it)));
    let (address, listener) = bound.map_err(|source| not_bound(&options, source))?;
    let tls_url = tls.as_ref().map(|(_, tls)| tls.url(address));
    let door = Door { address, tls_url: tls_url.clone() };
    let raised = raise(&options, door, |store| Box::new(store))?;
    let link = raised.house.guard().link(Who::KEEPER);
    let link =
        link.map_err(|source| UpError::File { path: PathBuf::from("/dev/urandom"), source })?;
    let presence = Server::here(address, raised.house.data())
        .and_then(|server| runtime::write(&Server { tls_url, ..server }))
        .map_err(|source| UpError::File { path: PathBuf::from("selvedge/servers"), source })?;
    let stop = raised.house.stopping();
    let router = api::router(raised.house.clone());
    let tls = tls.map(|(renewed, _)| {
        let shown = renewed.shown();
        tokio::spawn(renewed.watch());
        shown
    });
    let serving = tokio::spawn(listen::serve(listener, tls, router, stop));
    Ok(Running { address, link, raised, serving, _presence: presence })
}

/// Where clients come in.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    /// How it is reached by TLS.
    pub(crate) tls_url: Option<String>,
}

/// Everything but the sockets: the loop in its thread, and the door to it.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) house: House,
    level: Level,
    is_simulated: bool,
    is_new: bool,
    example: Example,
    has_died: Arc<AtomicBool>,
    requests: mpsc::SyncSender<Request>,
    loop_thread: JoinHandle<()>,
}

impl Raised {
    /// Lets the loop write what there is to write, and end.
    ///
    /// # Errors
    /// [`UpError::Died`] if it had ended before.
    pub(crate) fn lower(self, parting: Parting) -> Result<(), UpError> {
        let has_died = self.has_died.load(Ordering::SeqCst);
        self.house.stop(parting);
        // A loop that is gone already needs no telling.
        let _ = self.requests.send(Request::Stop(parting));
        match self.loop_thread.join() {
            Ok(()) if !has_died => Ok(()),
            Ok(()) | Err(_) => Err(UpError::Died),
        }
    }
}

/// Brings the core of `options` back, or begins it, and starts its loop; `wrap` may put something
/// between the loop and its store.
///
/// # Errors
/// [`UpError`].
pub(crate) fn raise(
    options: &UpOptions,
    door: Door,
    wrap: impl FnOnce(Store) -> Box<dyn Journal>,
) -> Result<Raised, UpError> {
    let plant = options.plant.as_ref().map(read_plant).transpose()?;
    let (store, opened) = Store::open(&options.data)?;
    let data = canonical(&options.data)?;
    let secrets = Secrets::of(&data)?;
    if let Some(account) = &options.task_account {
        Account::of(account)?.reaches(&data)?;
    }
    let started = start::start(&store, opened, &data)?;
    let is_new = started.last == 0;
    let (inputs, text) = first_inputs(options, plant, &started)?;
    let is_simulated = !has_real_device(&text);
    let mut shell = Shell::new(Parts {
        // A real plant has no time but that of its clocks.
        clock: Clock::from(
            started.core.state().now,
            if is_simulated { options.speed } else { Speed::REAL },
        ),
        core: started.core,
        journal: wrap(store),
        data: data.clone(),
        feed: started.feed,
        meter: Meter::new(),
        saved: started.last,
        snapshot_at: started.snapshot_at,
    });
    let (requests, incoming) = mpsc::sync_channel(limits::REQUESTS_MAX);
    // Machines that are real have no agent that would run anything on them.
    if let Some(program) = options.supervisor.as_ref().filter(|_| is_simulated) {
        let runner = runner_of(&shell, &data, program, requests.clone());
        shell.run_tasks_by(runner.map_err(|source| UpError::Thread { source })?);
    }
    let first = is_simulated.then(|| options.first(&data));
    if let Err(error) = shell.begin(inputs, first, requests.clone()) {
        shell.give_up(&incoming);
        return Err(error);
    }
    let level = shell.core().state().settings.level;
    let example = Example::of(shell.core().fabric(), shell.core().layout());

    let stop = watch::Sender::new(false);
    let guard = Arc::new(match door.tls_url {
        None => Guard::plain(secrets, door.address),
        Some(url) => Guard::tls(secrets, door.address, url),
    });
    let house =
        House::new(requests.clone(), stop.clone(), guard, data, options.task_account.clone());
    let has_died = Arc::new(AtomicBool::new(false));
    let ending = Ending { stop, has_died: Arc::clone(&has_died) };
    let loop_thread = std::thread::Builder::new()
        .name("selvedge-loop".to_owned())
        .spawn(move || {
            // Whoever waits for the end is told, however it comes.
            let _ending = ending;
            shell.run(&incoming);
        })
        .map_err(|source| UpError::Thread { source })?;
    Ok(Raised { house, level, is_simulated, is_new, example, has_died, requests, loop_thread })
}

/// Who runs the real tasks of `data`; what runs there of jobs that are over is ended.
fn runner_of(
    shell: &Shell,
    data: &Path,
    program: &Path,
    requests: mpsc::SyncSender<Request>,
) -> io::Result<Runner> {
    let jobs = shell.core().state().jobs.pairs();
    let known = jobs.filter(|(_, it)| !it.state.is_over()).map(|(id, it)| (id, it.attempt));
    let say = Box::new(move |input| requests.send(Request::Heard(input)).is_ok());
    Runner::begin(data, program.to_owned(), known.collect(), say)
}

/// Why the address cannot be had: most likely because the same server runs already.
fn not_bound(options: &UpOptions, source: io::Error) -> UpError {
    match lock::hold_still(&options.data) {
        Err(held @ LockError::Held { .. }) => StoreError::Lock(held).into(),
        Ok(_) | Err(_) => UpError::Listen { listen: options.listen, source },
    }
}

/// Says that the loop is gone when it goes, in order or in a panic.
struct Ending {
    stop: watch::Sender<bool>,
    has_died: Arc<AtomicBool>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !*self.stop.borrow() {
            self.has_died.store(true, Ordering::SeqCst);
            self.stop.send_replace(true);
        }
    }
}

/// What this run tells the core first, and the plant that it then has.
fn first_inputs(
    options: &UpOptions,
    plant: Option<(String, String)>,
    started: &start::Start,
) -> Result<(Vec<Input>, String), UpError> {
    let state = started.core.state();
    let scenario = options.scenario.as_ref();
    let plant = plant.or_else(|| Some(("the scenario's".to_owned(), scenario?.plant.clone())));
    let Some(current) = state.plants.last() else {
        let text = plant.map_or_else(default_plant, |(_, text)| text);
        let mut settings = match scenario {
            _ if has_real_device(&text) => Settings::observing(),
            Some(scenario) => scenario.settings.clone(),
            None => Settings::simulated(),
        };
        settings.level = options.level.unwrap_or(settings.level);
        return Ok((vec![Input::Begin { plant: text.clone(), settings }], text));
    };
    if let Some((name, text)) = plant
        && !same_plant(&text, current)
    {
        return Err(UpError::OtherPlant { data: options.data.clone(), name });
    }
    let mut inputs = vec![Input::Restarted];
    if let Some(level) = options.level.filter(|it| *it != state.settings.level) {
        inputs.push(Input::Ask { by: "operator".to_owned(), what: Ask::SetLevel { level } });
    }
    Ok((inputs, current.clone()))
}

/// A whole pod of 64 cubes whose devices are simulated.
fn default_plant() -> String {
    Plant::of_pods("a simulated pod", [Family::tpuv4(64)]).render()
}

fn read_plant(file: &PlantFile) -> Result<(String, String), UpError> {
    match Plant::parse(&file.name, &file.text) {
        Ok(_) => Ok((file.name.clone(), file.text.clone())),
        Err(errors) => {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Err(UpError::Plant { text: lines.join("\n") })
        }
    }
}

/// Whether two files say the same, however they are written.
fn same_plant(a: &str, b: &str) -> bool {
    a == b || matches!((Plant::parse("a", a), Plant::parse("b", b)), (Ok(a), Ok(b)) if a == b)
}

fn has_real_device(text: &str) -> bool {
    Plant::parse("plant", text).is_ok_and(|plant| plant.has_real_device())
}

fn canonical(data: &Path) -> Result<PathBuf, UpError> {
    data.canonicalize().map_err(|source| UpError::File { path: data.to_owned(), source })
}

impl From<StoreError> for UpError {
    fn from(error: StoreError) -> Self {
        UpError::Store(Box::new(error))
    }
}

impl From<Trouble> for UpError {
    fn from(trouble: Trouble) -> Self {
        UpError::Begin { text: ApiError::from(trouble).body.error }
    }
}
