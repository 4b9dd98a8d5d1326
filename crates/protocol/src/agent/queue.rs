//! The queue of measurements on this host: one at a time (or as many as configured), in the order of the requests. Clients of
//! different addresses take turns, so that one address cannot fill the queue before the others. Clients that watch the host have no
//! place in it, but they share its readings, and get fewer while others measure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Time between two readings of the host's counters for all watchers together, on an idle host and during a measurement: a reading
/// takes time on a core.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
const WATCH_INTERVAL_IN_USE: Duration = Duration::from_secs(1);

/// The queue of one machine.
#[derive(Debug)]
pub struct Queue {
    slots: usize,
    running: usize,
    next: u64,
    /// The round of the last place that was granted.
    round: u64,
    /// In the order in which they are granted.
    waiting: Vec<Place>,
    /// Watchers of each address.
    watching: BTreeMap<Option<IpAddr>, u32>,
    /// How often it has moved.
    moves: u64,
}

/// Where a client is in the queue: by round, then by ticket. In each round every address has one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    round: u64,
    ticket: u64,
    source: Option<IpAddr>,
}

impl Queue {
    /// A queue for `slots` measurements at the same time, at least one.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let (waiting, watching) = (Vec::new(), BTreeMap::new());
        Self { slots: slots.max(1), running: 0, next: 0, round: 0, waiting, watching, moves: 0 }
    }

    /// A place for a client at `source`, after that client's other places.
    #[must_use]
    pub fn join(&mut self, source: Option<IpAddr>) -> Place {
        let last = self.waiting.iter().filter(|place| place.source == source).map(|place| place.round + 1).max();
        self.next += 1;
        let place = Place { round: last.unwrap_or_default().max(self.round), ticket: self.next, source };
        let at = self.waiting.partition_point(|other| *other < place);
        self.waiting.insert(at, place);
        place
    }

    /// Takes a slot for a place in the queue.
    ///
    /// # Errors
    /// The number of clients in front of it.
    pub fn enter(&mut self, place: &Place) -> Result<(), usize> {
        let position = self.waiting.binary_search(place).unwrap_or(0);
        if position > 0 || self.running >= self.slots {
            return Err(position + self.running);
        }
        self.waiting.retain(|other| other != place);
        self.round = place.round;
        self.running += 1;
        self.moves += 1;
        Ok(())
    }

    /// Takes a slot, if no one waits and one is free.
    #[must_use]
    pub fn enter_at_once(&mut self) -> bool {
        let free = self.waiting.is_empty() && self.running < self.slots;
        self.running += usize::from(free);
        free
    }

    /// Gives a place up.
    pub fn give_up(&mut self, place: &Place) {
        self.waiting.retain(|other| other != place);
        self.moves += 1;
    }

    /// Gives a slot back.
    pub fn leave(&mut self) {
        self.running -= 1;
        self.moves += 1;
    }

    /// Measurements that run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Clients that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A number that changes whenever those who wait may have another place.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Admits a watcher at `source`.
    pub(super) fn watch(&mut self, source: Option<IpAddr>) {
        *self.watching.entry(source).or_default() += 1;
    }

    /// A watcher at `source` leaves its share to the others.
    pub(super) fn unwatch(&mut self, source: Option<IpAddr>) {
        if let Some(watchers) = self.watching.get_mut(&source) {
            *watchers -= 1;
            if *watchers == 0 {
                self.watching.remove(&source);
            }
        }
    }

    /// Shortest time between two reports to a watcher at `source`: all addresses that watch have the same share of the readings.
    pub(super) fn watch_interval(&self, source: Option<IpAddr>) -> Duration {
        let all = if self.running > 0 { WATCH_INTERVAL_IN_USE } else { WATCH_INTERVAL };
        let addresses = u32::try_from(self.watching.len()).unwrap_or(u32::MAX);
        let own = self.watching.get(&source).copied().unwrap_or(1);
        all.saturating_mul(addresses).saturating_mul(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> [Option<IpAddr>; 2] {
        ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().ok())
    }

    #[test]
    fn the_queue_is_in_order_and_leaving_makes_room() {
        let mut queue = Queue::new(1);
        let [first, second, third, fourth] = std::array::from_fn(|_| queue.join(None));
        assert_eq!(queue.enter(&second), Err(1), "not before the first, though the machine is free");
        assert_eq!(queue.enter(&first), Ok(()));
        assert_eq!(queue.enter(&fourth), Err(3));
        queue.give_up(&third);
        assert_eq!(queue.enter(&fourth), Err(2));
        queue.leave();
        assert_eq!(queue.enter(&second), Ok(()));
        queue.leave();
        assert_eq!(queue.enter(&fourth), Ok(()));
        assert_eq!((queue.running(), queue.waiting()), (1, 0));
    }

    #[test]
    fn an_address_with_many_requests_delays_another_by_one() {
        let mut queue = Queue::new(1);
        let [many, other] = addresses();
        let first = queue.join(many);
        queue.enter(&first).unwrap();
        let flood: Vec<Place> = (0..100).map(|_| queue.join(many)).collect();
        let (late, later) = (queue.join(other), queue.join(other));
        assert_eq!(
            (queue.enter(&late), queue.enter(&later)),
            (Err(2), Err(4)),
            "the running one, and one of the flood in each round"
        );
        queue.leave();
        queue.enter(&flood[0]).unwrap();
        queue.leave();
        assert_eq!(queue.enter(&late), Ok(()));
        let last = queue.join(many);
        assert_eq!(queue.enter(&last), Err(101), "behind its own");
    }

    #[test]
    fn watchers_share_the_readings_by_address_and_get_fewer_during_a_measurement() {
        let mut queue = Queue::new(1);
        let [many, other] = addresses();
        queue.watch(other);
        assert_eq!(queue.watch_interval(other), Duration::from_millis(100));
        (0..100).for_each(|_| queue.watch(many));
        let both = [queue.watch_interval(other), queue.watch_interval(many)];
        assert_eq!(both, [Duration::from_millis(200), Duration::from_secs(20)]);
        let measures = queue.join(many);
        assert_eq!(queue.enter(&measures), Ok(()), "watchers hold no slot");
        assert_eq!(queue.watch_interval(other), Duration::from_secs(2));
        (0..100).for_each(|_| queue.unwatch(many));
        assert_eq!(queue.watch_interval(other), Duration::from_secs(1));
        queue.leave();
        assert_eq!(queue.watch_interval(other), Duration::from_millis(100));
    }

    #[test]
    fn several_at_the_same_time_if_configured() {
        let mut queue = Queue::new(2);
        let [a, b, c] = std::array::from_fn(|_| queue.join(None));
        assert_eq!((queue.enter(&a), queue.enter(&b), queue.enter(&c)), (Ok(()), Ok(()), Err(2)));
        assert!(!queue.enter_at_once());
    }
}
