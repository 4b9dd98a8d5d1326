//! Transfers with checked content (-c), in a slower loop of their own: the engine does not inspect payload.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use peer_wire::nttcp::{Datagrams, Options, PayloadPattern, Seen, Statistics};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{ClockId, clock_gettime};
use socket2::SockRef;

use super::{MARK, MARK_CALLS};

/// Interval between checks for the end.
const STEP: Duration = Duration::from_millis(50);
/// Time limit without data.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// Sends or receives checked data, over a connection or in datagrams between marks. Returns the counts and the
/// number of bytes that differ from the pattern.
pub(super) fn run(
    socket: &OwnedFd,
    requested: &Options,
    expired: &mut dyn FnMut() -> bool,
) -> io::Result<(Statistics, u64)> {
    let options = SockRef::from(socket);
    options.set_nonblocking(false)?;
    options.set_read_timeout(Some(STEP))?;
    options.set_write_timeout(Some(STEP))?;
    let mut exchange = CheckedExchange {
        socket,
        expired,
        last_check: Instant::now(),
        requested,
        content: Content::of(requested),
        counters: Counters::begun(),
    };
    let counted = match (requested.udp, requested.transmits) {
        (_, true) => exchange.transmit()?,
        (false, false) => exchange.receive()?,
        (true, false) => exchange.receive_datagrams()?,
    };
    Ok((counted, exchange.counters.wrong))
}

/// The expected content of the buffers.
enum Content {
    /// A sequence without end.
    Endless(Box<PayloadPattern>),
    /// The same content in each.
    Same(Vec<u8>),
}

impl Content {
    fn of(requested: &Options) -> Self {
        let mut pattern = PayloadPattern::new(&requested.seed);
        if requested.streams_pattern() {
            return Self::Endless(Box::new(pattern));
        }
        let mut buffer = buffer_for(requested);
        pattern.fill(&mut buffer);
        Self::Same(buffer)
    }

    fn fill(&mut self, buffer: &mut [u8]) {
        match self {
            Self::Endless(pattern) => pattern.fill(buffer),
            Self::Same(content) => buffer.copy_from_slice(content),
        }
    }

    /// How many of these bytes, at most a buffer, differ.
    fn mismatches(&mut self, arrived: &[u8]) -> u64 {
        match self {
            Self::Endless(pattern) => pattern.mismatches(arrived),
            Self::Same(content) => arrived.iter().zip(content).map(|(byte, same)| u64::from(byte != same)).sum(),
        }
    }
}

/// A buffer of the requested size.
fn buffer_for(requested: &Options) -> Vec<u8> {
    vec![0; usize::try_from(requested.bytes).unwrap_or(usize::MAX)]
}

struct Counters {
    bytes: u64,
    calls: u64,
    /// Bytes that are not the pattern's.
    wrong: u64,
    started: Instant,
    /// CPU time of this process when it started, seconds.
    cpu_s: f64,
}

impl Counters {
    fn begun() -> Self {
        Self { bytes: 0, calls: 0, wrong: 0, started: Instant::now(), cpu_s: cpu_s() }
    }

    /// The counts so far, plus the calls for marks.
    fn reported(&self, requested: &Options, marks: u64) -> Statistics {
        Statistics {
            bytes: self.bytes,
            buffer_bytes: requested.bytes,
            buffers: self.bytes / requested.bytes,
            calls: self.calls + marks,
            real_s: self.started.elapsed().as_secs_f64(),
            cpu_s: cpu_s() - self.cpu_s,
        }
    }
}

struct CheckedExchange<'a> {
    socket: &'a OwnedFd,
    expired: &'a mut dyn FnMut() -> bool,
    /// Time of the last check.
    last_check: Instant,
    requested: &'a Options,
    content: Content,
    counters: Counters,
}

