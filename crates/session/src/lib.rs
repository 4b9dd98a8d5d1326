//! The one way of a run, for every command that measures: [`check`] refuses what cannot be measured, [`conduct`] reaches the
//! hosts, waits for their machines, measures, records, and puts settings back. A [`Request`] says what; a [`Screen`] shows it.
//!
//! What commands do without a run is here, too: settings ([`tuning`]), the agent ([`serving`]), labs ([`running_lab`]), stored runs.
//!
//! The program has the flags and prints. A [`Failure`] carries its exit code.

pub mod agent_keys;
pub mod bus_runs;
pub mod citation;
pub mod config;
pub mod demo;
pub mod explaining;
pub mod facts;
pub mod failure;
pub mod files;
pub mod fleet;
pub mod following;
pub mod importing;
pub mod launch;
pub mod own;
pub mod paired;
pub mod password;
pub mod plan;
pub mod run;
pub mod running_lab;
pub mod safe_rate;
pub mod scratch;
pub mod searching;
pub mod selftest;
pub mod serving;
pub mod settle;
pub mod setup;
pub mod signals;
pub mod source;
pub mod specs;
pub mod stored;
pub mod topology;
pub mod tuning;
pub mod values;

pub use failure::Failure;
pub use run::{
    Earlier, Finished, Hosts, ParsedPlan, Preview, Request, Resumed, Screen, Work, check, conduct, is_launched,
};

/// The version, with the commit that this build came from (build.rs).
pub const VERSION: &str = env!("THRU_VERSION");
