//! Multipath TCP (RFC 8684) over IPv4 and IPv6. Its sockets are used like TCP's; the kernel adds subflows, and falls
//! back to TCP if the other end or the path does not support MPTCP.

use std::io;

use model::{NamedTransport, Spec};
use socket2::{Domain, Protocol, Socket, Type};
use text::{Text, say};

use super::Tcp;
use crate::core::EngineError;
use crate::transport::{Capabilities, FlowHello, Link, ListenOptions, Listener, Rendezvous, Transport};

/// The transport.
pub(crate) struct Mptcp;

impl Transport for Mptcp {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::MPTCP
    }

    fn about(&self) -> &'static str {
        "Multipath TCP over IPv4 or IPv6; the number of subflows is recorded"
    }

    /// As TCP, but the agent's port takes no MPTCP.
    fn capabilities(&self) -> Capabilities {
        Capabilities { reconnects: true, delays_reads: true, ..Capabilities::STREAM }
    }

    fn check_host(&self) -> Result<(), EngineError> {
        let remedy = match Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)) {
            Ok(_) => return Ok(()),
            Err(error) => remedy(&error),
        };
        Err(EngineError::unsupported("MPTCP sockets on this host", remedy))
    }

    fn completes(&self) -> bool {
        Tcp.completes()
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        Tcp.listen(spec, listen)
    }

    fn connect(&self, spec: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        Tcp.connect(spec, to, hello)
    }

    fn connect_all(&self, spec: &Spec, to: &Rendezvous, hellos: &[FlowHello]) -> Result<Vec<Link>, EngineError> {
        Tcp.connect_all(spec, to, hellos)
    }
}

/// The remedy if a kernel refuses the socket: it returns ENOPROTOOPT if MPTCP is switched off.
fn remedy(error: &io::Error) -> Text {
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => {
            say!("MPTCP is switched off: `sysctl net.mptcp.enabled=1`, or use `--transport tcp`")
        }
        Some(libc::EPROTONOSUPPORT) => {
            say!("its kernel was built without MPTCP (Linux 5.6 or newer with CONFIG_MPTCP): use `--transport tcp`")
        }
        _ => say!("{error}; use `--transport tcp`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_refuses_is_explained() {
        let off = remedy(&io::Error::from_raw_os_error(libc::ENOPROTOOPT)).plain();
        assert!(off.contains("net.mptcp.enabled"), "{off}");
        let absent = remedy(&io::Error::from_raw_os_error(libc::EPROTONOSUPPORT)).plain();
        assert!(absent.contains("CONFIG_MPTCP"), "{absent}");
    }
}
