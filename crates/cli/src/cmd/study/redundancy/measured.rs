//! Measured points, beside the model.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use selvedge_sim::study::redundancy::class;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Outcome, Within as _};

/// A file of measurements.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    pub(super) points: Vec<Point>,
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
}

/// The points of one program, and how they grow.
#[derive(Debug, Serialize)]
pub(super) struct Program {
    pub(super) program: String,
    pub(super) mpi: String,
    pub(super) replicas: u32,
    pub(super) points: Vec<Point>,
    /// The power of the processes with which messages for each send grow; none with one point.
    pub(super) messages_power: Option<f64>,
    /// The same of bytes.
    pub(super) bytes_power: Option<f64>,
    /// What T_R for each send makes of STMR, by those powers.
    pub(super) class: Option<&'static str>,
}

pub(super) fn read(path: &Path) -> Outcome<Measured> {
    let shown = path.display();
    let text = fs::read_to_string(path).within(|| format!("cannot read {shown}"))?;
    let measured: Measured = serde_json::from_str(&text).map_err(|error| {
        Failure::new(error)
            .hint("selvedge study redundancy --help shows the form")
            .within(format!("cannot use {shown}"))
    })?;
    for (nth, point) in measured.points.iter().enumerate() {
        let figures = [point.overhead_cpu, point.messages_per_send, point.bytes_per_send];
        let is_bad = |it: &f64| !it.is_finite() || *it < -1.0;
        if point.ranks == 0 || point.replicas == 0 || figures.iter().any(is_bad) {
            return Err(Failure::new(format!("point {nth}: {point:?} was never measured"))
                .hint("ranks and replicas are 1 at least; figures are finite and not below -1")
                .within(format!("cannot use {shown}")));
        }
    }
    Ok(measured)
}

impl Measured {
    /// By program, MPI and replicas, each in the order of its processes.
    pub(super) fn programs(&self) -> Vec<Program> {
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
