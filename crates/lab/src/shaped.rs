//! Ways that the kernel holds to their rate by a token bucket (tc-tbf(8)): what it let go, and what its queue had no room for.

use host::{RealSys, Sys};

use crate::emulator::within;
use crate::plug::Plug;
use crate::scope::Scope;
use crate::{DirectionSpec, LabError};

/// What a token bucket has counted. The kernel's counters have 32 bits and begin anew after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BucketCounts {
    /// Segments that it let go.
    pub(crate) sent: u32,
    /// Packets that its queue had no room for. The kernel counts one for several segments that travel together.
    pub(crate) dropped: u32,
}

impl BucketCounts {
    /// What came on top of an earlier reading.
    #[must_use]
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self { sent: self.sent.wrapping_sub(earlier.sent), dropped: self.dropped.wrapping_sub(earlier.dropped) }
    }
}

/// Lets an interface send no faster than the way says, by a token bucket. Its depth is what passes in 4 ms, which makes up for a
/// late timer, and never less than a TSO packet with the headers of its segments, which would be cut.
pub(crate) fn shape(scope: &Scope, plug: &Plug<'_>, direction: &DirectionSpec) -> Result<(), LabError> {
    let Some(rate_bps) = direction.rate_bps else { return Ok(()) };
    let (rate, burst) = (format!("{rate_bps}bit"), (rate_bps / 8 / 250).max(80_000).to_string());
    let limit = direction.queue_bytes.to_string();
    let bucket = ["tbf", "rate", &rate, "burst", &burst, "limit", &limit];
    let device = ["netns", "exec", plug.namespace, "tc", "qdisc", "add", "dev", plug.interface, "root"];
    scope.run(&[device.as_slice(), &bucket].concat()).map(drop)
}

/// What the bucket of an interface has counted; `None` where there is none, or it cannot be asked.
pub(crate) fn counts(plug: &Plug<'_>) -> Option<BucketCounts> {
    // In a thread of its own, so that no other one can end up in the namespace.
    let requested = std::thread::scope(|scope| scope.spawn(|| within(plug.namespace, || RealSys.qdiscs())).join());
    let found =
        requested.ok()?.ok()?.into_iter().find(|found| found.interface == plug.interface && found.kind == "tbf")?;
    Some(BucketCounts { sent: found.packets, dropped: found.drops })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_may_begin_anew_between_two_readings() {
        let earlier = BucketCounts { sent: u32::MAX, dropped: 3 };
        let later = BucketCounts { sent: 9, dropped: 5 };
        assert_eq!(later.since(&earlier), BucketCounts { sent: 10, dropped: 2 });
    }
}
