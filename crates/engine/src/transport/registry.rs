//! The transports of this program: those of this crate, and those that the program adds.

use std::sync::{PoisonError, RwLock};

use model::TransportName;
use text::say;

use super::interface::Transport;
use super::{datagram, launched, local, tcp};
use crate::core::EngineError;

/// Every transport of this crate, in the order of the manual.
static TRANSPORTS: &[&dyn Transport] = &[
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

/// Those that the program has added.
static ADDED: RwLock<Vec<&'static dyn Transport>> = RwLock::new(Vec::new());

/// Adds a transport to this process, for a program that has one of its own. Its workers are the same program, so its `main` adds
/// it before anything else.
///
/// # Errors
/// The name is taken.
pub fn add(transport: &'static dyn Transport) -> Result<(), EngineError> {
    let name = transport.name();
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let taken = TRANSPORTS.iter().chain(added.iter()).any(|other| other.name() == name);
    if taken || TransportName::from(name).named().is_some() {
        return Err(EngineError::unsupported(say!("a second transport called '{name}'"), "give it another name"));
    }
    added.push(transport);
    Ok(())
}

/// Every transport: those of this crate in the order of the manual, then the added ones.
pub fn transports() -> impl Iterator<Item = &'static dyn Transport> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner).clone();
    TRANSPORTS.iter().copied().chain(added)
}

/// The transport called `name`.
pub fn transport(name: &str) -> Result<&'static dyn Transport, EngineError> {
    transports().find(|transport| transport.name() == name).ok_or_else(|| EngineError::Unknown {
        kind: "transport",
        name: name.into(),
        known: transports().map(Transport::name).collect::<Vec<_>>().join(", "),
    })
}

/// The names of the transports that `fits` accepts, for a message: `tcp, mptcp or unix`.
pub fn names(fits: impl Fn(&dyn Transport) -> bool) -> String {
    model::alternatives(&transports().filter(|transport| fits(*transport)).map(Transport::name).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_the_facts_of_each_transport_of_this_crate() {
        assert!(
            TRANSPORTS
                .iter()
                .map(|transport| transport.named())
                .eq(TransportName::OWN.iter().filter_map(TransportName::named))
        );
    }

    #[test]
    fn a_name_is_taken_once() {
        assert!(add(&tcp::Tcp).is_err_and(|error| error.to_string().contains("'tcp'")));
    }

    #[test]
    fn a_message_names_the_transports_that_fit() {
        assert_eq!(names(|transport| transport.completes()), "tcp, mptcp or unix");
    }
}
