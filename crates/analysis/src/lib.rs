//! Throughline's statistics and findings: pure functions over `model`. Nothing here reads a clock, a file or a socket, and
//! randomness comes only from a seed that the caller passes.
//!
//! The coordinator turns tallies into trials ([`trial_value`], [`ledger`], [`trial_verdicts`]), consults the stop rule after each
//! ([`stats::Sequential`]), makes an outcome of a cell's trials ([`outcome()`]), adds its ceiling ([`bound`]), its limiter ([`limiter::why`])
//! and the findings of a run's outcomes ([`findings`]), and compares cells or runs ([`compare`]). Values have the unit of their
//! statistic: bit/s, 1/s or ns.

mod accuracy;
pub mod advice;
pub mod anatomy;
pub mod ceiling;
pub mod checkup;
pub mod compare;
mod curve;
mod curve_fit;
mod direction;
pub mod findings;
pub mod history;
mod in_force;
pub mod limiter;
pub mod outcome;
pub mod plan;
pub mod refine;
pub mod stats;
pub mod steady;
mod tcp_clocks;

pub use accuracy::accuracy;
pub use ceiling::bound;
pub use checkup::of_check;
pub use compare::{of_paired, stored_runs};
pub use curve::neighbours;
pub use curve_fit::{Moment, fastest, of_a_moment};
pub use findings::{Stolen, of_curve, of_path, of_single};
pub use limiter::set_why;
pub use outcome::{CheckStream, Context, emulator_late, ledger, outcome, peak_check, trial_value, trial_verdicts};
pub use plan::{of_imported_matrix, of_plan};
pub use refine::refine;
