//! A path that changes while it is used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Bursts, Discipline, Jitter, OneWay, Reorder, text};

/// What a direction of a path is like from a time on. What is not named stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Change {
    /// When, since the path could be used.
    #[serde(with = "text::time")]
    pub at: Duration,
    /// See [`OneWay::delay`]. What is on its way keeps the delay that it left with.
    #[serde(default, with = "text::time::maybe", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// See [`OneWay::jitter`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// See [`OneWay::rate_bps`]; `Some(None)` takes the limit away. The segment that is being sent keeps the old rate, the queue
    /// gets the new one.
    #[serde(default, rename = "rate", with = "text::rate::maybe", skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<Option<u64>>,
    /// See [`OneWay::queue_bytes`]; a limit in packets ends. What waits already stays.
    #[serde(default, rename = "queue", with = "text::size::maybe", skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// See [`OneWay::queue_packets`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// See [`OneWay::discipline`]. It begins anew, without a memory of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discipline: Option<Discipline>,
    /// See [`OneWay::loss`].
    #[serde(default, with = "text::share::maybe", skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// See [`OneWay::bursts`].
    #[serde(default, rename = "burst-loss", skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// See [`OneWay::duplicate`].
    #[serde(default, with = "text::share::maybe", skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<f64>,
    /// See [`OneWay::reorder`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// See [`OneWay::corrupt`].
    #[serde(default, with = "text::share::maybe", skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<f64>,
    /// See [`OneWay::mtu`]; 65535 lets everything pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

impl Change {
    /// Makes `way` what it is from this change on.
    pub(crate) fn apply(&self, way: &mut OneWay) {
        fn set<T: Clone>(field: &mut T, new: Option<&T>) {
            if let Some(new) = new {
                field.clone_from(new);
            }
        }
        set(&mut way.delay, self.delay.as_ref());
        set(&mut way.jitter, self.jitter.as_ref());
        set(&mut way.rate_bps, self.rate_bps.as_ref());
        if let Some(bytes) = self.queue_bytes {
            (way.queue_bytes, way.queue_packets) = (bytes, None);
        }
        way.queue_packets = self.queue_packets.or(way.queue_packets);
        set(&mut way.discipline, self.discipline.as_ref());
        set(&mut way.loss, self.loss.as_ref());
        set(&mut way.bursts, self.bursts.as_ref());
        set(&mut way.duplicate, self.duplicate.as_ref());
        set(&mut way.reorder, self.reorder.as_ref());
        set(&mut way.corrupt, self.corrupt.as_ref());
        way.mtu = self.mtu.or(way.mtu);
    }
}
