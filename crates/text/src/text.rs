//! A sentence, or several.

use std::fmt::Write;

use crate::{OptionsAs, Span, Spelling};

/// Text for people, as typed spans.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Text {
    spans: Vec<Span>,
}

impl Text {
    /// Adds a span.
    pub fn push(&mut self, span: Span) {
        match (self.spans.last_mut(), span) {
            (_, Span::Words(words)) if words.is_empty() => {}
            (Some(Span::Words(last)), Span::Words(words)) => last.push_str(&words),
            (_, span) => self.spans.push(span),
        }
    }

    /// Adds another text.
    pub fn append(&mut self, other: Self) {
        other.spans.into_iter().for_each(|span| self.push(span));
    }

    /// The spans. Words do not follow words, and none are empty.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The characters, with code in backticks, flags, and rates in bit/s, as documents have it.
    #[must_use]
    pub fn plain(&self) -> String {
        self.marked(Spelling::default(), Span::is_code)
    }

    /// The characters for a terminal. Flags stand out by their dashes; other code is in backticks.
    #[must_use]
    pub fn shown(&self, spelling: Spelling) -> String {
        self.marked(spelling, |span| match span {
            Span::Option { .. } => spelling.options == OptionsAs::Keys,
            span => span.is_code(),
        })
    }

    /// The characters, with what `is_marked` in backticks.
    fn marked(&self, spelling: Spelling, is_marked: impl Fn(&Span) -> bool) -> String {
        self.spans.iter().fold(String::new(), |mut text, span| {
            let mark = if is_marked(span) { "`" } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(text, "{mark}{}{mark}", span.spelled(spelling));
            text
        })
    }
}

impl From<&str> for Text {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl From<String> for Text {
    fn from(words: String) -> Self {
        let mut text = Self::default();
        text.push(Span::Words(words));
        text
    }
}

impl From<Span> for Text {
    fn from(span: Span) -> Self {
        let mut text = Self::default();
        text.push(span);
        text
    }
}
