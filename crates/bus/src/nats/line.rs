//! One stream over the bus: bytes on this side, numbered messages on the other.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_nats::{Client, Subject};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, split};
use tokio::sync::{mpsc, oneshot};

use super::packet::{MOST, Packet};
use super::window::{Due, Expected, Sent};

/// Bytes between a stream and its pump.
const BETWEEN: usize = 64 << 10;
/// How long nobody may be subscribed at the other end, as after a restart of the server, before the stream ends.
const NOBODY_LIMIT: Duration = Duration::from_secs(5);
/// How long a stream that this side has closed waits for the other side.
const CLOSING_LIMIT: Duration = Duration::from_secs(10);

/// A byte stream over a bus. Lost messages are sent again; a stream whose other end is gone ends with the reason as its error.
#[derive(Debug)]
pub struct BusStream {
    bytes: DuplexStream,
    over: Arc<OnceLock<String>>,
}

impl AsyncRead for BusStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let ready = Pin::new(&mut self.bytes).poll_read(context, into);
        match (&ready, self.over.get()) {
            (Poll::Ready(Ok(())), Some(why)) if into.filled().len() == before => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, why.clone())))
            }
            _ => ready,
        }
    }
}

impl AsyncWrite for BusStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}

/// What the switchboard has for a stream.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message of the other end.
    Packet(Packet),
    /// Nobody was subscribed there when a message was sent.
    Nobody,
    /// This end has lost its name: the stream is over.
    Fenced,
}

/// Which end this is.
pub(super) enum Side {
    /// It opens the stream; the channel is told once the other end has answered.
    Opens(oneshot::Sender<()>),
    /// The other end has opened it.
    Accepts,
}

/// A stream and the task that pumps it: between `to` and the messages that `heard` gets, which come to `from`.
pub(super) fn line(
    client: Client,
    [from, to]: [Subject; 2],
    heard: mpsc::Receiver<Heard>,
    side: Side,
) -> (BusStream, impl Future<Output = ()> + Send) {
    let (bytes, inner) = tokio::io::duplex(BETWEEN);
    let over: Arc<OnceLock<String>> = Arc::default();
    let stream = BusStream { bytes, over: over.clone() };
    let now = Instant::now();
    let (sent, expected, opened) = match side {
        Side::Opens(opened) => (Sent::new(0, now), Expected::new(1), Some(opened)),
        Side::Accepts => (Sent::new(1, now), Expected::new(1), None),
    };
    let wire = Wire { client, from, to };
    let ended = wire.clone();
    let pump = Pump {
        wire,
        heard,
        sent,
        expected,
        opened,
        pending: VecDeque::new(),
        nobody: None,
        closed: None,
        ended: false,
    };
    (stream, async move {
        // The reason is there before the end of the bytes is.
        let mut inner = inner;
        if let Err(why) = pump.run(&mut inner).await {
            let _ = over.set(why);
            let _ = ended.publish(&Packet::Reset).await;
        }
        drop(inner);
    })
}

#[derive(Clone)]
struct Wire {
    client: Client,
    from: Subject,
    to: Subject,
}

impl Wire {
    async fn publish(&self, packet: &Packet) -> Result<(), String> {
        // With a reply subject the server says when nobody is subscribed.
        let sent = self.client.publish_with_reply(self.to.clone(), self.from.clone(), packet.encode()).await;
        sent.map_err(|error| format!("the connection to the bus has ended: {error}"))
    }
}

struct Pump {
    wire: Wire,
    heard: mpsc::Receiver<Heard>,
    sent: Sent,
    expected: Expected,
    /// Told once the other end has answered.
    opened: Option<oneshot::Sender<()>>,
    /// What has arrived and is not written yet; `None` is the end.
    pending: VecDeque<Option<Bytes>>,
    /// Since when nobody is there.
    nobody: Option<Instant>,
    /// When this side closed the stream.
    closed: Option<Instant>,
    /// The other side has closed it.
    ended: bool,
}

