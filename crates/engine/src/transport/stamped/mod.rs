//! A channel over a socket whose packets the kernel stamps (`--anatomy`).
//!
//! A part of the exchanges is stamped, in short runs between plain ones. Nothing but these differs from the plain channel: a stamp
//! of the departure is requested call by call, and the reports are read after such a run, before an exchange whose time does not
//! count. The kernel stamps every arrival, which costs it one clock read.

mod arrivals;
mod log;
mod sampling;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use model::{SocketFacts, Stamps};
use rustix::io::Errno;

use self::log::Log;
use self::sampling::Treatment;
use super::sys::stamps;
use super::transient::transient;
use super::{Breaker, Channel, Kind, TcpInfo};

/// The channel.
pub(crate) struct StampedChannel<C> {
    socket: C,
    /// The stamps; `None` before the first exchange and if the kernel refuses.
    log: Option<Box<Log>>,
    /// The kernel's reason.
    refused: Option<String>,
    /// What is done with the current exchange, and its number.
    treatment: Treatment,
    number: u64,
}

impl<C: Channel> StampedChannel<C> {
    pub(crate) fn new(socket: C) -> Self {
        Self { socket, log: None, refused: None, treatment: Treatment::Plain, number: 0 }
    }

    /// Goes on without stamps.
    fn refuse(&mut self, operation: &str, error: &io::Error) {
        (self.log, self.treatment) = (None, Treatment::Plain);
        self.refused = Some(format!("{operation}: {error}"));
    }
}

/// What the plain channel makes of an error.
fn as_plain<C: Channel>(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(errno) if C::KIND == Kind::Datagram && (errno == Errno::NOBUFS || transient(errno)) => {
            io::ErrorKind::WouldBlock.into()
        }
        _ => error,
    }
}

