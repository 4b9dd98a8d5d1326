//! Packets that wait for their time, in memory that is allocated once.

use std::collections::VecDeque;

use super::packet::Layout;

/// A packet in the ring.
#[derive(Debug, Clone, Copy)]
struct QueuedPacket {
    layout: Layout,
    start: usize,
    length: usize,
    /// How many users still need it.
    wanted: usize,
}

/// A ring of bytes in which each packet is contiguous. A packet that begins before the end may extend beyond it, into
/// room for one more; the next one begins at 0 again.
///
/// Packets are identified by their number, counted from 0 on arrival. The room of a released packet is reused once
/// those before it are released too.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Vec<u8>,
    capacity: usize,
    slot: usize,
    tail: usize,
    used: usize,
    kept: VecDeque<QueuedPacket>,
    /// The number of the first one in `kept`.
    first: u64,
}

impl Ring {
    /// A ring for `capacity` bytes of packets of at most `slot` bytes. The memory is the kernel's zero pages until it is used.
    pub(crate) fn new(capacity: usize, slot: usize) -> Self {
        let capacity = capacity.max(slot);
        let kept = VecDeque::with_capacity(capacity / 256);
        Self { memory: vec![0; capacity + slot], capacity, slot, tail: 0, used: 0, kept, first: 0 }
    }

    /// Room for the next packet; `None` when there is none.
    pub(crate) fn slot(&mut self) -> Option<&mut [u8]> {
        let room = self.used + self.slot <= self.capacity;
        room.then(|| &mut self.memory[self.tail..self.tail + self.slot])
    }

    /// Keeps the first `length` bytes of the [`slot`](Self::slot) until `wanted` users have
    /// [`released`](Self::release) it; returns the packet's number.
    pub(crate) fn keep(&mut self, length: usize, layout: Layout, wanted: usize) -> u64 {
        self.kept.push_back(QueuedPacket { layout, start: self.tail, length, wanted });
        self.used += length;
        self.tail += length;
        if self.tail >= self.capacity {
            self.tail = 0;
        }
        self.first + self.kept.len() as u64 - 1
    }

    /// A packet that is kept.
    pub(crate) fn packet(&self, number: u64) -> (&Layout, &[u8]) {
        let kept = &self.kept[(number - self.first) as usize];
        (&kept.layout, &self.memory[kept.start..kept.start + kept.length])
    }

    /// Adds a user to a kept packet.
    pub(crate) fn want(&mut self, number: u64) {
        self.kept[(number - self.first) as usize].wanted += 1;
    }

    /// Removes a user from a packet.
    pub(crate) fn release(&mut self, number: u64) {
        self.kept[(number - self.first) as usize].wanted -= 1;
        while self.kept.front().is_some_and(|kept| kept.wanted == 0)
            && let Some(released) = self.kept.pop_front()
        {
            self.used -= released.length;
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Every packet stays unchanged until it is released, in any order, and a full ring refuses instead of
        /// overwriting.
        #[test]
        fn packets_stay_as_they_went_in(steps in prop::collection::vec((any::<bool>(), 1_usize..100, any::<prop::sample::Index>()), 1..400)) {
            let mut ring = Ring::new(300, 100);
            let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            let mut lengths = Vec::new();
            for (step, (put, length, which)) in steps.into_iter().enumerate() {
                if put {
                    // A packet released behind a kept one still takes room.
                    let oldest = model.keys().next().map_or(lengths.len(), |number| *number as usize);
                    let kept: usize = lengths[oldest..].iter().sum();
                    let room = ring.slot();
                    prop_assert_eq!(room.is_some(), kept + 100 <= 300);
                    if let Some(slot) = room {
                        slot[..length].fill(step as u8);
                        let layout = Layout::of(&slot[..length]);
                        let number = ring.keep(length, layout, 1);
                        prop_assert_eq!(number, lengths.len() as u64);
                        lengths.push(length);
                        model.insert(number, vec![step as u8; length]);
                    }
                } else if !model.is_empty() {
                    let number = *which.get(&model.keys().copied().collect::<Vec<_>>());
                    ring.want(number);
                    ring.release(number);
                    ring.release(number);
                    model.remove(&number);
                }
                for (number, bytes) in &model {
                    prop_assert_eq!(ring.packet(*number).1, bytes.as_slice());
                }
            }
        }
    }
}
