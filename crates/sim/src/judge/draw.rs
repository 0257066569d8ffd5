//! What is drawn from a seed: how large the world is, what runs in it, how it misbehaves.

use selvedge_control::planted::Defect;
use selvedge_control::settings::{Level, Settings};
use selvedge_family::torus::shape::Shape;
use selvedge_model::job::{Collective, Demand, JobSpec, Load, Work};
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::Dials;
use crate::dice::Dice;
use crate::fault::{FaultKind, Rates};
use crate::judge::{Trial, people};
use crate::world::{Crashes, Happening, Planning, Setup, Syncs, World};

/// Of so many seeds, one crashes at every sync.
const ALWAYS_EVERY: u64 = 40;

/// How often the power fails in each other seed.
pub(super) const N_CRASHES: u64 = 20;

/// What is drawn from a seed.
pub(super) struct Drawn {
    pub(super) setup: Setup,
    /// What people will want.
    pub(super) wishes: Vec<people::Wished>,
    /// When all is healed.
    pub(super) end: Moment,
    /// How long after the end everything must be over.
    pub(super) bound: Span,
    /// For people.
    pub(super) text: String,
}

impl Drawn {
    pub(super) fn draw(trial: Trial, dice: &mut Dice) -> Self {
        let seed = trial.seed;
        let size = Size::draw(seed, dice);
        let mut happenings = jobs(dice, &size);
        let wishes = people::draw(seed, &size);
        happenings.sort_by_key(|it| it.0);
        let work = happenings.iter().fold(Span::ZERO, |sum, (_, it)| match it {
            Happening::Submit(spec) => {
                let (duration, ..) = spec.work.steps();
                sum + duration + Span::hours(1)
            }
            Happening::Ask { .. }
            | Happening::Fault { .. }
            | Happening::Clear { .. }
            | Happening::Drain { .. } => sum,
        });
        let mut settings = settings(dice, size.reviews);
        settings.moves_share = share(&mut Dice::new(seed, "shares"));
        settings.plant(trial.planted);
        let syncs = match dice.below(3) {
            0 => Syncs::AtOnce,
            1 => Syncs::After(Span::nanos(100_000), Span::millis(5)),
            _ => Syncs::After(Span::millis(1), Span::millis(400)),
        };
        let crashes = if size.always || trial.crashes_everywhere {
            Crashes::Always
        } else {
            Crashes::Drawn { n: N_CRASHES, until: size.end }
        };
        let planning = planning(&mut Dice::new(seed, "planning times"));
        let mut dials = dials(dice);
        dials.deaf = trial.planted.has(Defect::GenerationIgnored);
        let Size { kind, n_pods, n_cubes, n_jobs, end, .. } = size;
        let text = format!(
            "{n_pods} pods of {n_cubes} {}, {n_jobs} jobs until {end}, {:?}, {syncs:?}, \
             {dials:?}, {planning:?}",
            kind.parts(),
            settings.level
        );
        let setup = Setup {
            plant: pods(&size, dice),
            settings,
            seed,
            rates: Rates::NONE,
            dials,
            happenings,
            syncs,
            crashes,
            planning,
            check_every: 32,
        };
        Self { setup, wishes, end, bound: Span::days(3) + work.times(2), text }
    }

    /// A third of the kinds is off; the others come a few times in the run.
    pub(super) fn rates(&self, world: &World, dice: &mut Dice) -> Rates {
        let days_ppm = self.end.since(Moment::START).as_secs() * 1_000_000 / 86_400;
        FaultKind::ALL.into_iter().fold(Rates::NONE, |rates, kind| {
            let n_wanted = if dice.below(3) == 0 { 0 } else { 1 + dice.below(6) };
            let n_things = world.plant().n_prone(kind) as u64;
            if n_things == 0 || n_wanted == 0 {
                return rates;
            }
            let per_day = n_wanted * 1_000_000_000_000 / (days_ppm * n_things);
            rates.with(kind, Ppm::new(u32::try_from(per_day).unwrap_or(u32::MAX)))
        })
    }
}

