//! The agent's side of its helper.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use engine::transport::local::{recv_fd, send_fd};
use engine::transport::{AssistError, Buffer, PrivilegedOption};
use host::capture::{Packets, Tap};
use tokio::io::AsyncWriteExt;

use super::message::{Answer, Request, SESSION, SocketOption};
use super::no_packets::NoPackets;
use super::session::Session;
use super::{Helper, sockets};
use crate::connection_end::ConnectionEnd;
use crate::wire::Wire;

/// The byte with which a socket is passed.
const LISTENER: u8 = b'L';

/// A session with a helper. Dropping it makes the helper put everything back.
pub(crate) struct Client {
    wire: Wire<Request, Answer>,
    /// Requests without an answer: a caller that was cancelled has left its own.
    unanswered: usize,
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// The helper cannot be reached.
    pub(crate) async fn connect(helper: &Helper) -> io::Result<Self> {
        match helper {
            Helper::Here(powers) => {
                let (mine, theirs) = tokio::io::duplex(64 << 10);
                tokio::spawn(Session::new(powers.clone()).serve_here(theirs));
                Ok(Self::over(Wire::quiet(mine)))
            }
            Helper::At(path) => {
                let mut stream = tokio::net::UnixStream::connect(path).await?;
                stream.write_all(&[SESSION]).await?;
                let wire = Wire::start(stream, &Request::Ping);
                wire.trust();
                Ok(Self::over(wire))
            }
        }
    }

    fn over(wire: Wire<Request, Answer>) -> Self {
        Self { wire, unanswered: 0 }
    }

    /// Whether the helper has ended, and put everything back or left it to the next one.
    pub(crate) fn has_ended(&mut self) -> bool {
        while let Some(answer) = self.wire.arrived() {
            match answer {
                Ok(Answer::Ping) => {}
                // That of a caller that was cancelled.
                Ok(_) => self.unanswered = self.unanswered.saturating_sub(1),
                Err(_) => return true,
            }
        }
        false
    }

    /// Waits until the helper has ended; for ever without a session.
    pub(crate) async fn ended(session: Option<&mut Self>) {
        let Some(session) = session else { return std::future::pending().await };
        while let Ok(answer) = session.wire.recv().await {
            if !matches!(answer, Answer::Ping) {
                session.unanswered = session.unanswered.saturating_sub(1);
            }
        }
    }

    /// The answer to a request. A helper that is gone refuses.
    pub(crate) async fn ask(&mut self, request: &Request) -> Answer {
        if let Err(over) = self.wire.send(request).await {
            return gone(&over);
        }
        self.unanswered += 1;
        loop {
            match self.wire.recv().await {
                Ok(Answer::Ping) => continue,
                Ok(answer) => {
                    self.unanswered -= 1;
                    if self.unanswered == 0 {
                        return answer;
                    }
                }
                Err(over) => return gone(&over),
            }
        }
    }
}

fn gone(over: &ConnectionEnd) -> Answer {
    Answer::host(format!(
        "the agent's helper was killed ({over}), and its changes are reverted: try again, or restart the agent"
    ))
}

/// The connection of an agent to the helper that it has started. The helper ends when it is closed.
#[derive(Debug)]
pub struct Lifeline(UnixStream);

impl Lifeline {
    /// A lifeline, and the helper's end of it.
    ///
    /// # Errors
    /// The kernel makes no sockets.
    pub fn pair() -> io::Result<(Self, UnixStream)> {
        let (mine, theirs) = UnixStream::pair()?;
        Ok((Self(mine), theirs))
    }

    /// Passes the helper the socket on which it listens.
    ///
    /// # Errors
    /// The helper has ended.
    pub fn pass(&self, listener: &UnixListener) -> io::Result<()> {
        send_fd(&self.0, listener.as_fd(), &[LISTENER])
    }

    /// What [`pass`](Self::pass) passes to the helper's end; `None` if the agent ended before. Blocks.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn passed(agent: &UnixStream) -> io::Result<Option<UnixListener>> {
        let (_, passed) = recv_fd(agent, &mut [0])?;
        Ok(passed.map(UnixListener::from))
    }
}

/// Sets a socket option with the rights of the helper at `path`.
///
/// # Errors
/// The helper refuses it, or cannot be reached.
pub(crate) fn set_option(
    path: &Path,
    socket: BorrowedFd<'_>,
    option: &PrivilegedOption<'_>,
) -> Result<(), AssistError> {
    let option = match *option {
        PrivilegedOption::Congestion(name) => SocketOption::Congestion { name: name.into() },
        PrivilegedOption::Buffer(Buffer::Send, bytes) => SocketOption::SendBuffer { bytes },
        PrivilegedOption::Buffer(Buffer::Receive, bytes) => SocketOption::ReceiveBuffer { bytes },
    };
    match sockets::ask(path, &Request::Set(option), Some(socket))? {
        Answer::Set => Ok(()),
        Answer::Refused { reason, .. } => Err(AssistError::Refused(reason)),
        _ => Err(io::Error::other("the helper sent an unexpected answer").into()),
    }
}

/// Requests packets from the helper at `path`.
pub(super) fn packets(path: &Path, tap: &Tap) -> Result<Packets, NoPackets> {
    let unreached = |source| NoPackets::Unreached { path: path.to_owned(), source };
    match sockets::ask_for_packets(path, &Request::Capture(tap.clone())).map_err(unreached)? {
        (Answer::Opened, stream) => Packets::relayed(stream).map_err(unreached),
        (Answer::Refused { reason, .. }, _) => Err(NoPackets::Refused(reason)),
        _ => Err(NoPackets::OutOfOrder),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Powers;
    use super::*;

    #[test]
    fn the_answer_of_a_cancelled_request_is_not_taken_for_the_next_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = Client::connect(&Helper::Here(Arc::new(Powers::none()))).await.unwrap();
            let show = Request::Show { keys: vec!["sysctl.net.core.somaxconn".into()] };
            tokio::select! {
                biased;
                answer = client.ask(&show) => panic!("{answer:?} before the helper had a turn"),
                () = std::future::ready(()) => {}
            }
            assert_eq!(client.ask(&Request::Revert).await, Answer::Reverted { changes: Vec::new() });
            assert!(matches!(client.ask(&show).await, Answer::Shown { settings } if settings.len() == 1));
        });
    }
}
