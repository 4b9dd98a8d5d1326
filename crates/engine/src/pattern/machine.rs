//! What a pattern runs at one end of one connection.

use std::io;

use model::{Direction, PathTimes, ProbeSample, Role, SizeCount};

use super::pacer::Pace;
use crate::core::{Counters, Interest, LegStop, Payload, RttRecorder, Signals, Turn, initiates, not_now};
use crate::transport::{Channel, DatagramMark};

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
    /// What is known of the path.
    pub(crate) path: PathTimes,
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
    /// Each round trip is timed by itself: it has its own start, or some of them are left out.
    pub(crate) singly: bool,
    /// Round trips at the start that are not timed; see [`opening`](crate::core::opening).
    pub(crate) opening: u64,
}

impl Part {
    /// Whether this end begins: sends first, or requests.
    pub(crate) fn initiates(&self) -> bool {
        initiates(self.direction, self.role)
    }
}

/// What a machine's thread lends it.
pub(crate) struct Env<'a> {
    /// Bytes to send, at least a block and a response long.
    pub(crate) tx: &'a mut Payload,
    /// Room to receive, at least a block and a response long.
    pub(crate) rx: &'a mut [u8],
    /// Where the datagrams of one call lie in `rx`.
    pub(crate) marks: &'a mut Vec<DatagramMark>,
    /// Where round trips are counted.
    pub(crate) rtt: &'a mut RttRecorder,
    /// Where a paced sender records how unevenly it sent.
    pub(crate) pace: &'a mut RttRecorder,
    /// Where everything else is counted; only this machine writes to it.
    pub(crate) counters: &'a Counters,
    /// Whether to stop.
    pub(crate) signals: &'a Signals,
}

/// One end of a pattern on one connection.
pub(crate) trait Machine<C: Channel>: Send {
    /// Works until it must wait, is done, or has done [`QUANTUM`] steps.
    fn advance(&mut self, channel: &mut C, env: &mut Env<'_>) -> io::Result<Turn>;

    /// Round trips between two clock reads.
    fn batch(&self) -> u64 {
        1
    }

    /// The round trips that had a connection each, with the times at which they began by the host's clock.
    fn take_probes(&mut self) -> Vec<ProbeSample> {
        Vec::new()
    }

    /// The datagrams of a mix of sizes, by size.
    fn sizes(&self) -> Vec<SizeCount> {
        Vec::new()
    }

    /// Whether it confirms to another `thru` that a leg is over, and the confirmation can be lost.
    fn confirms_end(&self) -> bool {
        false
    }
}

/// Steps after which a machine lets its thread's other flows run; large enough that the virtual call costs nothing in
/// comparison.
pub(crate) const QUANTUM: u32 = 64;

/// Bytes after which a stream's machine lets the other flows of its thread run: with a whole quantum of large blocks,
/// the first of a thousand flows would take all of a short trial.
pub(crate) const SHARE_BYTES: usize = 64 << 10;

/// A reader that keeps to a rate takes at most this much at once, so that it reads slowly instead of pausing for long,
/// bytes.
pub(crate) const DRAIN_READ: usize = 4 << 10;

/// How long a reader of another program's stream waits before it checks the stop flag.
pub(crate) const STOP_CHECK_NS: u64 = 20_000_000;

/// Of short reads, one in this many is timed.
pub(crate) const UNCLOCKED_READS: u32 = 64;

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
