//! One direction of the path: packets in, through the stages, and out when they are due.

use std::ops::Range;
use std::sync::Arc;

use rustix::io::Errno;

use super::counts::{Counters, add};
use super::packet::{LARGEST, Layout};
use super::ring::Ring;
use super::spec::OneWay;
use super::stage::{Passage, Stage, pass, stages};
use super::sys::Tun;

/// Packets that are read, and that are written, before the other direction has its turn.
const TURN: usize = 8;
/// Neighbouring segments whose times differ by less travel in one packet, ns: the bound of what a segment is late by design.
/// Shorter means more packets for the receiving host to take, at least while the link is busy.
const TOGETHER_NS: u64 = 100_000;

/// One direction.
pub(crate) struct Way {
    stages: Vec<Box<dyn Stage>>,
    framing_bytes: u64,
    ring: Ring,
    counters: Arc<Counters>,
    /// A packet that is being taken apart, for its place in the ring goes to its parts.
    source: Vec<u8>,
    runs: Vec<Run>,
}

/// Neighbouring segments that go on together.
struct Run {
    segments: Range<usize>,
    first_ns: u64,
    at_ns: u64,
    wire_bytes: u64,
}

impl Way {
    pub(crate) fn new(way: &OneWay, mtu: u32, seed: u64, counters: Arc<Counters>) -> Self {
        Self {
            stages: stages(way, seed),
            framing_bytes: u64::from(way.framing_bytes),
            ring: Ring::new(way.ring_bytes(mtu), LARGEST),
            counters,
            source: vec![0; LARGEST],
            runs: Vec::with_capacity(LARGEST / 256),
        }
    }

    /// When the next packet is due, ns.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.ring.due_ns()
    }

    /// Hands over packets that are due, a turn's worth; returns how many.
    pub(crate) fn deliver(&mut self, to: &Tun, now: impl Fn() -> u64) -> usize {
        let mut done = 0;
        let mut now_ns = now();
        while done < TURN
            && let Some((packet, bytes)) = self.ring.first()
            && packet.at_ns <= now_ns
        {
            let taken = to.write(bytes).is_ok();
            let counters = &self.counters;
            counters.late.record(now_ns - packet.at_ns);
            add(if taken { &counters.delivered } else { &counters.refused }, packet.segments);
            add(&counters.delivered_bytes, if taken { packet.wire_bytes } else { 0 });
            self.ring.drop_first();
            done += 1;
            // A write runs the receiving host's stack: the next packet may be due, and late, because of it.
            now_ns = now();
        }
        done
    }

    /// Takes packets that the sending host has for us, a turn's worth; returns how many.
    pub(crate) fn take(&mut self, from: &Tun, now: impl Fn() -> u64) -> Result<usize, Errno> {
        for taken in 0..TURN {
            let full = self.ring.slot().is_none();
            let slot = self.ring.slot().unwrap_or(&mut self.source);
            let length = match from.read(slot) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(taken),
                Err(error) => return Err(error),
            };
            let layout = Layout::of(&slot[..length]);
            if full {
                add(&self.counters.ring, layout.segments() as u64);
                self.count_arrival(&layout);
            } else {
                self.admit(&layout, length, now());
            }
        }
        Ok(TURN)
    }

    fn count_arrival(&self, layout: &Layout) {
        let segments = layout.segments();
        let bytes: u64 = (0..segments).map(|segment| self.wire_bytes(layout, segment)).sum();
        add(&self.counters.arrived, segments as u64);
        add(&self.counters.arrived_bytes, bytes);
    }

    fn wire_bytes(&self, layout: &Layout, segment: usize) -> u64 {
        layout.ip_bytes(segment) as u64 + self.framing_bytes
    }

    /// Takes the segments of the packet in the ring's slot through the stages and keeps the runs that come out.
    fn admit(&mut self, layout: &Layout, length: usize, now_ns: u64) {
        self.count_arrival(layout);
        self.runs.clear();
        let mut open = false;
        for segment in 0..layout.segments() {
            let wire_bytes = self.wire_bytes(layout, segment);
            match pass(&mut self.stages, Passage { at_ns: now_ns, wire_bytes }) {
                Ok(at_ns) => {
                    match self.runs.last_mut() {
                        Some(run) if open && at_ns - run.first_ns <= TOGETHER_NS => run.extend(at_ns, wire_bytes),
                        _ => self.runs.push(Run::new(segment, at_ns, wire_bytes)),
                    }
                    open = true;
                }
                Err(place) => {
                    self.counters.drop_at(place);
                    open = false;
                }
            }
        }
        match self.runs.as_slice() {
            [] => {}
            [run] if run.segments.len() == layout.segments() => {
                self.ring.keep(length, run.at_ns, run.segments.len() as u64, run.wire_bytes);
            }
            _ => self.keep_runs(layout, length),
        }
    }

    fn keep_runs(&mut self, layout: &Layout, length: usize) {
        if let Some(slot) = self.ring.slot() {
            self.source[..length].copy_from_slice(&slot[..length]);
        }
        for run in &self.runs {
            let segments = run.segments.len() as u64;
            match self.ring.slot() {
                Some(slot) => {
                    let length = layout.write_run(&self.source[..length], &run.segments, slot);
                    self.ring.keep(length, run.at_ns, segments, run.wire_bytes);
                }
                None => add(&self.counters.ring, segments),
            }
        }
    }
}

impl Run {
    fn new(segment: usize, at_ns: u64, wire_bytes: u64) -> Self {
        Self { segments: segment..segment + 1, first_ns: at_ns, at_ns, wire_bytes }
    }

    fn extend(&mut self, at_ns: u64, wire_bytes: u64) {
        self.segments.end += 1;
        self.at_ns = at_ns;
        self.wire_bytes += wire_bytes;
    }
}
