//! A framed connection as two queues: one task reads, one writes, and a peer that sends nothing is detected.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::connection_end::ConnectionEnd;
use crate::patience::{ControlPath, PING_EVERY};
use protocol::frame::{Decoder, MAX_GREETING, MAX_WELCOME, encode};
use protocol::message::Message;

/// Bytes of messages that wait in each direction; a longer one waits alone. A peer that does not read, or sends more than is used, takes
/// no more memory than this and one message.
const WAITING: usize = 4 << 20;
/// Longest silence of a peer whose kernel still answers, on a short path: its process is stopped, or its machine is overloaded.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(10);
/// No limit: a hundred years.
const FOREVER: Duration = Duration::from_secs(3_155_760_000);

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

/// The trust of a connection and what its peer may send, shared with its two tasks.
#[derive(Debug, Clone)]
struct SharedTrust(Arc<Peer>);

#[derive(Debug)]
struct Peer {
    trust: AtomicU8,
    /// The largest frame that is accepted of a peer with any trust, bytes.
    most: AtomicUsize,
    /// Bytes of the frames that have arrived.
    received: AtomicUsize,
    /// A part of a frame has arrived.
    partial: AtomicBool,
}

impl SharedTrust {
    fn new(trust: PeerTrust) -> Self {
        let (most, received) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
        let partial = AtomicBool::new(false);
        Self(Arc::new(Peer { trust: AtomicU8::new(trust as u8), most, received, partial }))
    }

    fn set(&self, trust: PeerTrust) {
        self.0.trust.store(trust as u8, Ordering::Relaxed);
    }

    fn get(&self) -> PeerTrust {
        match self.0.trust.load(Ordering::Relaxed) {
            0 => PeerTrust::None,
            1 => PeerTrust::Welcome,
            _ => PeerTrust::Full,
        }
    }

    /// The largest frame of an `R` that is accepted, bytes.
    fn max_frame<R: Message>(&self) -> usize {
        self.get().max_frame::<R>().min(self.0.most.load(Ordering::Relaxed))
    }
}

/// What waits, and its part of [`WAITING`].
type Waiting<T> = (T, OwnedSemaphorePermit);

/// A part of `room` for so many bytes, once there is one.
async fn room_for(room: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    room.clone().acquire_many_owned(bytes.min(WAITING) as u32).await.ok()
}

/// A connection that sends `S` and receives `R`.
pub(crate) struct Wire<S, R> {
    outgoing: mpsc::Sender<Waiting<Vec<u8>>>,
    room: Arc<Semaphore>,
    incoming: mpsc::Receiver<Result<Waiting<R>, ConnectionEnd>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    trust: SharedTrust,
    path: ControlPath,
    sends: PhantomData<fn(S)>,
}

/// A clonable sending handle of a wire.
pub(crate) struct Sender<S> {
    outgoing: mpsc::Sender<Waiting<Vec<u8>>>,
    room: Arc<Semaphore>,
    sends: PhantomData<fn(S)>,
}

