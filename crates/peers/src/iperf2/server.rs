//! Our server: each connection is a stream of its own, and so is each sender of datagrams.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use engine::transport::{programs, udp};
use engine::{EngineError, Signals};
use model::tally::Window;
use model::{Direction, Role, Spec};
use peer_wire::Turn;
use peer_wire::iperf2::{Counts, Datagram, HEADER_BYTES, Header, LAST_WAIT_MS, PEER, Report, Server, ServerAction};
use socket2::{Domain, Socket, Type};
use text::{Text, say};

use super::datagrams::{Front, Numbered, take};
use super::request;
use crate::acceptor::{self, ClientSession};
use crate::line::Wait;
use crate::plain::{self, Work};
use crate::{MachineUse, ProgramError, Service};

/// How long a client may take to say something.
const MESSAGE_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);
/// How long a client may request the report again.
const REPORT_RESEND_LIMIT: Duration = Duration::from_millis(3 * LAST_WAIT_MS);
/// Times that the report is sent while last datagrams still arrive.
const MOST_ANSWERS: u32 = 100;
/// How long a sender may take for its second datagram.
const SECOND_LIMIT: Duration = Duration::from_secs(2);
/// Datagrams that are kept while a stream is opened.
const MOST_EARLY: usize = 256;
/// Longest datagram.
const MOST_DATAGRAM: usize = 1 << 16;

/// The machine, held by the streams of one host.
type SharedAdmission = Arc<HostAdmission>;

struct HostAdmission {
    /// Deadline of all streams together; `None` for no limit.
    until: Option<Instant>,
    /// Never read; dropping it releases the machine.
    _admission: Mutex<MachineUse>,
}

/// The hosts that measure. Only the address shows that connections belong to the same client.
#[derive(Default)]
struct HostAdmissions(Mutex<Vec<(IpAddr, Weak<HostAdmission>)>>);

impl HostAdmissions {
    /// Admits one more stream from `from`.
    fn take(&self, service: &Service, from: IpAddr) -> Option<SharedAdmission> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(_, admission)| admission.strong_count() > 0);
        if let Some(admission) =
            held.iter().find(|(host, _)| *host == from).and_then(|(_, admission)| admission.upgrade())
        {
            let room = Arc::strong_count(&admission) <= service.limits.flows as usize;
            return (room && !admission.is_over()).then_some(admission);
        }
        let until = Instant::now().checked_add(service.hold());
        let admission = Arc::new(HostAdmission { until, _admission: Mutex::new((service.admit)()?) });
        held.push((from, Arc::downgrade(&admission)));
        Some(admission)
    }
}

/// Serves until the service stops.
pub(super) fn serve(service: &Service) -> Result<(), ProgramError> {
    let listeners = acceptor::open(service)?;
    let sockets = listeners
        .iter()
        .map(|(_, address)| Ok((socket(*address)?, *address)))
        .collect::<Result<Vec<_>, ProgramError>>()?;
    let admissions = HostAdmissions::default();
    std::thread::scope(|scope| {
        for (socket, address) in &sockets {
            let admissions = &admissions;
            scope.spawn(move || accept_clients(service, socket, *address, admissions));
        }
        acceptor::accept_clients(service, PEER.name, &listeners, &|client_session| stream(client_session, &admissions));
    });
    Ok(())
}

impl HostAdmission {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }
}

/// Aborts at the deadline or when the service stops.
fn watch<'a>(service: &'a Service, admission: &'a HostAdmission) -> impl FnMut(&Signals, Duration) + 'a {
    move |signals, _| {
        if admission.is_over() || service.stopping() {
            signals.abort();
        }
    }
}

