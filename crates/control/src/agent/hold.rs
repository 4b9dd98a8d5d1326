//! A position that was granted, and that several connections of one coordinator share. The first one gets a ticket, with which
//! further ones join it. For the queue and for the agent's limits all of them are one measurement.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use model::Spec;
use text::Said;
use tokio::time::Instant;

use super::limits::{LimitError, Limits, Load};
use super::queue::QueuePosition;
use crate::proto::message::WireLeg;

/// Most connections that have the machine together.
pub(crate) const MAX_CONNECTIONS: usize = 256;

/// The positions of an agent that can be joined, by their tickets.
#[derive(Default)]
pub(crate) struct Holds(Mutex<HashMap<String, Weak<Hold>>>);

/// A position that was granted. It ends with its last connection.
struct Hold {
    holds: Arc<Holds>,
    ticket: String,
    deadline: Instant,
    state: Mutex<State>,
    _position: QueuePosition,
}

#[derive(Default)]
struct State {
    next: u64,
    connections: usize,
    /// The trials that are prepared or running, by connection.
    loads: HashMap<u64, Load>,
}

/// One of the connections that share a position; dropping it gives up its share.
pub(crate) struct Member {
    hold: Arc<Hold>,
    number: u64,
    left: bool,
}

/// Why a connection does not join a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub(crate) enum HoldError {
    /// No position has its ticket.
    #[error("no measurement on this agent has this ticket: acquire the machine first")]
    Ticket,
    /// The position has as many connections as it may have.
    #[error("{MAX_CONNECTIONS} connections already share this machine, which is the limit: use fewer groups")]
    Connections,
}

/// What a prepared or running trial takes of the limits; dropping it gives that back.
pub(crate) struct Reserved {
    hold: Arc<Hold>,
    number: u64,
}

impl Holds {
    /// The first connection of a granted position. All connections must end after `limit`, whenever they joined.
    pub(crate) fn begin(self: &Arc<Self>, position: QueuePosition, ticket: String, limit: Duration) -> Member {
        let now = Instant::now();
        // A limit beyond the clock's range is as good as none.
        let deadline = now.checked_add(limit).unwrap_or_else(|| now + Duration::from_secs(86_400 * 365));
        let state = Mutex::default();
        let hold = Arc::new(Hold { holds: self.clone(), ticket, deadline, state, _position: position });
        lock(&self.0).insert(hold.ticket.clone(), Arc::downgrade(&hold));
        let number = hold.enter().unwrap_or_default();
        Member { hold, number, left: false }
    }

    /// A further connection, for a coordinator with the ticket of the first one.
    ///
    /// # Errors
    /// No position has this ticket, or too many connections have it.
    pub(crate) fn join(&self, ticket: &str) -> Result<Member, HoldError> {
        let hold = lock(&self.0).get(ticket).and_then(Weak::upgrade);
        let hold = hold.ok_or(HoldError::Ticket)?;
        let number = hold.enter().ok_or(HoldError::Connections)?;
        Ok(Member { hold, number, left: false })
    }
}

impl Hold {
    /// The number of a new connection, if there may be one more.
    fn enter(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        if state.connections >= MAX_CONNECTIONS {
            return None;
        }
        state.connections += 1;
        state.next += 1;
        Some(state.next)
    }

    /// One connection less; the number that is left.
    fn exit(&self) -> usize {
        let mut state = lock(&self.state);
        state.connections -= 1;
        state.connections
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.holds.0).remove(&self.ticket);
    }
}

impl Member {
    /// With which further connections join.
    pub(crate) fn ticket(&self) -> &str {
        &self.hold.ticket
    }

    /// When this connection must end.
    pub(crate) fn deadline(&self) -> Instant {
        self.hold.deadline
    }

    /// Reserves what a trial uses of the limits, in addition to the trials of the other connections.
    ///
    /// # Errors
    /// The trial exceeds a limit.
    pub(crate) fn reserve(&self, limits: &Limits, spec: &Spec, legs: &[WireLeg]) -> Result<Reserved, LimitError> {
        let mut state = lock(&self.hold.state);
        let beside = state.loads.iter().filter(|(number, _)| **number != self.number);
        let beside = beside.fold(Load::default(), |sum, (_, load)| sum.and(load));
        limits.check(spec, legs, &beside)?;
        state.loads.insert(self.number, Load::of(spec, legs));
        Ok(Reserved { hold: self.hold.clone(), number: self.number })
    }

