//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod common;
mod processes;
mod round_trip;
mod trouble;
