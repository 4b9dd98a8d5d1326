//! Requests that pass a socket, and those for packets. Each has a connection of its own: what comes with a message must not be read ahead.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::transport::local::{recv_fd, send_fd};
use engine::transport::{Buffer, PrivilegedOption, set_privileged};
use host::capture::Tap;
use text::{Said, say};

use super::Powers;
use super::message::{Answer, Request, SOCKET, SocketOption};
use protocol::frame::{Decoder, encode};
use protocol::message::{Message, Obstacle};

/// Time limit for a request, and for its answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Most captures at the same time: each has 16 MiB of the kernel's memory.
const MOST_CAPTURES: usize = 64;
/// The captures that this process passes on.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// Sends a request to the helper at `path`, with a socket if it has one, and returns the answer. Blocks.
pub(super) fn ask(path: &Path, request: &Request, socket: Option<BorrowedFd<'_>>) -> io::Result<Answer> {
    receive(&asked(path, request, socket)?).map(|(answer, _)| answer)
}

/// Sends a request to the helper at `path`, and returns the answer with the connection, on which packets follow. Blocks.
pub(super) fn ask_for_packets(path: &Path, request: &Request) -> io::Result<(Answer, UnixStream)> {
    let mut stream = asked(path, request, None)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let (mut decoder, mut byte) = (Decoder::new(Request::MAX_FRAME), [0]);
    loop {
        stream.read_exact(&mut byte)?;
        decoder.push(&byte);
        if let Some(answer) = decoder.take().map_err(io::Error::other)? {
            return Ok((answer, stream));
        }
    }
}

fn asked(path: &Path, request: &Request, socket: Option<BorrowedFd<'_>>) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(&[SOCKET])?;
    send(&stream, request, socket)?;
    Ok(stream)
}

/// Answers the request of a connection. Blocks.
pub(super) fn answer(powers: &Powers, stream: &UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    match receive::<Request>(stream)? {
        (Request::Capture(tap), None) => {
            let captures = CAPTURES.fetch_add(1, Ordering::SeqCst);
            let ended = capture(powers, tap, captures, stream);
            CAPTURES.fetch_sub(1, Ordering::SeqCst);
            ended
        }
        (Request::Set(option), Some(socket)) => send(stream, &powers.set_option(socket.as_fd(), &option), None),
        _ => send(stream, &Answer::host("unexpected request"), None),
    }
}

/// Captures while `others` run.
fn capture(powers: &Powers, tap: Tap, others: usize, stream: &UnixStream) -> io::Result<()> {
    if others >= MOST_CAPTURES {
        let reason = format!("this helper already runs {MOST_CAPTURES} captures, which is the limit");
        return send(stream, &Answer::host(reason), None);
    }
    match powers.packets(tap) {
        Ok(packets) => {
            send(stream, &Answer::Opened, None)?;
            packets.pass_on(stream)
        }
        Err(error) => send(stream, &Answer::host(error.say()), None),
    }
}

impl Powers {
    fn set_option(&self, socket: BorrowedFd<'_>, option: &SocketOption) -> Answer {
        let (allowed, option) = match option {
            SocketOption::Congestion { name } => (self.congestion, PrivilegedOption::Congestion(name)),
            SocketOption::SendBuffer { bytes } => (self.buffers, PrivilegedOption::Buffer(Buffer::Send, *bytes)),
            SocketOption::ReceiveBuffer { bytes } => (self.buffers, PrivilegedOption::Buffer(Buffer::Receive, *bytes)),
        };
        if !allowed {
            let reason = say!("this helper does not set this option: start it with `--allow-cc`, or `--allow-buffers`");
            return Answer::Refused { reason, obstacle: Obstacle::Refused };
        }
        set_privileged(socket, &option).map_or_else(|error| Answer::host(error.say()), |()| Answer::Set)
    }
}

fn send<M: Message>(mut stream: &UnixStream, message: &M, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let frame = encode(message).map_err(io::Error::other)?;
    match socket {
        Some(socket) => send_fd(stream, socket, &frame),
        None => stream.write_all(&frame),
    }
}

/// A message, and the socket that came with it.
fn receive<M: Message>(stream: &UnixStream) -> io::Result<(M, Option<OwnedFd>)> {
    stream.set_read_timeout(Some(LIMIT))?;
    let mut decoder = Decoder::new(M::MAX_FRAME);
    let (mut bytes, mut socket) = (vec![0; 4 << 10], None);
    loop {
        let (count, passed) = recv_fd(stream, &mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        socket = passed.or(socket);
        decoder.push(&bytes[..count]);
        if let Some(message) = decoder.take().map_err(io::Error::other)? {
            return Ok((message, socket));
        }
    }
}
