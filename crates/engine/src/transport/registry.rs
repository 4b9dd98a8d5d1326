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

/// The names of the transports that `fits` accepts, for a message: `tcp, mptcp or unix`.
pub fn names(fits: impl Fn(&dyn Transport) -> bool) -> String {
    let fitting = TRANSPORTS.iter().filter(|transport| fits(**transport));
    model::alternatives(&fitting.map(|transport| transport.name()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use model::TransportFacts;

    use super::*;

    #[test]
    fn the_registry_and_the_table_of_facts_have_the_same_transports() {
        let facts: Vec<TransportFacts> = TRANSPORTS.iter().map(|transport| *transport.facts()).collect();
        assert_eq!(facts, model::transport::TRANSPORTS);
    }

    #[test]
    fn a_message_names_the_transports_that_fit() {
        assert_eq!(names(|transport| transport.completes()), "tcp, mptcp or unix");
    }
}