impl<S: Message, R: Message> Wire<S, R> {
    /// Starts the tasks over an open stream. Until [`trust`](Self::trust) is called, frames are limited to a greeting's size;
    /// after it, `ping` is sent when nothing else was.
    pub(crate) fn start<T>(stream: T, ping: &S) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::start_on(stream, ping, ControlPath::default())
    }

    /// The same over a stream whose path is known: limits follow it.
    pub(crate) fn start_on<T>(stream: T, ping: &S, path: ControlPath) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::over(stream, encode(ping).ok(), PeerTrust::None, path)
    }

    fn over<T>(stream: T, ping: Option<Vec<u8>>, trust: PeerTrust, path: ControlPath) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let (outgoing, queue) = mpsc::channel(64);
        let (arrivals, incoming) = mpsc::channel(256);
        let (trust, room) = (SharedTrust::new(trust), Arc::new(Semaphore::new(WAITING)));
        let silence = ping.as_ref().map(|_| SILENCE_LIMIT);
        let tasks = vec![
            tokio::spawn(read(reader, arrivals, trust.clone(), silence, path.clone())),
            tokio::spawn(write(writer, queue, ping, trust.clone(), path.clone())),
        ];
        Self { outgoing, room, incoming, tasks, trust, path, sends: PhantomData }
    }

    /// A wire within one host: no pings in either direction, and the peer is trusted.
    pub(crate) fn quiet<T>(stream: T) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        Self::over(stream, None, PeerTrust::Full, ControlPath::default())
    }

    /// Accepts a welcome, which contains an inventory, from an agent without a token.
    pub(crate) fn expect_welcome(&self) {
        self.trust.set(PeerTrust::Welcome);
    }

    /// The peer is authenticated: from now on long messages are accepted and pings go out.
    pub(crate) fn trust(&self) {
        self.trust.set(PeerTrust::Full);
    }

    /// From now on the peer sends no message with more bytes than this; one that has arrived already may have more.
    pub(crate) fn accept_up_to(&self, bytes: usize) {
        self.trust.0.most.store(bytes, Ordering::Relaxed);
    }

    /// Its path.
    pub(crate) fn path(&self) -> &ControlPath {
        &self.path
    }

    /// Whether a message is arriving: a long one takes its time on a slow link.
    pub(crate) fn is_receiving(&self) -> bool {
        self.trust.0.partial.load(Ordering::Relaxed)
    }

    /// Bytes of the messages that have arrived.
    pub(crate) fn received_bytes(&self) -> usize {
        self.trust.0.received.load(Ordering::Relaxed)
    }

    /// Queues a message.
    pub(crate) async fn send(&self, message: &S) -> Result<(), ConnectionEnd> {
        self.sender().send(message).await
    }

    /// Queues a message that is already a frame.
    pub(crate) async fn send_frame(&self, frame: Vec<u8>) -> Result<(), ConnectionEnd> {
        self.sender().send_frame(frame).await
    }

    /// The next message; the error is the reason why the connection ended.
    pub(crate) async fn recv(&mut self) -> Result<R, ConnectionEnd> {
        let message = self.incoming.recv().await.unwrap_or_else(|| Err(ConnectionEnd::Closed));
        message.map(|(message, _)| message)
    }

    /// The next message, when it arrives.
    pub(crate) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<R, ConnectionEnd>> {
        let arrived = self.incoming.poll_recv(context);
        arrived.map(|message| message.unwrap_or(Err(ConnectionEnd::Closed)).map(|(message, _)| message))
    }

    /// The next message if it has already arrived.
    pub(crate) fn arrived(&mut self) -> Option<Result<R, ConnectionEnd>> {
        match self.incoming.try_recv() {
            Ok(message) => Some(message.map(|(message, _)| message)),
            Err(mpsc::error::TryRecvError::Empty) => None,
            Err(mpsc::error::TryRecvError::Disconnected) => Some(Err(ConnectionEnd::Closed)),
        }
    }

    /// A sending handle.
    pub(crate) fn sender(&self) -> Sender<S> {
        Sender { outgoing: self.outgoing.clone(), room: self.room.clone(), sends: PhantomData }
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
    pub(crate) async fn send(&self, message: &S) -> Result<(), ConnectionEnd> {
        self.send_frame(encode(message)?).await
    }

    async fn send_frame(&self, frame: Vec<u8>) -> Result<(), ConnectionEnd> {
        let part = room_for(&self.room, frame.len()).await.ok_or(ConnectionEnd::Closed)?;
        self.outgoing.send((frame, part)).await.map_err(|_| ConnectionEnd::Closed)
    }
}

impl<S> Clone for Sender<S> {
    fn clone(&self) -> Self {
        Self { outgoing: self.outgoing.clone(), room: self.room.clone(), sends: PhantomData }
    }
}

