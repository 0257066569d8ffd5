//! The environment variables that the graph code reads.  Notes §3g.

use crate::host::nccl::number::integer;
use crate::host::nccl::path::PathKind;
use crate::host::nccl::profile::Profile;
use crate::host::nccl::xml::Element;

/// What the variables say, read as NCCL reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `NCCL_P2P_LEVEL`, or LOC by `NCCL_P2P_DISABLE=1`.
    pub p2p_level: Option<PathKind>,
    /// `NCCL_SHM_DISABLE=1`.
    pub shm_disabled: bool,
    /// `NCCL_IGNORE_DISABLED_P2P`.
    pub ignore_disabled_p2p: i64,
    /// `NCCL_NET_GDR_LEVEL`.
    pub gdr_level: Option<PathKind>,
    /// `NCCL_NET_GDR_READ`.
    pub gdr_read: Option<i64>,
    /// `NCCL_NET_GDR_C2C`.
    pub gdr_c2c: bool,
    /// `NCCL_NET_DISABLE_INTRA=1`.
    pub net_disable_intra: bool,
    /// `NCCL_NVB_DISABLE`.
    pub nvb_disabled: bool,
    /// `NCCL_PXN_DISABLE=1`.
    pub pxn_disabled: bool,
    /// `NCCL_PXN_C2C`.
    pub pxn_c2c: bool,
    /// `NCCL_NETDEVS_POLICY`.
    pub netdevs: NetDevs,
    /// `NCCL_P2P_PER_CHANNEL_NET_BW`, in GB/s.
    pub p2p_per_channel_net: i64,
    /// `NCCL_CROSS_NIC`: 0 never, 1 always, 2 where it pays.
    pub cross_nic: i64,
    /// `NCCL_MIN_NCHANNELS` and `NCCL_MAX_NCHANNELS`, or the same under the older `NRINGS`.
    pub channels: (Option<i64>, Option<i64>),
    /// `NCCL_P2P_PXN_LEVEL`: 0 never, 1 where it is needed, 2 wherever it can be.
    pub p2p_pxn_level: i64,
    /// `NCCL_NET_FORCE_FLUSH`.
    pub force_flush: bool,
    /// `NCCL_MIN_P2P_NCHANNELS` and `NCCL_MAX_P2P_NCHANNELS`.
    pub p2p_channels: (Option<i64>, Option<i64>),
    /// `NCCL_COLLNET_ENABLE=1`, by which 2.7 searches no other graphs than without it.
    pub collnet: bool,
    /// `NCCL_NVLS_ENABLE`, off by 0.
    pub nvls: bool,
    /// `NCCL_IGNORE_CPU_AFFINITY`.
    pub ignore_affinity: bool,
    /// `NCCL_TOPO_DUMP_FILE` and `NCCL_GRAPH_DUMP_FILE`, and the rank that writes each.
    pub dumps: [(Option<String>, i64); 2],
    /// The outermost element of the file that `NCCL_GRAPH_FILE` names.
    pub graph_file: Option<Element>,
    /// Variables that were set and that this version does not read, `NAME=VALUE` where it is the
    /// value that it passes over or takes for another.
    pub unread: Vec<String>,
}

/// How many ports a GPU spreads over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetDevs {
    /// Its share.
    Auto,
    /// All near ones.
    All,
    /// So many at most.
    Max(usize),
}

/// A variable that cannot be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It is read, but what it changes is not reproduced here.
    #[error("{name} is not reproduced; leave it out")]
    NotReproduced {
        /// Which.
        name: String,
    },
    /// The file that it names is not at hand.
    #[error("{name} names {file:?}, which nobody has read")]
    Unopened {
        /// Which.
        name: String,
        /// The file.
        file: String,
    },
    /// The graph code of no version reads it.
    #[error("{name} is no variable of NCCL's graph code; see `selvedge topo dump --help`")]
    Unknown {
        /// Which.
        name: String,
    },
}

