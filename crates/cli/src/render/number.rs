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
    fn times_have_two_parts() {
        let texts = [0.0, 0.4116, 1.25, 9.94, 47.6, 61.0, 3720.0, 273_700.0, f64::NAN].map(seconds);
        let expected = ["0s", "412ms", "1.2s", "9.9s", "48s", "1m 01s", "1h 02m", "3d 04h", "-"];
        assert_eq!(texts, expected);
        assert_eq!([3.9, 90_061.0].map(clock), ["00:00:03", "1d 01:01:01"]);
    }
}
