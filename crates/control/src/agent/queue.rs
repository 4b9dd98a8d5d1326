//! The queue of measurements on this host: one at a time (or as many as configured), in the order of the requests. Clients of
//! different addresses take turns, so that one address cannot fill the queue before the others. Clients that watch the host have no
//! place in it, but they share its readings, and get fewer while others measure.

use std::any::Any;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Shortest interval of the reports to one waiting client: many clients that get each change would disturb the running
/// measurement.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two readings of the host's counters for all watchers together, on an idle host and during a measurement: a reading
/// takes time on a core.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
const WATCH_INTERVAL_IN_USE: Duration = Duration::from_secs(1);

/// The queue of one agent.
pub(crate) struct Queue {
    slots: usize,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    next: u64,
    running: usize,
    /// The round of the last position that was granted.
    round: u64,
    /// In the order in which they are granted.
    waiting: Vec<Place>,
    /// Watchers of each address.
    watching: HashMap<Option<IpAddr>, u32>,
}

/// Where a position is in the queue: by round, then by ticket. In each round every address has one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    round: u64,
    ticket: u64,
    source: Option<IpAddr>,
}

/// A machine's queue, shared by the agent and the servers for other programs' clients.
#[derive(Clone)]
pub struct Machine(pub(super) Arc<Queue>);

impl Machine {
    /// A machine for `slots` measurements at the same time, at least one.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        debug_assert!(slots > 0, "a machine has a place");
        Self(Queue::new(slots))
    }

    /// Takes the machine for a measurement until the returned value is dropped; `None` if others have it or wait for it.
    #[must_use]
    pub fn try_enter(&self) -> Option<Box<dyn Any + Send>> {
        self.0.enter_at_once().map(|position| Box::new(position) as Box<dyn Any + Send>)
    }
}

/// A position in the queue. Dropping it at any stage makes room for the next one.
pub(crate) struct QueuePosition {
    queue: Arc<Queue>,
    place: Place,
    granted: bool,
    /// The last reported number of clients in front, and when it was reported.
    reported: Option<(usize, Instant)>,
}

/// A client that watches the host; dropping it leaves its share to the others.
pub(crate) struct Watcher {
    queue: Arc<Queue>,
    source: Option<IpAddr>,
}

impl Queue {
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self { slots: slots.max(1), state: Mutex::default(), changed: watch::Sender::new(0) })
    }

    /// Joins the queue for a client at `source`, after that client's other positions.
    pub(crate) fn join(self: &Arc<Self>, source: Option<IpAddr>) -> QueuePosition {
        let mut state = self.lock();
        let last = state.waiting.iter().filter(|place| place.source == source).map(|place| place.round + 1).max();
        let place = Place { round: last.unwrap_or_default().max(state.round), ticket: state.ticket(), source };
        let at = state.waiting.partition_point(|other| *other < place);
        state.waiting.insert(at, place);
        QueuePosition { queue: self.clone(), place, granted: false, reported: None }
    }

    /// A granted position, if no one waits and a slot is free.
    pub(super) fn enter_at_once(self: &Arc<Self>) -> Option<QueuePosition> {
        let mut state = self.lock();
        if !state.waiting.is_empty() || state.running >= self.slots {
            return None;
        }
        let place = Place { round: state.round, ticket: state.ticket(), source: None };
        state.running += 1;
        Some(QueuePosition { queue: self.clone(), place, granted: true, reported: None })
    }

    /// Admits a watcher at `source`.
    pub(crate) fn watch(self: &Arc<Self>, source: Option<IpAddr>) -> Watcher {
        *self.lock().watching.entry(source).or_default() += 1;
        Watcher { queue: self.clone(), source }
    }

    /// Measurements that run now, and clients that wait.
    #[cfg(feature = "metrics")]
    pub(super) fn lengths(&self) -> [usize; 2] {
        let state = self.lock();
        [state.running, state.waiting.len()]
    }

    /// Clients that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Measurements that run now.
    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.changed.send_modify(|version| *version += 1);
    }
}