impl Settings {
    /// Without any variable.
    pub fn defaults(profile: Profile) -> Settings {
        Settings {
            p2p_level: None,
            shm_disabled: false,
            ignore_disabled_p2p: 0,
            gdr_level: None,
            gdr_read: None,
            gdr_c2c: profile.has_c2c(),
            net_disable_intra: false,
            nvb_disabled: false,
            pxn_disabled: false,
            pxn_c2c: profile.keeps_ports(),
            netdevs: NetDevs::Auto,
            p2p_per_channel_net: 14,
            cross_nic: 2,
            channels: (None, None),
            p2p_pxn_level: 2,
            force_flush: false,
            p2p_channels: (None, None),
            collnet: false,
            nvls: true,
            ignore_affinity: false,
            dumps: [(None, 0), (None, 0)],
            graph_file: None,
            unread: Vec::new(),
        }
    }

    /// With `NAME=VALUE` pairs.
    ///
    /// # Errors
    /// Names a variable that no version reads, or that is not reproduced.  One that only this
    /// version does not read, or whose value it passes over, is listed in `unread`.
    pub fn read<'a>(
        profile: Profile,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, SettingError> {
        let mut settings = Settings::defaults(profile);
        let mut p2p_disabled = false;
        let mut rings = (None, None);
        // Blocks of threads, one for each channel; what is not positive is passed over.
        let mut blocks = (0, 0);
        for (name, value) in pairs {
            if !is_read(profile, name)? {
                settings.unread.push(name.to_owned());
                continue;
            }
            if settings.set_words(profile, name, value)? {
                continue;
            }
            let Some(number) = settings.number(profile, name, value) else { continue };
            match name {
                // This one is cut to a C `int`.
                "NCCL_P2P_DISABLE" => p2p_disabled = number as i32 == 1,
                "NCCL_SHM_DISABLE" => settings.shm_disabled = number == 1,
                "NCCL_IGNORE_DISABLED_P2P" => settings.ignore_disabled_p2p = number,
                "NCCL_NET_GDR_READ" => settings.gdr_read = Some(number),
                "NCCL_NET_GDR_C2C" => settings.gdr_c2c = number != 0,
                "NCCL_NET_DISABLE_INTRA" => settings.net_disable_intra = number == 1,
                "NCCL_NVB_DISABLE" => settings.nvb_disabled = number != 0,
                "NCCL_PXN_DISABLE" => settings.pxn_disabled = number == 1,
                "NCCL_PXN_C2C" => settings.pxn_c2c = number != 0,
                "NCCL_P2P_PER_CHANNEL_NET_BW" => settings.p2p_per_channel_net = number.max(1),
                "NCCL_CROSS_NIC" => settings.cross_nic = number,
                "NCCL_P2P_PXN_LEVEL" => settings.p2p_pxn_level = number,
                "NCCL_NET_FORCE_FLUSH" => settings.force_flush = number != 0,
                "NCCL_MIN_P2P_NCHANNELS" => settings.p2p_channels.0 = Some(number),
                "NCCL_MAX_P2P_NCHANNELS" => settings.p2p_channels.1 = Some(number),
                "NCCL_MIN_NRINGS" => rings.0 = Some(number),
                "NCCL_MAX_NRINGS" => rings.1 = Some(number),
                "NCCL_MIN_NCHANNELS" => settings.channels.0 = Some(number),
                "NCCL_MAX_NCHANNELS" => settings.channels.1 = Some(number),
                "NCCL_IGNORE_CPU_AFFINITY" => settings.ignore_affinity = number != 0,
                "NCCL_TOPO_DUMP_FILE_RANK" => settings.dumps[0].1 = number,
                "NCCL_GRAPH_DUMP_FILE_RANK" => settings.dumps[1].1 = number,
                "NCCL_MIN_CTAS" => blocks.0 = number,
                "NCCL_MAX_CTAS" => blocks.1 = number,
                "NCCL_NVLS_ENABLE" => settings.nvls = number != 0,
                _ => return Err(SettingError::NotReproduced { name: name.to_owned() }),
            }
        }
        settings.channels = channels(settings.channels, rings, blocks);
        if p2p_disabled {
            settings.p2p_level = Some(PathKind::Loc);
        }
        Ok(settings)
    }

