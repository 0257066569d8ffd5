//! Where launchers and MPIs say which process one is, and of how many.
//!
//! A program reads its own numbers there, as without replicas: before `MPI_Init` and behind it. In
//! between MPI reads what its launcher said, which is kept beside them.

/// Before the name of a variable, what the launcher said.
pub const LAUNCHERS: &str = "SELVEDGE_LAUNCHERS_";

/// Where a process finds its number among those of its host, and how many these are.
pub const LOCAL: &str = "SELVEDGE_LOCAL";

const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

const LOCAL_RANKS: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

const SIZES: [&str; 8] = [
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_UNIVERSE_SIZE",
    "OMPI_WORLD_SIZE",
    "OMPI_APP_CTX_NUM_PROCS",
    "PMI_SIZE",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_STEP_NUM_TASKS",
];

const LOCAL_SIZES: [&str; 3] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];

/// A process by its number, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 0 on.
    pub rank: usize,
    /// How many have such a number.
    pub ranks: usize,
}

impl Place {
    /// As processes are told it.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{} {}", self.rank, self.ranks)
    }

    /// What [`Place::to_text`] wrote.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let (rank, ranks) = text.split_once(' ')?;
        Some(Self { rank: rank.parse().ok()?, ranks: ranks.parse().ok()? })
    }
}

/// Of processes on these hosts, in the order of their ranks, which of its host's each is.
#[must_use]
pub fn places<H: PartialEq>(hosts: &[H]) -> Vec<Place> {
    let n = |of: &[H], host: &H| of.iter().filter(|it| *it == host).count();
    let place =
        |(rank, host): (usize, &H)| Place { rank: n(&hosts[..rank], host), ranks: n(hosts, host) };
    hosts.iter().enumerate().map(place).collect()
}

/// The names of variables, and what the program finds there: which process it is of all, and of
/// those of its host.
pub fn own(world: Place, local: Place) -> impl Iterator<Item = (&'static str, String)> {
    let each = |names: &'static [&'static str], number: usize| {
        names.iter().map(move |name| (*name, number.to_string()))
    };
    let ranks = each(&RANKS, world.rank).chain(each(&LOCAL_RANKS, local.rank));
    ranks.chain(each(&SIZES, world.ranks)).chain(each(&LOCAL_SIZES, local.ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_numbered_on_each_host() {
        let check = |hosts: &[u8], wanted: &[(usize, usize)]| {
            let found: Vec<_> = places(hosts).iter().map(|it| (it.rank, it.ranks)).collect();
            assert_eq!(found, wanted, "{hosts:?}");
        };
        check(&[7, 7, 7], &[(0, 3), (1, 3), (2, 3)]);
        check(&[1, 1, 2], &[(0, 2), (1, 2), (0, 1)]);
        check(&[1, 2, 1, 2], &[(0, 2), (0, 2), (1, 2), (1, 2)]);
        let place = Place { rank: 3, ranks: 12 };
        assert_eq!(Place::from_text(&place.to_text()), Some(place));
    }
}
