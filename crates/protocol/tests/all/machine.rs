//! An agent with its host: what follows from an event.

use std::time::Duration;

use model::random::SplitMix64;
use protocol::agent::{Action, Agent, Client, ClientsError, Event, Rules, SessionId};
use protocol::message::FromAgent;

use super::host::{Answer, Host};

/// What follows from an event at the agent.
#[derive(Debug)]
pub(super) enum Out {
    /// A message for a coordinator.
    Send(SessionId, Box<FromAgent>),
    /// The agent ends the session.
    End(SessionId),
    /// The host has done something after this time.
    Later(SessionId, Duration, Answer),
    /// The session has a deadline at that time.
    Deadline(SessionId, Duration),
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) agent: Agent,
    pub(super) host: Host,
}

impl Machine {
    pub(super) fn new(slots: usize, rules: Rules, host: Host) -> Self {
        let mut agent = Agent::new(slots);
        agent.obey(rules);
        Self { agent, host }
    }

    pub(super) fn open(&mut self, client: Client) -> Result<SessionId, ClientsError> {
        let session = self.agent.open(client)?;
        self.host.open(session);
        Ok(session)
    }

    /// An event comes to a session, after those that it has not taken yet.
    pub(super) fn on(&mut self, now: Duration, session: SessionId, event: Event, random: &mut SplitMix64) -> Vec<Out> {
        self.host.queue(session, event);
        self.during(|own, out| own.serve(now, session, random, out))
    }

    /// The host has done something.
    pub(super) fn done(
        &mut self,
        now: Duration,
        session: SessionId,
        answer: Answer,
        random: &mut SplitMix64,
    ) -> Vec<Out> {
        match self.host.done(session, answer) {
            Some(event) => self.during(|own, out| own.serve_first(now, session, event, random, out)),
            None => self.during(|own, out| own.serve(now, session, random, out)),
        }
    }

    /// A session's deadline may have passed.
    pub(super) fn timer(&mut self, now: Duration, session: SessionId, random: &mut SplitMix64) -> Vec<Out> {
        match self.agent.deadline(session) {
            Some(deadline) if deadline <= now => self.on(now, session, Event::Timer, random),
            // It was put off meanwhile.
            Some(deadline) => self.during(|own, out| own.wake(now, session, deadline, out)),
            None => Vec::new(),
        }
    }

    /// Those that wait may have the machine now.
    pub(super) fn turns(&mut self, now: Duration, random: &mut SplitMix64) -> Vec<Out> {
        self.during(|own, out| own.let_wait(now, random, out))
    }

    fn during(&mut self, what: impl FnOnce(&mut Self, &mut Vec<Out>)) -> Vec<Out> {
        let mut out = Vec::new();
        what(self, &mut out);
        out
    }

    fn let_wait(&mut self, now: Duration, random: &mut SplitMix64, out: &mut Vec<Out>) {
        let waiting: Vec<SessionId> = self.host.sessions().filter(|session| self.agent.waits(*session)).collect();
        for session in waiting {
            self.host.queue(session, Event::Turn);
            self.serve(now, session, random, out);
        }
    }

    /// Passes a session what waits for it, as long as its host does not work for it.
    fn serve(&mut self, now: Duration, session: SessionId, random: &mut SplitMix64, out: &mut Vec<Out>) {
        while let Some(event) = self.host.next(session) {
            self.serve_first(now, session, event, random, out);
        }
    }

    fn serve_first(
        &mut self,
        now: Duration,
        session: SessionId,
        event: Event,
        random: &mut SplitMix64,
        out: &mut Vec<Out>,
    ) {
        let before = self.agent.queue().moves();
        let actions = self.agent.on(now, session, event);
        self.host.act(session, actions);
        self.work(now, session, random, out);
        if self.agent.queue().moves() != before {
            self.let_wait(now, random, out);
        }
        self.serve(now, session, random, out);
    }

    /// Does what a session has to do next, until the host must work for it.
    fn work(&mut self, now: Duration, session: SessionId, random: &mut SplitMix64, out: &mut Vec<Out>) {
        while let Some(action) = self.host.next_action(session) {
            match action {
                Action::Send(message) => {
                    if matches!(*message, FromAgent::Granted { .. }) {
                        self.host.begin(session, now);
                    }
                    out.push(Out::Send(session, message));
                }
                Action::Close(_) => {
                    out.push(Out::End(session));
                    self.host.forget(session);
                    return;
                }
                action => {
                    for (after, answer, message) in self.host.perform(session, action, random) {
                        out.extend(message.map(|message| Out::Send(session, message)));
                        out.extend(answer.map(|answer| Out::Later(session, after, answer)));
                    }
                }
            }
        }
        if let Some(deadline) = self.agent.deadline(session) {
            self.wake(now, session, deadline, out);
        }
    }

    fn wake(&mut self, now: Duration, session: SessionId, deadline: Duration, out: &mut Vec<Out>) {
        let at = deadline.max(now);
        if self.host.is_new_deadline(session, at) {
            out.push(Out::Deadline(session, at));
        }
    }
}
