//! Measured points, beside the model.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use selvedge_sim::study::redundancy::class;
use selvedge_sim::study::redundancy::speedup::{
    Case, Constants, Growth, Mechanism, Network, Reading,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Failure, Outcome, Within as _};

/// A file of measurements.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    pub(super) about: Option<About>,
    pub(super) points: Vec<Point>,
}

/// Where points come from, in words.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    pub(super) machine: String,
    pub(super) mpi: String,
    pub(super) date: String,
    /// What made them.
    pub(super) command: String,
}

impl About {
    /// A sentence.
    pub(super) fn words(&self) -> String {
        let Self { machine, mpi, date, command } = self;
        format!("measured on {machine}, {mpi}, {date}, by `{command}`")
    }
}

/// One program on so many processes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Point {
    pub(super) program: String,
    pub(super) mpi: String,
    pub(super) ranks: u32,
    pub(super) replicas: u32,
    /// CPU time of the tripled run by that of three plain ones, less one.
    pub(super) overhead_cpu: f64,
    /// Messages between replicas for each send of a process.
    pub(super) messages_per_send: f64,
    /// Their bytes.
    pub(super) bytes_per_send: f64,
    /// Processor time of the three plain runs, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) plain_cpu_s: Option<f64>,
    /// Half the distance between the quartiles of plain runs, by their median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spread_cpu: Option<f64>,
    /// Pairs of runs that stand behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pairs: Option<u32>,
    /// The most that a replica kept for its siblings, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) log_bytes_max: Option<u64>,
    /// Sends of all processes, each counted once, and the bytes in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sends: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent_bytes: Option<u64>,
}

impl Point {
    /// What formula (9) gives for the same program where contents are compared and not their
    /// digests, with a memory's last compare left out: T_R of its sends on the links and by the
    /// compares of `constants`, by the processor time of a plain process.
    fn by_formula(&self, constants: Constants) -> Option<f64> {
        let (sends, bytes, plain_s) = (self.sends?, self.sent_bytes?, self.plain_cpu_s?);
        let compute_s = plain_s / f64::from(self.replicas * self.ranks);
        let constants = Constants {
            compute_s,
            sends: sends as f64 / f64::from(self.ranks),
            message_bits: 8.0 * bytes as f64 / sends.max(1) as f64,
            ..constants
        };
        let (other, traffic) = (Growth::Constant, Growth::Constant);
        let case = Case { constants, network: Network::MESH, other, traffic };
        let mechanism = Mechanism::Stmr(Reading::Constant);
        let overhead = case.overhead(mechanism, self.ranks.into());
        let share = (overhead.compare_traffic_s + overhead.compare_s) / compute_s;
        (0.0 < compute_s).then_some(share)
    }
}

/// The points of one program, and how they grow.
#[derive(Debug, Serialize)]
pub(super) struct Program {
    pub(super) program: String,
    pub(super) mpi: String,
    pub(super) replicas: u32,
    pub(super) points: Vec<Point>,
    /// What formula (9) gives for each of them, by the plain run's time; nothing where the file
    /// does not say what was sent.
    pub(super) by_formula: Vec<Option<f64>>,
    /// The power of the processes with which messages for each send grow; none with one point.
    pub(super) messages_power: Option<f64>,
    /// The same of bytes.
    pub(super) bytes_power: Option<f64>,
    /// What T_R for each send makes of STMR, by those powers.
    pub(super) class: Option<&'static str>,
}

/// What a field of a point may be.
enum Kind {
    Text,
    /// A whole number between these.
    Whole(u64, u64),
    /// A number from the first, or above it, to the second.
    Number(f64, f64),
    Above(f64, f64),
}

