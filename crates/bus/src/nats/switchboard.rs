//! Which messages belong to which stream.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Message, StatusCode, Subject};
use tokio::sync::mpsc;

use super::SUBJECTS;
use super::outbox::Outbox;
use super::packet::Packet;
use super::sent::MOST_MESSAGES;

/// Most messages that wait for a stream: its window, and as many acknowledgements.
const MOST_WAITING: usize = 2 * MOST_MESSAGES;
/// Most streams of one process.
const MOST_STREAMS: usize = 8192;
/// Most streams that others have opened and that have received no answer of this process yet. Another one takes the oldest one's place.
const MOST_YOUNG: usize = 512;
/// Longest number of a stream or a client.
const MOST_LETTERS: usize = 32;

/// What the switchboard has for a stream.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message of the other end.
    Packet(Packet),
    /// Nobody was subscribed there when a message was sent.
    Nobody,
}

/// The streams of a process, by the number in their subjects.
#[derive(Debug, Clone, Default)]
pub(super) struct Switchboard(Arc<Mutex<Streams>>);

#[derive(Debug, Default)]
struct Streams {
    /// Each with its serial number.
    by_number: HashMap<String, (u64, mpsc::Sender<Heard>)>,
    /// Those that may lose their place, by their serial numbers.
    young: BTreeMap<u64, String>,
    next: u64,
}

/// A stream's place on the switchboard; dropping it frees the place. A stream that loses it before hears nothing any more.
pub(super) struct Place {
    board: Switchboard,
    number: String,
    serial: u64,
}

/// Which end of streams a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Coordinator,
    Agent,
}

impl Switchboard {
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a stream of this process; `None` if there are too many.
    pub(super) fn open(&self, number: &str) -> Option<(Place, mpsc::Receiver<Heard>)> {
        self.add(number, false)
    }

    /// A place for a stream that another process opens, which may lose it until [`Place::keep`]; `None` if the number is taken, or there
    /// are too many.
    pub(super) fn accept(&self, number: &str) -> Option<(Place, mpsc::Receiver<Heard>)> {
        self.add(number, true)
    }

    fn add(&self, number: &str, is_young: bool) -> Option<(Place, mpsc::Receiver<Heard>)> {
        let mut streams = self.lock();
        if streams.by_number.len() >= MOST_STREAMS || streams.by_number.contains_key(number) {
            return None;
        }
        let serial = streams.next;
        streams.next += 1;
        if is_young {
            if streams.young.len() >= MOST_YOUNG
                && let Some((_, oldest)) = streams.young.pop_first()
            {
                streams.by_number.remove(&oldest);
            }
            streams.young.insert(serial, number.to_owned());
        }
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        streams.by_number.insert(number.to_owned(), (serial, sender));
        Some((Place { board: self.clone(), number: number.to_owned(), serial }, receiver))
    }

    /// Passes a message to its stream. One that begins a stream is returned; others of an unknown stream are answered: there is none.
    /// What has no room is lost.
    pub(super) fn pass(&self, role: Role, message: &Message, outbox: &Outbox) -> Option<(String, Subject)> {
        let number = number(&message.subject)?;
        let heard = match message.status {
            Some(StatusCode::NO_RESPONDERS) => Heard::Nobody,
            Some(_) => return None,
            None => Heard::Packet(Packet::decode(&message.payload)?),
        };
        if let Some((_, stream)) = self.lock().by_number.get(number) {
            let _ = stream.try_send(heard);
            return None;
        }
        let reply = message.reply.as_ref().filter(|reply| is_other_end(role, reply, number))?;
        match heard {
            Heard::Packet(Packet::Open) => return Some((number.to_owned(), reply.clone())),
            Heard::Packet(Packet::Data(..) | Packet::Close(_) | Packet::Ask(_)) => {
                outbox.send_if_idle(reply.clone(), Packet::Reset.encode());
            }
            Heard::Packet(Packet::Ack(_) | Packet::Reset) | Heard::Nobody => {}
        }
        None
    }

    /// Ends all streams: this process has lost its name.
    pub(super) fn fence(&self) {
        let mut streams = self.lock();
        streams.young.clear();
        streams.by_number.clear();
    }
}

