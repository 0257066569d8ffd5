//! The verbs, one file each.

mod backup;

mod check;

mod completions;

mod config;

mod cube;

mod dashboard;

mod down;

mod drain;

mod events;

mod fault;

mod job;

mod job_logs;
mod job_orders;

mod journal;

mod level;

mod link;

mod machine;

mod maintain;

mod man;

mod moves;

mod mpirun;

mod ocs;

mod plant;

mod plant_sim;

mod pod;

mod pod_picture;

mod redundancy;

mod repair;

mod ring;

mod sim;

mod status;

mod study;

mod task;

mod top;

mod topo;

mod up;

mod user;

pub(crate) mod watch;

mod wire;

use crate::Globals;
use crate::failure::Outcome;

/// What can be asked of `selvedge`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Start the control plane, with a simulated pod if there is no plant.
    Up(up::Up),
    /// End a server and all that it started.
    Down(down::Down),
    /// Run the same control plane in virtual time, and sum up what came of it.
    Sim(sim::Sim),
    /// A running server and its plant on one page.
    Status(status::Status),
    /// The pod, the queue and what happens, live on this terminal.
    Top(top::Top),
    /// Submit, watch and steer jobs.
    Job(job::Job),
    /// Pods and who uses them.
    Pod(pod::Pod),
    /// Cubes of 4x4x4 chips, or hosts of a cluster.
    Cube(cube::Cube),
    /// Machines of four chips.
    Machine(machine::Machine),
    /// Optical circuit switches.
    Ocs(ocs::Ocs),
    /// Links and fibres.
    Link(link::Link),
    /// Faults, from their evidence to the return of the part.
    Repair(repair::Repair),
    /// Planned work on many things, in waves.
    Maintain(maintain::Maintain),
    /// Proposed moves of running jobs.
    Moves(moves::Moves),
    /// Break and heal simulated hardware.
    Fault(fault::Fault),
    /// What may be done without being asked.
    Level(level::LevelArgs),
    /// What has happened, and what happens.
    Events(events::Events),
    /// A link that opens the dashboard once.
    Dashboard(dashboard::Dashboard),
    /// People and programs with tokens of their own.
    User(user::UserArgs),
    /// What an independent check finds wrong.
    Check(check::Check),
    /// The journal of a data directory, without a server.
    Journal(journal::Journal),
    /// Generate, inspect, compare and apply plant files.
    Plant(plant::PlantArgs),
    /// Run an MPI program in replicas that outvote errors and survive deaths.
    Mpirun(mpirun::Mpirun),
    /// What `mpirun` starts each process as.
    #[command(hide = true)]
    MpirunReplica(mpirun::MpirunReplica),
    /// Who speaks for a host to an `mpirun` on another.
    #[command(hide = true)]
    MpirunHost(mpirun::MpirunHost),
    /// Where the replicas of an MPI program go.
    Redundancy(redundancy::Redundancy),
    /// A ring through every chip of some groups of a hyper-square machine, or a job's on hosts.
    Ring(ring::Ring),
    /// NCCL's view of one server, from its topology file.
    Topo(topo::Topo),
    /// Seeded studies of the planners that production runs.
    Study(study::Study),
    /// Plan the mirrors of a slice without a server.
    Wire(wire::Wire),
    /// Copy a running server's journal and plant to a new directory.
    Backup(backup::Backup),
    /// Make a data directory from a backup.
    Restore(backup::Restore),
    /// The process of a simulated plant, which `up` starts by itself.
    PlantSim(plant_sim::PlantSim),
    /// Print a shell's completions.
    Completions(completions::Completions),
    /// Write the manual pages.
    Man(man::Man),
    /// Supervise a real task.
    #[command(hide = true)]
    TaskRun(task::TaskRun),
    /// Become a real task.
    #[command(hide = true)]
    TaskBecome(task::TaskBecome),
}

/// Does what was asked.
pub(crate) fn run(verb: Verb, globals: &Globals) -> Outcome {
    match verb {
        Verb::Up(args) => up::run(&args, globals),
        Verb::Down(args) => down::run(&args, globals),
        Verb::Sim(args) => sim::run(&args, globals),
        Verb::Status(args) => status::run(&args, globals),
        Verb::Top(args) => top::run(&args, globals),
        Verb::Job(args) => job::run(&args, globals),
        Verb::Pod(args) => pod::run(&args, globals),
        Verb::Cube(args) => cube::run(&args, globals),
        Verb::Machine(args) => machine::run(&args, globals),
        Verb::Ocs(args) => ocs::run(&args, globals),
        Verb::Link(args) => link::run(&args, globals),
        Verb::Repair(args) => repair::run(&args, globals),
        Verb::Maintain(args) => maintain::run(&args, globals),
        Verb::Moves(args) => moves::run(&args, globals),
        Verb::Fault(args) => fault::run(&args, globals),
        Verb::Level(args) => level::run(&args, globals),
        Verb::Events(args) => events::run(&args, globals),
        Verb::Dashboard(args) => dashboard::run(&args, globals),
        Verb::User(args) => user::run(&args, globals),
        Verb::Check(args) => check::run(&args, globals),
        Verb::Journal(args) => journal::run(&args, globals),
        Verb::Plant(args) => plant::run(&args, globals),
        Verb::Mpirun(args) => mpirun::run(&args, globals),
        Verb::MpirunReplica(args) => mpirun::run_replica(&args),
        Verb::MpirunHost(args) => mpirun::run_host(&args),
        Verb::Redundancy(args) => redundancy::run(&args, globals),
        Verb::Ring(args) => ring::run(&args, globals),
        Verb::Topo(args) => topo::run(&args, globals),
        Verb::Study(args) => study::run(&args, globals),
        Verb::Wire(args) => wire::run(&args, globals),
        Verb::Backup(args) => backup::back_up(&args, globals),
        Verb::Restore(args) => backup::restore(&args, globals),
        Verb::PlantSim(args) => plant_sim::run(&args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
        Verb::TaskRun(args) => task::run(&args),
        Verb::TaskBecome(args) => task::become_task(&args),
    }
}