/// Each field, what it may be, and whether it may be absent.
const FIELDS: [(&str, Kind, bool); 13] = [
    ("program", Kind::Text, false),
    ("mpi", Kind::Text, false),
    ("ranks", Kind::Whole(1, u32::MAX as u64), false),
    ("replicas", Kind::Whole(1, 3), false),
    // A run takes some time, so it is above three plain ones' less all of it.
    ("overhead_cpu", Kind::Above(-1.0, MOST), false),
    ("messages_per_send", Kind::Number(0.0, MOST), false),
    ("bytes_per_send", Kind::Number(0.0, MOST), false),
    ("plain_cpu_s", Kind::Number(0.0, MOST), true),
    ("spread_cpu", Kind::Number(0.0, MOST), true),
    ("pairs", Kind::Whole(1, u32::MAX as u64), true),
    ("log_bytes_max", Kind::Whole(0, u64::MAX), true),
    ("sends", Kind::Whole(0, u64::MAX), true),
    ("sent_bytes", Kind::Whole(0, u64::MAX), true),
];

/// Beyond it nothing was measured.
const MOST: f64 = 1e15;

impl Kind {
    fn takes(&self, value: &Value) -> bool {
        match *self {
            Kind::Text => value.as_str().is_some_and(|it| !it.trim().is_empty()),
            Kind::Whole(low, high) => value.as_u64().is_some_and(|it| (low..=high).contains(&it)),
            Kind::Number(low, high) => value.as_f64().is_some_and(|it| (low..=high).contains(&it)),
            Kind::Above(low, high) => value.as_f64().is_some_and(|it| low < it && it <= high),
        }
    }

    /// For people.
    fn words(&self) -> String {
        match self {
            Kind::Text => "a name in quotation marks".to_owned(),
            Kind::Whole(low, high) => format!("a whole number from {low} to {high}"),
            Kind::Number(low, high) => format!("a number from {low} to {high:e}"),
            Kind::Above(low, high) => format!("a number above {low}, to {high:e}"),
        }
    }
}

const FORM: &str = "write {\"points\": [{\"program\": \"lu\", \"mpi\": \"openmpi\", \"ranks\": 4, \
                    \"replicas\": 3, \"overhead_cpu\": 0.05, \"messages_per_send\": 6.1, \
                    \"bytes_per_send\": 400}]}";

/// What `cargo xtask prove stmr-cost` once wrote, with its machine, MPI and date.
const OURS: &str = include_str!("../../../../data/replicas.json");
/// In place of a file: no points.
const NONE: &str = "none";

/// The points of this file; our own without one.
pub(super) fn choose(path: Option<&Path>) -> Outcome<Measured> {
    match path {
        None => parse(OURS),
        Some(it) if it == Path::new(NONE) => Ok(Measured::default()),
        Some(it) => read(it),
    }
}

fn read(path: &Path) -> Outcome<Measured> {
    let shown = path.display();
    let text = fs::read_to_string(path).within(|| format!("cannot read {shown}"))?;
    parse(&text).map_err(|it| it.within(format!("cannot use {shown}")))
}

fn parse(text: &str) -> Outcome<Measured> {
    let value: Value = serde_json::from_str(text).map_err(|it| Failure::new(it).hint(FORM))?;
    let Value::Object(top) = &value else {
        return Err(Failure::new(format!(
            "the file is {}, not an object with points",
            kind(&value)
        ))
        .hint(FORM));
    };
    if let Some(name) = top.keys().find(|it| *it != "points" && *it != "about") {
        return Err(Failure::new(format!("{name:?} is not known beside \"points\"")).hint(FORM));
    }
    top.get("about").map_or(Ok(()), check_about)?;
    match top.get("points") {
        Some(Value::Array(points)) if points.is_empty() => {
            return Err(Failure::new("points is empty").hint(FORM));
        }
        Some(Value::Array(points)) => {
            points.iter().enumerate().try_for_each(|(nth, it)| check(nth, it))?;
        }
        Some(it) => return Err(Failure::new(format!("points is {}", kind(it))).hint(FORM)),
        None => return Err(Failure::new("points is missing").hint(FORM)),
    }
    // Every field has been looked at.
    serde_json::from_value(value).map_err(|it| Failure::new(it).hint(FORM))
}

