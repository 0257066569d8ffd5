//! Hosts on which replicas erred: a program that starts again after two errors in one cluster does
//! so without them, where its launcher was given others (seed 003, §2.3).
//!
//! Which hosts a launcher uses stands in its arguments, as a list or in a file.  Hosts are taken
//! out of both; where they stand nowhere, or no other is left, the program starts where it did.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;

use selvedge_stmr::job::Rank;
use selvedge_stmr::verdict::SetId;
use tempfile::NamedTempFile;

use super::hosts::HostId;
use super::launcher::{Family, OVERSUBSCRIBES};
use super::{Attempt, MpirunOptions};

/// What a host is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    name: String,
    addresses: Vec<IpAddr>,
    is_launchers: bool,
}

impl Name {
    pub(super) fn new(name: &str, addresses: Vec<IpAddr>) -> Self {
        Self { name: name.to_owned(), addresses, is_launchers: false }
    }

    /// The host that the launcher runs on.
    fn here() -> Self {
        let name = super::reach::host_name();
        Self { name, addresses: super::reach::addresses(), is_launchers: true }
    }

    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Whether a launcher's word for a host means this one.
    fn is(&self, word: &str) -> bool {
        let short = |it: &str| it.split('.').next().unwrap_or_default().to_owned();
        match word.parse::<IpAddr>() {
            Ok(it) => self.addresses.contains(&it) || (self.is_launchers && it.is_loopback()),
            Err(_) => {
                short(word) == short(&self.name) || (self.is_launchers && word == "localhost")
            }
        }
    }
}

/// What a start of the program has shown.
#[derive(Default)]
pub(super) struct Known {
    /// What hosts are called, those that are lost as well.
    pub(super) names: BTreeMap<HostId, Name>,
    /// Who went before the program did.
    pub(super) lost: Vec<(Rank, SetId)>,
}

/// Options that a list of hosts, or the name of a file of them, follows.
fn words(family: Family) -> [&'static [&'static str]; 2] {
    match family {
        Family::OpenMpi => [
            &["-H", "-host", "--host"],
            &["-hostfile", "--hostfile", "-machinefile", "--machinefile"],
        ],
        Family::Mpich => [
            &["-hosts", "--hosts", "-host", "--host"],
            &["-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile"],
        ],
        Family::Slurm => [&["-w", "--nodelist"], &[]],
        Family::Nobody => [&[], &[]],
    }
}

/// Arguments of a launcher that leave out some hosts.
pub(super) struct Elsewhere {
    args: Vec<OsString>,
    /// Files of hosts, which go when the program has ended.
    _files: Vec<NamedTempFile>,
}

/// Why a program starts again where it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Why {
    #[error("the launcher's arguments name no hosts")]
    NotNamed,
    #[error("there are no others")]
    NoOthers,
    #[error("{0}")]
    Unreadable(String),
}

/// A host list or the name of a host file among a launcher's arguments.
struct Named<'a> {
    idx: usize,
    /// What stands before it in the same argument: `--host=`.
    before: &'a str,
    value: &'a str,
    is_file: bool,
}

/// All lists of hosts and files of them in these arguments.
fn named(args: &[OsString], family: Family) -> Vec<Named<'_>> {
    let [lists, files] = words(family);
    let is_file = |option: &str| {
        let is_list = lists.contains(&option);
        (is_list || files.contains(&option)).then_some(!is_list)
    };
    let mut found = Vec::new();
    for (idx, arg) in args.iter().enumerate() {
        let Some(arg) = arg.to_str() else { continue };
        let option = idx.checked_sub(1).and_then(|it| args[it].to_str()).unwrap_or_default();
        if let Some(is_file) = is_file(option) {
            found.push(Named { idx, before: "", value: arg, is_file });
        } else if let Some((option, value)) = arg.split_once('=')
            && let Some(is_file) = is_file(option)
        {
            found.push(Named { idx, before: &arg[..=option.len()], value, is_file });
        }
    }
    found
}

