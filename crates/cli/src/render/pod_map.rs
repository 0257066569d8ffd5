//! A picture of a pod: each cube a tile of its 64 chips, coloured by the job that holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::render::{clip, number};

/// What the picture shows.
#[derive(Clone, Debug)]
pub(crate) struct PodMap {
    /// Such as `TPUv4 pod, pod0`.
    pub(crate) title: String,
    /// Such as `3,584 of 4,096 chips in use`.
    pub(crate) subtitle: String,
    /// In the order in which they are drawn, eight a row.
    pub(crate) cubes: Vec<Tile>,
    /// Those that hold chips, by number.
    pub(crate) jobs: BTreeMap<u32, MapJob>,
}

/// One cube.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) name: String,
    /// Its chips, machine by machine, four each.
    pub(crate) chips: Vec<Seat>,
}

/// One chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) job: Option<u32>,
    pub(crate) is_out: bool,
}

/// One job.
#[derive(Clone, Debug)]
pub(crate) struct MapJob {
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) chips: u32,
}

const TILE: usize = 96;
const PITCH: usize = TILE + 10;
const COLUMNS: usize = 8;
const LEFT: usize = 32;
const TOP: usize = 104;
const LEGEND_WIDTH: usize = 320;
const LEGEND_ROW: usize = 26;
/// Jobs listed beside the map; the smallest are counted only.
const LEGEND_MAX: usize = 28;

const STYLE: &str = "text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',\
    sans-serif;fill:#1f2733}.h{font-size:24px;font-weight:600}.s{font-size:14px;fill:#5b6675}\
    .c{font-size:10px;fill:#5b6675}.n{font-size:13px;font-weight:600}.d{font-size:11px}\
    .e{text-anchor:end}.m{text-anchor:middle}";

/// A map with the rank of each job on it by size, which is its colour: the large ones, which one
/// sees first, differ most.
struct Drawn<'a> {
    map: &'a PodMap,
    rank: BTreeMap<u32, usize>,
}

impl<'a> Drawn<'a> {
    fn new(map: &'a PodMap) -> Self {
        let rank = by_size(map).into_iter().enumerate().map(|(rank, (id, _))| (id, rank)).collect();
        Self { map, rank }
    }

    fn colour(&self, job: u32, shade: Shade) -> String {
        colour(self.rank.get(&job).copied().unwrap_or(self.rank.len()), shade)
    }
}

/// The largest first.
fn by_size(map: &PodMap) -> Vec<(u32, &MapJob)> {
    let mut jobs: Vec<(u32, &MapJob)> = map.jobs.iter().map(|(id, job)| (*id, job)).collect();
    jobs.sort_by_key(|(id, job)| (std::cmp::Reverse(job.chips), *id));
    jobs
}

/// The picture as a whole SVG file.
pub(crate) fn svg(map: &PodMap) -> String {
    let drawn = Drawn::new(map);
    let n_rows = map.cubes.len().div_ceil(COLUMNS).max(1);
    let legend_rows = map.jobs.len().min(LEGEND_MAX + 1) + 1;
    let width = LEFT + COLUMNS * PITCH + 24 + LEGEND_WIDTH;
    let height = TOP + (n_rows * PITCH).max(legend_rows * LEGEND_ROW) + 56;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n\
         <defs><pattern id=\"out\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"#fdecec\"/>\
         <rect width=\"2.4\" height=\"7\" fill=\"#d64545\"/></pattern></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text class=\"h\" x=\"{LEFT}\" y=\"48\">{title}</text>\n\
         <text class=\"s\" x=\"{LEFT}\" y=\"74\">{subtitle}</text>\n",
        title = escape(&map.title),
        subtitle = escape(&map.subtitle),
    );
    for (idx, tile) in map.cubes.iter().enumerate() {
        let at = (LEFT + idx % COLUMNS * PITCH, TOP + idx / COLUMNS * PITCH);
        draw_tile(&mut out, tile, at, &drawn);
    }
    draw_legend(&mut out, &drawn, LEFT + COLUMNS * PITCH + 24);
    draw_key(&mut out, height - 28);
    out.push_str("</svg>\n");
    out
}

