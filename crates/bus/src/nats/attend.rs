//! An agent's side: it leases a name, and receives the streams that are opened to it.

use std::time::Duration;

use async_nats::{Client, Subject, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::line::{BusStream, Side, line};
use super::names::{Names, NotWritten};
use super::packet::Packet;
use super::{Bus, SUBJECTS, number};
use crate::{BusError, Contact};

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
}

/// Takes the name `name` on the bus, where `contact` says how this agent is reached, and passes on the streams that are opened to it.
/// An earlier agent with the same key loses the name. `log` gets a line when something of it changes later.
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
    let held = keeper.take().await?;
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

impl Keeper {
    /// Takes the name, if it is free or an agent with the same key has it.
    async fn take(&self) -> Result<Held, BusError> {
        let failed = |what: String| self.bus.failed("take a name", what);
        let first = Entry { epoch: None, ..self.entry.clone() };
        let epoch = loop {
            match self.names.create(&self.name, first.encode()).await {
                Ok(revision) => break revision,
                Err(NotWritten::Revision) => {}
                Err(NotWritten::Failed(what)) => return Err(failed(what)),
            }
            let Some(found) = self.found().await.map_err(failed)? else { continue };
            let (revision, holder) = found;
            if holder.contact.key != self.entry.contact.key {
                let place =
                    holder.contact.address.map_or_else(|| holder.contact.key.clone(), |address| address.to_string());
                return Err(BusError::Taken { bus: self.bus.0.bus.clone(), name: self.name.clone(), holder: place });
            }
            match self.names.update(&self.name, first.encode(), revision).await {
                Ok(revision) => break revision,
                Err(NotWritten::Revision) => {}
                Err(NotWritten::Failed(what)) => return Err(failed(what)),
            }
        };
        // Who reads the epoch must find somebody who listens.
        let receiving = vec![self.receive(epoch).await?];
        let complete = Entry { epoch: Some(epoch), ..self.entry.clone() };
        let revision = self.names.update(&self.name, complete.encode(), epoch).await;
        let revision = revision.map_err(|error| failed(error.to_string()))?;
        Ok(Held { revision, epoch, receiving })
    }

    /// The newest revision of the name, and who has it.
    async fn found(&self) -> Result<Option<(u64, Entry)>, String> {
        let found = self.names.get(&self.name).await?;
        Ok(found.and_then(|found| Some((found.revision, Entry::decode(&found.bytes?)?))))
    }

    async fn receive(&self, epoch: u64) -> Result<Receiving, BusError> {
        let subject = format!("{SUBJECTS}.to.{epoch}.*.{}", self.name);
        let client = self.bus.0.client.clone();
        let failed = |what: String| self.bus.failed("subscribe", what);
        let messages = client.subscribe(subject).await.map_err(|error| failed(error.to_string()))?;
        client.flush().await.map_err(|error| failed(error.to_string()))?;
        let receiver = Receiver { bus: self.bus.clone(), client, arrivals: self.arrivals.clone() };
        Ok(Receiving(tokio::spawn(receiver.run(messages))))
    }

    async fn keep(self, mut held: Held, mut left: oneshot::Receiver<()>) {
        let mut away = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(RENEW_EVERY) => {}
                _ = &mut left => {
                    let _ = self.names.delete(&self.name, held.revision).await;
                    return;
                }
            }
            match self.renew(&held).await {
                Renewed::Kept(revision) => {
                    held.revision = revision;
                    if std::mem::take(&mut away) {
                        (self.log)(&format!("the bus {} answers again", self.bus.0.bus));
                    }
                }
                Renewed::Unknown => {
                    if !std::mem::replace(&mut away, true) {
                        (self.log)(&format!("the bus {} does not answer; trying again", self.bus.0.bus));
                    }
                }
                Renewed::Forgotten => match self.take().await {
                    Ok(mut again) => {
                        // Streams of the epoch before go on: nobody else had the name meanwhile.
                        again.receiving.append(&mut held.receiving);
                        held = again;
                        away = false;
                        (self.log)(&format!("on the bus {} again as {}", self.bus.0.bus, self.name));
                    }
                    Err(BusError::Taken { holder, .. }) => return self.fenced(held, &holder),
                    Err(_) => {}
                },
                Renewed::Lost(holder) => return self.fenced(held, &holder),
            }
        }
    }

    async fn renew(&self, held: &Held) -> Renewed {
        let entry = Entry { epoch: Some(held.epoch), ..self.entry.clone() };
        match self.names.update(&self.name, entry.encode(), held.revision).await {
            Ok(revision) => Renewed::Kept(revision),
            Err(_) => match self.found().await {
                Ok(None) => Renewed::Forgotten,
                // The answer to an earlier renewal was lost.
                Ok(Some((revision, found))) if found.instance == self.entry.instance => Renewed::Kept(revision),
                Ok(Some((_, found))) => {
                    Renewed::Lost(found.contact.address.map_or(found.contact.key, |address| address.to_string()))
                }
                Err(_) => Renewed::Unknown,
            },
        }
    }

    /// The name is lost: nobody who has opened a stream to this agent may measure here any more.
    fn fenced(&self, held: Held, holder: &str) {
        drop(held);
        self.bus.0.streams.fence();
        (self.log)(&format!(
            "the agent at {holder} has taken the name {} on the bus {}: this one has left it",
            self.name, self.bus.0.bus
        ));
    }
}

/// Receives an epoch's messages.
struct Receiver {
    bus: Bus,
    client: Client,
    arrivals: mpsc::Sender<Arrival>,
}

impl Receiver {
    async fn run(self, mut messages: Subscriber) {
        while let Some(message) = messages.next().await {
            let Some(stream) = message.subject.split('.').nth(4).map(str::to_owned) else { continue };
            match (self.bus.0.streams.pass(&stream, &message), message.reply) {
                (Some(Packet::Open), Some(reply)) => self.accept(&stream, message.subject, reply).await,
                (Some(Packet::Data(..) | Packet::Close(_)), Some(reply)) => {
                    let _ = self.client.publish(reply, Packet::Reset.encode()).await;
                }
                _ => {}
            }
        }
    }

    async fn accept(&self, stream: &str, own: Subject, reply: Subject) {
        let client = reply.strip_prefix(&format!("{SUBJECTS}.from.")).and_then(|rest| rest.split('.').next());
        let (Some(client), Ok(arrival)) = (client, self.arrivals.try_reserve()) else { return };
        let client = client.to_owned();
        let Some((place, heard)) = self.bus.0.streams.add(stream) else { return };
        let (bytes, pump) = line(self.client.clone(), [own, reply], heard, Side::Accepts);
        tokio::spawn(async move {
            pump.await;
            drop(place);
        });
        arrival.send(Arrival { stream: bytes, client });
    }
}