async fn read<R, T>(
    mut reader: R,
    arrivals: mpsc::Sender<Result<Waiting<T>, ConnectionEnd>>,
    trust: SharedTrust,
    silence: Option<Duration>,
    path: ControlPath,
) where
    R: AsyncRead + Unpin,
    T: Message,
{
    let mut decoder = Decoder::new(MAX_GREETING);
    let mut buffer = vec![0; MAX_GREETING];
    let room = Arc::new(Semaphore::new(WAITING));
    let mut refreshed = Instant::now();
    let end = loop {
        decoder.limit = trust.max_frame::<T>();
        match decoder.take::<T>() {
            Ok(Some(message)) => {
                trust.0.received.fetch_add(decoder.last(), Ordering::Relaxed);
                let Some(part) = room_for(&room, decoder.last()).await else { return };
                if arrivals.send(Ok((message, part))).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => break error.into(),
        }
        trust.0.partial.store(decoder.is_partial(), Ordering::Relaxed);
        // Also while no ping is due, because this side or the other one sends.
        if refreshed.elapsed() >= PING_EVERY {
            refreshed = Instant::now();
            path.refresh();
        }
        let arrival = path.within(silence.unwrap_or(FOREVER), reader.read(&mut buffer));
        match arrival.await {
            Ok(Ok(0)) => break ConnectionEnd::Closed,
            Ok(Ok(count)) => decoder.push(&buffer[..count]),
            Ok(Err(error)) => break path.end_by(error),
            Err(waited) => break ConnectionEnd::Silent { waited },
        }
    };
    let _ = arrivals.send(Err(end)).await;
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::Receiver<Waiting<Vec<u8>>>,
    ping: Option<Vec<u8>>,
    trust: SharedTrust,
    path: ControlPath,
) {
    loop {
        let frame = match &ping {
            None => queue.recv().await,
            Some(ping) => match tokio::time::timeout(path.ping_every(), queue.recv()).await {
                Ok(frame) => frame,
                Err(_) if trust.get() == PeerTrust::Full => {
                    path.refresh();
                    if write_frame(&mut writer, ping).await.is_err() {
                        return;
                    }
                    continue;
                }
                // The peer accepts nothing but the proof before it.
                Err(_) => continue,
            },
        };
        let Some((frame, part)) = frame else { break };
        if write_frame(&mut writer, &frame).await.is_err() {
            return;
        }
        drop(part);
    }
    let _ = writer.shutdown().await;
}

async fn write_frame<W: AsyncWrite + Unpin>(writer: &mut W, frame: &[u8]) -> std::io::Result<()> {
    writer.write_all(frame).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::{FromAgent, RefusalCause, ToAgent};

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
            let long = FromAgent::Refused { reason: "x".repeat(MAX_WELCOME).into(), cause: RefusalCause::default() };
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert_eq!(wire.recv().await.unwrap(), long);

            let (mine, mut theirs) = tokio::io::duplex(4 << 20);
            let mut unauthenticated: Wire<ToAgent, FromAgent> = Wire::start(mine, &ToAgent::Ping);
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert!(unauthenticated.recv().await.is_err_and(|end| end.to_string().contains("over the limit")));

            // An agent reads no long messages of a client either.
            let (mine, mut theirs) = tokio::io::duplex(4 << 20);
            let mut agent: Wire<FromAgent, ToAgent> = Wire::start(mine, &FromAgent::Ping);
            agent.trust();
            theirs.write_all(&u32::try_from(ToAgent::MAX_FRAME + 1).unwrap().to_be_bytes()).await.unwrap();
            assert!(agent.recv().await.is_err_and(|end| end.to_string().contains("over the limit of 1048576")));
        });
    }

    #[test]
    fn a_peer_that_does_not_read_or_is_not_read_fills_no_memory() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mine, theirs) = tokio::io::duplex(1 << 10);
            let agent: Wire<FromAgent, ToAgent> = Wire::start(mine, &FromAgent::Ping);
            let long = FromAgent::Refused { reason: "x".repeat(1 << 20).into(), cause: RefusalCause::default() };
            let sent = async {
                for count in 0.. {
                    if tokio::time::timeout(PING_EVERY, agent.send(&long)).await.is_err() {
                        return count;
                    }
                }
                unreachable!("it takes no more")
            };
            let most = WAITING >> 20;
            assert!((1..=most).contains(&sent.await), "{most} MiB wait");
            // The other side gets all of them, in pieces of its own size.
            let mut coordinator: Wire<ToAgent, FromAgent> = Wire::start(theirs, &ToAgent::Ping);
            coordinator.trust();
            assert_eq!(coordinator.recv().await.unwrap(), long);
            tokio::time::timeout(SILENCE_LIMIT, agent.send(&long)).await.unwrap().unwrap();
            // What has arrived is not taken: it waits at the sender.
            tokio::time::sleep(PING_EVERY).await;
            assert!(coordinator.received_bytes() <= (most + 3) << 20, "{}", coordinator.received_bytes());

            let (mine, mut theirs) = tokio::io::duplex(4 << 20);
            let mut coordinator: Wire<ToAgent, FromAgent> = Wire::start(mine, &ToAgent::Ping);
            coordinator.trust();
            coordinator.accept_up_to(100);
            theirs.write_all(&encode(&long).unwrap()).await.unwrap();
            assert!(coordinator.recv().await.is_err_and(|end| end.to_string().contains("over the limit of 100")));
        });
    }
}
