//! A server as a picture in the manner of lstopo: CPUs above, PCI switches below them, GPUs and
//! ports in one row, NVLink underneath; links coloured by kind, one way drawn out.
//!
//! The picture follows the reader's light or dark theme by itself.

mod layout;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::host::level::words;
use crate::host::nccl::graph::{Facts, LinkKind, NodeIdx, NodeKind, Vendor};
use crate::host::nccl::view::View;
use crate::host::picture::layout::{Area, Layout};
use crate::host::place::{bus_text, label, short};

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
pub const STYLE: &str = "\
svg{--bg:#ffffff;--ink:#1b2430;--mut:#5d6877;--cpu:#eaf1fc;--cpus:#8fadd9;--pci:#faf4e6;\
--pcis:#d3b67c;--gpu:#e5f5e0;--gpus:#6fb556;--nic:#ecebfb;--nics:#958fde;--nvs:#dcf3ec;\
--nvss:#3aa78d;--PCI:#b9832a;--NVL:#3d9a3f;--SYS:#cc4b4b;--NET:#6b62cf;--C2C:#118f9e;--hot:#e8590c}\
@media(prefers-color-scheme:dark){svg{--bg:#0f141a;--ink:#e8edf3;--mut:#97a3b2;--cpu:#18263b;\
--cpus:#4f78b3;--pci:#2b2416;--pcis:#8d7440;--gpu:#17301a;--gpus:#4f9a45;--nic:#23213f;\
--nics:#716bc4;--nvs:#10302a;--nvss:#2f9a80;--PCI:#d6a650;--NVL:#62c465;--SYS:#ef7474;\
--NET:#9a92f5;--C2C:#35bccb;--hot:#ff8b3d}}\
text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:var(--ink)}\
.h{font-size:18px;font-weight:600}.s{font-size:12.5px;fill:var(--mut)}.n{font-size:13px;\
font-weight:600}.d{font-size:10.5px;fill:var(--mut)}.w{font-size:9.5px;fill:var(--mut);\
paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}.m{text-anchor:middle}\
rect{stroke-width:1.25}.CPU{fill:var(--cpu);stroke:var(--cpus)}.PCI{fill:var(--pci);\
stroke:var(--pcis)}.GPU{fill:var(--gpu);stroke:var(--gpus)}.NIC{fill:var(--nic);\
stroke:var(--nics)}.NVS{fill:var(--nvs);stroke:var(--nvss)}.l{fill:none;stroke-linecap:round}\
.hot{stroke:var(--hot);stroke-width:2.75}.way{fill:none;stroke:var(--hot);stroke-width:4.5;\
stroke-linecap:round;stroke-linejoin:round}.halo{fill:none;stroke:var(--hot);stroke-width:12;\
stroke-linecap:round;opacity:.2}";

/// The picture as SVG.
pub fn svg(view: &View, picture: &Picture) -> String {
    drawn(view, picture, &format!("<style>{STYLE}</style>\n"))
}

/// The same without its style, for a page that has it.
pub fn svg_without_style(view: &View, picture: &Picture) -> String {
    drawn(view, picture, "")
}

fn drawn(view: &View, picture: &Picture, style: &str) -> String {
    let layout = Layout::of(view);
    let (width, height) = (layout.width.max(560.0), layout.height + 96.0);
    let mut out = String::new();
    let title = escaped(&picture.title);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{title}</title>\n\
         {style}<rect width=\"100%\" height=\"100%\" rx=\"10\" \
         fill=\"var(--bg)\" stroke=\"none\"/>\n<text class=\"h\" x=\"24\" y=\"34\">{title}</text>\n\
         <text class=\"s\" x=\"24\" y=\"54\">{}</text>",
        escaped(&subtitle(view, picture)),
    );
    let _ = writeln!(out, "<g transform=\"translate({:.1},72)\">", (width - layout.width) / 2.0);
    let hot = stations(view, picture);
    draw_links(view, &layout, &hot, &mut out);
    draw_boxes(view, &layout, &hot, &mut out);
    draw_widths(&layout, &mut out);
    out.push_str("</g>\n");
    legend(&layout, height - 16.0, &mut out);
    out.push_str("</svg>\n");
    out
}

fn subtitle(view: &View, picture: &Picture) -> String {
    let (gpus, nets) = (view.gpus().len(), view.nets().len());
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut line =
        format!("NCCL {}, {}, {}", view.ask.profile, plural(gpus, "GPU"), plural(nets, "port"));
    if let Some((from, to)) = picture.way {
        let path = view.path(from, to);
        let (a, b) = (label(&view.graph, from), label(&view.graph, to));
        let (kind, far) = (path.kind.name(), words(path.kind));
        let width = short(path.width.0);
        let _ = write!(line, "; {a} to {b}: {kind} ({far}), {width} GB/s, {} hops", path.count);
    }
    line
}

/// The boxes on the way, in order.
fn stations(view: &View, picture: &Picture) -> Vec<NodeIdx> {
    let Some((from, to)) = picture.way else { return Vec::new() };
    let mut stations = vec![from];
    for hop in view.paths.hops(view.path(from, to)) {
        stations.push(view.graph.node(hop.node).links[hop.link as usize].peer);
    }
    let mut stations: Vec<NodeIdx> =
        stations.into_iter().map(|it| layout::shown(view, it)).collect();
    stations.dedup();
    stations
}

