//! The channel over a connected datagram socket, UDP or Unix.

pub(super) mod quic;
pub mod udp;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use model::{Engine, ReceiveBy, SendBy, SocketFacts, Spec};
use rustix::net::{RecvFlags, SendFlags};

use super::delayed_reads::DelayedReads;
use super::stamped::StampedChannel;
use super::sys::batch;
use super::transient::transient;
use super::{BoxFlow, Breaker, Channel, DatagramMark, Flow, FlowSetup, Kind, SIGNAL_BYTES, Signal, options, sys};
use crate::core::EngineError;

/// How long a blocking call waits before its machine checks the clock and the stop flag: a lost datagram must not
/// block a thread for ever.
const CALL_LIMIT: Duration = Duration::from_millis(20);

/// A receive buffer of this many bytes, as the kernel reports it, holds what arrives during a read delay, even one
/// prolonged by the scheduler, at every rate seen so far. In a smaller one a delay could lose datagrams that a waiting
/// receiver would have taken.
const ROOMY: usize = 2 << 20;

/// A connected datagram socket.
pub(crate) struct DatagramChannel {
    socket: OwnedFd,
    nonce: u64,
    engine: Engine,
    /// Reads may be delayed while many datagrams arrive per call.
    delayed: Option<DelayedReads>,
}

impl DatagramChannel {
    /// Over a connected socket; `nonce` is that of its hello.
    pub(crate) fn new(socket: OwnedFd, nonce: u64) -> io::Result<Self> {
        let borrowed = socket2::SockRef::from(&socket);
        borrowed.set_nonblocking(false)?;
        borrowed.set_read_timeout(Some(CALL_LIMIT))?;
        borrowed.set_write_timeout(Some(CALL_LIMIT))?;
        Ok(Self { socket, nonce, engine: Engine::default(), delayed: None })
    }
}

impl Channel for DatagramChannel {
    const KIND: Kind = Kind::Datagram;

    fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        if setup.plan.spec.anatomy { StampedChannel::new(self).box_flow(setup) } else { self.box_flow(setup) }
    }

    #[inline]
    fn nonce(&self) -> u64 {
        self.nonce
    }

    fn answer_handshake(&mut self) {
        let mut bytes = [0; SIGNAL_BYTES];
        let waiting = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        // Anything else belongs to the trial and stays where it is.
        while let Ok((_, count)) = rustix::net::recv(&self.socket, &mut bytes, waiting)
            && let Some(Signal::Proof(..)) = Signal::decode(&bytes[..count.min(SIGNAL_BYTES)], self.nonce)
        {
            let _ = rustix::net::recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT);
            let _ = rustix::net::send(&self.socket, &Signal::Ready.encode(self.nonce), SendFlags::NOSIGNAL);
        }
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
            // A full device queue: the datagram was not taken, and the queue drains by itself.
            Err(rustix::io::Errno::NOBUFS) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) if transient(error) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other?),
        }
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match rustix::net::recv(&self.socket, into, RecvFlags::empty()) {
            Err(error) if transient(error) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other?.1),
        }
    }

    fn equip(&mut self, spec: &Spec, sends: bool, _: usize) -> io::Result<()> {
        if !sends && spec.engine.receive == ReceiveBy::Gro {
            batch::join_arrivals(self.socket.as_fd())?;
        }
        self.engine = spec.engine;
        Ok(())
    }

    fn delay_reads(&mut self) {
        let roomy = socket2::SockRef::from(&self.socket).recv_buffer_size().is_ok_and(|bytes| bytes >= ROOMY);
        self.delayed = roomy.then(DelayedReads::of_datagrams);
    }

    fn datagrams_per_call(&self, size: usize) -> usize {
        match self.engine.send {
            SendBy::Mmsg => batch::MMSG,
            SendBy::Gso => batch::GSO_SEGMENTS.min(batch::GSO_BYTES / size.max(1)).max(1),
            _ => 1,
        }
    }

    #[inline]
    fn send_datagrams(&mut self, bytes: &[u8], size: usize) -> io::Result<usize> {
        let sent = match self.engine.send {
            SendBy::Mmsg => batch::send_many(self.socket.as_fd(), bytes, size),
            SendBy::Gso if bytes.len() > size => {
                batch::send_segmented(self.socket.as_fd(), bytes, size as u16).map(|()| bytes.len().div_ceil(size))
            }
            _ => return self.send(bytes).map(|_| 1),
        };
        sent.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
            Some(errno) if errno == rustix::io::Errno::NOBUFS || transient(errno) => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })
    }

    #[inline]
    fn recv_datagrams(&mut self, into: &mut [u8], marks: &mut Vec<DatagramMark>) -> io::Result<()> {
        let pieces = match self.engine.receive {
            ReceiveBy::Mmsg => batch::MMSG,
            ReceiveBy::Gro => batch::GRO_PIECES,
            _ => 1,
        };
        if pieces == 1 {
            let len = self.recv(into)? as u32;
            marks.push(DatagramMark { at: 0, len });
            return Ok(());
        }
        if let Some(delayed) = &mut self.delayed {
            delayed.delay(self.socket.as_fd());
        }
        let before = marks.len();
        let messages = batch::receive_many(self.socket.as_fd(), into, pieces, marks).map_err(|error| {
            match rustix::io::Errno::from_io_error(&error) {
                Some(errno) if transient(errno) => io::ErrorKind::WouldBlock.into(),
                _ => error,
            }
        })?;
        if let Some(delayed) = &mut self.delayed {
            let datagrams = &marks[before..];
            let bytes = datagrams.iter().map(|mark| mark.len as usize).sum();
            delayed.took_datagrams(datagrams.len(), bytes, messages < pieces);
        }
        Ok(())
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, on)?)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn facts(&self) -> SocketFacts {
        let delayed_reads = self.delayed.as_ref().and_then(DelayedReads::delayed_reads);
        SocketFacts { delayed_reads, ..options::facts(self.socket.as_fd()) }
    }

    fn receive_room(&self, size: usize) -> Option<u64> {
        let socket = socket2::SockRef::from(&self.socket);
        let ip = socket.domain().is_ok_and(|domain| domain != socket2::Domain::UNIX);
        let buffer = socket.recv_buffer_size().ok().filter(|_| ip)? as u64;
        // The kernel charges a datagram with the memory it occupies: its headers and the driver's buffer, rounded up
        // to a power of two. Half the receive buffer stays free for drivers that take more, and because memory is
        // released in units of a quarter of the buffer (udp_rmem_release).
        let charge = 512 + (size as u64 + 320).next_power_of_two();
        Some((buffer / 2 / charge).max(1))
    }

    fn waited_ns(&self) -> u64 {
        sys::sockopt::waited_ns(&self.socket).unwrap_or(0)
    }

    fn socket_drops(&self) -> u64 {
        sys::sockopt::drops(&self.socket).unwrap_or(0)
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}
