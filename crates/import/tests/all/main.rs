//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod activity;
mod arbitrary;
mod cases;
mod hostile;
mod independent;
mod listings;
mod loops;
mod recorded;
mod shapes;
mod variants;
