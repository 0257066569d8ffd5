//! What a line of NCCL's log means: its numbers count differently in each version.

use std::fmt;

use serde::Serialize;

use crate::host::level::{Release, SCHEMES, Scheme, words};
use crate::host::nccl::path::PathKind;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// A distance was compared with a level.
    Distance {
        /// The number on the left.
        distance: usize,
        /// The number on the right.
        limit: usize,
        /// Whether GPUDirect RDMA is on.
        on: bool,
        /// Whether for sending, where the line says so.
        send: Option<bool>,
        /// What the numbers are, version by version.
        meanings: Vec<Meaning>,
        /// The version that was asked for, where it writes other signs than these.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_of: Option<Release>,
    },
    /// The network's own code can or cannot do GPUDirect RDMA; no distance was looked at.
    Plugin {
        /// Whether it can.
        on: bool,
    },
    /// The search for a pattern came back empty.
    NoPath {
        /// NCCL's number of the pattern.
        pattern: usize,
        /// Its name.
        name: &'static str,
    },
    /// How two ranks are connected.
    Via {
        /// As written, such as `P2P/IPC/read`.
        via: String,
        /// In words.
        words: &'static str,
    },
}

/// What two numbers are from one version on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// The first version that counts so.
    pub since: Release,
    /// The first that counts otherwise again.
    pub before: Option<Release>,
    /// The distance's name; none where this version has no such number.
    pub distance: Option<&'static str>,
    /// The level's name.
    pub limit: Option<&'static str>,
    /// The distance in words, empty where there is none.
    pub far: &'static str,
    /// Whether the level is the nearest that is too far, as before 2.6, and not the farthest that
    /// is taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_old: bool,
}

/// A line that says nothing that is known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no line of NCCL's graph code that is known here; known are \"GPU Direct RDMA …\", \
     \"distance 7 > 4\", \"Could not find a path for pattern 4\" and \"… via P2P/IPC\""
)]
pub struct NoMessage;

/// What the line says, in that version or in all.
///
/// # Errors
/// If it is no line that is known here.
pub fn read_line(line: &str, release: Option<Release>) -> Result<Message, NoMessage> {
    if let Some(message) = read_distance(line, release) {
        return Ok(message);
    }
    if line.contains("GPU Direct RDMA") && line.contains(" for HCA ") {
        return Ok(Message::Plugin { on: line.contains("Enabled") });
    }
    if let Some(rest) = after(line, "Could not find a path for pattern ") {
        let (pattern, _) = number(rest).ok_or(NoMessage)?;
        return Ok(Message::NoPath { pattern, name: pattern_name(pattern) });
    }
    if let Some(rest) = after(line, " via ") {
        let via = rest.split_whitespace().next().unwrap_or_default();
        if let Some(words) = via_words(via) {
            return Ok(Message::Via { via: via.to_owned(), words });
        }
    }
    Err(NoMessage)
}

/// The version that a log names, from `NCCL version 2.18.3+cuda12.1`.
pub fn version_in(log: &str) -> Option<Release> {
    let rest = after(log, "NCCL version ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn read_distance(line: &str, release: Option<Release>) -> Option<Message> {
    let (distance, rest) = number(after(line, "distance ")?)?;
    let rest = rest.trim_start();
    // Before 2.6 a level was the nearest that was too far, and lines that said Enabled might carry
    // the sign of the others.
    let signs = [("<=", true, false), (">=", false, true), ("<", true, true), (">", false, false)];
    let (rest, on, is_old) =
        signs.into_iter().find_map(|it| Some((rest.strip_prefix(it.0)?, it.1, it.2)))?;
    let on = on || line.contains("RDMA Enabled");
    let (limit, rest) = number(rest.trim_start())?;
    let send = after(rest, "read ").and_then(number).map(|(read, _)| read != 0);
    if is_old {
        let meanings = vec![old_meaning(distance, limit)];
        let not_of = release.filter(|it| SCHEMES[0].since <= *it);
        return Some(Message::Distance { distance, limit, on, send, meanings, not_of });
    }
    let ours = release.map(Scheme::of);
    let asked = |it: &Scheme| ours.is_none_or(|ours| ours == Some(*it));
    let meaning = |it: &Scheme| {
        let at = SCHEMES.iter().position(|other| other == it);
        let before = at.and_then(|at| SCHEMES.get(at + 1)).map(|it| it.since);
        let kind = it.kind(distance);
        Meaning {
            since: it.since,
            before,
            distance: kind.map(PathKind::name),
            limit: it.kind(limit).map(PathKind::name),
            far: kind.map_or("", words),
            is_old: false,
        }
    };
    let meanings = SCHEMES.iter().filter(|it| asked(it)).map(meaning).collect();
    Some(Message::Distance { distance, limit, on, send, meanings, not_of: None })
}

/// What 2.4 and 2.5 counted: their own five distances between devices, and a level that is too far.
fn old_meaning(distance: usize, limit: usize) -> Meaning {
    const KINDS: [(&str, &str); 5] = [
        ("PIX", "one PCI switch at most"),
        ("PXB", "several PCI switches, no CPU"),
        ("PHB", "through a CPU"),
        ("NODE", "between host bridges of one CPU"),
        ("SYS", "between CPUs"),
    ];
    let kind = |it: usize| KINDS.get(it).map(|it| it.0);
    Meaning {
        since: Release { major: 2, minor: 4, patch: 2 },
        before: Some(SCHEMES[0].since),
        distance: kind(distance),
        // One level above the farthest distance takes all.
        limit: if limit == KINDS.len() { Some("none") } else { kind(limit) },
        far: KINDS.get(distance).map_or("", |it| it.1),
        is_old: true,
    }
}

fn pattern_name(pattern: usize) -> &'static str {
    match pattern {
        1 => "balanced tree",
        2 => "split tree",
        3 => "tree",
        4 => "ring",
        5 => "NVLS",
        6 => "collnet direct",
        _ => "unknown pattern",
    }
}

