//! What the two ends do with a connection. Each pattern is one file and one line in the registry below.
//!
//! A pattern gives each end a [`Machine`]: it works as far as it can and then returns what it waits for. The same
//! machine runs in a thread that blocks, one that spins and one with an epoll set; it never sleeps itself.

mod close_handshake;
mod credit;
mod crr;
mod datagrams;
mod leg;
mod pacer;
mod pingpong;
mod rr;
mod sequence;
mod stream;
mod transfer;

use std::io;

use model::{Direction, Engine, ReceiveBy, Role, Spec, Strategy};

use crate::EngineError;
use crate::plan::LegStop;
use crate::runner::{Counters, RttRecorder, Signals};
use crate::transport::{Capabilities, Channel, Mark, names};

pub(crate) use leg::{LegHeader, open_leg, receive_leg, send_leg};
pub(crate) use pacer::Pace;
pub(crate) use stream::DRAIN_READ;

/// A pattern's description.
pub struct Pattern {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// Refuses specs that it cannot run on a transport with these capabilities.
    pub check: fn(&Spec, &Capabilities) -> Result<(), EngineError>,
}

macro_rules! registry {
    ($($module:ident),* $(,)?) => {
        /// Every pattern of this build.
        pub static PATTERNS: &[&Pattern] = &[$(&$module::PATTERN),*];

        /// The machine for one end of one connection in one leg.
        pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Result<Box<dyn Machine<C>>, EngineError> {
            $(if spec.pattern == $module::PATTERN.name {
                return Ok($module::machine(spec, part));
            })*
            pattern(spec.pattern.as_str()).map(|_| unreachable!("a listed pattern has a machine"))
        }
    };
}

registry!(pingpong, stream, rr, crr, transfer);

/// The pattern called `name`.
pub fn pattern(name: &str) -> Result<&'static Pattern, EngineError> {
    PATTERNS.iter().copied().find(|pattern| pattern.name == name).ok_or_else(|| EngineError::Unknown {
        kind: "pattern",
        name: name.into(),
        known: PATTERNS.iter().map(|pattern| pattern.name).collect::<Vec<_>>().join(", "),
    })
}

/// Refuses a spec that this build's registries cannot run.
pub fn check(spec: &Spec) -> Result<(), EngineError> {
    spec.check()
        .map_err(|error| EngineError::Unsupported { what: "this measurement".into(), remedy: error.to_string() })?;
    if let Some(program) = &spec.speak {
        let remedy = "other programs are measured by `thru stream`, `rr`, `transfer` and `curve` only: leave \
            --speak out and run `thru serve` on HOST";
        return Err(EngineError::unsupported(format!("--speak {program} here"), remedy));
    }
    let transport = crate::transport::transport(spec.transport.as_str())?;
    let capabilities = transport.capabilities();
    if spec.block.max(spec.reply_bytes()) > capabilities.max_block {
        return Err(EngineError::unsupported(
            format!("a block of {} bytes on {}", spec.block.max(spec.reply_bytes()), spec.transport),
            format!("its largest message is {} bytes", capabilities.max_block),
        ));
    }
    transport.check(spec)?;
    (pattern(spec.pattern.as_str())?.check)(spec, &capabilities)?;
    check_engine(spec, transport)?;
    let drains = [&spec.near, &spec.far].iter().any(|end| end.drain_bps.is_some());
    if drains && (!crate::plan::is_stream(spec) || capabilities.datagram || capabilities.single_ended) {
        return Err(EngineError::unsupported(
            format!("--drain for {} on {}", spec.pattern, spec.transport),
            "it limits how fast the receiver reads, so the sender must be able to wait: use it with streams over \
                tcp, tls or unix",
        ));
    }
    if spec.paced_to_receiver && !(transport.overruns() && crate::plan::is_stream(spec)) {
        return Err(EngineError::unsupported(
            format!("pacing to the receiver for {} on {}", spec.pattern, spec.transport),
            format!("it is for streams and transfers over {}: use --unpaced", names(|other| other.overruns())),
        ));
    }
    if spec.overlap_close && spec.pattern != crr::PATTERN.name {
        let remedy = "it applies to `thru rr --connect` only, which opens a connection per transaction: leave it out";
        return Err(EngineError::unsupported(format!("--overlap-close with {}", spec.pattern), remedy));
    }
    let directions = if crate::plan::is_stream(spec) && spec.direction == Direction::Both { 2 } else { 1 };
    let strategy = crate::runner::strategy(spec, transport, spec.flows as usize * directions)?;
    if spec.delayed_reads { check_delayed_reads(spec, &capabilities, strategy) } else { Ok(()) }
}

