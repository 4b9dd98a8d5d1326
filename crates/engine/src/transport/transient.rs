//! Errors of datagram sockets that say nothing about the next call.

use rustix::io::Errno;

/// ICMP errors of earlier datagrams surface on the next call; the path may carry the next one.
pub(super) fn transient(error: Errno) -> bool {
    matches!(error, Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH)
}
