//! The measuring path: what carries bytes ([`transport`]), what the two ends do with it ([`pattern`]) and the threads that do
//! it while counting ([`runner`]).
//!
//! A trial goes: a coordinator's [`TrialPlan`] reaches both ends; the passive end's [`transport::Transport`] listens, the
//! active end's connects, one [`transport::Link`] a flow; [`runner::run`] gives each flow the machine that the pattern's
//! registry names, releases all threads at once and returns what was counted. Everything is allocated before that release;
//! inside, a thread does system calls, plain stores to its own counters and nothing else.

mod clock;
mod error;
pub mod pattern;
mod plan;
pub mod runner;
mod sys;
pub mod transport;

pub use clock::now_ns;
pub use error::EngineError;
pub use plan::{Leg, LegStop, TrialPlan, min_exchanges};
pub use runner::{LegTally, Signals, run};
pub use sys::{WallError, wall_error};