/// Whether these arguments say how many processes a host takes.
pub(super) fn name_slots(args: &[OsString], family: Family) -> bool {
    named(args, family).iter().any(|it| match it.is_file {
        true => fs::read_to_string(it.value).is_ok_and(|it| it.contains("slots")),
        false => it.value.split(',').any(|it| it.contains(':')),
    })
}

/// How many processes these arguments of Open MPI's leave room for; nothing where a host's number
/// is not named, or a list and a file are both given, which leave what both have.
pub(super) fn slots(args: &[OsString]) -> Option<usize> {
    let named = named(args, Family::OpenMpi);
    let [Named { value, is_file, .. }] = &named[..] else { return None };
    if !is_file {
        return value.split(',').map(|it| it.rsplit_once(':')?.1.parse::<usize>().ok()).sum();
    }
    let text = fs::read_to_string(value).ok()?;
    let lines = text.lines().map(|it| it.split('#').next().unwrap_or_default());
    let of = |line: &str| {
        let slots = line.split_whitespace().find_map(|it| it.strip_prefix("slots="))?;
        slots.parse::<usize>().ok()
    };
    lines.filter(|it| !it.trim().is_empty()).map(of).sum()
}

impl Elsewhere {
    /// These arguments without those hosts.
    fn of(args: &[OsString], family: Family, erred: &BTreeSet<Name>) -> Result<Self, Why> {
        let mut this = Self { args: args.to_vec(), _files: Vec::new() };
        let named = named(args, family);
        for Named { idx, before, value, is_file } in &named {
            let left = if *is_file {
                let file = this.file_without(value, erred)?;
                file.to_string_lossy().into_owned()
            } else {
                list_without(value, erred).ok_or(Why::NoOthers)?
            };
            this.args[*idx] = format!("{before}{left}").into();
        }
        if family == Family::Slurm {
            let names: Vec<&str> = erred.iter().map(|it| &*it.name).collect();
            this.args.push(format!("--exclude={}", names.join(",")).into());
        } else if named.is_empty() {
            return Err(Why::NotNamed);
        }
        let is_said = args.iter().any(|it| OVERSUBSCRIBES.iter().any(|word| it == word));
        if family == Family::OpenMpi && !is_said {
            // As many as before are to find room on fewer hosts.
            this.args.push("--oversubscribe".into());
        }
        Ok(this)
    }

    /// A file of hosts like this one without those.
    fn file_without(&mut self, path: &str, erred: &BTreeSet<Name>) -> Result<PathBuf, Why> {
        let failed = |e: io::Error| Why::Unreadable(format!("the hosts in {path}: {e}"));
        let text = fs::read_to_string(path).map_err(failed)?;
        let left = text_without(&text, erred).ok_or(Why::NoOthers)?;
        let file = written(&left).map_err(failed)?;
        let path = file.path().to_owned();
        self._files.push(file);
        Ok(path)
    }
}

/// What is left of `a:4,b:4`, if something is.
fn list_without(list: &str, erred: &BTreeSet<Name>) -> Option<String> {
    let left: Vec<&str> = list.split(',').filter(|it| !is_of(it, erred)).collect();
    (!left.is_empty()).then(|| left.join(","))
}

/// What is left of a file with a host in each line, if one is.
fn text_without(text: &str, erred: &BTreeSet<Name>) -> Option<String> {
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let is_host = |line: &str| !first(line).is_empty() && !first(line).starts_with('#');
    let left: Vec<&str> = text.lines().filter(|it| !is_of(&first(it), erred)).collect();
    left.iter().any(|it| is_host(it)).then(|| left.join("\n") + "\n")
}

