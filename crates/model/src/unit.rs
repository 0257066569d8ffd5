//! Quantities that are stored, compared or sent.  Integers, so equal means equal.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($inner);
        // Golden files are read by people: debug text is display text.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

unit! {
    /// A span of time, in nanoseconds.
    Span(u64);
    /// A moment, in nanoseconds since the core was started.  Nobody but a world makes one.
    Moment(u64);
    /// An amount of data, in bytes.
    Bytes(u64);
    /// A link or flow speed, in bits per second.
    BitRate(u64);
    /// How long a wire is, in millimetres.
    Length(u32);
    /// An optical loss, in hundredths of a decibel.
    CentiDb(u16);
    /// A share in parts per million.
    Ppm(u32);
    /// The number of a device write.  A device refuses one that is older than its own.
    Generation(u64);
}

const NANOS: u64 = 1_000_000_000;

impl Span {
    /// Longer than anything lasts.
    pub const MAX: Self = Self(u64::MAX);
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// `n` nanoseconds.
    pub const fn nanos(n: u64) -> Self {
        Self(n)
    }
    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// `n` seconds.
    pub const fn secs(n: u64) -> Self {
        Self(n * NANOS)
    }
    /// `n` minutes.
    pub const fn mins(n: u64) -> Self {
        Self::secs(n * 60)
    }
    /// `n` hours.
    pub const fn hours(n: u64) -> Self {
        Self::secs(n * 3600)
    }
    /// `n` days.
    pub const fn days(n: u64) -> Self {
        Self::hours(n * 24)
    }
    /// This span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// This span in whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / NANOS
    }
    /// This span in seconds, for a report.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// `self` taken `n` times, at most the longest span there is.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// How often `other` fits into `self`.
    ///
    /// # Panics
    /// If `other` is zero.
    pub const fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
    /// The longer part of `self` after `other`, or zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The span written `90s`, `15m`, `2h`, `3d`, `250ms` or a bare number of seconds.
    ///
    /// # Errors
    /// The text back, where it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let scale: u64 = match unit.trim() {
            "" | "s" => NANOS,
            "ms" => 1_000_000,
            "m" => 60 * NANOS,
            "h" => 3600 * NANOS,
            "d" => 86_400 * NANOS,
            _ => return Err(text.to_owned()),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || 9 < part.len() {
            return Err(text.to_owned());
        }
        let bad = |_| text.to_owned();
        let mut nanos = u128::from(whole.parse::<u64>().map_err(bad)?) * u128::from(scale);
        if !part.is_empty() {
            let ten = 10u128.pow(u32::try_from(part.len()).expect("at most 9"));
            nanos += u128::from(part.parse::<u64>().map_err(bad)?) * u128::from(scale) / ten;
        }
        u64::try_from(nanos).map(Self).map_err(|_| text.to_owned())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, millis) = (self.0 / NANOS, self.0 / 1_000_000 % 1000);
        match (secs, millis) {
            (0, 0) if self.0 != 0 => write!(f, "{}ns", self.0),
            (s, 0) if s != 0 && s.is_multiple_of(86_400) => write!(f, "{}d", s / 86_400),
            (s, 0) if s != 0 && s.is_multiple_of(3600) => write!(f, "{}h", s / 3600),
            (s, 0) if s != 0 && s.is_multiple_of(60) => write!(f, "{}m", s / 60),
            (s, 0) => write!(f, "{s}s"),
            (s, ms) => write!(f, "{s}.{ms:03}s"),
        }
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, rhs: Span) -> Span {
        Span(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, rhs: Span) {
        *self = *self + rhs;
    }
}

impl Moment {
    /// The moment the core was started.
    pub const START: Self = Self(0);
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);
    /// The moment `n` nanoseconds after the start.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }
    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start, for a report.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// The time from `earlier` to this moment, zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Moment {
    type Output = Moment;
    /// Saturates at [`Moment::NEVER`].
    fn add(self, rhs: Span) -> Moment {
        Moment(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Moment {
    type Output = Span;
    fn sub(self, rhs: Moment) -> Span {
        Span(self.0.checked_sub(rhs.0).expect("time runs forward"))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{:03}s", self.0 / NANOS, self.0 / 1_000_000 % 1000)
    }
}

impl Bytes {
    /// `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }
    /// Time on the wire at `rate`, rounded up: a message is never early.
    ///
    /// # Panics
    /// If `rate` is zero, or the time exceeds 584 years.
    pub fn time_at(self, rate: BitRate) -> Span {
        let bits = u128::from(self.0) * 8;
        let nanos = (bits * u128::from(NANOS)).div_ceil(u128::from(rate.0));
        Span(u64::try_from(nanos).expect("a transfer of centuries is a bug"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}

impl BitRate {
    /// `n` gigabits per second.
    pub const fn gbps(n: u64) -> Self {
        Self(n * NANOS)
    }
    /// `n` gigabytes per second.
    pub const fn gigabytes(n: u64) -> Self {
        Self::gbps(n * 8)
    }
    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(NANOS) {
            write!(f, "{}Gb/s", self.0 / NANOS)
        } else {
            write!(f, "{}b/s", self.0)
        }
    }
}

impl Length {
    /// `n` millimetres.
    pub const fn mm(n: u32) -> Self {
        Self(n)
    }
    /// The number of millimetres.
    pub const fn as_mm(self) -> u32 {
        self.0
    }
    /// How long a bit takes over it, rounded up: a bit is never early.
    pub const fn time_at(self, ns_per_m: u16) -> Span {
        Span((self.0 as u64 * ns_per_m as u64).div_ceil(1000))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}mm", self.0)
    }
}

impl CentiDb {
    /// `n` hundredths of a decibel.
    pub const fn new(n: u16) -> Self {
        Self(n)
    }
    /// Hundredths of a decibel.
    pub const fn centi(self) -> u16 {
        self.0
    }
}

impl fmt::Display for CentiDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}dB", self.0 / 100, self.0 % 100)
    }
}

impl Ppm {
    /// `n` parts per million.
    pub const fn new(n: u32) -> Self {
        Self(n)
    }
    /// Parts per million.
    pub const fn parts(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Ppm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ppm", self.0)
    }
}

impl Generation {
    /// Before any write.
    pub const ZERO: Self = Self(0);
    /// Generation `n`.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The bare number.
    pub const fn number(self) -> u64 {
        self.0
    }
    /// The generation after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kilobyte_at_400g_takes_21_ns_rounded_up() {
        assert_eq!(Bytes::new(1024).time_at(BitRate::gbps(400)), Span::nanos(21));
    }

    #[test]
    fn spans_read_back_what_they_print() {
        for text in ["90s", "15m", "2h", "3d", "0.250s"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Span::parse("90").unwrap(), Span::secs(90));
        assert_eq!(Span::parse("1.5h").unwrap(), Span::mins(90));
        for text in ["", "h", "-1s", "3 weeks", "99999999999d", "1e3"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }
}