/// One connection.
fn stream(client_session: &mut ClientSession<'_>, admissions: &HostAdmissions) -> Result<Text, ProgramError> {
    let (mut machine, mut turn) = (Server::default(), Turn::default());
    let (mut requested, mut early, mut bounces) = (None, 0, None);
    let service = client_session.service;
    let cancelled = || service.stopping();
    let wait = Wait { program: PEER.name, limit: MESSAGE_LIMIT, during: "at its start", cancelled: &cancelled };
    // Bytes after the header are data that the engine does not count.
    let mut front = [0; HEADER_BYTES];
    let mut heard = Vec::new();
    while requested.is_none() && early == 0 && bounces.is_none() {
        let Some(count) = client_session.line.wait(&mut front, &wait)? else {
            machine.ended().map_err(|error| client_session.line.peer_error(error))?;
            return Ok("left without sending data".into());
        };
        heard.extend_from_slice(&front[..count]);
        machine.receive(&front[..count], &mut turn).map_err(|error| client_session.line.peer_error(error))?;
        for action in turn.actions.drain(..) {
            match action {
                ServerAction::Requested(header) => requested = Some(header),
                ServerAction::Data(bytes) => early += bytes as u64,
                ServerAction::Bounce => bounces = Some(std::mem::take(&mut heard)),
            }
        }
    }
    let peer = client_session.line.peer().ip();
    client_session.mark_authenticated();
    let Some(admission) = admissions.take(service, peer) else {
        return Ok("refused: another measurement is running, or too many streams".into());
    };
    client_session.session_deadline.extend(service.hold());
    let spec = request::spec(requested.as_ref());
    if let Some(why) = request::refusal(&spec, Arc::strong_count(&admission) as u64, &service.limits) {
        return Ok(say!("refused: {why}"));
    }
    if let Some(heard) = bounces {
        return bounce(client_session, &admission, &heard);
    }
    client_session.line.send(&turn.send)?;
    let socket = client_session.line.socket()?;
    programs::prepare(socket.as_fd(), &spec, Role::Passive)?;
    if spec.direction == Direction::Both {
        return both_directions(&spec, socket, service, &admission, early);
    }
    let mut moved =
        Work::new(&spec, Role::Passive).streams(vec![socket], &mut |_| {}, &mut watch(service, &admission))?;
    let tally = moved.tally();
    if plain::sends(&spec, Role::Passive) {
        let wait = Wait { limit: CLOSE_LIMIT, during: "at the end", ..wait };
        while let Ok(Some(_)) = client_session.line.wait(&mut front, &wait) {}
        return Ok(summary("sent", tally.bytes_sent, tally.sends()));
    }
    Ok(summary("received", tally.bytes_received + early, tally.arrivals()))
}

/// Sends its amount and receives what the client sends until it ends, over one connection.
fn both_directions(
    spec: &Spec,
    socket: OwnedFd,
    service: &Service,
    admission: &HostAdmission,
    early: u64,
) -> Result<Text, ProgramError> {
    let twin = plain::duplicate(&socket)?;
    let part = |direction, socket| {
        let spec = Spec { direction, ..spec.clone() };
        Work::new(&spec, Role::Passive).streams(vec![socket], &mut |_| {}, &mut watch(service, admission))
    };
    let (sent, received) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| part(Direction::Reverse, twin));
        let received = part(Direction::Send, socket);
        (sending.join(), received)
    });
    let sent = sent.map_err(|_| EngineError::Thread("the sending thread panicked".into()))??.tally();
    let received = received?.tally();
    let sent = summary("sent", sent.bytes_sent, sent.sends());
    Ok(say!("{sent} and {}", summary("received", received.bytes_received + early, received.arrivals())))
}

/// Sends back what has been heard, and all that follows: the client times it.
fn bounce(
    client_session: &mut ClientSession<'_>,
    admission: &HostAdmission,
    heard: &[u8],
) -> Result<Text, ProgramError> {
    let service = client_session.service;
    let cancelled = || service.stopping() || admission.is_over();
    let wait = Wait { program: PEER.name, limit: MESSAGE_LIMIT, during: "between round trips", cancelled: &cancelled };
    let (mut buffer, mut bytes) = (vec![0; MOST_DATAGRAM], heard.len());
    client_session.line.send(heard)?;
    while let Some(count) = client_session.line.wait(&mut buffer, &wait)? {
        client_session.line.send(&buffer[..count])?;
        bytes += count;
    }
    Ok(say!("returned {bytes} bytes of round trips"))
}

/// What was moved, and the rate of the window.
fn summary(what: &str, bytes: u64, window: Window) -> Text {
    say!("{what} {bytes} bytes ({})", plain::rate(window.bytes as f64 * 8e9 / window.ns.max(1) as f64))
}

/// The socket that receives the first datagram of each sender.
fn socket(address: SocketAddr) -> Result<UdpSocket, ProgramError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        // Each sender gets a second socket on this port, connected to it.
        socket.set_reuse_port(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        Ok(UdpSocket::from(socket))
    };
    open().map_err(|source: std::io::Error| ProgramError::socket("listen for iperf2 on", address, source))
}

