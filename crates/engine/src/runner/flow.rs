//! A flow over a channel: the machine that its pattern gives it, leg after leg.

use std::io;
use std::os::fd::BorrowedFd;

use model::{Direction, Leg, Role, SocketFacts, Strategy, TransportName};

use super::pace::{drain, pace, pace_to_program};
use super::tcp;
use crate::core::{
    Counters, EngineError, LegHeader, LegStop, Signals, Snapshot, Turn, initiates, may_be_compressed, now_ns, opening,
};
use crate::pattern::{Env, Machine, Part, Parting, machine, open_leg, receive_leg, send_leg};
use crate::transport::{BoxFlow, Breaker, Channel, Flow, FlowLeg, FlowSetup, Kind, Operations, Scratch};

/// A flow over a channel of type `C`.
struct FlowOf<C: Channel> {
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
    /// When a flow that starts later than its trial does so; known from its first turn on.
    starts_ns: Option<u64>,
    /// What keeps an end that has confirmed the last leg.
    parting: Option<Parting>,
}

impl<C: Channel> BoxFlow for C {
    fn box_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        Ok(Box::new(FlowOf::new(self, setup)?))
    }
}

impl<C: Channel> FlowOf<C> {
    fn new(mut channel: C, setup: FlowSetup) -> Result<Self, EngineError> {
        if setup.strategy == Strategy::Blocking && setup.plan.spec.is_stream() {
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
        if setup.plan.spec.is_stream() && !engine.is_plain() {
            channel
                .equip(&setup.plan.spec, sends, usize::try_from(block).unwrap_or(usize::MAX))
                .map_err(|source| EngineError::Method { engine, source })?;
        }
        Ok(Self {
            channel,
            machine: None,
            setup,
            header: None,
            before: Snapshot::default(),
            block: 1,
            opened: None,
            pace: (0.0, 1),
            starts_ns: None,
            parting: None,
        })
    }

    /// Whether another program splits the count that this flow receives over its flows in its own way, so that this end's share says
    /// nothing: the passive end's when it also sends, and the active end's over several TCP connections.
    fn receives_a_part_of_unknown_size(&self) -> bool {
        let FlowSetup { plan, link_plan, .. } = &self.setup;
        let spec = &plan.spec;
        match plan.role {
            Role::Passive => spec.direction == Direction::Both && link_plan.direction == Direction::Send,
            Role::Active => {
                link_plan.direction == Direction::Reverse && spec.flows > 1 && spec.transport == TransportName::Tcp
            }
        }
    }

    /// Until when a flow that starts later has to wait; `None` if it is to begin or has begun.
    fn waits_until(&mut self, signals: &Signals) -> Option<u64> {
        let FlowSetup { plan, link_plan, .. } = &self.setup;
        let after_ns = plan.spec.flow_starts_ns(link_plan.flow);
        if after_ns == 0 || !initiates(link_plan.direction, plan.role) || signals.stopping() {
            return None;
        }
        let now = now_ns();
        let starts_ns = *self.starts_ns.get_or_insert(now + after_ns);
        (now < starts_ns).then_some(starts_ns)
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
    fn expected_ns(&self, leg: &Leg) -> f64 {
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
            path: self.setup.plan.path,
            stop,
            leg: header.leg,
            last: header.leg as usize + 1 == self.setup.plan.legs.len(),
            pace: spec.rate_bps.map(|bps| match self.channel.is_to_program() {
                true => pace_to_program(spec, self.setup.plan.role, bps),
                false => pace(spec, bps),
            }),
            drain: spec.end(self.setup.plan.role).drain_bps.map(|bps| drain(spec, bps)),
            to_receiver: spec.paced_to_receiver,
            shares: self.setup.strategy == Strategy::Epoll,
            spins: self.setup.strategy == Strategy::Spin,
            singly: spec.rate_bps.is_some() || spec.anatomy,
            opening: match stop {
                LegStop::Transactions(count) if self.setup.plan.legs.len() > 1 => opening(count),
                _ => 0,
            },
        }
    }
}

impl<C: Channel> Flow for FlowOf<C> {
    fn announce(&mut self, leg: usize) -> Result<(), EngineError> {
        let to_program = self.channel.is_to_program();
        if self.setup.plan.role == Role::Passive && !to_program {
            return Ok(());
        }
        let wanted = self.setup.plan.legs[leg];
        let quota = match self.setup.plan.leg_stop(&wanted, self.setup.link_plan.flow, self.expected_ns(&wanted)) {
            // The driver says when it is over.
            _ if to_program && self.receives_a_part_of_unknown_size() => 0,
            LegStop::Clock => 0,
            // A flow with an empty share still opens its leg; no block fits into u64::MAX / 2, so it means "none".
            LegStop::Bytes(0) | LegStop::Transactions(0) => NOTHING,
            LegStop::Bytes(count) | LegStop::Transactions(count) => count,
        };
        let header = LegHeader { leg: leg as u32, block: wanted.block, reply: wanted.reply, quota };
        if !to_program {
            self.nonblocking(false)?;
            send_leg(&mut self.channel, &header, self.setup.plan.path.patience_ns)?;
        }
        self.header = Some(header);
        Ok(())
    }

