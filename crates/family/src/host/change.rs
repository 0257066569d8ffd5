//! A question about a server, and changes to it: a link, a level, a variable, a fault, a version.
//!
//! A change is written as it is typed: `NCCL_P2P_LEVEL=PHB`, `GPU0.link_width=8`,
//! `GPU0-GPU1.nvlink=0`, `NET3=gone`, `broken=0-1`, `shm=pairs`, `nodes=2`, `nccl=2.27.7`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::host::attribute::{Misfit, Wanted, wanted};
use crate::host::nccl::number::int;
use crate::host::nccl::profile::{Profile, UnknownProfile};
use crate::host::nccl::settings::{GRAPH_FILE, SettingError, Settings, TOPO_FILE};
use crate::host::nccl::view::{Ask, RefusedView, View};
use crate::host::nccl::xml::Element;
use crate::host::place::{PlaceError, PlaceName, TreePath, at, at_mut, find_element};

/// A server and the conditions under which it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The topology file's outermost element.
    pub root: Element,
    /// Whose rules.
    pub profile: Profile,
    /// Equal servers in the job.
    pub nodes: u32,
    /// The rank that looks.
    pub rank: i32,
    /// Environment variables, the last of one name counts.
    pub env: Vec<(String, String)>,
    /// Topology and graph files that variables name, by name.
    pub files: BTreeMap<String, Element>,
    /// Pairs of GPUs, by NVML's number, whose P2P the driver reports broken.
    pub broken: BTreeSet<(i32, i32)>,
    /// Whether ranks (0,1), (2,3)… are in containers with a /dev/shm of their own.
    pub shm_pairs: bool,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// A variable has no meaning.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// NCCL would not go on.
    #[error(transparent)]
    Refused(#[from] RefusedView),
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A variable is set.
    Set {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A variable is not set.
    Unset {
        /// Its name.
        name: String,
    },
    /// An attribute of a part, or of the PCI device that it is on.
    Attribute {
        /// The part.
        place: PlaceName,
        /// Which.
        attr: String,
        /// Its value.
        value: String,
    },
    /// So many NVLinks between a GPU and another or the switches, in both directions.
    NvLink {
        /// The GPU.
        gpu: PlaceName,
        /// The other end.
        peer: PlaceName,
        /// How many; with 0 the link is gone.
        count: u32,
    },
    /// A part is not there.
    Gone(PlaceName),
    /// The driver reports P2P broken, or sound, between two GPUs by NVML's number.
    Broken {
        /// The GPUs.
        pair: (i32, i32),
        /// Whether it is.
        is_broken: bool,
    },
    /// Whether pairs of ranks have a /dev/shm of their own.
    Shm {
        /// Whether they do.
        pairs: bool,
    },
    /// Equal servers.
    Nodes(u32),
    /// The rank that looks.
    Rank(i32),
    /// The version.
    Nccl(Profile),
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// It is not written as one.
    #[error(
        "{text:?} is no change; write NCCL_NAME=VALUE, GPU0.link_width=8, GPU0-GPU1.nvlink=0, \
         NET3=gone, broken=0-1, repaired=0-1, shm=pairs, shm=shared, nodes=2, rank=1 or nccl=2.27.7"
    )]
    NoChange {
        /// The text.
        text: String,
    },
    /// A number was expected.
    #[error("{text:?}: {value:?} is no {wanted}")]
    NoNumber {
        /// The whole change.
        text: String,
        /// The value.
        value: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// The file it names.
    #[error(transparent)]
    File(#[from] SettingError),
    /// The part it is about.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The version it asks for.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// The part has no such attribute and the PCI device it is on neither.
    #[error("{place} has no {attr}; it has {present}")]
    NoAttribute {
        /// The part.
        place: PlaceName,
        /// The attribute.
        attr: String,
        /// Those that it has.
        present: String,
    },
    /// The driver's number of a GPU that is not there.
    #[error("no GPU has the number {number} (dev) here; there are {present}")]
    NoDevice {
        /// The number.
        number: i32,
        /// Those of the GPUs that are there.
        present: String,
    },
    /// Of what lies between two parts NVLinks alone stand in the file.
    #[error(
        "{text:?}: between two parts NVLinks can be changed (GPU0-GPU1.nvlink=2); how wide other ways \
         are stands in the parts (GPU0.link_width=8) and, between CPUs, in NCCL's own table"
    )]
    NoLink {
        /// The change.
        text: String,
    },
    /// NVLinks connect GPUs with GPUs or with switches.
    #[error("{place} has no NVLink; only GPUs have, to GPUs and to NVS")]
    NoNvLink {
        /// The part.
        place: PlaceName,
    },
    /// There are no NVSwitches whose links could be counted.
    #[error("{gpu} has no link to an NVSwitch; there are none in this file")]
    NoSwitches {
        /// The GPU.
        gpu: PlaceName,
    },
}

