//! How far apart GPUs and ports are, as a matrix: from a view, or from a log of NCCL's.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::host::level::words;
use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::{RefusedView, View};
use crate::host::place::{label, short};

/// Rows and columns are GPUs and ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Matrix {
    /// The GPUs and ports.
    pub ends: Vec<String>,
    /// Row by row; none where nothing is known.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// By row the nearest CPU; none of a port.
    pub cpus: Vec<Option<String>>,
    /// By row what is wide there: of a GPU its widest way to another, of a port itself, GB/s.
    pub widths: Vec<Option<f32>>,
}

/// From one end to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// How far, by NCCL's name.
    pub kind: &'static str,
    /// The narrowest link on the way, GB/s.
    pub gb_per_s: f32,
    /// Links on the way.
    pub hops: u32,
    /// What is on or off.
    pub mark: Mark,
}

/// What a matrix marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Nothing.
    #[default]
    None,
    /// No P2P between two GPUs.
    NoP2p,
    /// GPUDirect RDMA.
    Gdr,
    /// GPUDirect RDMA for sending alone.
    GdrSend,
    /// GPUDirect RDMA for receiving alone.
    GdrReceive,
}

impl Mark {
    /// The sign in the table.
    pub fn sign(self) -> &'static str {
        match self {
            Mark::None => "",
            Mark::NoP2p => "!",
            Mark::Gdr => "*",
            Mark::GdrSend => "s",
            Mark::GdrReceive => "r",
        }
    }

    fn gdr(send: bool, receive: bool) -> Mark {
        match (send, receive) {
            (true, true) => Mark::Gdr,
            (true, false) => Mark::GdrSend,
            (false, true) => Mark::GdrReceive,
            (false, false) => Mark::None,
        }
    }
}

impl Matrix {
    /// What the view has.
    ///
    /// # Errors
    /// As [`View::check_p2p`].
    pub fn of(view: &View) -> Result<Matrix, RefusedView> {
        let ends: Vec<NodeIdx> = view.gpus().iter().chain(view.nets()).copied().collect();
        let mut matrix = Matrix::default();
        for &from in &ends {
            matrix.ends.push(label(&view.graph, from));
            let row = ends.iter().map(|to| cell(view, from, *to)).collect::<Result<_, _>>()?;
            matrix.cells.push(row);
            let is_gpu = view.graph.node(from).kind == NodeKind::Gpu;
            if is_gpu {
                let cpu = view.local_cpu(from)?;
                matrix.cpus.push(Some(view.graph.node(cpu).pos.to_string()));
                let others = view.gpus().iter().filter(|it| **it != from);
                let widest = others.map(|it| view.path(from, *it).width);
                matrix.widths.push(widest.reduce(|a, b| a.max(b)).map(|it| it.0));
            } else {
                matrix.cpus.push(None);
                matrix.widths.push(Some(view.graph.net(from).width.0));
            }
        }
        Ok(matrix)
    }

    /// The matrix that a log with `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH` spells out; none
    /// where it spells out none.  Of several ranks the first that wrote counts.
    pub fn in_log(log: &str) -> Option<Matrix> {
        let mut read = Log::default();
        for line in log.lines() {
            read.line(line);
        }
        read.matrix()
    }

    /// Kinds and marks, then widths, then what the words mean.
    pub fn text(&self) -> String {
        let mut head = vec![String::new()];
        head.extend(self.ends.iter().cloned());
        let has_cpus = self.cpus.iter().any(Option::is_some);
        let mut kinds = vec![head.clone()];
        if has_cpus {
            kinds[0].extend(["CPU".to_owned(), "width".to_owned()]);
        }
        let mut widths = vec![head];
        "GB/s".clone_into(&mut widths[0][0]);
        for (idx, cells) in self.cells.iter().enumerate() {
            let (mut row, mut wide) = (vec![self.ends[idx].clone()], vec![self.ends[idx].clone()]);
            for (column, cell) in cells.iter().enumerate() {
                let own = column == idx;
                let kind = cell
                    .map_or_else(|| "?".to_owned(), |it| format!("{}{}", it.kind, it.mark.sign()));
                row.push(if own { "X".to_owned() } else { kind });
                let width = cell.map_or_else(|| "?".to_owned(), |it| rounded(it.gb_per_s));
                wide.push(if own { "X".to_owned() } else { width });
            }
            if has_cpus {
                row.push(self.cpus[idx].clone().unwrap_or_else(|| "-".to_owned()));
                let width = self.widths[idx].map(|it| format!("{}GB/s", short(it)));
                row.push(width.unwrap_or_else(|| "-".to_owned()));
            }
            kinds.push(row);
            widths.push(wide);
        }
        format!("{}\n{}{}", table(&kinds), table(&widths), self.legend(has_cpus))
    }

