//! The machine of an agent: who has it, who waits for it. Servers for other programs' clients share it.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use protocol::agent::{Action, Agent, Client, ClientsError, Event, Rules, SessionId};
use tokio::sync::watch;

/// A machine's queue, shared by the agent and the servers for other programs' clients.
#[derive(Clone)]
pub struct Machine(Arc<Inner>);

struct Inner {
    agent: Mutex<Agent>,
    /// What the agent's times count from.
    begun: Instant,
    /// [`Queue::moves`](protocol::agent::Queue::moves), for sessions that wait.
    moves: watch::Sender<u64>,
}

/// A slot of the machine, until it is dropped.
struct Slot(Machine);

/// A session of the agent, until it is dropped.
pub(super) struct OpenSession {
    machine: Machine,
    id: SessionId,
}

impl Machine {
    /// A machine for `slots` measurements at the same time, at least one.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        debug_assert!(slots > 0, "a machine has a place");
        let moves = watch::Sender::new(0);
        Self(Arc::new(Inner { agent: Mutex::new(Agent::new(slots)), begun: Instant::now(), moves }))
    }

    /// Takes the machine for a measurement until the returned value is dropped; `None` if others have it or wait for it.
    #[must_use]
    pub fn try_enter(&self) -> Option<Box<dyn Any + Send>> {
        self.with(|agent| agent.queue().enter_at_once()).then(|| Box::new(Slot(self.clone())) as Box<dyn Any + Send>)
    }

    /// Sets the rules from now on.
    pub(super) fn obey(&self, rules: Rules) {
        self.with(|agent| agent.obey(rules));
    }

    /// Begins the session of a coordinator.
    pub(super) fn open(&self, client: Client) -> Result<OpenSession, ClientsError> {
        let id = self.with(|agent| agent.open(client))?;
        Ok(OpenSession { machine: self.clone(), id })
    }

    /// Measurements that run now, and clients that wait.
    #[cfg(feature = "metrics")]
    pub(super) fn lengths(&self) -> [usize; 2] {
        self.with(|agent| [agent.queue().running(), agent.queue().waiting()])
    }

    /// Coordinators that are connected.
    #[cfg(feature = "metrics")]
    pub(super) fn clients(&self) -> usize {
        self.with(|agent| agent.clients())
    }

    /// Changes when a waiting session may move up.
    pub(super) fn moves(&self) -> watch::Receiver<u64> {
        self.0.moves.subscribe()
    }

    /// Works with the agent, and notifies those who wait if the queue has moved.
    fn with<T>(&self, work: impl FnOnce(&mut Agent) -> T) -> T {
        let mut agent = self.lock();
        let result = work(&mut agent);
        let moves = agent.queue().moves();
        drop(agent);
        self.0.moves.send_if_modified(|known| std::mem::replace(known, moves) != moves);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Agent> {
        self.0.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.with(|agent| agent.queue().leave());
    }
}

impl OpenSession {
    /// Takes an event, and returns what is to be done.
    pub(super) fn on(&self, event: Event) -> Vec<Action> {
        let now = self.machine.0.begun.elapsed();
        self.machine.with(|agent| agent.on(now, self.id, event))
    }

    /// When the session gets [`Event::Timer`], if nothing else happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let deadline = self.machine.lock().deadline(self.id)?;
        // A deadline beyond the clock's range is as good as none.
        self.machine.0.begun.checked_add(deadline)
    }

    /// Whether the session gets [`Event::Turn`] when the queue moves.
    pub(super) fn waits(&self) -> bool {
        self.machine.lock().waits(self.id)
    }

    /// Whether the session gets [`Event::ChangesLost`] if its helper ends now.
    pub(super) fn minds_its_helper(&self) -> bool {
        self.machine.lock().minds_its_helper(self.id)
    }

    /// Its machine.
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.machine.with(|agent| agent.close(self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_back_and_those_who_wait_are_notified() {
        let machine = Machine::new(1);
        let mut moves = machine.moves();
        let slot = machine.try_enter().unwrap();
        assert!(machine.try_enter().is_none());
        moves.mark_unchanged();
        drop(slot);
        assert!(moves.has_changed().unwrap());
        assert!(machine.try_enter().is_some());
    }
}
