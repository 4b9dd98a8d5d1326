//! Changes of a path during its use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Bursts, DirectionSpec, Discipline, Jitter, Reorder, text};

/// The properties of a direction from a time on. Those that are not given stay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkChange {
    /// When, counted from the time the path could be used.
    #[serde(with = "text::time")]
    pub at: Duration,
    /// See [`DirectionSpec::delay`]. Segments in flight keep the delay that they left with.
    #[serde(default, with = "text::time::maybe", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// See [`DirectionSpec::jitter`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// See [`DirectionSpec::rate_bps`]; `Some(None)` takes the limit away. The segment that is being sent keeps the old rate, the queue
    /// gets the new one.
    #[serde(default, rename = "rate", with = "text::rate::maybe", skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<Option<u64>>,
    /// See [`DirectionSpec::queue_bytes`]; a limit in packets ends. What already waits stays.
    #[serde(default, rename = "queue", with = "text::size::maybe", skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// See [`DirectionSpec::queue_packets`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// See [`DirectionSpec::discipline`]. It restarts without history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discipline: Option<Discipline>,
    /// See [`DirectionSpec::loss`].
    #[serde(default, with = "text::share::maybe", skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// See [`DirectionSpec::bursts`].
    #[serde(default, rename = "burst-loss", skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// See [`DirectionSpec::duplicate`].
    #[serde(default, with = "text::share::maybe", skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<f64>,
    /// See [`DirectionSpec::reorder`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// See [`DirectionSpec::corrupt`].
    #[serde(default, with = "text::share::maybe", skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<f64>,
    /// See [`DirectionSpec::mtu`]; 65535 lets everything pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

impl LinkChange {
    /// Applies this change to `direction`.
    pub(crate) fn apply(&self, direction: &mut DirectionSpec) {
        fn set<T: Clone>(field: &mut T, new: Option<&T>) {
            if let Some(new) = new {
                field.clone_from(new);
            }
        }
        set(&mut direction.delay, self.delay.as_ref());
        set(&mut direction.jitter, self.jitter.as_ref());
        set(&mut direction.rate_bps, self.rate_bps.as_ref());
        if let Some(bytes) = self.queue_bytes {
            (direction.queue_bytes, direction.queue_packets) = (bytes, None);
        }
        direction.queue_packets = self.queue_packets.or(direction.queue_packets);
        set(&mut direction.discipline, self.discipline.as_ref());
        set(&mut direction.loss, self.loss.as_ref());
        set(&mut direction.bursts, self.bursts.as_ref());
        set(&mut direction.duplicate, self.duplicate.as_ref());
        set(&mut direction.reorder, self.reorder.as_ref());
        set(&mut direction.corrupt, self.corrupt.as_ref());
        direction.mtu = self.mtu.or(direction.mtu);
    }
}
