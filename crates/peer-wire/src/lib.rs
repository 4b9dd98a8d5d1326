//! The protocols of other measurement programs, for both roles, as state machines without I/O: bytes in, bytes
//! and actions out. A driver has the sockets, the clock and the measurement; a state machine has the order of
//! messages, their layout and their limits.
//!
//! Every state machine follows three rules. It never keeps more than a message's limit and allocates only for
//! data that has arrived, not for an announced length. Bytes that arrive out of turn are an error. An error
//! names the peer's program and the step ([`WireError`]), and after it the state machine accepts nothing.

mod error;
mod excerpt;
mod framing;
pub mod iperf2;
pub mod iperf3;
pub mod netperf;
pub mod netpipe;
pub mod nttcp;
pub mod nuttcp;
mod peer;
pub mod stamp;
mod turn;

pub use error::{WireError, WireProblem};
pub use peer::Peer;
pub use turn::Turn;
