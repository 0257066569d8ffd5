//! Rules that look at the file alone, and what they mend in it.

use std::collections::BTreeMap;

use crate::host::attribute::{Misfit, wanted};
use crate::host::lint::mend::{Edit, set};
use crate::host::lint::{Findings, Severity};
use crate::host::nccl::xml::{Element, Place};
use crate::host::place::{TreePath, at, short, walk};

use Severity::{Error, Note, Warning};

/// Ports beyond which versions to 2.18 run over their own tables.
const NETS: usize = 32;

/// All rules of the file.
pub(super) fn file(root: &Element, findings: &mut Findings) {
    version(root, findings);
    let all = walk(root);
    outside_cpus(root, &all, findings);
    duplicates(&all, findings);
    ranks(&all, findings);
    processors(&all, findings);
    numbers(&all, findings);
    bus_ids(&all, findings);
    nuls(&all, findings);
    entities(&all, findings);
    affinities(&all, findings);
    widths(&all, findings);
    ports(&all, findings);
    nvlinks(root, &all, findings);
    switch_links(&all, findings);
}

type All<'e> = [(TreePath, &'e Element)];

fn version(root: &Element, findings: &mut Findings) {
    if root.name != "system" {
        let what = format!(
            "<{}> is no topology of NCCL, whose outermost element is <system version=\"1\">",
            root.name
        );
        let advice = "`selvedge topo read --hwloc FILE` makes one from what lstopo wrote";
        findings.add((Error, "refused"), Some(root.place), what, advice);
        return;
    }
    if root.attr("version") == Some("1") {
        return;
    }
    let found = root.attr("version").unwrap_or("none");
    let what = format!("the file's version is {found:?}; NCCL takes version 1 alone");
    let advice = "write version=\"1\"; a file of RCCL's with xgmi links wants more than that";
    findings.add((Error, "version"), Some(root.place), what, advice);
    findings.mend(Edit::Set {
        path: Vec::new(),
        attr: "version".to_owned(),
        value: "1".to_owned(),
    });
}

fn outside_cpus(root: &Element, all: &All, findings: &mut Findings) {
    let mut n_gpus = 0;
    for (path, element) in all {
        if element.name != "gpu" {
            continue;
        }
        n_gpus += 1;
        let chain: Vec<&str> =
            (0..path.len()).map(|it| at(root, &path[..it]).name.as_str()).collect();
        if !chain.contains(&"cpu") {
            let what = "a GPU below no <cpu>; NCCL does not see it".to_owned();
            findings.add(
                (Error, "no-cpu"),
                Some(element.place),
                what,
                "put its <pci> below the <cpu> of its NUMA node",
            );
        } else if chain.last() != Some(&"pci") {
            let what = "a GPU that is on no <pci>; NCCL does not see it".to_owned();
            findings.add((Error, "no-pci"), Some(element.place), what, "put it into its <pci>");
        }
        if element.attr("rank").is_none() {
            let what = "a GPU without rank, which NCCL takes for another job's".to_owned();
            let advice = "give it the rank that uses it; in a file for NCCL_TOPO_FILE leave <gpu> out, \
                          NCCL fills it in";
            findings.add((Warning, "no-rank"), Some(element.place), what, advice);
        }
    }
    if n_gpus == 0 {
        let what =
            "no GPU in the file; decisions can be computed only where GPUs are named".to_owned();
        let advice = "NCCL fills GPUs in when it runs; for a look without it use a file that \
                      NCCL_TOPO_DUMP_FILE wrote";
        findings.add((Note, "no-gpu"), Some(root.place), what, advice);
    }
}