impl<C: Channel> Channel for StampedChannel<C> {
    const KIND: Kind = C::KIND;
    const SHOWS_ALL: bool = C::SHOWS_ALL;
    const STAMPS: bool = true;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(log) = self.log.as_mut().filter(|_| self.treatment == Treatment::Stamped) else {
            let count = self.socket.send(bytes)?;
            if let Some(log) = &mut self.log {
                log.sent(count);
            }
            return Ok(count);
        };
        log.calls_send();
        let fd = self.socket.poll_fd().ok_or(io::ErrorKind::Unsupported)?;
        match stamps::send(fd, bytes) {
            Ok(count) => {
                log.sent_stamped(count);
                Ok(count)
            }
            // The kernel does not know the request (before Linux 4.7).
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                self.refuse("sendmsg with SO_TIMESTAMPING", &error);
                self.socket.send(bytes)
            }
            Err(error) => Err(as_plain::<C>(error)),
        }
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(log) = self.log.as_mut().filter(|_| self.treatment == Treatment::Stamped) else {
            return self.socket.recv(into);
        };
        let fd = self.socket.poll_fd().ok_or(io::ErrorKind::Unsupported)?;
        let (count, stamp) = stamps::receive(fd, into).map_err(as_plain::<C>)?;
        log.took(stamp);
        Ok(count)
    }

    fn start_stamps(&mut self, requests: bool) {
        let stream = C::KIND == Kind::Stream;
        let fd = self.socket.poll_fd().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported));
        match fd.and_then(|fd| stamps::enable(fd, stream)) {
            Ok(counts_from_here) => {
                self.log = Some(Box::new(Log::new(requests, stream, counts_from_here)));
                arrivals::wait_until_stamped();
            }
            Err(error) => self.refuse("SO_TIMESTAMPING", &error),
        }
    }

    #[inline]
    fn exchange(&mut self, number: u64) {
        let Some(log) = &mut self.log else { return };
        // A late or repeated request has been counted.
        if number <= self.number {
            return;
        }
        self.number = number;
        let treatment = Treatment::of(number);
        if self.treatment == Treatment::Stamped {
            log.end();
        }
        match treatment {
            Treatment::Plain => {}
            Treatment::Stamped => log.begin(number),
            Treatment::After => {
                if let Some(fd) = self.socket.poll_fd() {
                    log.settle(fd.as_fd(), number);
                }
            }
        }
        self.treatment = treatment;
    }

    #[inline]
    fn is_disturbed(&self) -> bool {
        self.treatment != Treatment::Plain
    }

    fn take_stamps(&mut self) -> Option<Stamps> {
        self.treatment = Treatment::Plain;
        match self.log.take() {
            Some(log) => Some(log.finish(self.socket.poll_fd()?)),
            None => Some(Stamps { refused: self.refused.clone(), ..Stamps::default() }),
        }
    }

    #[inline]
    fn nonce(&self) -> u64 {
        self.socket.nonce()
    }

    fn answer_handshake(&mut self) {
        self.socket.answer_handshake();
    }

    fn prompt(&mut self) {
        self.socket.prompt();
    }

    fn limit_sends(&mut self) -> io::Result<()> {
        self.socket.limit_sends()
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        self.socket.set_nonblocking(on)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.poll_fd()
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        self.socket.finish_sending()
    }

    fn facts(&self) -> SocketFacts {
        self.socket.facts()
    }

    fn brief_facts(&self) -> SocketFacts {
        self.socket.brief_facts()
    }

    fn tcp(&self) -> Option<TcpInfo> {
        self.socket.tcp()
    }

    fn unsent(&self) -> u64 {
        self.socket.unsent()
    }

    fn socket_drops(&self) -> u64 {
        self.socket.socket_drops()
    }

    fn breaker(&self) -> Breaker {
        self.socket.breaker()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// A channel over a connection, or without a socket, whose packets no kernel stamps.
    struct Pretended(Option<TcpStream>);

    impl Channel for Pretended {
        const KIND: Kind = Kind::Stream;

        fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.as_mut().map_or(Ok(bytes.len()), |socket| socket.write(bytes))
        }

        fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.as_mut().map_or(Ok(into.len()), |socket| socket.read(into))
        }

        fn set_nonblocking(&mut self, _: bool) -> io::Result<()> {
            Ok(())
        }

        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            self.0.as_ref().map(AsFd::as_fd)
        }

        fn finish_sending(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn facts(&self) -> SocketFacts {
            SocketFacts::default()
        }

        fn breaker(&self) -> Breaker {
            Breaker::default()
        }
    }

    /// Exchanges bytes with the other end, which computes for a time before each reply. Returns this end's stamps.
    fn exchange(socket: TcpStream, requests: bool, computes: Duration) -> Stamps {
        socket.set_nodelay(true).unwrap();
        let mut channel = StampedChannel::new(Pretended(Some(socket)));
        channel.start_stamps(requests);
        for number in 0..400 {
            channel.exchange(number);
            if requests {
                assert_eq!((channel.send(&[1]).unwrap(), channel.recv(&mut [0]).unwrap()), (1, 1));
                continue;
            }
            assert_eq!(channel.recv(&mut [0]).unwrap(), 1);
            let begun = Instant::now();
            while begun.elapsed() < computes {}
            assert_eq!(channel.send(&[1]).unwrap(), 1);
        }
        channel.take_stamps().unwrap()
    }

    /// The median of each part, of exchanges with a far end that computes for a time.
    fn medians(computes: Duration) -> [[u64; 3]; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let far = std::thread::spawn(move || exchange(far, false, computes));
        [exchange(near, true, computes), far.join().unwrap()].map(|stamps| {
            assert!(stamps.exchanges.len() > 50, "{stamps:?}");
            [0, 1, 2].map(|part| {
                let mut times: Vec<u64> = stamps.exchanges.iter().map(|one| one.parts_ns[part]).collect();
                times.sort_unstable();
                times[times.len() / 2]
            })
        })
    }

    #[test]
    fn what_the_far_end_computes_is_its_turnaround() {
        let computes = Duration::from_micros(500);
        let ([_, quick], [_, slow]) = (medians(Duration::ZERO), medians(computes));
        // Its time is in that part, and in no other of which the program is the cause.
        assert!(quick[1] < 500_000 && slow[1] >= 500_000 && slow[2] < 500_000, "{quick:?} {slow:?}");
    }

    #[test]
    fn a_refusal_is_reported_and_the_exchanges_go_on() {
        let mut channel = StampedChannel::new(Pretended(None));
        channel.start_stamps(true);
        for number in 1..20 {
            channel.exchange(number);
            assert!(!channel.is_disturbed());
            assert_eq!((channel.send(&[1; 3]).unwrap(), channel.recv(&mut [0; 2]).unwrap()), (3, 2));
        }
        let stamps = channel.take_stamps().unwrap();
        assert!(stamps.refused.unwrap().starts_with("SO_TIMESTAMPING: "), "{:?}", stamps.exchanges);
    }
}
