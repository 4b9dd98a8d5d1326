//! The typed draft of a measurement. Flags, the keys of a plan and a JSON object fill it; `finish` makes specs of it, with the
//! defaults and with all checks of combinations.

mod check;
mod end_options;
mod error;
mod fields;
mod finish;
mod json;
mod names;
mod sizes;
mod spec_draft;
mod unknown;

pub(crate) use end_options::check_forwarded;
pub use error::FieldError;
pub use fields::{FIELDS, Field, field, split};
pub use names::program;
pub use spec_draft::{SpecDraft, TestKind};
pub use unknown::{closest, unknown};

#[cfg(test)]
mod tests;
