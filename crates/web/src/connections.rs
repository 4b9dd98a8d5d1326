//! Connections of those who have not shown the token yet: few at a time, and for a short time. Other users of the machine could
//! otherwise hold all files of this process with halves of requests.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Sleep, sleep};

/// Most connections without the token; at the limit the oldest one is closed.
const MOST: usize = 128;
/// How long a connection may be without it: the browser loads the page, and asks for data at once.
const LIMIT: Duration = Duration::from_secs(10);
/// Time between two attempts to accept a connection, after one failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is known of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection(Arc<State>);

#[derive(Debug, Default)]
struct State {
    has_token: AtomicBool,
    /// It must end, unless it has the token.
    over: Arc<Notify>,
}

impl Connection {
    /// A request of it had the token: it may stay.
    pub(crate) fn has_token(&self) {
        self.0.has_token.store(true, Ordering::Relaxed);
    }
}

/// A listener that bounds connections without the token.
pub(crate) struct Bounded {
    listener: TcpListener,
    /// The newest last.
    new: VecDeque<Weak<State>>,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, new: VecDeque::new() }
    }

    /// A new connection; at the limit the oldest one without the token is over.
    fn admit(&mut self) -> Connection {
        let connection = Connection::default();
        let waits = |state: &Weak<State>| state.upgrade().is_some_and(|state| !state.has_token.load(Ordering::Relaxed));
        if self.new.len() >= MOST {
            self.new.retain(waits);
        }
        if self.new.len() >= MOST
            && let Some(oldest) = self.new.pop_front().and_then(|state| state.upgrade())
        {
            oldest.over.notify_one();
        }
        self.new.push_back(Arc::downgrade(&connection.0));
        connection
    }
}

impl Listener for Bounded {
    type Io = Limited;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Limited, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => return (Limited::new(stream, self.admit()), peer),
                // Most likely out of file descriptors, or the client has left.
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Bounded>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Self {
        stream.io().connection.clone()
    }
}

/// A connection that ends early if it does not show the token.
pub(crate) struct Limited {
    stream: TcpStream,
    connection: Connection,
    limit: Pin<Box<Sleep>>,
    over: Pin<Box<OwnedNotified>>,
}

impl Limited {
    fn new(stream: TcpStream, connection: Connection) -> Self {
        let over = Box::pin(connection.0.over.clone().notified_owned());
        Self { stream, connection, limit: Box::pin(sleep(LIMIT)), over }
    }
}

impl AsyncRead for Limited {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.connection.0.has_token.load(Ordering::Relaxed)
            && (this.limit.as_mut().poll(context).is_ready() || this.over.as_mut().poll(context).is_ready())
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut this.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Limited {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn the_oldest_connection_without_the_token_makes_room_and_one_with_it_stays() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut bounded = Bounded::new(listener);
            let mut held = Vec::new();
            for _ in 0..MOST + 2 {
                let client = TcpStream::connect(address).await.unwrap();
                let (served, _) = bounded.accept().await;
                if held.is_empty() {
                    served.connection.has_token();
                }
                held.push((client, served));
            }
            // The first one has the token, so that the second one was the oldest.
            let mut byte = [0];
            assert!(held[1].1.read(&mut byte).await.is_err());
            for number in [0, 2, MOST + 1] {
                let (client, served) = &mut held[number];
                client.write_all(b"x").await.unwrap();
                served.read_exact(&mut byte).await.unwrap();
            }
        });
    }

    #[test]
    fn a_connection_that_says_half_a_request_ends_at_its_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut served, _) = Bounded::new(listener).accept().await;
            client.write_all(b"x").await.unwrap();
            served.read_exact(&mut [0]).await.unwrap();
            served.limit.as_mut().reset(tokio::time::Instant::now());
            assert_eq!(served.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
            served.connection.has_token();
            client.write_all(b"y").await.unwrap();
            served.read_exact(&mut [0]).await.unwrap();
        });
    }
}