    /// Takes a variable that is no number; false where it is one.
    fn set_words(
        &mut self,
        profile: Profile,
        name: &str,
        value: &str,
    ) -> Result<bool, SettingError> {
        match name {
            "NCCL_P2P_LEVEL" | "NCCL_NET_GDR_LEVEL" => {
                let level = level(profile, value);
                if level.is_none() && !value.is_empty() {
                    self.unread.push(format!("{name}={value}"));
                }
                match name {
                    "NCCL_P2P_LEVEL" => self.p2p_level = level,
                    _ => self.gdr_level = level,
                }
            }
            "NCCL_NETDEVS_POLICY" => {
                self.netdevs = netdevs(value).unwrap_or_else(|| {
                    self.unread.push(format!("{name}={value}"));
                    NetDevs::Auto
                });
            }
            "NCCL_TOPO_DUMP_FILE" => self.dumps[0].0 = Some(value.to_owned()),
            "NCCL_GRAPH_DUMP_FILE" => self.dumps[1].0 = Some(value.to_owned()),
            "NCCL_COLLNET_ENABLE" => self.collnet = value == "1",
            GRAPH_FILE | TOPO_FILE => {
                let (name, file) = (name.to_owned(), value.to_owned());
                return Err(SettingError::Unopened { name, file });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A variable that is a number, as C's `strtoll` reads it: its first digits, or 0.  None where
    /// it is as if it were not set.
    fn number(&mut self, profile: Profile, name: &str, value: &str) -> Option<i64> {
        if value.is_empty() {
            return None;
        }
        // 2.7 reads decimal numbers alone, but for one, and knows no number that is too large.
        let base = if profile.is_seed() && name != "NCCL_P2P_DISABLE" { 10 } else { 0 };
        let number = integer(value, base);
        let taken = match number {
            Ok(it) => it,
            Err(bound) if profile.is_seed() => bound,
            Err(_) => {
                self.unread.push(format!("{name}={value}"));
                return None;
            }
        };
        if value.parse() != Ok(taken) {
            self.unread.push(format!("{name}={value} (taken for {taken})"));
        }
        Some(taken)
    }
}

type Bounds = (Option<i64>, Option<i64>);

/// The bounds on channels by their name, or else their older one, and by blocks of threads.
fn channels((least, most): Bounds, rings: Bounds, blocks: (i64, i64)) -> Bounds {
    let [least_blocks, most_blocks] = [blocks.0, blocks.1].map(|it| Some(it).filter(|it| 0 < *it));
    let (least, most) = (least.or(rings.0), most.or(rings.1));
    let most = most.map_or(most_blocks, |it| Some(it.min(most_blocks.unwrap_or(it))));
    (least.max(least_blocks), most)
}

/// What a graph file is named by.
pub const GRAPH_FILE: &str = "NCCL_GRAPH_FILE";

/// What a topology file is named by.
pub const TOPO_FILE: &str = "NCCL_TOPO_FILE";

/// Every variable of notes §3g, with the first of our versions that reads it.
pub const VARIABLES: [(&str, Profile); 40] = {
    use Profile::{V2_7_8, V2_18_5, V2_27_7, V2_29_7, V2_30_7};
    [
        ("NCCL_P2P_DISABLE", V2_7_8),
        ("NCCL_P2P_LEVEL", V2_7_8),
        ("NCCL_SHM_DISABLE", V2_7_8),
        ("NCCL_IGNORE_DISABLED_P2P", V2_18_5),
        ("NCCL_NET_GDR_LEVEL", V2_7_8),
        ("NCCL_NET_GDR_READ", V2_7_8),
        ("NCCL_NET_GDR_C2C", V2_27_7),
        ("NCCL_NET_GDR_MLOPART", V2_30_7),
        ("NCCL_NET_FORCE_FLUSH", V2_18_5),
        ("NCCL_NET_DISABLE_INTRA", V2_18_5),
        ("NCCL_NVB_DISABLE", V2_18_5),
        ("NCCL_PXN_DISABLE", V2_18_5),
        ("NCCL_PXN_C2C", V2_27_7),
        ("NCCL_P2P_PXN_LEVEL", V2_18_5),
        ("NCCL_CROSS_NIC", V2_7_8),
        ("NCCL_NETDEVS_POLICY", V2_29_7),
        ("NCCL_NET_MERGE_LEVEL", V2_27_7),
        ("NCCL_NET_FORCE_MERGE", V2_27_7),
        ("NCCL_NET_MERGE_POLICY", V2_30_7),
        ("NCCL_MNNVL_SCATTER_NETS_ENABLE", V2_27_7),
        ("NCCL_MNNVL_RAIL_PER_HOST", V2_27_7),
        ("NCCL_TOPO_SPLIT_MLOPART", V2_30_7),
        ("NCCL_IGNORE_CPU_AFFINITY", V2_7_8),
        ("NCCL_MIN_NCHANNELS", V2_7_8),
        ("NCCL_MAX_NCHANNELS", V2_7_8),
        ("NCCL_MIN_NRINGS", V2_7_8),
        ("NCCL_MAX_NRINGS", V2_7_8),
        ("NCCL_MIN_CTAS", V2_18_5),
        ("NCCL_MAX_CTAS", V2_18_5),
        ("NCCL_MIN_P2P_NCHANNELS", V2_7_8),
        ("NCCL_MAX_P2P_NCHANNELS", V2_7_8),
        ("NCCL_P2P_PER_CHANNEL_NET_BW", V2_29_7),
        (TOPO_FILE, V2_7_8),
        ("NCCL_TOPO_DUMP_FILE", V2_7_8),
        ("NCCL_TOPO_DUMP_FILE_RANK", V2_7_8),
        (GRAPH_FILE, V2_7_8),
        ("NCCL_GRAPH_DUMP_FILE", V2_7_8),
        ("NCCL_GRAPH_DUMP_FILE_RANK", V2_7_8),
        ("NCCL_NVLS_ENABLE", V2_18_5),
        ("NCCL_COLLNET_ENABLE", V2_7_8),
    ]
};

/// Whether this version's graph code reads the variable; an error where none does.
fn is_read(profile: Profile, name: &str) -> Result<bool, SettingError> {
    let since = VARIABLES.iter().find(|(it, _)| *it == name).map(|(_, since)| *since);
    let since = since.ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
    Ok(since <= profile)
}

/// A level by name, or by the number that the first versions took; none for words that this version
/// does not know, which it passes over.
fn level(profile: Profile, value: &str) -> Option<PathKind> {
    use PathKind::{Loc, Phb, Pix, Pxb, Sys};
    if let Some(kind) = PathKind::ALL.into_iter().find(|it| it.name() == value) {
        return Some(kind).filter(|it| *it <= Sys && it.exists_in(profile));
    }
    if !value.starts_with(|it: char| it.is_ascii_digit()) {
        return None;
    }
    let old = integer(value, 0).unwrap_or_else(|bound| bound);
    Some([Loc, Pix, Pxb, Phb, Sys, Sys][old.clamp(0, 5) as usize])
}

fn netdevs(value: &str) -> Option<NetDevs> {
    match value.split_once(':') {
        None if value.eq_ignore_ascii_case("auto") => Some(NetDevs::Auto),
        None if value.eq_ignore_ascii_case("all") => Some(NetDevs::All),
        Some((max, n)) if max.eq_ignore_ascii_case("max") => {
            let n = integer(n, 10).ok().and_then(|it| usize::try_from(it).ok());
            n.filter(|it| *it > 0).map(NetDevs::Max)
        }
        _ => None,
    }
}
