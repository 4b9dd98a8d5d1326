//! A sentence, or several.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::marked;
use crate::{Span, Spelling};

/// Words with a capital letter.
#[must_use]
pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(char::to_uppercase).into_iter().flatten().chain(letters).collect()
}

/// Text for people, as typed spans.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(from = "Written", into = "Written")]
pub struct Text {
    spans: Vec<Span>,
}

/// A text in a document.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Written {
    /// The text: code in backticks, options as flags, rates in bit/s.
    statement: String,
    /// The same in typed parts; absent if there are only words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spans: Vec<Span>,
}

impl From<Written> for Text {
    fn from(written: Written) -> Self {
        Self::of(written.statement, written.spans)
    }
}

impl From<Text> for Written {
    fn from(text: Text) -> Self {
        Self { statement: text.plain(), spans: text.typed() }
    }
}

impl Text {
    /// The text of a document: its typed parts, or the characters if there are none.
    #[must_use]
    pub fn of(characters: String, spans: Vec<Span>) -> Self {
        if spans.is_empty() {
            return characters.into();
        }
        spans.into_iter().fold(Self::default(), |mut text, span| {
            text.push(span);
            text
        })
    }

    /// Its typed parts for a document; none if there are only words.
    #[must_use]
    pub fn typed(&self) -> Vec<Span> {
        match self.spans.as_slice() {
            [] | [Span::Words(_)] => Vec::new(),
            spans => spans.iter().cloned().map(Span::for_document).collect(),
        }
    }

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

    /// Several texts with `between` each two of them.
    #[must_use]
    pub fn join(texts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        texts.into_iter().enumerate().fold(Self::default(), |mut all, (index, text)| {
            if index > 0 {
                all.push(Span::Words(between.to_owned()));
            }
            all.append(text);
            all
        })
    }

    /// The same with a capital letter, if it begins with words.
    #[must_use]
    pub fn capitalised(mut self) -> Self {
        if let Some(Span::Words(words)) = self.spans.first_mut() {
            *words = capitalised(words);
        }
        self
    }

    /// The same without asides.
    #[must_use]
    pub fn brief(&self) -> Self {
        let spans = self.spans.iter().filter(|span| !matches!(span, Span::Aside(_)));
        spans.fold(Self::default(), |mut text, span| {
            text.push(span.clone());
            text
        })
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The spans. Words do not follow words, and none are empty.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The characters, with code in backticks, flags, and rates in bit/s, as documents have it.
    #[must_use]
    pub fn plain(&self) -> String {
        marked(&self.spans, Spelling::default(), Span::is_code)
    }

    /// The characters for a terminal. Flags stand out by their dashes; other code is in backticks.
    #[must_use]
    pub fn shown(&self, spelling: Spelling) -> String {
        marked(&self.spans, spelling, |span| span.stands_out(spelling))
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