    fn open(&mut self, leg: usize) -> Result<(), EngineError> {
        let wanted = self.setup.plan.legs[leg];
        let announced = self.header.take();
        let patience_ns = self.setup.plan.path.patience_ns;
        let header = match self.setup.plan.role {
            _ if self.channel.is_to_program() => announced.ok_or_else(unannounced)?,
            Role::Active => {
                let header = announced.ok_or_else(unannounced)?;
                open_leg(&mut self.channel, &header, patience_ns)?;
                header
            }
            Role::Passive => {
                self.nonblocking(false)?;
                receive_leg(&mut self.channel, announced, leg as u32, patience_ns)?
            }
        };
        if (header.leg as usize, header.block, header.reply) != (leg, wanted.block, wanted.reply) {
            return Err(EngineError::Peer {
                peer: "the other end".into(),
                what: format!("started measurement {} instead of {leg}", header.leg),
            });
        }
        let stop = match header.quota {
            0 => LegStop::Clock,
            NOTHING if self.setup.plan.spec.is_stream() => LegStop::Bytes(0),
            NOTHING => LegStop::Transactions(0),
            count if self.setup.plan.spec.is_stream() => LegStop::Bytes(count),
            count => LegStop::Transactions(count),
        };
        let part = self.part(&header, stop);
        self.machine = Some(machine::<C>(&self.setup.plan.spec, &part));
        self.nonblocking(self.setup.strategy != Strategy::Blocking)?;
        if self.setup.plan.spec.anatomy {
            self.channel.start_stamps(part.initiates());
        }
        self.before = self.counters().snapshot();
        self.counters().forget_times();
        self.block = header.block;
        if self.opened.is_none() {
            self.opened = Some(self.facts());
        }
        Ok(())
    }

    fn advance(&mut self, scratch: &mut Scratch, signals: &Signals) -> io::Result<Turn> {
        if self.setup.plan.spec.responsiveness
            && let Some(until) = self.waits_until(signals)
        {
            return Ok(Turn::Sleep(until));
        }
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

    fn may_be_compressed(&self) -> bool {
        may_be_compressed(&self.setup.plan.spec, self.channel.facts().peer.as_deref())
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
        let machine = self.machine.take();
        // A Unix socket loses nothing.
        let can_lose = !self.channel.is_to_program() && self.setup.plan.spec.transport != TransportName::UnixDgram;
        if can_lose && machine.as_ref().is_some_and(|machine| machine.confirms_end()) {
            self.parting = Some(Parting::new(self.setup.plan.path.patience_ns));
        }
        let batch = machine.as_ref().map_or(1, |machine| machine.batch());
        let sizes = machine.as_ref().map_or_else(Vec::new, |machine| machine.sizes());
        let probes = machine.map_or_else(Vec::new, |mut machine| machine.take_probes());
        FlowLeg {
            flow: self.setup.link_plan.flow,
            direction: self.setup.link_plan.direction,
            slot: self.setup.slot,
            counts,
            facts,
            last,
            unsent: self.channel.unsent(),
            socket_drops: self.channel.socket_drops(),
            datagram: C::KIND == Kind::Datagram,
            batch,
            sizes,
            probes,
            stamps: self.channel.take_stamps(),
        }
    }

    fn has_parted(&mut self, rx: &mut [u8]) -> bool {
        let Some(parting) = &mut self.parting else { return true };
        self.channel.set_nonblocking(true).is_err() || parting.is_over(&mut self.channel, rx)
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