fn draw_links(view: &View, layout: &Layout, hot: &[NodeIdx], out: &mut String) {
    for link in &layout.links {
        let (kind, stroke) = (link.kind.name(), link.stroke());
        let title = format!(
            "{} - {}: {kind} {} GB/s",
            label(&view.graph, link.a),
            label(&view.graph, link.b),
            short(link.gb_per_s)
        );
        let _ = writeln!(
            out,
            "<path class=\"l\" d=\"{}\" stroke=\"var(--{kind})\" \
             stroke-width=\"{stroke:.1}\">\
             <title>{}</title></path>",
            link.shape,
            escaped(&title)
        );
    }
    let on_way = |a: NodeIdx, b: NodeIdx| hot.windows(2).any(|it| *it == [a, b] || *it == [b, a]);
    let ways: Vec<&str> =
        layout.links.iter().filter(|it| on_way(it.a, it.b)).map(|it| it.shape.as_str()).collect();
    for class in ["halo", "way"] {
        for shape in &ways {
            let _ = writeln!(out, "<path class=\"{class}\" d=\"{shape}\"/>");
        }
    }
}

fn draw_boxes(view: &View, layout: &Layout, hot: &[NodeIdx], out: &mut String) {
    for (node, area) in &layout.boxes {
        let it = view.graph.node(*node);
        let class = match it.kind {
            NodeKind::Dev => "GPU",
            kind => kind.name(),
        };
        let ports: Vec<NodeIdx> = layout.ports.get(node).cloned().unwrap_or_default();
        let is_hot = hot.contains(node) || ports.iter().any(|it| hot.contains(it));
        let hot = if is_hot { " hot" } else { "" };
        let Area { x, y, w, h } = *area;
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect class=\"{class}{hot}\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{w:.1}\" height=\"{h:.1}\" rx=\"6\"/>",
            escaped(&hint(view, *node, &ports))
        );
        let lines = lines(view, *node, &ports);
        let middle = x + w / 2.0;
        let step = 14.0;
        let top = y + h / 2.0 - step * (lines.len() as f32 - 1.0) / 2.0 + 4.5;
        for (idx, (class, line)) in lines.iter().enumerate() {
            let y = top + step * idx as f32;
            let line = escaped(line);
            let _ = writeln!(
                out,
                "<text class=\"{class} m\" x=\"{middle:.1}\" y=\"{y:.1}\">{line}</text>"
            );
        }
        out.push_str("</g>\n");
    }
}

/// What stands in a box.
fn lines(view: &View, node: NodeIdx, ports: &[NodeIdx]) -> Vec<(&'static str, String)> {
    let it = view.graph.node(node);
    let bus = || {
        let text = bus_text(it.id);
        text.strip_prefix("0000:").map_or_else(|| text.clone(), str::to_owned)
    };
    match &it.facts {
        Facts::Gpu { gpu, .. } => {
            vec![("n", format!("GPU{}", gpu.rank)), ("d", format!("sm{}", gpu.sm)), ("d", bus())]
        }
        Facts::Cpu(cpu) => {
            let maker = match cpu.vendor {
                Some(Vendor::Intel) => "Intel",
                Some(Vendor::Amd) => "AMD",
                Some(Vendor::Zhaoxin) => "Zhaoxin",
                Some(Vendor::Unknown) | None => "",
            };
            vec![("n", label(&view.graph, node)), ("d", maker.to_owned())]
        }
        Facts::Pci(_) => vec![("d", format!("PCI switch {}", bus()))],
        Facts::Nvs => vec![("n", "NVSwitch".to_owned())],
        Facts::Nic => {
            let port = |net: &NodeIdx| {
                let name = label(&view.graph, *net);
                let width = short(view.graph.net(*net).width.0);
                [("n", name), ("d", format!("{width} GB/s"))]
            };
            // Of many ports on one card the first stands for all.
            let mut lines: Vec<(&str, String)> = ports.iter().take(1).flat_map(port).collect();
            if ports.len() > 1 {
                lines.push(("d", format!("and {} more", ports.len() - 1)));
            } else {
                lines.push(("d", bus()));
            }
            lines
        }
        Facts::Net(_) | Facts::Face | Facts::Dev { .. } => vec![("n", label(&view.graph, node))],
    }
}

fn hint(view: &View, node: NodeIdx, ports: &[NodeIdx]) -> String {
    let mut text = label(&view.graph, node);
    for port in ports {
        let _ = write!(text, ", {}", label(&view.graph, *port));
    }
    text
}

/// Figures beside links, at most one for each place.
fn draw_widths(layout: &Layout, out: &mut String) {
    for link in &layout.links {
        if let Some((x, y)) = link.figure {
            let text = short((link.gb_per_s * 10.0).round() / 10.0);
            let _ = writeln!(out, "<text class=\"w m\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
        }
    }
}

fn legend(layout: &Layout, y: f32, out: &mut String) {
    let mut kinds: BTreeMap<LinkKind, usize> = BTreeMap::new();
    for link in &layout.links {
        *kinds.entry(link.kind).or_default() += 1;
    }
    let mut x = 24.0;
    for kind in kinds.keys() {
        let text = match kind {
            LinkKind::Nvl => "NVLink",
            LinkKind::C2c => "chip to chip",
            LinkKind::Pci => "PCI",
            LinkKind::Sys => "between CPUs",
            LinkKind::Net => "network",
            LinkKind::Loc => continue,
        };
        let name = kind.name();
        let _ = writeln!(
            out,
            "<path class=\"l\" d=\"M{x:.0} {:.1}h26\" stroke=\"var(--{name})\" \
             stroke-width=\"3\"/>\
             <text class=\"s\" x=\"{:.0}\" y=\"{y:.1}\">{text}</text>",
            y - 4.0,
            x + 33.0
        );
        x += 60.0 + 7.0 * text.len() as f32;
    }
    let _ =
        writeln!(out, "<text class=\"s\" x=\"{x:.0}\" y=\"{y:.1}\">figures: GB/s each way</text>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