fn check_about(about: &Value) -> Outcome<()> {
    let hint = "write \"about\": {\"machine\": \"…\", \"mpi\": \"…\", \"date\": \"…\", \
                \"command\": \"…\"}, or leave it out";
    let names = ["machine", "mpi", "date", "command"];
    let refuse = |what: String| Err(Failure::new(what).hint(hint));
    let Value::Object(fields) = about else {
        return refuse(format!("about is {}", kind(about)));
    };
    if let Some(name) = fields.keys().find(|it| !names.contains(&it.as_str())) {
        return refuse(format!("about.{name} is not known"));
    }
    for name in names {
        match fields.get(name) {
            Some(it) if Kind::Text.takes(it) => {}
            Some(it) => return refuse(format!("about.{name} is {}", shown(it))),
            None => return refuse(format!("about.{name} is missing")),
        }
    }
    Ok(())
}

fn check(nth: usize, point: &Value) -> Outcome<()> {
    let Value::Object(fields) = point else {
        return Err(Failure::new(format!("points[{nth}] is {}", kind(point))).hint(FORM));
    };
    if let Some(name) = fields.keys().find(|it| FIELDS.iter().all(|(known, ..)| known != it)) {
        let known = FIELDS.iter().map(|it| it.0).collect::<Vec<_>>().join(", ");
        return Err(Failure::new(format!("points[{nth}].{name} is not known"))
            .hint(format!("a point has {known}")));
    }
    for (name, kind, is_optional) in &FIELDS {
        let what = match fields.get(*name) {
            None | Some(Value::Null) if *is_optional => continue,
            None => "missing".to_owned(),
            Some(it) if kind.takes(it) => continue,
            Some(it) => shown(it),
        };
        return Err(Failure::new(format!("points[{nth}].{name} is {what}"))
            .hint(format!("{name} is {}", kind.words())));
    }
    Ok(())
}

/// A value as it stands in the file where it is short, else its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        _ => value.to_string(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl Measured {
    /// By program, MPI and replicas, each in the order of its processes.
    pub(super) fn programs(&self, constants: Constants) -> Vec<Program> {
        let mut by: BTreeMap<(&str, &str, u32), Vec<Point>> = BTreeMap::new();
        for it in &self.points {
            by.entry((&it.program, &it.mpi, it.replicas)).or_default().push(it.clone());
        }
        by.into_iter()
            .map(|((program, mpi, replicas), mut points)| {
                points.sort_by_key(|it| it.ranks);
                let messages_power = power(&points, |it| it.messages_per_send);
                let bytes_power = power(&points, |it| it.bytes_per_send);
                let most = messages_power.zip(bytes_power).map(|(a, b)| a.max(b));
                Program {
                    program: program.to_owned(),
                    mpi: mpi.to_owned(),
                    replicas,
                    by_formula: points.iter().map(|it| it.by_formula(constants)).collect(),
                    points,
                    messages_power,
                    bytes_power,
                    class: most.map(|it| if it < class::SAME { "scalable" } else { "growing" }),
                }
            })
            .collect()
    }
}

