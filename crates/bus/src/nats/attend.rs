//! An agent's side: it leases a name, and receives the streams that are opened to it.

use std::time::{Duration, Instant};

use async_nats::{Subject, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::line::{BusStream, Side, line};
use super::names::{Names, NotWritten, REPEAT_AFTER};
use super::switchboard::Role;
use super::{Bus, CONNECT_LIMIT, SUBJECTS, number};
use crate::{BusError, BusProblem, Contact};

/// A name that is not renewed for so long is free.
pub(super) const LEASE: Duration = Duration::from_secs(10);
/// Time between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// Streams that wait until the agent takes them.
const WAITING: usize = 64;
/// Time limit for giving the name back.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// A stream that a coordinator has opened.
#[derive(Debug)]
pub struct Arrival {
    /// Its bytes.
    pub stream: BusStream,
    /// The number of the coordinator's connection to the bus, for the log.
    pub client: String,
}

/// An agent's name on the bus, which is renewed until this is dropped.
pub struct Attendance {
    keeper: JoinHandle<()>,
    leave: Option<oneshot::Sender<()>>,
}

impl Attendance {
    /// Gives the name back, so that it is free at once.
    pub async fn leave(mut self) {
        if let Some(leave) = self.leave.take() {
            let _ = leave.send(());
        }
        let _ = tokio::time::timeout(LEAVE_LIMIT, &mut self.keeper).await;
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl std::fmt::Debug for Attendance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attendance").finish_non_exhaustive()
    }
}

/// What the bucket has for a name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The agent's process.
    instance: String,
    /// The revision of the name's creation; none in the creation itself, which does not know it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<u64>,
    #[serde(flatten)]
    pub(super) contact: Contact,
}

impl Entry {
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    fn encode(&self) -> bytes::Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Where the agent is, or who.
    fn place(self) -> String {
        self.contact.address.map_or(self.contact.key, |address| address.to_string())
    }
}

