//! Texts that people wrote, where others read them: no character of theirs moves a cursor, sets a
//! colour or turns the direction of what stands beside it.

/// Adds `c` as it is if it only stands there, else by its code, as `\u{1b}`.
pub fn push(text: &mut String, c: char) {
    if c.is_control() || turns(c) {
        text.extend(c.escape_unicode());
    } else {
        text.push(c);
    }
}

/// `text` with all that acts shown by its code; ends of lines stay.
#[must_use]
pub fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' {
            shown.push(c);
        } else {
            push(&mut shown, c);
        }
    }
    shown
}

/// Whether `c` sets the direction of other text, or breaks its line.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
