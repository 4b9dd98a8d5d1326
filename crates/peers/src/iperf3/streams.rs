//! One end's part of a test: its streams, and the engine's loops over them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::transport::{Link, programs};
use engine::{EngineError, LegTally, Signals, TrialPlan};
use model::{Direction, Leg, Live, Role, Spec, Stop, TransportName};

use super::header::{Header, Received, ReceiverState};
use super::moments::Moments;
use super::process_cpu::ProcessCpu;
use crate::legs::{self, Idle};

/// The streams of a test at one end, in the order in which the client opens them.
pub(super) struct Streams {
    pub(super) role: Role,
    pub(super) spec: Spec,
    wide: bool,
    sockets: Vec<OwnedFd>,
    /// Whether the counts of the running test are kept.
    keeps_moments: bool,
}

/// The engine's counts and iperf3's additional figures.
pub(super) struct Ran {
    pub(super) role: Role,
    pub(super) spec: Spec,
    pub(super) plan: TrialPlan,
    pub(super) legs: LegTally,
    pub(super) idle: Idle,
    /// For each stream, in the order of opening: the counts from its headers at the end of the warm-up and at
    /// the end.
    pub(super) received: Vec<[Received; 2]>,
    /// For each TCP stream, the bytes that had been read when the other end ended the test; `None` where all bytes count.
    pub(super) read_by_end: Option<Vec<Option<u64>>>,
    /// Percent of one CPU: total, user and system.
    pub(super) cpu_percent: [f64; 3],
    /// The counts over the time, if they were to be kept.
    pub(super) moments: Moments,
    /// Kept open until their owner drops them: a client closes last, a server when the client has ended the
    /// test.
    pub(super) sockets: Vec<OwnedFd>,
}

/// The flow and the direction of stream number `at` in the order of opening. With both directions, the streams
/// on which the client sends come first.
pub(super) fn flow_of(spec: &Spec, at: usize) -> (u32, Direction) {
    let (number, flows) = (u32::try_from(at).unwrap_or(u32::MAX), spec.flows);
    match spec.direction {
        Direction::Both if number < flows => (number, Direction::Send),
        Direction::Both => (number - flows, Direction::Reverse),
        direction => (number, direction),
    }
}

/// Whether the end of `role` sends on a stream of this direction.
pub(super) fn sends(role: Role, direction: Direction) -> bool {
    (direction == Direction::Send) == (role == Role::Active)
}

/// Interval between checks of a count.
const COUNT_STEP: Duration = Duration::from_millis(1);

/// A count that the server sends over several TCP connections. It splits it over them in its own way, so the client counts all of them,
/// and ends the test, as iperf3's does.
struct Count {
    bytes: u64,
    /// For each stream, the bytes that had been read before, or that had been sent where this end sends.
    before: Vec<u64>,
}

impl Count {
    fn of(role: Role, spec: &Spec, sockets: &[OwnedFd]) -> Option<Self> {
        let Stop::Blocks(blocks) = spec.stop else { return None };
        let split = spec.flows > 1 && spec.transport == TransportName::Tcp && spec.direction != Direction::Send;
        let moved = |(at, socket)| match sends(role, flow_of(spec, at).1) {
            true => programs::acknowledged(OwnedFd::as_fd(socket)).unwrap_or(0) + programs::unsent(socket.as_fd()),
            false => programs::consumed(socket.as_fd()).unwrap_or(0),
        };
        let before = || sockets.iter().enumerate().map(moved).collect();
        (split && role == Role::Active).then(|| Self { bytes: blocks * spec.block, before: before() })
    }

    /// Whether that many bytes have arrived in each direction.
    fn is_reached(&self, role: Role, spec: &Spec, sockets: &[OwnedFd]) -> bool {
        let mut moved = [0, 0];
        for (at, (socket, before)) in sockets.iter().zip(&self.before).enumerate() {
            let sends = sends(role, flow_of(spec, at).1);
            let count = if sends { programs::acknowledged } else { programs::consumed };
            moved[usize::from(sends)] += count(socket.as_fd()).unwrap_or(0).saturating_sub(*before);
        }
        moved[0] >= self.bytes && (spec.direction != Direction::Both || moved[1] >= self.bytes)
    }
}

impl Streams {
    pub(super) fn new(role: Role, spec: &Spec, wide: bool) -> Self {
        Self { role, spec: spec.clone(), wide, sockets: Vec::new(), keeps_moments: false }
    }

    /// Also keeps the counts of the running test.
    pub(super) fn keeping_moments(self, keeps_moments: bool) -> Self {
        Self { keeps_moments, ..self }
    }

    /// How many streams the test needs.
    pub(super) fn wanted(&self) -> usize {
        self.spec.flows as usize * if self.spec.direction == Direction::Both { 2 } else { 1 }
    }

