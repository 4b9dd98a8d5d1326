//! The path from one host to another before the test, and the offset of the two hosts' clocks.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One host's path probe to the other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Path {
    /// The probed address.
    pub peer: String,
    /// The kernel's route to it.
    pub route: Option<Route>,
    /// The largest packet that the path carries.
    pub mtu: Option<PathMtu>,
    /// ICMP echoes.
    pub ping: Option<Ping>,
    /// The routers on the path and the peer itself, nearest first; null if none answered.
    pub hops: Option<Vec<Hop>>,
    /// Duration of the probe, ns.
    pub took_ns: u64,
    /// What could not be determined, with the reason and the remedy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The kernel's route to an address (`ip route get`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Route {
    /// `unicast`, `local`...
    pub kind: Option<String>,
    /// Interface that packets leave by.
    pub interface: Option<String>,
    /// Their source address.
    pub source: Option<String>,
    /// The first router; null for a neighbour on the link.
    pub gateway: Option<String>,
    /// MTU of the interface, bytes.
    pub interface_mtu: Option<u32>,
    /// MTU that the route sets or the kernel has discovered, bytes.
    pub mtu: Option<u32>,
    /// Initial congestion window, segments, if the route sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments, if the route sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initrwnd: Option<u32>,
    /// Advertised MSS, bytes, if the route sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    /// Congestion control, if the route sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// Whether acknowledgements are sent at once, if the route sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quickack: Option<bool>,
}

/// The largest IP packet that the path carries in one piece.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct PathMtu {
    /// Bytes, IP header included.
    pub bytes: u32,
    /// The method: `echo` or `udp` for a packet of that size that was answered, `kernel` for the kernel's value.
    pub method: String,
    /// Whether a packet of that size was answered.
    pub confirmed: bool,
    /// The router that reported that a larger packet does not fit; null without a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_by: Option<String>,
}

/// Round trips of ICMP echoes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Ping {
    /// `icmp-socket`, `raw-socket` or `ping` (the system's program).
    pub method: String,
    /// Echoes sent.
    pub sent: u32,
    /// Replies in time.
    pub received: u32,
    /// Bytes of each packet, IP header included.
    pub packet_bytes: u32,
    /// Shortest round trip, ns.
    pub min_ns: Option<u64>,
    /// Median, ns.
    pub median_ns: Option<u64>,
    /// Longest, ns.
    pub max_ns: Option<u64>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Hop {
    /// Hop limit of the probe that came this far.
    pub hop: u8,
    /// The address that answered; null without an answer.
    pub address: Option<String>,
    /// Shortest round trip of the probes with this limit, ns; of an imported report of mtr, the mean.
    pub rtt_ns: Option<u64>,
    /// Round trips of those that were answered, in the order in which they were sent, ns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rtts_ns: Vec<u64>,
    /// Number of probes with this limit; null if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<u32>,
    /// Further addresses that answered: routes that share the traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// The offset of the far host's clocks from the near host's.
///
/// The coordinator requests each end's clocks many times over the control connection. An end reads its clocks between the
/// request and the answer, so the middle of the shortest exchange is the estimate, and half of that exchange bounds the error
/// for any asymmetry of the path (as in RFC 5905, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct ClockOffset {
    /// Far wall clock less near wall clock (CLOCK_REALTIME), ns.
    pub offset_ns: i64,
    /// Far monotonic clock less near monotonic clock, ns. Only its change has a meaning: the drift.
    pub monotonic_offset_ns: i64,
    /// Error bound of both offsets, ns: half of the shortest exchange with each end, added up.
    pub error_ns: u64,
    /// Exchanges with each end.
    pub exchanges: u32,
    /// The coordinator's monotonic clock at the reading, ns; the drift is computed from it.
    pub at_ns: u64,
}

impl ClockOffset {
    /// How much faster the far clock ran from this reading to `later`, with its error bound, both in parts per 10^9. `None` if
    /// no time has passed.
    #[must_use]
    pub fn drift_to(&self, later: &Self) -> Option<ClockDrift> {
        let over_ns = later.at_ns.checked_sub(self.at_ns).filter(|ns| *ns > 0)?;
        let part = |ns: i128| i64::try_from(ns * 1_000_000_000 / i128::from(over_ns)).ok();
        Some(ClockDrift {
            drift_ppb: part(i128::from(later.monotonic_offset_ns) - i128::from(self.monotonic_offset_ns))?,
            error_ppb: u64::try_from(part(i128::from(later.error_ns) + i128::from(self.error_ns))?).ok()?,
            over_ns,
        })
    }
}

/// How much faster the far clock runs than the near one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClockDrift {
    /// Nanoseconds that the far monotonic clock gains on the near one in a second.
    pub drift_ppb: i64,
    /// Error bound, in the same unit.
    pub error_ppb: u64,
    /// Time between the two readings, ns.
    pub over_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_change_of_the_offset_and_its_bound_shrinks_with_time() {
        let reading = |at_ns, monotonic_offset_ns, error_ns| ClockOffset {
            monotonic_offset_ns,
            error_ns,
            at_ns,
            ..ClockOffset::default()
        };
        let first = reading(5_000_000_000, -40_000, 20_000);
        // 30 us gained in 10 s, each end of it sure to 20 us and 10 us.
        let drift = first.drift_to(&reading(15_000_000_000, -10_000, 10_000)).unwrap();
        assert_eq!((drift.drift_ppb, drift.error_ppb, drift.over_ns), (3_000, 3_000, 10_000_000_000));
        assert_eq!(first.drift_to(&first), None);
        // A monotonic clock that began with the boot of each host: offsets of years do not overflow.
        let far = reading(6_000_000_000, i64::MIN / 2, 0).drift_to(&reading(7_000_000_000, i64::MIN / 2 + 5, 0));
        assert_eq!(far.unwrap().drift_ppb, 5);
    }
}
