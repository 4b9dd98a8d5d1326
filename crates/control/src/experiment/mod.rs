//! Experiments that combine measurements and start their own agents and clients.

mod own;
pub mod selftest;

pub use own::{OwnAgent, TOKEN_VARIABLE, UNTIL_INPUT_ENDS, measure};