fn duplicates(all: &All, findings: &mut Findings) {
    const WHAT: [(&str, &str, &str, &str); 5] = [
        ("pci", "busid", "duplicate-busid", "a bus id names one device; the first is found"),
        ("gpu", "rank", "duplicate-rank", "each GPU of a job has a rank of its own"),
        ("gpu", "dev", "duplicate-dev", "NVML numbers each GPU of a server once"),
        ("cpu", "numaid", "duplicate-numa", "each NUMA node stands once"),
        ("net", "dev", "duplicate-net", "ports of one number share the first one's paths"),
    ];
    for (name, attr, rule, advice) in WHAT {
        let mut seen: BTreeMap<(String, String), Place> = BTreeMap::new();
        for (path, element) in all.iter().filter(|it| it.1.name == name) {
            let Some(value) = element.attr(attr) else { continue };
            // Several hosts of one rack may number alike, save for ranks.
            let host = all.iter().find(|it| it.0.len() == 1 && path.first() == it.0.first());
            let host = host.and_then(|it| it.1.attr("host_hash")).filter(|_| attr != "rank");
            let key = (value.to_ascii_lowercase(), host.unwrap_or_default().to_owned());
            note_twice(&mut seen, key, element, (attr, rule, advice), findings);
        }
    }
}

