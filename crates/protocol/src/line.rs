//! Texts from elsewhere, made fit to be shown and stored.

use text::{Span, Text};

/// A text from elsewhere as one line of at most `most` characters, without control characters.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The line.
    pub text: Text,
    /// Whether the text goes on.
    pub is_cut: bool,
}

impl Line {
    /// The first characters of `text`.
    #[must_use]
    pub fn of(text: &Text, most: usize) -> Self {
        let mut line = Self { text: Text::default(), is_cut: false };
        let mut left = most;
        for span in text.spans() {
            // Also a span without letters takes a place.
            let length = Text::from(span.clone()).plain().chars().count().max(1);
            line.is_cut = length > left;
            let part = if line.is_cut { start(span, left) } else { Some(span.clone()) };
            part.into_iter().for_each(|part| line.text.push(clean(part)));
            if line.is_cut {
                break;
            }
            left -= length;
        }
        line
    }
}

/// The first `most` characters. What is not words means nothing if a part of it is missing.
fn start(span: &Span, most: usize) -> Option<Span> {
    let first = |words: &str| words.chars().take(most).collect();
    match span {
        Span::Words(words) => Some(Span::Words(first(words))),
        Span::User(words) if most > 0 => Some(Span::User(first(words))),
        _ => None,
    }
}

/// With a replacement for each control character.
fn clean(span: Span) -> Span {
    let plain = |text: String| model::plain(&text).into_owned();
    match span {
        Span::Words(words) => Span::Words(plain(words)),
        Span::User(words) => Span::User(plain(words)),
        Span::Code(code) => Span::Code(plain(code)),
        Span::Option { key, value, equals } => Span::Option { key: plain(key), value: value.map(plain), equals },
        quantity => quantity,
    }
}

#[cfg(test)]
mod tests {
    use text::say;

    use super::*;

    #[test]
    fn a_text_from_elsewhere_is_a_short_line_that_keeps_its_spans() {
        let text = say!("use `--flows {}`\nor {} of `a\u{1b}b`", "1\r2", text::Rate(1e6));
        let Line { text: line, is_cut } = Line::of(&text, 1_000);
        assert_eq!(line.plain(), "use `--flows 1\u{fffd}2`\u{fffd}or 1.00 Mbit/s of `a\u{fffd}b`");
        assert_eq!((line.spans().len(), is_cut), (text.spans().len(), false));
        let cut = |most| Line::of(&text, most).text.plain();
        assert_eq!(
            (cut(2), cut(10), cut(24)),
            ("us".into(), "use ".into(), "use `--flows 1\u{fffd}2`\u{fffd}or ".into())
        );
        assert!(Line::of(&text, 10).is_cut && Line::of(&"x".repeat(5).into(), 4).is_cut);
    }

    #[test]
    fn spans_without_letters_have_a_length() {
        let many: Vec<Text> = vec![Span::Code(String::new()).into(); 1_000];
        assert!(Line::of(&Text::join(many, ""), 100).text.spans().len() <= 50);
        let nameless: Vec<Text> = vec![Span::User(String::new()).into(); 1_000];
        assert!(Line::of(&Text::join(nameless, ""), 100).text.spans().len() <= 100);
    }
}
