//! Our client at a server of iperf 2.

use std::cell::Cell;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use engine::EngineError;
use engine::transport::programs;
use model::{Direction, Role, Spec, Stop, TransportName};
use peer_wire::WireError;
use peer_wire::iperf2::{Counts, Iperf2Error, LAST_WAIT_MS, PEER, Report};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use text::{Text, say};

use super::datagrams::{Front, Numbered};
use super::{request, results};
use crate::plain::{self, Moved, Work};
use crate::{ProgramError, Sides, TrialObserver, line};

/// How long a server may take to acknowledge a header; those before 2.1 never do.
const ACKNOWLEDGEMENT_LIMIT: Duration = Duration::from_secs(1);
/// Pause after a test over UDP. Server 2.1.8 crashes (an assertion in `pthread_mutex_lock`) if new datagrams
/// arrive while it cleans up, also with its own client.
const SERVER_RECOVERY: Duration = Duration::from_secs(1);
/// How long a server may take for its report: one that is flooded reads what waits at its socket first.
const REPORT_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to close after the end of the data.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    observer: &mut dyn TrialObserver,
    cancel: &AtomicBool,
) -> Result<Sides, ProgramError> {
    let begun = Instant::now();
    let (mut last, mut trial) = (None, None);
    for address in line::resolve(host, PEER.port, spec.family)? {
        match programs::dial(spec, address, 0) {
            Ok(first) => {
                trial = Some((first, address));
                break;
            }
            Err(error) => last = Some((address, error)),
        }
    }
    let Some((first, address)) = trial else {
        let none =
            || ProgramError::Resolve { host: host.into(), reason: "no address of the requested IP version".into() };
        return Err(last.map_or_else(none, |(address, error)| unreachable(error, address)));
    };
    let requested = request::header(spec, address.port())?;
    let mut sockets = vec![first];
    for flow in 1..spec.flows {
        sockets.push(programs::dial(spec, address, flow)?);
    }
    let test = Test { spec, address: address.to_string(), cancel, refused: Cell::new(false) };
    if spec.transport == TransportName::Udp {
        return test.datagrams(sockets, Front::new(&requested), begun, observer);
    }
    let mut version = None;
    for socket in &sockets {
        test.send_all(socket, &requested.to_bytes())?;
    }
    for socket in sockets.iter().filter(|_| !requested.reverse && !requested.full_duplex) {
        let mut acknowledgement = [0; 28];
        let Some(count) = test.receive(socket, &mut acknowledgement, ACKNOWLEDGEMENT_LIMIT) else { break };
        version = version.or_else(|| results::version(&acknowledgement[..count]));
    }
    test.streams(sockets, begun, version, observer)
}

/// No server answers at the address, or an option was refused.
fn unreachable(error: EngineError, address: SocketAddr) -> ProgramError {
    match error {
        EngineError::Socket { operation: "connect to", source, .. } => {
            ProgramError::Unreachable { peer: PEER.name, address: address.to_string(), source }
        }
        other => other.into(),
    }
}

/// The host reports that the port of the datagrams is closed.
fn nobody() -> WireError {
    PEER.error("while its report was expected", Iperf2Error::NoReceiver)
}

struct Test<'a> {
    spec: &'a Spec,
    address: String,
    cancel: &'a AtomicBool,
    /// Whether the host has said that nothing receives datagrams on the server's port.
    refused: Cell<bool>,
}