fn note_twice(
    seen: &mut BTreeMap<(String, String), Place>,
    key: (String, String),
    element: &Element,
    (attr, rule, advice): (&str, &'static str, &str),
    findings: &mut Findings,
) {
    let value = key.0.clone();
    match seen.get(&key) {
        Some(first) => {
            let what =
                format!("{attr}=\"{value}\" of a <{}> stands at {first} already", element.name);
            let severity = if rule == "duplicate-net" { Warning } else { Error };
            findings.add((severity, rule), Some(element.place), what, advice);
        }
        None => {
            seen.insert(key, element.place);
        }
    }
}

/// Ranks that leave some out: dealt round several servers, or a GPU is missing here.
fn ranks(all: &All, findings: &mut Findings) {
    let gpus = all.iter().map(|it| it.1).filter(|it| it.name == "gpu");
    let mut ranks: Vec<(i64, Place)> =
        gpus.filter_map(|it| Some((it.attr("rank")?.trim().parse().ok()?, it.place))).collect();
    ranks.sort_unstable();
    let mut gaps = ranks.windows(2).filter(|it| it[0].0 + 1 < it[1].0);
    let Some([(before, _), (after, place)]) = gaps.next() else { return };
    let what = format!("no GPU has a rank between {before} and {after}");
    let advice = "fine where a launcher deals ranks round servers; else a GPU is missing in the file \
                  or its rank is mistyped";
    findings.add((Note, "rank-gap"), Some(*place), what, advice);
}

/// Processors for which NCCL has no figures, so that nothing between them is slow to it.
fn processors(all: &All, findings: &mut Findings) {
    const ARCHS: [&str; 3] = ["x86_64", "arm64", "ppc64"];
    const VENDORS: [&str; 4] = ["GenuineIntel", "AuthenticAMD", "CentaurHauls", "  Shanghai  "];
    let is_one_of = |known: &[&str], text: &str| known.iter().any(|it| text.starts_with(it));
    let unknown = |what: String| {
        format!("{what} is none that NCCL knows; it takes the way to other CPUs for 5000 GB/s wide")
    };
    for (_, cpu) in all.iter().filter(|it| it.1.name == "cpu") {
        let Some(arch) = cpu.attr("arch") else { continue };
        let vendor = cpu.attr("vendor").filter(|_| arch.starts_with(ARCHS[0]));
        if !is_one_of(&ARCHS, arch) {
            let what = unknown(format!("arch={arch:?}"));
            let advice = "write x86_64, arm64 or ppc64";
            findings.add((Warning, "arch"), Some(cpu.place), what, advice);
        } else if let Some(vendor) = vendor.filter(|it| !is_one_of(&VENDORS, it)) {
            let what = unknown(format!("vendor={vendor:?}"));
            let advice = "right where /proc/cpuinfo has this vendor_id; judge what crosses between \
                          CPUs by measuring it";
            findings.add((Note, "vendor"), Some(cpu.place), what, advice);
        }
    }
}

/// Attributes that are to be numbers, and are none or make no sense.
fn numbers(all: &All, findings: &mut Findings) {
    for (_, element) in all {
        for (attr, text) in &element.attrs {
            let Some(wanted) = wanted(&element.name, attr) else { continue };
            let name = &element.name;
            let what = match wanted.misfit(text) {
                None => continue,
                Some(Misfit::NoNumber) => format!(
                    "{attr}={text:?} of <{name}> is no {}; NCCL reads as far as digits go, which is {}",
                    wanted.words(),
                    wanted.read(text)
                ),
                Some(Misfit::TooSmall) => format!(
                    "{attr}={text:?} of <{name}> is no {}; NCCL reckons with it all the same",
                    wanted.words()
                ),
                Some(Misfit::TooLarge) => format!(
                    "{attr}={text:?} of <{name}> is more than there is of; NCCL reckons with it all \
                     the same"
                ),
            };
            let advice = "write the number that the server has; `nvidia-smi topo -m`, lspci and \
                          ibstat show it";
            let is_large = wanted.misfit(text) == Some(Misfit::TooLarge);
            let severity = if is_large { Warning } else { Error };
            findings.add((severity, "number"), Some(element.place), what, advice);
        }
    }
}

/// Bus ids that are none: NCCL reads hexadecimal digits as far as they go.
fn bus_ids(all: &All, findings: &mut Findings) {
    for (_, element) in all.iter().filter(|it| it.1.name == "pci") {
        let Some(text) = element.attr("busid") else { continue };
        let is_part = |it: char| it.is_ascii_hexdigit() || matches!(it, ':' | '.');
        let is_read = !text.is_empty() && text.chars().all(is_part);
        if is_read && fits_pci(text) {
            continue;
        }
        let what = match is_read {
            true => format!(
                "busid {text:?} is no bus id: domains end at ffffffff, buses at ff, devices at 1f, \
                 functions at 7"
            ),
            false => format!(
                "busid {text:?} is no bus id; NCCL reads hexadecimal digits as far as they go, and 0 \
                 where there are none"
            ),
        };
        let advice = "write it as lspci -D does, such as 0000:1a:00.0";
        findings.add((Error, "busid"), Some(element.place), what, advice);
    }
}

/// Whether `domain:bus:device.function` are numbers that PCI has; of other forms nothing is said.
fn fits_pci(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let [domain, bus, device, function] = parts.as_slice() else { return true };
    let most = [(domain, u64::from(u32::MAX)), (bus, 0xff), (device, 0x1f), (function, 7)];
    most.iter().all(|(it, most)| u64::from_str_radix(it, 16).is_ok_and(|it| it <= *most))
}

/// A string of C ends at a NUL.
fn nuls(all: &All, findings: &mut Findings) {
    for (_, element) in all {
        for (attr, text) in &element.attrs {
            if !text.contains('\0') {
                continue;
            }
            let what = format!(
                "{attr}={text:?} of <{}> holds a NUL byte; NCCL reads what stands before it",
                element.name
            );
            // No patch takes such a line.
            let advice = "write the value without it";
            findings.add((Warning, "nul"), Some(element.place), what, advice);
        }
    }
}

/// NCCL's reader knows no `&name;`: what stands there is taken letter by letter.
fn entities(all: &All, findings: &mut Findings) {
    for (_, element) in all {
        for (attr, text) in &element.attrs {
            let named = text.split_once('&').and_then(|it| it.1.split_once(';'));
            let is_name = |it: &str| {
                !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || it == '#')
            };
            if let Some((name, _)) = named.filter(|it| is_name(it.0)) {
                let what = format!(
                    "{attr}={text:?} of <{}> holds the entity &{name};, which NCCL takes letter by \
                     letter",
                    element.name
                );
                let advice = "write what the entity stands for";
                findings.add((Warning, "entity"), Some(element.place), what, advice);
            }
        }
    }
}