impl State {
    fn ticket(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl QueuePosition {
    /// Whether it has a slot.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn is_granted(&self) -> bool {
        self.granted
    }

    /// Tries to take a slot; `Err` is the number of clients in front.
    pub(super) fn enter(&mut self) -> Result<(), usize> {
        let mut state = self.queue.lock();
        let position = state.waiting.binary_search(&self.place).unwrap_or(0);
        if position == 0 && state.running < self.queue.slots {
            state.waiting.retain(|place| *place != self.place);
            state.round = self.place.round;
            state.running += 1;
            self.granted = true;
            drop(state);
            self.queue.notify();
            return Ok(());
        }
        Err(position + state.running)
    }

    /// Waits until it has a slot (`None`) or the number of clients in front has changed since the last report, at most once per
    /// [`REPORT_INTERVAL`]. Dropping the future loses nothing.
    pub(crate) async fn turn(&mut self) -> Option<usize> {
        let mut changes = self.queue.changed.subscribe();
        loop {
            changes.borrow_and_update();
            let quiet = match (self.enter(), self.reported) {
                (Ok(()), _) => return None,
                (Err(ahead), Some((reported, _))) if reported == ahead => Duration::MAX,
                (Err(_), Some((_, at))) if at.elapsed() < REPORT_INTERVAL => {
                    REPORT_INTERVAL.saturating_sub(at.elapsed())
                }
                (Err(ahead), _) => {
                    self.reported = Some((ahead, Instant::now()));
                    return Some(ahead);
                }
            };
            // After the timeout and after a change alike, the state is checked again.
            let _ = tokio::time::timeout(quiet, changes.changed()).await;
        }
    }
}

impl Watcher {
    /// Shortest time between two of its reports: all addresses that watch have the same share of the readings.
    pub(crate) fn interval(&self) -> Duration {
        let state = self.queue.lock();
        let all = if state.running > 0 { WATCH_INTERVAL_IN_USE } else { WATCH_INTERVAL };
        let addresses = u32::try_from(state.watching.len()).unwrap_or(u32::MAX);
        let own = state.watching.get(&self.source).copied().unwrap_or(1);
        all.saturating_mul(addresses).saturating_mul(own)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(watchers) = state.watching.get_mut(&self.source) {
            *watchers -= 1;
            if *watchers == 0 {
                state.watching.remove(&self.source);
            }
        }
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        {
            let mut state = self.queue.lock();
            if self.granted {
                state.running -= 1;
            } else {
                state.waiting.retain(|place| *place != self.place);
            }
        }
        self.queue.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_in_order_and_leaving_makes_room() {
        let queue = Queue::new(1);
        let mut first = queue.join(None);
        let mut second = queue.join(None);
        let third = queue.join(None);
        let mut fourth = queue.join(None);
        assert_eq!(second.enter(), Err(1), "not before the first, though the machine is free");
        assert_eq!(first.enter(), Ok(()));
        assert_eq!(fourth.enter(), Err(3));
        drop(third);
        assert_eq!(fourth.enter(), Err(2));
        drop(first);
        assert_eq!(second.enter(), Ok(()));
        drop(second);
        assert_eq!(fourth.enter(), Ok(()));
        assert_eq!(queue.running(), 1);
    }

    #[test]
    fn changes_are_reported_at_most_once_a_second_and_the_turn_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let queue = Queue::new(1);
            let mut positions: Vec<QueuePosition> = (0..20).map(|_| queue.join(None)).collect();
            let mut last = positions.pop().unwrap();
            assert_eq!(last.turn().await, Some(19));
            let leave = async {
                for mut position in positions {
                    position.enter().unwrap();
                    drop(position);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let wait = async {
                let mut reported = 0;
                while last.turn().await.is_some() {
                    reported += 1;
                }
                reported
            };
            // On a slow host as well, each report but the first takes a second.
            let begun = Instant::now();
            let (reported, ()) = tokio::join!(wait, leave);
            assert!(reported as u64 <= begun.elapsed().as_secs() + 1, "{reported} reports");
        });
    }

    #[test]
    fn an_address_with_many_requests_delays_another_by_one() {
        let queue = Queue::new(1);
        let [many, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().ok());
        let mut first = queue.join(many);
        first.enter().unwrap();
        let mut flood: Vec<QueuePosition> = (0..100).map(|_| queue.join(many)).collect();
        let mut late = queue.join(other);
        let mut later = queue.join(other);
        assert_eq!(
            (late.enter(), later.enter()),
            (Err(2), Err(4)),
            "the running one, and one of the flood in each round"
        );
        drop(first);
        flood[0].enter().unwrap();
        flood.remove(0);
        assert_eq!(late.enter(), Ok(()));
        assert_eq!(queue.join(many).enter(), Err(101), "behind its own");
    }

    #[test]
    fn watchers_share_the_readings_by_address_and_get_fewer_during_a_measurement() {
        let queue = Queue::new(1);
        let [many, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().ok());
        let alone = queue.watch(other);
        assert_eq!(alone.interval(), Duration::from_millis(100));
        let flood: Vec<Watcher> = (0..100).map(|_| queue.watch(many)).collect();
        assert_eq!((alone.interval(), flood[0].interval()), (Duration::from_millis(200), Duration::from_secs(20)));
        let mut measures = queue.join(many);
        assert_eq!(measures.enter(), Ok(()), "watchers hold no slot");
        assert_eq!(alone.interval(), Duration::from_secs(2));
        drop(flood);
        assert_eq!(alone.interval(), Duration::from_secs(1));
        drop(measures);
        assert_eq!(alone.interval(), Duration::from_millis(100));
    }

    #[test]
    fn several_at_the_same_time_if_configured() {
        let queue = Queue::new(2);
        let (mut a, mut b, mut c) = (queue.join(None), queue.join(None), queue.join(None));
        assert_eq!((a.enter(), b.enter(), c.enter()), (Ok(()), Ok(()), Err(2)));
    }
}
