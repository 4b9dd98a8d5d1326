//! Counters for every segment.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::counter::add;
use super::lateness::{LateCounters, Lateness};

/// Where a segment that did not arrive was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropLocation {
    /// It was longer than the path's MTU.
    Mtu,
    /// The queue before the link was full.
    Queue,
    /// The queue's discipline dropped it to slow down the sender.
    Aqm,
    /// Lost in a burst on the path.
    Burst,
    /// Lost on the path.
    Loss,
}

/// All counters in one place: the emulator's own, their readings, and their differences.
macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The counters of one direction. One writer, the emulator's thread, by plain loads and stores.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)+
            pub(crate) late: LateCounters,
        }

        impl Counters {
            /// The current counts. While traffic runs a segment may be in one count and not yet in the next.
            pub(crate) fn read(&self) -> PathCounts {
                PathCounts { $($name: self.$name.load(Relaxed),)+ late: self.late.read() }
            }
        }

        /// The counts of one direction of a path. Segments are packets as on a wire: a TSO or USO packet counts as its
        /// segments. Bytes are those on the wire, framing included.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct PathCounts {
            $($(#[$doc])+ pub $name: u64,)+
            /// How late the emulator was.
            pub late: Lateness,
        }

        impl PathCounts {
            /// What was counted since an earlier reading.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($name: self.$name - earlier.$name,)+
                    late: self.late.since(&earlier.late),
                }
            }
        }
    };
}

counts! {
    /// Segments that the sending host passed to the path.
    arrived,
    /// Their bytes on the wire.
    arrived_bytes,
    /// Segments that were delivered to the receiving host, copies included.
    delivered,
    /// Their bytes on the wire.
    delivered_bytes,
    /// Segments longer than the path's MTU.
    dropped_mtu,
    /// Segments for which the queue had no room.
    dropped_queue,
    /// Segments that the queue's discipline dropped.
    dropped_aqm,
    /// Segments lost in bursts.
    dropped_burst,
    /// Segments lost at random.
    dropped_loss,
    /// Segments for which the emulator itself had no memory; 0 unless the path holds more than 1 GiB.
    dropped_ring,
    /// Segments that the receiving host did not accept, for example with its interface down.
    refused,
    /// Segments that the queue's discipline marked (ECN) instead of dropping them.
    marked,
    /// Segments with a flipped bit, copies included; they are delivered.
    corrupted,
    /// Copies made.
    duplicated,
    /// Segments delayed so that others overtake them.
    kept_back,
    /// Segments delivered after one that left the link later (RFC 4737, Type-P-Reordered); without copies.
    reordered,
}

impl Counters {
    /// Counts a drop.
    pub(crate) fn drop_at(&self, location: DropLocation) {
        let counter = match location {
            DropLocation::Mtu => &self.dropped_mtu,
            DropLocation::Queue => &self.dropped_queue,
            DropLocation::Aqm => &self.dropped_aqm,
            DropLocation::Burst => &self.dropped_burst,
            DropLocation::Loss => &self.dropped_loss,
        };
        add(counter, 1);
    }
}

impl PathCounts {
    /// Segments that did not arrive and will not, by drop location, in the order of the stages.
    #[must_use]
    pub fn drops(&self) -> [(&'static str, u64); 7] {
        [
            ("ring", self.dropped_ring),
            ("mtu", self.dropped_mtu),
            ("queue", self.dropped_queue),
            ("aqm", self.dropped_aqm),
            ("burst-loss", self.dropped_burst),
            ("loss", self.dropped_loss),
            ("refused", self.refused),
        ]
    }

    /// All of them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops().iter().map(|(_, count)| count).sum()
    }

    /// Segments in flight: with the drops and the delivered ones they make up those that arrived and their copies.
    #[must_use]
    pub fn travelling(&self) -> u64 {
        (self.arrived + self.duplicated).saturating_sub(self.delivered + self.dropped())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_neither_delivered_nor_dropped_are_in_flight() {
        let counters = Counters::default();
        add(&counters.arrived, 10);
        add(&counters.duplicated, 1);
        add(&counters.delivered, 4);
        for location in [
            DropLocation::Mtu,
            DropLocation::Queue,
            DropLocation::Aqm,
            DropLocation::Burst,
            DropLocation::Loss,
            DropLocation::Loss,
        ] {
            counters.drop_at(location);
        }
        let counts = counters.read();
        assert_eq!((counts.dropped_queue, counts.dropped_loss, counts.dropped(), counts.travelling()), (1, 2, 6, 1));
        assert_eq!(counts.since(&counts).dropped(), 0);
    }
}
