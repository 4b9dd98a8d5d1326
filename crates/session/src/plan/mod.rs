//! Plans: their file and their cells. A file with one spec has the same keys.

mod factors;
mod fields;
mod keys;
mod open;
mod peer;
mod read;
mod single;

pub use open::{open, topology};
pub use read::read;
pub use single::read_spec;

#[cfg(test)]
mod tests;
