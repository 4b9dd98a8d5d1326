//! The threads of a trial: gives each flow its machine, releases all threads at once, monitors them and adds up their
//! counts.

mod completions;
mod flow;
mod gate;
mod merge;
mod meter;
mod pace;
mod readiness;
mod readings;
mod rounds;
mod run;
mod stopwatch;
mod sys;
mod tally;
mod tcp;
mod thread;
mod timers;
mod trial;

pub use run::run;
pub use tally::LegTally;
