//! How the value of an option is read from text.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::values::{at_least, whole, within};
use crate::{Range, ValueError};

/// A parser of a value that knows the value's range.
pub(crate) trait Reader {
    /// What it reads.
    type Value;

    /// Reads a value.
    fn read(&self, text: &str) -> Result<Self::Value, ValueError>;

    /// The range.
    fn range(&self) -> Option<Range> {
        None
    }
}

impl<T, F: Fn(&str) -> Result<T, ValueError>> Reader for F {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, ValueError> {
        self(text)
    }
}

/// A whole number in a range.
pub(crate) struct Whole<T>(pub(crate) RangeInclusive<T>);

impl<T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static> Reader for Whole<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, ValueError> {
        whole(self.0.clone())(text)
    }

    fn range(&self) -> Option<Range> {
        Some(Range { least: self.0.start().to_string(), most: Some(self.0.end().to_string()) })
    }
}

/// A quantity in a range.
pub(crate) struct Within<T>(pub(crate) RangeInclusive<T>);

impl<T: FromStr<Err: Into<ValueError>> + PartialOrd + Display + Clone + Send + Sync + 'static> Reader for Within<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, ValueError> {
        within(self.0.clone())(text)
    }

    fn range(&self) -> Option<Range> {
        Some(Range { least: self.0.start().to_string(), most: Some(self.0.end().to_string()) })
    }
}

/// A quantity of this much or more.
pub(crate) struct AtLeast<T>(pub(crate) T);

impl<T: FromStr<Err: Into<ValueError>> + PartialOrd + Display + Clone + Send + Sync + 'static> Reader for AtLeast<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, ValueError> {
        at_least(self.0.clone())(text)
    }

    fn range(&self) -> Option<Range> {
        Some(Range { least: self.0.to_string(), most: None })
    }
}

/// One of a few names.
pub(crate) struct OneOf<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T: Copy> Reader for OneOf<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, ValueError> {
        let found = self.0.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words = self.0.iter().map(|(name, _)| *name).collect();
            ValueError::OneOf { text: text.to_owned(), words }
        })
    }
}

/// The range of what a reader reads.
pub(crate) fn range<R: Reader>(reader: &R) -> Option<Range> {
    reader.range()
}

/// A field that may hold the values of an option.
pub(crate) trait Field {
    /// One value.
    type Value;

    /// Takes a value.
    fn put(&mut self, value: Self::Value);

    /// Whether it holds one.
    fn is_set(&self) -> bool;
}

impl<T> Field for Option<T> {
    type Value = T;

    fn put(&mut self, value: T) {
        *self = Some(value);
    }

    fn is_set(&self) -> bool {
        self.is_some()
    }
}

impl Field for bool {
    type Value = Self;

    fn put(&mut self, value: Self) {
        *self = value;
    }

    fn is_set(&self) -> bool {
        *self
    }
}

/// An option that may be given several times.
impl<T> Field for Vec<T> {
    type Value = T;

    fn put(&mut self, value: T) {
        self.push(value);
    }

    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

/// Reads a value into its field.
pub(crate) fn put<F: Field, R: Reader<Value = F::Value>>(
    field: &mut F,
    reader: &R,
    text: &str,
) -> Result<(), ValueError> {
    field.put(reader.read(text)?);
    Ok(())
}
