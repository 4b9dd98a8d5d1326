//! One connection with its machine, behind an interface of which threads can hold many.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use model::{ReceiveBy, Role, SendBy, SocketFacts, Strategy, TcpSample};

use super::{Counters, PageBuffer, RttRecorder, Signals, Snapshot, drain, pace, tcp};
use crate::pattern::{Env, LegHeader, Machine, Part, Turn, machine, open_leg, receive_leg, send_leg};
use crate::plan::{LegStop, LinkPlan, initiates, is_stream, opening};
use crate::transport::{
    Breaker, Channel, DELAYED_READ_BYTES, GRO_PIECES, GSO_SEGMENTS, Kind, MMSG, Mark, Operations, SIGNAL_BYTES,
};
use crate::{EngineError, TrialPlan, now_ns};

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
    pub(crate) tx: PageBuffer,
    pub(crate) rx: PageBuffer,
    pub(crate) marks: Vec<Mark>,
    pub(crate) rtt: RttRecorder,
    pub(crate) pace: RttRecorder,
}

impl Scratch {
    /// Buffers for the largest leg, every page of them touched.
    pub(crate) fn new(plan: &TrialPlan) -> Self {
        // Datagram signals need room at any block size; 64 KiB also holds any datagram.
        let size = plan.legs.iter().map(|leg| leg.block.max(leg.reply)).max().unwrap_or(1).max(1 << 16);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let message = plan.legs.iter().map(|leg| leg.block as usize).max().unwrap_or(1).max(SIGNAL_BYTES);
        let delayed_read = if plan.spec.delayed_reads { DELAYED_READ_BYTES } else { 0 };
        let rx = size.max(batch_room(plan.spec.engine.receive, message)).max(delayed_read);
        let tx = size.max(if plan.spec.engine.send == SendBy::Mmsg { MMSG * message } else { 0 });
        let marks = Vec::with_capacity(MMSG * GSO_SEGMENTS);
        Self {
            tx: PageBuffer::filled(tx, b't'),
            rx: PageBuffer::filled(rx, 0xff),
            marks,
            rtt: RttRecorder::new(),
            pace: RttRecorder::new(),
        }
    }
}

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

    /// What was counted in the leg that just ended.
    fn close(&mut self) -> FlowLeg;

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
}

/// A flow over a channel of type `C`.
pub(crate) struct FlowOf<C: Channel> {
    channel: C,
    machine: Option<Box<dyn Machine<C>>>,
    setup: FlowSetup,
    /// The header that the active end announced, or that a passive end received early.
    header: Option<LegHeader>,
    before: Snapshot,
    /// Block of the open leg.
    block: u64,
    /// Read while the connection is open: a closed one has no peer address.
    opened: Option<SocketFacts>,
    /// Time of one exchange in the last leg, and that leg's block.
    pace: (f64, u64),
}

impl<C: Channel> FlowOf<C> {
    pub(crate) fn boxed(mut channel: C, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        if setup.strategy == Strategy::Blocking && is_stream(&setup.plan.spec) {
            channel.limit_sends().map_err(|source| EngineError::socket("prepare", "a data connection", source))?;
        }
        if setup.plan.spec.outstanding.is_some() {
            channel.prompt();
        }
        let sends = initiates(setup.link_plan.direction, setup.plan.role);
        if !sends && setup.plan.spec.delayed_reads {
            channel.delay_reads();
        }
        let block = setup.plan.legs.iter().map(|leg| leg.block).max().unwrap_or(1);
        let engine = setup.plan.spec.engine;
        if is_stream(&setup.plan.spec) && !engine.is_plain() {
            channel
                .equip(&engine, sends, usize::try_from(block).unwrap_or(usize::MAX))
                .map_err(|source| EngineError::socket("make ready --engine", engine, source))?;
        }
        Ok(Box::new(Self {
            channel,
            machine: None,
            setup,
            header: None,
            before: Snapshot::default(),
            block: 1,
            opened: None,
            pace: (0.0, 1),
        }))
    }

    fn counters(&self) -> &Counters {
        &self.setup.counters[self.setup.slot]
    }

    /// All facts of the first flows; of the others, which are alike, only what may differ, because it is read and
    /// transferred up to ten thousand times.
    fn facts(&self) -> SocketFacts {
        if self.setup.slot < IN_FULL { self.channel.facts() } else { self.channel.brief_facts() }
    }

    fn nonblocking(&mut self, on: bool) -> Result<(), EngineError> {
        self.channel.set_nonblocking(on).map_err(|source| EngineError::socket("prepare", "a data connection", source))
    }

    /// The expected time of one exchange of `leg`: from earlier passes, else from the previous leg. A smaller block
    /// never takes longer, and a larger one at most in proportion to its size.
    fn expected_ns(&self, leg: &crate::Leg) -> f64 {
        if leg.expected_ns > 0 {
            return leg.expected_ns as f64;
        }
        let (last_ns, last_block) = self.pace;
        last_ns * (leg.block as f64 / last_block.max(1) as f64).max(1.0)
    }

    fn part(&self, header: &LegHeader, stop: LegStop) -> Part {
        let spec = &self.setup.plan.spec;
        Part {
            role: self.setup.plan.role,
            direction: self.setup.link_plan.direction,
            block: header.block as usize,
            reply: header.reply as usize,
            stop,
            leg: header.leg,
            last: header.leg as usize + 1 == self.setup.plan.legs.len(),
            pace: spec.rate_bps.map(|bps| pace(spec, bps)),
            drain: spec.end(self.setup.plan.role).drain_bps.map(|bps| drain(spec, bps)),
            to_receiver: spec.paced_to_receiver,
            shares: self.setup.strategy == Strategy::Epoll,
            spins: self.setup.strategy == Strategy::Spin,
            opening: match stop {
                LegStop::Transactions(count) if self.setup.plan.legs.len() > 1 => opening(count),
                _ => 0,
            },
        }
    }
}

