//! The measuring path: what carries bytes ([`transport`]), how the two ends use it ([`pattern`]), and the threads that
//! run and count ([`runner`]).
//!
//! A trial: the coordinator sends a [`TrialPlan`] to both ends. The passive end's [`transport::Transport`] listens,
//! the active end's connects, one [`transport::Link`] per flow. [`runner::run`] gives each flow the machine of its
//! pattern, releases all threads at once and returns the counts. All memory is allocated before that release; after
//! it, a thread makes system calls, stores to its own counters, and does nothing else.

mod clock;
mod error;
pub mod pattern;
mod plan;
pub mod runner;
mod sys;
pub mod transport;

pub use clock::now_ns;
pub use error::EngineError;
pub use plan::{Leg, LegStop, TrialPlan};
pub use runner::{LegTally, Signals, run};
pub use sys::{WallError, wall_error};
