//! The path from one host to another, as it was before the test, and how the two hosts' clocks stand to each other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one host sees of the path to the other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Path {
    /// The address that it looked towards.
    pub peer: String,
    /// What the kernel would do with a packet to it.
    pub route: Option<Route>,
    /// The largest packet that the path carries.
    pub mtu: Option<PathMtu>,
    /// Echoes.
    pub ping: Option<Ping>,
    /// The routers on the way and the peer itself, nearest first; null where nobody answered at all.
    pub hops: Option<Vec<Hop>>,
    /// How long the look took, ns.
    pub took_ns: u64,
    /// What could not be found out, with the reason and the remedy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The kernel's route to an address (`ip route get`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Route {
    /// `unicast`, `local`...
    pub kind: Option<String>,
    /// Interface that packets leave by.
    pub interface: Option<String>,
    /// Address that they leave with.
    pub source: Option<String>,
    /// The first router; null for a neighbour on the link.
    pub gateway: Option<String>,
    /// MTU of the interface, bytes.
    pub interface_mtu: Option<u32>,
    /// MTU that the route itself names or has learnt, bytes.
    pub mtu: Option<u32>,
    /// Initial congestion window, segments, where the route names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments, where the route names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initrwnd: Option<u32>,
    /// Advertised MSS, bytes, where the route names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    /// Congestion control, where the route names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// Whether acknowledgements are sent at once, where the route says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quickack: Option<bool>,
}

/// The largest IP packet that the path carries in one piece.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PathMtu {
    /// Bytes, IP header included.
    pub bytes: u32,
    /// How it was found: `echo` and `udp` for a packet of that size that was answered, `kernel` for what the kernel knows.
    pub method: String,
    /// Whether a packet of that size was seen to arrive.
    pub confirmed: bool,
    /// The router that said that a larger packet does not fit; null where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_by: Option<String>,
}

/// Round trips of ICMP echoes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hop {
    /// Hop limit of the probe that came this far.
    pub hop: u8,
    /// Who answered; null where nobody did.
    pub address: Option<String>,
    /// Round trip of that probe, ns.
    pub rtt_ns: Option<u64>,
}

/// How the far host's clocks stand to the near host's.
///
/// The coordinator asks each end for its clocks many times over the control connection. The reading was taken somewhere
/// between the question and the answer, so the middle of the exchange that was shortest is its estimate, and half of that
/// exchange bounds the error whatever the path's asymmetry (as in RFC 5905, section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClockOffset {
    /// Far wall clock less near wall clock (CLOCK_REALTIME), ns.
    pub offset_ns: i64,
    /// Far monotonic clock less near monotonic clock, ns. Says nothing by itself; its change is the drift.
    pub monotonic_offset_ns: i64,
    /// Both offsets are sure to plus or minus this, ns: half of the shortest exchange with each end, added up.
    pub error_ns: u64,
    /// Exchanges with each end.
    pub exchanges: u32,
    /// The coordinator's monotonic clock at the reading, ns: what the drift is taken over.
    pub at_ns: u64,
}

impl ClockOffset {
    /// How much faster the far clock ran from this reading to `later`, and the bound of its error, both in parts per 10^9.
    /// `None` when no time has passed.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClockDrift {
    /// Nanoseconds that the far monotonic clock gains on the near one in a second.
    pub drift_ppb: i64,
    /// Bound of its error, in the same unit.
    pub error_ppb: u64,
    /// Between the two readings, ns.
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
