//! Text from other hosts and programs, made safe for a terminal.

use std::borrow::Cow;

/// The replacement for a character that is not shown.
const HIDDEN: char = '\u{FFFD}';

/// The text on one line, with a visible replacement for each character that could control a terminal, start a line or change the
/// writing direction.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    shown(text, &[])
}

/// As [`plain`], for text of several lines: line ends (also CR LF, as in CSV) and tabs are kept.
#[must_use]
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return shown(text, &['\n', '\t']);
    }
    let lines: Vec<Cow<'_, str>> = text.split("\r\n").map(|line| shown(line, &['\n', '\t'])).collect();
    lines.join("\r\n").into()
}

fn shown<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let bad = |letter: char| acts(letter) && !kept.contains(&letter);
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|letter| if bad(letter) { HIDDEN } else { letter }).collect()
}

/// Control characters (C0, DEL, C1), the line and paragraph separators, and those that embed, override or isolate a direction
/// (Unicode Standard Annex 9, 2).
fn acts(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        let text = "a\x1b]52;c;eA==\x07\rb\nc\u{9b}2J\u{7f}\u{202e}d\u{2066}\u{2028}\u{1}";
        assert_eq!(
            plain(text),
            "a\u{FFFD}]52;c;eA==\u{FFFD}\u{FFFD}b\u{FFFD}c\u{FFFD}2J\u{FFFD}\u{FFFD}d\u{FFFD}\u{FFFD}\u{FFFD}"
        );
        assert_eq!(plain_lines("a\n\tb\rc\r\n\r"), "a\n\tb\u{FFFD}c\r\n\u{FFFD}");
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in ["", "9.41 Gbit/s ±0.2 %", "Grüße, 世界, שלום", "⣿⣀"] {
            assert!(matches!(plain(text), Cow::Borrowed(same) if same == text));
        }
    }
}
