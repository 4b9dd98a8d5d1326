//! Flags in text for people: a library writes `` `--flows 4` `` in backticks, and the screen shows --flows 4 without them.

use std::borrow::Cow;

use crate::units;

/// The text with each flag in backticks without them. Other words in backticks keep theirs.
pub fn flags(text: &str) -> Cow<'_, str> {
    units::chosen(between("`", text))
}

/// As [`flags`], for Markdown, where the backticks of a message are escaped and those of markup are not.
pub fn flags_of_markdown(text: &str) -> Cow<'_, str> {
    units::chosen(between("\\`", text))
}

fn between<'a>(mark: &str, text: &'a str) -> Cow<'a, str> {
    let mut spelled = String::new();
    let (mut done, mut from) = (0, 0);
    while let Some(open) = text[from..].find(mark).map(|at| from + at) {
        let inner = open + mark.len();
        let Some(inside) = text[inner..].find(mark).map(|length| &text[inner..inner + length]) else { break };
        let after = inner + inside.len() + mark.len();
        // A mark does not pair with one of another paragraph.
        let pairs = !inside.contains("\n\n");
        if pairs && inside.starts_with("--") {
            spelled.push_str(&text[done..open]);
            spelled.push_str(inside);
            done = after;
        }
        from = if pairs { after } else { inner };
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    spelled.push_str(&text[done..]);
    Cow::Owned(spelled)
}

#[cfg(test)]
mod tests;
