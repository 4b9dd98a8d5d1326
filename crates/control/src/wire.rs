//! A framed connection as two queues: one task reads, one writes, and a peer that sends nothing is detected.

use std::io::ErrorKind;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::proto::frame::{Decoder, MAX_GREETING, MAX_WELCOME, encode};
use crate::proto::message::Message;

/// Longest time without a message: a ping is sent then. With the kernel's user timeout (set by the owner of the socket), an
/// unreachable peer is detected after this time plus that timeout.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(400);
/// Longest silence of a peer whose kernel still answers: its process is stopped, or its machine is overloaded.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// How far the peer is known. It decides which frames are accepted and whether pings go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum PeerTrust {
    /// Unknown: frames of a greeting's size only, no pings.
    None,
    /// An agent without a token, whose welcome may be long; no pings yet.
    Welcome,
    /// Authenticated: long frames, and pings go out.
    Full,
}

impl PeerTrust {
    /// The largest frame of an `R` that is accepted, bytes.
    fn max_frame<R: Message>(self) -> usize {
        match self {
            Self::None => MAX_GREETING,
            Self::Welcome => MAX_WELCOME,
            Self::Full => R::MAX_FRAME,
        }
    }
}

/// The trust of a connection, shared with its two tasks.
#[derive(Debug, Clone)]
struct SharedTrust(Arc<AtomicU8>);

impl SharedTrust {
    fn new(trust: PeerTrust) -> Self {
        Self(Arc::new(AtomicU8::new(trust as u8)))
    }

    fn set(&self, trust: PeerTrust) {
        self.0.store(trust as u8, Ordering::Relaxed);
    }

    fn get(&self) -> PeerTrust {
        match self.0.load(Ordering::Relaxed) {
            0 => PeerTrust::None,
            1 => PeerTrust::Welcome,
            _ => PeerTrust::Full,
        }
    }
}

/// A connection that sends `S` and receives `R`.
pub(crate) struct Wire<S, R> {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<Result<R, String>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    trust: SharedTrust,
    sends: PhantomData<fn(S)>,
}

/// A clonable sending handle of a wire.
pub(crate) struct Sender<S> {
    outgoing: mpsc::Sender<Vec<u8>>,
    sends: PhantomData<fn(S)>,
}