impl<C: Channel> Flow for FlowOf<C> {
    fn announce(&mut self, leg: usize) -> Result<(), EngineError> {
        let foreign = self.channel.is_foreign();
        if self.setup.plan.role == Role::Passive && !foreign {
            return Ok(());
        }
        let wanted = self.setup.plan.legs[leg];
        let quota = match self.setup.plan.leg_stop(&wanted, self.setup.link_plan.flow, self.expected_ns(&wanted)) {
            LegStop::Clock => 0,
            // A flow with an empty share still opens its leg; no block fits into u64::MAX / 2, so it means "none".
            LegStop::Bytes(0) | LegStop::Transactions(0) => NOTHING,
            LegStop::Bytes(count) | LegStop::Transactions(count) => count,
        };
        let header = LegHeader { leg: leg as u32, block: wanted.block, reply: wanted.reply, quota };
        if !foreign {
            self.nonblocking(false)?;
            send_leg(&mut self.channel, &header)?;
        }
        self.header = Some(header);
        Ok(())
    }

    fn open(&mut self, leg: usize) -> Result<(), EngineError> {
        let wanted = self.setup.plan.legs[leg];
        let announced = self.header.take();
        let header = match self.setup.plan.role {
            _ if self.channel.is_foreign() => announced.ok_or_else(unannounced)?,
            Role::Active => {
                let header = announced.ok_or_else(unannounced)?;
                open_leg(&mut self.channel, &header)?;
                header
            }
            Role::Passive => {
                self.nonblocking(false)?;
                receive_leg(&mut self.channel, announced, leg as u32)?
            }
        };
        if (header.leg as usize, header.block, header.reply) != (leg, wanted.block, wanted.reply) {
            return Err(EngineError::Peer {
                peer: "the other end".into(),
                what: format!("opened leg {} instead of leg {leg}", header.leg),
            });
        }
        let stop = match header.quota {
            0 => LegStop::Clock,
            NOTHING if is_stream(&self.setup.plan.spec) => LegStop::Bytes(0),
            NOTHING => LegStop::Transactions(0),
            count if is_stream(&self.setup.plan.spec) => LegStop::Bytes(count),
            count => LegStop::Transactions(count),
        };
        let part = self.part(&header, stop);
        self.machine = Some(machine::<C>(&self.setup.plan.spec, &part)?);
        self.nonblocking(self.setup.strategy != Strategy::Blocking)?;
        self.before = self.counters().snapshot();
        self.counters().forget_times();
        self.block = header.block;
        if self.opened.is_none() {
            self.opened = Some(self.facts());
        }
        Ok(())
    }

    fn advance(&mut self, scratch: &mut Scratch, signals: &Signals) -> io::Result<Turn> {
        let Some(machine) = self.machine.as_mut() else { return Ok(Turn::Done) };
        let counters = &self.setup.counters[self.setup.slot];
        let Scratch { tx, rx, marks, rtt, pace } = scratch;
        let mut env = Env { tx, rx, marks, rtt, pace, counters, signals };
        let turn = machine.advance(&mut self.channel, &mut env)?;
        match turn {
            Turn::Next(header) => {
                self.header = Some(header);
                Ok(Turn::Done)
            }
            Turn::Wait(..) | Turn::Sleep(_) => self.channel.waiting(turn),
            Turn::Again | Turn::Done => Ok(turn),
        }
    }

    fn settled(&mut self) -> io::Result<bool> {
        self.channel.settled()
    }

    fn close(&mut self) -> FlowLeg {
        self.counters().settle(now_ns());
        let counts = self.counters().snapshot().less(&self.before);
        let exchanges = counts.transactions.max(counts.blocks_sent);
        if exchanges > 0 {
            let ended = counts.sent_ns.1.max(counts.arrival_ns.1);
            let begun = [counts.sent_ns.0, counts.arrival_ns.0].into_iter().filter(|ns| *ns > 0).min().unwrap_or(ended);
            self.pace = ((ended - begun) as f64 / exchanges as f64, self.block);
        }
        let mut facts = self.facts();
        if let Some(opened) = &self.opened {
            facts.remember(opened);
        }
        let last = tcp::has_series(&self.setup.plan, self.setup.slot).then(|| self.channel.tcp()).flatten();
        let last = last.map(|info| info.sample(now_ns()));
        if let Some(last) = &last {
            facts.agree_with(last);
        }
        let batch = self.machine.take().map_or(1, |machine| machine.batch());
        FlowLeg {
            flow: self.setup.link_plan.flow,
            slot: self.setup.slot,
            counts,
            facts,
            last,
            unsent: self.channel.unsent(),
            socket_drops: self.channel.socket_drops(),
            datagram: C::KIND == Kind::Datagram,
            batch,
        }
    }

    fn operations(&mut self) -> Option<&mut Operations> {
        self.channel.operations()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.channel.poll_fd()
    }

    fn breaker(&self) -> Breaker {
        self.channel.breaker()
    }
}

fn unannounced() -> EngineError {
    EngineError::Thread("a leg was opened before it was announced".into())
}

/// Flows whose sockets are described in full.
const IN_FULL: usize = 256;

/// An empty quota on the wire, where 0 means "until stopped".
const NOTHING: u64 = u64::MAX;