/// Pods whose cubes stand on slots with some room beside them, so that others may come; or machines
/// of boards, or hosts.
fn pods(size: &Size, dice: &mut Dice) -> String {
    let (n_cubes, n_pods) = (size.n_cubes, size.n_pods);
    let n_slots = n_cubes + dice.index(3);
    let family = match size.kind {
        Kind::Cubes => {
            format!("family = \"tpuv4\"\ncubes = {n_slots}\ndeployed = \"0-{}\"", n_cubes - 1)
        }
        Kind::Groups([rows, columns]) => {
            format!("family = \"hypersquare\"\ngroups = \"{rows}x{columns}\"")
        }
        Kind::Boards([width, height]) => {
            format!("family = \"tpuv2\"\ngrid = \"{}x{}\"", 2 * width, 2 * height)
        }
        Kind::Hosts => format!("family = \"hosts\"\nhosts = {n_cubes}"),
        Kind::Toy => return format!("format = 1\nname = \"judged\"\n{TOY}"),
    };
    let pods = format!("\n[[pod]]\n{family}\n").repeat(n_pods);
    let cables = if size.kind == Kind::Hosts { joined(n_pods, n_cubes) } else { String::new() };
    format!("format = 1\nname = \"judged\"\n{pods}{cables}")
}

/// Two hosts with a cable between them.
const TOY: &str = r#"
[[template]]
name = "toy"
nodes = [
  { name = "m0", kind = "machine" },
  { name = "gpu0", kind = "chip", parent = "m0" },
  { name = "gpu1", kind = "chip", parent = "m0" },
]
ports = [
  { name = "gpu0/a", node = "gpu0" },
  { name = "gpu1/a", node = "gpu1" },
  { name = "m0/port", node = "m0" },
]
links = [{ a = "gpu0/a", b = "gpu1/a", kind = "nvlink", gbps = 900, latency_ns = 300 }]
seats = ["gpu0", "gpu1"]
[[part]]
name = "host0"
template = "toy"
pool = "toys"
[[part]]
name = "host1"
template = "toy"
pool = "toys"
[[cable]]
a = "host0/m0/port"
b = "host1/m0/port"
gbps = 100
"#;

/// What joins hosts: a cable from each to the next of its pod, and a switch for each pod.
fn joined(n_pods: usize, n_hosts: usize) -> String {
    let ports = (0..n_hosts).map(|it| format!("{{ name = \"p{it}\", node = \"s\" }}"));
    let ports = ports.collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "\n[[template]]\nname = \"tor\"\nrole = \"packet-switch\"\n\
         nodes = [{{ name = \"s\", kind = \"switch\" }}]\nports = [{ports}]\n"
    );
    let mut cable = |a: String, b: String| {
        text.push_str(&format!("\n[[cable]]\na = \"{a}\"\nb = \"{b}\"\ngbps = 400\n"));
    };
    for pod in 0..n_pods {
        for nth in 0..n_hosts {
            let host = pod * n_hosts + nth;
            cable(format!("host{host}/nic0/port"), format!("tor{pod}/p{nth}"));
            if nth + 1 < n_hosts {
                cable(format!("host{host}/nic1/port"), format!("host{}/nic2/port", host + 1));
            }
        }
    }
    for pod in 0..n_pods {
        text.push_str(&format!("\n[[part]]\nname = \"tor{pod}\"\ntemplate = \"tor\"\n"));
    }
    text
}

fn dials(dice: &mut Dice) -> Dials {
    let mut up_to = |most: u64| {
        let off = dice.below(3) == 0;
        let value = if off { 0 } else { dice.below(most) };
        Ppm::new(u32::try_from(value).expect("shares lie below a million"))
    };
    Dials {
        lose: up_to(30_000),
        echo: up_to(50_000),
        untrained: up_to(300),
        stubborn: up_to(400_000),
        fail: up_to(100_000),
        botch: up_to(300_000),
        deaf: false,
    }
}

