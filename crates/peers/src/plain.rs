//! Transfers as the older programs make them: nothing but payload on a connection, whose end is the end of the data; datagrams between
//! marks.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use engine::transport::{Link, programs, scoped};
use engine::{EngineError, LegTally, Signals, TrialPlan};
use model::{Direction, EndOptions, EndTally, Leg, Live, Role, Spec, Stop};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{SendFlags, Shutdown};
use socket2::{Domain, Socket, Type};
use text::{Said, Text};

use crate::ProgramError;
use crate::legs::{self, Idle, Ran};

/// Interval between checks for the end.
pub(crate) const STEP: Duration = Duration::from_millis(20);
/// The same for a receiver of datagrams, whose sender waits for an answer to the last one.
const DATAGRAM_STEP: Duration = Duration::from_millis(5);
/// More than any sender sends: a receiver reads until the end.
const ALL_BYTES: u64 = 1 << 62;

/// One end's part of a transfer.
pub(crate) struct Work {
    plan: TrialPlan,
}

/// What one end moved.
pub(crate) struct Moved {
    pub(crate) legs: LegTally,
    pub(crate) idle: Idle,
    /// Open until dropped; those of a sender are shut down for writing.
    pub(crate) sockets: Vec<OwnedFd>,
}

/// A rate in bit/s for a line of the log, with four digits or more: the other program's own report has as many.
pub(crate) fn rate(bps: f64) -> String {
    let mbps = bps / 1e6;
    let digits = if mbps < 100.0 { 3 } else { 1 };
    format!("{mbps:.digits$} Mbit/s")
}

/// Whether the end of `role` sends.
pub(crate) fn sends(spec: &Spec, role: Role) -> bool {
    match spec.direction {
        Direction::Send => role == Role::Active,
        Direction::Reverse => role == Role::Passive,
        Direction::Both => true,
    }
}

impl Work {
    /// The part that the end of `role` has. In both directions its stop ends what it sends.
    pub(crate) fn new(spec: &Spec, role: Role) -> Self {
        let stop = if sends(spec, role) { spec.stop } else { Stop::Bytes(ALL_BYTES) };
        let spec = Spec { stop, paced_to_receiver: false, ..spec.clone() };
        let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop, expected_ns: 0 };
        Self {
            plan: TrialPlan {
                role,
                trial: 0,
                flows: 0..spec.flows,
                legs: vec![leg],
                path: model::PathTimes::default(),
                spec,
            },
        }
    }

    /// Moves the data over connections, one for each flow. Receivers read until the end.
    pub(crate) fn streams(
        self,
        sockets: Vec<OwnedFd>,
        live: &mut dyn FnMut(Live),
        on_step: &mut dyn FnMut(&Signals, Duration),
    ) -> Result<Moved, ProgramError> {
        // A link for each direction, in the engine's order.
        let each = if self.plan.spec.direction == Direction::Both { 2 } else { 1 };
        let links = sockets.iter().flat_map(|socket| std::iter::repeat_n(socket, each));
        let links = links.map(|socket| Ok(programs::stream(duplicate(socket)?, &self.plan.spec)));
        let links = links.collect::<Result<Vec<Link>, EngineError>>()?;
        let Ran { legs, idle } = legs::run(&self.plan, links, STEP, live, on_step)?;
        if sends(&self.plan.spec, self.plan.role) {
            // Where it fails the connection is gone, which ends the data as well.
            for socket in &sockets {
                let _ = rustix::net::shutdown(socket, Shutdown::Write);
            }
        }
        Ok(Moved { legs, idle, sockets })
    }

    /// Moves datagrams over one socket. A receiver ends when `on_step` stops it.
    pub(crate) fn datagrams(
        self,
        socket: OwnedFd,
        header: impl programs::DatagramHeader,
        live: &mut dyn FnMut(Live),
        on_step: &mut dyn FnMut(&Signals, Duration),
    ) -> Result<Moved, ProgramError> {
        let link = programs::datagrams(duplicate(&socket)?, header)?;
        let Ran { legs, idle } = legs::run(&self.plan, vec![link], DATAGRAM_STEP, live, on_step)?;
        Ok(Moved { legs, idle, sockets: vec![socket] })
    }
}

pub(crate) fn duplicate(socket: &OwnedFd) -> Result<OwnedFd, EngineError> {
    socket
        .try_clone()
        .map_err(|error| EngineError::Thread(format!("cannot keep a connection open: {error}; raise `ulimit -n`")))
}

impl Moved {
    /// What this end counted.
    pub(crate) fn tally(&mut self) -> EndTally {
        self.legs.legs.pop().unwrap_or_default()
    }

