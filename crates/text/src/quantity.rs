//! Quantities that a sentence shows with their units.

use std::fmt;

use crate::{Said, Span, Text, units};

/// A rate, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// A time, ns.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Time(pub f64);

/// A size to the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A number of things: `38`, `1,740`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// A name or a note that somebody else wrote. Readers show its letters as they are, whatever they mean to a terminal or in markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User<'a>(pub &'a str);

/// What a short screen leaves out, behind a space and in parentheses.
#[derive(Debug, Clone, PartialEq)]
pub struct Aside(pub Text);

impl Said for Aside {
    fn say(&self) -> Text {
        Span::Aside(self.0.spans().to_vec()).into()
    }
}

impl Said for Rate {
    fn say(&self) -> Text {
        Span::Rate(self.0).into()
    }
}

impl Said for Time {
    fn say(&self) -> Text {
        Span::Time(self.0).into()
    }
}

impl Said for Size {
    fn say(&self) -> Text {
        Span::Size(self.0).into()
    }
}

impl Said for Count {
    fn say(&self) -> Text {
        Span::Count(self.0).into()
    }
}

impl Count {
    /// The nearest whole number of a mean or a rate per minute.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are not negative, and small")]
    pub fn rounded(value: f64) -> Self {
        Self(value.round() as u64)
    }
}

impl Said for User<'_> {
    fn say(&self) -> Text {
        Span::User(self.0.to_owned()).into()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&units::seconds(self.0))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&units::exact_size(self.0))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&units::grouped(self.0))
    }
}
