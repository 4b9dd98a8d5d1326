//! The sender's time by TCP's own clocks.

use super::observations::Observations;
use crate::tcp_clocks::spans;

/// Shares of the sender's time over all trials and connections; they add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clocks {
    /// Nothing to send and nothing unacknowledged.
    pub(super) idle: f64,
    /// Limited by the receiver's window.
    pub(super) rwnd: f64,
    /// Limited by the send buffer.
    pub(super) sndbuf: f64,
    /// Busy otherwise: congestion window, pacing, the hosts or the path.
    pub(super) rest: f64,
    /// Total time of the connections, ns.
    pub(super) total_ns: f64,
}

/// The clocks of an outcome's senders; `None` if no connection has two samples of them.
pub(super) fn clocks(observations: &Observations<'_>) -> Option<Clocks> {
    let flows = observations
        .directions
        .iter()
        .flat_map(|direction| direction.sender.flows().filter(|flow| flow.bytes_sent > 0));
    let mut sums = [0.0; 4];
    for spans in flows.filter_map(|flow| spans(&flow.tcp)) {
        sums.iter_mut().zip(spans).for_each(|(sum, span)| *sum += span);
    }
    let total: f64 = sums.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let [idle, rwnd, sndbuf, rest] = sums.map(|sum| sum / total);
    Some(Clocks { idle, rwnd, sndbuf, rest, total_ns: total })
}
