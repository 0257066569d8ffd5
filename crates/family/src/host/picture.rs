//! A server as a picture in the manner of lstopo: CPUs above, PCI switches below them, GPUs and
//! ports in one row, NVLink underneath; links coloured by kind, one way drawn out.
//!
//! The picture follows the reader's light or dark theme by itself.

mod layout;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::host::level::words;
use crate::host::log::{Logged, LoggedWay};
use crate::host::nccl::graph::{Arch, Facts, Graph, LinkKind, NodeIdx, NodeKind, Vendor};
use crate::host::nccl::path::PathKind;
use crate::host::nccl::view::View;
use crate::host::picture::layout::{Area, Drawn, Hop, Layout};
use crate::host::place::{bus_text, label, ranges, short};
use crate::host::views::left_out;

/// What a picture shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The line above it.
    pub title: String,
    /// The two ends of a way that is drawn out.
    pub way: Option<(NodeIdx, NodeIdx)>,
}

/// How a picture looks.  It stands in the picture itself; a page whose policy lets no style in
/// serves it beside the picture.
///
/// It names every colour outright, and the elements carry the light ones as attributes too: many
/// viewers know no `var()`, some know no style at all, and what has no colour is drawn black.
pub const STYLE: &str = "\
text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1b2430}\
.h{font-size:18px;font-weight:600}.s{font-size:12.5px;fill:#5d6877}.n{font-size:13px;\
font-weight:600}.d{font-size:10.5px;fill:#5d6877}.w{font-size:9.5px;fill:#5d6877;\
paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}.m{text-anchor:middle}\
rect{stroke-width:1.25}.l{fill:none;stroke-linecap:round}.hot{stroke-width:2.75}\
.way{fill:none;stroke-linecap:round;stroke-linejoin:round}.halo{fill:none;\
stroke-linecap:round;opacity:.2}@media(prefers-color-scheme:dark){.bg{fill:#0f141a}\
text{fill:#e8edf3}.s,.d,.w{fill:#97a3b2}.w{stroke:#0f141a}.CPU{fill:#18263b;stroke:#4f78b3}\
.PCI{fill:#2b2416;stroke:#8d7440}.GPU{fill:#17301a;stroke:#4f9a45}.NIC{fill:#23213f;\
stroke:#716bc4}.NVS{fill:#10302a;stroke:#2f9a80}.lPCI{stroke:#d6a650}.lNVL{stroke:#62c465}\
.lSYS{stroke:#ef7474}.lNET{stroke:#9a92f5}.lC2C{stroke:#35bccb}.hot,.way,.halo{stroke:#ff8b3d}}";

/// The way that is drawn out.
const HOT: &str = "#e8590c";
/// Text that is not a name.
const MUTED: &str = "#5d6877";

/// Inside and edge of a box, by its class.
fn colours(class: &str) -> (&'static str, &'static str) {
    match class {
        "CPU" => ("#eaf1fc", "#8fadd9"),
        "PCI" => ("#faf4e6", "#d3b67c"),
        "GPU" => ("#e5f5e0", "#6fb556"),
        "NVS" => ("#dcf3ec", "#3aa78d"),
        _ => ("#ecebfb", "#958fde"),
    }
}

fn colour(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Pci => "#b9832a",
        LinkKind::Nvl => "#3d9a3f",
        LinkKind::Sys => "#cc4b4b",
        LinkKind::C2c => "#118f9e",
        LinkKind::Net | LinkKind::Loc => "#6b62cf",
    }
}

/// What is drawn.
struct Scene<'s> {
    graph: &'s Graph,
    title: &'s str,
    subtitle: String,
    /// The links on the way, in order.
    hot: Vec<Hop>,
}

/// The picture as SVG.
pub fn svg(view: &View, picture: &Picture) -> String {
    drawn(&scene(view, picture), &styled())
}

/// The same without its style, for a page that has it.
pub fn svg_without_style(view: &View, picture: &Picture) -> String {
    drawn(&scene(view, picture), "")
}

/// The same of a server that a log shows; none where the log has no tree.
pub fn svg_of_log(logged: &Logged, title: &str, way: Option<&LoggedWay>) -> Option<String> {
    Some(drawn(&scene_of_log(logged, title, way)?, &styled()))
}

/// The same without its style.
pub fn svg_of_log_without_style(
    logged: &Logged,
    title: &str,
    way: Option<&LoggedWay>,
) -> Option<String> {
    Some(drawn(&scene_of_log(logged, title, way)?, ""))
}