/// Opens a stream for each new sender of datagrams.
fn accept_clients(service: &Service, socket: &UdpSocket, address: SocketAddr, admissions: &HostAdmissions) {
    let mut buffer = vec![0; MOST_DATAGRAM];
    // Datagrams that arrived while another sender's stream was opened.
    let mut early: VecDeque<(SocketAddr, Vec<u8>)> = VecDeque::new();
    std::thread::scope(|scope| {
        while !service.stopping() {
            let (peer, datagram) = match early.pop_front() {
                Some(first) => first,
                None if !plain::readable(socket) => continue,
                None => match socket.recv_from(&mut buffer) {
                    Ok((count, peer)) => (peer, buffer[..count].to_vec()),
                    Err(_) => continue,
                },
            };
            // Last ones are the rest of a stream that has ended.
            let Some(first) = Datagram::read(&datagram).filter(|first| !first.last) else { continue };
            let refusal = request::refusal_of_datagrams(Header::from_datagram(&datagram).as_ref());
            let refusal = refusal.or_else(|| request::refusal(&request::datagrams(), 1, &service.limits));
            let admission = match refusal {
                None => admissions.take(service, peer.ip()).ok_or_else(|| "another measurement is running".into()),
                Some(why) => Err(why),
            };
            let admission = match admission {
                Ok(admission) => admission,
                Err(why) => {
                    if first.number <= 1 {
                        (service.log)(peer, &say!("{peer}: {} refused: {why}", PEER.name));
                    }
                    continue;
                }
            };
            let Ok(twin) = udp::connected_twin(address, peer, None) else { continue };
            let (mut counts, report) = (Counts::default(), Arc::new(OnceLock::new()));
            take(&mut counts, &datagram, &report);
            // Datagrams that arrived before the second socket existed.
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                if early.len() < MOST_EARLY {
                    early.push_back((from, buffer[..count].to_vec()));
                }
            }
            let mut alone = true;
            early.retain(|(from, datagram)| {
                if *from == peer {
                    take(&mut counts, datagram, &report);
                    alone = false;
                }
                *from != peer
            });
            scope.spawn(move || {
                // The source of a single datagram can be forged: it must not hold the machine for long.
                let until = Instant::now() + SECOND_LIMIT;
                while alone && !plain::readable(&twin) {
                    if Instant::now() > until || service.stopping() {
                        return (service.log)(peer, &say!("{peer}: {} sent a single datagram", PEER.name));
                    }
                }
                match datagrams(service, admission, twin.into(), counts, &report) {
                    Ok(Some(report)) => {
                        let summary = summary(
                            "received",
                            report.bytes,
                            Window { bytes: report.bytes, ns: report.elapsed_us.saturating_mul(1_000) },
                        );
                        let (lost, all) = (report.lost, report.datagrams);
                        (service.log)(peer, &say!("{peer}: {} {summary}, {lost} of {all} datagrams lost", PEER.name));
                    }
                    Ok(None) => (service.log)(peer, &say!("{peer}: {} stopped without a last datagram", PEER.name)),
                    Err(error) => (service.log)(peer, &error.line_of(peer)),
                }
            });
        }
    });
}

/// Receives a stream of datagrams and sends the report.
fn datagrams(
    service: &Service,
    admission: SharedAdmission,
    socket: OwnedFd,
    counts: Counts,
    report: &Arc<OnceLock<Report>>,
) -> Result<Option<Report>, ProgramError> {
    let spec = request::datagrams();
    programs::prepare(socket.as_fd(), &spec, Role::Passive)?;
    let header = Numbered::new(Front::none(), counts, report.clone());
    let answering = socket.try_clone().map_err(|source| ProgramError::socket("answer", "an iperf2 client", source))?;
    let mut answers = 0..MOST_ANSWERS;
    let moved = {
        let mut ends = watch(service, &admission);
        Work::new(&spec, Role::Passive).datagrams(socket, header, &mut |_| {}, &mut |signals, elapsed| {
            ends(signals, elapsed);
            if let Some(report) = report.get() {
                signals.stop();
                // At once: the client repeats its last datagram until it has the report, and the engine reads until
                // nothing arrives.
                if answers.next().is_some() {
                    plain::send_mark(&answering, &report.to_bytes());
                }
            }
        })?
    };
    let (Some(report), Some(socket)) = (report.get(), moved.sockets.first()) else { return Ok(None) };
    plain::send_mark(socket, &report.to_bytes());
    // The next client may follow as soon as the report is there.
    drop(admission);
    // The report may be lost: a client without one sends its last datagram again.
    let (mut buffer, mut until) = (vec![0; MOST_DATAGRAM], Instant::now() + REPORT_RESEND_LIMIT);
    while Instant::now() < until && !service.stopping() {
        if !plain::readable(socket) {
            continue;
        }
        let heard = rustix::net::recv(socket, &mut *buffer, rustix::net::RecvFlags::DONTWAIT);
        let again = heard.is_ok_and(|(_, count)| Datagram::read(&buffer[..count]).is_some_and(|seen| seen.last));
        if again {
            plain::send_mark(socket, &report.to_bytes());
            until = Instant::now() + REPORT_RESEND_LIMIT;
        }
    }
    Ok(Some(*report))
}
