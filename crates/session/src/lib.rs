//! How every command conducts a run: [`check`] refuses what cannot be measured, [`conduct`] reaches the hosts, waits for their
//! machines, measures, records, and puts settings back. A [`Request`] says what; a [`Screen`] shows it.
//!
//! What commands do without a run is here, too: settings ([`tuning`]), labs ([`labs`]), the self-test ([`selftest`]), stored runs
//! ([`stored`]).
//!
//! The program has the flags and prints. A [`command::Failure`] carries its exit code.

pub mod ab;
pub mod advise;
pub mod facts;
pub mod labs;
pub mod launch;
pub mod mesh_watch;
pub mod plans;
pub mod run;
pub mod selftest;
pub mod stored;
mod this_host;
pub mod tuning;

pub use run::{Finished, Hosts, Request, Resumed, Screen, Work, check, conduct, is_launched, program_at};
pub use this_host::ThisHost;
