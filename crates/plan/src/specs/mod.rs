//! The specs of a test from the options that it was given: the defaults, and all checks of combinations.

mod check;
mod defaults;
mod ends;
mod sizes;

pub use defaults::{of, one};
pub(crate) use ends::check_forwarded;

#[cfg(test)]
mod tests;
