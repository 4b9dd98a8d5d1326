//! One stream over the bus: bytes on this side, messages on the other.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use async_nats::Subject;
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, split};
use tokio::sync::{mpsc, oneshot, watch};

use super::outbox::Outbox;
use super::packet::{MOST, Packet};
use super::switchboard::{Heard, Place};
use super::window::{Broken, Window};

/// Bytes between a stream and its pump.
const BETWEEN: usize = 64 << 10;
/// Time for the last word of a stream that has broken off.
const LAST_WORD_LIMIT: Duration = Duration::from_secs(2);

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

/// Which end this is.
pub(super) enum Side {
    /// It opens the stream; the channel is told once the other end has answered.
    Opens(oneshot::Sender<()>),
    /// The other end has opened it.
    Accepts,
}

/// What a stream has on the bus.
pub(super) struct Ends {
    pub(super) outbox: Outbox,
    /// Counts the connections to the bus.
    pub(super) connections: watch::Receiver<u64>,
    /// The subjects of this end and of the other one.
    pub(super) subjects: [Subject; 2],
    pub(super) place: Place,
    pub(super) heard: mpsc::Receiver<Heard>,
}

/// A stream and the task that pumps it.
pub(super) fn line(ends: Ends, side: Side) -> (BusStream, impl Future<Output = ()> + Send) {
    let (bytes, inner) = tokio::io::duplex(BETWEEN);
    let over: Arc<OnceLock<String>> = Arc::default();
    let stream = BusStream { bytes, over: over.clone() };
    let (window, opened) = match side {
        Side::Opens(opened) => (Window::opening(), Some(opened)),
        Side::Accepts => (Window::accepting(), None),
    };
    (stream, async move {
        let mut inner = inner;
        let mut pump = Pump { ends, window, opened };
        if let Err(why) = pump.run(&mut inner).await {
            // The reason is there before the end of the bytes is.
            let _ = over.set(why.to_string());
            drop(inner);
            let _ = tokio::time::timeout(LAST_WORD_LIMIT, pump.send(&Packet::Reset)).await;
        }
    })
}

/// A message on its way to the client.
type Sending = Pin<Box<dyn Future<Output = bool> + Send>>;

struct Pump {
    ends: Ends,
    window: Window,
    /// Told once the other end has answered.
    opened: Option<oneshot::Sender<()>>,
}

impl Pump {
    async fn run(&mut self, bytes: &mut DuplexStream) -> Result<(), Broken> {
        let (mut reader, mut writer) = split(bytes);
        // Dropped with the stream: what waits for its turn then is not sent any more.
        let mut sending: Option<Sending> = None;
        loop {
            // All that has come is heard, and what its reader takes at once is taken, before it is acknowledged.
            while let Ok(heard) = self.ends.heard.try_recv() {
                self.hear(heard);
            }
            while let Some(front) = self.window.front() {
                let Some(count) = write(&mut writer, front).now_or_never() else { break };
                self.window.took(count);
            }
            let now = Instant::now();
            if sending.is_none() {
                sending = self.window.transmit(now).map(|packet| Box::pin(self.send(&packet)) as Sending);
            }
            if let Some(end) = self.window.end(now) {
                if end.is_ok() {
                    let _ = tokio::time::timeout(LAST_WORD_LIMIT, next(&mut sending)).await;
                }
                return end;
            }
            let (room, wake) = (self.window.room(), self.window.wake(sending.is_some()));
            tokio::select! {
                heard = self.ends.heard.recv() => match heard {
                    Some(heard) => self.hear(heard),
                    None => self.window.break_off(Broken::Dropped),
                },
                is_sent = next(&mut sending), if sending.is_some() => {
                    sending = None;
                    if !is_sent {
                        return Err(Broken::NoBus);
                    }
                }
                data = read(&mut reader, room), if room > 0 => match data {
                    Ok(data) if !data.is_empty() => self.window.write(data),
                    _ => self.window.close(Instant::now()),
                },
                count = write(&mut writer, self.window.front().flatten()), if self.window.front().is_some() => {
                    self.window.took(count);
                }
                () = sleep_until(wake), if wake.is_some() => {}
                changed = self.ends.connections.changed() => match changed {
                    Ok(()) => self.window.reconnected(Instant::now()),
                    Err(_) => return Err(Broken::NoBus),
                },
            }
        }
    }

    fn send(&self, packet: &Packet) -> impl Future<Output = bool> + Send + use<> {
        let (outbox, subjects, bytes) = (self.ends.outbox.clone(), self.ends.subjects.clone(), packet.encode());
        async move { outbox.send(subjects, bytes).await }
    }

    fn hear(&mut self, heard: Heard) {
        let now = Instant::now();
        match heard {
            Heard::Packet(packet) => self.window.hear(packet, now),
            Heard::Nobody => self.window.nobody(now),
        }
        if let Some(opened) = self.opened.take_if(|_| self.window.is_open()) {
            let _ = opened.send(());
        }
        if self.window.is_answered() {
            self.ends.place.keep();
        }
    }
}

/// Reads some bytes, at most `room`; nothing is kept for a stream on which nothing comes.
async fn read<R: AsyncRead + Unpin>(reader: &mut R, room: usize) -> io::Result<Bytes> {
    std::future::poll_fn(|context| {
        let mut space = [const { MaybeUninit::uninit() }; MOST];
        let mut buffer = ReadBuf::uninit(&mut space[..room.min(MOST)]);
        ready!(Pin::new(&mut *reader).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(Bytes::copy_from_slice(buffer.filled())))
    })
    .await
}

/// Writes some of these bytes, or the end, and returns how many. What nobody reads any more counts as written.
async fn write<W: AsyncWrite + Unpin>(writer: &mut W, front: Option<&Bytes>) -> usize {
    match front {
        Some(data) => match writer.write(data).await {
            Ok(count) if count > 0 => count,
            _ => data.len(),
        },
        None => {
            let _ = writer.shutdown().await;
            0
        }
    }
}

async fn next(sending: &mut Option<Sending>) -> bool {
    match sending {
        Some(sending) => sending.await,
        None => true,
    }
}

async fn sleep_until(wake: Option<Instant>) {
    if let Some(wake) = wake {
        tokio::time::sleep_until(wake.into()).await;
    }
}
