//! An agent: who has its machine, who waits for it, and what each coordinator may do next.
//!
//! [`Agent`] reads no clock and does no I/O. It takes what happens, with the time, and returns what is to be done. Its caller performs
//! the [`Action`]s of a session in their order, and passes the answers of those that have one before the session's next message.

mod action;
mod clients;
mod hold;
pub mod limits;
pub mod queue;
mod session;
mod session_end;
#[cfg(test)]
mod tests;
mod trial;
mod tuning;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use model::MachineUser;

pub use action::{Action, Ended, Event, NotSetUp, NotTuned, Tuned};
use clients::Clients;
pub use clients::ClientsError;
pub use hold::HoldError;
use hold::Holds;
pub use limits::Limits;
pub use queue::Queue;
use session::Session;
pub use session_end::{HelperLost, Refusal, SessionEnd};

use crate::message::{FromAgent, ToAgent};

/// The time of an event: since a moment that the caller has chosen, by a clock that does not go back.
pub type Time = Duration;

/// A coordinator's session, after its greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(super) u64);

/// What an agent allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Limits for coordinators.
    pub limits: Limits,
    /// Whether coordinators may change settings of the host.
    pub allows_tuning: bool,
    /// How long after the loss of a coordinator its settings are reverted.
    pub grace: Duration,
}

/// A coordinator whose greeting is over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// The address, or network, that has a share of this agent; `None` for a client on no network.
    pub source: Option<IpAddr>,
    /// Whether it has proved that it may measure.
    pub is_proved: bool,
    /// Whether its connection goes over a network, which a change of settings may cut.
    pub is_remote: bool,
    /// Its name in the log and in the journal of settings.
    pub name: String,
    /// What further connections join its measurements with: nobody can guess it.
    pub ticket: String,
}

/// The agent of one machine.
#[derive(Debug)]
pub struct Agent {
    sessions: BTreeMap<SessionId, Session>,
    machine: Machine,
    next: u64,
}

/// What all sessions share.
#[derive(Debug)]
struct Machine {
    rules: Rules,
    queue: Queue,
    holds: Holds,
    clients: Clients,
}

impl Agent {
    /// The agent of a machine for `slots` measurements at the same time.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let (rules, holds, clients) = Default::default();
        let machine = Machine { rules, queue: Queue::new(slots), holds, clients };
        Self { sessions: BTreeMap::new(), machine, next: 0 }
    }

    /// Sets the rules from now on.
    pub fn obey(&mut self, rules: Rules) {
        self.machine.rules = rules;
    }

    /// Its queue, which servers for other programs share.
    pub fn queue(&mut self) -> &mut Queue {
        &mut self.machine.queue
    }

    /// Begins the session of a coordinator.
    ///
    /// # Errors
    /// All places that it could take are taken.
    pub fn open(&mut self, client: Client) -> Result<SessionId, ClientsError> {
        self.machine.clients.enter(client.source, self.machine.rules.limits.clients)?;
        self.next += 1;
        let id = SessionId(self.next);
        self.sessions.insert(id, Session::new(id, client));
        Ok(id)
    }

    /// Takes an event of a session, and returns what is to be done. After [`Action::Close`] the session is gone.
    #[must_use]
    pub fn on(&mut self, now: Time, session: SessionId, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Event::Message(message) = &event
            && matches!(**message, ToAgent::AskUsers)
            && let Some(asks) = self.sessions.get(&session).filter(|session| session.is_idle())
        {
            return vec![Action::Send(Box::new(self.users(now, asks.client())))];
        }
        if let Some(own) = self.sessions.get_mut(&session) {
            own.on(now, event, &mut self.machine, &mut actions);
            if own.is_over() {
                self.machine.clients.leave(own.client().source);
                self.sessions.remove(&session);
            }
        }
        actions
    }

    /// The caller no longer serves a session: the agent takes back all that it had.
    pub fn close(&mut self, session: SessionId) {
        if let Some(own) = self.sessions.remove(&session) {
            self.machine.clients.leave(own.client().source);
            own.free(&mut self.machine);
        }
    }

    /// When the session gets [`Event::Timer`], if nothing else happens before.
    #[must_use]
    pub fn deadline(&self, session: SessionId) -> Option<Time> {
        self.sessions.get(&session)?.deadline(&self.machine)
    }

    /// Whether the session gets [`Event::Turn`] when the [`Queue`] has moved.
    #[must_use]
    pub fn waits(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(Session::is_waiting)
    }

    /// Whether the session gets [`Event::ChangesLost`] if its helper ends now. A trial says itself that its helper has ended.
    #[must_use]
    pub fn minds_its_helper(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(Session::minds_its_helper)
    }

    /// Coordinators that are connected.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.machine.clients.count()
    }

    /// Measurements of coordinators that have a slot.
    #[must_use]
    pub fn measurements(&self) -> usize {
        self.machine.holds.len()
    }

    /// Lists who measures here, with addresses only for a client that may measure here itself.
    fn users(&self, now: Time, client: &Client) -> FromAgent {
        let user = |session: &Session| {
            let (purpose, since) = session.measures()?;
            Some(MachineUser {
                purpose: purpose.to_owned(),
                source: session.client().source.filter(|_| client.is_proved).map(|source| source.to_string()),
                for_ns: u64::try_from(now.saturating_sub(since).as_nanos()).unwrap_or(u64::MAX),
            })
        };
        let mut users: Vec<MachineUser> = self.sessions.values().filter_map(user).collect();
        users.sort_by_key(|user| std::cmp::Reverse(user.for_ns));
        // Clients of other programs' servers share the queue.
        let others = self.machine.queue.running().saturating_sub(users.len());
        users.extend((0..others).map(|_| MachineUser { purpose: "another program".into(), ..MachineUser::default() }));
        FromAgent::Users { users, waiting: u32::try_from(self.machine.queue.waiting()).unwrap_or(u32::MAX) }
    }
}
