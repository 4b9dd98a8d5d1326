//! The one way of a process's messages to its connection to the bus.
//!
//! The client of NATS takes whatever it is given, and keeps it in memory while its connection is slow. So it gets one message, and the
//! next one when that one has been given to the kernel. What waits for its turn belongs to its stream, and is gone with it.

use std::sync::Arc;

use async_nats::{Client, Subject};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::Mutex;

/// Hands messages to the client, one after another. Clones share the turns.
#[derive(Clone)]
pub(super) struct Outbox {
    client: Client,
    turn: Arc<Mutex<()>>,
}

impl Outbox {
    pub(super) fn new(client: Client) -> Self {
        Self { client, turn: Arc::default() }
    }

    /// Does `publish` in its turn, which ends when what it published has been given to the kernel.
    pub(super) async fn in_turn<T>(&self, publish: impl Future<Output = T>) -> T {
        let _turn = self.turn.lock().await;
        let published = publish.await;
        // An error is that of a client that has ended, which `publish` has told or the next one tells.
        let _ = self.client.flush().await;
        published
    }

    /// Sends a message; with the reply subject `from` the server says when nobody is subscribed. False if the client has ended.
    pub(super) async fn send(&self, [from, to]: [Subject; 2], bytes: Bytes) -> bool {
        self.in_turn(self.client.publish_with_reply(to, from, bytes)).await.is_ok()
    }

    /// Sends a message, unless others wait.
    pub(super) fn send_if_idle(&self, to: Subject, bytes: Bytes) {
        if let Ok(_turn) = self.turn.try_lock() {
            let _ = self.client.publish(to, bytes).now_or_never();
        }
    }
}
