//! Directions whose rate the kernel limits by a token bucket (tc-tbf(8)): packets sent and packets dropped at its
//! queue.

use host::{RealSys, Sys};

use crate::emulator::within;
use crate::plug::Plug;
use crate::scope::Scope;
use crate::{DirectionSpec, LabError};

/// The counters of a token bucket. The kernel's counters have 32 bits and wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BucketCounts {
    /// Segments sent.
    pub(crate) sent: u32,
    /// Packets dropped because its queue was full. The kernel counts one for several segments that travel together.
    pub(crate) dropped: u32,
}

impl BucketCounts {
    /// The increase over an earlier reading.
    #[must_use]
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self { sent: self.sent.wrapping_sub(earlier.sent), dropped: self.dropped.wrapping_sub(earlier.dropped) }
    }
}

/// The bucket lets this time of the rate through at once.
const DEPTH_NS: u64 = 4_000_000;
/// Bytes of a packet beyond the MTU of its interface: its Ethernet header, with room for a VLAN tag.
const BEYOND_MTU: u64 = 18;

/// The depth of a bucket, bytes: those of 4 ms, which makes up for a late timer, and at least a packet. The kernel splits TSO packets that
/// are larger.
fn depth(rate_bps: u64, mtu: u32) -> u64 {
    let timed = u128::from(rate_bps) * u128::from(DEPTH_NS) / 8_000_000_000;
    u64::try_from(timed).unwrap_or(u64::MAX).max(u64::from(mtu) + BEYOND_MTU)
}

/// Limits an interface with this MTU to the rate of the direction, by a token bucket; one that is there is altered.
pub(crate) fn shape(scope: &Scope, plug: &Plug<'_>, direction: &DirectionSpec, mtu: u32) -> Result<(), LabError> {
    let Some(rate_bps) = direction.rate_bps else { return Ok(()) };
    let (rate, burst) = (format!("{rate_bps}bit"), depth(rate_bps, mtu).to_string());
    let limit = direction.queue_bytes.to_string();
    let bucket = ["tbf", "rate", &rate, "burst", &burst, "limit", &limit];
    let device = ["netns", "exec", plug.namespace, "tc", "qdisc", "replace", "dev", plug.interface, "root"];
    scope.run(&[device.as_slice(), &bucket].concat()).map(drop)
}

/// The counters of an interface's bucket; `None` if there is none, or it cannot be read.
pub(crate) fn counts(plug: &Plug<'_>) -> Option<BucketCounts> {
    // In its own thread, so that no other one can end up in the namespace.
    let requested = std::thread::scope(|scope| scope.spawn(|| within(plug.namespace, || RealSys.qdiscs())).join());
    let found =
        requested.ok()?.ok()?.into_iter().find(|found| found.interface == plug.interface && found.kind == "tbf")?;
    Some(BucketCounts { sent: found.packets, dropped: found.drops })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_4_ms_deep_and_holds_a_packet() {
        assert_eq!(depth(10_000_000, 1500), 5_000);
        assert_eq!(depth(1_000_000_000, 1500), 500_000);
        assert_eq!((depth(1_000_000, 1500), depth(10_000_000, 9000)), (1_518, 9_018));
    }

    #[test]
    fn counters_may_begin_anew_between_two_readings() {
        let earlier = BucketCounts { sent: u32::MAX, dropped: 3 };
        let later = BucketCounts { sent: 9, dropped: 5 };
        assert_eq!(later.since(&earlier), BucketCounts { sent: 10, dropped: 2 });
    }
}
