//! Throughline's statistics and findings: pure functions over `model`. Nothing here reads a clock, a file or a socket, and
//! randomness comes only from a seed that the caller gives.
//!
//! Shapes: the coordinator turns tallies into trials ([`trial_value`], [`ledger`], [`trial_verdicts`]), asks the stop rule
//! after each ([`stats::Sequential`]), makes an outcome of a cell's trials ([`outcome()`]), sets it against what its path could carry ([`bound`]), says what held it back ([`why()`]) and findings of a run's outcomes
//! ([`findings`]), and sets two cells or several runs against each other ([`compare`]). Values carry the unit of the statistic: bit/s, 1/s or ns.

pub mod advice;
pub mod ceiling;
pub mod compare;
mod curve;
mod direction;
pub mod findings;
pub mod limiter;
pub mod outcome;
pub mod plan;
pub mod refine;
pub mod stats;

pub use ceiling::bound;
pub use compare::{of_paired, stored_runs};
pub use findings::{Stolen, of_curve, of_path, of_single};
pub use limiter::why;
pub use outcome::{Context, emulator_late, ledger, outcome, trial_value, trial_verdicts};
pub use plan::of_plan;
pub use refine::refine;
