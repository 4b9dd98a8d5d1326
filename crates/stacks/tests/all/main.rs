//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod arithmetic;
#[cfg(feature = "load")]
mod kernel;
mod manual;
mod objects;