    pub(super) fn push(&mut self, socket: OwnedFd) {
        self.sockets.push(socket);
    }

    /// Moves the data and waits for the end of all streams. `first` is called when this end is ready to. `live` receives this end's series; `on_step` is
    /// called at least every `step` with the signals that end the streams. It returns whether what arrives from now on no longer counts.
    pub(super) fn run(
        self,
        first: impl FnOnce() + Send + 'static,
        step: Duration,
        live: &mut dyn FnMut(Live),
        on_step: &mut dyn FnMut(&Signals, Duration) -> bool,
    ) -> Result<Ran, EngineError> {
        let Self { role, spec, wide, sockets, keeps_moments } = self;
        // A count of bytes ends with a whole block, as in iperf3, whose UDP receivers accept only whole blocks.
        let stop = match spec.stop {
            Stop::Bytes(bytes) => Stop::Blocks(bytes.div_ceil(spec.block)),
            stop => stop,
        };
        let spec = Spec { stop, ..spec };
        let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop, expected_ns: 0 };
        let plan = TrialPlan {
            spec: spec.clone(),
            role,
            trial: 0,
            flows: 0..spec.flows,
            legs: vec![leg],
            path: model::PathTimes::default(),
        };
        let receivers: Vec<Arc<ReceiverState>> = sockets.iter().map(|_| Arc::default()).collect();
        let links = links(&spec, wide, &sockets, &receivers)?;
        let count = Count::of(role, &spec, &sockets);
        let step = if count.is_some() { COUNT_STEP } else { step };
        let process_cpu = ProcessCpu::start();
        let warm_up = Duration::from_nanos(spec.warmup_ns);
        let listen = || -> Vec<Received> { receivers.iter().map(|receivers| receivers.received()).collect() };
        let read = || -> Vec<Option<u64>> { sockets.iter().map(|socket| programs::consumed(socket.as_fd())).collect() };
        let read_before = read();
        let mut by_end = None;
        let mut before = (spec.warmup_ns == 0).then(|| vec![Received::default(); receivers.len()]);
        let mut moments = Moments::default();
        let mut live = |report: Live| {
            if let (Live::Reading(reading), true) = (&report, keeps_moments) {
                moments.add(reading, listen());
            }
            live(report);
        };
        let legs::Ran { legs, idle } =
            legs::run_after(first, &plan, links, step, &mut live, &mut |signals, elapsed| {
                if before.is_none() && elapsed >= warm_up {
                    before = Some(listen());
                }
                if count.as_ref().is_some_and(|count| count.is_reached(role, &spec, &sockets)) {
                    signals.stop();
                }
                if on_step(signals, elapsed) && by_end.is_none() {
                    by_end = Some((read(), listen()));
                }
            })?;
        let cpu_percent = process_cpu.percent();
        let (read_by_end, after) = by_end.map_or_else(|| (None, listen()), |(read, after)| (Some(read), after));
        let since = |(before, read): (&Option<u64>, Option<u64>)| Some(read?.saturating_sub((*before)?));
        let read_by_end = read_by_end.map(|read| read_before.iter().zip(read).map(since).collect());
        // A test that ended within its warm-up has nothing after it.
        let before = before.unwrap_or_else(|| after.clone());
        let received = before.into_iter().zip(after).map(|(before, after)| [before, after]).collect();
        Ok(Ran { role, spec, plan, legs, idle, received, read_by_end, cpu_percent, moments, sockets })
    }
}

/// The links of these sockets in the engine's order, which is that of the flows.
fn links(
    spec: &Spec,
    wide: bool,
    sockets: &[OwnedFd],
    receivers: &[Arc<ReceiverState>],
) -> Result<Vec<Link>, EngineError> {
    let udp = spec.transport == TransportName::Udp;
    let mut links = Vec::with_capacity(sockets.len());
    for (at, (socket, receivers)) in sockets.iter().zip(receivers).enumerate() {
        let socket = socket
            .try_clone()
            .map_err(|error| EngineError::Thread(format!("cannot keep a stream open: {error}; raise `ulimit -n`")))?;
        let link = match udp {
            true => programs::datagrams(socket, Header::new(wide, receivers.clone()))?,
            false => programs::stream(socket, spec),
        };
        links.push((flow_of(spec, at), link));
    }
    links.sort_by_key(|((flow, direction), _)| (*flow, *direction == Direction::Reverse));
    Ok(links.into_iter().map(|(_, link)| link).collect())
}

impl Ran {
    /// Waits until the other end's kernel has all that was sent, at most this long.
    pub(super) fn drain(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let waits = |socket: &OwnedFd| programs::unsent(socket.as_fd()) > 0;
        while self.spec.transport != TransportName::Udp && self.sockets.iter().any(waits) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
