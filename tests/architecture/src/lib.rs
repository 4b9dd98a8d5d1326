//! The rules of the code that a machine can hold, as functions from a graph or a source text to what breaks them.
//! `tests/workspace.rs` applies them to this workspace; the unit tests here apply them to small invented ones, to show that
//! each rule can fail. The rules are written down for people in CONTRIBUTING.md.

pub mod imports;
mod lexer;
pub mod sources;
pub mod text;
mod violation;

pub use violation::{Rule, Violation};
