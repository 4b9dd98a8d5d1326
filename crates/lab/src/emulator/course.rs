//! One direction of the path, without the devices at its ends and without a clock: packets enter, and leave when they
//! are due.

use std::ops::Range;
use std::sync::Arc;

use super::alter;
use super::counter::add;
use super::counts::{Counters, DropLocation};
use super::packet::{LARGEST, Layout};
use super::queue::{Batch, Departure, Link};
use super::random::Random;
use super::ring::Ring;
use super::schedule::Schedule;
use super::spec::DirectionSpec;
use super::stage::{Passage, Stages};

/// Neighbouring segments whose times differ by less share one packet, ns: this bounds how late a segment is by design.
/// A shorter time means more packets for the receiving host, at least while the link is busy.
const TOGETHER_NS: u64 = 100_000;
/// How far ahead of time segments are passed to the link, ns: far enough to know together the segments that share a
/// packet.
const AHEAD_NS: u64 = 2 * TOGETHER_NS;

/// Neighbouring segments of one packet that continue together.
#[derive(Debug, Clone)]
struct Run {
    /// When the last one is due.
    at_ns: u64,
    first_ns: u64,
    packet: u64,
    segments: Range<usize>,
    /// The first one's number in the link's sending order.
    sequence: u64,
    wire_bytes: u64,
    marked: bool,
    /// The bit that is flipped.
    flip: Option<u64>,
    copy: bool,
}

impl Run {
    /// Whether a segment that has just left continues this run.
    fn takes(&self, departure: &Departure, passage: &Passage, marked: bool) -> bool {
        self.packet == departure.packet
            && self.segments.end == departure.segment
            && self.marked == marked
            && passage.at_ns >= self.at_ns
            && passage.at_ns - self.first_ns <= TOGETHER_NS
    }
}

/// One direction.
pub(crate) struct Course {
    /// Its properties at the start and from each change on; times in ns since `origin_ns`.
    phases: Vec<(u64, DirectionSpec)>,
    /// The next change.
    next_phase: usize,
    origin_ns: u64,
    mtu: usize,
    framing_bytes: u64,
    link: Link,
    stages: Stages,
    ring: Ring,
    /// Whether the ring had no room for the current packet.
    full: bool,
    runs: Schedule<Run>,
    /// Segments that left the link.
    sequence: u64,
    /// The minimum number of a delivered segment that is not reordered (RFC 4737's NextExp).
    expected: u64,
    counters: Arc<Counters>,
    /// A packet that is being split, or assembled for delivery.
    scratch: Vec<u8>,
    /// Segments of the current packet that entered the queue, with their marks.
    admitted: Vec<(Range<usize>, bool)>,
}

impl Course {
    /// `mtu` is that of the hosts' interfaces, in bytes.
    pub(crate) fn new(direction: &DirectionSpec, mtu: u32, seed: u64, counters: Arc<Counters>) -> Self {
        let phases = direction.phases().into_iter().map(|(at, direction)| (at.as_nanos() as u64, direction)).collect();
        let ring_bytes = direction.ring_bytes(mtu);
        Self {
            phases,
            next_phase: 1,
            origin_ns: 0,
            mtu: direction.mtu.map_or(usize::MAX, |mtu| mtu as usize),
            framing_bytes: u64::from(direction.framing_bytes),
            link: Link::new(direction, mtu, Random::split(seed, 0)),
            stages: Stages::new(direction, seed),
            ring: Ring::new(ring_bytes, LARGEST),
            full: false,
            runs: Schedule::new(ring_bytes / 512),
            sequence: 0,
            expected: 0,
            counters,
            scratch: vec![0; LARGEST],
            admitted: Vec::with_capacity(LARGEST / 256),
        }
    }