/// Refuses delayed reads where no receiver would use them or where they would distort the measurement: at a given rate
/// they gain nothing, and datagrams could be lost.
fn check_delayed_reads(spec: &Spec, capabilities: &Capabilities, strategy: Strategy) -> Result<(), EngineError> {
    let refuse =
        |beside: String, remedy: &str| Err(EngineError::unsupported(format!("--delayed-reads {beside}"), remedy));
    if !crate::plan::is_stream(spec) {
        return refuse(format!("with {}", spec.pattern), "it is for streams and transfers: leave it out");
    }
    if !capabilities.delays_reads {
        let works = names(|other| other.capabilities().delays_reads);
        return refuse(format!("on {}", spec.transport), &format!("it works with {works}"));
    }
    if capabilities.datagram && spec.engine.receive == ReceiveBy::Copy {
        return refuse(format!("on {}", spec.transport), "it needs many datagrams per call: add --engine mmsg or gso");
    }
    let at_a_rate = [spec.rate_bps, spec.near.drain_bps, spec.far.drain_bps].iter().any(Option::is_some);
    if at_a_rate || spec.no_loss {
        return refuse("at a rate".into(), "leave out --rate, --drain and --find-no-loss, or --delayed-reads");
    }
    if strategy != Strategy::Blocking {
        return refuse("without blocking reads".into(), "leave out --spin and --wait, and give each flow a thread");
    }
    Ok(())
}

/// Refuses send and receive methods that the transport or the pattern does not have.
fn check_engine(spec: &Spec, transport: &dyn crate::transport::Transport) -> Result<(), EngineError> {
    let known = |names: Vec<&str>| format!("it has {}", names.join(", "));
    if !spec.engine.is_plain() && !crate::plan::is_stream(spec) {
        return Err(EngineError::unsupported(
            format!("--engine with {}", spec.pattern),
            "it is for streams and transfers: leave it out",
        ));
    }
    if !transport.sends().contains(&spec.engine.send) {
        let names =
            Engine::SENDS.iter().filter(|(_, method)| transport.sends().contains(method)).map(|(name, _)| *name);
        return Err(EngineError::unsupported(
            format!("--engine {} on {}", spec.engine, spec.transport),
            known(names.collect()),
        ));
    }
    if !transport.receives().contains(&spec.engine.receive) {
        let names =
            Engine::RECEIVES.iter().filter(|(_, method)| transport.receives().contains(method)).map(|(name, _)| *name);
        return Err(EngineError::unsupported(
            format!("receiving by --engine {} on {}", spec.engine, spec.transport),
            known(names.collect()),
        ));
    }
    Ok(())
}

/// One end's part in one leg of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Which end this is.
    pub(crate) role: Role,
    /// The direction of payload on this connection.
    pub(crate) direction: Direction,
    /// Bytes of a block or request.
    pub(crate) block: usize,
    /// Bytes of a response.
    pub(crate) reply: usize,
    /// When the leg ends.
    pub(crate) stop: LegStop,
    /// Number of the leg within the trial.
    pub(crate) leg: u32,
    /// No leg follows on this connection.
    pub(crate) last: bool,
    /// The rate to keep, if one is requested.
    pub(crate) pace: Option<Pace>,
    /// The rate to read at, if one is requested; its gap is that of [`DRAIN_READ`] bytes.
    pub(crate) drain: Option<Pace>,
    /// The sender of datagrams is paced to the receiver.
    pub(crate) to_receiver: bool,
    /// Its thread serves other flows and is woken for this one: a call that would block costs more than the wait for
    /// an event, and a flow that can always go on must not delay the others.
    pub(crate) shares: bool,
    /// Calls never block, and the thread calls again at once: reading the clock in each call would take a good part of
    /// the call's time.
    pub(crate) spins: bool,
    /// Round trips at the start that are not timed; see [`opening`](crate::plan::opening).
    pub(crate) opening: u64,
}