/// Plans come at once, late, so late that they are asked for again, or never.
fn planning(dice: &mut Dice) -> Planning {
    let longest = [Span::millis(100), Span::secs(30), Span::mins(5)];
    match dice.below(4) {
        0 => Planning::AtOnce,
        _ => Planning::Within {
            shortest: Span::millis(1),
            longest: longest[dice.index(longest.len())],
            lost: Ppm::new([0, 50_000, 500_000][dice.index(3)]),
        },
    }
}

/// What the pods of a seed's world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Cubes on optical switches.
    Cubes,
    /// Rows and columns of groups of a hyper-square machine.
    Groups([usize; 2]),
    /// Boards of a static grid of chips, along x and y.
    Boards([usize; 2]),
    /// Hosts in a row, with a switch between them all.
    Hosts,
    /// Two hosts with a cable between them.
    Toy,
}

impl Kind {
    /// One seed of ten has boards, in turn of either kind, and one has hosts.
    fn draw(seed: u64) -> Self {
        let dice = &mut Dice::new(seed, "families");
        let sides = [2 + dice.index(2), 2 + dice.index(4)];
        match seed % 20 {
            3 => Kind::Hosts,
            7 => Kind::Groups(sides),
            13 => Kind::Toy,
            17 => Kind::Boards(sides),
            _ => Kind::Cubes,
        }
    }

    const fn parts(self) -> &'static str {
        match self {
            Kind::Cubes => "cubes",
            Kind::Groups(_) => "hyper-square boards",
            Kind::Boards(_) => "boards of a grid",
            Kind::Hosts => "hosts",
            Kind::Toy => "toy hosts",
        }
    }
}

/// How large a seed's world is, and how crowded.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) kind: Kind,
    /// The power fails at every sync.
    pub(super) always: bool,
    /// Jobs are moved only once a person has looked at who goes where; such worlds are crowded,
    /// or nobody would have to move.
    pub(super) reviews: bool,
    pub(super) n_pods: usize,
    pub(super) n_cubes: usize,
    pub(super) n_jobs: usize,
    pub(super) end: Moment,
}

impl Size {
    fn draw(seed: u64, dice: &mut Dice) -> Self {
        let kind = Kind::draw(seed);
        let always = seed.is_multiple_of(ALWAYS_EVERY);
        let reviews = !always && dice.below(2) == 0 && kind == Kind::Cubes;
        let n_pods = if reviews || dice.below(5) == 0 { 2 } else { 1 };
        let n_pods = if kind == Kind::Toy { 1 } else { n_pods };
        let (most, n_jobs, n_hours) = match (always, reviews) {
            (true, _) => (2, 16, 72),
            (false, true) => (5, 200 + dice.index(100), 36),
            (false, false) => (15 / n_pods, 60 + dice.index(50), 72),
        };
        let n_cubes = match (kind, 2 + dice.index(most)) {
            (Kind::Cubes | Kind::Hosts, n) => n,
            (Kind::Toy, _) => 2,
            (Kind::Groups([a, b]) | Kind::Boards([a, b]), _) => a * b,
        };
        let end = Moment::START + Span::hours(24 + dice.below(n_hours));
        Self { kind, always, reviews, n_pods, n_cubes, n_jobs, end }
    }
}

fn settings(dice: &mut Dice, reviews: bool) -> Settings {
    let mut settings = Settings::simulated();
    settings.level = match dice.below(10) {
        0 => Level::Quarantine,
        1 => Level::Drain,
        // Nothing is done until somebody sets it otherwise, at the latest when all is healed.
        2 => Level::Observe,
        _ => Level::Repair,
    };
    settings.means.backfill = dice.below(4) != 0;
    settings.means.preempt = dice.below(4) != 0;
    settings.means.defragment = dice.below(4) != 0;
    if reviews {
        settings.level = Level::Drain;
        settings.means.preempt = false;
        settings.means.defragment = true;
    }
    settings
}

