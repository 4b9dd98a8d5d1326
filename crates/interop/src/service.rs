//! A server for another program's clients.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Users;

/// What clients may do to this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections that have not been admitted to a measurement, at a time.
    pub unauthenticated: usize,
    /// Nanoseconds that one measurement may take.
    pub hold_ns: u64,
    /// Streams of a measurement, both directions together.
    pub flows: u32,
    /// Rate of a measurement in bit/s; `None` for no bound.
    pub rate_bps: Option<u64>,
    /// Bytes of buffers of a measurement.
    pub memory_bytes: u64,
}

impl Limits {
    /// Why so many streams with such blocks are more than this host gives, if they are: a thread has one to send and one to receive.
    pub(crate) fn beyond_memory(&self, streams: u64, block: u64) -> Option<String> {
        let bytes = streams.saturating_mul(2).saturating_mul(block);
        (bytes > self.memory_bytes).then(|| format!("{bytes} bytes of buffers; up to {} are given", self.memory_bytes))
    }
}

/// Holds the machine for a measurement while it lives.
pub type Admission = Box<dyn Any + Send>;

/// How a server works.
pub struct Service {
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// The program's own options, as its users give them to it: for those whose two ends have to be told the same.
    pub options: String,
    /// Who may measure, for programs whose clients log in ([`crate::PeerProtocol::check_login`]); everybody where absent.
    pub users: Option<Users>,
    /// What clients may do.
    pub limits: Limits,
    /// Asked for each client: `None` where the machine has no place for one more measurement.
    pub admit: Box<dyn Fn() -> Option<Admission> + Send + Sync>,
    /// Hears what happens, a line at a time.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
    /// Hears each address that it listens on, once it does.
    pub listening: Box<dyn Fn(SocketAddr) + Send + Sync>,
    /// Set to end it.
    pub stop: AtomicBool,
}

impl Service {
    /// How long one measurement may take.
    pub(crate) fn hold(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.limits.hold_ns)
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