impl Question {
    /// A question without variables and faults: two servers, seen by the first GPU in the file.
    pub fn new(root: Element, profile: Profile) -> Question {
        let (env, broken) = (Vec::new(), BTreeSet::new());
        let files = BTreeMap::new();
        Question { root, profile, nodes: 2, rank: 0, env, files, broken, shm_pairs: false }
    }

    /// What NCCL decides.
    ///
    /// # Errors
    /// Where it would refuse, or a variable has no meaning.
    pub fn view(&self) -> Result<View, NoAnswer> {
        Ok(View::of(&self.root, self.ask()?)?)
    }

    /// The same before anything is trimmed.
    ///
    /// # Errors
    /// As [`Question::view`].
    pub fn whole(&self) -> Result<View, NoAnswer> {
        Ok(View::whole(&self.root, self.ask()?)?)
    }

    /// The variables that are set and that its version does not read, and levels that the version
    /// has no word for.
    ///
    /// # Errors
    /// If a variable has no meaning.
    pub fn unread(&self) -> Result<Vec<String>, SettingError> {
        Ok(self.ask()?.settings.unread)
    }

    /// The conditions alone.
    ///
    /// # Errors
    /// If a variable has no meaning.
    pub fn ask(&self) -> Result<Ask, SettingError> {
        let pairs = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let (files, pairs): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| *name == GRAPH_FILE);
        let mut settings = Settings::read(self.profile, pairs)?;
        if let Some((name, file)) = files.last() {
            let file = self.files.get(*file).cloned().ok_or_else(|| SettingError::Unopened {
                name: (*name).to_owned(),
                file: (*file).to_owned(),
            })?;
            settings.graph_file = Some(file);
        }
        let (profile, nodes, rank) = (self.profile, self.nodes, self.rank);
        let (broken, shm_pairs) = (self.broken.clone(), self.shm_pairs);
        Ok(Ask { profile, nodes, rank, settings, broken, shm_pairs })
    }

    /// The question with a change made.
    ///
    /// # Errors
    /// If the change is about something that is not there.
    pub fn with(&self, change: &Change) -> Result<Question, ChangeError> {
        let mut it = self.clone();
        match change {
            // The topology file is the server itself.
            Change::Set { name, value } if name == TOPO_FILE => {
                let unopened =
                    || SettingError::Unopened { name: name.clone(), file: value.clone() };
                it.root = it.files.get(value).cloned().ok_or_else(unopened)?;
            }
            Change::Set { name, value } => {
                it.env.retain(|(other, _)| other != name);
                it.env.push((name.clone(), value.clone()));
            }
            Change::Unset { name } => it.env.retain(|(other, _)| other != name),
            Change::Attribute { place, attr, value } => {
                set_attribute(&mut it.root, place, attr, value)?;
            }
            Change::NvLink { gpu, peer, count } => set_nvlink(&mut it.root, gpu, peer, *count)?,
            Change::Gone(place) => remove(&mut it.root, place)?,
            Change::Broken { pair, is_broken: true } => {
                let devices = gpu_numbers(&it.root);
                let is_gone = |it: &i32| !devices.contains(it);
                if let Some(number) = [pair.0, pair.1].into_iter().find(is_gone) {
                    let present: Vec<String> = devices.iter().map(i32::to_string).collect();
                    return Err(ChangeError::NoDevice { number, present: present.join(", ") });
                }
                it.broken.insert(*pair);
            }
            Change::Broken { pair, is_broken: false } => {
                it.broken.remove(pair);
            }
            Change::Shm { pairs } => it.shm_pairs = *pairs,
            Change::Nodes(nodes) => it.nodes = *nodes,
            Change::Rank(rank) => it.rank = *rank,
            Change::Nccl(profile) => it.profile = *profile,
        }
        Ok(it)
    }

    /// The question with several changes made, in order.
    ///
    /// # Errors
    /// As [`Question::with`].
    pub fn with_all(&self, changes: &[Change]) -> Result<Question, ChangeError> {
        changes.iter().try_fold(self.clone(), |question, change| question.with(change))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Set { name, value } => write!(f, "{name}={value}"),
            Change::Unset { name } => write!(f, "{name}="),
            Change::Attribute { place, attr, value } => write!(f, "{place}.{attr}={value}"),
            Change::NvLink { gpu, peer, count } => write!(f, "{gpu}-{peer}.nvlink={count}"),
            Change::Gone(place) => write!(f, "{place}=gone"),
            Change::Broken { pair: (a, b), is_broken } => {
                write!(f, "{}={a}-{b}", if *is_broken { "broken" } else { "repaired" })
            }
            Change::Shm { pairs } => write!(f, "shm={}", if *pairs { "pairs" } else { "shared" }),
            Change::Nodes(nodes) => write!(f, "nodes={nodes}"),
            Change::Rank(rank) => write!(f, "rank={rank}"),
            Change::Nccl(profile) => write!(f, "nccl={profile}"),
        }
    }
}

impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        let no_change = || ChangeError::NoChange { text: text.to_owned() };
        let (left, value) = text.split_once('=').ok_or_else(no_change)?;
        let no_number = |wanted| ChangeError::NoNumber {
            text: text.to_owned(),
            value: value.to_owned(),
            wanted,
        };
        if left.starts_with("NCCL_") {
            let name = left.to_owned();
            let set = |value: &str| Change::Set { name: name.clone(), value: value.to_owned() };
            return Ok(if value.is_empty() { Change::Unset { name } } else { set(value) });
        }
        match left {
            "broken" | "repaired" => {
                let pair =
                    parse_pair(value).ok_or_else(|| no_number("pair of GPUs, such as 0-1"))?;
                return Ok(Change::Broken { pair, is_broken: left == "broken" });
            }
            "shm" if value == "pairs" => return Ok(Change::Shm { pairs: true }),
            "shm" if value == "shared" => return Ok(Change::Shm { pairs: false }),
            "nodes" => {
                let nodes = value.parse().ok().filter(|it| *it > 0);
                return nodes.map(Change::Nodes).ok_or_else(|| no_number("count of servers"));
            }
            "rank" => {
                return value.parse().map(Change::Rank).map_err(|_| no_number("rank"));
            }
            "nccl" => return Ok(Change::Nccl(value.parse()?)),
            _ => {}
        }
        if value == "gone" {
            return Ok(Change::Gone(left.parse()?));
        }
        // A bus id holds a dot, an attribute's name holds none.
        let (place, attr) = left.rsplit_once('.').ok_or_else(no_change)?;
        if attr == "nvlink" {
            let (gpu, peer) = place.split_once('-').ok_or_else(no_change)?;
            let count = value.parse().map_err(|_| no_number("count of links"))?;
            return Ok(Change::NvLink { gpu: gpu.parse()?, peer: peer.parse()?, count });
        }
        if let Some((a, b)) = place.split_once('-')
            && [a, b].into_iter().all(is_part)
        {
            return Err(ChangeError::NoLink { text: text.to_owned() });
        }
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if attr.is_empty() || !attr.chars().all(is_name) || value.contains(['"', '<']) {
            return Err(no_change());
        }
        let (place, attr, value) = (place.parse()?, attr.to_owned(), value.to_owned());
        Ok(Change::Attribute { place, attr, value })
    }
}

/// Whether a text is a part's kind with its number, such as `CPU1`.
fn is_part(text: &str) -> bool {
    let number = ["GPU", "CPU", "NET", "NVS"].into_iter().find_map(|it| text.strip_prefix(it));
    number.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
}

/// The driver's numbers of all GPUs in a file.
pub fn gpu_numbers(root: &Element) -> BTreeSet<i32> {
    let gpus = crate::host::place::walk(root).into_iter().map(|it| it.1);
    gpus.filter(|it| it.name == "gpu").filter_map(|it| it.attr("dev").map(int)).collect()
}

/// `0-1` as a pair with the smaller number first.
pub fn parse_pair(text: &str) -> Option<(i32, i32)> {
    let (a, b) = text.split_once('-')?;
    let (a, b): (u16, u16) = (a.parse().ok()?, b.parse().ok()?);
    (a != b).then(|| (i32::from(a.min(b)), i32::from(a.max(b))))
}

/// Attributes that an element may be given where the file leaves them out.
fn optional(element: &str) -> &'static [&'static str] {
    match element {
        "gpu" => &["gdr"],
        "net" => {
            &["gdr", "speed", "port", "latency", "guid", "maxconn", "coll", "rail", "plane", "name"]
        }
        "pci" => &["link_speed", "link_width", "vendor", "device"],
        "cpu" => &["host_hash", "affinity"],
        _ => &[],
    }
}

