//! `selvedge up`: the control plane, until Ctrl-C or `selvedge down`, which end all that it
//! started, or until SIGTERM or SIGHUP, which leave that to the next `up`.

use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as SocketAddrUnix, UnixDatagram};
use std::path::{Path, PathBuf};

use selvedge_server::clock::Speed;
use selvedge_server::runtime;
use selvedge_server::{
    Example, Parting, PlantFile, Running, Stopper, TlsFiles, UpError, UpOptions,
};
use selvedge_sim::scenario;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::Globals;
use crate::cmd::config::Config;
use crate::cmd::level::Level;
use crate::cmd::plant;
use crate::cmd::sim::read_scenario;
use crate::failure::{Answer, Failure, Outcome, Within as _};
use crate::log;
use crate::render::facts::Facts;
use crate::render::{self, style};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without a plant: a simulated pod of 64 cubes (4,096 chips), or whatever the \
                        data directory already runs.\nIt is reached from this machine only, with a \
                        token in the data directory that the other verbs find by themselves;\n\
                        from others with --listen, --tls-cert and --tls-key, and with tokens that \
                        `selvedge user add` makes.\n\
                        Ctrl-C and `selvedge down` end all that it has started; SIGTERM, for an \
                        upgrade, and SIGHUP, when its terminal is gone,\nend the server alone: the \
                        next `up` on the same data goes on with the plant and the jobs as they are."
)]
pub(crate) struct Up {
    /// A file that says the same as the options below; those that are given go before it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The plant file of a new data directory.
    #[arg(long, value_name = "FILE")]
    plant: Option<PathBuf>,
    /// Where everything is kept; ~/.local/share/selvedge without.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen, beyond loopback with a certificate alone; without, 127.0.0.1:7070 or a
    /// free port if that is taken.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// The certificate to serve by TLS with, as PEM, then those that lead to its root; needed
    /// beyond loopback.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Seconds of plant time that pass in a real second, on simulated plants; without, 60.
    #[arg(long, value_name = "X")]
    speed: Option<f64>,
    /// A scenario: its plant, settings, seed, fault rates, jobs and events.
    #[arg(long, value_name = "FILE", conflicts_with = "plant")]
    scenario: Option<PathBuf>,
    /// What may be done without being asked; without, `repair` on simulated plants and `observe`
    /// on real ones.
    #[arg(long, value_name = "LEVEL")]
    act: Option<Level>,
    /// The machine's account that the commands of jobs run under, for users who have none of their
    /// own (`user add --account`); without, the server's. It takes a server started by root.
    #[arg(long, value_name = "ACCOUNT")]
    task_account: Option<String>,
    /// Begin with dark mirrors and healthy devices where the simulated plant's state is gone.
    #[arg(long)]
    new_plant: bool,
}

/// Where `up` listens unless told otherwise.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7070);

pub(crate) fn run(args: &Up, globals: &Globals) -> Outcome {
    selvedge_driver::process::keep_files();
    log::begin()?;
    let config = args.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    let mut options = UpOptions::of(match args.data.clone().or(config.data) {
        Some(data) => data,
        None => data_home()?,
    });
    // A scenario brings its own plant.
    let plant = args.plant.clone().or(config.plant.filter(|_| args.scenario.is_none()));
    options.plant = plant.map(|it| plant_file(&it)).transpose()?;
    if let Some(path) = &args.scenario {
        let scenario = read_scenario(path)?;
        let setup = scenario::setup(&scenario);
        options.scenario = Some(setup.within(|| format!("{} cannot be run", path.display()))?);
    }
    let speed = args.speed.or(config.speed).unwrap_or(Speed::DEFAULT.factor());
    options.speed = Speed::new(speed)?;
    options.supervisor = Some(PathBuf::from("/proc/self/exe"));
    options.tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.clone(), key: key.clone() }),
        _ => config.tls.map(|it| TlsFiles { cert: it.cert, key: it.key }),
    };
    options.level = args.act.or(config.act).map(Level::to_control);
    options.new_plant = args.new_plant;
    options.task_account = args.task_account.clone().or(config.task_account);
    let data = options.data.clone();
    let runtime = Runtime::new().within(|| "cannot start the event loop")?;
    let running = up(&runtime, options, args.listen.or(config.listen))?;
    listen_to_signals(&runtime, &running.stopper())?;
    tell(&running, &data, speed, globals)?;
    tell_systemd();
    let url = running.url().to_owned();
    let ended = runtime.block_on(running.ended());
    // Nobody waits for what is still being thought about.
    runtime.shutdown_background();
    ended?;
    let left = selvedge_server::plant::left_in(&data);
    let left = left.map_or_else(String::new, |it| {
        format!("; process {} keeps the plant for the next one", it.pid)
    });
    anstream::eprintln!("the server at {url} has ended{left}");
    Ok(Answer::Yes)
}

