//! What the targets share: a bound on their memory, mutations of documents, and the drivers of the codecs of other programs.

#![warn(missing_docs)]

pub mod host;
pub mod memory;
pub mod peers;
pub mod said;
pub mod structure;
mod sys;
