//! A flow as threads see it: one connection with its machine, of which they can hold many.
//!
//! Which machine it has is decided above: the runner implements [`BoxFlow`] for every channel.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use model::{Direction, ProbeSample, ReceiveBy, SendBy, SizeCount, SocketFacts, Stamps, Strategy, TcpSample};

use super::breaker::Breaker;
use super::delayed_reads::DELAYED_READ_BYTES;
use super::handshake::SIGNAL_BYTES;
use super::operations::Operations;
use super::sys::batch::{DatagramMark, GRO_PIECES, GSO_SEGMENTS, MMSG};
use crate::core::{
    Counters, EngineError, LinkPlan, PageBuffer, Payload, RttRecorder, Signals, Snapshot, TrialPlan, Turn,
};

/// Makes a flow of a channel by giving it the machines of its pattern.
pub(crate) trait BoxFlow: Sized {
    /// The flow, prepared for `setup`.
    fn box_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>;
}

/// What a link needs to become a flow.
pub(crate) struct FlowSetup {
    pub(crate) plan: Arc<TrialPlan>,
    pub(crate) link_plan: LinkPlan,
    pub(crate) counters: Arc<Vec<Counters>>,
    pub(crate) slot: usize,
    pub(crate) strategy: Strategy,
}

/// Memory that a thread lends to the flow that is working.
pub(crate) struct Scratch {
    pub(crate) tx: Payload,
    pub(crate) rx: PageBuffer,
    pub(crate) marks: Vec<DatagramMark>,
    pub(crate) rtt: RttRecorder,
    pub(crate) pace: RttRecorder,
}

impl Scratch {
    /// Buffers for the largest leg, every page of them touched. The payload differs from block to block if it `varies`.
    pub(crate) fn new(plan: &TrialPlan, varies: bool) -> Self {
        // Datagram signals need room at any block size; 64 KiB also holds any datagram.
        let size = plan.legs.iter().map(|leg| leg.block.max(leg.reply)).max().unwrap_or(1).max(1 << 16);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let message = plan.legs.iter().map(|leg| leg.block as usize).max().unwrap_or(1).max(SIGNAL_BYTES);
        let delayed_read = if plan.spec.delayed_reads { DELAYED_READ_BYTES } else { 0 };
        let rx = size.max(batch_room(plan.spec.engine.receive, message)).max(delayed_read);
        let tx = size.max(if plan.spec.engine.send == SendBy::Mmsg { MMSG * message } else { 0 });
        let threads = plan.spec.threads.unwrap_or(MOST_THREADS).min(plan.spec.flows).max(1) as usize;
        let tx = Payload::new(&plan.spec, tx, varies, threads);
        // An answer is what was received before; the first one is payload as well.
        let mut rx = PageBuffer::filled(rx, 0xff);
        let payload = rx.len().min(tx.room());
        rx[..payload].copy_from_slice(&tx[..payload]);
        let marks = Vec::with_capacity(MMSG * GSO_SEGMENTS);
        Self { tx, rx, marks, rtt: RttRecorder::new(), pace: RttRecorder::new() }
    }
}

/// Threads that serve the flows at most.
const MOST_THREADS: u32 = 64;

/// Room for what one call may receive, with messages of at most `message` bytes.
fn batch_room(receive: ReceiveBy, message: usize) -> usize {
    match receive {
        ReceiveBy::Mmsg => MMSG * message,
        ReceiveBy::Gro => GRO_PIECES << 16,
        ReceiveBy::Copy | ReceiveBy::Trunc | ReceiveBy::Map | ReceiveBy::Ktls => 0,
    }
}

/// A connection served by a measuring thread.
pub(crate) trait Flow: Send {
    /// Active end: announces the next leg.
    fn announce(&mut self, leg: usize) -> Result<(), EngineError>;

    /// Both ends: agrees on the leg and gets a machine for it.
    fn open(&mut self, leg: usize) -> Result<(), EngineError>;

    /// Works until it must wait or lets other flows run.
    fn advance(&mut self, scratch: &mut Scratch, signals: &Signals) -> io::Result<Turn>;

    /// Whether it may be left alone while its thread waits for another flow; see `Channel::settled`.
    fn settled(&mut self) -> io::Result<bool>;

    /// Whether something on its path may compress its payload.
    fn may_be_compressed(&self) -> bool;

    /// What was counted in the leg that just ended.
    fn close(&mut self) -> FlowLeg;

    /// After the last leg: answers what the other end still asks. True when this end may leave.
    fn has_parted(&mut self, rx: &mut [u8]) -> bool;

    /// The operations submitted to the kernel for it, if its calls are submitted as operations.
    fn operations(&mut self) -> Option<&mut Operations>;

    /// What to wait on.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Unblocks a thread that is blocked in this flow.
    fn breaker(&self) -> Breaker;
}

/// One flow's part of a leg.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowLeg {
    pub(crate) flow: u32,
    /// The direction of its payload.
    pub(crate) direction: Direction,
    /// Its number among the worker's links.
    pub(crate) slot: usize,
    pub(crate) counts: Snapshot,
    pub(crate) facts: SocketFacts,
    /// TCP_INFO at the end, its time by the host's clock, if the flow has a series.
    pub(crate) last: Option<TcpSample>,
    pub(crate) unsent: u64,
    pub(crate) socket_drops: u64,
    pub(crate) datagram: bool,
    pub(crate) batch: u64,
    /// The datagrams of a mix of sizes, by size.
    pub(crate) sizes: Vec<SizeCount>,
    /// Round trips with a connection each, by the host's clock.
    pub(crate) probes: Vec<ProbeSample>,
    /// The kernel's time stamps, if the spec requests them.
    pub(crate) stamps: Option<Stamps>,
}
