//! Plans: their file, their cells, and how they are conducted.

mod conduct;
mod fields;
mod read;
pub mod source;

pub use conduct::{Resumed, conduct, places};
pub use read::{Read, read};

#[cfg(test)]
mod tests;
