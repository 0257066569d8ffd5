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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let texts = [0, 999, 1000, 3072, 50_800, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "3,072", "50,800", "1,234,567"]);
        assert_eq!([counted(1, "cube"), counted(0, "cube")], ["1 cube", "0 cubes"]);
    }
}
