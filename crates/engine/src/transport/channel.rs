//! An open connection as patterns see it: its system calls.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use model::{SocketFacts, Spec, Stamps};

use super::breaker::Breaker;
use super::flow::{BoxFlow, Flow, FlowSetup};
use super::operations::Operations;
use super::sys::batch::DatagramMark;
use super::tcp_info::TcpInfo;
use crate::core::{EngineError, Turn};

/// The kinds of channel that patterns distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A byte stream without message boundaries, in order, without loss.
    Stream,
    /// Messages with boundaries that may be lost, duplicated or reordered.
    Datagram,
    /// No other end.
    Alone,
}

/// The system calls of one open connection. Errors of kind `WouldBlock` mean "not now", also from a blocking call that
/// timed out.
///
/// The methods with a type that only this crate names are for its own transports; all of them have a default.
#[allow(private_interfaces, reason = "so that other crates cannot implement them")]
pub trait Channel: Send + 'static {
    /// Its kind, known when a pattern is compiled for it.
    const KIND: Kind;

    /// Whether all arrived data shows in its descriptor: after a read that was not filled nothing is left, and what
    /// arrives later wakes a thread that waits there. False if this process buffers received bytes itself.
    const SHOWS_ALL: bool = false;

    /// Whether it has stamps of its exchanges, so that the machine must tell their [numbers](Self::exchange).
    const STAMPS: bool = false;

    /// A flow over it, or over the channel that takes its place in such a flow.
    fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>
    where
        Self: Sized,
    {
        self.box_flow(setup)
    }

    /// Passes bytes to the transport; may take fewer than given (a datagram channel takes all or none).
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Takes bytes from the transport; 0 means that the other end has finished (for datagrams: an empty message).
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Prepares the send and receive methods of the spec for blocks of `block` bytes. Transports with plain methods
    /// only need not implement this; the spec was checked against [`sends`](super::Transport::sends) and
    /// [`receives`](super::Transport::receives).
    fn equip(&mut self, spec: &Spec, sends: bool, block: usize) -> io::Result<()> {
        let _ = (spec, sends, block);
        Ok(())
    }

    /// Sends `part` of a block of payload, or that many bytes of payload that it prepared itself.
    #[inline]
    fn send_part(&mut self, block: &[u8], part: Range<usize>) -> io::Result<usize> {
        self.send(&block[part])
    }

    /// Sends each message at once, even with unacknowledged data and whatever the spec requests for streams.
    fn prompt(&mut self) {}

    /// Delays reads of payload on a blocking receiver while a near sender goes on, if the transport gains by that.
    fn delay_reads(&mut self) {}

    /// How much payload the next read should take, if nothing prevents `plain` bytes; never beyond the larger of that
    /// and [`DELAYED_READ_BYTES`](super::delayed_reads::DELAYED_READ_BYTES).
    #[inline]
    fn read_room(&self, plain: usize) -> usize {
        plain
    }

    /// Takes payload that is not read.
    #[inline]
    fn recv_payload(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.recv(into)
    }

    /// Whether the other end is another program: then only payload may go over this connection, and the start and end
    /// of a leg are agreed elsewhere.
    #[inline]
    fn is_to_program(&self) -> bool {
        false
    }

    /// The nonce in its signals, which only the two ends know; see [`Signal`](super::Signal).
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

    /// The number that a datagram carries; `None` if it is not part of the stream.
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
    /// [`datagrams_per_call`](Self::datagrams_per_call); returns how many were taken.
    #[inline]
    fn send_datagrams(&mut self, bytes: &[u8], size: usize) -> io::Result<usize> {
        let _ = size;
        self.send(bytes).map(|_| 1)
    }

    /// Receives one or more datagrams, and records their positions in `into`.
    #[inline]
    fn recv_datagrams(&mut self, into: &mut [u8], marks: &mut Vec<DatagramMark>) -> io::Result<()> {
        let len = self.recv(into)? as u32;
        marks.push(DatagramMark { at: 0, len });
        Ok(())
    }

    /// Switches between blocking and non-blocking calls.
    fn set_nonblocking(&mut self, on: bool) -> io::Result<()>;

    /// Makes blocking sends return with partial results after a tenth of a second, so that a sender on a slow path
    /// sees the stop flag in time.
    fn limit_sends(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether a send may have completed without being counted yet: the machine then calls send once more before
    /// anything else.
    #[inline]
    fn owes(&self) -> bool {
        false
    }

    /// The submitted operations, if calls are submitted as operations.
    fn operations(&mut self) -> Option<&mut Operations> {
        None
    }

    /// The descriptor to wait on, for pollable transports.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// What a thread should do when a machine wants to wait. A channel whose protocol runs in this process adds its
    /// own needs: a time by which it must be called, or a readiness other than the machine's.
    fn waiting(&mut self, turn: Turn) -> io::Result<Turn> {
        Ok(turn)
    }

    /// Whether the flow may be left alone while its thread waits for another one: nothing that it sent still needs
    /// this process, and if its protocol runs in this process, the other end's next message is here. For the kernel's
    /// own transports this is always so.
    fn settled(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Announces that this end will send no more.
    fn finish_sending(&mut self) -> io::Result<()>;

    /// Opens the next connection of the same kind; `WouldBlock` while it is being opened. This one, if it was not hung
    /// up, stays open until it is [let go of](Self::let_go).
    fn renew(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes the previous connection, if it was not hung up.
    fn let_go(&mut self) {}

    /// Closes this connection in both directions; [`renew`](Self::renew) opens the next one.
    fn hang_up(&mut self) -> io::Result<()> {
        self.finish_sending()
    }

    /// The kernel's facts about it.
    fn facts(&self) -> SocketFacts;

    /// Of these, what differs between the flows of a trial, for trials of many flows.
    fn brief_facts(&self) -> SocketFacts {
        self.facts()
    }

    /// What the kernel's TCP reports of it now, if TCP carries it.
    fn tcp(&self) -> Option<TcpInfo> {
        None
    }

    /// Bytes that the other end has not taken yet, as far as the kernel knows.
    fn unsent(&self) -> u64 {
        0
    }

    /// How many datagrams of `size` bytes this end's socket certainly holds; `None` if a full socket blocks the
    /// sender.
    fn receive_room(&self, size: usize) -> Option<u64> {
        let _ = size;
        None
    }

    /// How long the last received message had been in this end's socket, ns; 0 if unknown. The first call may only
    /// make the kernel record arrivals.
    fn waited_ns(&self) -> u64 {
        0
    }

    /// From now on the kernel stamps a part of the exchanges; this end requests or answers.
    fn start_stamps(&mut self, requests: bool) {
        let _ = requests;
    }

    /// The next exchange has this number, from 0 for the first.
    #[inline]
    fn exchange(&mut self, number: u64) {
        let _ = number;
    }

    /// Whether the current exchange is stamped, or its time is not that of a plain one because of those before it.
    #[inline]
    fn is_disturbed(&self) -> bool {
        false
    }

    /// The stamps since [`start_stamps`](Self::start_stamps); `None` without it.
    fn take_stamps(&mut self) -> Option<Stamps> {
        None
    }

    /// Datagrams dropped at this end's socket.
    fn socket_drops(&self) -> u64 {
        0
    }

    /// Unblocks a thread that is blocked in a call on this channel.
    fn breaker(&self) -> Breaker;
}
