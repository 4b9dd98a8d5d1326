//! A part of a sentence.

use std::borrow::Cow;
use std::fmt::Write;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spelling::{OptionsAs, Spelling};
use crate::units;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Span {
    /// Words as they are.
    Words(String),
    /// A name or a note that somebody else wrote.
    User(String),
    /// An option of `thru`.
    Option {
        /// Its key, such as `flows`.
        key: String,
        /// Its value; absent for the option by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
        /// Whether a flag has its value after an equals sign.
        #[serde(default, skip_serializing_if = "is_false")]
        equals: bool,
    },
    /// Something to type or to look for: a command, a setting, the word of another program.
    Code(String),
    /// A rate, bit/s.
    #[serde(rename = "bps")]
    Rate(f64),
    /// A size to the byte.
    #[serde(rename = "bytes")]
    Size(u64),
    /// A time, ns.
    #[serde(rename = "ns")]
    Time(f64),
    /// A number of things.
    Count(u64),
    /// In parentheses what a short screen leaves out, such as the method of a figure.
    Aside(Vec<Span>),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The characters of spans, with what `is_marked` in backticks.
pub(crate) fn marked(spans: &[Span], spelling: Spelling, is_marked: impl Fn(&Span) -> bool) -> String {
    spans.iter().fold(String::new(), |mut text, span| {
        let mark = if is_marked(span) { "`" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{mark}{}{mark}", span.spelled(spelling));
        text
    })
}

impl Span {
    /// The option `flows 4`, `flows=4` or `flows`.
    #[must_use]
    pub fn option(text: &str) -> Self {
        let end = text.find([' ', '=']).unwrap_or(text.len());
        let (key, value) = text.split_at(end);
        let equals = value.starts_with('=');
        let value = Some(value.trim_start_matches([' ', '='])).filter(|value| !value.is_empty());
        Self::Option { key: key.to_owned(), value: value.map(str::to_owned), equals }
    }

    /// Whether it is to be typed, so that a reader marks it as code.
    #[must_use]
    pub fn is_code(&self) -> bool {
        matches!(self, Self::Option { .. } | Self::Code(_))
    }

    /// Whether a terminal marks it as code. Flags stand out by their dashes.
    pub(crate) fn stands_out(&self, spelling: Spelling) -> bool {
        match self {
            Self::Option { .. } => spelling.options == OptionsAs::Keys,
            span => span.is_code(),
        }
    }

    /// Its characters, without a mark for code.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> Cow<'_, str> {
        match self {
            Self::Words(text) | Self::User(text) | Self::Code(text) => Cow::Borrowed(text),
            Self::Option { key, value, equals } => {
                let between = match (spelling.options, equals) {
                    (OptionsAs::Keys, _) => " = ",
                    (OptionsAs::Flags, true) => "=",
                    (OptionsAs::Flags, false) => " ",
                };
                let dashes = if spelling.options == OptionsAs::Flags { "--" } else { "" };
                let value = value.iter().flat_map(|value| [between, value]);
                Cow::Owned([dashes, key].into_iter().chain(value).collect())
            }
            Self::Rate(bps) => Cow::Owned(spelling.rates.rate(*bps)),
            Self::Size(bytes) => Cow::Owned(units::exact_size(*bytes)),
            Self::Time(ns) => Cow::Owned(units::seconds(*ns)),
            Self::Count(count) => Cow::Owned(units::grouped(*count)),
            Self::Aside(spans) => {
                Cow::Owned(format!(" ({})", marked(spans, spelling, |span| span.stands_out(spelling))))
            }
        }
    }

    /// The same for a document, which has no number for what is not finite.
    pub(crate) fn for_document(self) -> Self {
        match self {
            Self::Rate(value) | Self::Time(value) if !value.is_finite() => {
                Self::Words(self.spelled(Spelling::default()).into_owned())
            }
            span => span,
        }
    }
}