/// Whether an entry, with or without a number of processes behind a colon, is one of these hosts.
fn is_of(entry: &str, erred: &BTreeSet<Name>) -> bool {
    let name = entry.split(':').next().unwrap_or_default();
    erred.iter().any(|it| it.is(name) || it.is(entry))
}

fn written(text: &str) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::with_prefix("selvedge-hosts-")?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Where a program starts, and which hosts it is kept from.
#[derive(Default)]
pub(super) struct Avoided {
    erred: BTreeSet<Name>,
    elsewhere: Option<Elsewhere>,
}

impl Avoided {
    /// The options for the next start.
    pub(super) fn options(&self, options: &MpirunOptions, in_full: bool) -> MpirunOptions {
        let mut options = options.clone();
        if in_full && !options.compares_full {
            // Where contents differ is found in each before it leaves.
            (options.compares_full, options.window) = (true, 1);
        }
        if let Some(it) = &self.elsewhere {
            options.launcher_args.clone_from(&it.args);
        }
        options
    }

    /// A start has come to two errors in one cluster; returns what is to be told of it.
    pub(super) fn learn(
        &mut self,
        attempt: &Attempt<'_>,
        family: Family,
        args: &[OsString],
    ) -> Option<String> {
        let (all, erred) = attempt.hosts_of_errors();
        let before = self.erred.len();
        self.erred.extend(erred);
        if self.erred.len() == before || all < 2 {
            return None;
        }
        let names: Vec<&str> = self.erred.iter().map(|it| &*it.name).collect();
        let names = names.join(", ");
        let elsewhere = Elsewhere::of(args, family, &self.erred);
        let told = match &elsewhere {
            Ok(_) => format!("replicas erred on {names}: the program starts without"),
            Err(why) => format!("replicas erred on {names}, which are not avoided: {why}"),
        };
        self.elsewhere = elsewhere.ok();
        Some(told)
    }

    /// The launcher did not start the program where it was to; returns whether it was told to avoid
    /// something, which it is no more.
    pub(super) fn give_up(&mut self) -> bool {
        self.elsewhere.take().is_some()
    }
}

