//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod advice;
mod bootstrap;
mod coverage;
mod coverage_of_medians;
mod paired;
mod steady;
