//! An open connection as patterns see it: its system calls, and what breaks it from another thread.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use model::{Engine, SocketFacts};

use super::{Mark, Operations, TcpInfo, sys};
use crate::EngineError;
use crate::pattern::Turn;
use crate::runner::{Flow, FlowOf, FlowSetup};

/// The kinds of channel that patterns tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes without borders, in order, none lost.
    Stream,
    /// Messages with borders that may be lost, doubled or reordered.
    Datagram,
    /// No other end.
    Alone,
}

/// The system calls of one open connection. Errors of kind `WouldBlock` mean "not now", also from a blocking call that timed
/// out.
pub(crate) trait Channel: Send + 'static {
    /// What kind it is, known when a pattern is compiled for it.
    const KIND: Kind;

    /// Whether all that has arrived shows in its descriptor: after a read that was not filled nothing is left, and what comes
    /// later wakes a thread that waits there. Not so where this process keeps received bytes of its own.
    const SHOWS_ALL: bool = false;

    /// A flow over it.
    fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>
    where
        Self: Sized,
    {
        FlowOf::boxed(self, setup)
    }

    /// Hands bytes to the transport; may take fewer than given (a datagram channel takes all or none).
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Takes bytes from the transport; 0 means that the other end has finished (for datagrams: an empty message).
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Makes ready the ways that the spec asks for, with blocks of `block` bytes. Transports that have only the plain ones
    /// leave this alone; the spec was checked against [`sends`](super::Transport::sends) and [`receives`](super::Transport::receives).
    fn equip(&mut self, engine: &Engine, sends: bool, block: usize) -> io::Result<()> {
        let _ = (engine, sends, block);
        Ok(())
    }

    /// Hands `part` of a block of payload to the transport. The bytes that arrive are as many, but may be others than those
    /// of the block: no receiver of a stream looks at them.
    #[inline]
    fn send_part(&mut self, block: &[u8], part: Range<usize>) -> io::Result<usize> {
        self.send(&block[part])
    }

    /// Lets each message go at once, whatever is still unacknowledged and whatever the spec's end asks of its streams.
    fn prompt(&mut self) {}

    /// Lets a blocking receiver of payload rest while a sender nearby goes on, where the transport gains by that.
    fn delay_reads(&mut self) {}

    /// How much payload the next read should take, where nothing speaks against `plain` bytes; never beyond the larger of
    /// that and [`DELAYED_READ_BYTES`](super::GATHERED).
    #[inline]
    fn read_room(&self, plain: usize) -> usize {
        plain
    }

    /// Takes payload that nobody will look at.
    #[inline]
    fn recv_payload(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.recv(into)
    }

    /// Whether the other end is another program: then nothing but payload may go over this connection, and how a leg begins and
    /// ends is agreed elsewhere.
    #[inline]
    fn is_foreign(&self) -> bool {
        false
    }

    /// What its signals carry, which only the two ends know; see [`Signal`](super::Signal).
    #[inline]
    fn nonce(&self) -> u64 {
        0
    }

    /// Until the trial starts, now and then: answers what the other end repeats of its handshake, since our last answer was lost.
    fn answer_handshake(&mut self) {}

    /// Writes a datagram's number, from 0, to its front, which is at least 8 bytes long.
    #[inline]
    fn number(&mut self, datagram: &mut [u8], number: u64) {
        datagram[..8].copy_from_slice(&number.to_le_bytes());
    }

    /// The number that a datagram carries; `None` for one that is no part of the stream.
    #[inline]
    fn number_of(&mut self, datagram: &[u8]) -> Option<u64> {
        datagram.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// How many datagrams of `size` bytes one call may send.
    fn datagrams_per_call(&self, size: usize) -> usize {
        let _ = size;
        1
    }

    /// Sends `bytes` as datagrams of `size` bytes, the last maybe shorter, at most
    /// [`datagrams_per_call`](Self::datagrams_per_call); how many were taken.
    #[inline]
    fn send_datagrams(&mut self, bytes: &[u8], size: usize) -> io::Result<usize> {
        let _ = size;
        self.send(bytes).map(|_| 1)
    }

    /// Receives one datagram or several, and notes where in `into` they lie.
    #[inline]
    fn recv_datagrams(&mut self, into: &mut [u8], marks: &mut Vec<Mark>) -> io::Result<()> {
        let len = self.recv(into)? as u32;
        marks.push(Mark { at: 0, len });
        Ok(())
    }

    /// Switches between blocking and non-blocking calls.
    fn set_nonblocking(&mut self, on: bool) -> io::Result<()>;

    /// Makes blocking sends return what they got rid of after a tenth of a second, so that a sender on a slow path sees the
    /// stop flag in time.
    fn limit_sends(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether a send was asked for that may have gone out but was not counted yet: its machine asks once more before it
    /// does anything else.
    #[inline]
    fn owes(&self) -> bool {
        false
    }

    /// What was submitted to the kernel, where calls are submitted as operations.
    fn operations(&mut self) -> Option<&mut Operations> {
        None
    }

    /// What to wait on, for pollable transports.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// What a thread should do where a machine wants to wait. A channel whose protocol runs in this process adds its own
    /// wishes: a time by which it must be called, or another readiness than the one that the machine means.
    fn waiting(&mut self, turn: Turn) -> io::Result<Turn> {
        Ok(turn)
    }

    /// Whether the flow may be left alone while its thread waits for another one: nothing that it sent still needs this
    /// process, and where its protocol runs in this process the other end's next word is here. The kernel sees to its own
    /// transports.
    fn settled(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Says that this end will send no more.
    fn finish_sending(&mut self) -> io::Result<()>;

    /// Opens the next connection of the same kind; `WouldBlock` while that is on its way. This one, if it was not hung up, stays open
    /// until it is [let go of](Self::let_go).
    fn renew(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes the connection before this one, where that was not hung up.
    fn let_go(&mut self) {}

    /// Closes this connection in both directions; [`renew`](Self::renew) opens the next one.
    fn hang_up(&mut self) -> io::Result<()> {
        self.finish_sending()
    }

    /// What the kernel says of it.
    fn facts(&self) -> SocketFacts;

    /// Of that, what differs between the flows of a trial, for those of a crowd.
    fn brief_facts(&self) -> SocketFacts {
        self.facts()
    }

    /// What the kernel's TCP says of it now, where it is carried by TCP.
    fn tcp(&self) -> Option<TcpInfo> {
        None
    }

    /// Bytes that the other end has not taken yet, as far as the kernel knows.
    fn unsent(&self) -> u64 {
        0
    }

    /// How many datagrams of `size` bytes this end's socket surely holds; `None` where a full one holds the sender back.
    fn receive_room(&self, size: usize) -> Option<u64> {
        let _ = size;
        None
    }

    /// How long the message that was received last had been in this end's socket, ns; 0 where nobody knows. The first call may
    /// do no more than ask the kernel to note arrivals.
    fn waited_ns(&self) -> u64 {
        0
    }

    /// Datagrams dropped at this end's socket.
    fn socket_drops(&self) -> u64 {
        0
    }

    /// Frees a thread that is blocked in a call on this channel.
    fn breaker(&self) -> Breaker;
}

/// Breaks a connection from another thread, so that a blocked call on it returns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker(Option<Arc<AtomicI32>>);

impl Breaker {
    pub(crate) fn of(slot: &Arc<AtomicI32>) -> Self {
        Self(Some(slot.clone()))
    }

    /// Shuts the connection down in both directions. Does nothing for channels whose calls time out by themselves.
    pub(crate) fn break_now(&self) {
        if let Some(slot) = &self.0 {
            let fd = slot.load(Ordering::SeqCst);
            if fd >= 0 {
                sys::sockopt::shutdown_raw(fd);
            }
        }
    }

    /// Bytes that the other end has not acknowledged, 0 where nobody knows: a drain that shrinks them is progress.
    #[must_use]
    pub(crate) fn unsent(&self) -> u64 {
        self.0.as_ref().map_or(0, |slot| sys::sockopt::unsent_raw(slot.load(Ordering::SeqCst)))
    }

    /// What the kernel's TCP says of it; `None` where it is not carried by TCP, or closed.
    pub(crate) fn tcp(&self) -> Option<TcpInfo> {
        TcpInfo::of_number(self.0.as_ref()?.load(Ordering::SeqCst))
    }
}
