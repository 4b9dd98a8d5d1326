//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod labs;
mod path;
