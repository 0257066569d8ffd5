//! Where launchers and MPIs say which process one is, and of how many.
//!
//! A program reads its own numbers there, as without replicas: before `MPI_Init` and behind it. In
//! between MPI reads what its launcher said, which is kept beside them.

/// Before the name of a variable, what the launcher said.
pub const LAUNCHERS: &str = "SELVEDGE_LAUNCHERS_";

const RANKS: [&str; 8] = [
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_NODE_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MPI_LOCALRANKID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
];

const SIZES: [&str; 9] = [
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_UNIVERSE_SIZE",
    "OMPI_WORLD_SIZE",
    "OMPI_WORLD_LOCAL_SIZE",
    "PMI_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
];

/// The names of variables, and what the program finds there: process `rank` of `ranks`.
pub fn own(rank: usize, ranks: usize) -> impl Iterator<Item = (&'static str, String)> {
    let each = |names: &'static [&'static str], number: usize| {
        names.iter().map(move |name| (*name, number.to_string()))
    };
    each(&RANKS, rank).chain(each(&SIZES, ranks))
}
