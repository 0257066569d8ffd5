//! On which hosts the processes of a program in replicas start, as launchers read it.
//!
//! World process `r·h + s` is replica `s` of rank `h`, of r replicas.  Clusters are taken in turn:
//! with c clusters of hosts, rank `h` goes to cluster `h mod c`, slot `h / c` of each of its hosts.
//! So a list that names each host once, which MPICH's hydra walks through again and again, says the
//! same as Open MPI's rankfile and Slurm's list of a host for each process.

/// Where each process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of the clusters in their order, the hosts of each; equally many, all different.
    clusters: Vec<Vec<String>>,
    n_ranks: usize,
    /// The slots of the one host on which all replicas run, if they do.
    one_host: Option<usize>,
}

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat<'l> {
    /// Its host.
    pub host: &'l str,
    /// Which of the host's slots.
    pub slot: usize,
}

/// Why processes cannot be laid out so.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LayoutError {
    /// More than fit.
    #[error(
        "there is room for {max} processes in {replicas} replicas, not for {ranks}: {slots} on each \
         host of a cluster, clusters: {clusters}"
    )]
    TooManyRanks {
        /// Asked for.
        ranks: usize,
        /// Of each.
        replicas: usize,
        /// There are.
        clusters: usize,
        /// On each host.
        slots: usize,
        /// That fit.
        max: usize,
    },
    /// Nothing to start.
    #[error("a program has one process at least")]
    NoRanks,
}

impl Layout {
    /// `ranks` processes over `clusters`, at most `slots` on each host.
    ///
    /// # Errors
    /// [`LayoutError`].
    ///
    /// # Panics
    /// If a host stands twice, or clusters have different numbers of hosts.
    pub fn over(
        clusters: Vec<Vec<String>>,
        ranks: usize,
        slots: usize,
    ) -> Result<Self, LayoutError> {
        let replicas = clusters.first().map_or(0, Vec::len);
        let mut hosts: Vec<&String> = clusters.iter().flatten().collect();
        hosts.sort_unstable();
        assert!(hosts.windows(2).all(|it| it[0] != it[1]), "a host stands twice");
        assert!(clusters.iter().all(|it| it.len() == replicas), "clusters of different size");
        let max = clusters.len().saturating_mul(slots);
        let clusters_len = clusters.len();
        fits(ranks, max, replicas, clusters_len, slots)?;
        Ok(Self { clusters, n_ranks: ranks, one_host: None })
    }

    /// All replicas of `ranks` processes on one host, process `i` on slot `i`; where nobody says
    /// how many slots it has, they share its `cores`.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn on_one(
        host: &str,
        ranks: usize,
        replicas: usize,
        slots: Option<usize>,
        cores: usize,
    ) -> Result<Self, LayoutError> {
        let max = slots.unwrap_or(usize::MAX);
        fits(ranks, max / replicas.max(1), replicas, 1, max)?;
        let clusters = vec![vec![host.to_owned(); replicas]];
        let one_host = Some(slots.unwrap_or(cores).max(1));
        Ok(Self { clusters, n_ranks: ranks, one_host })
    }

    /// How many processes the program sees.
    #[must_use]
    pub fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    /// Replicas of each.
    #[must_use]
    pub fn n_replicas(&self) -> usize {
        self.clusters.first().map_or(0, Vec::len)
    }

    /// Where replica `set` of `rank` starts.
    #[must_use]
    pub fn seat(&self, rank: usize, set: usize) -> Seat<'_> {
        let n = self.clusters.len();
        let slot = match self.one_host {
            Some(slots) => (self.n_replicas() * rank + set) % slots,
            None => rank / n,
        };
        Seat { host: &self.clusters[rank % n][set], slot }
    }

    /// All processes in the order of the world.
    pub fn world(&self) -> impl Iterator<Item = Seat<'_>> {
        let replicas = self.n_replicas();
        (0..replicas * self.n_ranks).map(move |it| self.seat(it / replicas, it % replicas))
    }

    /// For Open MPI: `mpirun --rankfile FILE` (4), `--map-by rankfile:file=FILE` (5).
    #[must_use]
    pub fn rankfile(&self) -> String {
        let line = |(process, seat): (usize, Seat<'_>)| {
            format!("rank {process}={} slot={}\n", seat.host, seat.slot)
        };
        self.world().enumerate().map(line).collect()
    }

    /// For MPICH: `mpiexec -f FILE`; after the last host it begins again at the first.
    #[must_use]
    pub fn host_list(&self) -> String {
        if self.one_host.is_some() {
            let n = self.n_replicas() * self.n_ranks;
            return format!("{}:{n}\n", self.clusters[0][0]);
        }
        // Clusters beyond the last process are not named, or processes would go there.
        let used = self.clusters.iter().take(self.n_ranks);
        used.flatten().map(|it| format!("{it}:1\n")).collect()
    }

    /// For Slurm: `SLURM_HOSTFILE=FILE srun --distribution=arbitrary`.
    #[must_use]
    pub fn slurm(&self) -> String {
        self.world().map(|it| format!("{}\n", it.host)).collect()
    }
}

