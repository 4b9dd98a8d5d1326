//! What the targets share: a bound on their memory, and the drivers of the codecs of other programs.

#![warn(missing_docs)]

pub mod memory;
pub mod peers;
pub mod said;
mod sys;