impl Place {
    /// The stream has an owner that talks: it keeps its place.
    pub(super) fn keep(&self) {
        self.board.lock().young.remove(&self.serial);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut streams = self.board.lock();
        streams.young.remove(&self.serial);
        if streams.by_number.get(&self.number).is_some_and(|(serial, _)| *serial == self.serial) {
            streams.by_number.remove(&self.number);
        }
    }
}

/// The number of the stream of a subject.
fn number(subject: &str) -> Option<&str> {
    subject.split('.').nth(4).filter(|number| is_number(number))
}

/// Whether a reply subject is that of the other end of this stream: nothing is published anywhere else, whatever a message asks for.
fn is_other_end(role: Role, reply: &str, stream: &str) -> bool {
    let Some(rest) = reply.strip_prefix(SUBJECTS).and_then(|rest| rest.strip_prefix('.')) else { return false };
    let tokens: Vec<&str> = rest.split('.').collect();
    match (role, &tokens[..]) {
        (Role::Agent, ["from", client, number]) => is_number(client) && *number == stream,
        (Role::Coordinator, ["to", epoch, number, name @ ..]) => {
            is_number(epoch) && *number == stream && name.iter().all(|part| !part.contains(['*', '>']))
        }
        _ => false,
    }
}

fn is_number(text: &str) -> bool {
    (1..=MOST_LETTERS).contains(&text.len()) && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_other_end_of_a_stream_is_answered() {
        for (role, reply) in [(Role::Agent, "thru.v1.from.ab12.77"), (Role::Coordinator, "thru.v1.to.5.77.n1.example")]
        {
            assert!(is_other_end(role, reply, "77"));
            assert!(!is_other_end(role, reply, "78"));
        }
        for reply in [
            "any.subject",
            "$KV.thru-agents.n1",
            "$KV.thru-agents.from.a.77",
            "thru.v1.from.ab12",
            "thru.v1.from.ab12.77.more",
            "thru.v1.from.*.77",
            "thru.v1.from..77",
            "thru.v1.to.5.77.n1",
            "thru.v1.runs.x.77",
            "thru.v1from.a.77",
            "",
        ] {
            assert!(!is_other_end(Role::Agent, reply, "77"), "{reply}");
        }
        for reply in ["thru.v1.from.ab12.77", "thru.v1.to.5.77.>", "thru.v1.to.5.77.*", "thru.v1.to.*.77.n1"] {
            assert!(!is_other_end(Role::Coordinator, reply, "77"), "{reply}");
        }
        assert_eq!(number("thru.v1.to.5.77.n1"), Some("77"));
        assert_eq!(number(&format!("thru.v1.to.5.{}.n1", "7".repeat(33))), None);
    }

    #[test]
    fn a_flood_of_streams_takes_the_places_of_its_own() {
        let board = Switchboard::default();
        let (owned, mut of_owned) = board.accept("owned").unwrap();
        owned.keep();
        let (_own, mut of_own) = board.open("own").unwrap();
        let mut flood: Vec<_> = (0..20_000).map(|number| board.accept(&format!("f{number}")).unwrap()).collect();
        assert_eq!(board.lock().by_number.len(), MOST_YOUNG + 2);
        let empty = mpsc::error::TryRecvError::Empty;
        assert_eq!((of_owned.try_recv().unwrap_err(), of_own.try_recv().unwrap_err()), (empty, empty));
        assert_eq!(flood.last_mut().unwrap().1.try_recv().unwrap_err(), empty);
        assert_eq!(flood[0].1.try_recv().unwrap_err(), mpsc::error::TryRecvError::Disconnected);
        // Who has lost the place does not take away the one of a later stream with the same number.
        let (_again, mut of_again) = board.accept("f0").unwrap();
        drop(flood.remove(0));
        assert_eq!(of_again.try_recv().unwrap_err(), empty);
        drop((flood, owned));
        let left = board.lock();
        assert_eq!((left.by_number.len(), left.young.len()), (2, 1));
        drop(left);
    }
}