fn draw_tile(out: &mut String, tile: &Tile, (x, y): (usize, usize), drawn: &Drawn<'_>) {
    let map = drawn.map;
    let jobs: BTreeSet<Option<u32>> = tile.chips.iter().map(|it| it.job).collect();
    let any_out = tile.chips.iter().any(|it| it.is_out);
    let whole = match jobs.first() {
        Some(job) if jobs.len() == 1 && !any_out => Some(*job),
        _ => None,
    };
    let tip = tile_tip(tile, map);
    put(out, format_args!("<g><title>{}</title>", escape(&tip)));
    let (fill, edge) = match whole {
        Some(Some(job)) => (drawn.colour(job, Shade::Fill), drawn.colour(job, Shade::Edge)),
        Some(None) | None => ("#f4f6f8".to_owned(), "#dde2e8".to_owned()),
    };
    put(
        out,
        format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{TILE}\" height=\"{TILE}\" rx=\"8\" \
             fill=\"{fill}\" stroke=\"{edge}\"/>"
        ),
    );
    match whole {
        Some(Some(job)) => {
            if let Some(job) = map.jobs.get(&job) {
                draw_name(out, job, (x + TILE / 2, y + TILE / 2));
            }
        }
        Some(None) => {}
        None => draw_chips(out, tile, (x, y), drawn),
    }
    put(
        out,
        format_args!(
            "<text class=\"c\" x=\"{}\" y=\"{}\">{}</text></g>\n",
            x + 7,
            y + 15,
            escape(&clip(&tile.name, 14))
        ),
    );
}

fn draw_name(out: &mut String, job: &MapJob, (x, y): (usize, usize)) {
    let (shape, twist) = match job.shape.strip_suffix("_twisted") {
        Some(shape) => (shape, "twisted"),
        None => (job.shape.as_str(), ""),
    };
    for (class, y, text) in [
        ("n", y + 4, clip(&job.name, 10)),
        ("d", y + 20, clip(shape, 13)),
        ("d", y + 34, twist.into()),
    ] {
        if !text.is_empty() {
            let text = escape(&text);
            put(out, format_args!("<text class=\"{class} m\" x=\"{x}\" y=\"{y}\">{text}</text>"));
        }
    }
}

/// Four by four machines of two by two chips.
fn draw_chips(out: &mut String, tile: &Tile, (x, y): (usize, usize), drawn: &Drawn<'_>) {
    for (idx, seat) in tile.chips.iter().enumerate() {
        let (machine, chip) = (idx / 4, idx % 4);
        let left = x + 10 + machine % 4 * 20 + chip % 2 * 9;
        let top = y + 20 + machine / 4 * 18 + chip / 2 * 8;
        let fill = match (seat.is_out, seat.job) {
            (true, _) => "url(#out)".to_owned(),
            (false, Some(job)) => drawn.colour(job, Shade::Strong),
            (false, None) => "#e3e8ee".to_owned(),
        };
        put(
            out,
            format_args!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"8\" height=\"7\" rx=\"1.5\" \
                 fill=\"{fill}\"/>"
            ),
        );
    }
}

fn draw_legend(out: &mut String, drawn: &Drawn<'_>, left: usize) {
    let jobs = by_size(drawn.map);
    let head = number::counted(jobs.len() as u64, "job");
    put(out, format_args!("<text class=\"n\" x=\"{left}\" y=\"{}\">{head} here</text>", TOP + 12));
    for (row, (id, job)) in jobs.iter().take(LEGEND_MAX).enumerate() {
        let y = TOP + 36 + row * LEGEND_ROW;
        let (fill, edge) = (drawn.colour(*id, Shade::Fill), drawn.colour(*id, Shade::Edge));
        let name = escape(&clip(&job.name, 16));
        put(
            out,
            format_args!(
                "<rect x=\"{left}\" y=\"{}\" width=\"16\" height=\"16\" rx=\"4\" \
                 fill=\"{fill}\" stroke=\"{edge}\"/>\
                 <text class=\"d\" x=\"{}\" y=\"{y}\">{id} {name}</text>\
                 <text class=\"d e\" x=\"{}\" y=\"{y}\">{}</text>\
                 <text class=\"d e\" x=\"{}\" y=\"{y}\">{}</text>\n",
                y - 12,
                left + 24,
                left + 236,
                escape(&clip(&job.shape, 16)),
                left + LEGEND_WIDTH - 32,
                number::grouped(u64::from(job.chips)),
            ),
        );
    }
    if LEGEND_MAX < jobs.len() {
        let n = number::counted((jobs.len() - LEGEND_MAX) as u64, "smaller job");
        let y = TOP + 36 + LEGEND_MAX * LEGEND_ROW;
        put(out, format_args!("<text class=\"d\" x=\"{}\" y=\"{y}\">and {n}</text>", left + 24));
    }
}