fn styled() -> String {
    format!("<style>{STYLE}</style>\n")
}

fn scene<'s>(view: &'s View, picture: &'s Picture) -> Scene<'s> {
    let graph = &view.graph;
    let mut subtitle = format!("NCCL {}, {}", view.ask.profile, counts(graph));
    let gone = left_out(view);
    if !gone.is_empty() {
        let (rank, gone) = (view.ask.rank, ranges("GPU", &gone));
        subtitle.push_str(&format!("; rank {rank}'s view, which leaves out {gone}"));
    }
    let mut hot = Vec::new();
    if let Some((from, to)) = picture.way {
        let path = view.path(from, to);
        subtitle.push_str(&told(graph, [from, to], (path.kind, path.width.0, path.count)));
        let mut at = from;
        for hop in view.paths.hops(path) {
            let link = &graph.node(hop.node).links[hop.link as usize];
            hot.push((at, link.peer, link.kind));
            at = link.peer;
        }
    }
    Scene { graph, title: &picture.title, subtitle, hot: between_boxes(graph, &hot) }
}

fn scene_of_log<'s>(
    logged: &'s Logged,
    title: &'s str,
    way: Option<&LoggedWay>,
) -> Option<Scene<'s>> {
    let graph = logged.graph.as_ref()?;
    let mut subtitle = match logged.release {
        Some(release) => format!("from a log of NCCL {release}, {}", counts(graph)),
        None => format!("from a log of NCCL's, {}", counts(graph)),
    };
    let mut hot = Vec::new();
    if let Some(way) = way
        && let (Some(&from), Some(&to)) = (way.nodes.first(), way.nodes.last())
    {
        subtitle.push_str(&told(graph, [from, to], (way.kind, way.gb_per_s, way.count)));
        let widest = |from: NodeIdx, to: NodeIdx| {
            let links = graph.node(from).links.iter().filter(|it| it.peer == to);
            links.max_by(|a, b| a.width.0.total_cmp(&b.width.0)).map(|it| it.kind)
        };
        let hops =
            way.nodes.windows(2).filter_map(|it| Some((it[0], it[1], widest(it[0], it[1])?)));
        hot = between_boxes(graph, &hops.collect::<Vec<Hop>>());
    }
    Some(Scene { graph, title, subtitle, hot })
}

fn counts(graph: &Graph) -> String {
    let plural = |kind: NodeKind, word: &str| {
        let n = graph.kind(kind).len();
        format!("{n} {word}{}", if n == 1 { "" } else { "s" })
    };
    format!("{}, {}", plural(NodeKind::Gpu, "GPU"), plural(NodeKind::Net, "port"))
}

fn told(graph: &Graph, ends: [NodeIdx; 2], (kind, gb_per_s, hops): (PathKind, f32, u32)) -> String {
    let [a, b] = ends.map(|it| label(graph, it));
    let (name, far, width) = (kind.name(), words(kind), short(gb_per_s));
    format!("; {a} to {b}: {name} ({far}), {width} GB/s, {hops} hops")
}

/// The hops of a way that lead from one box to another.
fn between_boxes(graph: &Graph, hops: &[Hop]) -> Vec<Hop> {
    let shown = |it| layout::shown(graph, it);
    let hops = hops.iter().map(|&(from, to, kind)| (shown(from), shown(to), kind));
    hops.filter(|it| it.0 != it.1).collect()
}

fn drawn(scene: &Scene<'_>, style: &str) -> String {
    let layout = Layout::of(scene.graph, &scene.hot);
    let height = layout.height + 96.0;
    let (legend, legend_width) = legend(&layout, height - 16.0);
    // As wide as usual letters of the two lines above it.
    let head = 11.0 * scene.title.chars().count() as f32;
    let head = head.max(6.6 * scene.subtitle.chars().count() as f32) + 48.0;
    let width = layout.width.max(legend_width).max(head).max(560.0);
    let mut out = String::new();
    let title = escaped(scene.title);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n\
         {style}<rect class=\"bg\" width=\"100%\" height=\"100%\" rx=\"10\" \
         fill=\"#ffffff\" stroke=\"none\"/>\n<text class=\"h\" x=\"24\" y=\"34\" \
         fill=\"#1b2430\">{title}</text>\n\
         <text class=\"s\" x=\"24\" y=\"54\" fill=\"{MUTED}\">{}</text>",
        escaped(&scene.subtitle),
    );
    let _ = writeln!(out, "<g transform=\"translate({:.1},72)\">", (width - layout.width) / 2.0);
    draw_links(scene, &layout, &mut out);
    draw_boxes(scene, &layout, &mut out);
    draw_widths(&layout, &mut out);
    out.push_str("</g>\n");
    out.push_str(&legend);
    out.push_str("</svg>\n");
    out
}

