//! Which messages belong to which stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Message, StatusCode};
use tokio::sync::mpsc;

use super::line::Heard;
use super::packet::Packet;

/// Most messages that wait for a stream: more than its window, so that what is sent again has room, too.
const MOST_WAITING: usize = 256;
/// Most streams of one process.
const MOST_STREAMS: usize = 8192;

/// The streams of a process, by the number that their subjects end in.
#[derive(Debug, Clone, Default)]
pub(super) struct Switchboard(Arc<Mutex<HashMap<String, mpsc::Sender<Heard>>>>);

/// A stream's place on the switchboard; dropping it frees the place.
pub(super) struct Place {
    board: Switchboard,
    number: String,
}

impl Switchboard {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Heard>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new stream; `None` if the number is taken, or there are too many.
    pub(super) fn add(&self, number: &str) -> Option<(Place, mpsc::Receiver<Heard>)> {
        let mut streams = self.lock();
        if streams.len() >= MOST_STREAMS || streams.contains_key(number) {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        streams.insert(number.to_owned(), sender);
        Some((Place { board: self.clone(), number: number.to_owned() }, receiver))
    }

    /// Passes a message on; returns it if its stream is not known. What has no room is sent again by the other end.
    pub(super) fn pass(&self, number: &str, message: &Message) -> Option<Packet> {
        let heard = match message.status {
            Some(StatusCode::NO_RESPONDERS) => Heard::Nobody,
            Some(_) => return None,
            None => Heard::Packet(Packet::decode(&message.payload)?),
        };
        let unknown = match self.lock().get(number) {
            Some(stream) => {
                let _ = stream.try_send(heard);
                return None;
            }
            None => heard,
        };
        match unknown {
            Heard::Packet(packet) => Some(packet),
            Heard::Nobody | Heard::Fenced => None,
        }
    }

    /// Ends all streams: this process has lost its name.
    pub(super) fn fence(&self) {
        for (_, stream) in self.lock().drain() {
            let _ = stream.try_send(Heard::Fenced);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.board.lock().remove(&self.number);
    }
}
