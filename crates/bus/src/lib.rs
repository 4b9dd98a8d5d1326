//! A bus: hosts by name over a NATS server, where nobody can connect to them.
//!
//! Agents dial out to the server and take a name there ([`attend`]). A coordinator asks who is there ([`Bus::present`]), and opens
//! connections to names ([`Bus::open`]): byte streams, over which the control protocol is spoken as over TCP. What a run measured is
//! kept there as a stream, from which another host can go on ([`Bus::append`], [`Bus::records`]).
//!
//! The server is not trusted with more than to carry bytes: TLS and the token are spoken within the streams.

mod access;
mod error;
#[cfg(feature = "nats")]
mod nats;
mod place;
mod presence;
#[cfg(not(feature = "nats"))]
mod without;

pub use access::BusAccess;
pub use error::{BusError, BusProblem, ConnectProblem, CredentialsProblem};
pub use place::{Place, is_bus, place};
pub use presence::{Contact, Present};

#[cfg(feature = "nats")]
pub use nats::{Arrival, Attendance, Bus, BusStream, Buses, attend};
#[cfg(not(feature = "nats"))]
pub use without::{Arrival, Attendance, Bus, BusStream, Buses, attend};

/// Whether this build can use a bus: the feature `nats`.
pub const HAS_NATS: bool = cfg!(feature = "nats");
