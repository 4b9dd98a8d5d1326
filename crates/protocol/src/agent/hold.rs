//! A slot that was granted, and that several connections of one coordinator share. The first one gets a ticket, with which further
//! ones join it. For the queue and for the agent's limits all of them are one measurement.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Leg, Spec};
use text::Said;

use super::SessionId;
use super::limits::{LimitError, Limits, Load};

/// Most connections that have the machine together.
pub(super) const MAX_CONNECTIONS: usize = 256;

/// The slots that coordinators have, by their tickets.
#[derive(Debug, Default)]
pub(super) struct Holds(BTreeMap<String, Hold>);

/// A slot that was granted. It ends with its last connection.
#[derive(Debug)]
struct Hold {
    deadline: Duration,
    /// The connections, each with its trial that is prepared or running.
    connections: BTreeMap<SessionId, Option<Load>>,
}

/// Why a connection does not join a slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub enum HoldError {
    /// No slot has its ticket.
    #[error("no measurement on this agent has this ticket: acquire the machine first")]
    Ticket,
    /// The slot has as many connections as it may have.
    #[error("{MAX_CONNECTIONS} connections already share this machine, which is the limit: use fewer groups")]
    Connections,
}

impl Holds {
    /// `session` is the first connection of a slot. All connections must end by `deadline`, whenever they joined.
    pub(super) fn begin(&mut self, ticket: &str, session: SessionId, deadline: Duration) {
        let connections = BTreeMap::from([(session, None)]);
        self.0.insert(ticket.to_owned(), Hold { deadline, connections });
    }

    /// `session` is a further connection, with the ticket of the first one. Returns the deadline.
    pub(super) fn join(&mut self, ticket: &str, session: SessionId) -> Result<Duration, HoldError> {
        let hold = self.0.get_mut(ticket).ok_or(HoldError::Ticket)?;
        if hold.connections.len() >= MAX_CONNECTIONS {
            return Err(HoldError::Connections);
        }
        hold.connections.insert(session, None);
        Ok(hold.deadline)
    }

    /// Reserves what a trial of `session` uses of the limits, in addition to the trials of the other connections.
    pub(super) fn reserve(
        &mut self,
        (ticket, session): (&str, SessionId),
        limits: &Limits,
        spec: &Spec,
        legs: &[Leg],
    ) -> Result<(), LimitError> {
        let Some(hold) = self.0.get_mut(ticket) else { return Ok(()) };
        let others = hold.connections.iter().filter(|(other, _)| **other != session);
        let beside = others.filter_map(|(_, load)| *load).fold(Load::default(), |sum, load| sum.and(&load));
        limits.check(spec, legs, &beside)?;
        hold.connections.insert(session, Some(Load::of(spec, legs)));
        Ok(())
    }

    /// The trial of `session` has ended.
    pub(super) fn release(&mut self, ticket: &str, session: SessionId) {
        if let Some(load) = self.0.get_mut(ticket).and_then(|hold| hold.connections.get_mut(&session)) {
            *load = None;
        }
    }

    /// `session` leaves; whether it was the last connection.
    pub(super) fn leave(&mut self, ticket: &str, session: SessionId) -> bool {
        let Some(hold) = self.0.get_mut(ticket) else { return false };
        let left = hold.connections.remove(&session).is_some();
        let last = left && hold.connections.is_empty();
        if last {
            self.0.remove(ticket);
        }
        last
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use model::Pattern;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const A: SessionId = SessionId(1);
    const B: SessionId = SessionId(2);
    const C: SessionId = SessionId(3);

    #[test]
    fn a_slot_ends_with_its_last_connection() {
        let mut holds = Holds::default();
        holds.begin("a", A, HOUR);
        assert_eq!(holds.join("a", B), Ok(HOUR), "a connection that joins later has no more time");
        assert!(!holds.leave("a", A), "the second connection still has the machine");
        assert_eq!(holds.join("a", C), Ok(HOUR));
        assert!(!holds.leave("a", C) && holds.leave("a", B));
        assert_eq!(holds.join("a", A), Err(HoldError::Ticket), "the ticket ended with the slot");
        assert_eq!(holds.len(), 0);
    }

    #[test]
    fn an_unknown_ticket_is_refused() {
        let mut holds = Holds::default();
        holds.begin("a", A, HOUR);
        holds.begin("b", B, HOUR);
        for ticket in ["", "c", "aa", "A"] {
            assert_eq!(holds.join(ticket, C), Err(HoldError::Ticket), "{ticket}");
        }
    }

    #[test]
    fn connections_are_bounded_and_one_that_leaves_makes_room() {
        let mut holds = Holds::default();
        holds.begin("a", A, HOUR);
        for number in 1..MAX_CONNECTIONS as u64 {
            assert_eq!(holds.join("a", SessionId(100 + number)), Ok(HOUR));
        }
        assert!(holds.join("a", B).is_err_and(|error| error.to_string().starts_with("256 connections")));
        holds.leave("a", SessionId(101));
        assert_eq!(holds.join("a", B), Ok(HOUR));
    }

    #[test]
    fn the_limits_are_of_all_connections_together() {
        let limits =
            Limits { flows: 10, processes: 3, memory_bytes: 10 << 20, rate_bps: Some(1_000_000), ..Limits::default() };
        let mut holds = Holds::default();
        holds.begin("a", A, HOUR);
        holds.join("a", B).unwrap();
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
            holds.reserve(("a", A), &limits, &much, &[]).unwrap_or_else(|reason| panic!("{reason}"));
            let refused = holds.reserve(("a", B), &limits, &much, &[]).unwrap_err().to_string();
            assert!(refused.contains(limit) && refused.contains("simultaneous"), "{limit}: {refused}");
            holds.release("a", A);
            assert_eq!(holds.reserve(("a", B), &limits, &much, &[]), Ok(()), "the first trial has ended");
            holds.release("a", B);
        }
    }
}
