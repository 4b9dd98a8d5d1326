//! Plans: their file and their cells. A file with one spec has the same keys.

mod factors;
mod fields;
mod keys;
mod read;
mod single;

pub use read::read;
pub use single::read_spec;

#[cfg(test)]
mod tests;