fn draw_links(scene: &Scene<'_>, layout: &Layout, out: &mut String) {
    let (graph, hot) = (scene.graph, &scene.hot);
    draw_way(layout, hot, out);
    for link in &layout.links {
        let (kind, stroke) = (link.kind.name(), link.stroke());
        let width = short(link.gb_per_s);
        let title = match link.stands_for {
            Some(n) => format!("each CPU to each, {n} links: {kind} {width} GB/s"),
            None => {
                let (a, b) = (label(graph, link.a), label(graph, link.b));
                format!("{a} - {b}: {kind} {width} GB/s")
            }
        };
        let _ = writeln!(
            out,
            "<path class=\"l l{kind}\" d=\"{}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"{stroke:.1}\">\
             <title>{}</title></path>",
            link.shape,
            colour(link.kind),
            escaped(&title)
        );
    }
}

/// The way that is drawn out, as an edge around its links, whose own colours stay to be seen.
fn draw_way(layout: &Layout, hot: &[Hop], out: &mut String) {
    let on_way = |it: &&Drawn| {
        let ends = [(it.a, it.b, it.kind), (it.b, it.a, it.kind)];
        it.stands_for.is_none() && hot.iter().any(|it| ends.contains(it))
    };
    let ways: Vec<&Drawn> = layout.links.iter().filter(on_way).collect();
    for (class, opacity) in [("halo", "0.2"), ("way", "1")] {
        for link in &ways {
            let width = if class == "way" { link.stroke() + 4.5 } else { link.stroke() + 12.0 };
            let _ = writeln!(
                out,
                "<path class=\"{class}\" d=\"{}\" fill=\"none\" stroke=\"{HOT}\" \
                 stroke-width=\"{width:.1}\" opacity=\"{opacity}\"/>",
                link.shape
            );
        }
    }
}

fn draw_boxes(scene: &Scene<'_>, layout: &Layout, out: &mut String) {
    let (graph, hot) = (scene.graph, &scene.hot);
    for (node, area) in &layout.boxes {
        let it = graph.node(*node);
        let class = match it.kind {
            NodeKind::Dev => "GPU",
            kind => kind.name(),
        };
        let ports: Vec<NodeIdx> = layout.ports.get(node).cloned().unwrap_or_default();
        let is_end = |at: &NodeIdx| hot.iter().any(|it| it.0 == *at || it.1 == *at);
        let is_hot = is_end(node) || ports.iter().any(is_end);
        let (hot, (fill, edge)) = (if is_hot { " hot" } else { "" }, colours(class));
        let edge = if is_hot { HOT } else { edge };
        let Area { x, y, w, h } = *area;
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect class=\"{class}{hot}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{w:.1}\" height=\"{h:.1}\" rx=\"6\" fill=\"{fill}\" stroke=\"{edge}\"/>",
            escaped(&hint(graph, *node, &ports))
        );
        let mut lines = lines(graph, *node, &ports);
        if w < PCI_NAMED && matches!(it.facts, Facts::Pci(_)) {
            // What it is is said where one points at it.
            lines.iter_mut().for_each(|(_, it)| *it = it.replace("PCI switch", "PCI"));
        }
        let middle = x + w / 2.0;
        let step = 14.0;
        let top = y + h / 2.0 - step * (lines.len() as f32 - 1.0) / 2.0 + 4.5;
        for (idx, (class, line)) in lines.iter().enumerate() {
            let y = top + step * idx as f32;
            let line = escaped(line);
            let fill = if *class == "n" { "#1b2430" } else { MUTED };
            let _ = writeln!(
                out,
                "<text class=\"{class} m\" x=\"{middle:.1}\" y=\"{y:.1}\" \
                 fill=\"{fill}\">{line}</text>"
            );
        }
        out.push_str("</g>\n");
    }
}

/// What the numbers beside links are.
const FIGURES: &str = "figures: GB/s each way";

/// The least box in which a PCI switch is called so in full.
const PCI_NAMED: f32 = 104.0;

