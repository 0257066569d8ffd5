//! Numbers and times for people.

/// `3,072`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (idx, digit) in digits.chars().enumerate() {
        if idx != 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 cube`, `16 cubes`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{} {what}s", grouped(n)),
    }
}

/// Seconds as `412ms`, `48s`, `1h 02m` or `3d 04h`: two parts, which is as exact as anybody reads.
pub(crate) fn seconds(secs: f64) -> String {
    if !secs.is_finite() || secs < 0.0 {
        return "-".to_owned();
    }
    let whole = secs.round() as u64;
    match whole {
        _ if secs == 0.0 => "0s".to_owned(),
        _ if secs < 1.0 => format!("{:.0}ms", (secs * 1000.0).ceil()),
        _ if secs < 10.0 => format!("{secs:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m {:02}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h {:02}m", whole / 3600, whole / 60 % 60),
        _ => format!("{}d {:02}h", whole / 86_400, whole / 3600 % 24),
    }
}

/// Plant time as `04:05:06`, with days before it from the second day on.
pub(crate) fn clock(secs: f64) -> String {
    if !secs.is_finite() || secs < 0.0 {
        return "-".to_owned();
    }
    let secs = secs as u64;
    let (days, hours, mins) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60);
    let clock = format!("{hours:02}:{mins:02}:{:02}", secs % 60);
    if days == 0 { clock } else { format!("{days}d {clock}") }
}

/// Seconds of the Unix clock as `2026-11-21 16:09:15Z`.
pub(crate) fn utc(unix_s: u64) -> String {
    let (days, secs) = (unix_s / 86_400, unix_s % 86_400);
    // Years that begin in March have their leap day at the end; 719,468 days lie between the first
    // of March of the year 0 and the beginning of 1970.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hours, mins) = (secs / 3600, secs / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{mins:02}:{:02}Z", secs % 60)
}

/// A share of one as `83.1 %`.
pub(crate) fn share(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let texts = [0, 999, 1000, 3072, 50_800, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "3,072", "50,800", "1,234,567"]);
        assert_eq!([counted(1, "cube"), counted(0, "cube")], ["1 cube", "0 cubes"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (unix_s, date) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_399, "2000-02-28 23:59:59Z"),
            (951_782_400, "2000-02-29 00:00:00Z"),
            (1_709_251_199, "2024-02-29 23:59:59Z"),
            (1_795_277_355, "2026-11-21 16:09:15Z"),
            (4_107_542_400, "2100-03-01 00:00:00Z"),
        ] {
            assert_eq!(utc(unix_s), date);
        }
    }

    #[test]
    fn times_have_two_parts() {
        let texts = [0.0, 0.4116, 1.25, 9.94, 47.6, 61.0, 3720.0, 273_700.0, f64::NAN].map(seconds);
        let expected = ["0s", "412ms", "1.2s", "9.9s", "48s", "1m 01s", "1h 02m", "3d 04h", "-"];
        assert_eq!(texts, expected);
        assert_eq!([3.9, 90_061.0].map(clock), ["00:00:03", "1d 01:01:01"]);
    }
}
