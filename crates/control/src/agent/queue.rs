//! Who may measure on this host: one at a time (or as many as configured), in the order of asking.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// How often one who waits hears how many are first: a crowd that hears of each turn costs those who measure.
const NEWS_EVERY: Duration = Duration::from_secs(1);

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
    /// Tickets grow, so that these are in order.
    waiting: VecDeque<u64>,
}

/// A machine's places for measurements, shared by all that measure with it: the agent, and those who serve other programs' clients.
#[derive(Clone)]
pub struct Machine(pub(super) Arc<Queue>);

impl Machine {
    /// A machine for so many measurements at a time, at least one.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self(Queue::new(slots))
    }

    /// Has the machine for a measurement until what it returns is dropped; `None` where others have it or wait for it.
    #[must_use]
    pub fn try_enter(&self) -> Option<Box<dyn Any + Send>> {
        self.0.enter_at_once().map(|place| Box::new(place) as Box<dyn Any + Send>)
    }
}

/// A place in the queue; leaving it, at whatever stage, lets the next one in.
pub(crate) struct QueuePlace {
    queue: Arc<Queue>,
    ticket: u64,
    granted: bool,
    /// What it last said of those who are first, and when.
    reported: Option<(usize, Instant)>,
}

impl Queue {
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self { slots: slots.max(1), state: Mutex::default(), changed: watch::Sender::new(0) })
    }

    /// Joins at the end.
    pub(crate) fn join(self: &Arc<Self>) -> QueuePlace {
        let mut state = self.lock();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(ticket);
        QueuePlace { queue: self.clone(), ticket, granted: false, reported: None }
    }

    /// A place within, where nobody waits and one is free.
    fn enter_at_once(self: &Arc<Self>) -> Option<QueuePlace> {
        let mut state = self.lock();
        if !state.waiting.is_empty() || state.running >= self.slots {
            return None;
        }
        let ticket = state.next;
        state.next += 1;
        state.running += 1;
        Some(QueuePlace { queue: self.clone(), ticket, granted: true, reported: None })
    }

    /// Measurements that run now.
    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|version| *version += 1);
    }
}

impl QueuePlace {
    /// Tries to get in; `Err` is the number of those who are first.
    fn enter(&mut self) -> Result<(), usize> {
        let mut state = self.queue.lock();
        let position = state.waiting.binary_search(&self.ticket).unwrap_or(0);
        if position == 0 && state.running < self.queue.slots {
            state.waiting.pop_front();
            state.running += 1;
            self.granted = true;
            drop(state);
            self.queue.tell();
            return Ok(());
        }
        Err(position + state.running)
    }

    /// Waits until its turn has come (`None`) or the number of those who are first has changed since it was last said, not more often
    /// than [`NEWS_EVERY`]. Dropping the future loses nothing.
    pub(crate) async fn turn(&mut self) -> Option<usize> {
        let mut changes = self.queue.changed.subscribe();
        loop {
            changes.borrow_and_update();
            let quiet = match (self.enter(), self.reported) {
                (Ok(()), _) => return None,
                (Err(ahead), Some((reported, _))) if reported == ahead => Duration::MAX,
                (Err(_), Some((_, at))) if at.elapsed() < NEWS_EVERY => NEWS_EVERY.saturating_sub(at.elapsed()),
                (Err(ahead), _) => {
                    self.reported = Some((ahead, Instant::now()));
                    return Some(ahead);
                }
            };
            let _ = tokio::time::timeout(quiet, changes.changed()).await; // either is a reason to look again
        }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        {
            let mut state = self.queue.lock();
            if self.granted {
                state.running -= 1;
            } else {
                state.waiting.retain(|ticket| *ticket != self.ticket);
            }
        }
        self.queue.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served_and_leavers_make_room() {
        let queue = Queue::new(1);
        let mut first = queue.join();
        let mut second = queue.join();
        let third = queue.join();
        let mut fourth = queue.join();
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
    fn who_waits_hears_of_changes_now_and_then_and_of_its_turn_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let queue = Queue::new(1);
            let mut places: Vec<QueuePlace> = (0..20).map(|_| queue.join()).collect();
            let mut last = places.pop().unwrap();
            assert_eq!(last.turn().await, Some(19));
            let leave = async {
                for mut place in places {
                    place.enter().unwrap();
                    drop(place);
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
            // However slow this host is, each word but the first takes a second.
            let begun = Instant::now();
            let (reported, ()) = tokio::join!(wait, leave);
            assert!(reported as u64 <= begun.elapsed().as_secs() + 1, "{reported} words");
        });
    }

    #[test]
    fn several_at_once_where_configured() {
        let queue = Queue::new(2);
        let (mut a, mut b, mut c) = (queue.join(), queue.join(), queue.join());
        assert_eq!((a.enter(), b.enter(), c.enter()), (Ok(()), Ok(()), Err(2)));
    }
}
