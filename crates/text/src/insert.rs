//! What a template may insert.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::{Span, Text};

/// Something that is a sentence, or a part of one: an error, a quantity.
pub trait Said {
    /// The sentence.
    fn say(&self) -> Text;
}

impl<T: Said + ?Sized> Said for &T {
    fn say(&self) -> Text {
        (**self).say()
    }
}

impl<T: Said + ?Sized> Said for Box<T> {
    fn say(&self) -> Text {
        (**self).say()
    }
}

/// Words as they are.
impl Said for str {
    fn say(&self) -> Text {
        self.into()
    }
}

/// Words as they are.
impl Said for String {
    fn say(&self) -> Text {
        self.as_str().into()
    }
}

/// Its path, as words.
impl Said for Path {
    fn say(&self) -> Text {
        self.display().to_string().into()
    }
}

/// Its path, as words.
impl Said for PathBuf {
    fn say(&self) -> Text {
        self.as_path().say()
    }
}

/// Its words.
impl Said for std::io::Error {
    fn say(&self) -> Text {
        self.to_string().into()
    }
}

impl Said for Text {
    fn say(&self) -> Text {
        self.clone()
    }
}

impl<T: Said> std::ops::Add<T> for Text {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self += more;
        self
    }
}

impl<T: Said> std::ops::AddAssign<T> for Text {
    fn add_assign(&mut self, more: T) {
        self.append(more.say());
    }
}

/// What `{x}` inserts. The compiler looks for [`BySaying`] first, which takes `x` by one reference less than [`ByDisplay`] does.
#[derive(Debug)]
pub struct Inserted<'a, T: ?Sized>(pub &'a T);

/// Inserts what a value says.
pub trait BySaying {
    /// Adds it to the text.
    fn insert(&self, text: &mut Text);
}

impl<T: Said + ?Sized> BySaying for Inserted<'_, T> {
    fn insert(&self, text: &mut Text) {
        text.append(self.0.say());
    }
}

/// Inserts what a value displays, as words.
pub trait ByDisplay {
    /// Adds it to the text.
    fn insert(&self, text: &mut Text);
}

impl<T: Display + ?Sized> ByDisplay for &Inserted<'_, T> {
    fn insert(&self, text: &mut Text) {
        text.push(Span::Words(self.0.to_string()));
    }
}
