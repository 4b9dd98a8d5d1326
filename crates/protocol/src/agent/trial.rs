//! A trial at one end: its workers listen, connect, run and finish.

use std::net::SocketAddr;
use std::time::Duration;

use super::action::{Action, Ended};
use super::{Time, queue::Queue};
use crate::message::{Cause, FromAgent, WireRendezvous};
use crate::worker_message::{FromWorker, WorkerDone};

/// Reports of a running trial are this many round trips apart at least, entries of its series twice as many: on a slow link they would
/// take the place of what is measured. The result has all of the series.
const READING_TRIPS: u32 = 2;

/// The trial that is prepared or running.
#[derive(Debug)]
pub(super) struct Trial {
    prepared: Time,
    rendezvous: Vec<Option<WireRendezvous>>,
    armed: usize,
    set_up_in: Duration,
    running: bool,
    overlapped: usize,
    done: Vec<WorkerDone>,
    /// The addresses of its connections, if they are captured.
    sockets: Vec<[SocketAddr; 2]>,
    /// When the last entry of the series and the last reading were sent.
    reported: [Option<Time>; 2],
}

impl Trial {
    /// A trial of that many workers, whose set-up begins.
    pub(super) fn new(now: Time, workers: usize) -> Self {
        let (done, sockets, reported) = Default::default();
        let rendezvous = vec![None; workers];
        let (set_up_in, overlapped) = (Duration::ZERO, 0);
        let prepared = now;
        let (armed, running) = (0, false);
        Self { prepared, rendezvous, armed, set_up_in, running, overlapped, done, sockets, reported }
    }

    /// The workers are there; their connections come next.
    pub(super) fn is_set_up(&mut self, now: Time) {
        self.prepared = now;
    }

    /// The workers start.
    pub(super) fn start(&mut self, queue: &Queue) {
        self.running = true;
        self.overlapped = queue.running().saturating_sub(1);
    }

    /// The cause of a failure that happens now.
    pub(super) fn cause(&self) -> Cause {
        if self.running { Cause::Trial } else { Cause::Setup }
    }

    /// Takes a message of a worker other than a failure. Whether that was the last one.
    pub(super) fn on(
        &mut self,
        now: Time,
        (index, round_trip): (usize, Duration),
        message: FromWorker,
        actions: &mut Vec<Action>,
    ) -> bool {
        let workers = self.rendezvous.len();
        match message {
            FromWorker::Listening(listener) => {
                if let Some(own) = self.rendezvous.get_mut(index) {
                    *own = Some(listener);
                }
                if let Some(all) = self.rendezvous.iter().cloned().collect::<Option<Vec<_>>>() {
                    actions.push(Action::Listening(all));
                }
            }
            FromWorker::Armed { sockets } => {
                self.armed += 1;
                self.sockets.extend(sockets);
                if self.armed == workers {
                    self.set_up_in = now.saturating_sub(self.prepared);
                    actions.push(Action::Armed(std::mem::take(&mut self.sockets)));
                }
            }
            // A single worker's series is the end's. With several, their sum is in the result.
            FromWorker::Live(interval) => {
                if workers == 1 && is_due(&mut self.reported[0], now, 2 * READING_TRIPS * round_trip) {
                    actions.push(Action::Send(Box::new(FromAgent::Live(interval))));
                }
            }
            FromWorker::Reading(reading) => {
                if workers > 1 || is_due(&mut self.reported[1], now, READING_TRIPS * round_trip) {
                    actions.push(Action::Report { index, reading });
                }
            }
            FromWorker::Done(done) => self.done.push(*done),
            FromWorker::Failed { .. } => {}
        }
        self.done.len() == workers
    }

    /// What its workers measured.
    pub(super) fn ended(self, queue: &Queue) -> Ended {
        let overlapped = self.overlapped.max(queue.running().saturating_sub(1));
        Ended { done: self.done, set_up_in: self.set_up_in, overlapped }
    }
}

/// Whether `pause` has passed since the last report; it counts as sent then.
fn is_due(last: &mut Option<Time>, now: Time, pause: Duration) -> bool {
    let due = last.is_none_or(|last| now.saturating_sub(last) >= pause);
    if due {
        *last = Some(now);
    }
    due
}