fn power(points: &[Point], get: fn(&Point) -> f64) -> Option<f64> {
    let is_several = points.iter().any(|it| it.ranks != points[0].ranks);
    let is_above = points.iter().all(|it| 0.0 < get(it));
    let points = points.iter().map(|it| (f64::from(it.ranks), get(it)));
    (is_several && is_above).then(|| class::slope(points))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Constants, OURS, choose, parse};

    const GOOD: &str = r#"{"program": "lu", "mpi": "openmpi", "ranks": 4, "replicas": 3,
        "overhead_cpu": -0.02, "messages_per_send": 0, "bytes_per_send": 12.5}"#;

    /// Goal: a point stands beside what formula (9) gives for the same sends.  Method: 1,000 sends
    /// of 700 MB in all by each of four processes that compute for 10 s, over links of 1.4 Gbit/s
    /// and compares of 22 Gbit/s: 8 s and 0.509 s by 10 s.
    #[test]
    fn a_point_is_held_against_the_formula() {
        let with = |more: &str| {
            let point = GOOD.replacen('}', &format!(", {more}}}"), 1);
            let text = format!("{{\"points\": [{point}]}}");
            parse(&text).unwrap().programs(Constants::BLUE_GENE_L)[0].by_formula[0]
        };
        let sent = "\"sends\": 4000, \"sent_bytes\": 2800000000";
        let share = with(&format!("{sent}, \"plain_cpu_s\": 120")).unwrap();
        assert!((share - 0.850_909).abs() < 1e-6, "{share}");
        assert_eq!(with(sent), None, "nobody says how long it computes");
        assert_eq!(with("\"plain_cpu_s\": 120"), None);
    }

    /// Goal: a bad figure is refused with its place and what it may be.  Method: one good point
    /// with one thing changed, second of two.
    #[test]
    fn what_cannot_have_been_measured_is_refused_by_place() {
        assert_eq!(parse(&format!(r#"{{"points": [{GOOD}, {GOOD}]}}"#)).unwrap().points.len(), 2);
        for (good, bad, said) in [
            (
                r#""messages_per_send": 0"#,
                r#""messages_per_send": -0.5"#,
                "messages_per_send is -0.5",
            ),
            (r#""bytes_per_send": 12.5"#, r#""bytes_per_send": -1"#, "bytes_per_send is -1"),
            (r#""bytes_per_send": 12.5"#, r#""bytes_per_send": 1e200"#, "bytes_per_send is 1e+200"),
            (r#""overhead_cpu": -0.02"#, r#""overhead_cpu": -1"#, "overhead_cpu is -1"),
            (r#""overhead_cpu": -0.02,"#, "", "overhead_cpu is missing"),
            (r#""ranks": 4"#, r#""ranks": 0"#, "ranks is 0"),
            (r#""ranks": 4"#, r#""ranks": 4.5"#, "ranks is 4.5"),
            (r#""replicas": 3"#, r#""replicas": "three""#, r#"replicas is "three""#),
            (r#""program": "lu""#, r#""program": ["lu"]"#, "program is a list"),
            (r#""mpi": "openmpi""#, r#""mpi": """#, r#"mpi is """#),
            (r#""mpi""#, r#""mpii": 1, "mpi""#, "mpii is not known"),
        ] {
            let point = GOOD.replace(good, bad);
            assert_ne!(point, GOOD);
            let refused = parse(&format!(r#"{{"points": [{GOOD}, {point}]}}"#)).unwrap_err();
            assert_eq!(refused.text(), format!("points[1].{said}"));
        }
        for (text, said) in [
            ("[]", "the file is a list, not an object with points"),
            ("{}", "points is missing"),
            (r#"{"points": {}}"#, "points is an object"),
            (r#"{"points": [], "point": 1}"#, r#""point" is not known beside "points""#),
            (r#"{"points": [7]}"#, "points[0] is a number"),
            (r#"{"about": "here", "points": []}"#, "about is a text"),
            (r#"{"about": {"machine": "x"}}"#, "about.mpi is missing"),
            (r#"{"about": {"machine": 7}}"#, "about.machine is 7"),
            (r#"{"about": {"host": "x"}}"#, "about.host is not known"),
        ] {
            assert_eq!(parse(text).unwrap_err().text(), said);
        }
    }

    /// Goal: the study shows what was measured without being asked, and says where.  Method: our
    /// own points hold what figure 13 is to be held against: two programs or more on 2, 4, 8 and
    /// 16 processes, for which STMR does not grow.
    #[test]
    fn without_a_file_our_own_points_are_shown_and_none_of_them_if_so_asked() {
        let ours = choose(None).unwrap();
        let about = ours.about.as_ref().unwrap();
        assert!(about.command.contains("stmr-cost") && about.machine.contains("two cores"));
        assert_eq!(ours.points.len(), OURS.matches("\"program\"").count());
        let programs = ours.programs(Constants::BLUE_GENE_L);
        let on_many = programs.iter().filter(|it| {
            [2, 4, 8, 16].iter().all(|p| it.points.iter().any(|point| point.ranks == *p))
        });
        assert_eq!(on_many.filter(|it| it.class == Some("scalable")).count(), 2);
        assert!(programs.iter().all(|it| it.by_formula.iter().all(Option::is_some)));
        let none = choose(Some(Path::new("none"))).unwrap();
        assert!(none.points.is_empty() && none.about.is_none());
        assert!(choose(Some(Path::new("./none"))).is_err(), "a file of this name");
    }
}