/// Tells the service manager that started us, if one did, that we answer.
fn tell_systemd() {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let told = UnixDatagram::unbound().and_then(|socket| {
        // A name that begins with @ is no file.
        let address = match path.as_encoded_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddrUnix::from_abstract_name(name)?,
            None => SocketAddrUnix::from_pathname(&path)?,
        };
        socket.send_to_addr(b"READY=1", &address)
    });
    if let Err(error) = told {
        anstream::eprintln!("cannot tell the service manager at {path:?}: {error}");
    }
}

/// Ctrl-C ends what it started too; SIGTERM ends the server alone, and so does SIGHUP: a connection
/// that is lost, or a habit from servers that read their settings anew at it, ends nobody's job.
fn listen_to_signals(runtime: &Runtime, stopper: &Stopper) -> Outcome<()> {
    let _inside = runtime.enter();
    for (kind, parting) in [
        (SignalKind::interrupt(), Parting::End),
        (SignalKind::hangup(), Parting::Leave),
        (SignalKind::terminate(), Parting::Leave),
    ] {
        let mut signals = signal(kind).within(|| "cannot listen for signals")?;
        let stopper = stopper.clone();
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                stopper.stop(parting);
            }
        });
    }
    Ok(())
}

/// On the address asked for; on a free port if nobody asked and the usual one is taken.
fn up(runtime: &Runtime, options: UpOptions, listen: Option<SocketAddr>) -> Outcome<Running> {
    let at = |listen| UpOptions { listen, ..options.clone() };
    match runtime.block_on(selvedge_server::up(at(listen.unwrap_or(LISTEN)))) {
        Err(UpError::Listen { source, .. })
            if listen.is_none() && source.kind() == io::ErrorKind::AddrInUse =>
        {
            let any = SocketAddr::new(LISTEN.ip(), 0);
            runtime.block_on(selvedge_server::up(at(any))).map_err(hinted)
        }
        done => done.map_err(hinted),
    }
}

/// What a person wants to know and do next.
fn tell(running: &Running, data: &Path, speed: f64, globals: &Globals) -> Outcome<()> {
    let url = running.url();
    if globals.json {
        let up = json!({"url": url, "link": running.link(), "data": data});
        return Ok(render::print(&format!("{up}\n"))?);
    }
    let (title, hint) = (style::TITLE, style::HINT);
    let kind = if running.is_simulated() { "simulated" } else { "real" };
    let mut facts = Facts::new(format!("{title}selvedge{title:#} is up at {url}"));
    facts.add("see it", format!("{hint}{}{hint:#} (opens once)", running.link()));
    facts.add("data", format!("{}{}", data.display(), if running.is_new() { ", new" } else { "" }));
    facts.add("acts at", Level::of_control(running.level()).word());
    if running.is_simulated() {
        facts.add("plant", format!("{kind}, its time runs {speed} times as fast"));
    } else {
        facts.add(
            "plant",
            format!("{kind}; no driver here speaks to its devices, so nothing starts"),
        );
    }
    let program = std::env::args().next().unwrap_or_else(|| "selvedge".to_owned());
    // Where several run, the other verbs want to be told which is meant.
    let which = match runtime::all().len() {
        0 | 1 => String::new(),
        _ => format!(" --server {url}"),
    };
    let Example { demand, machine } = running.example();
    let mut next: Vec<String> = Vec::new();
    next.extend(demand.iter().map(|it| format!("job submit {it} --name first")));
    next.push("job list --watch".to_owned());
    if let (Some(machine), true) = (machine, running.is_simulated()) {
        next.push(format!("fault inject machine {machine}"));
    }
    next.push("down".to_owned());
    let next = next.iter().map(|it| format!("{program}{which} {it}")).collect();
    facts.add_list("next, in another terminal", next);
    Ok(render::print(&facts.to_string())?)
}

fn hinted(error: UpError) -> Failure {
    let hint = match &error {
        UpError::Listen { .. } => Some("name a free port, or none: --listen 127.0.0.1:0"),
        _ => None,
    };
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn plant_file(path: &Path) -> Outcome<PlantFile> {
    let text = plant::read(path)?;
    Ok(PlantFile { name: path.display().to_string(), text })
}

/// `$XDG_DATA_HOME/selvedge`, else `~/.local/share/selvedge`.
fn data_home() -> Outcome<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let home = of("XDG_DATA_HOME").or_else(|| Some(of("HOME")?.join(".local/share")));
    let home = home.ok_or_else(|| {
        Failure::new("there is no home directory to keep the data in").hint("say where: --data DIR")
    })?;
    Ok(home.join("selvedge"))
}
