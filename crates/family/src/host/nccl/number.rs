//! Numbers as C's library reads them, which NCCL leaves its attributes and variables to: as far as
//! they go, and 0 where a text begins with none.

/// What C takes for blanks.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];

/// A text without blanks and sign at its begin, and whether that was a minus.
fn signed(text: &str) -> (bool, &str) {
    let text = text.trim_start_matches(BLANKS);
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// What follows `0x`, if that begins a number in base 16.
fn hexadecimal(text: &str) -> Option<&str> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    digits.starts_with(|it: char| it.is_ascii_hexdigit()).then_some(digits)
}

/// The number that a text begins with, as `strtoll` reads it: in base 10 or 16, or in base 0, where
/// `0x` stands before hexadecimal and `0` before octal digits; as an error the nearest number of 64
/// bits where it is out of their range.
pub(crate) fn integer(text: &str, base: u32) -> Result<i64, i64> {
    let (is_negative, digits) = signed(text);
    let (base, digits) = match hexadecimal(digits) {
        Some(digits) if base == 0 || base == 16 => (16, digits),
        _ if base == 0 && digits.starts_with('0') => (8, digits),
        _ if base == 0 => (10, digits),
        _ => (base, digits),
    };
    let digits = digits.chars().map_while(|it| it.to_digit(base));
    let value = digits.fold(0_i128, |value, it| {
        // Beyond 64 bits all are alike.
        (value * i128::from(base) + i128::from(it)).min(1 << 64)
    });
    let value = if is_negative { -value } else { value };
    i64::try_from(value).map_err(|_| if is_negative { i64::MIN } else { i64::MAX })
}

/// The number in base 16 that a text begins with, as 64 bits have it.
pub(crate) fn hex(text: &str) -> u64 {
    let (is_negative, text) = signed(text);
    let digits = hexadecimal(text).unwrap_or(text).chars().map_while(|it| it.to_digit(16));
    let number = digits.fold(0, |number: u64, digit| (number << 4) | u64::from(digit));
    if is_negative { number.wrapping_neg() } else { number }
}

/// The same in base 0, as an `int` has it.
pub(crate) fn int(text: &str) -> i32 {
    // C cuts a `long` to an `int`.
    integer(text, 0).unwrap_or_else(|bound| bound) as i32
}

/// The number that a text begins with, as `strtof` reads it.
pub(crate) fn float(text: &str) -> f32 {
    let (is_negative, text) = signed(text);
    let begins =
        |word: &str| text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    let value = if begins("inf") {
        f32::INFINITY
    } else if begins("nan") {
        f32::NAN
    } else if let Some(digits) = hexadecimal(text) {
        hexadecimal_float(digits)
    } else {
        decimal(text).parse().unwrap_or(0.0)
    };
    if is_negative { -value } else { value }
}

/// The longest beginning that is a decimal number.
fn decimal(text: &str) -> &str {
    let digits = |at: usize| text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    let mut end = whole;
    if text[end..].starts_with('.') {
        let fraction = digits(end + 1);
        if 0 < whole + fraction {
            end += 1 + fraction;
        }
    }
    if 0 < end && text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        match digits(end + 1 + sign) {
            0 => {}
            n => end += 1 + sign + n,
        }
    }
    &text[..end]
}

/// Digits in base 16 with a fraction and a power of two behind `p`.
fn hexadecimal_float(text: &str) -> f32 {
    let end = text.find(|it: char| !it.is_ascii_hexdigit() && it != '.').unwrap_or(text.len());
    let (mantissa, rest) = text.split_at(end);
    let mut parts = mantissa.splitn(3, '.');
    let (whole, fraction) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let digits = |text: &str| -> f64 {
        text.chars()
            .filter_map(|it| it.to_digit(16))
            .fold(0.0, |sum, it| sum * 16.0 + f64::from(it))
    };
    let mut value =
        fraction.chars().fold(digits(fraction), |value, _| value / 16.0) + digits(whole);
    if let Some(power) = rest.strip_prefix(['p', 'P']) {
        let power = integer(power, 10).unwrap_or_else(|bound| bound).clamp(-2000, 2000);
        let factor = if power < 0 { 0.5 } else { 2.0 };
        // Each step is exact, and what leaves the range stays beyond it.
        value = (0..power.abs()).fold(value, |value, _| value * factor);
    }
    value as f32
}

#[cfg(test)]
mod tests {
    use super::{float, int, integer};

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        let cases = [
            ("7", 7, 7, 7),
            (" \t+7x", 7, 7, 7),
            ("-3", -3, -3, -3),
            ("yes", 0, 0, 0),
            ("", 0, 0, 0),
            ("-", 0, 0, 0),
            ("0x", 0, 0, 0),
            ("0x10", 0, 16, 16),
            ("-0Xfg", 0, -15, -15),
            ("010", 10, 8, 16),
            ("09", 9, 0, 9),
            ("1f", 1, 1, 31),
            ("9223372036854775807", i64::MAX, i64::MAX, i64::MAX),
            ("-9223372036854775808", i64::MIN, i64::MIN, i64::MIN),
        ];
        for (text, decimal, any, hex) in cases {
            let read = |base| integer(text, base).unwrap_or_else(|bound| bound);
            assert_eq!((read(10), read(0)), (decimal, any), "{text:?}");
            if text.len() < 10 {
                assert_eq!(read(16), hex, "{text:?}");
            }
        }
        assert_eq!(integer("9223372036854775808", 10), Err(i64::MAX));
        assert_eq!(integer("-99999999999999999999999999999999999999999999", 0), Err(i64::MIN));
        assert_eq!((int("4294967297"), int("99999999999999999999")), (1, -1));
    }

    #[test]
    fn fractions_are_read_as_c_reads_them() {
        let cases = [
            ("5us", 5.0),
            (" 5", 5.0),
            ("5 ", 5.0),
            ("5,0", 5.0),
            ("24 GBs", 24.0),
            ("-1.5", -1.5),
            ("1.", 1.0),
            (".5x", 0.5),
            (".", 0.0),
            ("1e3", 1000.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("2E-1z", 0.2),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("0x.", 0.0),
            ("1e39", f32::INFINITY),
            ("-INFINITY", f32::NEG_INFINITY),
            ("x", 0.0),
            ("", 0.0),
            ("é", 0.0),
        ];
        for (text, number) in cases {
            assert_eq!(float(text), number, "{text:?}");
        }
        assert!(float("nan").is_nan() && float("-NaN(7)").is_nan());
    }
}