impl Test<'_> {
    fn send_all(&self, socket: &OwnedFd, mut bytes: &[u8]) -> Result<(), ProgramError> {
        while !bytes.is_empty() {
            let sent = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
                .map_err(|source| ProgramError::socket("send to", &self.address, source))?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Receives within a limit; `None` if nothing arrives, 0 at the end of the connection.
    fn receive(&self, socket: &OwnedFd, into: &mut [u8], limit: Duration) -> Option<usize> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && !self.cancel.load(Ordering::SeqCst) {
            if plain::readable(socket) {
                // A reset connection has ended; an ICMP error over UDP may be followed by a datagram.
                match rustix::net::recv(socket, &mut *into, RecvFlags::DONTWAIT) {
                    Ok((_, count)) => return Some(count),
                    Err(_) if self.spec.transport != TransportName::Udp => return Some(0),
                    Err(errno) => self.refused.set(self.refused.get() || errno == Errno::CONNREFUSED),
                }
            }
        }
        None
    }

    fn move_data(
        &self,
        observer: &mut dyn TrialObserver,
        begun: Instant,
        run: impl FnOnce(
            Work,
            &mut dyn FnMut(model::Live),
            &mut dyn FnMut(&engine::Signals, Duration),
        ) -> Result<Moved, ProgramError>,
    ) -> Result<Moved, ProgramError> {
        observer.starting(begun.elapsed().as_nanos() as u64);
        let mut on_step = |signals: &engine::Signals, _: Duration| {
            if self.cancel.load(Ordering::SeqCst) {
                signals.abort();
            }
        };
        let moved = run(Work::new(self.spec, Role::Active), &mut |report| observer.live(report), &mut on_step);
        observer.stopped();
        moved
    }

    fn sides(&self, moved: &Moved, near: model::EndTally, far: model::EndTally, version: Option<String>) -> Sides {
        let near = model::EndTally { cut_short: near.cut_short || self.cancel.load(Ordering::SeqCst), ..near };
        let version = version.unwrap_or_else(|| PEER.name.into());
        Sides { near, far, failure: moved.failure(), elapsed_ns: moved.legs.elapsed_ns, version }
    }

    /// Why a stream from the server ended before its time: nothing but the end of the connection says that the server has finished, and a
    /// server that dies ends it, too.
    fn ended_early(&self, elapsed_ns: u64) -> Option<Text> {
        let Stop::TimeNs(ns) = self.spec.stop else { return None };
        let early = elapsed_ns < ns - ns / 10 && !self.cancel.load(Ordering::SeqCst);
        let [after, of] = [elapsed_ns, ns].map(|ns| model::units::seconds(ns as f64));
        early.then(|| say!("{}: the server closed its connections after {after} of {of}", self.address))
    }

    /// Streams over TCP: the server reports nothing; it closes when it has read everything.
    fn streams(
        &self,
        sockets: Vec<OwnedFd>,
        begun: Instant,
        version: Option<String>,
        observer: &mut dyn TrialObserver,
    ) -> Result<Sides, ProgramError> {
        let mut moved = self.move_data(observer, begun, |work, live, on_step| work.streams(sockets, live, on_step))?;
        let near = moved.tally();
        if !plain::sends(self.spec, Role::Active) {
            let far = results::drained(&near);
            let early = self.ended_early(moved.legs.elapsed_ns);
            let near = model::EndTally { cut_short: near.cut_short || early.is_some(), ..near };
            let sides = self.sides(&moved, near, far, version);
            return Ok(Sides { failure: sides.failure.or(early), ..sides });
        }
        let (ended, mut rest) = (Instant::now(), [0; 256]);
        if self.spec.direction == Direction::Both {
            // The server has closed its direction at its own end of the data; what it has still to read shows only in
            // what its kernel has not acknowledged.
            while moved.sockets.iter().any(|socket| programs::unsent(socket.as_fd()) > 0) {
                if ended.elapsed() > CLOSE_LIMIT {
                    return Err(self.silent(CLOSE_LIMIT, "while it had data to read: it no longer reads"));
                }
                if self.cancel.load(Ordering::SeqCst) || moved.legs.failure.is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let far = results::both_directions(&near, near.sending_ns + ended.elapsed().as_nanos() as u64);
            return Ok(self.sides(&moved, near, far, version));
        }
        for socket in &moved.sockets {
            while moved.legs.failure.is_none() {
                match self.receive(socket, &mut rest, CLOSE_LIMIT) {
                    Some(0) => break,
                    Some(_) => {}
                    None if self.cancel.load(Ordering::SeqCst) => break,
                    None => {
                        return Err(self.silent(CLOSE_LIMIT, "after the data ended: it no longer reads"));
                    }
                }
            }
        }
        let far = results::closed(&near, near.sending_ns + ended.elapsed().as_nanos() as u64);
        Ok(self.sides(&moved, near, far, version))
    }

    /// Datagrams, the last of which the server answers with its report.
    fn datagrams(
        &self,
        mut sockets: Vec<OwnedFd>,
        front: Front,
        begun: Instant,
        observer: &mut dyn TrialObserver,
    ) -> Result<Sides, ProgramError> {
        let Some(socket) = sockets.pop() else { return Err(ProgramError::Interrupted) };
        let header = Numbered::new(front, Counts::default(), Arc::new(OnceLock::new()));
        let mut last = vec![0; self.spec.block as usize];
        let mut moved = self.move_data(observer, begun, |work, live, on_step| {
            let moved = work.datagrams(socket, header, live, on_step)?;
            let sent = moved.legs.legs.last().and_then(|tally| tally.datagrams).map_or(0, |datagrams| datagrams.sent);
            front.write(&mut last, sent + 1, true);
            // At once: the server's clock runs on until it has this.
            moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &last));
            Ok(moved)
        })?;
        let near = moved.tally();
        let (mut answer, wait) = (vec![0; 1 << 16], Duration::from_millis(LAST_WAIT_MS));
        let deadline = Instant::now() + REPORT_LIMIT;
        while !self.refused.get() && Instant::now() < deadline {
            let heard = moved.sockets.first().and_then(|socket| self.receive(socket, &mut answer, wait));
            if let Some(report) = heard.and_then(|count| Report::read(&answer[..count]).ok()) {
                if let Some(size) = results::cut_to(self.spec, &report) {
                    let block = self.spec.block;
                    return Err(ProgramError::unsupported(
                        say!("`--block {block}` with this server"),
                        say!(
                            "it reads {size} bytes of each datagram: start it with -l {block}, or use `--block {size}`"
                        ),
                    ));
                }
                let far = results::reported(self.spec, &report);
                std::thread::sleep(SERVER_RECOVERY);
                return Ok(self.sides(&moved, near, far, None));
            }
            if self.cancel.load(Ordering::SeqCst) {
                return Err(ProgramError::Interrupted);
            }
            moved.sockets.iter().for_each(|socket| plain::send_mark(socket, &last));
        }
        Err(match self.refused.get() {
            true => ProgramError::Peer { address: self.address.clone(), error: nobody() },
            false => {
                self.silent(REPORT_LIMIT, "while its report was expected: it is overloaded, or a firewall blocks UDP")
            }
        })
    }

    fn silent(&self, limit: Duration, during: &'static str) -> ProgramError {
        ProgramError::Silent {
            address: self.address.clone(),
            peer: PEER.name,
            seconds: limit.as_secs(),
            during: during.into(),
        }
    }
}