    fn legend(&self, has_widths: bool) -> String {
        let mut out = String::from(
            "\n!  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving\n",
        );
        if has_widths {
            out.push_str("width: of a GPU's widest way to another, of a port\n");
        }
        out.push('\n');
        let cells = || self.cells.iter().enumerate();
        for kind in PathKind::ALL {
            let used = cells().any(|(row, cells)| {
                let mut others = cells.iter().enumerate().filter(|(column, _)| *column != row);
                others.any(|(_, it)| it.is_some_and(|it| it.kind == kind.name()))
            });
            if used && !matches!(kind, PathKind::Loc) {
                out.push_str(&format!("{}  {}\n", kind.name(), words(kind)));
            }
        }
        out
    }
}

fn rounded(gb_per_s: f32) -> String {
    short((gb_per_s * 10.0).round() / 10.0)
}

fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|it| it[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn cell(view: &View, from: NodeIdx, to: NodeIdx) -> Result<Option<Cell>, RefusedView> {
    let path = view.path(from, to);
    let gdr = |gpu, net| Mark::gdr(view.check_gdr(gpu, net, true), view.check_gdr(gpu, net, false));
    let mark = match (view.graph.node(from).kind, view.graph.node(to).kind) {
        _ if from == to => Mark::None,
        (NodeKind::Gpu, NodeKind::Gpu) if !view.can_p2p(from, to)? => Mark::NoP2p,
        (NodeKind::Gpu, NodeKind::Gpu) => Mark::None,
        (NodeKind::Gpu, _) => gdr(from, to),
        (_, NodeKind::Gpu) => gdr(to, from),
        _ => Mark::None,
    };
    let (kind, gb_per_s, hops) = (path.kind.name(), path.width.0, path.count);
    Ok(Some(Cell { kind, gb_per_s, hops, mark }))
}

/// A part as a log names it: its kind and NCCL's id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    is_net: bool,
    id: String,
}

/// A log as far as it was read.
#[derive(Default)]
struct Log {
    /// Whose lines count: the process and thread that first spelled out a path.
    owner: Option<String>,
    ends: Vec<Named>,
    paths: BTreeMap<(Named, Named), (&'static str, f32, u32)>,
    /// Ranks by the GPU's id.
    ranks: BTreeMap<String, i32>,
    /// By GPU and port, sending and receiving.
    gdr: BTreeMap<(String, String), [bool; 2]>,
    /// Pairs of ranks that do without P2P.
    no_p2p: Vec<(i32, i32)>,
}

impl Log {
    fn line(&mut self, line: &str) {
        let (owner, text) = line.split_once("NCCL INFO ").unwrap_or(("", line));
        if let Some((base, rest)) = text.trim().split_once(" :")
            && let Some(base) = named(base.trim())
        {
            self.path_line(owner, &base, rest);
            return;
        }
        if let Some(at) = text.find("- GPU/") {
            let mut words = text[at + 2..].split_whitespace();
            let gpu = words.next().and_then(named);
            let rank = words.next().map(|it| it.trim_matches(['(', ')']));
            if let (Some(gpu), Some(Ok(rank))) = (gpu, rank.map(str::parse)) {
                self.ranks.entry(gpu.id).or_insert(rank);
            }
        }
        self.gdr_line(text);
        self.via_line(text);
    }

    fn path_line(&mut self, owner: &str, base: &Named, rest: &str) {
        let known = self.owner.get_or_insert_with(|| owner.to_owned());
        if known != owner {
            return;
        }
        if !self.ends.contains(base) {
            self.ends.push(base.clone());
        }
        let mut words = rest.split_whitespace();
        while let (Some(name), Some(facts)) = (words.next(), words.next()) {
            let Some(end) = named(name) else { continue };
            let mut facts = facts.trim_matches(['(', ')']).split('/');
            let parsed = (|| {
                let hops = facts.next()?.parse().ok()?;
                let width: f32 = facts.next()?.parse().ok()?;
                let name = facts.next()?;
                let kind = PathKind::ALL.into_iter().find(|it| it.name() == name)?;
                width.is_finite().then_some((kind.name(), width, hops))
            })();
            if let Some(path) = parsed {
                self.paths.entry((base.clone(), end)).or_insert(path);
            }
        }
    }

