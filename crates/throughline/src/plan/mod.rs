//! Plans: their file, their cells and their execution. A file with one spec has the same keys.

mod conduct;
mod factors;
mod fields;
mod keys;
mod read;
mod single;
pub mod source;

pub use conduct::{Resumed, conduct, slots};
pub use read::{ParsedPlan, read};
pub use single::read_spec;

#[cfg(test)]
mod tests;