fn fits(
    ranks: usize,
    max: usize,
    replicas: usize,
    clusters: usize,
    slots: usize,
) -> Result<(), LayoutError> {
    if ranks == 0 {
        return Err(LayoutError::NoRanks);
    }
    if max < ranks {
        return Err(LayoutError::TooManyRanks { ranks, replicas, clusters, slots, max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters() -> Vec<Vec<String>> {
        let named = |hosts: [&str; 3]| hosts.map(str::to_owned).to_vec();
        vec![named(["b", "a", "c"]), named(["e", "d", "f"])]
    }

    #[test]
    fn three_launchers_are_told_the_same() {
        let layout = Layout::over(clusters(), 3, 2).unwrap();
        assert_eq!(
            layout.rankfile(),
            "rank 0=b slot=0\nrank 1=a slot=0\nrank 2=c slot=0\n\
             rank 3=e slot=0\nrank 4=d slot=0\nrank 5=f slot=0\n\
             rank 6=b slot=1\nrank 7=a slot=1\nrank 8=c slot=1\n"
        );
        assert_eq!(layout.slurm(), "b\na\nc\ne\nd\nf\nb\na\nc\n");
        // Hydra walks through the list again and again.
        let list = layout.host_list();
        assert_eq!(list, "b:1\na:1\nc:1\ne:1\nd:1\nf:1\n");
        let hosts: Vec<&str> = list.lines().map(|it| it.trim_end_matches(":1")).collect();
        for (process, seat) in layout.world().enumerate() {
            assert_eq!(seat.host, hosts[process % hosts.len()]);
        }
        // A cluster that no process needs is not in the list.
        assert_eq!(Layout::over(clusters(), 1, 2).unwrap().host_list(), "b:1\na:1\nc:1\n");
    }

    #[test]
    fn one_host_takes_all_replicas() {
        let layout = Layout::on_one("here", 2, 3, Some(6), 2).unwrap();
        assert_eq!(layout.host_list(), "here:6\n");
        assert!(layout.rankfile().ends_with("rank 5=here slot=5\n"));
        assert_eq!(layout.seat(1, 2), Seat { host: "here", slot: 5 });
        let shared = Layout::on_one("here", 2, 3, None, 4).unwrap();
        assert_eq!([0, 1, 2].map(|set| shared.seat(1, set).slot), [3, 0, 1]);
        let many = Layout::on_one("here", 3, 3, Some(8), 2).unwrap_err();
        assert!(matches!(many, LayoutError::TooManyRanks { max: 2, .. }), "{many}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Layout::over(clusters(), 0, 1), Err(LayoutError::NoRanks));
        let many = Layout::over(clusters(), 5, 2).unwrap_err();
        assert_eq!(
            many.to_string(),
            "there is room for 4 processes in 3 replicas, not for 5: 2 on each host of a cluster, \
             clusters: 2"
        );
        assert!(Layout::over(Vec::new(), 1, 1).is_err());
    }
}