fn draw_key(out: &mut String, y: usize) {
    let mut x = LEFT;
    for (fill, edge, text) in
        [("#f4f6f8", "#dde2e8", "free cube"), ("url(#out)", "#d64545", "out of use")]
    {
        put(
            out,
            format_args!(
                "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"14\" rx=\"3\" fill=\"{fill}\" \
                 stroke=\"{edge}\"/><text class=\"d\" x=\"{}\" y=\"{y}\">{text}</text>",
                y - 11,
                x + 21
            ),
        );
        x += 110;
    }
    put(
        out,
        format_args!(
            "<text class=\"d\" x=\"{x}\" y=\"{y}\">a tile is a cube of 64 chips; where several \
             jobs share one, each square is a chip</text>\n"
        ),
    );
}

fn tile_tip(tile: &Tile, map: &PodMap) -> String {
    let jobs: BTreeSet<u32> = tile.chips.iter().filter_map(|it| it.job).collect();
    let names = jobs.iter().filter_map(|id| map.jobs.get(id).map(|it| (id, it)));
    let names: Vec<String> =
        names.map(|(id, it)| format!("{id} {} {}", it.name, it.shape)).collect();
    let held = if names.is_empty() { "free".to_owned() } else { names.join(", ") };
    match tile.chips.iter().filter(|it| it.is_out).count() {
        0 => format!("{}: {held}", tile.name),
        n => format!("{}: {held}; {} out of use", tile.name, number::counted(n as u64, "chip")),
    }
}

#[derive(Clone, Copy)]
enum Shade {
    /// Behind dark text.
    Fill,
    /// Around a fill.
    Edge,
    /// Without text on it.
    Strong,
}

/// A job's colour: its rank turns the hue by the golden angle, so that neighbours differ.
fn colour(rank: usize, shade: Shade) -> String {
    let hue = (rank as f64 * 137.507_764 + 250.0) % 360.0;
    let (lightness, chroma) = match shade {
        Shade::Fill => (0.86, 0.075),
        Shade::Edge => (0.70, 0.11),
        Shade::Strong => (0.74, 0.12),
    };
    let [r, g, b] = srgb(lightness, chroma, hue.to_radians());
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// OKLCH (Ottosson 2020), in which equal lightness looks equally light, to sRGB.
fn srgb(lightness: f64, chroma: f64, hue: f64) -> [u8; 3] {
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let linear = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    linear.map(|it| {
        let it = it.clamp(0.0, 1.0);
        let it = if it <= 0.003_130_8 { 12.92 * it } else { 1.055 * it.powf(1.0 / 2.4) - 0.055 };
        (it * 255.0).round() as u8
    })
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes whatever is written to it");
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // XML 1.0 has no other control characters, not even escaped.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_whole_cubes_is_named_on_its_tiles_and_bad_names_stay_text() {
        let job = MapJob { name: "<b>&\u{1}".to_owned(), shape: "4x4x8".to_owned(), chips: 128 };
        let seat = |job| Seat { job, is_out: false };
        let tile = |name: &str, chips| Tile { name: name.to_owned(), chips };
        let mut broken = vec![seat(None); 64];
        broken[5] = Seat { job: None, is_out: true };
        let map = PodMap {
            title: "pod".to_owned(),
            subtitle: String::new(),
            cubes: vec![
                tile("cube0", vec![seat(Some(7)); 64]),
                tile("cube1", vec![seat(None); 64]),
                tile("cube2", broken),
            ],
            jobs: BTreeMap::from([(7, job)]),
        };
        let svg = svg(&map);
        assert!(svg.contains("&lt;b&gt;&amp;\u{fffd}") && !svg.contains("<b>"));
        assert!(svg.contains("cube2: free; 1 chip out of use"));
        assert_eq!(svg.matches("url(#out)").count(), 2, "one chip and the key");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }

    #[test]
    fn colours_are_what_their_inventor_says() {
        // Ottosson's table: sRGB red is L 0.628, C 0.258, h 29.2 degrees; white has no chroma.
        assert_eq!(srgb(1.0, 0.0, 0.0), [255, 255, 255]);
        let [r, g, b] = srgb(0.627_955, 0.257_683, 29.234_f64.to_radians());
        assert!(254 <= r && g <= 2 && b <= 2, "{r} {g} {b}");
    }
}