impl CheckedExchange<'_> {
    fn transmit(&mut self) -> io::Result<Statistics> {
        let mut buffer = buffer_for(self.requested);
        let gap = Duration::from_micros(self.requested.gap_us);
        self.mark()?;
        self.counters = Counters::begun();
        for _ in 0..self.requested.count {
            self.content.fill(&mut buffer);
            let mut left = buffer.as_slice();
            while !left.is_empty() {
                let sent = self.send(left)?;
                left = &left[sent..];
                self.counters.bytes += sent as u64;
                self.counters.calls += 1;
            }
            self.pause(gap)?;
        }
        let counted = self.counters.reported(self.requested, if self.requested.udp { MARK_CALLS[0] } else { 0 });
        match self.requested.udp {
            true => self.mark()?,
            false => SockRef::from(self.socket).shutdown(Shutdown::Write)?,
        }
        Ok(counted)
    }

    /// Sends a mark over UDP.
    fn mark(&mut self) -> io::Result<()> {
        if self.requested.udp {
            self.send(&MARK)?;
        }
        Ok(())
    }

    fn pause(&mut self, gap: Duration) -> io::Result<()> {
        let until = Instant::now() + gap;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            std::thread::sleep(left.min(STEP));
            self.check_deadline()?;
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Statistics> {
        let mut buffer = buffer_for(self.requested);
        loop {
            let count = self.receive_some(&mut buffer)?;
            self.counters.calls += 1;
            if count == 0 {
                return Ok(self.counters.reported(self.requested, 0));
            }
            self.compare(&buffer[..count]);
        }
    }

    fn receive_datagrams(&mut self) -> io::Result<Statistics> {
        let (mut buffer, mut seen) = (buffer_for(self.requested), Datagrams::default());
        loop {
            let count = self.receive_some(&mut buffer)?;
            match seen.take(count) {
                Seen::Start => {
                    self.counters = Counters::begun();
                    self.content = Content::of(self.requested);
                }
                Seen::Data => {
                    self.counters.calls += 1;
                    self.compare(&buffer[..count]);
                }
                Seen::End => return Ok(self.counters.reported(self.requested, MARK_CALLS[1])),
            }
        }
    }

    fn compare(&mut self, arrived: &[u8]) {
        self.counters.wrong += self.content.mismatches(arrived);
        self.counters.bytes += arrived.len() as u64;
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.socket;
        self.retry(|| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    fn receive_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let socket = self.socket;
        self.retry(|| recv(socket, &mut *buffer, RecvFlags::empty()).map(|(count, _)| count))
    }

    /// Repeats a call until it moves data or a limit is reached.
    fn retry(&mut self, mut call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
        let deadline = Instant::now() + IDLE_LIMIT;
        loop {
            // Also for a peer that is never idle.
            self.check_deadline()?;
            match call() {
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) if Instant::now() < deadline => {}
                Err(Errno::AGAIN) => return Err(ErrorKind::TimedOut.into()),
                moved => return Ok(moved?),
            }
        }
    }

    /// Fails after the deadline.
    fn check_deadline(&mut self) -> io::Result<()> {
        if self.last_check.elapsed() >= STEP {
            self.last_check = Instant::now();
            if (self.expired)() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}

/// CPU time of this process so far, seconds.
fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    /// Two ends that are connected.
    fn pair(udp: bool) -> [OwnedFd; 2] {
        if udp {
            let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            a.connect(b.local_addr().unwrap()).unwrap();
            b.connect(a.local_addr().unwrap()).unwrap();
            return [a.into(), b.into()];
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        [out.into(), listener.accept().unwrap().0.into()]
    }

    #[test]
    fn the_pattern_arrives_and_a_wrong_byte_is_counted() {
        // An amount that fits a socket buffer without a reader.
        let options = Options { bytes: 1000, count: 50, compare: true, ..Options::default() };
        for (udp, stream) in [(false, false), (true, false), (true, true)] {
            for seed in [options.seed.as_str(), "another"] {
                let [out, inward] = pair(udp);
                let requested = Options { seed: seed.into(), udp, stream, ..options.clone() };
                let (sent, _) = run(&out, &requested, &mut || false).unwrap();
                let expected = Options { transmits: false, udp, stream, ..options.clone() };
                let (counted, wrong) = run(&inward, &expected, &mut || false).unwrap();
                assert_eq!((sent.bytes, counted.bytes, counted.buffers), (50_000, 50_000, 50));
                let calls = if udp { [53, 51] } else { [sent.calls, counted.calls] };
                assert_eq!([sent.calls, counted.calls], calls, "with the marks of the end");
                assert_eq!(wrong == 0, seed == options.seed, "{wrong} of {requested:?}");
            }
        }
    }

    #[test]
    fn datagrams_of_one_pattern_may_be_lost_and_those_of_a_sequence_may_not() {
        for stream in [false, true] {
            let [out, inward] = pair(true);
            let requested = Options { bytes: 500, count: 2, compare: true, udp: true, stream, ..Options::default() };
            let mut sequence = Content::of(&requested);
            let mut datagrams = [[0; 500]; 3];
            datagrams.iter_mut().for_each(|datagram| sequence.fill(datagram));
            for datagram in [&MARK[..], &datagrams[0], &datagrams[2], &MARK] {
                send(&out, datagram, SendFlags::NOSIGNAL).unwrap();
            }
            let (counted, wrong) = run(&inward, &Options { transmits: false, ..requested }, &mut || false).unwrap();
            assert_eq!((counted.bytes, wrong > 0), (1000, stream), "{wrong}");
        }
    }

    #[test]
    fn a_gap_is_kept_between_buffers() {
        let [out, _inward] = pair(true);
        let requested = Options { bytes: 100, count: 5, compare: true, udp: true, gap_us: 4000, ..Options::default() };
        assert!(run(&out, &requested, &mut || false).unwrap().0.real_s >= 0.02);
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        for udp in [false, true] {
            let [_silent, socket] = pair(udp);
            let requested = Options { transmits: false, udp, compare: true, ..Options::default() };
            assert_eq!(run(&socket, &requested, &mut || true).unwrap_err().kind(), ErrorKind::TimedOut);
        }
    }

    #[test]
    fn a_peer_that_never_stops_is_cut_off_at_the_deadline() {
        let [out, inward] = pair(false);
        let requested = Options { transmits: false, compare: true, ..Options::default() };
        let feeding = std::thread::spawn(move || while send(&out, &[7; 4096], SendFlags::NOSIGNAL).is_ok() {});
        assert_eq!(run(&inward, &requested, &mut || true).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(inward);
        feeding.join().unwrap();
        // A gap of hours between two buffers is cut off as well.
        let [out, _inward] = pair(true);
        let requested = Options { udp: true, compare: true, gap_us: 3_600_000_000, ..Options::default() };
        assert_eq!(run(&out, &requested, &mut || true).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