/// What owners may lose to moves: much, or each thing they run about once or twice in a day.
fn share(dice: &mut Dice) -> Ppm {
    let tight = [Ppm::new(12_000), Ppm::new(20_000), Ppm::new(40_000)];
    match dice.below(2) {
        0 => Settings::simulated().moves_share,
        _ => tight[dice.index(tight.len())],
    }
}

fn jobs(dice: &mut Dice, size: &Size) -> Vec<(Moment, Happening)> {
    let Size { n_jobs, n_cubes, end, reviews, .. } = *size;
    let per_cent = |share: u32| Ppm::new(10_000 * share);
    let (small_share, preemptible_share) = match reviews {
        true => (per_cent(80), per_cent(95)),
        false => (per_cent(50), per_cent(50)),
    };
    let (small, large): (Vec<Shape>, Vec<Shape>) =
        Shape::all().into_iter().partition(|it| it.cubes().is_none());
    let large: Vec<Shape> = large.into_iter().filter(|it| it.n_cubes() <= n_cubes).collect();
    let room = end.since(Moment::START);
    (0..n_jobs)
        .map(|number| {
            // Bursts and lulls: half of the jobs come in the first quarter.
            let share = if dice.below(2) == 0 { 4 } else { 1 };
            let at = Moment::START + dice.span(Span::secs(1), Span::nanos(room.as_nanos() / share));
            let shapes = if dice.chance(small_share) { &small } else { &large };
            let duration = match dice.below(12) {
                0 => Span::ZERO,
                _ => dice.exponential(Span::hours(2)).min(Span::hours(24)),
            };
            let limit = match dice.below(8) {
                0 => None,
                // Too short: the job ends at its limit.
                1 => Some(Span::nanos(duration.as_nanos() / 2) + Span::secs(1)),
                _ => Some(duration.times(1 + dice.below(3)) + Span::mins(1)),
            };
            let spec = JobSpec {
                name: format!("job-{number}"),
                owner: format!("owner{}", dice.below(4)),
                project: "judge".to_owned(),
                demand: match size.kind {
                    Kind::Cubes => Demand::Shape(shapes[dice.index(shapes.len())].to_string()),
                    Kind::Groups(sides) | Kind::Boards(sides) => partition(dice, sides),
                    Kind::Hosts | Kind::Toy => {
                        Demand::Parts(u32::try_from(1 + dice.index(n_cubes)).expect("a dozen"))
                    }
                },
                priority: u8::try_from(dice.below(10)).expect("below 10"),
                preemptible: dice.chance(preemptible_share),
                limit,
                retries: u32::try_from(dice.below(4)).expect("below 4"),
                redundancy: 1,
                work: Work::Simulated {
                    duration,
                    step: Span::millis(1 + dice.below(10_000)),
                    checkpoint_every: Span::mins(1 + dice.below(30)),
                },
            };
            (at, Happening::Submit(spec))
        })
        .collect()
}

/// A box of boards, or so many chips in any connected set, of a machine of `sides`.
fn partition(dice: &mut Dice, sides: [usize; 2]) -> Demand {
    let [rows, columns] = sides.map(|it| 1 + dice.index(it));
    if dice.below(2) == 0 {
        return Demand::Shape(format!("{rows}x{columns}"));
    }
    let collectives = [Collective::AllReduce, Collective::AllGather];
    Demand::Load(Box::new(Load {
        chips: u32::try_from(1 + dice.index(4 * rows * columns)).expect("some dozens"),
        memory_gib: 0,
        communication: Ppm::new(250_000 * u32::try_from(dice.below(5)).expect("below 5")),
        collective: collectives[dice.index(2)],
        boards: None,
    }))
}
