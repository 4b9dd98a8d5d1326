//! Settings of a server for another program's clients.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use text::{Text, say};

use crate::Users;

/// How long a client waits while another one has the machine: it may have left, which is noticed a moment later.
const LEAVING: Duration = Duration::from_millis(500);
/// Time between two attempts.
const STEP: Duration = Duration::from_millis(5);

/// What clients may do to this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLimits {
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

impl ServiceLimits {
    /// Why these streams would exceed the memory limit, if they would: each has one buffer to send and one to
    /// receive.
    pub(crate) fn beyond_memory(&self, streams: u64, block: u64) -> Option<Text> {
        let bytes = streams.saturating_mul(2).saturating_mul(block);
        (bytes > self.memory_bytes).then(|| say!("{bytes} bytes of buffers; the limit is {}", self.memory_bytes))
    }
}

/// Reserves the machine for a measurement until it is dropped.
pub type MachineUse = Box<dyn Any + Send>;

/// Gets the lines of a log, each with the address of the client that caused it.
pub type Log = Box<dyn Fn(SocketAddr, &Text) + Send + Sync>;

/// Settings of a server.
pub struct Service {
    /// The addresses to listen on.
    pub addresses: Vec<SocketAddr>,
    /// The program's own options, for programs whose two ends need the same ones.
    pub options: String,
    /// Who may measure, for programs whose clients log in ([`crate::ProgramProtocol::check_login`]); absent admits
    /// everyone.
    pub users: Option<Arc<Users>>,
    /// Limits on clients.
    pub limits: ServiceLimits,
    /// Called for each client: `None` if no further measurement can run.
    pub admit: Box<dyn Fn() -> Option<MachineUse> + Send + Sync>,
    /// Called with each log line, which begins with the client's address.
    pub log: Log,
    /// Called with each address once it listens.
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

    /// The machine for a measurement, also if the client before has only just left; `None` while others have it.
    pub(crate) fn admit_soon(&self) -> Option<MachineUse> {
        let deadline = Instant::now() + LEAVING;
        loop {
            let admission = (self.admit)();
            if admission.is_some() || self.stopping() || Instant::now() > deadline {
                return admission;
            }
            std::thread::sleep(STEP);
        }
    }
}
