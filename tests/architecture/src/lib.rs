//! Rules of the code that are checked by a test, as functions from a graph or a source text to violations.
//! `tests/workspace.rs` applies them to this workspace; the unit tests here apply them to small made-up ones, to show that
//! each rule can fail. CONTRIBUTING.md describes the rules.

pub mod circles;
pub mod flags;
pub mod imports;
mod lexer;
pub mod modules;
pub mod sources;
pub mod text;
mod violation;
pub mod vocabulary;

pub use violation::{Rule, Violation};
