//! The language in which users say what to measure: options as specs ([`specs`]), checks of a path ([`check`]), plans ([`read`]), groups of flows ([`of_groups`]),
//! topologies of labs ([`topology`]) and fleets of hosts ([`fleet`]).
//!
//! Text comes in and values go out. What a text refers to, such as a file or an interface, comes from a [`Resolver`]; what is wrong in
//! it is a [`Mistake`].

pub mod check;
pub mod fleet;
mod mistake;
mod plans;
mod resolver;
pub mod safe_rate;
pub mod source;
pub mod specs;
#[cfg(test)]
mod testing;
pub mod topology;

pub use fleet::{Fleet, FleetHost};
pub use mistake::Mistake;
pub use plans::{Earlier, MAX_GROUPS, ParsedPlan, PlanCell, PlanHost, Preview, of_groups, read, read_spec, slots};
pub use resolver::Resolver;
