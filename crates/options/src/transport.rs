//! What a transport is, for code that does not have the transport itself. A spec carries these facts
//! ([`Spec::transport_facts`](crate::Spec)), so that a reader of documents needs no list of transports.
//!
//! The constants are this program's own transports. Every reader of documents has them, so their specs carry no facts. A transport that
//! another program adds states its facts in its entry of the engine's registry, and its specs carry them.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is known of a transport without its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct TransportFacts {
    /// The protocol over IP that carries its bytes; null for other carriers.
    pub ip: Option<IpProtocol>,
    /// A connection may have several paths.
    pub multipath: bool,
    /// Both ends are threads or processes on one host, without a network between them.
    pub one_host: bool,
    /// The headers around its payload; null if they are unknown.
    pub framing: Option<Framing>,
}

/// What a spec's transport is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(with = "String"))]
#[serde(from = "String", into = "String")]
pub enum TransportName {
    /// TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
    /// TLS over TCP.
    Tls,
    /// UDP.
    Udp,
    /// QUIC.
    Quic,
    /// Unix domain stream sockets.
    Unix,
    /// Unix domain datagram sockets.
    UnixDgram,
    /// Sockets between a virtual machine and its host.
    Vsock,
    /// Copies in memory.
    Memcpy,
    /// A ring in shared memory.
    Shm,
    /// MPI messages.
    Mpi,
    /// PVM messages.
    Pvm,
    /// One that another program added, or that an imported result names.
    Other(String),
}

impl TransportName {
    /// This program's own, in the order of the manual.
    pub const OWN: [Self; 12] = [
        Self::Tcp,
        Self::Mptcp,
        Self::Tls,
        Self::Udp,
        Self::Quic,
        Self::Unix,
        Self::UnixDgram,
        Self::Vsock,
        Self::Memcpy,
        Self::Shm,
        Self::Mpi,
        Self::Pvm,
    ];

    /// Its name and facts, if it is one of this program's own.
    #[must_use]
    pub const fn named(&self) -> Option<&'static NamedTransport> {
        Some(match self {
            Self::Tcp => &TCP,
            Self::Mptcp => &MPTCP,
            Self::Tls => &TLS,
            Self::Udp => &UDP,
            Self::Quic => &QUIC,
            Self::Unix => &UNIX,
            Self::UnixDgram => &UNIX_DGRAM,
            Self::Vsock => &VSOCK,
            Self::Memcpy => &MEMCPY,
            Self::Shm => &SHM,
            Self::Mpi => &MPI,
            Self::Pvm => &PVM,
            Self::Other(_) => return None,
        })
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(name) => name,
            own => own.named().map_or("", |named| named.name),
        }
    }
}

impl From<&str> for TransportName {
    fn from(name: &str) -> Self {
        let own = Self::OWN.into_iter().find(|own| own.as_str() == name);
        own.unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

impl From<String> for TransportName {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl From<TransportName> for String {
    fn from(name: TransportName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for TransportName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A transport's name and facts: its entry in a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedTransport {
    /// Its name in specs and on the command line.
    pub name: &'static str,
    /// What it is.
    pub facts: TransportFacts,
}

/// A protocol over IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
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

impl TransportFacts {
    /// A carrier other than IP, between hosts; the transports state how they differ.
    pub const OTHER: Self = Self { ip: None, multipath: false, one_host: false, framing: None };
    /// A carrier within one host.
    pub const LOCAL: Self = Self { one_host: true, ..Self::OTHER };

    /// Over this protocol, with these headers.
    const fn over(ip: IpProtocol, framing: Framing) -> Self {
        Self { ip: Some(ip), framing: Some(framing), ..Self::OTHER }
    }

    /// Whether it has a congestion control to choose.
    #[must_use]
    pub const fn has_congestion_control(&self) -> bool {
        self.is_over_tcp() || matches!(self.framing, Some(Framing::Quic))
    }

    /// Whether each block is a UDP datagram of its own.
    #[must_use]
    pub const fn has_datagrams(&self) -> bool {
        matches!(self.framing, Some(Framing::Udp))
    }

    /// Whether its connections are the kernel's TCP sockets.
    #[must_use]
    pub const fn is_over_tcp(&self) -> bool {
        matches!(self.ip, Some(IpProtocol::Tcp))
    }
}

impl NamedTransport {
    const fn new(name: &'static str, facts: TransportFacts) -> Self {
        Self { name, facts }
    }
}

/// TCP.
pub const TCP: NamedTransport = NamedTransport::new("tcp", TransportFacts::over(IpProtocol::Tcp, Framing::Tcp));
/// Multipath TCP. The headers depend on the number of paths.
pub const MPTCP: NamedTransport = NamedTransport::new(
    "mptcp",
    TransportFacts { ip: Some(IpProtocol::Tcp), multipath: true, ..TransportFacts::OTHER },
);
/// TLS over TCP.
pub const TLS: NamedTransport = NamedTransport::new("tls", TransportFacts::over(IpProtocol::Tcp, Framing::Tls));
/// UDP.
pub const UDP: NamedTransport = NamedTransport::new("udp", TransportFacts::over(IpProtocol::Udp, Framing::Udp));
/// QUIC.
pub const QUIC: NamedTransport = NamedTransport::new("quic", TransportFacts::over(IpProtocol::Udp, Framing::Quic));
/// Unix domain stream sockets.
pub const UNIX: NamedTransport = NamedTransport::new("unix", TransportFacts::LOCAL);
/// Unix domain datagram sockets.
pub const UNIX_DGRAM: NamedTransport = NamedTransport::new("unix-dgram", TransportFacts::LOCAL);
/// Sockets between a virtual machine and its host.
pub const VSOCK: NamedTransport = NamedTransport::new("vsock", TransportFacts::OTHER);
/// Copies in memory.
pub const MEMCPY: NamedTransport = NamedTransport::new("memcpy", TransportFacts::LOCAL);
/// A ring in shared memory.
pub const SHM: NamedTransport = NamedTransport::new("shm", TransportFacts::LOCAL);
/// MPI messages.
pub const MPI: NamedTransport = NamedTransport::new("mpi", TransportFacts::OTHER);
/// PVM messages.
pub const PVM: NamedTransport = NamedTransport::new("pvm", TransportFacts::OTHER);
