//! What other measuring programs say to each other on the wire, for both roles, as state machines without I/O: bytes in, bytes
//! and actions out. A driver owns the sockets, the clock and the measuring; a machine owns the order of messages, their layout
//! and their limits.
//!
//! Every machine follows three rules. It never keeps more than a message's limit, and allocates for what has arrived, not for
//! what a length field announces. Bytes that come where the peer has to be silent are an error. And an error names the peer's
//! program and the step ([`SpeakError`]), after which the machine takes nothing more.

mod error;
mod intake;
pub mod iperf2;
pub mod iperf3;
pub mod netperf;
pub mod netpipe;
pub mod nttcp;
pub mod nuttcp;
mod peer;
pub mod stamp;
mod turn;

pub use error::SpeakError;
pub use peer::{PEERS, Peer, peer};
pub use turn::Turn;
