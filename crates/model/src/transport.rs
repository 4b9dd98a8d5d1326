//! The facts of each transport that analysis and control need. Its code and its capabilities are in the engine, whose registry
//! refers to these constants; each fact stands here only.

use crate::Spec;

/// What is known of a transport without its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportFacts {
    /// Its name in specs and on the command line.
    pub name: &'static str,
    /// The protocol over IP that carries its bytes; `None` for other carriers.
    pub ip: Option<IpProtocol>,
    /// A connection may have several paths.
    pub multipath: bool,
    /// Both ends are threads or processes of one host, without a network between them.
    pub one_host: bool,
    /// The headers around its payload; `None` if they are unknown.
    pub framing: Option<Framing>,
}

/// A protocol over IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpProtocol {
    /// TCP, in the kernel.
    Tcp,
    /// UDP.
    Udp,
}

impl IpProtocol {
    /// Its number in the IP header (IANA, Assigned Internet Protocol Numbers).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// The headers around a transport's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// TCP segments.
    Tcp,
    /// TLS records in TCP segments.
    Tls,
    /// A UDP datagram for each block.
    Udp,
    /// QUIC packets in UDP datagrams.
    Quic,
}

/// A carrier other than IP, between hosts.
const OTHER: TransportFacts = TransportFacts { name: "", ip: None, multipath: false, one_host: false, framing: None };
/// Within one host.
const LOCAL: TransportFacts = TransportFacts { one_host: true, ..OTHER };

/// TCP.
pub const TCP: TransportFacts =
    TransportFacts { name: "tcp", ip: Some(IpProtocol::Tcp), framing: Some(Framing::Tcp), ..OTHER };
/// Multipath TCP. The headers depend on the number of paths.
pub const MPTCP: TransportFacts = TransportFacts { name: "mptcp", ip: Some(IpProtocol::Tcp), multipath: true, ..OTHER };
/// TLS over TCP.
pub const TLS: TransportFacts =
    TransportFacts { name: "tls", ip: Some(IpProtocol::Tcp), framing: Some(Framing::Tls), ..OTHER };
/// UDP.
pub const UDP: TransportFacts =
    TransportFacts { name: "udp", ip: Some(IpProtocol::Udp), framing: Some(Framing::Udp), ..OTHER };
/// QUIC.
pub const QUIC: TransportFacts =
    TransportFacts { name: "quic", ip: Some(IpProtocol::Udp), framing: Some(Framing::Quic), ..OTHER };
/// Unix domain stream sockets.
pub const UNIX: TransportFacts = TransportFacts { name: "unix", ..LOCAL };
/// Unix domain datagram sockets.
pub const UNIX_DGRAM: TransportFacts = TransportFacts { name: "unix-dgram", ..LOCAL };
/// Sockets between a virtual machine and its host.
pub const VSOCK: TransportFacts = TransportFacts { name: "vsock", ..OTHER };
/// Copies in memory.
pub const MEMCPY: TransportFacts = TransportFacts { name: Spec::CEILING, ..LOCAL };
/// A ring in shared memory.
pub const SHM: TransportFacts = TransportFacts { name: "shm", ..LOCAL };
/// MPI messages.
pub const MPI: TransportFacts = TransportFacts { name: "mpi", ..OTHER };
/// PVM messages.
pub const PVM: TransportFacts = TransportFacts { name: "pvm", ..OTHER };

/// Every transport, in the order of the manual.
pub const TRANSPORTS: [TransportFacts; 12] =
    [TCP, MPTCP, TLS, UDP, QUIC, UNIX, UNIX_DGRAM, VSOCK, MEMCPY, SHM, MPI, PVM];

impl TransportFacts {
    /// The facts of the transport called `name`; `None` for an unknown one, such as that of an imported result.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        TRANSPORTS.iter().find(|facts| facts.name == name)
    }

    /// Whether its connections are the kernel's TCP sockets.
    #[must_use]
    pub const fn is_over_tcp(&self) -> bool {
        matches!(self.ip, Some(IpProtocol::Tcp))
    }
}

impl Spec {
    /// The facts of its transport; `None` for an unknown one.
    #[must_use]
    pub fn transport_facts(&self) -> Option<&'static TransportFacts> {
        TransportFacts::of(self.transport.as_str())
    }

    /// Whether its connections are the kernel's TCP sockets.
    #[must_use]
    pub fn is_over_tcp(&self) -> bool {
        self.transport_facts().is_some_and(TransportFacts::is_over_tcp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_belong_to_the_transport_of_a_spec() {
        let over_tcp = |name: &str| Spec::new(name, "stream").is_over_tcp();
        assert!(over_tcp("tcp") && over_tcp("mptcp") && over_tcp("tls"));
        assert!(!over_tcp("quic") && !over_tcp("unix") && !over_tcp("icmp"));
        let names: std::collections::BTreeSet<&str> = TRANSPORTS.iter().map(|facts| facts.name).collect();
        assert_eq!(names.len(), TRANSPORTS.len(), "names are unique");
        assert!(TRANSPORTS.iter().all(|facts| !(facts.one_host && facts.ip.is_some())));
    }
}
