//! The transports of this build.

use super::interface::Transport;
use super::{datagram, launched, local, tcp};
use crate::core::EngineError;

/// Every transport of this build, in the order of the manual.
pub static TRANSPORTS: &[&dyn Transport] = &[
    &tcp::Tcp,
    &tcp::mptcp::Mptcp,
    &tcp::tls::Tls,
    &datagram::udp::Udp,
    &datagram::quic::Quic,
    &local::unix::UnixStream,
    &local::unix::UnixDatagram,
    &local::vsock::Vsock,
    &local::memcpy::Memcpy,
    &local::shm::SharedMemory,
    &launched::mpi::MessagePassing,
    &launched::pvm::VirtualMachine,
];

/// The transport called `name`.
pub fn transport(name: &str) -> Result<&'static dyn Transport, EngineError> {
    TRANSPORTS.iter().copied().find(|transport| transport.name() == name).ok_or_else(|| EngineError::Unknown {
        kind: "transport",
        name: name.into(),
        known: TRANSPORTS.iter().map(|transport| transport.name()).collect::<Vec<_>>().join(", "),
    })
}
