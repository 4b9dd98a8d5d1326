//! Controlled delay, by the pseudocode of RFC 8289, section 5, whose queue delivers one packet at a time. Here the
//! code is called for each packet at the head: the call after a drop is for the packet that the pseudocode dequeues
//! next.

use super::Fate;
use crate::emulator::spec;

/// The state of the pseudocode when it dequeued the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A packet is wanted.
    Begin,
    /// A packet is wanted after one that was dropped at its time.
    Instead,
    /// A packet is wanted after the first drop; it is sent however long it waited.
    First,
}

/// Times in ns, with the names of the RFC.
#[derive(Debug)]
pub(super) struct Codel {
    target: u64,
    interval: u64,
    ecn: bool,
    first_above_time: Option<u64>,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
    step: Step,
}

impl Codel {
    pub(super) fn new(codel: &spec::Codel) -> Self {
        Self {
            target: codel.target.as_nanos() as u64,
            interval: codel.interval.as_nanos() as u64,
            ecn: codel.ecn,
            first_above_time: None,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            step: Step::Begin,
        }
    }

    /// The fate of a segment that leaves the queue at `now` after waiting for `sojourn` ns. `more`: more than one MTU
    /// waits behind it; `allows`: it may be marked.
    pub(super) fn fate(&mut self, now: u64, sojourn: u64, more: bool, allows: bool) -> Fate {
        let over = self.ok_to_drop(now, sojourn, more);
        let step = std::mem::replace(&mut self.step, Step::Begin);
        if step == Step::First {
            return Fate::Send;
        }
        if self.dropping && !over {
            self.dropping = false;
            return Fate::Send;
        }
        if step == Step::Instead && self.dropping {
            self.drop_next = self.control_law(self.drop_next);
        }
        let mark = self.ecn && allows;
        if self.dropping {
            if now < self.drop_next {
                return Fate::Send;
            }
            self.count += 1;
            if mark {
                self.drop_next = self.control_law(self.drop_next);
                return Fate::Mark;
            }
            self.step = Step::Instead;
            return Fate::Drop;
        }
        if !over {
            return Fate::Send;
        }
        self.enter(now);
        self.step = if mark { Step::Begin } else { Step::First };
        if mark { Fate::Mark } else { Fate::Drop }
    }

    /// Begins to drop. Soon after the last time it begins with the drop rate of that time.
    fn enter(&mut self, now: u64) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.lastcount);
        let recent = now.saturating_sub(self.drop_next) < 16 * self.interval;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.lastcount = self.count;
    }

    fn ok_to_drop(&mut self, now: u64, sojourn: u64, more: bool) -> bool {
        if sojourn < self.target || !more {
            self.first_above_time = None;
            return false;
        }
        let since = *self.first_above_time.get_or_insert(now + self.interval);
        now >= since
    }

    fn control_law(&self, time: u64) -> u64 {
        time + (self.interval as f64 / (self.count as f64).sqrt()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn fates(codel: &mut Codel, sojourn: u64, allows: bool) -> Vec<(u64, Fate)> {
        let mut fates = Vec::new();
        let mut now = 0;
        while now <= 400 * MS {
            let fate = codel.fate(now, sojourn, true, allows);
            if fate != Fate::Send {
                fates.push((now / MS, fate));
            }
            // After a drop the next packet leaves at the same time.
            now += if fate == Fate::Drop { 0 } else { MS };
        }
        fates
    }

    #[test]
    fn drops_come_ever_faster_after_an_interval_above_the_target() {
        let mut codel = Codel::new(&spec::Codel::default());
        let times: Vec<u64> = fates(&mut codel, 20 * MS, false).iter().map(|(at, _)| *at).collect();
        // 100 ms above the target; then 100/sqrt(n) ms each, to the next whole packet: 200, 270.7, 328.4, 378.4 ms.
        assert_eq!(times, [100, 200, 271, 329, 379]);
    }

    #[test]
    fn marks_replace_drops_at_the_same_times() {
        let mut codel = Codel::new(&spec::Codel { ecn: true, ..spec::Codel::default() });
        let marked = fates(&mut codel, 20 * MS, true);
        assert!(marked.iter().all(|(_, fate)| *fate == Fate::Mark));
        assert_eq!(marked.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [100, 200, 271, 329, 379]);
        let mut deaf = Codel::new(&spec::Codel { ecn: true, ..spec::Codel::default() });
        assert!(fates(&mut deaf, 20 * MS, false).iter().all(|(_, fate)| *fate == Fate::Drop));
    }

    #[test]
    fn a_short_wait_or_a_last_packet_is_never_dropped() {
        let mut codel = Codel::new(&spec::Codel::default());
        assert!(fates(&mut codel, 4 * MS, false).is_empty());
        assert!((0..1_000).all(|ms| codel.fate(ms * MS, 50 * MS, false, false) == Fate::Send));
    }

    #[test]
    fn it_begins_where_it_left_off_when_the_queue_soon_returns() {
        let mut codel = Codel::new(&spec::Codel::default());
        let before = fates(&mut codel, 20 * MS, false).len() as u64;
        assert_eq!((codel.count, codel.lastcount), (before, 1));
        assert_eq!(codel.fate(401 * MS, 0, true, false), Fate::Send);
        let mut now = 402 * MS;
        while codel.fate(now, 20 * MS, true, false) == Fate::Send {
            now += MS;
        }
        assert_eq!((now / MS, codel.count), (502, before - 1));
    }
}