fn set_attribute(
    root: &mut Element,
    place: &PlaceName,
    attr: &str,
    value: &str,
) -> Result<(), ChangeError> {
    let mut path = find_element(root, place)?;
    let mut present = Vec::new();
    // The part itself, then outwards to the PCI device that it is on.
    loop {
        let element = at_mut(root, &path);
        // More than any server has is nonsense that NCCL reckons with, and may be asked about.
        let is_wrong = |it: &Wanted| !matches!(it.misfit(value), None | Some(Misfit::TooLarge));
        let misfit = wanted(&element.name, attr).filter(is_wrong);
        let known = element.attrs.iter_mut().find(|(name, _)| name == attr);
        let is_its = known.is_some() || optional(&element.name).contains(&attr);
        if let Some(wanted) = misfit.filter(|_| is_its) {
            let text = format!("{place}.{attr}={value}");
            return Err(ChangeError::NoNumber {
                text,
                value: value.to_owned(),
                wanted: wanted.words(),
            });
        }
        if let Some((_, old)) = known {
            value.clone_into(old);
            return Ok(());
        }
        if is_its {
            element.attrs.push((attr.to_owned(), value.to_owned()));
            return Ok(());
        }
        present.extend(element.attrs.iter().map(|(name, _)| name.clone()));
        if matches!(element.name.as_str(), "pci" | "cpu") || path.pop().is_none() {
            let (place, attr) = (place.clone(), attr.to_owned());
            return Err(ChangeError::NoAttribute { place, attr, present: present.join(", ") });
        }
    }
}

fn set_nvlink(
    root: &mut Element,
    gpu: &PlaceName,
    peer: &PlaceName,
    count: u32,
) -> Result<(), ChangeError> {
    if *peer == PlaceName::Nvs {
        return set_switch_links(root, gpu, count);
    }
    let ends = [gpu_element(root, gpu)?, gpu_element(root, peer)?];
    for (near, far) in [(0, 1), (1, 0)] {
        let far = &ends[far];
        let device = at(root, &far[..far.len() - 1]);
        let bus = device.attr("busid").unwrap_or_default().to_owned();
        let class = device.attr("class").unwrap_or("0x030200").to_owned();
        let element = at_mut(root, &ends[near]);
        element.children.retain(|it| !(it.name == "nvlink" && it.attr("target") == Some(&bus)));
        if count > 0 {
            element.children.push(nvlink(&bus, count, &class));
        }
    }
    Ok(())
}

/// The first of the GPU's links to switches carries the count, the others go.
fn set_switch_links(root: &mut Element, gpu: &PlaceName, count: u32) -> Result<(), ChangeError> {
    let path = gpu_element(root, gpu)?;
    let is_switch = |it: &Element| {
        it.name == "nvlink" && it.attr("tclass").is_some_and(|it| it.starts_with("0x068000"))
    };
    let switch = crate::host::place::walk(root)
        .into_iter()
        .find(|(_, it)| is_switch(it))
        .and_then(|(_, it)| it.attr("target").map(str::to_owned));
    let target = switch.ok_or_else(|| ChangeError::NoSwitches { gpu: gpu.clone() })?;
    let element = at_mut(root, &path);
    element.children.retain(|it| !is_switch(it));
    if count > 0 {
        element.children.push(nvlink(&target, count, "0x068000"));
    }
    Ok(())
}

fn nvlink(target: &str, count: u32, class: &str) -> Element {
    Element::new("nvlink").with("target", target).with("count", count).with("tclass", class)
}

fn gpu_element(root: &Element, place: &PlaceName) -> Result<TreePath, ChangeError> {
    let path = find_element(root, place)?;
    if at(root, &path).name == "gpu" && !path.is_empty() {
        return Ok(path);
    }
    Err(ChangeError::NoNvLink { place: place.clone() })
}