fn via_words(via: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 8] = [
        ("P2P/indirect", "P2P by way of a third GPU between the two"),
        ("P2P/direct", "P2P inside one process: a pointer into the other GPU's memory"),
        ("P2P/IPC", "P2P between processes: the other GPU's memory is mapped by a CUDA IPC handle"),
        ("P2P/CUMEM", "P2P between processes by cuMem handles"),
        ("P2P/MNNVL", "P2P over NVLink between servers of one rack"),
        ("P2P", "P2P: one GPU reaches the other's memory"),
        ("SHM", "shared memory: all data goes through the CPU's memory"),
        ("NET", "the network"),
    ];
    if via.starts_with("NET") && via.contains("GDRDMA") {
        return Some("the network, with GPUDirect RDMA: the port reaches the GPU's memory");
    }
    if via.starts_with("NET") {
        return Some("the network without GPUDirect RDMA: data stops over in the CPU's memory");
    }
    WORDS.iter().find(|(it, _)| via.starts_with(it)).map(|(_, words)| *words)
}

fn after<'a>(text: &'a str, what: &str) -> Option<&'a str> {
    text.find(what).map(|at| &text[at + what.len()..])
}

fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Distance { distance, limit, on, send, meanings, not_of } => {
                let word = if *on { "on" } else { "off" };
                let direction = match send {
                    Some(true) => " for sending",
                    Some(false) => " for receiving",
                    None => "",
                };
                writeln!(f, "GPUDirect RDMA is {word}{direction}:")?;
                if let Some(release) = not_of {
                    writeln!(
                        f,
                        "  NCCL {release} writes <= and > here; versions before {} wrote < and >=",
                        SCHEMES[0].since
                    )?;
                }
                for it in meanings {
                    writeln!(f, "  {}", it.sentence([*distance, *limit], *on))?;
                }
                if meanings.is_empty() {
                    writeln!(
                        f,
                        "  how versions before NCCL {} count is not known here",
                        SCHEMES[0].since
                    )?;
                }
                Ok(())
            }
            Message::Plugin { on: false } => writeln!(
                f,
                "the network's own code found no way to GPU memory: neither nvidia-peermem is \
                 loaded nor DMA-BUF supported, by the kernel, the driver and the card; no distance \
                 was looked at, so no level helps.  In a topology file this port has gdr=\"0\"."
            ),
            Message::Plugin { on: true } => writeln!(
                f,
                "the network's own code can reach GPU memory; whether a GPU's is near enough is \
                 decided for each GPU and port"
            ),
            Message::NoPath { pattern, name } => writeln!(
                f,
                "the search found no {name} (pattern {pattern}) at any speed of its tables, and NCCL \
                 falls back to the ranks' order at 0.1 GB/s; often a link is narrower than the \
                 tables' last speed, or no port is reached"
            ),
            Message::Via { via, words } => writeln!(f, "{via}: {words}"),
        }
    }
}