impl<S: Message, R: Message> Wire<S, R> {
    /// Starts the tasks over an open stream. Until [`trust`](Self::trust) is called, frames are limited to a greeting's size;
    /// after it, `ping` is sent when nothing else was.
    pub(crate) fn start<T>(stream: T, ping: &S) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::over(stream, encode(ping).ok(), PeerTrust::None)
    }

    fn over<T>(stream: T, ping: Option<Vec<u8>>, trust: PeerTrust) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let (outgoing, queue) = mpsc::channel(64);
        let (arrivals, incoming) = mpsc::channel(256);
        let trust = SharedTrust::new(trust);
        let silence = ping.as_ref().map(|_| SILENCE_LIMIT);
        let tasks = vec![
            tokio::spawn(read(reader, arrivals, trust.clone(), silence)),
            tokio::spawn(write(writer, queue, ping, trust.clone())),
        ];
        Self { outgoing, incoming, tasks, trust, sends: PhantomData }
    }

    /// A wire within one host: no pings in either direction, and the peer is trusted.
    pub(crate) fn quiet<T>(stream: T) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::over(stream, None, PeerTrust::Full)
    }

    /// Accepts a welcome, which contains an inventory, from an agent without a token.
    pub(crate) fn expect_welcome(&self) {
        self.trust.set(PeerTrust::Welcome);
    }

    /// The peer is authenticated: from now on long messages are accepted and pings go out.
    pub(crate) fn trust(&self) {
        self.trust.set(PeerTrust::Full);
    }

    /// Queues a message.
    pub(crate) async fn send(&self, message: &S) -> Result<(), String> {
        self.sender().send(message).await
    }

    /// Queues a message that is already a frame.
    pub(crate) async fn send_frame(&self, frame: Vec<u8>) -> Result<(), String> {
        self.sender().send_frame(frame).await
    }

    /// The next message; the error is the reason why the connection ended.
    pub(crate) async fn recv(&mut self) -> Result<R, String> {
        self.incoming.recv().await.unwrap_or_else(|| Err("the connection was closed".into()))
    }

    /// The next message if it has already arrived.
    pub(crate) fn arrived(&mut self) -> Option<Result<R, String>> {
        match self.incoming.try_recv() {
            Ok(message) => Some(message),
            Err(mpsc::error::TryRecvError::Empty) => None,
            Err(mpsc::error::TryRecvError::Disconnected) => Some(Err("the connection was closed".into())),
        }
    }

    /// A sending handle.
    pub(crate) fn sender(&self) -> Sender<S> {
        Sender { outgoing: self.outgoing.clone(), sends: PhantomData }
    }

    /// Sends the queued messages, then closes.
    pub(crate) async fn close(mut self) {
        // Dropping the last sender ends the writer after the queue.
        let (closed, _) = mpsc::channel(1);
        self.outgoing = closed;
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

impl<S: Message> Sender<S> {
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
    trust: SharedTrust,
    silence: Option<Duration>,
) where
    R: AsyncRead + Unpin,
    T: Message,
{
    let mut decoder = Decoder::new(MAX_GREETING);
    let mut buffer = vec![0; MAX_GREETING];
    let end = loop {
        decoder.limit = trust.get().max_frame::<T>();
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
            // A process that was killed leaves no farewell of TLS.
            Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => break "the connection was closed".into(),
            Ok(Err(error)) => break error.to_string(),
            Err(_) => break format!("it sent nothing for {} s", SILENCE_LIMIT.as_secs()),
        }
    };
    let _ = arrivals.send(Err(end)).await;
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::Receiver<Vec<u8>>,
    ping: Option<Vec<u8>>,
    trust: SharedTrust,
) {
    loop {
        let frame = match &ping {
            None => queue.recv().await,
            Some(ping) => match tokio::time::timeout(PING_EVERY, queue.recv()).await {
                Ok(frame) => frame,
                Err(_) if trust.get() == PeerTrust::Full => Some(ping.clone()),
                // The peer accepts nothing but the proof before it.
                Err(_) => continue,
            },
        };
        let Some(frame) = frame else { break };
        if writer.write_all(&frame).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::message::{FromAgent, RefusalCause, ToAgent};

    #[test]
    fn pings_and_long_messages_wait_for_trust() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mine, mut theirs) = tokio::io::duplex(1 << 20);
            let mut wire: Wire<ToAgent, FromAgent> = Wire::start(mine, &ToAgent::Ping);
            let mut bytes = [0; 64];
            let early = tokio::time::timeout(3 * PING_EVERY, theirs.read(&mut bytes)).await;
            assert!(early.is_err(), "no ping before authentication");
            wire.trust();
            let count = theirs.read(&mut bytes).await.unwrap();
            assert_eq!(bytes[..count], encode(&ToAgent::Ping).unwrap());
            let long = FromAgent::Refused { reason: "x".repeat(MAX_WELCOME), cause: RefusalCause::default() };
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert_eq!(wire.recv().await, Ok(long.clone()));

            let (mine, mut theirs) = tokio::io::duplex(4 << 20);
            let mut unauthenticated: Wire<ToAgent, FromAgent> = Wire::start(mine, &ToAgent::Ping);
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert!(unauthenticated.recv().await.is_err_and(|why| why.contains("over the limit")));

            // An agent reads no long messages of a client either.
            let (mine, mut theirs) = tokio::io::duplex(4 << 20);
            let mut agent: Wire<FromAgent, ToAgent> = Wire::start(mine, &FromAgent::Ping);
            agent.trust();
            theirs.write_all(&u32::try_from(ToAgent::MAX_FRAME + 1).unwrap().to_be_bytes()).await.unwrap();
            assert!(agent.recv().await.is_err_and(|why| why.contains("over the limit of 1048576")));
        });
    }
}
