//! How far apart GPUs and ports are, as a matrix.  Another is made by `log`.

use serde::Serialize;

use crate::host::level::words;
use crate::host::nccl::graph::{NodeIdx, NodeKind};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::{RefusedView, View};
use crate::host::place::{label, numa, short};

/// Rows and columns are GPUs and ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Matrix {
    /// The GPUs and ports.
    pub ends: Vec<String>,
    /// Row by row; none where nothing is known.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// By row the NUMA number of the nearest CPU; none of a port.
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
    /// GPUDirect RDMA for sending; a log does not say whether for receiving.
    GdrSendAtLeast,
    /// GPUDirect RDMA for receiving; a log does not say whether for sending.
    GdrReceiveAtLeast,
    /// A log does not say.
    Untold,
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
            Mark::GdrSendAtLeast => "s?",
            Mark::GdrReceiveAtLeast => "r?",
            Mark::Untold => "?",
        }
    }

    pub(crate) fn gdr(send: bool, receive: bool) -> Mark {
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
                matrix.cpus.push(Some(numa(&view.graph, cpu)));
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

    /// Kinds and marks, then widths, then what the words mean.
    pub fn text(&self) -> String {
        let mut head = vec![String::new()];
        head.extend(self.ends.iter().cloned());
        let has_cpus = self.cpus.iter().any(Option::is_some);
        let has_widths = self.widths.iter().any(Option::is_some);
        let mut kinds = vec![head.clone()];
        kinds[0].extend(has_cpus.then(|| "CPU".to_owned()));
        kinds[0].extend(has_widths.then(|| "width".to_owned()));
        let mut widths = vec![head];
        "GB/s".clone_into(&mut widths[0][0]);
        for (idx, cells) in self.cells.iter().enumerate() {
            let (mut row, mut wide) = (vec![self.ends[idx].clone()], vec![self.ends[idx].clone()]);
            for (column, cell) in cells.iter().enumerate() {
                let own = column == idx;
                let kind = cell
                    .map_or_else(|| "?".to_owned(), |it| format!("{}{}", it.kind, it.mark.sign()));
                row.push(if own { "X".to_owned() } else { kind });
                let width = cell.map_or_else(|| "?".to_owned(), |it| short(it.gb_per_s));
                wide.push(if own { "X".to_owned() } else { width });
            }
            if has_cpus {
                row.push(self.cpus[idx].clone().unwrap_or_else(|| "-".to_owned()));
            }
            if has_widths {
                let width = self.widths[idx].map(|it| format!("{}GB/s", short(it)));
                row.push(width.unwrap_or_else(|| "-".to_owned()));
            }
            kinds.push(row);
            widths.push(wide);
        }
        format!("{}\n{}{}", table(&kinds), table(&widths), self.legend(has_widths))
    }

    fn legend(&self, has_widths: bool) -> String {
        let mut out = String::from(
            "\n!  no P2P between the two    *  GPUDirect RDMA    s, r  only for sending, receiving\n",
        );
        let has = |signs: &[&str]| {
            let mut marks = self.cells.iter().flatten().flatten().map(|it| it.mark.sign());
            marks.any(|it| signs.contains(&it))
        };
        let mut others = self.cells.iter().enumerate().flat_map(|(row, cells)| {
            cells.iter().enumerate().filter(move |it| it.0 != row).map(|it| it.1)
        });
        if others.any(Option::is_none) {
            out.push_str("? alone  the log says nothing of the way\n");
        }
        if has(&["?"]) {
            out.push_str("? behind a kind  the log does not say whether\n");
        }
        if has(&["s?", "r?"]) {
            out.push_str(
                "s?, r?  for sending, receiving; the log does not say whether for the other too\n",
            );
        }
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