/// Takes the name `name` on the bus, where `contact` says how this agent is reached, and passes on the streams that are opened to it.
/// An earlier agent with the same key loses the name, and waits until it is free. `log` gets a line when something of it changes later.
///
/// # Errors
/// [`BusError::Taken`] if another agent has the name; the bus does not answer.
pub async fn attend(
    bus: &Bus,
    name: &str,
    contact: Contact,
    log: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(Attendance, mpsc::Receiver<Arrival>), BusError> {
    let (arrivals, arrived) = mpsc::channel(WAITING);
    let keeper = Keeper {
        bus: bus.clone(),
        names: bus.agents().await?.clone(),
        name: name.to_owned(),
        entry: Entry { instance: number(), epoch: None, contact },
        arrivals,
        log: Box::new(log),
    };
    let held = keeper.take(Takes::AlsoFromEarlier).await?;
    let (leave, left) = oneshot::channel();
    let keeper = tokio::spawn(keeper.keep(held, left));
    Ok((Attendance { keeper, leave: Some(leave) }, arrived))
}

/// A name that this agent has.
struct Held {
    /// The newest revision.
    revision: u64,
    epoch: u64,
    /// Receive the streams of this epoch, and of earlier ones that the bus has forgotten.
    receiving: Vec<Receiving>,
}

/// Receives an epoch's streams until it is dropped.
struct Receiving(JoinHandle<()>);

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Keeper {
    bus: Bus,
    names: Names,
    name: String,
    entry: Entry,
    arrivals: mpsc::Sender<Arrival>,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

/// What became of a renewal.
enum Renewed {
    Kept(u64),
    /// The bus has no such name any more.
    Forgotten,
    /// Another agent has it.
    Lost(String),
    /// The bus did not answer.
    Unknown,
}

/// Whose name an agent takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// A free name, or one that an earlier agent with the same key holds.
    AlsoFromEarlier,
    /// A free name.
    IfFree,
}

impl Keeper {
    /// Takes the name, if it may.
    async fn take(&self, takes: Takes) -> Result<Held, BusError> {
        let failed = |what: BusProblem| self.bus.failed("take a name", what);
        let first = Entry { epoch: None, ..self.entry.clone() };
        let give_up = Instant::now() + CONNECT_LIMIT;
        let epoch = loop {
            match self.names.create(&self.name, first.encode()).await {
                Ok(revision) => break revision,
                Err(NotWritten::Revision) => {}
                Err(NotWritten::Failed(what)) => return Err(failed(what)),
            }
            if let Some((revision, holder)) = self.found().await.map_err(failed)? {
                if let Some(holder) = holder.filter(|holder| !self.may_replace(takes, holder)) {
                    let holder = holder.place();
                    return Err(BusError::Taken { bus: self.bus.0.bus.clone(), name: self.name.clone(), holder });
                }
                match self.names.update(&self.name, first.encode(), revision).await {
                    Ok(revision) => break revision,
                    Err(NotWritten::Revision) => {}
                    Err(NotWritten::Failed(what)) => return Err(failed(what)),
                }
            }
            if Instant::now() >= give_up {
                return Err(failed(BusProblem::Contended));
            }
            tokio::time::sleep(REPEAT_AFTER).await;
        };
        // Who reads the epoch must find somebody who listens.
        let receiving = vec![self.receive(epoch).await?];
        let complete = Entry { epoch: Some(epoch), ..self.entry.clone() };
        let revision = self.names.update(&self.name, complete.encode(), epoch).await;
        let revision = revision.map_err(|error| failed(error.into()))?;
        Ok(Held { revision, epoch, receiving })
    }

    fn may_replace(&self, takes: Takes, holder: &Entry) -> bool {
        let is_own = holder.instance == self.entry.instance;
        is_own || takes == Takes::AlsoFromEarlier && holder.contact.key == self.entry.contact.key
    }

    /// The newest revision of the name, and who has it; nobody if what is written there is no agent's.
    async fn found(&self) -> Result<Option<(u64, Option<Entry>)>, BusProblem> {
        let found = self.names.get(&self.name).await?;
        Ok(found.and_then(|found| Some((found.revision, Entry::decode(&found.bytes?)))))
    }

    async fn receive(&self, epoch: u64) -> Result<Receiving, BusError> {
        let subject = format!("{SUBJECTS}.to.{epoch}.*.{}", self.name);
        let client = self.bus.0.client.clone();
        let failed = |what: BusProblem| self.bus.failed("subscribe", what);
        let messages = client.subscribe(subject).await.map_err(|error| failed(BusProblem::refused(error)))?;
        client.flush().await.map_err(|error| failed(BusProblem::refused(error)))?;
        let receiver = Receiver { bus: self.bus.clone(), arrivals: self.arrivals.clone() };
        Ok(Receiving(tokio::spawn(receiver.run(messages))))
    }

    async fn keep(self, held: Held, mut left: oneshot::Receiver<()>) {
        let (mut held, mut away) = (Some(held), false);
        loop {
            tokio::select! {
                () = tokio::time::sleep(RENEW_EVERY) => {}
                _ = &mut left => {
                    if let Some(held) = held {
                        let _ = self.names.delete(&self.name, held.revision).await;
                    }
                    return;
                }
            }
            let Some(current) = &mut held else {
                held = self.take_again().await.ok();
                continue;
            };
            match self.renew(current).await {
                Renewed::Kept(revision) => {
                    current.revision = revision;
                    if std::mem::take(&mut away) {
                        (self.log)(&format!("the bus {} answers again", self.bus.0.bus));
                    }
                }
                Renewed::Unknown => {
                    if !std::mem::replace(&mut away, true) {
                        (self.log)(&format!("the bus {} does not answer; trying again", self.bus.0.bus));
                    }
                }
                Renewed::Forgotten => match self.take_again().await {
                    Ok(mut again) => {
                        // Streams of the epoch before go on: nobody else had the name meanwhile.
                        again.receiving.append(&mut current.receiving);
                        *current = again;
                        away = false;
                    }
                    Err(BusError::Taken { holder, .. }) => held = self.fenced(&holder),
                    Err(_) => {}
                },
                Renewed::Lost(holder) => held = self.fenced(&holder),
            }
        }
    }

    async fn take_again(&self) -> Result<Held, BusError> {
        let again = self.take(Takes::IfFree).await;
        if again.is_ok() {
            (self.log)(&format!("on the bus {} again as {}", self.bus.0.bus, self.name));
        }
        again
    }

    async fn renew(&self, held: &Held) -> Renewed {
        let entry = Entry { epoch: Some(held.epoch), ..self.entry.clone() }.encode();
        if let Ok(revision) = self.names.update(&self.name, entry.clone(), held.revision).await {
            return Renewed::Kept(revision);
        }
        match self.found().await {
            Ok(None) => Renewed::Forgotten,
            // The answer to an earlier renewal was lost.
            Ok(Some((revision, Some(found)))) if found.instance == self.entry.instance => Renewed::Kept(revision),
            Ok(Some((_, Some(found)))) => Renewed::Lost(found.place()),
            // Somebody has written over it, who is no agent.
            Ok(Some((revision, None))) => match self.names.update(&self.name, entry, revision).await {
                Ok(revision) => Renewed::Kept(revision),
                Err(_) => Renewed::Unknown,
            },
            Err(_) => Renewed::Unknown,
        }
    }

    /// The name is lost: nobody who has opened a stream to this agent may measure here any more. Nothing is held, until it is free.
    fn fenced(&self, holder: &str) -> Option<Held> {
        self.bus.0.streams.fence();
        (self.log)(&format!(
            "the agent at {holder} has taken the name {} on the bus {}: this agent takes it back when it is free",
            self.name, self.bus.0.bus
        ));
        None
    }
}

/// Receives an epoch's messages.
struct Receiver {
    bus: Bus,
    arrivals: mpsc::Sender<Arrival>,
}

impl Receiver {
    async fn run(self, mut messages: Subscriber) {
        while let Some(message) = messages.next().await {
            let opened = self.bus.0.streams.pass(Role::Agent, &message, &self.bus.0.outbox);
            if let Some((stream, reply)) = opened {
                self.accept(&stream, message.subject, reply);
            }
        }
    }

    /// A stream for which there is no room is not answered: its opener tries again.
    fn accept(&self, stream: &str, own: Subject, reply: Subject) {
        let Ok(arrival) = self.arrivals.try_reserve() else { return };
        let Some(plug) = self.bus.0.streams.accept(stream) else { return };
        let client = reply.split('.').nth(3).unwrap_or_default().to_owned();
        let (bytes, pump) = line(self.bus.ends([own, reply], plug), Side::Accepts);
        tokio::spawn(pump);
        arrival.send(Arrival { stream: bytes, client });
    }
}
