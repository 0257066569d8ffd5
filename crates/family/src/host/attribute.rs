//! What NCCL reads from an attribute that is to be a number, and which number makes sense there.
//!
//! NCCL reads as C does: as far as digits go, 0 where there are none.  So `sm="9.0"` is 9 to it, a
//! capability that no GPU has, and nobody is told.

use crate::host::nccl::number::{float, int};

/// A number that an attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The least that makes sense.
    least: i64,
    /// The most that any server has.
    most: i64,
    /// Whether a fraction is taken.
    fraction: bool,
}

/// What an attribute that is to be a number holds instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Something that is no number of that kind.
    NoNumber,
    /// A number below the least that makes sense.
    TooSmall,
    /// A number beyond what any server has.
    TooLarge,
}

/// The number that the attribute of such an element is to hold; none of one that is no number.
pub(crate) fn wanted(element: &str, attr: &str) -> Option<Wanted> {
    /// Element, attribute, the least number that makes sense.
    const WHOLE: [(&str, &str, i64); 18] = [
        // Without NUMA, Linux says -1.
        ("cpu", "numaid", -1),
        ("cpu", "familyid", 0),
        ("cpu", "modelid", 0),
        ("pci", "link_width", 0),
        ("gpu", "dev", 0),
        ("gpu", "sm", 1),
        ("gpu", "rank", 0),
        ("gpu", "gdr", 0),
        ("nvlink", "count", 1),
        ("c2c", "bw", 0),
        ("c2c", "count", 1),
        ("net", "dev", 0),
        // Below 1 NCCL takes 10 Gbit/s, which has a finding of its own.
        ("net", "speed", i64::MIN),
        ("net", "port", 0),
        ("net", "gdr", 0),
        ("net", "coll", 0),
        ("net", "maxconn", 0),
        ("net", "rail", -1),
    ];
    /// Those of which a job or a server has so many at most, with room to spare.
    const MOST: [(&str, &str, i64); 5] = [
        // Linux has room for 1,024 nodes.
        ("cpu", "numaid", 1023),
        ("gpu", "rank", 1 << 24),
        ("gpu", "dev", 1023),
        ("net", "dev", 1023),
        // A GPU of 2026 has 18 links, an NVSwitch 144.
        ("nvlink", "count", 576),
    ];
    if (element, attr) == ("net", "latency") {
        return Some(Wanted { least: 0, most: i64::MAX, fraction: true });
    }
    let find = |table: &[(&str, &str, i64)]| {
        let found = table.iter().find(|(name, it, _)| (*name, *it) == (element, attr));
        found.map(|it| it.2)
    };
    let most = find(&MOST).unwrap_or(i64::MAX);
    find(&WHOLE).map(|least| Wanted { least, most, fraction: false })
}

impl Wanted {
    /// What is wrong with the text, if anything is.
    pub(crate) fn misfit(self, text: &str) -> Option<Misfit> {
        if self.fraction {
            return match text.trim().parse::<f32>() {
                Ok(number) if number >= self.least as f32 && number.is_finite() => None,
                Ok(number) if number < 0.0 => Some(Misfit::TooSmall),
                _ => Some(Misfit::NoNumber),
            };
        }
        match whole(text.trim()) {
            None => Some(Misfit::NoNumber),
            Some(number) if number < self.least => Some(Misfit::TooSmall),
            Some(number) => (self.most < number).then_some(Misfit::TooLarge),
        }
    }

    /// What NCCL makes of a text that is none.
    pub(crate) fn read(self, text: &str) -> String {
        if self.fraction { float(text).to_string() } else { int(text).to_string() }
    }

    /// What would be right, in words.
    pub(crate) fn words(self) -> &'static str {
        match (self.fraction, self.least) {
            (true, _) => "number of 0 or more",
            (false, 0) => "whole number of 0 or more",
            (false, 1) => "whole number of 1 or more",
            (false, _) => "whole number",
        }
    }
}

/// A number as C writes it: decimal, or hexadecimal behind 0x, or octal behind 0.
pub(crate) fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    // A second sign is none of C's.
    let number = digits.chars().all(|it| it.is_ascii_hexdigit()).then_some(digits)?;
    let number = i64::from_str_radix(number, base).ok()?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::{Misfit, wanted, whole};

    #[test]
    fn numbers_are_read_to_their_end() {
        for (text, number) in
            [("16", 16), ("-1", -1), ("0x1F", 31), ("010", 8), ("0", 0), ("+4", 4), ("-0x2", -2)]
        {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in [
            "",
            "-",
            "x",
            "9.0",
            "08",
            "0x",
            "--4",
            "+-4",
            "16x",
            "1e3",
            "é",
            "99999999999999999999",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn a_misfit_is_told_by_element_and_attribute() {
        let misfit = |element, attr, text| wanted(element, attr).and_then(|it| it.misfit(text));
        assert_eq!(misfit("gpu", "sm", "90"), None);
        assert_eq!(misfit("gpu", "sm", "9.0"), Some(Misfit::NoNumber));
        assert_eq!(misfit("pci", "link_width", "-4"), Some(Misfit::TooSmall));
        assert_eq!(misfit("pci", "link_width", "0"), None);
        assert_eq!(misfit("gpu", "rank", "2000000000"), Some(Misfit::TooLarge));
        assert_eq!(misfit("net", "dev", "99999"), Some(Misfit::TooLarge));
        assert_eq!(misfit("nvlink", "count", "2147483647"), Some(Misfit::TooLarge));
        assert_eq!(misfit("cpu", "numaid", "-1"), None);
        assert_eq!(misfit("cpu", "numaid", "999999999999"), Some(Misfit::TooLarge));
        assert_eq!(misfit("net", "speed", "-1"), None);
        assert_eq!(misfit("net", "latency", "1.5"), None);
        assert_eq!(misfit("net", "latency", "-1.5"), Some(Misfit::TooSmall));
        assert_eq!(misfit("net", "latency", "nan"), Some(Misfit::NoNumber));
        assert_eq!(misfit("net", "latency", "1e39"), Some(Misfit::NoNumber));
        assert_eq!(misfit("net", "name", "mlx5_0"), None);
    }
}
