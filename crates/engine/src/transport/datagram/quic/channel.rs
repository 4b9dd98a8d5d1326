//! The channel over one bidirectional QUIC stream.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use bytes::Bytes;
use model::{Encryption, SocketFacts};
use quinn_proto::{Dir, ReadError, StreamId, WriteError};

use super::session::Session;
use super::settings;
use crate::core::{Interest, Turn, now_ns};
use crate::transport::{Breaker, Channel, Kind, cipher, options};

/// Longest sleep of a blocking call, so that its machine can check the stop flag.
const STEP: Duration = Duration::from_millis(20);
/// Writes between two reads of the socket: acknowledgements need not be taken one by one.
const WRITES: u32 = 16;
/// How long a finished connection may wait for its acknowledgement, in addition to three round trips.
const LINGER: Duration = Duration::from_millis(100);
const LONGEST_LINGER: Duration = Duration::from_secs(2);

/// A QUIC stream, alone on its connection.
pub(super) struct QuicChannel {
    pub(super) session: Session,
    stream: StreamId,
    blocking: bool,
    writes: u32,
    /// Bytes that were read ahead.
    ahead: Bytes,
    /// This end will send no more.
    finished: bool,
    /// The other end has sent all.
    ended: bool,
}

impl QuicChannel {
    /// Active side: opens the stream once the handshake is over.
    pub(super) fn open(mut session: Session, deadline_ns: u64) -> io::Result<Self> {
        while session.connection.is_handshaking() {
            session.drive()?;
            Self::patient(&mut session, deadline_ns)?;
        }
        session.alive()?;
        let stream = session.connection.streams().open(Dir::Bi).ok_or(io::ErrorKind::ConnectionReset)?;
        Ok(Self::over(session, stream))
    }

    /// Passive side: takes the stream that the other end opens.
    pub(super) fn accept(mut session: Session, deadline_ns: u64) -> io::Result<Self> {
        loop {
            session.drive()?;
            if let Some(stream) = session.connection.streams().accept(Dir::Bi) {
                return Ok(Self::over(session, stream));
            }
            Self::patient(&mut session, deadline_ns)?;
        }
    }

    fn patient(session: &mut Session, deadline_ns: u64) -> io::Result<()> {
        session.alive()?;
        if now_ns() > deadline_ns {
            return Err(io::ErrorKind::TimedOut.into());
        }
        session.wait(STEP)
    }

    fn over(session: Session, stream: StreamId) -> Self {
        Self { session, stream, blocking: true, writes: 0, ahead: Bytes::new(), finished: false, ended: false }
    }

    /// What the stream takes now; 0 when nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.session.connection.send_stream(self.stream).write(bytes) {
            Ok(count) => Ok(count),
            Err(WriteError::Blocked) => {
                self.session.writable = false;
                Ok(0)
            }
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// Fills `into` with what has arrived; 0 if there is nothing, or nothing more will come ([`ended`](Self::ended)).
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = self.ahead.len().min(into.len());
        into[..filled].copy_from_slice(&self.ahead.split_to(filled));
        if self.ended || filled == into.len() {
            return Ok(filled);
        }
        let mut stream = self.session.connection.recv_stream(self.stream);
        let Ok(mut chunks) = stream.read(true) else {
            self.ended = true;
            return Ok(filled);
        };
        let mut result = Ok(());
        while filled < into.len() {
            match chunks.next(into.len() - filled) {
                Ok(Some(chunk)) => {
                    into[filled..filled + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                    filled += chunk.bytes.len();
                }
                Ok(None) => {
                    self.ended = true;
                    break;
                }
                Err(ReadError::Blocked) => {
                    self.session.readable = false;
                    break;
                }
                Err(ReadError::Reset(_)) => {
                    result = Err(io::ErrorKind::ConnectionReset.into());
                    break;
                }
            }
        }
        // New credit for the sender.
        if chunks.finalize().should_transmit() {
            self.session.transmit()?;
        }
        result.map(|()| filled)
    }

    /// The stream has ended. If this end has finished too, it is the first to know, and announces it.
    fn end(&mut self) -> usize {
        if self.finished {
            self.session.close();
        }
        0
    }

