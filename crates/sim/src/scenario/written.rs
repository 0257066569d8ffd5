//! A scenario as it is written: TOML, with whatever is wrong shown at its place.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use selvedge_control::settings::Settings;
use selvedge_model::spec::{At, point};
use selvedge_model::unit::{Moment, Ppm, Span};

use crate::device::Dials;
use crate::fault::{FaultKind, Rates};
use crate::limits;
use crate::scenario::{FORMAT, JobsFrom, PlantFrom, Scenario, ScenarioError};
use crate::trace::Scaled;
use crate::world::Happening;

/// Reads a scenario; `file` is its name for errors.
pub(super) fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let reader = Reader { file, text };
    // The format first: a newer file may have keys that we do not know.
    let format: Format = toml::from_str(text).map_err(|it| reader.no_toml(&it))?;
    let number = *format.format.get_ref();
    if FORMAT < number {
        let wrong = format!("format {number} is newer than this program reads");
        let right = format!("format = {FORMAT}, or a newer program");
        return Err(reader.wrong(&format.format, &wrong, &right));
    }
    let written: Written = toml::from_str(text).map_err(|it| reader.no_toml(&it))?;
    reader.scenario(written)
}

#[derive(Deserialize)]
struct Format {
    format: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[allow(dead_code, reason = "read before")]
    format: u32,
    name: String,
    #[serde(default)]
    seed: u64,
    end: Option<Spanned<String>>,
    #[serde(default)]
    plant: WrittenPlant,
    jobs: Option<Spanned<WrittenJobs>>,
    means: Option<WrittenMeans>,
    #[serde(default)]
    rates: BTreeMap<Spanned<String>, WrittenRate>,
    #[serde(default = "yes")]
    published_rates: bool,
    #[serde(default)]
    dials: BTreeMap<Spanned<String>, Spanned<u32>>,
    #[serde(default)]
    event: Vec<Spanned<WrittenEvent>>,
}