/// Affinities are words of eight hexadecimal digits; people write lists of processors.
fn affinities(all: &All, findings: &mut Findings) {
    for (path, element) in all.iter().filter(|it| it.1.name == "cpu") {
        let Some(text) = element.attr("affinity") else { continue };
        let word =
            |it: &str| !it.is_empty() && it.len() <= 8 && it.chars().all(|c| c.is_ascii_hexdigit());
        if text.split(',').all(word) {
            continue;
        }
        let what =
            format!("affinity {text:?} is no mask; NCCL would read other processors from it");
        let advice = "write words of eight hexadecimal digits, such as 00000000,0000ffff";
        findings.add((Error, "affinity"), Some(element.place), what, advice);
        if let Some(value) = mask(text) {
            let (path, attr) = (path.clone(), "affinity".to_owned());
            findings.mend(Edit::Set { path, attr, value });
        }
    }
}

/// `0-15,32-47` as words.
fn mask(list: &str) -> Option<String> {
    const PROCESSORS: usize = 4096;
    let mut words: Vec<u32> = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= PROCESSORS {
            return None;
        }
        for it in first..=last {
            if words.len() <= it / 32 {
                words.resize(it / 32 + 1, 0);
            }
            words[it / 32] |= 1 << (it % 32);
        }
    }
    let words: Vec<String> = words.iter().rev().map(|it| format!("{it:08x}")).collect();
    Some(words.join(","))
}

/// GB/s of a link, and whether NCCL must guess.
fn link(element: &Element) -> Option<(f32, bool)> {
    const SPEEDS: [(&str, f32); 6] =
        [("2.5", 15.0), ("5", 30.0), ("8", 60.0), ("16", 120.0), ("32", 240.0), ("64", 480.0)];
    let speed = element.attr("link_speed")?;
    let number = speed.split_whitespace().next().unwrap_or_default().trim_end_matches(".0");
    let known = SPEEDS.iter().find(|(it, _)| *it == number).map(|it| it.1);
    // A negative width is no guess, and no link either.
    let width: u16 = element.attr("link_width")?.trim().parse().ok()?;
    let lanes = if width == 0 { 16 } else { width };
    Some((f32::from(lanes) * known.unwrap_or(60.0) / 80.0, known.is_none() || width == 0))
}

fn widths(all: &All, findings: &mut Findings) {
    let mut guessed: Vec<Place> = Vec::new();
    let mut by_kind: BTreeMap<&str, Vec<(f32, Place)>> = BTreeMap::new();
    for (path, element) in all.iter().filter(|it| it.1.name == "pci") {
        let Some((width, is_guess)) = link(element) else { continue };
        if is_guess {
            guessed.push(element.place);
        }
        for inside in ["gpu", "nic"] {
            if element.child(inside).is_some() {
                by_kind.entry(inside).or_default().push((width, element.place));
            }
        }
        narrow_uplink(element, width, path, findings);
    }
    if let Some(first) = guessed.first() {
        let links = match guessed.len() {
            1 => "a link has".to_owned(),
            n => format!("{n} links have"),
        };
        let what = format!(
            "{links} a width of 0 or an unknown speed, for which NCCL takes 16 lanes of \
             generation 3, 12 GB/s, or of the speed that stands there"
        );
        let advice = "write the link_speed and link_width of the bare-metal server";
        findings.add((Note, "guessed-link"), Some(*first), what, advice);
    }
    for (kind, links) in by_kind {
        let widest = links.iter().map(|it| it.0).fold(0.0, f32::max);
        for (width, place) in links.into_iter().filter(|it| it.0 < widest * 0.99) {
            let what = format!(
                "a {kind} with {} GB/s, while others here have {} GB/s",
                short(width),
                short(widest)
            );
            let advice = "if the cards are of one kind, this one's link is degraded: reseat it, look at \
                          LnkSta";
            findings.add((Warning, "uneven-link"), Some(place), what, advice);
        }
    }
}