    /// Why it ended early, if it did.
    pub(crate) fn failure(&self) -> Option<Text> {
        self.legs.failure.as_ref().map(Said::say)
    }
}

/// Listens on the first free port of `ports`.
pub(crate) fn listen(
    address: IpAddr,
    ports: impl IntoIterator<Item = u16>,
    options: &EndOptions,
) -> Result<TcpListener, ProgramError> {
    first_free(address, ports, |wanted| Ok(TcpListener::from(programs::listen(wanted, options)?)))
}

/// A UDP socket on the first free port of `ports`, with the buffers of `options`, or one that survives a scheduling gap.
pub(crate) fn bind(
    address: IpAddr,
    ports: impl IntoIterator<Item = u16>,
    options: &EndOptions,
) -> Result<UdpSocket, ProgramError> {
    first_free(address, ports, |wanted| {
        let open = || {
            let socket = Socket::new(Domain::for_address(wanted), Type::DGRAM, None)?;
            if wanted.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            if options.rcvbuf.is_none() {
                programs::make_roomy(socket.as_fd());
            }
            set_buffers(&socket, options)?;
            socket.bind(&wanted.into())?;
            Ok(UdpSocket::from(socket))
        };
        open().map_err(|source: std::io::Error| ProgramError::socket("receive data on", wanted, source))
    })
}

/// Sets the buffers that `options` name; others keep their sizes.
pub(crate) fn set_buffers(socket: &Socket, options: &EndOptions) -> std::io::Result<()> {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    options.rcvbuf.map_or(Ok(()), |bytes| socket.set_recv_buffer_size(size(bytes)))?;
    options.sndbuf.map_or(Ok(()), |bytes| socket.set_send_buffer_size(size(bytes)))
}

fn first_free<T>(
    address: IpAddr,
    ports: impl IntoIterator<Item = u16>,
    mut open: impl FnMut(SocketAddr) -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let mut last = ProgramError::socket("listen for data on", address, ErrorKind::AddrInUse);
    for port in ports {
        match open(scoped(address, port, 0)) {
            Ok(opened) => return Ok(opened),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The next connection from `from`, prepared for the end of `role`; `None` once `keep_waiting` is false.
/// Connections from other hosts are closed.
pub(crate) fn accept(
    listener: &TcpListener,
    from: IpAddr,
    spec: &Spec,
    role: Role,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Option<OwnedFd>, ProgramError> {
    while keep_waiting() {
        let Some((socket, peer)) = next(listener) else { continue };
        if peer.ip() == from {
            programs::prepare(socket.as_fd(), spec, role)?;
            return Ok(Some(socket.into()));
        }
    }
    Ok(None)
}

/// Connects the socket to the sender of the first datagram from `from` and leaves that datagram in the socket;
/// false once `keep_waiting` is false. Datagrams of other hosts are discarded.
pub(crate) fn connect_to_first_sender(
    socket: &UdpSocket,
    from: IpAddr,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<bool, ProgramError> {
    let failed = |source| ProgramError::socket("receive data from", from, source);
    let mut front = [0; 1];
    while keep_waiting() {
        if !readable(socket) {
            continue;
        }
        let Ok((_, peer)) = socket.peek_from(&mut front) else { continue };
        if peer.ip() == from {
            socket.connect(peer).map_err(failed)?;
            return Ok(true);
        }
        socket.recv_from(&mut front).map_err(failed)?;
    }
    Ok(false)
}

/// The next connection, if one arrives soon.
pub(crate) fn next(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    if !readable(listener) {
        return None;
    }
    let accepted = listener.accept().ok();
    if accepted.is_none() {
        // Without free descriptors the connection stays queued and the listener readable: do not spin.
        std::thread::sleep(STEP);
    }
    accepted
}

/// Whether there is something to read or to accept; waits up to [`STEP`].
pub(crate) fn readable(socket: impl AsFd) -> bool {
    let limit = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as i64 };
    let mut wanted = [PollFd::new(&socket, PollFlags::IN)];
    matches!(rustix::event::poll(&mut wanted, Some(&limit)), Ok(1))
}

/// Connects to the other program's data port. It may announce the port shortly before it listens.
pub(crate) fn dial(spec: &Spec, target: SocketAddr, flow: u32) -> Result<OwnedFd, ProgramError> {
    const LIMIT: Duration = Duration::from_secs(1);
    let deadline = Instant::now() + LIMIT;
    loop {
        match programs::dial(spec, target, flow) {
            Ok(socket) => return Ok(socket),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Sends a mark. One that the receiver does not take is lost like any other datagram.
pub(crate) fn send_mark(socket: &OwnedFd, mark: &[u8]) {
    let _ = rustix::net::send(socket, mark, SendFlags::NOSIGNAL);
}