    /// Drives the connection, which may change the result of a call; false if there is nothing more to try now.
    fn retry(&mut self, attempt: u32) -> io::Result<bool> {
        self.session.alive()?;
        match attempt {
            0 => self.session.drive()?,
            1 if self.blocking => self.session.wait(STEP)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Channel for QuicChannel {
    const KIND: Kind = Kind::Stream;

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for attempt in 0.. {
            let count = self.write(bytes)?;
            if count > 0 {
                self.writes += 1;
                if self.writes.is_multiple_of(WRITES) {
                    self.session.drive()?;
                } else {
                    self.session.transmit()?;
                }
                return Ok(count);
            }
            if !self.retry(attempt)? {
                break;
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        for attempt in 0.. {
            let count = self.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            if self.ended {
                return Ok(self.end());
            }
            if !self.retry(attempt)? {
                break;
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        self.blocking = !on;
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.session.socket())
    }

    fn waiting(&mut self, turn: Turn) -> io::Result<Turn> {
        self.session.drive()?;
        let until = match turn {
            // Something happened between the machine's call and now.
            Turn::Wait(Interest::Read | Interest::Both, _) if self.session.readable => return Ok(Turn::Again),
            Turn::Wait(Interest::Write | Interest::Both, _) if self.session.writable => return Ok(Turn::Again),
            Turn::Wait(..) if self.session.alive().is_err() => return Ok(Turn::Again),
            Turn::Sleep(until) if self.blocking => {
                let left = Duration::from_nanos(until.saturating_sub(now_ns()));
                self.session.wait(left.min(STEP))?;
                return Ok(Turn::Again);
            }
            Turn::Wait(_, until) | Turn::Sleep(until) => until,
            turn => return Ok(turn),
        };
        // Room to write comes with an acknowledgement, so a read also waits for that.
        let interest = if self.session.is_full() { Interest::Both } else { Interest::Read };
        let due = self.session.due_in().map_or(u64::MAX, |due| now_ns() + due.as_nanos() as u64);
        Ok(Turn::Wait(interest, until.min(due)))
    }

    fn settled(&mut self) -> io::Result<bool> {
        self.session.drive()?;
        if self.ahead.is_empty() && !self.ended {
            let mut next = [0; 64];
            let count = self.read(&mut next)?;
            self.ahead = Bytes::copy_from_slice(&next[..count]);
        }
        if self.ahead.is_empty() { self.session.alive().map(|()| self.ended) } else { Ok(true) }
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.finished = true;
        // A stream that the other end has closed needs no end.
        let _ = self.session.connection.send_stream(self.stream).finish();
        self.session.drive()
    }

    fn facts(&self) -> SocketFacts {
        let path = self.session.connection.stats().path;
        let socket = options::facts(self.session.socket());
        let v6 = socket.peer.as_ref().is_some_and(|peer| peer.starts_with('['));
        let mtu = u32::from(path.current_mtu);
        let rtt = |time: Duration| u64::try_from(time.as_nanos()).ok();
        SocketFacts {
            cc: Some(self.session.cc.into()),
            mss: Some(mtu),
            pmtu: Some(mtu + settings::headers(v6)),
            retransmits: Some(path.lost_packets),
            min_rtt_ns: rtt(path.min_rtt),
            srtt_ns: rtt(path.rtt),
            cwnd: u32::try_from(path.cwnd / u64::from(mtu.max(1))).ok(),
            encryption: settings::SUITE.as_str().map(|cipher| Encryption {
                version: cipher::VERSION.into(),
                cipher: cipher::iana(cipher),
                in_kernel: false,
            }),
            ..socket
        }
    }

    /// Calls on it return by themselves after [`STEP`].
    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}

impl Drop for QuicChannel {
    /// The last data may have to be retransmitted; for a closed TCP socket the kernel does that, here only this
    /// process can.
    fn drop(&mut self) {
        if self.finished && self.ended {
            let limit = (self.session.connection.rtt() * 3 + LINGER).min(LONGEST_LINGER);
            let until = now_ns() + limit.as_nanos() as u64;
            while !self.session.acknowledged
                && self.session.alive().is_ok()
                && now_ns() < until
                && self.session.wait(STEP).is_ok()
            {}
        }
        self.session.close();
    }
}
