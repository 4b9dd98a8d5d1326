//! Rules of the code that neither the compiler, clippy nor cargo-deny can hold, as functions from a graph or a source text to the places
//! that break them. `tests/workspace.rs` applies them to this workspace; the unit tests here show that each rule can fail.
//! CONTRIBUTING.md describes the rules.

pub mod circles;
pub mod layers;
mod lexer;
pub mod modules;
pub mod sources;
pub mod targets;