/// A switch whose way up is narrower than one device below it.
fn narrow_uplink(element: &Element, width: f32, path: &[usize], findings: &mut Findings) {
    let below = element.children.iter().filter(|it| it.name == "pci");
    let widest = below.filter_map(|it| Some((link(it)?.0, it))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((below, child)) = widest else { return };
    // Half is how switches are built; a tenth is what a VM's made-up switches say.
    if width >= below * 0.45 {
        return;
    }
    let what = format!(
        "a switch with {} GB/s upwards above a device with {} GB/s: everything that leaves the \
         switch is taken for that slow",
        short(width),
        short(below)
    );
    let advice = match is_virtual(element) {
        true => "virtual switches report 2.5 GT/s x1; give the switch the link of what is below it",
        false => {
            "that link is degraded or the switch is built so: compare LnkSta with LnkCap in lspci; \
             what the file says is changed only by who knows"
        }
    };
    findings.add((Warning, "narrow-uplink"), Some(element.place), what, advice);
    if is_virtual(element) {
        for attr in ["link_speed", "link_width"] {
            let value = child.attr(attr).unwrap_or_default().to_owned();
            findings.mend(Edit::Set { path: path.to_vec(), attr: attr.to_owned(), value });
        }
    }
}

/// Whether the link is what hypervisors write for switches that are none: notes §4.3.
fn is_virtual(element: &Element) -> bool {
    let speed = element.attr("link_speed").and_then(|it| it.split_whitespace().next());
    let width = element.attr("link_width").map(str::trim);
    speed == Some("2.5") && width == Some("1")
}

fn ports(all: &All, findings: &mut Findings) {
    let nets: Vec<&Element> = all.iter().map(|it| it.1).filter(|it| it.name == "net").collect();
    if nets.len() > NETS {
        let what = format!(
            "{} ports; versions up to 2.18 have room for {NETS} links of a card and crash",
            nets.len()
        );
        let advice = "leave out those that are not used, or use a newer version";
        findings.add((Warning, "many-ports"), nets.get(NETS).map(|it| it.place), what, advice);
    }
    for net in nets {
        let speed = net.attr("speed").and_then(|it| it.trim().parse::<i64>().ok());
        if speed.is_none_or(|it| it <= 0) {
            let what = "a port without a speed, which NCCL takes for 10 Gbit/s".to_owned();
            findings.add(
                (Warning, "port-speed"),
                Some(net.place),
                what,
                "write its speed in Mbit/s",
            );
        }
        if net.attr("gdr").is_none_or(|it| it.trim() == "0") {
            let what = "a port that reaches no GPU's memory (gdr=\"0\")".to_owned();
            let advice =
                "load nvidia-peermem, or use a driver and kernel with DMA-BUF; then dump again";
            findings.add((Note, "port-gdr"), Some(net.place), what, advice);
        }
    }
}

/// Links between switches that end nowhere.
fn switch_links(all: &All, findings: &mut Findings) {
    let is_there = |bus: &str| {
        let mut devices = all.iter().filter(|it| it.1.name == "pci");
        devices.any(|it| it.1.attr("busid").is_some_and(|it| it.eq_ignore_ascii_case(bus)))
    };
    for (_, link) in all.iter().filter(|it| it.1.name == "pcilink") {
        let target = link.attr("target").unwrap_or_default();
        if !is_there(target) {
            let what =
                format!("a <pcilink> to {target:?}, where no device is; NCCL passes it over");
            let advice = "name the bus id of the switch at its other end, or delete it";
            findings.add((Warning, "missing-target"), Some(link.place), what, advice);
        }
    }
}

/// One GPU's rows of links.
struct Rows<'e> {
    path: TreePath,
    bus: String,
    gpu: &'e Element,
}

