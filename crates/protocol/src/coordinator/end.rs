//! One end of the measurements: an agent that has accepted this coordinator.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use model::{Change, EndOptions, HostReading, MachineUser, PathTimes, Setting, Watched};

use super::bounds::one_line;
use super::error::{DialogueError, LineEnd};
use super::event::{Action, Connected, LineId, Seen};
use super::outside::Outside;
use crate::message::{Cause, FromAgent, ReachabilityToken, ToAgent};

/// Time limit for an answer, on a short path: a host changes some settings slowly.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// An agent that has accepted this coordinator. Dropping it ends the connection.
#[derive(Debug)]
pub struct End {
    outside: Outside,
    line: LineId,
    /// "this host", or host and port.
    pub name: String,
    /// Identifier of the agent's process.
    pub instance: String,
    /// Its host and network namespace, if they are known.
    pub(super) namespace: Option<(String, u64)>,
    /// The settings of the last [`apply`](Self::apply).
    pub(super) applied: Vec<Setting>,
    /// The changes that it made.
    pub(super) changed: Vec<Change>,
    /// The agent's address; `None` within this process.
    pub(super) address: Option<SocketAddr>,
    /// The name by which the user reached it.
    host_name: Option<String>,
    /// Its reachability tokens by the address that other agents get, while this coordinator has the machine.
    reach_tokens: BTreeMap<Option<IpAddr>, ReachabilityToken>,
    /// The ticket for further connections, while this coordinator has the machine.
    pub(super) ticket: Option<String>,
    /// It has joined another connection, which has the settings of the host.
    pub(super) joined: bool,
    /// The connection is closed by an action of its own.
    released: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        self.outside.forget(self.line);
        if !self.released {
            self.outside.act(Action::Cut(self.line));
        }
    }
}

impl End {
    /// The end of a new connection.
    #[must_use]
    pub fn new(outside: &Outside, connected: Connected) -> Self {
        let Connected { line, name, instance, address, host_name, namespace } = connected;
        Self {
            outside: outside.clone(),
            line,
            name,
            instance,
            namespace,
            applied: Vec::new(),
            changed: Vec::new(),
            address,
            host_name,
            reach_tokens: BTreeMap::new(),
            ticket: None,
            joined: false,
            released: false,
        }
    }

    /// What is known of it, with another number for its connection.
    #[must_use]
    pub fn connected(&self, line: LineId) -> Connected {
        let (name, instance, address) = (self.name.clone(), self.instance.clone(), self.address);
        let (host_name, namespace) = (self.host_name.clone(), self.namespace.clone());
        Connected { line, name, instance, address, host_name, namespace }
    }

    /// The agent's address; `None` within this process.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Its connection.
    #[must_use]
    pub fn line(&self) -> LineId {
        self.line
    }

    pub(super) fn outside(&self) -> &Outside {
        &self.outside
    }

    pub(super) fn seen(&self) -> Seen {
        self.outside.seen(self.line)
    }

    /// How long its answers take.
    pub(super) fn path(&self) -> PathTimes {
        self.seen().path
    }

    /// An agent on another host sends no message with more bytes than this.
    pub(super) fn accept_up_to(&self, bytes: usize) {
        if self.address.is_some() {
            self.outside.act(Action::AcceptUpTo(self.line, bytes));
        }
    }

    pub(super) fn send(&self, message: ToAgent) {
        self.outside.send(self.line, message);
    }

    /// The next message. Dropping the future loses nothing.
    pub(super) async fn recv(&self, during: &str) -> Result<FromAgent, DialogueError> {
        self.received(during, self.outside.receive(self.line).await)
    }

    fn received(&self, during: &str, arrived: Result<FromAgent, LineEnd>) -> Result<FromAgent, DialogueError> {
        let address = || self.name.clone();
        match arrived {
            Ok(FromAgent::Refused { reason, cause }) => Err(DialogueError::refused(address(), &reason, cause)),
            Ok(FromAgent::Failed { reason, cause }) => {
                let (address, reason) = (address(), one_line(&reason));
                Err(match cause {
                    Cause::Limits => DialogueError::Refused { address, reason },
                    Cause::Unproven => DialogueError::Unproven { address, reason },
                    Cause::Setup => DialogueError::Setup { address, reason },
                    Cause::Trial => DialogueError::Trial { address, reason },
                })
            }
            Ok(message) => Ok(message),
            Err(end) => Err(DialogueError::lost(&self.name, during, end)),
        }
    }

    /// Waits for the answer that `of` takes, however long it takes; others are late messages of what is over.
    async fn whenever<T>(&self, during: &str, mut of: impl FnMut(FromAgent) -> Option<T>) -> Result<T, DialogueError> {
        loop {
            if let Some(answer) = of(self.recv(during).await?) {
                return Ok(answer);
            }
        }
    }

    /// Waits for the answer that `of` takes. An agent that only keeps its connection alive is lost.
    pub(super) async fn answer<T>(
        &self,
        during: &str,
        of: impl FnMut(FromAgent) -> Option<T>,
    ) -> Result<T, DialogueError> {
        let answered = self.within(ANSWER_LIMIT, self.whenever(during, of)).await;
        answered.unwrap_or_else(|| Err(DialogueError::lost(&self.name, during, LineEnd::silent(ANSWER_LIMIT))))
    }

    /// The next message, as one of several answers.
    pub(super) async fn next_answer(&self, during: &str) -> Result<FromAgent, DialogueError> {
        self.answer(during, Some).await
    }

