//! Plant time: the last journalled moment plus what has passed since, times the speed.
//!
//! Real time comes from the system's monotonic clock, so setting the wall clock moves nothing.
//! Plant time stands still while the server is down and while its journal cannot be written.

use std::time::{Duration, Instant};

use selvedge_model::unit::{Moment, Span};

use crate::limits;

/// How fast plant time runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

/// Why a speed is none.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("speed {speed} must be above 0 and at most {}", limits::SPEED_MAX)]
pub struct SpeedError {
    speed: f64,
}

impl Speed {
    /// What `up` takes where nothing is said: a minute of plant time each second.
    pub const DEFAULT: Self = Self(60.0);

    /// As fast as real time: what real tasks are counted in.
    pub const REAL: Self = Self(1.0);

    /// Plant time runs `speed` times as fast as real time.
    ///
    /// # Errors
    /// If it is not a number above 0 and at most [`limits::SPEED_MAX`].
    pub fn new(speed: f64) -> Result<Self, SpeedError> {
        if 0.0 < speed && speed <= limits::SPEED_MAX {
            Ok(Self(speed))
        } else {
            Err(SpeedError { speed })
        }
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    fn plant_span(self, real: Duration) -> Span {
        // Rounding here is harmless: what the clock says is journalled with each input.
        Span::nanos((real.as_nanos() as f64 * self.0) as u64)
    }

    fn real_span(self, plant: Span) -> Duration {
        Duration::from_nanos((plant.as_nanos() as f64 / self.0).ceil() as u64)
    }
}

/// The server's one clock.
#[derive(Debug)]
pub(crate) struct Clock {
    speed: Speed,
    base: Moment,
    /// When `base` was; none while time stands still.
    since: Option<Instant>,
}

impl Clock {
    /// A clock that goes on from `base`.
    pub(crate) fn from(base: Moment, speed: Speed) -> Self {
        Self { speed, base, since: Some(Instant::now()) }
    }

    /// The moment now: never before one that it said earlier, but for [`Clock::wait_for`].
    pub(crate) fn now(&self) -> Moment {
        match self.since {
            Some(since) => self.base + self.speed.plant_span(since.elapsed()),
            None => self.base,
        }
    }

    /// Stops time where it is.
    pub(crate) fn hold(&mut self) {
        self.base = self.now();
        self.since = None;
    }

    /// Lets a stopped time go on from where it stood.
    pub(crate) fn resume(&mut self) {
        if self.since.is_none() {
            self.since = Some(Instant::now());
        }
    }

    /// Goes on from `moment` if that is ahead of it.
    pub(crate) fn catch_up(&mut self, moment: Moment) {
        if self.now() < moment {
            self.base = moment;
            self.since = self.since.map(|_| Instant::now());
        }
    }

    /// Goes back to `moment` if it is ahead of it by more than `lag_max` of real time: a loop that
    /// cannot keep up slows time down.
    pub(crate) fn wait_for(&mut self, moment: Moment, lag_max: Duration) {
        let lag = self.now().since(moment);
        if lag_max < self.speed.real_span(lag) {
            self.base = moment;
            self.since = self.since.map(|_| Instant::now());
        }
    }

    /// How much real time passes until `moment`.
    pub(crate) fn until(&self, moment: Moment) -> Duration {
        self.speed.real_span(moment.since(self.now()))
    }

    /// Lets it go at another speed from now on.
    pub(crate) fn go_at(&mut self, speed: Speed) {
        if speed == self.speed {
            return;
        }
        self.base = self.now();
        self.since = self.since.map(|_| Instant::now());
        self.speed = speed;
    }

    /// How fast it goes.
    pub(crate) fn speed(&self) -> Speed {
        self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_clock_stands_and_goes_on_from_there() {
        let mut clock = Clock::from(Moment::from_nanos(7), Speed::new(1_000.0).unwrap());
        clock.hold();
        let held = clock.now();
        assert!(Moment::from_nanos(7) <= held);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(clock.now(), held);
        clock.resume();
        std::thread::sleep(Duration::from_millis(2));
        assert!(held + Span::secs(2) <= clock.now());
    }

    #[test]
    fn a_clock_waits_for_a_loop_that_is_far_behind() {
        let mut clock = Clock::from(Moment::START, Speed::new(1_000_000.0).unwrap());
        std::thread::sleep(Duration::from_millis(2));
        clock.wait_for(Moment::START, Duration::from_secs(3600));
        assert!(Moment::START + Span::secs(2000) <= clock.now());
        clock.wait_for(Moment::from_nanos(5), Duration::ZERO);
        assert!(clock.now() < Moment::START + Span::secs(2000));
        clock.hold();
        clock.catch_up(Moment::START + Span::days(1));
        assert_eq!(clock.now(), Moment::START + Span::days(1));
        clock.catch_up(Moment::START);
        assert_eq!(clock.now(), Moment::START + Span::days(1));
    }

    #[test]
    fn a_speed_is_a_number_above_nothing() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(Speed::new(speed).is_err(), "{speed}");
        }
        let speed = Speed::new(60.0).unwrap();
        assert_eq!(speed.plant_span(Duration::from_secs(1)), Span::mins(1));
        assert_eq!(speed.real_span(Span::mins(1)), Duration::from_secs(1));
    }
}
