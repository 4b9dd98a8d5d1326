//! Ten echoes: round trips and loss of an unloaded path.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

use model::Ping;

use super::echo::Echo;
use super::error::ProbeError;
use super::pace::{Pace, SMALL};

const COUNT: u16 = 10;
/// Between two echoes on a fast path, so that one does not queue behind another.
const GAP: Duration = Duration::from_millis(15);
/// As the ping programs send: 56 bytes of data.
const DATA: usize = 56;

/// The echoes of a probe.
pub(super) struct Pinger {
    peer: IpAddr,
    /// The error if this process may open no socket for them.
    echo: io::Result<Echo>,
    sent: Vec<Option<Instant>>,
    seen: [bool; COUNT as usize],
    times: Vec<u64>,
    failure: Option<io::Error>,
}

impl Pinger {
    pub(super) fn open(peer: SocketAddr) -> Self {
        Self {
            peer: peer.ip(),
            echo: Echo::open(peer),
            sent: Vec::new(),
            seen: [false; COUNT as usize],
            times: Vec::new(),
            failure: None,
        }
    }

    /// Sends the first echo and waits for its answer, which shows how long the path is.
    pub(super) fn first(&mut self, pace: &mut Pace) {
        self.send();
        self.receive_until(Instant::now() + pace.patience(SMALL), 1);
        if let Some(ns) = self.times.first() {
            pace.small(Duration::from_nanos(*ns));
        }
    }

    /// Sends the others; ends when all have answered, or with the probe.
    ///
    /// # Errors
    /// Neither this process nor the program ping can send echoes to the peer.
    pub(super) fn rest(mut self, pace: &Pace) -> Result<Ping, ProbeError> {
        match self.echo {
            Ok(echo) => self.echo = Ok(echo),
            Err(error) => return program(self.peer).ok_or(ProbeError::EchoSocket(error)),
        }
        let (until, gap) = (pace.until(), GAP.max(pace.gap(SMALL)));
        while self.sent.len() < COUNT.into() && Instant::now() < until {
            let next = (Instant::now() + gap).min(until);
            self.send();
            self.receive_until(next, usize::MAX);
        }
        let count = self.sent.iter().flatten().count();
        if let Some(source) = self.failure.take().filter(|_| count == 0) {
            return Err(ProbeError::Echo { peer: self.peer, source });
        }
        self.receive_until(until.max(Instant::now() + pace.patience(SMALL)), count);
        let (method, packet) = self.echo.as_ref().map_or(("", 0), |echo| (echo.method(), DATA + echo.overhead()));
        Ok(digest(method, count as u32, packet as u32, &self.times))
    }

    fn send(&mut self) {
        let Ok(echo) = &self.echo else { return };
        let (at, sequence) = (Instant::now(), self.sent.len() as u16);
        let went = echo.send(sequence, DATA + echo.overhead());
        self.sent.push(went.is_ok().then_some(at));
        self.failure = went.err().or(self.failure.take());
    }

    /// Takes answers until there are `enough` in all, or until then.
    fn receive_until(&mut self, until: Instant, enough: usize) {
        let Ok(echo) = &self.echo else { return };
        while self.times.len() < enough && Instant::now() < until {
            let Some(sequence) = echo.receive(until) else {
                // The error that ended the wait stays readable for a moment.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let index = usize::from(sequence);
            if let (Some(Some(at)), Some(seen)) = (self.sent.get(index), self.seen.get_mut(index))
                && !std::mem::replace(seen, true)
            {
                self.times.push(at.elapsed().as_nanos() as u64);
            }
        }
    }
}

fn digest(method: &str, sent: u32, packet_bytes: u32, times: &[u64]) -> Ping {
    let values: Vec<f64> = times.iter().map(|ns| *ns as f64).collect();
    Ping {
        method: method.into(),
        sent,
        received: times.len() as u32,
        packet_bytes,
        min_ns: times.iter().min().copied(),
        median_ns: model::median(&values).map(|ns| ns as u64),
        max_ns: times.iter().max().copied(),
    }
}

/// The system's program, which usually has the privilege that this process lacks. Four echoes, because it allows
/// ordinary users at most one per 0.2 s.
fn program(peer: IpAddr) -> Option<Ping> {
    let requested = ["-n", "-c", "4", "-i", "0.2", "-W", "1"];
    let output = Command::new("ping").args(requested).arg(peer.to_string()).output().ok()?;
    read(&String::from_utf8_lossy(&output.stdout), if peer.is_ipv6() { 104 } else { 84 })
}

/// The output of iputils' and BusyBox's ping: a line with `time=0.045 ms` for each reply, and `4 packets transmitted`.
fn read(text: &str, packet_bytes: u32) -> Option<Ping> {
    let time = |line: &str| {
        let milliseconds: f64 = line.split_once("time=")?.1.split_ascii_whitespace().next()?.parse().ok()?;
        Some((milliseconds * 1e6).round() as u64)
    };
    let line = text.lines().find(|line| line.contains("packets transmitted"))?;
    let sent: u32 = line.split_ascii_whitespace().next()?.parse().ok()?;
    let times: Vec<u64> = text.lines().filter_map(time).collect();
    (sent > 0).then(|| digest("ping", sent, packet_bytes, &times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_lines_are_read() {
        let text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
            64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.200 ms\n\
            64 bytes from 192.0.2.1: icmp_seq=2 ttl=64 time=0.100 ms\n\
            64 bytes from 192.0.2.1: icmp_seq=4 ttl=64 time=0.400 ms\n\n\
            --- 192.0.2.1 ping statistics ---\n4 packets transmitted, 3 received, 25% packet loss, time 603ms\n";
        let ping = read(text, 84).unwrap();
        assert_eq!((ping.sent, ping.received), (4, 3));
        assert_eq!((ping.min_ns, ping.median_ns, ping.max_ns), (Some(100_000), Some(200_000), Some(400_000)));
        assert_eq!(read("ping: socket: Operation not permitted\n", 84), None);
    }

    #[test]
    fn without_replies_there_are_no_times() {
        let ping = digest("icmp-socket", 10, 84, &[]);
        assert_eq!((ping.received, ping.min_ns, ping.median_ns, ping.max_ns), (0, None, None, None));
        assert_eq!(digest("icmp-socket", 2, 84, &[30, 10]).median_ns, Some(20));
    }
}