impl Meaning {
    /// Who set the limit, as far as its name tells.
    fn whose_limit(&self) -> &'static str {
        // P2C, the chip-to-chip link and PCI from there, is the default since there is such a kind.
        let has_p2c = SCHEMES.last().is_some_and(|it| it.since <= self.since);
        match (self.limit, has_p2c) {
            (Some("PXB"), false) | (Some("P2C"), true) => ", the default",
            (Some("PXB"), true) => ", as NCCL_NET_GDR_C2C=0 or NCCL_NET_GDR_LEVEL=PXB sets it",
            _ => "",
        }
    }

    fn sentence(&self, [distance, limit]: [usize; 2], on: bool) -> String {
        let versions = match self.before {
            Some(before) => format!("from {} to before {before}", self.since),
            None => format!("from {} on", self.since),
        };
        let name = |name: Option<&'static str>, number: usize| {
            name.map_or_else(|| format!("no level ({number})"), |it| format!("{it} ({number})"))
        };
        let (a, b) = (name(self.distance, distance), name(self.limit, limit));
        if self.distance.is_none() {
            return format!("{versions}: {a}");
        }
        if self.is_old {
            let (below, allow) = match on {
                true => ("is nearer than", String::new()),
                false => (
                    "is not nearer than",
                    format!("; NCCL_NET_GDR_LEVEL={} would allow it", distance + 1),
                ),
            };
            let default = if self.limit == Some("PHB") { ", the default" } else { "" };
            return format!("{versions}: {a}, {}, {below} {b}{default}{allow}", self.far);
        }
        let compared = if on { "within" } else { "beyond" };
        let default = self.whose_limit();
        let mut out = format!("{versions}: {a}, {}, is {compared} {b}{default}", self.far);
        if let (false, Some(distance)) = (on, self.distance) {
            if matches!(distance, "NET" | "DIS") {
                out.push_str("; no level is that far");
            } else {
                out.push_str(&format!("; NCCL_NET_GDR_LEVEL={distance} would allow it"));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{read_line, version_in};

    #[track_caller]
    fn check(line: &str, version: Option<&str>, expected: Expect) {
        let release = version.map(|it| it.parse().expect("a version"));
        let text = match read_line(line, release) {
            Ok(message) => message.to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn a_distance_is_read_in_its_version() {
        let line =
            "h:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU ca000 / HCA 0 (distance 7 > 4)";
        check(
            line,
            Some("2.18.3"),
            expect![[r#"
                GPUDirect RDMA is off:
                  from 2.12.7 to before 2.26.2: SYS (7), between CPUs, is beyond PXB (4), the default; NCCL_NET_GDR_LEVEL=SYS would allow it
            "#]],
        );
        check(
            line,
            None,
            expect![[r#"
                GPUDirect RDMA is off:
                  from 2.6.4 to before 2.8.3: no level (7)
                  from 2.8.3 to before 2.12.7: NET (7), over the network, is beyond PXB (4), the default; no level is that far
                  from 2.12.7 to before 2.26.2: SYS (7), between CPUs, is beyond PXB (4), the default; NCCL_NET_GDR_LEVEL=SYS would allow it
                  from 2.26.2 to before 2.27.3: PHB (7), through a CPU, is beyond PIX (4); NCCL_NET_GDR_LEVEL=PHB would allow it
                  from 2.27.3 on: PXN (7), NVLink to the GPU next to the port, is beyond PIX (4); NCCL_NET_GDR_LEVEL=PXN would allow it
            "#]],
        );
        check(
            "distance 4 <= 4), read 1",
            Some("2.27.7"),
            expect![[r#"
                GPUDirect RDMA is on for sending:
                  from 2.27.3 on: PIX (4), one PCI switch at most, is within PIX (4)
            "#]],
        );
        check(
            "distance 7 > 4",
            Some("2.4.8"),
            expect![[r#"
                GPUDirect RDMA is off:
                  how versions before NCCL 2.6.4 count is not known here
            "#]],
        );
        check(
            "distance 9 > 5",
            Some("2.26.2"),
            expect![[r#"
                GPUDirect RDMA is off:
                  from 2.26.2 to before 2.27.3: NET (9), over the network, is beyond PXB (5), the default; no level is that far
            "#]],
        );
    }

    #[test]
    fn a_limit_is_called_the_default_where_it_is() {
        check(
            "distance 9 > 5",
            Some("2.30.7"),
            expect![[r#"
            GPUDirect RDMA is off:
              from 2.27.3 on: SYS (9), between CPUs, is beyond PXB (5), as NCCL_NET_GDR_C2C=0 or NCCL_NET_GDR_LEVEL=PXB sets it; NCCL_NET_GDR_LEVEL=SYS would allow it
        "#]],
        );
        check(
            "distance 9 > 6",
            Some("2.30.7"),
            expect![[r#"
            GPUDirect RDMA is off:
              from 2.27.3 on: SYS (9), between CPUs, is beyond P2C (6), the default; NCCL_NET_GDR_LEVEL=SYS would allow it
        "#]],
        );
    }

    #[test]
    fn versions_before_2_6_counted_a_level_that_is_too_far() {
        let line = "NET/IB : GPU Direct RDMA Disabled for GPU 0[0] / HCA 0 (distance 4 >= 2)";
        check(
            line,
            None,
            expect![[r#"
            GPUDirect RDMA is off:
              from 2.4.2 to before 2.6.4: SYS (4), between CPUs, is not nearer than PHB (2), the default; NCCL_NET_GDR_LEVEL=5 would allow it
        "#]],
        );
        let line = "GPU Direct RDMA Enabled for GPU 3[3] / HCA 1 (distance 1 < 2), read 1";
        check(
            line,
            Some("2.4.8"),
            expect![[r#"
            GPUDirect RDMA is on for sending:
              from 2.4.2 to before 2.6.4: PXB (1), several PCI switches, no CPU, is nearer than PHB (2), the default
        "#]],
        );
        let line = "GPU Direct RDMA Enabled for GPU 3 / HCA 1 (distance 0 >= 5), read 0";
        check(
            line,
            None,
            expect![[r#"
            GPUDirect RDMA is on for receiving:
              from 2.4.2 to before 2.6.4: PIX (0), one PCI switch at most, is nearer than none (5)
        "#]],
        );
    }

    #[test]
    fn a_version_that_writes_other_signs_is_told() {
        let line = "GPU Direct RDMA Disabled for GPU 0[0] / HCA 0 (distance 4 >= 2)";
        check(
            line,
            Some("2.27.7"),
            expect![[r#"
            GPUDirect RDMA is off:
              NCCL 2.27.7 writes <= and > here; versions before 2.6.4 wrote < and >=
              from 2.4.2 to before 2.6.4: SYS (4), between CPUs, is not nearer than PHB (2), the default; NCCL_NET_GDR_LEVEL=5 would allow it
        "#]],
        );
    }

    #[test]
    fn other_lines_are_read_too() {
        check(
            "NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
            None,
            expect![[r#"
                the network's own code found no way to GPU memory: neither nvidia-peermem is loaded nor DMA-BUF supported, by the kernel, the driver and the card; no distance was looked at, so no level helps.  In a topology file this port has gdr="0".
            "#]],
        );
        check(
            "Could not find a path for pattern 4, falling back to simple order",
            None,
            expect![[r#"
                the search found no ring (pattern 4) at any speed of its tables, and NCCL falls back to the ranks' order at 0.1 GB/s; often a link is narrower than the tables' last speed, or no port is reached
            "#]],
        );
        check(
            "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct",
            None,
            expect![[r#"
            SHM/direct/direct: shared memory: all data goes through the CPU's memory
        "#]],
        );
        check(
            "Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA",
            None,
            expect![[r#"
            NET/IB/0/GDRDMA: the network, with GPUDirect RDMA: the port reaches the GPU's memory
        "#]],
        );
        check(
            "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0",
            None,
            expect![[r#"
            NET/Socket/0: the network without GPUDirect RDMA: data stops over in the CPU's memory
        "#]],
        );
        check(
            "distance > 4",
            None,
            expect![[
                r#"no line of NCCL's graph code that is known here; known are "GPU Direct RDMA …", "distance 7 > 4", "Could not find a path for pattern 4" and "… via P2P/IPC""#
            ]],
        );
        check(
            "",
            None,
            expect![[
                r#"no line of NCCL's graph code that is known here; known are "GPU Direct RDMA …", "distance 7 > 4", "Could not find a path for pattern 4" and "… via P2P/IPC""#
            ]],
        );
        check(
            "distance 99999999999999999999 > 4",
            None,
            expect![[
                r#"no line of NCCL's graph code that is known here; known are "GPU Direct RDMA …", "distance 7 > 4", "Could not find a path for pattern 4" and "… via P2P/IPC""#
            ]],
        );
    }

    #[test]
    fn a_log_names_its_version() {
        let log = "h:1:1 [0] NCCL INFO x\nh:1:1 [0] NCCL INFO NCCL version 2.18.3+cuda12.1\n";
        assert_eq!(version_in(log).map(|it| it.to_string()), Some("2.18.3".to_owned()));
        assert_eq!(version_in("NCCL version"), None);
    }
}