    /// Restarts the list of changes: now is their time 0.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        self.advance(now_ns);
        (self.origin_ns, self.next_phase) = (now_ns, 0);
        self.advance(now_ns);
    }

    /// Whether nothing waits or travels.
    pub(crate) fn is_empty(&self) -> bool {
        self.link.next_ns().is_none() && self.runs.first().is_none()
    }

    /// When the next packet must be delivered, ns.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.runs.first().map(|(at_ns, _)| at_ns)
    }

    /// When [`advance`](Self::advance) must be called next, at the latest, ns.
    pub(crate) fn work_ns(&self) -> Option<u64> {
        let change_ns = self.change_ns();
        let link = self.link.next_ns().filter(|leaves| *leaves < change_ns);
        let link = link.map(|leaves| leaves.saturating_sub(TOGETHER_NS));
        link.into_iter().chain(Some(change_ns).filter(|change| *change < u64::MAX)).min()
    }

    /// When the path changes next, ns; far in the future if never.
    fn change_ns(&self) -> u64 {
        self.phases.get(self.next_phase).map_or(u64::MAX, |(at, _)| self.origin_ns + at)
    }

    /// Does everything due at this time: changes, and segments that leave the queue.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while self.change_ns() <= now_ns {
            self.send_until(self.change_ns().saturating_sub(1));
            let direction = &self.phases[self.next_phase].1;
            self.link.set(direction);
            self.stages.set(direction);
            self.mtu = direction.mtu.map_or(usize::MAX, |mtu| mtu as usize);
            self.next_phase += 1;
        }
        self.send_until((now_ns + AHEAD_NS).min(self.change_ns().saturating_sub(1)));
    }

    /// The buffer for the next packet.
    pub(crate) fn slot(&mut self) -> &mut [u8] {
        self.full = self.ring.slot().is_none();
        if self.full { &mut self.scratch } else { self.ring.slot().unwrap_or_default() }
    }

    /// A packet of `length` bytes, virtio header included, has been read to the [`slot`](Self::slot).
    pub(crate) fn arrive(&mut self, length: usize, now_ns: u64) {
        self.advance(now_ns);
        let full = self.full;
        // The packet stays where it was read, even if the ring has room again by now.
        let packet = if full { &self.scratch[..length] } else { &self.ring.slot().unwrap_or_default()[..length] };
        let (layout, allows) = (Layout::of(packet), alter::may_be_marked(packet));
        self.count_arrival(&layout);
        if full {
            add(&self.counters.dropped_ring, layout.segments() as u64);
            return;
        }
        self.admit(&layout, allows, now_ns);
        let admitted = std::mem::take(&mut self.admitted);
        let whole = admitted.iter().map(|(run, _)| run.len()).sum::<usize>() == layout.segments();
        if whole {
            let packet = self.ring.keep(length, layout, admitted.len());
            for (run, marked) in &admitted {
                self.wait(packet, &layout, run.clone(), *marked, allows, now_ns);
            }
        } else if !admitted.is_empty() {
            self.keep_parts(&layout, length, &admitted, allows, now_ns);
        }
        self.admitted = admitted;
        self.advance(now_ns);
    }

    fn count_arrival(&self, layout: &Layout) {
        add(&self.counters.arrived, layout.segments() as u64);
        let bytes: u64 = (0..layout.segments()).map(|segment| self.wire_bytes(layout, segment)).sum();
        add(&self.counters.arrived_bytes, bytes);
    }

    fn wire_bytes(&self, layout: &Layout, segment: usize) -> u64 {
        layout.ip_bytes(segment) as u64 + self.framing_bytes
    }

    /// Determines which segments enter the queue.
    fn admit(&mut self, layout: &Layout, allows: bool, now_ns: u64) {
        self.admitted.clear();
        for segment in 0..layout.segments() {
            let fits = layout.ip_bytes(segment) <= self.mtu;
            let wire_bytes = self.wire_bytes(layout, segment);
            let entered = if fits { self.link.admit(now_ns, wire_bytes, allows) } else { Err(DropLocation::Mtu) };
            match (entered, self.admitted.last_mut()) {
                (Ok(marked), Some((run, alike))) if run.end == segment && *alike == marked => run.end += 1,
                (Ok(marked), _) => self.admitted.push((segment..segment + 1, marked)),
                (Err(location), _) => self.counters.drop_at(location),
            }
        }
    }

    /// Keeps only the segments of the packet in the slot that entered the queue, each run as a packet: dropped
    /// segments take no memory.
    fn keep_parts(
        &mut self,
        layout: &Layout,
        length: usize,
        admitted: &[(Range<usize>, bool)],
        allows: bool,
        now_ns: u64,
    ) {
        if let Some(slot) = self.ring.slot() {
            self.scratch[..length].copy_from_slice(&slot[..length]);
        }
        for (run, marked) in admitted {
            let Some(slot) = self.ring.slot() else {
                // The link has no room for them either: it expects the admitted segments.
                let bytes: u64 = run.clone().map(|segment| self.wire_bytes(layout, segment)).sum();
                self.link.withdraw(run.len() as u64, bytes);
                add(&self.counters.dropped_ring, run.len() as u64);
                continue;
            };
            let length = layout.write_run(&self.scratch[..length], run, slot);
            let part = Layout::of(&slot[..length]);
            let packet = self.ring.keep(length, part, 1);
            self.wait(packet, &part, 0..part.segments(), *marked, allows, now_ns);
        }
    }

    fn wait(
        &mut self,
        packet: u64,
        layout: &Layout,
        segments: Range<usize>,
        marked: bool,
        allows: bool,
        arrived_ns: u64,
    ) {
        let last = layout.segments() - 1;
        let wire_bytes = self.wire_bytes(layout, 0);
        let last = (last, self.wire_bytes(layout, last));
        self.link.push(Batch {
            packet,
            next: segments.start,
            end: segments.end,
            wire_bytes,
            last,
            arrived_ns,
            marked,
            allows,
        });
    }

    /// Passes what leaves the queue until a time through the stages, and makes runs of what will arrive.
    fn send_until(&mut self, until_ns: u64) {
        let mut open: Option<Run> = None;
        while let Some(departure) = self.link.depart(until_ns) {
            add(&self.counters.marked, u64::from(matches!(departure.outcome, Ok((_, true)))));
            let passed = departure.outcome.and_then(|(at_ns, marked)| Ok((self.stages.pass(at_ns)?, marked)));
            match passed {
                Ok((passage, marked)) => self.join(&mut open, &departure, &passage, marked),
                Err(location) => {
                    self.counters.drop_at(location);
                    // It was sent nevertheless, unless the queue dropped it.
                    self.sequence += u64::from(departure.outcome.is_ok());
                    self.close(&mut open);
                }
            }
            if departure.last {
                // The open run needs the packet too.
                self.ring.release(departure.packet);
            }
        }
        self.close(&mut open);
    }

    /// Adds a segment to the open run, or begins another.
    fn join(&mut self, open: &mut Option<Run>, departure: &Departure, passage: &Passage, marked: bool) {
        let alone = passage.flip.is_some() || passage.twice || passage.kept_back;
        let sequence = self.sequence;
        self.sequence += 1;
        add(&self.counters.kept_back, u64::from(passage.kept_back));
        if let Some(run) = open
            && !alone
            && run.takes(departure, passage, marked)
        {
            run.segments.end += 1;
            run.at_ns = passage.at_ns;
            run.wire_bytes += departure.wire_bytes;
            return;
        }
        self.close(open);
        self.ring.want(departure.packet);
        let run = Run {
            at_ns: passage.at_ns,
            first_ns: passage.at_ns,
            packet: departure.packet,
            segments: departure.segment..departure.segment + 1,
            sequence,
            wire_bytes: departure.wire_bytes,
            marked,
            flip: passage.flip,
            copy: false,
        };
        if !alone {
            *open = Some(run);
            return;
        }
        let copy = passage.twice.then(|| Run { copy: true, ..run.clone() });
        self.schedule(run, passage.kept_back);
        if let Some(copy) = copy {
            self.ring.want(departure.packet);
            add(&self.counters.duplicated, 1);
            self.schedule(copy, passage.kept_back);
        }
    }

    fn close(&mut self, open: &mut Option<Run>) {
        if let Some(run) = open.take() {
            self.schedule(run, false);
        }
    }

    fn schedule(&mut self, run: Run, kept_back: bool) {
        add(&self.counters.corrupted, u64::from(run.flip.is_some()));
        self.runs.push(run.at_ns, run, kept_back);
    }

    /// The next due packet, as it is to be written; the caller reports the result to [`handed`](Self::handed).
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<&[u8]> {
        let (_, run) = self.runs.first().filter(|(at_ns, _)| *at_ns <= now_ns)?;
        let (layout, bytes) = self.ring.packet(run.packet);
        if run.segments.len() == layout.segments() && !run.marked && run.flip.is_none() {
            return Some(bytes);
        }
        let length = layout.write_run(bytes, &run.segments, &mut self.scratch);
        let packet = &mut self.scratch[..length];
        if run.marked {
            alter::mark(packet);
        }
        if let Some(draw) = run.flip {
            alter::flip(packet, draw);
        }
        Some(packet)
    }

    /// The packet that was due has been written, or was refused.
    pub(crate) fn handed(&mut self, now_ns: u64, taken: bool) {
        let Some((at_ns, run)) = self.runs.pop() else { return };
        self.ring.release(run.packet);
        let segments = run.segments.len() as u64;
        let counters = &self.counters;
        counters.late.record(now_ns.saturating_sub(at_ns));
        if !taken {
            add(&counters.refused, segments);
            return;
        }
        add(&counters.delivered, segments);
        add(&counters.delivered_bytes, run.wire_bytes);
        if !run.copy {
            add(&counters.reordered, self.expected.saturating_sub(run.sequence).min(segments));
            self.expected = self.expected.max(run.sequence + segments);
        }
    }
}

#[cfg(test)]
mod tests;
