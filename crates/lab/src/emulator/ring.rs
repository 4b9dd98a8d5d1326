//! Packets that wait for their time, in the order they came, in memory that is taken once.

use std::collections::VecDeque;

/// A packet in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// When it is due, ns.
    pub(crate) at_ns: u64,
    /// Segments in it.
    pub(crate) segments: u64,
    /// Bytes on the wire, framing included, of all its segments.
    pub(crate) wire_bytes: u64,
    start: usize,
    length: usize,
}

/// A ring of bytes in which each packet stands in one piece. A packet that begins before the end may reach beyond it, into
/// room for one more; the next one begins at 0 again.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Vec<u8>,
    capacity: usize,
    slot: usize,
    tail: usize,
    used: usize,
    waiting: VecDeque<Waiting>,
}

impl Ring {
    /// A ring for `capacity` bytes of packets of at most `slot` bytes. The memory is the kernel's zero pages until it is used.
    pub(crate) fn new(capacity: usize, slot: usize) -> Self {
        let capacity = capacity.max(slot);
        let waiting = VecDeque::with_capacity(capacity / 256);
        Self { memory: vec![0; capacity + slot], capacity, slot, tail: 0, used: 0, waiting }
    }

    /// Room for the next packet; `None` when there is none.
    pub(crate) fn slot(&mut self) -> Option<&mut [u8]> {
        let room = self.used + self.slot <= self.capacity;
        room.then(|| &mut self.memory[self.tail..self.tail + self.slot])
    }

    /// Keeps the first `length` bytes of the [`slot`](Self::slot).
    pub(crate) fn keep(&mut self, length: usize, at_ns: u64, segments: u64, wire_bytes: u64) {
        self.waiting.push_back(Waiting { at_ns, segments, wire_bytes, start: self.tail, length });
        self.used += length;
        self.tail += length;
        if self.tail >= self.capacity {
            self.tail = 0;
        }
    }

    /// The packet that came first, and its bytes.
    pub(crate) fn first(&self) -> Option<(Waiting, &[u8])> {
        self.waiting.front().map(|packet| (*packet, &self.memory[packet.start..packet.start + packet.length]))
    }

    /// When the packet that came first is due.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.waiting.front().map(|packet| packet.at_ns)
    }

    /// Forgets the packet that came first.
    pub(crate) fn drop_first(&mut self) {
        if let Some(packet) = self.waiting.pop_front() {
            self.used -= packet.length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is put in comes out in order and unchanged, and a full ring refuses instead of overwriting.
        #[test]
        fn packets_come_out_as_they_went_in(steps in prop::collection::vec((any::<bool>(), 1_usize..100), 1..400)) {
            let mut ring = Ring::new(300, 100);
            let mut model: VecDeque<(u64, Vec<u8>)> = VecDeque::new();
            for (number, (put, length)) in (0_u64..).zip(steps) {
                if put {
                    let held: usize = model.iter().map(|(_, bytes)| bytes.len()).sum();
                    let room = ring.slot();
                    prop_assert_eq!(room.is_some(), held + 100 <= 300);
                    if let Some(slot) = room {
                        slot[..length].fill(number as u8);
                        ring.keep(length, number, 1, 2);
                        model.push_back((number, vec![number as u8; length]));
                    }
                } else {
                    let first = ring.first().map(|(packet, bytes)| (packet.at_ns, bytes.to_vec()));
                    prop_assert_eq!(&first, &model.pop_front());
                    ring.drop_first();
                }
                prop_assert_eq!(ring.due_ns(), model.front().map(|(at, _)| *at));
            }
        }
    }
}
