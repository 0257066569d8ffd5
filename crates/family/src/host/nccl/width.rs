//! NCCL's widths: GB/s in `f32`, rounded where NCCL rounds.

use std::fmt;

use crate::host::place::short;

/// GB/s as NCCL stores it.  Not `Eq`: it must round as NCCL does, so it is a float.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Width(pub f32);

impl Width {
    /// Nothing.
    pub const ZERO: Width = Width(0.0);
    /// What NCCL gives a node's way to itself.
    pub const LOCAL: Width = Width(5000.0);

    /// The narrower one.
    #[must_use]
    pub fn min(self, other: Width) -> Width {
        if other.0 < self.0 { other } else { self }
    }

    /// The wider one.
    #[must_use]
    pub fn max(self, other: Width) -> Width {
        if self.0 < other.0 { other } else { self }
    }

    /// Nine significant digits, as C's `%.9g`, which give an `f32` back exactly; `null` of what is
    /// no number, which JSON has no other word for.
    pub fn nine_digits(self) -> String {
        if self.0.is_finite() { self.digits(9) } else { "null".to_owned() }
    }

    /// Six significant digits, as C's `%g`.
    pub fn six_digits(self) -> String {
        self.digits(6)
    }

    fn digits(self, count: i32) -> String {
        let value = self.0;
        if value == 0.0 {
            return "0".to_owned();
        }
        if !value.is_finite() {
            return value.to_string().to_ascii_lowercase();
        }
        // Rounds to so many digits; the exponent then decides the form, as in C.
        let places = (count - 1) as usize;
        let text = format!("{value:.places$e}");
        let (digits, exponent) = text.split_once('e').expect("the format writes an exponent");
        let exponent: i32 = exponent.parse().expect("the format writes a number");
        // C turns to the exponent below 0.0001.
        if (-4..count).contains(&exponent) {
            let places = usize::try_from(count - 1 - exponent).expect("exponent < count");
            trimmed(&format!("{value:.places$}"))
        } else {
            format!("{}e{exponent:+03}", trimmed(digits))
        }
    }
}

fn trimmed(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text.to_owned()
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}GB/s", short(self.0))
    }
}

impl fmt::Debug for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Width;

    #[test]
    fn nine_digits_are_written_as_c_writes_them() {
        let text = |it: f32| Width(it).nine_digits();
        assert_eq!(text(5000.0), "5000");
        assert_eq!(text(370.800_02), "370.800018");
        assert_eq!(text(1.2), "1.20000005");
        assert_eq!(text(0.375), "0.375");
        assert_eq!(text(0.1), "0.100000001");
        assert_eq!(text(0.00001), "9.99999975e-06");
        assert_eq!(text(0.0), "0");
        assert_eq!((text(f32::NAN), text(f32::INFINITY)), ("null".into(), "null".into()));
        assert_eq!(Width(f32::NEG_INFINITY).six_digits(), "-inf");
        assert_eq!(Width(f32::NAN).six_digits(), "nan");
    }
}
