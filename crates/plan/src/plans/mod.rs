//! Plans: their file and their cells. A file with one spec has the same keys. Groups of flows are a plan, too.

mod earlier;
mod error;
mod factors;
mod fields;
mod group_tables;
mod groups;
mod keys;
mod parsed;
mod peer;
mod preview;
mod read;
mod single;
mod slots;
mod traffic;
mod written;

pub use earlier::Earlier;
pub use groups::{MAX_GROUPS, of_groups};
pub use parsed::{ParsedPlan, PlanCell};
pub use preview::Preview;
pub use read::read;
pub use single::read_spec;
pub use slots::{PlanHost, slots};

#[cfg(test)]
mod tests;