const fn yes() -> bool {
    true
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPlant {
    file: Option<Spanned<String>>,
    pods: Option<Spanned<usize>>,
    cubes: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenJobs {
    trace: Option<Spanned<String>>,
    mix: Option<Spanned<u64>>,
    load: Option<Spanned<f64>>,
    scale: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMeans {
    #[serde(default = "yes")]
    backfill: bool,
    #[serde(default = "yes")]
    preempt: bool,
    #[serde(default = "yes")]
    defragment: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRate {
    ppm_per_day: u32,
    /// Where the figure is from, or "assumed".
    source: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEvent {
    at: Spanned<String>,
    fault: Option<Spanned<String>>,
    clear: Option<String>,
    drain: Option<String>,
    undrain: Option<String>,
    path: Option<Spanned<String>>,
}

/// What a TOML reader says for lack of a better word of ours.
const SEE: &str = "docs/scenarios.md says what a scenario may hold";

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn scenario(&self, written: Written) -> Result<Scenario, ScenarioError> {
        let mut settings = Settings::simulated();
        if let Some(means) = written.means {
            settings.means.backfill = means.backfill;
            settings.means.preempt = means.preempt;
            settings.means.defragment = means.defragment;
        }
        if let Some(first_over) = written.event.get(limits::EVENTS_MAX) {
            let wrong = format!("there are {} events", written.event.len());
            let right = format!("at most {} of them", limits::EVENTS_MAX);
            return Err(self.wrong(first_over, &wrong, &right));
        }
        let end = written.end.as_ref().map(|it| self.moment("end", it)).transpose()?;
        let events = written.event.iter().map(|it| {
            let written = &it.get_ref().at;
            let at = self.moment("event.at", written)?;
            if let Some(end) = end.filter(|it| *it < at) {
                let right = format!("a moment up to {}, or a later end", end.since(Moment::START));
                return Err(self.wrong(written, "this event comes behind the end", &right));
            }
            Ok((at, self.happening(it)?))
        });
        let events = events.collect::<Result<_, ScenarioError>>()?;
        Ok(Scenario {
            name: written.name,
            seed: written.seed,
            end,
            plant: self.plant(written.plant)?,
            jobs: written.jobs.map_or(Ok(JobsFrom::Nowhere), |it| self.jobs(&it))?,
            settings,
            rates: self.rates(written.published_rates, &written.rates)?,
            dials: self.dials(&written.dials)?,
            events,
            check_every: 10_000,
        })
    }

    fn wrong<T>(&self, place: &Spanned<T>, wrong: &str, right: &str) -> ScenarioError {
        self.wrong_at(&place.span(), wrong, right)
    }

    fn wrong_at(&self, place: &Range<usize>, wrong: &str, right: &str) -> ScenarioError {
        let small = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
        let at = At { start: small(place.start), end: small(place.end) };
        let (line, column) = at.line_column(self.text);
        let drawn = point(self.file, self.text, at, wrong, right);
        ScenarioError::Written { line, column, drawn }
    }

    fn no_toml(&self, error: &toml::de::Error) -> ScenarioError {
        let place = error.span().unwrap_or_default();
        let message = error.message();
        if let Some(key) = message.strip_prefix("missing field ") {
            let right = format!("a line with {key}; {SEE}");
            return self.wrong_at(&place, message, &right);
        }
        let Some((wrong, right)) = message.split_once(", expected ") else {
            return self.wrong_at(&place, message, SEE);
        };
        let right = match right {
            "u32" | "u64" | "usize" => "a whole number, not below 0",
            "f64" => "a number",
            // What TOML takes a bare word for.
            _ if wrong == "invalid boolean" => "true, false, or a text in quotes",
            right => right,
        };
        self.wrong_at(&place, wrong, right)
    }

    fn moment(&self, key: &str, written: &Spanned<String>) -> Result<Moment, ScenarioError> {
        let span = Span::parse(written.get_ref()).map_err(|_| {
            let wrong = format!("{key} is {:?}", written.get_ref());
            self.wrong(written, &wrong, "a time such as 90s, 15m, 2h or 30d")
        })?;
        Ok(Moment::START + span)
    }

    fn plant(&self, written: WrittenPlant) -> Result<PlantFrom, ScenarioError> {
        let in_range = |key: &str, number: Option<Spanned<usize>>, without: usize| match number {
            None => Ok(without),
            Some(number) if (1..=64).contains(number.get_ref()) => Ok(number.into_inner()),
            Some(number) => {
                let wrong = format!("plant.{key} is {}", number.get_ref());
                Err(self.wrong(&number, &wrong, "a number from 1 to 64"))
            }
        };
        if let Some(file) = written.file {
            return if written.pods.is_some() || written.cubes.is_some() {
                let wrong = "plant.file stands beside pods or cubes";
                Err(self.wrong(&file, wrong, "a file, or pods and cubes"))
            } else {
                Ok(PlantFrom::File(file.into_inner()))
            };
        }
        Ok(PlantFrom::Pods {
            pods: in_range("pods", written.pods, 1)?,
            cubes: in_range("cubes", written.cubes, 64)?,
        })
    }

    fn jobs(&self, table: &Spanned<WrittenJobs>) -> Result<JobsFrom, ScenarioError> {
        let written = table.get_ref();
        let load = match &written.load {
            None => None,
            Some(load) if (0.001..=100.0).contains(load.get_ref()) => {
                Some(Ppm::new((load.get_ref() * 1e6) as u32))
            }
            Some(load) => {
                let wrong = format!("jobs.load is {}", load.get_ref());
                return Err(self.wrong(load, &wrong, "a load such as 0.85, from 0.001 to 100"));
            }
        };
        let scaled = match &written.scale {
            None => Scaled::Arrivals,
            Some(word) if word.get_ref() == "arrivals" => Scaled::Arrivals,
            Some(word) if word.get_ref() == "durations" => Scaled::Durations,
            Some(word) => {
                let wrong = format!("jobs.scale is {:?}", word.get_ref());
                return Err(self.wrong(word, &wrong, "\"arrivals\" or \"durations\""));
            }
        };
        match (&written.trace, &written.mix) {
            (Some(file), None) => match &written.scale {
                Some(word) if scaled == Scaled::Durations => {
                    let wrong = "a trace keeps its durations";
                    Err(self.wrong(word, wrong, "\"arrivals\", which load then scales"))
                }
                _ => Ok(JobsFrom::File { file: file.get_ref().clone(), load }),
            },
            (None, Some(n_jobs)) if (1..=10_000_000).contains(n_jobs.get_ref()) => {
                let load = load.unwrap_or(Ppm::new(850_000));
                Ok(JobsFrom::Mix { n_jobs: *n_jobs.get_ref(), load, scaled })
            }
            (None, Some(n_jobs)) => {
                let wrong = format!("jobs.mix is {}", n_jobs.get_ref());
                Err(self.wrong(n_jobs, &wrong, "a number from 1 to 10000000"))
            }
            (Some(file), Some(_)) => {
                let wrong = "jobs.trace stands beside jobs.mix";
                Err(self.wrong(file, wrong, "a trace, or a mix"))
            }
            (None, None) => {
                let wrong = "jobs has neither a trace nor a mix";
                Err(self.wrong(table, wrong, "trace = \"FILE\", or mix = N"))
            }
        }
    }

    fn rates(
        &self,
        published: bool,
        written: &BTreeMap<Spanned<String>, WrittenRate>,
    ) -> Result<Rates, ScenarioError> {
        let mut rates = if published { Rates::published() } else { Rates::NONE };
        for (word, rate) in written {
            let kind = self.kind("rates", word)?;
            if rate.source.get_ref().trim().is_empty() {
                let wrong = format!("rates.{}.source is empty", word.get_ref());
                let right = "where the figure is from, or \"assumed\"";
                return Err(self.wrong(&rate.source, &wrong, right));
            }
            rates = rates.with(kind, Ppm::new(rate.ppm_per_day));
        }
        Ok(rates)
    }

    fn kind(&self, key: &str, word: &Spanned<String>) -> Result<FaultKind, ScenarioError> {
        FaultKind::parse(word.get_ref()).ok_or_else(|| {
            let known: Vec<&str> = FaultKind::ALL.iter().map(|it| it.word()).collect();
            let wrong = format!("{key} knows no fault called {:?}", word.get_ref());
            self.wrong(word, &wrong, &format!("one of {}", known.join(", ")))
        })
    }

    fn dials(
        &self,
        written: &BTreeMap<Spanned<String>, Spanned<u32>>,
    ) -> Result<Dials, ScenarioError> {
        let mut dials = Dials::QUIET;
        for (word, ppm) in written {
            let dial = match word.get_ref().as_str() {
                "lose_ppm" => &mut dials.lose,
                "echo_ppm" => &mut dials.echo,
                "untrained_ppm" => &mut dials.untrained,
                "stubborn_ppm" => &mut dials.stubborn,
                "fail_ppm" => &mut dials.fail,
                "botch_ppm" => &mut dials.botch,
                other => {
                    let wrong = format!("there is no dial called {other:?}");
                    let right = "one of lose_ppm, echo_ppm, untrained_ppm, stubborn_ppm, \
                                 fail_ppm, botch_ppm";
                    return Err(self.wrong(word, &wrong, right));
                }
            };
            if 1_000_000 < *ppm.get_ref() {
                let wrong = format!("dials.{} is {}", word.get_ref(), ppm.get_ref());
                return Err(self.wrong(ppm, &wrong, "at most 1000000 (always)"));
            }
            *dial = Ppm::new(*ppm.get_ref());
        }
        Ok(dials)
    }

    fn happening(&self, written: &Spanned<WrittenEvent>) -> Result<Happening, ScenarioError> {
        let event = written.get_ref();
        if let (None, Some(path)) = (&event.fault, &event.path) {
            let wrong = "event.path stands without a fault";
            return Err(self.wrong(
                path,
                wrong,
                "the path as the value of clear, drain or undrain",
            ));
        }
        match (&event.fault, &event.clear, &event.drain, &event.undrain) {
            (Some(word), None, None, None) => {
                let kind = self.kind("event.fault", word)?;
                let path = event.path.as_ref().map(|it| it.get_ref().clone());
                Ok(Happening::Fault { kind, path })
            }
            (None, Some(path), None, None) => {
                Ok(Happening::Clear { path: (path != "all").then(|| path.clone()) })
            }
            (None, None, Some(path), None) => {
                Ok(Happening::Drain { path: path.clone(), undo: false })
            }
            (None, None, None, Some(path)) => {
                Ok(Happening::Drain { path: path.clone(), undo: true })
            }
            (fault, clear, drain, undrain) => {
                let n = [fault.is_some(), clear.is_some(), drain.is_some(), undrain.is_some()];
                let wrong = match n.iter().filter(|&&it| it).count() {
                    0 => "this event says nothing that happens".to_owned(),
                    n => format!("this event says {n} things that happen"),
                };
                Err(self.wrong(written, &wrong, "exactly one of fault, clear, drain, undrain"))
            }
        }
    }
}
