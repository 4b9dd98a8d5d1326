//! The channel over a connected stream socket: TCP, Unix or vsock.

mod completion;
mod hello;
mod send_method;
mod zerocopy_receive;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use model::{Io, ReceiveBy, SocketFacts, Spec, Strategy};
use rustix::net::{RecvFlags, SendFlags};

use super::delayed_reads::DelayedReads;
use super::stamped::StampedChannel;
use super::sys::watched::WatchedSocket;
use super::{BoxFlow, Breaker, Channel, Flow, FlowSetup, Kind, TcpInfo, options, sys};
use crate::core::{EngineError, may_be_compressed};
use completion::CompletionChannel;
use send_method::SendMethod;
use zerocopy_receive::ZerocopyReceiver;

pub(crate) use hello::{HELLO_LIMIT, exchange_hello, read_hello, receive_welcome, send_hello, welcome};

/// Opens the next connection of a flow that makes one per transaction.
pub(crate) type Renewal = Box<dyn FnMut() -> io::Result<OwnedFd> + Send>;

/// How long a blocking send of a stream may take before it returns with a partial result.
const SEND_LIMIT: Duration = Duration::from_millis(100);

/// How long a blocking read from another program may wait.
const READ_LIMIT: Duration = Duration::from_millis(20);

/// A connected stream socket.
pub(crate) struct StreamChannel {
    /// The connection; of a flow that reconnects, its first connection after a hang-up.
    socket: WatchedSocket<OwnedFd>,
    io: Io,
    /// How payload is sent, where not by plain calls.
    send_method: Option<SendMethod>,
    /// Payload that arrives is discarded in the kernel.
    discards: bool,
    /// Pages of payload that arrive are mapped.
    zerocopy_receiver: Option<ZerocopyReceiver>,
    /// Reads may be delayed while payload arrives quickly.
    delayed: Option<DelayedReads>,
    /// The first connection of a flow that reconnects: it stays open so that either end notices when the other ends.
    lifeline: Option<OwnedFd>,
    /// The previous connection, until it is let go of.
    previous: Option<OwnedFd>,
    renewal: Option<Renewal>,
    finished: bool,
    /// The other end is another program.
    foreign: bool,
}

impl StreamChannel {
    pub(crate) fn new(socket: OwnedFd, io: Io) -> Self {
        Self {
            socket: WatchedSocket::new(socket),
            io,
            send_method: None,
            discards: false,
            zerocopy_receiver: None,
            delayed: None,
            lifeline: None,
            previous: None,
            renewal: None,
            finished: false,
            foreign: false,
        }
    }

    /// A channel to another program.
    pub(crate) fn foreign(socket: OwnedFd, io: Io) -> Self {
        let mut channel = Self::new(socket, io);
        channel.foreign = true;
        channel
    }

    /// A channel that can `renew`.
    pub(crate) fn renewing(socket: OwnedFd, io: Io, renewal: Renewal) -> Self {
        let mut channel = Self::new(socket, io);
        channel.renew_by(renewal);
        channel
    }

    /// Makes it one that can `renew`.
    pub(crate) fn renew_by(&mut self, renewal: Renewal) {
        self.renewal = Some(renewal);
    }

    #[inline]
    fn take_payload(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.discards {
            return Ok(rustix::net::recv(&self.socket, into, RecvFlags::TRUNC)?.1);
        }
        if let Some(zerocopy_receiver) = &mut self.zerocopy_receiver {
            return zerocopy_receiver.recv(self.socket.as_fd(), into);
        }
        self.recv(into)
    }
}

impl Channel for StreamChannel {
    const KIND: Kind = Kind::Stream;
    const SHOWS_ALL: bool = true;

    fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        match setup.strategy {
            Strategy::Uring => CompletionChannel::new(self).box_flow(setup),
            _ if setup.plan.spec.anatomy => StampedChannel::new(self).box_flow(setup),
            _ => self.box_flow(setup),
        }
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(match self.io {
            Io::SendRecv => rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?,
            // The program ignores SIGPIPE, as every Rust program does, so a closed peer is an error here too.
            Io::ReadWrite => rustix::io::write(&self.socket, bytes)?,
        })
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(match self.io {
            Io::SendRecv => rustix::net::recv(&self.socket, into, RecvFlags::empty())?.1,
            Io::ReadWrite => rustix::io::read(&self.socket, into)?,
        })
    }

    fn equip(&mut self, spec: &Spec, sends: bool, block: usize) -> io::Result<()> {
        if sends {
            let varies = may_be_compressed(spec, self.facts().peer.as_deref());
            self.send_method = SendMethod::new(spec, self.socket.as_fd(), block, varies)?;
        } else {
            self.discards = spec.engine.receive == ReceiveBy::Trunc;
            if spec.engine.receive == ReceiveBy::Map {
                self.zerocopy_receiver = Some(ZerocopyReceiver::new(self.socket.as_fd())?);
            }
        }
        Ok(())
    }

    #[inline]
    fn send_part(&mut self, block: &[u8], part: Range<usize>) -> io::Result<usize> {
        match &mut self.send_method {
            None => self.send(&block[part]),
            Some(send_method) => send_method.send(self.socket.as_fd(), block, part),
        }
    }

    fn prompt(&mut self) {
        options::prompt(self.socket.as_fd());
    }

    fn delay_reads(&mut self) {
        self.delayed = Some(DelayedReads::of_bytes());
    }

    #[inline]
    fn read_room(&self, plain: usize) -> usize {
        self.delayed.as_ref().map_or(plain, |delayed| delayed.room(plain))
    }

    #[inline]
    fn recv_payload(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(delayed) = &mut self.delayed {
            delayed.delay(self.socket.as_fd());
        }
        let count = self.take_payload(into)?;
        if let Some(delayed) = &mut self.delayed {
            delayed.took(self.socket.as_fd(), count, count < into.len());
        }
        Ok(count)
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        if let Some(zerocopy_receiver) = &mut self.zerocopy_receiver {
            zerocopy_receiver.set_blocking(!on);
        }
        Ok(rustix::io::ioctl_fionbio(&self.socket, on)?)
    }

    #[inline]
    fn is_to_program(&self) -> bool {
        self.foreign
    }

    fn limit_sends(&mut self) -> io::Result<()> {
        let socket = socket2::SockRef::from(&self.socket);
        if self.foreign {
            // Nothing on the connection marks the end of a leg: its reader has to check the stop flag.
            socket.set_read_timeout(Some(READ_LIMIT))?;
        }
        socket.set_write_timeout(Some(SEND_LIMIT))
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.finished = true;
        Ok(rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write)?)
    }

    fn renew(&mut self) -> io::Result<()> {
        let open = self.renewal.as_mut().ok_or(io::ErrorKind::Unsupported)?;
        let fresh = open()?;
        let old = self.socket.replace(fresh);
        self.finished = false;
        if self.lifeline.is_none() {
            self.lifeline = Some(old);
        } else {
            self.previous = Some(old);
        }
        Ok(())
    }

    fn let_go(&mut self) {
        self.previous = None;
    }

    fn hang_up(&mut self) -> io::Result<()> {
        let Some(lifeline) = self.lifeline.take() else { return self.finish_sending() };
        // Closing after reading to the end has the same effect as a shutdown before it, with one call fewer.
        drop(self.socket.replace(lifeline));
        Ok(())
    }

    fn facts(&self) -> SocketFacts {
        let zerocopy = self.send_method.as_ref().and_then(|send_method| send_method.zerocopy(self.socket.as_fd()));
        let mapped = self.zerocopy_receiver.as_ref().map(ZerocopyReceiver::counts);
        let delayed_reads = self.delayed.as_ref().and_then(DelayedReads::delayed_reads);
        SocketFacts { zerocopy, mapped, delayed_reads, ..options::facts(self.socket.as_fd()) }
    }

    fn brief_facts(&self) -> SocketFacts {
        options::brief_facts(self.socket.as_fd())
    }

    fn tcp(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.socket.as_fd())
    }

    fn unsent(&self) -> u64 {
        // The queue counts a FIN as one byte (TCP's sequence space, RFC 9293), which is not payload.
        sys::sockopt::unsent(&self.socket).saturating_sub(u64::from(self.finished))
    }

    fn breaker(&self) -> Breaker {
        Breaker::of(&self.socket)
    }
}
