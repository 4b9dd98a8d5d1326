//! What strings measurements together: experiments that start agents and clients of their own.

mod own;
pub mod selftest;

pub use own::{LEASH, OwnAgent, measure};
