//! A framed connection as two queues: one task reads, one writes, and a silent peer is found out.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::proto::frame::{Decoder, MAX_FRAME, MAX_GREETING, MAX_WELCOME, encode};

/// How often a side says that it is still there. With the kernel's user timeout (set by whoever owns the socket) an
/// unreachable peer is noticed this much plus that time-out later.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(400);
/// How long a peer whose kernel still answers may say nothing: it is stopped, or its machine is overwhelmed.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// A connection that sends `S` and receives `R`.
pub(crate) struct Wire<S, R> {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<Result<R, String>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    limit: Arc<AtomicUsize>,
    sends: PhantomData<fn(S)>,
}

/// Sends on a wire from elsewhere.
pub(crate) struct Sender<S> {
    outgoing: mpsc::Sender<Vec<u8>>,
    sends: PhantomData<fn(S)>,
}

impl<S: Serialize + Send + 'static, R: DeserializeOwned + Send + 'static> Wire<S, R> {
    /// Starts the tasks over an open stream. Until [`trust`](Self::trust) frames are limited to a greeting's size; from then on `ping`
    /// is said whenever nothing else is.
    pub(crate) fn start<T>(stream: T, ping: &S) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::over(stream, encode(ping).ok(), MAX_GREETING)
    }

    fn over<T>(stream: T, ping: Option<Vec<u8>>, limit: usize) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let (outgoing, queue) = mpsc::channel(64);
        let (arrivals, incoming) = mpsc::channel(256);
        let limit = Arc::new(AtomicUsize::new(limit));
        let silence = ping.as_ref().map(|_| SILENCE_LIMIT);
        let tasks = vec![
            tokio::spawn(read(reader, arrivals, limit.clone(), silence)),
            tokio::spawn(write(writer, queue, ping, limit.clone())),
        ];
        Self { outgoing, incoming, tasks, limit, sends: PhantomData }
    }

    /// A wire within one host: it says and expects no pings, and trusts the peer.
    pub(crate) fn quiet<T>(stream: T) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::over(stream, None, MAX_FRAME)
    }

    /// Takes a welcome, which holds an inventory, from a peer that has no token to prove.
    pub(crate) fn expect_welcome(&self) {
        self.limit.store(MAX_WELCOME, Ordering::Relaxed);
    }

    /// The peer has shown who it is: messages of any reasonable size are taken from now on, and pings go out.
    pub(crate) fn trust(&self) {
        self.limit.store(MAX_FRAME, Ordering::Relaxed);
    }

    /// Queues a message.
    pub(crate) async fn send(&self, message: &S) -> Result<(), String> {
        self.sender().send(message).await
    }

    /// Queues a message that is a frame already.
    pub(crate) async fn send_frame(&self, frame: Vec<u8>) -> Result<(), String> {
        self.sender().send_frame(frame).await
    }

    /// The next message; an error says how the connection ended.
    pub(crate) async fn recv(&mut self) -> Result<R, String> {
        self.incoming.recv().await.unwrap_or_else(|| Err("the connection was closed".into()))
    }

    /// A message that has arrived already, if there is one.
    pub(crate) fn arrived(&mut self) -> Option<Result<R, String>> {
        match self.incoming.try_recv() {
            Ok(message) => Some(message),
            Err(mpsc::error::TryRecvError::Empty) => None,
            Err(mpsc::error::TryRecvError::Disconnected) => Some(Err("the connection was closed".into())),
        }
    }

    /// A handle that sends from elsewhere.
    pub(crate) fn sender(&self) -> Sender<S> {
        Sender { outgoing: self.outgoing.clone(), sends: PhantomData }
    }

    /// Lets what was queued go out, then closes.
    pub(crate) async fn close(mut self) {
        let (nobody, _) = mpsc::channel(1);
        self.outgoing = nobody;
        if let Some(writer) = self.tasks.pop() {
            let _ = tokio::time::timeout(Duration::from_secs(1), writer).await;
        }
    }
}

impl<S, R> Drop for Wire<S, R> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl<S: Serialize> Sender<S> {
    /// Queues a message.
    pub(crate) async fn send(&self, message: &S) -> Result<(), String> {
        self.send_frame(encode(message).map_err(|error| error.to_string())?).await
    }

    async fn send_frame(&self, frame: Vec<u8>) -> Result<(), String> {
        self.outgoing.send(frame).await.map_err(|_| "the connection was closed".to_owned())
    }
}

impl<S> Clone for Sender<S> {
    fn clone(&self) -> Self {
        Self { outgoing: self.outgoing.clone(), sends: PhantomData }
    }
}

async fn read<R, T>(
    mut reader: R,
    arrivals: mpsc::Sender<Result<T, String>>,
    limit: Arc<AtomicUsize>,
    silence: Option<Duration>,
) where
    R: AsyncRead + Unpin,
    T: DeserializeOwned,
{
    let mut decoder = Decoder::new(MAX_GREETING);
    let mut buffer = vec![0; MAX_GREETING];
    let end = loop {
        decoder.limit = limit.load(Ordering::Relaxed);
        match decoder.take::<T>() {
            Ok(Some(message)) => {
                if arrivals.send(Ok(message)).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => break error.to_string(),
        }
        let arrival = tokio::time::timeout(silence.unwrap_or(Duration::MAX), reader.read(&mut buffer));
        match arrival.await {
            Ok(Ok(0)) => break "the connection was closed".into(),
            Ok(Ok(count)) => decoder.push(&buffer[..count]),
            Ok(Err(error)) => break error.to_string(),
            Err(_) => break format!("silent for {} s", SILENCE_LIMIT.as_secs()),
        }
    };
    let _ = arrivals.send(Err(end)).await;
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::Receiver<Vec<u8>>,
    ping: Option<Vec<u8>>,
    limit: Arc<AtomicUsize>,
) {
    loop {
        let frame = match &ping {
            None => queue.recv().await,
            Some(ping) => match tokio::time::timeout(PING_EVERY, queue.recv()).await {
                Ok(frame) => frame,
                Err(_) if limit.load(Ordering::Relaxed) == MAX_FRAME => Some(ping.clone()),
                // A ping must not come before a proof: the peer waits for that and nothing else.
                Err(_) => continue,
            },
        };
        let Some(frame) = frame else { break };
        if writer.write_all(&frame).await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::message::{FromAgent, ToAgent};

    #[test]
    fn pings_and_long_messages_wait_for_trust() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mine, mut theirs) = tokio::io::duplex(1 << 20);
            let mut wire: Wire<ToAgent, FromAgent> = Wire::start(mine, &ToAgent::Ping);
            let mut bytes = [0; 64];
            let early = tokio::time::timeout(3 * PING_EVERY, theirs.read(&mut bytes)).await;
            assert!(early.is_err(), "a stranger hears no ping");
            wire.trust();
            let count = theirs.read(&mut bytes).await.unwrap();
            assert_eq!(bytes[..count], encode(&ToAgent::Ping).unwrap());
            let long = FromAgent::Refused { reason: "x".repeat(MAX_WELCOME) };
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert_eq!(wire.recv().await, Ok(long.clone()));

            let (mine, mut theirs) = tokio::io::duplex(4 << 20);
            let mut unauthenticated: Wire<ToAgent, FromAgent> = Wire::start(mine, &ToAgent::Ping);
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert!(unauthenticated.recv().await.is_err_and(|why| why.contains("over the limit")));
        });
    }
}