/// Takes a part out with the PCI device that nothing else is on.
fn remove(root: &mut Element, place: &PlaceName) -> Result<(), ChangeError> {
    let mut path = find_element(root, place)?;
    // Outwards as long as the part is all that its parent holds.
    while path.len() > 1 {
        let parent = at(root, &path[..path.len() - 1]);
        let is_shell = matches!(parent.name.as_str(), "nic" | "pci") && parent.children.len() == 1;
        let is_switch = parent.name == "pci" && at(root, &path).name == "pci";
        if !is_shell || is_switch {
            break;
        }
        path.pop();
    }
    if let Some(child) = path.pop() {
        at_mut(root, &path).children.remove(child);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Change, ChangeError, Question};
    use crate::host::nccl::profile::Profile;
    use crate::host::nccl::xml::{Strictness, read, write};

    const SERVER: &str = "<system version=\"1\">
  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">
    <pci busid=\"0000:03:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
      <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>
    </pci>
    <pci busid=\"0000:04:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">
      <gpu dev=\"1\" sm=\"80\" rank=\"1\"/>
    </pci>
    <pci busid=\"0000:05:00.0\" class=\"0x020000\" link_speed=\"16 GT/s\" link_width=\"16\">
      <nic>
        <net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" gdr=\"1\"/>
      </nic>
    </pci>
  </cpu>
</system>
";

    fn question() -> Question {
        let lenient = Strictness::Lenient { single_quotes: true };
        Question::new(read(SERVER, lenient).expect("well-formed").root, Profile::V2_30_7)
    }

    #[track_caller]
    fn lines(change: &str) -> Vec<String> {
        let changed = question().with(&change.parse().expect(change)).expect(change);
        let (before, after) = (SERVER, write(&changed.root));
        let gone =
            before.lines().filter(|it| !after.contains(it)).map(|it| format!("-{}", it.trim()));
        let new =
            after.lines().filter(|it| !before.contains(it)).map(|it| format!("+{}", it.trim()));
        gone.chain(new).collect()
    }

    #[test]
    fn a_change_reads_as_it_is_written() {
        for text in [
            "NCCL_P2P_LEVEL=PHB",
            "NCCL_P2P_LEVEL=",
            "GPU0.link_width=8",
            "0000:03:00.0.link_speed=32.0 GT/s PCIe",
            "GPU0-GPU1.nvlink=4",
            "GPU0-NVS.nvlink=0",
            "NET3=gone",
            "0000:03:00.0=gone",
            "broken=0-1",
            "repaired=0-1",
            "shm=pairs",
            "shm=shared",
            "nodes=2",
            "rank=1",
            "nccl=2.27.7",
        ] {
            let change: Change = text.parse().expect(text);
            assert_eq!(change.to_string(), text);
        }
        for text in [
            "",
            "x",
            "x=1",
            "GPU0=1",
            "GPU0.=1",
            "GPU0.gdr=\"",
            "broken=0",
            "nodes=0",
            "rank=a",
            "nccl=1.0",
            "GPU0.nvlink=2",
            "GPU0-GPU1.nvlink=-1",
            "?=gone",
        ] {
            text.parse::<Change>().expect_err(text);
        }
    }

    #[test]
    fn attributes_change_where_they_stand() {
        assert_eq!(lines("GPU1.gdr=1").len(), 2);
        assert_eq!(
            lines("mlx5_0.speed=100000")[1],
            "+<net name=\"mlx5_0\" dev=\"0\" speed=\"100000\" gdr=\"1\"/>"
        );
        let width = "link_speed=\"16 GT/s\" link_width=\"8\">";
        assert!(lines("GPU1.link_width=8")[1].ends_with(width));
        assert_eq!(lines("CPU0.modelid=17").len(), 2);
        let error = question().with(&"GPU1.wings=2".parse().expect("a change"));
        assert!(matches!(error, Err(ChangeError::NoAttribute { .. })));
        for (change, why) in [
            ("GPU1.link_width=-4", "\"-4\" is no whole number of 0 or more"),
            ("GPU1.link_width=abc", "\"abc\" is no whole number of 0 or more"),
            ("GPU1.sm=9.0", "\"9.0\" is no whole number of 1 or more"),
        ] {
            let error = question().with(&change.parse().expect("a change"));
            let expected = format!("{change:?}: {why}");
            assert_eq!(error.expect_err("no such number").to_string(), expected);
        }
        let error = question().with(&"GPU7.gdr=1".parse().expect("a change"));
        assert_eq!(
            error.expect_err("absent").to_string(),
            "there is no GPU7 here; there are GPU0, GPU1"
        );
    }

    #[test]
    fn links_are_named_at_both_ends_and_parts_go_with_their_cards() {
        let new: Vec<String> =
            lines("GPU0-GPU1.nvlink=4").into_iter().filter(|it| it.contains("nvlink")).collect();
        assert_eq!(new.len(), 2);
        let gone = lines("NET0=gone");
        assert_eq!(gone.iter().filter(|it| it.starts_with('-')).count(), 4, "{gone:?}");
        let none = question().with(&"GPU0-NVS.nvlink=4".parse().expect("a change"));
        assert!(matches!(none, Err(ChangeError::NoSwitches { .. })));
        let none = question().with(&"GPU0-NET0.nvlink=4".parse().expect("a change"));
        assert!(matches!(none, Err(ChangeError::NoNvLink { .. })));
    }
}