    /// Leaves; whether it was the last connection.
    pub(crate) fn leave(mut self) -> bool {
        self.left = true;
        self.hold.exit() == 0
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !self.left {
            self.hold.exit();
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        lock(&self.hold.state).loads.remove(&self.number);
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::queue::Queue;
    use super::*;
    use model::Pattern;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn begun(queue: &Arc<Queue>, holds: &Arc<Holds>, ticket: &str) -> Member {
        let mut position = queue.join(None);
        assert_eq!(position.enter(), Ok(()));
        holds.begin(position, ticket.into(), HOUR)
    }

    #[tokio::test]
    async fn a_hold_ends_with_its_last_connection_and_others_wait_for_it() {
        let (queue, holds) = (Queue::new(1), Arc::new(Holds::default()));
        let first = begun(&queue, &holds, "a");
        let second = holds.join("a").unwrap();
        assert_eq!(queue.running(), 1, "both are one measurement");
        let mut other = queue.join(None);
        assert_eq!(other.enter(), Err(1));
        assert!(!first.leave());
        assert_eq!(other.enter(), Err(1), "the second connection still has the machine");
        let third = holds.join("a").unwrap();
        assert_eq!(third.deadline(), second.deadline(), "who joins later has no more time");
        drop(third);
        assert!(second.leave());
        assert_eq!(other.enter(), Ok(()));
        assert!(holds.join("a").is_err(), "the ticket ended with the hold");
        assert!(lock(&holds.0).is_empty());
    }

    #[tokio::test]
    async fn an_unknown_ticket_is_refused() {
        let (queue, holds) = (Queue::new(2), Arc::new(Holds::default()));
        let (_one, _other) = (begun(&queue, &holds, "a"), begun(&queue, &holds, "b"));
        for ticket in ["", "c", "aa", "A"] {
            assert!(holds.join(ticket).is_err_and(|error| error == HoldError::Ticket), "{ticket}");
        }
    }

    #[tokio::test]
    async fn connections_are_bounded_and_who_leaves_makes_room() {
        let (queue, holds) = (Queue::new(1), Arc::new(Holds::default()));
        let _first = begun(&queue, &holds, "a");
        let mut more: Vec<Member> = (1..MAX_CONNECTIONS).map(|_| holds.join("a").unwrap()).collect();
        assert!(holds.join("a").is_err_and(|error| error.to_string().starts_with("256 connections")));
        more.pop();
        assert!(holds.join("a").is_ok());
    }

    #[tokio::test]
    async fn the_limits_are_of_all_connections_together() {
        let (queue, holds) = (Queue::new(1), Arc::new(Holds::default()));
        let limits =
            Limits { flows: 10, processes: 3, memory_bytes: 10 << 20, rate_bps: Some(1_000_000), ..Limits::default() };
        let (first, second) = (begun(&queue, &holds, "a"), holds.join("a").unwrap());
        let of = |change: fn(&mut Spec)| {
            let mut spec = Spec { rate_bps: Some(1_000), block: 1 << 10, ..Spec::new("tcp", Pattern::Stream) };
            change(&mut spec);
            spec
        };
        for (much, limit) in [
            (of(|spec| spec.flows = 6), "`--max-flows`"),
            (of(|spec| spec.processes = 2), "`--processes`"),
            (of(|spec| spec.rate_bps = Some(600_000)), "`--rate "),
            (of(|spec| spec.block = 3 << 20), "`--block`"),
        ] {
            let reserved = first.reserve(&limits, &much, &[]).unwrap_or_else(|reason| panic!("{reason}"));
            let refused = second.reserve(&limits, &much, &[]).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains(limit) && refused.contains("simultaneous"), "{limit}: {refused}");
            drop(reserved);
            assert!(second.reserve(&limits, &much, &[]).is_ok(), "the first trial has ended");
        }
    }
}
