//! Plans: their file and their cells. A file with one spec has the same keys. Groups of flows are a plan, too.

mod error;
mod factors;
mod fields;
mod group_tables;
mod groups;
mod keys;
mod open;
mod peer;
mod read;
mod single;
mod traffic;
mod written;

pub use groups::{MAX_GROUPS, of_groups};
pub use open::{open, topology};
pub use read::read;
pub use single::read_spec;

#[cfg(test)]
mod tests;