fn nvlinks(root: &Element, all: &All, findings: &mut Findings) {
    let gpus: Vec<Rows> = all
        .iter()
        .filter(|(path, it)| it.name == "gpu" && !path.is_empty())
        .map(|(path, gpu)| {
            let bus = at(root, &path[..path.len() - 1]).attr("busid").unwrap_or_default();
            Rows { path: path.clone(), bus: bus.to_ascii_lowercase(), gpu }
        })
        .collect();
    for rows in &gpus {
        for link in rows.gpu.children.iter().filter(|it| it.name == "nvlink") {
            let target = link.attr("target").unwrap_or_default().to_ascii_lowercase();
            let is_gpu = link.attr("tclass").is_some_and(|it| it.starts_with("0x03"));
            if !is_gpu {
                continue;
            }
            if target == rows.bus {
                let what = "an NVLink from a GPU to itself".to_owned();
                let advice = "name the GPU or the switch at its other end, or delete it";
                findings.add((Error, "self-link"), Some(link.place), what, advice);
                findings.mend(Edit::Drop { path: rows.path.clone(), child: (*link).clone() });
                continue;
            }
            let Some(peer) = gpus.iter().find(|it| it.bus == target) else {
                let what = format!("an NVLink to {target}, where no GPU is; NCCL passes it over");
                let advice = "name the GPU's own bus id, in a VM the guest's";
                findings.add((Warning, "missing-target"), Some(link.place), what, advice);
                continue;
            };
            let back = peer.gpu.children.iter().any(|it| {
                it.name == "nvlink"
                    && it.attr("target").is_some_and(|it| it.eq_ignore_ascii_case(&rows.bus))
            });
            lopsided(link, rows, peer, findings);
            if !back {
                let what =
                    format!("an NVLink to {target} that {target} does not name; NCCL gives up");
                let advice = "name the link at both ends";
                findings.add((Error, "one-way"), Some(link.place), what, advice);
                let mut child = link.clone();
                set(&mut child, "target", &rows.bus);
                findings.mend(Edit::Add { path: peer.path.clone(), child });
            }
        }
    }
    uneven(&gpus, findings);
}

/// Two GPUs that count the links between them differently: each direction is as wide as its own end
/// says.
fn lopsided(link: &Element, rows: &Rows, peer: &Rows, findings: &mut Findings) {
    let count = |of: &Rows, to: &Rows| -> Option<i64> {
        let links = of.gpu.children.iter().filter(|it| it.name == "nvlink");
        let mut links = links
            .filter(|it| it.attr("target").is_some_and(|it| it.eq_ignore_ascii_case(&to.bus)))
            .peekable();
        links.peek()?;
        links.map(|it| it.attr("count")?.trim().parse::<i64>().ok()).sum()
    };
    let (Some(forth), Some(back)) = (count(rows, peer), count(peer, rows)) else { return };
    // Said once, at the end that names more.
    if back < forth {
        let what = format!(
            "{forth} NVLinks to {}, which names {back} back; NCCL takes each direction for as wide \
             as its own end says",
            peer.bus
        );
        let advice = "a link trains in both directions or not at all: look at `nvidia-smi nvlink -s` \
                      of both GPUs";
        findings.add((Warning, "lopsided-nvlink"), Some(link.place), what, advice);
    }
}

/// GPUs with fewer NVLinks than most.
fn uneven(gpus: &[Rows], findings: &mut Findings) {
    let count = |rows: &Rows| -> i64 {
        let links = rows.gpu.children.iter().filter(|it| it.name == "nvlink");
        links.filter_map(|it| it.attr("count")?.trim().parse::<i64>().ok()).sum()
    };
    let counts: Vec<i64> = gpus.iter().map(count).collect();
    let mut times: BTreeMap<i64, usize> = BTreeMap::new();
    for it in &counts {
        *times.entry(*it).or_default() += 1;
    }
    let Some((&usual, &often)) = times.iter().max_by_key(|it| (*it.1, *it.0)) else { return };
    if often * 2 <= gpus.len() {
        return;
    }
    for (rows, count) in gpus.iter().zip(counts).filter(|it| it.1 < usual) {
        let what = format!("a GPU with {count} NVLinks, while most here have {usual}");
        let advice = "links are down or their rows are missing: look at `nvidia-smi nvlink -s`";
        findings.add((Warning, "uneven-nvlink"), Some(rows.gpu.place), what, advice);
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_list_of_processors_is_a_mask() {
        assert_eq!(mask("0-63").as_deref(), Some("ffffffff,ffffffff"));
        assert_eq!(mask("0,2, 32").as_deref(), Some("00000001,00000005"));
        for text in ["", "3-1", "a-b", "0-99999"] {
            assert_eq!(mask(text), None, "{text}");
        }
    }
}
