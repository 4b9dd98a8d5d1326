//! Plans: their file, their cells, and how they are conducted. A file with one spec is read in the same words.

mod conduct;
mod factors;
mod fields;
mod keys;
mod read;
mod single;
pub mod source;

pub use conduct::{Resumed, conduct, slots};
pub use read::{Read, read};
pub use single::read_spec;

#[cfg(test)]
mod tests;