impl Part {
    /// Whether this end begins: sends first, or requests.
    pub(crate) fn initiates(&self) -> bool {
        crate::plan::initiates(self.direction, self.role)
    }
}

/// What a machine's thread lends it.
pub(crate) struct Env<'a> {
    /// Bytes to send, at least a block and a response long.
    pub(crate) tx: &'a mut [u8],
    /// Room to receive, at least a block and a response long.
    pub(crate) rx: &'a mut [u8],
    /// Where the datagrams of one call lie in `rx`.
    pub(crate) marks: &'a mut Vec<Mark>,
    /// Where round trips are counted.
    pub(crate) rtt: &'a mut RttRecorder,
    /// Where a paced sender records how unevenly it sent.
    pub(crate) pace: &'a mut RttRecorder,
    /// Where everything else is counted; only this machine writes to it.
    pub(crate) counters: &'a Counters,
    /// Whether to stop.
    pub(crate) signals: &'a Signals,
}

/// What a machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing: it let other flows run.
    Again,
    /// Its channel, at most until the given time (ns of the monotonic clock; `u64::MAX` for no limit).
    Wait(Interest, u64),
    /// A point in time.
    Sleep(u64),
    /// The leg is over, and the first message of the next one arrived with it (datagram transports).
    Next(LegHeader),
    /// Its leg is over.
    Done,
}

/// Which readiness of a channel a machine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
    Both,
}

/// One end of a pattern on one connection.
pub(crate) trait Machine<C: Channel>: Send {
    /// Works until it must wait, is done, or has done [`QUANTUM`] steps.
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn>;

    /// Round trips between two clock reads.
    fn batch(&self) -> u64 {
        1
    }
}

/// Steps after which a machine lets its thread's other flows run; large enough that the virtual call costs nothing in
/// comparison.
pub(crate) const QUANTUM: u32 = 64;

/// Bytes after which a stream's machine lets the other flows of its thread run: with a whole quantum of large blocks,
/// the first of a thousand flows would take all of a short trial.
pub(crate) const SHARE_BYTES: usize = 64 << 10;

/// Whether a failed call should be repeated later.
#[inline]
pub(crate) fn not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Waits for the other end of a stream to close, which it does after it has received everything; what arrives before
/// that is counted.
pub(crate) fn await_close<C: Channel>(channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn> {
    match channel.recv(env.rx) {
        Ok(0) => Ok(Turn::Done),
        Ok(count) => {
            env.counters.received(count);
            Ok(Turn::Again)
        }
        Err(error) if not_now(&error) => Ok(Turn::Wait(Interest::Read, u64::MAX)),
        Err(error) => Err(error),
    }
}

pub(crate) fn needs_streams(spec: &Spec, capabilities: &Capabilities, what: &str) -> Result<(), EngineError> {
    if capabilities.datagram {
        return Err(EngineError::unsupported(
            format!("{what} on {}", spec.transport),
            "use tcp, unix, shm or another stream",
        ));
    }
    Ok(())
}

/// A transport with one end has no direction to reverse.
pub(crate) fn refuse_direction(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    if capabilities.single_ended && spec.direction != Direction::Send {
        let remedy = "it has one end; leave --reverse and --both out";
        return Err(EngineError::unsupported(format!("a direction for {}", spec.transport), remedy));
    }
    Ok(())
}

pub(crate) fn refuse_rate(spec: &Spec) -> Result<(), EngineError> {
    if spec.rate_bps.is_some() {
        return Err(EngineError::unsupported(
            format!("--rate for {}", spec.pattern),
            "rates are for streams; leave --rate out",
        ));
    }
    Ok(())
}