/// What stands in a box.
fn lines(graph: &Graph, node: NodeIdx, ports: &[NodeIdx]) -> Vec<(&'static str, String)> {
    let it = graph.node(node);
    let bus = || {
        let text = bus_text(it.id);
        text.strip_prefix("0000:").map_or_else(|| text.clone(), str::to_owned)
    };
    match &it.facts {
        Facts::Gpu { gpu, .. } => {
            // A log names neither compute capability nor, of some versions, the rank.
            let rank = if gpu.rank < 0 { "GPU".to_owned() } else { format!("GPU{}", gpu.rank) };
            let sm = (0 < gpu.sm).then(|| ("d", format!("sm{}", gpu.sm)));
            [("n", rank)].into_iter().chain(sm).chain([("d", bus())]).collect()
        }
        Facts::Cpu(cpu) => {
            let maker = match cpu.vendor {
                Some(Vendor::Intel) => "Intel",
                Some(Vendor::Amd) => "AMD",
                Some(Vendor::Zhaoxin) => "Zhaoxin",
                Some(Vendor::Unknown) | None => match cpu.arch {
                    Some(Arch::Arm) => "Arm",
                    Some(Arch::Power) => "POWER",
                    _ => "",
                },
            };
            vec![("n", label(graph, node)), ("d", maker.to_owned())]
        }
        Facts::Pci(_) => vec![("d", format!("PCI switch {}", bus()))],
        Facts::Nvs => vec![("n", "NVSwitch".to_owned())],
        Facts::Nic => {
            let port = |net: &NodeIdx| {
                let name = label(graph, *net);
                let width = short(graph.net(*net).width.0);
                [("n", name), ("d", format!("{width} GB/s"))]
            };
            // Of many ports on one card the first stands for all.
            let mut lines: Vec<(&str, String)> = ports.iter().take(1).flat_map(port).collect();
            if ports.len() > 1 {
                lines.push(("d", format!("and {} more", ports.len() - 1)));
            } else if it.id & (u64::MAX >> 8) != 0 {
                // A card below the CPU itself is on no bus.
                lines.push(("d", bus()));
            }
            lines
        }
        Facts::Net(_) | Facts::Face | Facts::Dev { .. } => vec![("n", label(graph, node))],
    }
}

fn hint(graph: &Graph, node: NodeIdx, ports: &[NodeIdx]) -> String {
    let mut text = label(graph, node);
    for port in ports {
        let _ = write!(text, ", {}", label(graph, *port));
    }
    text
}

/// Figures beside links, at most one for each place.
fn draw_widths(layout: &Layout, out: &mut String) {
    for link in &layout.links {
        if let Some((x, y)) = link.figure {
            let text = short((link.gb_per_s * 10.0).round() / 10.0);
            let _ = writeln!(
                out,
                "<text class=\"w m\" x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{MUTED}\">{text}</text>"
            );
        }
    }
}

/// What the colours of links mean, at the height `y`; also how wide a picture must be for it.
fn legend(layout: &Layout, y: f32) -> (String, f32) {
    let mut out = String::new();
    let mut kinds: BTreeMap<LinkKind, usize> = BTreeMap::new();
    for link in &layout.links {
        *kinds.entry(link.kind).or_default() += 1;
    }
    let has_trunk = layout.links.iter().any(|it| it.stands_for.is_some());
    let mut x = 24.0;
    for kind in kinds.keys() {
        let text = match kind {
            LinkKind::Nvl => "NVLink",
            LinkKind::C2c => "chip to chip",
            LinkKind::Pci => "PCI",
            LinkKind::Sys if has_trunk => "between CPUs, each to each",
            LinkKind::Sys => "between CPUs",
            LinkKind::Net => "network",
            LinkKind::Loc => continue,
        };
        let (name, stroke) = (kind.name(), colour(*kind));
        let _ = writeln!(
            out,
            "<path class=\"l l{name}\" d=\"M{x:.0} {:.1}h26\" stroke=\"{stroke}\" \
             stroke-width=\"3\"/>\
             <text class=\"s\" x=\"{:.0}\" y=\"{y:.1}\" fill=\"{MUTED}\">{text}</text>",
            y - 4.0,
            x + 33.0
        );
        x += 60.0 + 7.0 * text.len() as f32;
    }
    let _ = writeln!(
        out,
        "<text class=\"s\" x=\"{x:.0}\" y=\"{y:.1}\" fill=\"{MUTED}\">{FIGURES}</text>"
    );
    (out, x + 7.0 * FIGURES.len() as f32 + 24.0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
