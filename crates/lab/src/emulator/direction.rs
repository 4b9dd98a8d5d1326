//! One direction between its two devices.

use std::sync::Arc;

use rustix::io::Errno;

use super::counts::Counters;
use super::course::Course;
use super::spec::DirectionSpec;
use super::sys::Tun;

/// Packets read or written before it is the other direction's turn.
const TURN: usize = 8;

/// One direction.
pub(crate) struct LinkDirection {
    course: Course,
}

impl LinkDirection {
    /// `mtu` is that of both devices, in bytes.
    pub(crate) fn new(direction: &DirectionSpec, mtu: u32, seed: u64, counters: Arc<Counters>) -> Self {
        Self { course: Course::new(direction, mtu, seed, counters) }
    }

    /// Begins the list of changes anew.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        self.course.restart(now_ns);
    }

    /// Whether nothing waits or travels.
    pub(crate) fn is_empty(&self) -> bool {
        self.course.is_empty()
    }

    /// When the next packet is due, ns.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.course.due_ns()
    }

    /// When other work is due, ns; slightly later is acceptable.
    pub(crate) fn work_ns(&self) -> Option<u64> {
        self.course.work_ns()
    }

    /// Delivers due packets, up to one turn's worth; returns how many.
    pub(crate) fn deliver(&mut self, to: &Tun, now: impl Fn() -> u64) -> usize {
        let mut now_ns = now();
        if self.course.work_ns().is_some_and(|work| work <= now_ns) {
            self.course.advance(now_ns);
        }
        let mut done = 0;
        while done < TURN
            && let Some(packet) = self.course.due(now_ns)
        {
            let taken = to.write(packet).is_ok();
            self.course.handed(now_ns, taken);
            done += 1;
            // A write runs the receiving host's stack, which may make the next packet due, and late.
            now_ns = now();
        }
        done
    }

    /// Reads packets from the sending host, up to one turn's worth; returns how many.
    pub(crate) fn take(&mut self, from: &Tun, now: impl Fn() -> u64) -> Result<usize, Errno> {
        for taken in 0..TURN {
            let length = match from.read(self.course.slot()) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(taken),
                Err(error) => return Err(error),
            };
            self.course.arrive(length, now());
        }
        Ok(TURN)
    }
}