    /// `GPU Direct RDMA Enabled for GPU 7000 / HCA 0 (distance 4 <= 4), read 1`.
    fn gdr_line(&mut self, text: &str) {
        let Some(rest) = text.find("GPU Direct RDMA Enabled for GPU").map(|at| &text[at + 31..])
        else {
            return;
        };
        let mut parts = rest.trim_start_matches(['/', ' ']).split_whitespace();
        let gpu = parts.next().map(local_id);
        let net = parts.skip_while(|it| *it != "HCA").nth(1).map(local_id);
        let (Some(gpu), Some(net)) = (gpu, net) else { return };
        let marks = self.gdr.entry((gpu, net)).or_default();
        match rest.find("read ").map(|at| rest.as_bytes().get(at + 5)) {
            Some(Some(b'1')) => marks[0] = true,
            Some(_) => marks[1] = true,
            None => *marks = [true, true],
        }
    }

    /// `Channel 00/0 : 0[7000] -> 1[f000] via SHM/direct`.
    fn via_line(&mut self, text: &str) {
        let Some((ends, via)) = text.split_once(" via ") else { return };
        let Some((from, to)) = ends.split_once(" -> ") else { return };
        let number = |text: &str| text.split('[').next().and_then(|it| it.trim().parse().ok());
        let from = from.rsplit([' ', ':']).find(|it| !it.is_empty()).and_then(number);
        if let (Some(from), Some(to)) = (from, number(to))
            && !via.starts_with("P2P")
        {
            self.no_p2p.push((from, to));
        }
    }

    fn matrix(mut self) -> Option<Matrix> {
        if self.paths.is_empty() {
            return None;
        }
        // GPUs by rank where it is known, then ports.
        let ranks = &self.ranks;
        self.ends.sort_by_key(|it| {
            (it.is_net, ranks.get(&it.id).copied().unwrap_or(i32::MAX), it.id.len(), it.id.clone())
        });
        let title = |it: &Named| match (it.is_net, self.ranks.get(&it.id)) {
            (true, _) => format!("NET{}", u32::from_str_radix(&it.id, 16).unwrap_or(0)),
            (false, Some(rank)) => format!("GPU{rank}"),
            (false, None) => format!("GPU/{}", it.id),
        };
        let mut matrix =
            Matrix { ends: self.ends.iter().map(title).collect(), ..Matrix::default() };
        for from in &self.ends {
            let row = self.ends.iter().map(|to| self.cell(from, to)).collect();
            matrix.cells.push(row);
            matrix.cpus.push(None);
            matrix.widths.push(None);
        }
        Some(matrix)
    }

    fn cell(&self, from: &Named, to: &Named) -> Option<Cell> {
        let (kind, gb_per_s, hops) = *self.paths.get(&(from.clone(), to.clone()))?;
        let mark = match (from.is_net, to.is_net) {
            (false, false) => {
                let ranks = self.ranks.get(&from.id).copied().zip(self.ranks.get(&to.id).copied());
                let off = ranks.is_some_and(|it| self.no_p2p.contains(&it));
                if off { Mark::NoP2p } else { Mark::None }
            }
            (true, true) => Mark::None,
            (true, false) => self.gdr_mark(to, from),
            (false, true) => self.gdr_mark(from, to),
        };
        Some(Cell { kind, gb_per_s, hops, mark })
    }

    fn gdr_mark(&self, gpu: &Named, net: &Named) -> Mark {
        let marks = self.gdr.get(&(gpu.id.clone(), net.id.clone()));
        marks.map_or(Mark::None, |[send, receive]| Mark::gdr(*send, *receive))
    }
}

/// `GPU/0-7000` or `NET/1`; of other kinds nothing.
fn named(text: &str) -> Option<Named> {
    let (kind, id) = text.split_once('/')?;
    let is_net = match kind {
        "GPU" => false,
        "NET" => true,
        _ => return None,
    };
    Some(Named { is_net, id: local_id(id) })
}

/// An id without the host's number, in small letters.
fn local_id(text: &str) -> String {
    let id = text.rsplit(['-', '/']).next().unwrap_or(text);
    id.trim_start_matches("0x").to_ascii_lowercase()
}