    /// Waits until this coordinator has the machine; `queued` gets the number of clients in front.
    ///
    /// # Errors
    /// If the connection is lost, or the agent refuses.
    pub async fn acquire(&mut self, purpose: &str, mut queued: impl FnMut(u32)) -> Result<(), DialogueError> {
        self.send(ToAgent::Acquire { purpose: purpose.into(), join: None });
        let granted = |message| match message {
            FromAgent::Granted { ticket } => Some(ticket),
            FromAgent::Queued { ahead } => {
                queued(ahead);
                None
            }
            _ => None,
        };
        self.ticket = self.whenever("while waiting in its queue", granted).await?;
        Ok(())
    }

    /// Has the machine together with the connection that has this ticket.
    pub(super) async fn join(&mut self, ticket: String, purpose: &str) -> Result<(), DialogueError> {
        self.joined = true;
        self.send(ToAgent::Acquire { purpose: purpose.into(), join: Some(ticket) });
        let granted = |message| matches!(message, FromAgent::Granted { .. }).then_some(());
        self.answer("while a further connection joined", granted).await
    }

    /// Requests a report of the host every `interval`, also while others measure there; [`watched`](Self::watched) returns them.
    pub fn watch(&self, interval: Duration) {
        self.send(ToAgent::Watch { interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX) });
    }

    /// Lists who measures there, and counts the clients that wait.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn users(&self) -> Result<(Vec<MachineUser>, u32), DialogueError> {
        self.send(ToAgent::AskUsers);
        let users = |message| match message {
            FromAgent::Users { users, waiting } => Some((users, waiting)),
            _ => None,
        };
        self.answer("while it listed its clients", users).await
    }

    /// The next report of [`watch`](Self::watch).
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn watched(&self) -> Result<Watched, DialogueError> {
        let seen = |message| if let FromAgent::Watched(seen) = message { Some(*seen) } else { None };
        self.whenever("during `watch`", seen).await
    }

    /// The current state of its host. The machine must have been acquired.
    pub(super) async fn read_conditions(&self) -> Result<HostReading, DialogueError> {
        self.send(ToAgent::ReadConditions);
        let reading = |message| if let FromAgent::Conditions(reading) = message { Some(reading) } else { None };
        self.answer("while it read the state of its host", reading).await
    }

    /// Reads what has arrived of an end that does nothing.
    pub(super) fn drain(&self) -> Result<(), DialogueError> {
        match self.outside.arrived(self.line) {
            None => Ok(()),
            // What comes late means nothing any more, and the next message is passed then.
            Some(Ok(FromAgent::Failed { .. })) => Ok(()),
            Some(arrived) => self.received("during a wait", arrived).map(drop),
        }
    }

    /// Waits until the connection to the agent is lost and returns the error.
    pub async fn lost_contact(&self) -> DialogueError {
        loop {
            if let Err(error) = self.recv("while its settings were held").await {
                return error;
            }
        }
    }

    /// Releases the machine and stays connected.
    pub fn release_machine(&mut self) {
        self.reach_tokens.clear();
        self.ticket = None;
        self.send(ToAgent::Release);
    }

    /// Releases the machine and closes the connection.
    pub fn release(mut self) {
        self.send(ToAgent::Release);
        self.released = true;
        self.outside.act(Action::Close(self.line));
    }

    /// The name by which the user reached the agent, for a near end that does not reach its address. `None` for an address, and where the
    /// user gave one for data.
    pub(super) fn name_for_others(&self, far: &EndOptions) -> Option<String> {
        let given = far.data_at.is_some() || far.data_addr.is_some();
        self.host_name.clone().filter(|_| !given)
    }

    /// Whether its agent connects only with a reachability token. An agent in this process does not need one.
    pub(super) fn needs_reach_token(&self) -> bool {
        self.address.is_some()
    }

    /// The reachability token with which another agent probes this end's and connects to it, for the address `at` if given. It is
    /// requested once while this coordinator has the machine.
    pub(super) async fn reach_token(&mut self, at: Option<IpAddr>) -> Result<ReachabilityToken, DialogueError> {
        if let Some(reach_token) = self.reach_tokens.get(&at) {
            return Ok(reach_token.clone());
        }
        self.send(ToAgent::IssueReachToken { at });
        let token = |message| if let FromAgent::ReachToken(token) = message { Some(token) } else { None };
        let mut token = self.answer("while it issued a reachability token", token).await?;
        // Its port is reached as this connection reached it: it may be forwarded.
        if let (None, Some(address), Some(port)) = (at, self.address, &mut token.port) {
            *port = address.port();
        }
        self.reach_tokens.insert(at, token.clone());
        Ok(token)
    }

    /// Makes its agent cancel the trial that is prepared or running.
    pub(super) async fn cancel_trial(&self) -> Result<(), DialogueError> {
        self.send(ToAgent::Reset);
        let canceled = async {
            loop {
                match self.recv("after a failed set-up").await {
                    Ok(FromAgent::Reset) => return Ok(()),
                    Err(error @ DialogueError::Lost { .. }) => return Err(error),
                    // A late message of the failed set-up.
                    _ => {}
                }
            }
        };
        let answered = self.within(crate::pass::END_LIMIT, canceled).await;
        let (address, reason) = (self.name.clone(), "the agent did not cancel a failed set-up".into());
        answered.unwrap_or(Err(DialogueError::Trial { address, reason }))
    }

    /// Waits for `answer` as long as the path may need for what takes at most `limit` on a short path.
    pub(super) async fn within<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = std::pin::pin!(answer);
        let begun = self.outside.now();
        loop {
            // The path may show itself to be slower meanwhile.
            let most = begun + limit + Duration::from_nanos(self.path().patience_ns);
            let left = most.saturating_sub(self.outside.now());
            if left.is_zero() {
                return None;
            }
            if let Some(answer) = self.outside.within(left, &mut answer).await {
                return Some(answer);
            }
        }
    }
}
