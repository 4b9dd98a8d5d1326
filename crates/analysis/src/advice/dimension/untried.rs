//! Why a dimension is not tried.

use model::{AdviceUntried, TransportName};
use text::Said;
use thiserror::Error;

use super::size;

/// Why a dimension, or a part of it, is not tried.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
pub(crate) enum Untried {
    /// Its class of host settings may not be changed.
    #[error("needs host settings")]
    NotAllowed { class: &'static str },
    /// The start's level is the only one.
    #[error("no other level to try")]
    OneLevel,
    /// Sysctls whose limits, bytes, are below the windows that the path needs.
    #[error("the hosts do not allow them: {}", named(limits))]
    LowLimits { limits: Vec<(&'static str, u64)> },
    /// The search ended before it.
    #[error("out of time: use a larger `--budget`")]
    OutOfTime,
    /// Nothing is known about the bytes in flight.
    #[error("the pilot trials measured no RTT")]
    NoRtt,
    /// The transport sends in one way.
    #[error("{transport} has only one send method")]
    OneSendMethod { transport: TransportName },
    /// The user chose the block size.
    #[error("`--block` was given")]
    BlockGiven,
    /// Datagrams have the size that the path carries.
    #[error("the path sets the datagram size")]
    DatagramSize,
    /// There are no flows that could share threads.
    #[error("one flow uses one thread")]
    OneFlow,
    /// A host does not report its cores.
    #[error("a host's number of cores is unknown")]
    UnknownCores,
    /// Threads cannot be moved.
    #[error("neither host has a second core")]
    OneCoreEach,
    /// The start spins.
    #[error("the threads already spin")]
    AlreadySpinning,
    /// Both ends share the only core.
    #[error("two threads cannot spin on one core")]
    OneCoreForBoth,
    /// The start spins, which is more than to poll.
    #[error("spinning threads already poll")]
    SpinningPolls,
    /// Only sockets of TCP have the option.
    #[error("the transport is not TCP")]
    NotTcp,
    /// The senders have no second congestion control in common.
    #[error("only {name} is allowed: load modules and see net.ipv4.tcp_allowed_congestion_control")]
    OneCongestionControl { name: String },
    /// TCP_NODELAY is on with round trips.
    #[error("it is on, which is best for round trips")]
    NodelayOn,
    /// A host's inventory lacks the sysctl.
    #[error("a host does not report {sysctl}")]
    NotReported { sysctl: &'static str },
    /// Only a sysctl that is off is changed.
    #[error("no host has {sysctl} turned off")]
    NotOff { sysctl: &'static str },
    /// The inventory has no interface with the address of the data.
    #[error("the data's interface is unknown")]
    UnknownInterface,
    /// Loopback is not a device.
    #[error("the data uses loopback")]
    Loopback,
    /// Neither host reports a governor.
    #[error("the hosts have no CPU frequency governor")]
    NoGovernor,
    /// The governor is the fastest one already.
    #[error("both hosts already use performance")]
    AlreadyPerformance,
}

impl Untried {
    /// The same as a part of the advice.
    pub(crate) fn of(&self, what: &str) -> AdviceUntried {
        let allow = if let Self::NotAllowed { class } = self { Some((*class).to_owned()) } else { None };
        AdviceUntried { what: what.to_owned(), why: self.say(), allow }
    }
}

/// Sysctls with their values.
fn named(limits: &[(&'static str, u64)]) -> String {
    limits.iter().map(|(name, limit)| format!("{name} is {}", size(*limit))).collect::<Vec<_>>().join(", ")
}
