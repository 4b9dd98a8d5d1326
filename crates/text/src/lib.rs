//! Sentences for people as typed spans.
//!
//! A library writes a sentence with [`say!`] and keeps it as a [`Text`]; the derive macro [`Said`](derive@Said) makes the text of an error.
//! Whoever shows it chooses how options and rates are spelled ([`Spelling`]) and how code is marked. What a template inserts is never
//! searched for options.

pub mod as_string;
mod insert;
mod quantity;
mod span;
mod spelling;
mod text;
pub mod units;

pub use insert::{ByDisplay, BySaying, Inserted, Said};
pub use quantity::{Aside, Count, Rate, Size, Time, User};
pub use say::{Said, say};
pub use span::Span;
pub use spelling::{OptionsAs, RateUnit, Spelling};
pub use text::{Text, capitalised};