impl Attempt<'_> {
    /// The host that a replica runs on.
    pub(super) fn host_of(&self, rank: Rank, set: SetId) -> Name {
        match self.processes[rank.0 as usize][set.idx()].host {
            None => Name::here(),
            Some(id) => self.known.names.get(&id).cloned().unwrap_or_default(),
        }
    }

    /// How many hosts the program has, and those on which replicas differed or went.
    fn hosts_of_errors(&self) -> (usize, BTreeSet<Name>) {
        let all: BTreeSet<Option<HostId>> =
            self.processes.iter().flatten().map(|it| it.host).collect();
        let marked = self.marked.iter().map(|it| (Rank(it.rank), SetId::new(it.set.into())));
        let lost = self.known.lost.iter().copied();
        let of = |(rank, set): (Rank, SetId)| self.host_of(rank, set);
        let erred = marked.chain(lost).map(of).filter(|it| !it.name.is_empty()).collect();
        (all.len(), erred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn erred(names: &[&str]) -> BTreeSet<Name> {
        names.iter().map(|it| Name::new(it, vec!["10.0.0.7".parse().unwrap()])).collect()
    }

    fn args(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn slots_are_known_where_each_host_s_are_named() {
        let file = NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let check = |text: &str, wanted| assert_eq!(slots(&args(text)), wanted, "{text}");
        check("--host a:4,b:2", Some(6));
        check("--mca btl tcp -host=a:1", Some(1));
        check("--host a:4,b", None);
        check("--oversubscribe", None);
        fs::write(path, "a slots=4 # b slots=1\n\n# c slots=9\nb max_slots=8 slots=3\n").unwrap();
        check(&format!("--hostfile {path}"), Some(7));
        check(&format!("--hostfile {path} --host a:2"), None);
        fs::write(path, "a slots=4\nb\n").unwrap();
        check(&format!("--hostfile {path}"), None);
    }

    /// What becomes of a launcher's arguments; files are shown as what they hold.
    fn check(family: Family, given: &str, names: &[&str]) -> String {
        match Elsewhere::of(&args(given), family, &erred(names)) {
            Err(why) => format!("{why:?}"),
            Ok(it) => {
                let shown = it.args.iter().map(|arg| match it._files.first() {
                    Some(file) if file.path() == arg => fs::read_to_string(file.path()).unwrap(),
                    _ => arg.to_string_lossy().into_owned(),
                });
                shown.collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn hosts_are_taken_out_of_what_a_launcher_is_told() {
        let more = check(Family::OpenMpi, "--host a:4,b:4", &["b"]);
        assert_eq!(more, "--host a:4 --oversubscribe");
        let never = check(Family::OpenMpi, "--nooversubscribe --host a:4,b:4", &["b"]);
        assert_eq!(never, "--nooversubscribe --host a:4");
        let open = |given, names: &[&str]| {
            check(Family::OpenMpi, given, names).replace(" --oversubscribe", "")
        };
        let wanted = "--map-by node --host a:4,c:4 -x HOME";
        assert_eq!(open("--map-by node --host a:4,b:4,c:4 -x HOME", &["b"]), wanted);
        assert_eq!(open("-H a.rack1,b.rack1:2", &["a.cluster"]), "-H b.rack1:2");
        assert_eq!(open("-H 10.0.0.7,10.0.0.8", &["a"]), "-H 10.0.0.8");
        assert_eq!(open("--host a,b", &["a", "b"]), "NoOthers");
        assert_eq!(open("--map-by node", &["a"]), "NotNamed");
        assert_eq!(check(Family::Mpich, "-hosts a,b:2,c", &["a", "c"]), "-hosts b:2");
        assert_eq!(check(Family::Slurm, "-N 3", &["a", "b"]), "-N 3 --exclude=a,b");
        assert_eq!(check(Family::Nobody, "x", &["a"]), "NotNamed");
        let file = written("# all\na slots=4\nb slots=4\n\nc slots=4\n").unwrap();
        let given = format!("--hostfile {}", file.path().display());
        assert_eq!(open(&given, &["b"]), "--hostfile # all\na slots=4\n\nc slots=4\n");
        assert_eq!(open(&given, &["a", "b", "c"]), "NoOthers");
        let given = format!("-f {}", file.path().display());
        assert_eq!(check(Family::Mpich, &given, &["a", "b"]), "-f # all\n\nc slots=4\n");
        let missing = check(Family::Mpich, "-f /nowhere/hosts", &["a"]);
        assert!(missing.starts_with("Unreadable(\"the hosts in /nowhere/hosts: "), "{missing}");
        assert_eq!(check(Family::Mpich, "-hosts=a,b,c", &["b"]), "-hosts=a,c");
        assert_eq!(open("--host=a,b -x HOME=a", &["a", "b"]), "NoOthers");
    }

    #[test]
    fn hosts_with_numbers_of_processes_say_how_many_they_take() {
        let says = |given: &str, family| {
            let args: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            name_slots(&args, family)
        };
        assert!(says("--host a,b:4", Family::OpenMpi) && says("-host=a:1", Family::OpenMpi));
        assert!(!says("--host a,b", Family::OpenMpi) && !says("-x A=a:1", Family::OpenMpi));
        for (text, wanted) in [("a slots=4\n", true), ("a\nb\n", false)] {
            let file = written(text).unwrap();
            let given = format!("--hostfile {}", file.path().display());
            assert_eq!(says(&given, Family::OpenMpi), wanted, "{text}");
        }
    }

    #[test]
    fn the_launchers_own_host_has_more_names() {
        let here = Name::here();
        assert!(here.is("localhost") && here.is("127.0.0.1") && here.is(&here.name));
        assert!(!Name::new("a", Vec::new()).is("localhost"));
    }
}