impl Pump {
    async fn run(mut self, bytes: &mut DuplexStream) -> Result<(), String> {
        let (mut reader, mut writer) = split(bytes);
        let mut chunk = BytesMut::with_capacity(MOST);
        if self.opened.is_some() {
            self.send(|_| Packet::Open).await?;
        } else {
            self.wire.publish(&self.expected.ack()).await?;
        }
        while !self.is_over() {
            let wake = match self.sent.due(Instant::now()) {
                Due::GiveUp => return Err("it does not answer over the bus".into()),
                Due::Resend => {
                    for packet in self.sent.kept() {
                        self.wire.publish(packet).await?;
                    }
                    continue;
                }
                Due::Wait(until) => Some(until),
                Due::Idle => self.closed.map(|since| since + CLOSING_LIMIT),
            };
            tokio::select! {
                heard = self.heard.recv() => self.hear(heard).await?,
                read = reader.read_buf(&mut chunk), if self.closed.is_none() && self.sent.has_room() => {
                    if matches!(read, Ok(count) if count > 0) {
                        while !chunk.is_empty() {
                            let data = chunk.split_to(chunk.len().min(MOST)).freeze();
                            self.send(|number| Packet::Data(number, data)).await?;
                        }
                        chunk.reserve(MOST);
                    } else {
                        self.closed = Some(Instant::now());
                        self.send(Packet::Close).await?;
                    }
                }
                written = write_next(&mut writer, &mut self.pending), if !self.pending.is_empty() => {
                    if written? {
                        self.wire.publish(&self.expected.ack()).await?;
                    }
                }
                () = sleep_until(wake), if wake.is_some() => {}
            }
        }
        Ok(())
    }

    /// Whether nothing is left to do.
    fn is_over(&self) -> bool {
        let waited = self.closed.is_some_and(|since| since.elapsed() >= CLOSING_LIMIT);
        self.closed.is_some() && self.sent.is_empty() && (self.ended && self.pending.is_empty() || waited)
    }

    async fn send(&mut self, numbered: impl FnOnce(u64) -> Packet) -> Result<(), String> {
        let packet = self.sent.send(numbered, Instant::now());
        self.wire.publish(&packet).await
    }

    async fn hear(&mut self, heard: Option<Heard>) -> Result<(), String> {
        let now = Instant::now();
        match heard {
            None | Some(Heard::Fenced) => return Err("this host's name on the bus was lost to another agent".into()),
            Some(Heard::Nobody) => {
                let since = *self.nobody.get_or_insert(now);
                if self.opened.is_some() || now.duration_since(since) >= NOBODY_LIMIT {
                    return Err("it has left the bus".into());
                }
                return Ok(());
            }
            Some(Heard::Packet(Packet::Reset)) => {
                return if self.closed.is_some() { Ok(()) } else { Err("the connection was closed".into()) };
            }
            Some(Heard::Packet(Packet::Ack(next))) => {
                self.sent.acknowledged(next, now);
                if let Some(opened) = self.opened.take_if(|_| next > 0) {
                    let _ = opened.send(());
                }
            }
            // The first acknowledgement was lost.
            Some(Heard::Packet(Packet::Open)) => self.wire.publish(&self.expected.ack()).await?,
            Some(Heard::Packet(packet)) => {
                let Some(number) = packet.number() else { return Ok(()) };
                if self.expected.take(number) {
                    match packet {
                        Packet::Data(_, data) => self.pending.push_back(Some(data)),
                        _ => {
                            self.ended = true;
                            self.pending.push_back(None);
                        }
                    }
                } else if self.pending.is_empty() {
                    self.wire.publish(&self.expected.ack()).await?;
                }
            }
        }
        self.nobody = None;
        Ok(())
    }
}

/// Writes some of what is pending, and says whether all of it is written. What nobody reads any more is dropped.
async fn write_next<W: AsyncWrite + Unpin>(
    writer: &mut W,
    pending: &mut VecDeque<Option<Bytes>>,
) -> Result<bool, String> {
    match pending.front_mut() {
        Some(Some(data)) => match writer.write(data).await {
            Ok(count) if count > 0 => data.advance(count),
            _ => data.clear(),
        },
        Some(None) => {
            let _ = writer.shutdown().await;
        }
        None => {}
    }
    let is_written = pending.front().is_some_and(|data| data.as_ref().is_none_or(Bytes::is_empty));
    if is_written {
        pending.pop_front();
    }
    Ok(pending.is_empty())
}

async fn sleep_until(wake: Option<Instant>) {
    if let Some(wake) = wake {
        tokio::time::sleep_until(wake.into()).await;
    }
}
