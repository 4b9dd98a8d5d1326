//! The machine of the agent, the network and the coordinators: what happens next, and what must hold after it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use model::random::SplitMix64;
use protocol::agent::{Client, Event, Limits, Rules, SessionId};
use protocol::message::FromAgent;

use super::calendar::Calendar;
use super::coordinator::{Character, Coordinator, Wish};
use super::host::{Answer, Host};
use super::machine::{Machine, Out};

/// No run takes longer than this, in virtual time.
const END: Duration = Duration::from_secs(4_000);
/// What an agent may need beyond its limits: to revert settings on a slow host.
const SLACK: Duration = Duration::from_secs(30);

/// What happens at a time.
#[derive(Debug, Clone)]
enum Due {
    /// A coordinator connects, or goes on.
    Coordinator(usize),
    /// What a coordinator has sent arrives, or its end.
    ToAgent { session: SessionId, what: Arrival },
    /// What the agent has sent arrives.
    ToCoordinator { coordinator: usize, connection: u64, what: Option<Box<FromAgent>> },
    /// The host has done something.
    Host { session: SessionId, answer: Answer },
    /// A session's deadline.
    Timer(SessionId),
    /// Another program's client comes or leaves.
    OtherProgram { leaves: bool },
}

#[derive(Debug, Clone)]
enum Arrival {
    Message(Box<protocol::message::ToAgent>),
    Gone,
}

/// A connection between a coordinator and the agent. Messages keep their order.
#[derive(Debug)]
struct Link {
    coordinator: usize,
    /// The number of the coordinator's connection.
    connection: u64,
    /// When the last message of each direction arrives: to the agent, to the coordinator.
    last: [Duration; 2],
    /// Nothing more gets through.
    cut: bool,
    opened: Duration,
    /// Reports of the place in the queue that it has got.
    queued: u64,
}

pub(super) struct World {
    now: Duration,
    random: SplitMix64,
    machine: Machine,
    rules: Rules,
    slots: usize,
    links: BTreeMap<SessionId, Link>,
    coordinators: Vec<Coordinator>,
    /// Clients of other programs that have a slot.
    others: usize,
    calendar: Calendar<Due>,
    connections: u64,
    events: u64,
    /// Longest delay of a message, ns.
    delay_ns: u64,
    /// One in this many messages ends its connection.
    cut_one_in: usize,
}

impl World {
    /// The world of a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed.wrapping_mul(SplitMix64::STEP) ^ 0x5EED);
        let slots = 1 + random.below(3);
        let rules = Rules {
            limits: Limits {
                clients: 2 + random.below(40),
                hold_ns: (1 + random.below(600) as u64) * 1_000_000_000,
                ..Limits::default()
            },
            allows_tuning: random.below(4) > 0,
            grace: Duration::from_secs(random.below(30) as u64),
        };
        let count = 1 + random.below(12);
        let coordinators = (0..count).map(|number| Coordinator::new(number, &mut random)).collect();
        let delay_ns = 10_u64.pow(3 + random.below(7) as u32);
        let cut_one_in = [usize::MAX, 200, 40][random.below(3)];
        let machine = Machine::new(slots, rules.clone(), Host::new(&mut random));
        let mut world = Self {
            now: Duration::ZERO,
            random,
            machine,
            rules,
            slots,
            links: BTreeMap::new(),
            coordinators,
            others: 0,
            calendar: Calendar::default(),
            connections: 0,
            events: 0,
            delay_ns,
            cut_one_in,
        };
        for number in 0..count {
            let at = Duration::from_millis(world.random.below(5_000) as u64);
            world.schedule(at, Due::Coordinator(number));
        }
        if world.random.below(3) == 0 {
            world.schedule(Duration::from_secs(1), Due::OtherProgram { leaves: false });
        }
        world
    }

    /// Runs to the end. Returns the number of events, or the promise that was broken.
    pub(super) fn run(mut self, mut trace: Option<&mut Vec<String>>) -> Result<u64, String> {
        while let Some(due) = self.next() {
            if self.now > END {
                if self.links.is_empty() {
                    break;
                }
                return Err(format!("{} sessions are open at the end", self.links.len()));
            }
            if let Some(trace) = trace.as_deref_mut() {
                trace.push(format!("{:>12.6} s  {due:?}", self.now.as_secs_f64()));
            }
            self.happen(due);
            self.check()?;
        }
        self.check_end().map(|()| self.events)
    }

    /// What happens next.
    fn next(&mut self) -> Option<Due> {
        let (now, due) = self.calendar.next()?;
        self.now = now;
        self.events += 1;
        Some(due)
    }

    fn schedule(&mut self, at: Duration, due: Due) {
        self.calendar.schedule(at, due);
    }

    fn later(&mut self, most_ns: u64) -> Duration {
        self.now + Duration::from_nanos(self.random.next_u64() % most_ns.max(1))
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Coordinator(number) => self.go_on(number),
            Due::ToAgent { session, what } => {
                let event = match what {
                    Arrival::Message(message) => Event::Message(message),
                    Arrival::Gone => {
                        if let Some(link) = self.links.get_mut(&session) {
                            link.cut = true;
                        }
                        Event::Gone
                    }
                };
                let outs = self.machine.on(self.now, session, event, &mut self.random);
                self.follow(outs);
            }
            Due::ToCoordinator { coordinator, connection, what } => {
                let own = &mut self.coordinators[coordinator];
                if own.connection() == Some(connection) {
                    match what {
                        Some(message) => own.receive(*message),
                        None => own.lose(),
                    }
                    self.go_on(coordinator);
                }
            }
            Due::Host { session, answer } => {
                let outs = self.machine.done(self.now, session, answer, &mut self.random);
                self.follow(outs);
            }
            Due::Timer(session) => {
                let outs = self.machine.timer(self.now, session, &mut self.random);
                self.follow(outs);
            }
            Due::OtherProgram { leaves: true } => {
                self.machine.agent.queue().leave();
                self.others -= 1;
                let outs = self.machine.turns(self.now, &mut self.random);
                self.follow(outs);
            }
            Due::OtherProgram { leaves: false } => {
                if self.machine.agent.queue().enter_at_once() {
                    self.others += 1;
                    let at = self.later(20_000_000_000);
                    self.schedule(at, Due::OtherProgram { leaves: true });
                }
                if self.now < Duration::from_secs(100) {
                    let at = self.later(20_000_000_000);
                    self.schedule(at, Due::OtherProgram { leaves: false });
                }
            }
        }
    }

    /// Passes on what follows from an event at the agent.
    fn follow(&mut self, outs: Vec<Out>) {
        for out in outs {
            match out {
                Out::Send(session, message) => self.send(session, message),
                Out::End(session) => {
                    self.send_end(session);
                    self.links.remove(&session);
                }
                Out::Later(session, after, answer) => {
                    let at = self.now + after;
                    self.schedule(at, Due::Host { session, answer });
                }
                Out::Deadline(session, at) => self.schedule(at, Due::Timer(session)),
            }
        }
    }

    fn send(&mut self, session: SessionId, message: Box<FromAgent>) {
        let most = self.delay_ns;
        let at = self.later(most);
        let Some(link) = self.links.get_mut(&session) else { return };
        link.queued += u64::from(matches!(*message, FromAgent::Queued { .. }));
        if link.cut {
            return;
        }
        let at = at.max(link.last[1]);
        link.last[1] = at;
        let (coordinator, connection) = (link.coordinator, link.connection);
        self.schedule(at, Due::ToCoordinator { coordinator, connection, what: Some(message) });
    }

    fn send_end(&mut self, session: SessionId) {
        let Some(link) = self.links.get(&session) else { return };
        let (coordinator, connection, at) = (link.coordinator, link.connection, link.last[1].max(self.now));
        self.schedule(at, Due::ToCoordinator { coordinator, connection, what: None });
    }

    /// Lets a coordinator do what it wants next.
    fn go_on(&mut self, number: usize) {
        let mut waits = false;
        while !waits {
            let neighbour = self.coordinators.iter().find_map(Coordinator::ticket);
            match self.coordinators[number].wish(&mut self.random, neighbour, &mut waits) {
                Wish::Nothing => return,
                Wish::Wait(pause) => {
                    let at = self.now + pause;
                    return self.schedule(at, Due::Coordinator(number));
                }
                Wish::Connect => {
                    waits = false;
                    if !self.connect(number) {
                        let at = self.later(3_000_000_000);
                        return self.schedule(at, Due::Coordinator(number));
                    }
                }
                Wish::Send(message) => self.say(number, message),
                Wish::Close => return self.cut(number),
            }
        }
    }

    fn connect(&mut self, number: usize) -> bool {
        let source = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, (number % 3) as u8)));
        let client = Client {
            source,
            is_proved: true,
            is_remote: true,
            name: format!("coordinator {number}"),
            ticket: format!("ticket {}", self.connections),
        };
        let Ok(session) = self.machine.open(client) else { return false };
        let connection = self.connections;
        self.connections += 1;
        self.coordinators[number].connected(connection, session);
        let link =
            Link { coordinator: number, connection, last: [self.now; 2], cut: false, opened: self.now, queued: 0 };
        self.links.insert(session, link);
        true
    }

    fn say(&mut self, number: usize, message: Box<protocol::message::ToAgent>) {
        let Some(session) = self.coordinators[number].session() else { return };
        if self.random.below(self.cut_one_in) == 0 {
            return self.cut(number);
        }
        let most = self.delay_ns;
        let at = self.later(most);
        let Some(link) = self.links.get_mut(&session).filter(|link| !link.cut) else { return };
        let at = at.max(link.last[0]);
        link.last[0] = at;
        self.schedule(at, Due::ToAgent { session, what: Arrival::Message(message) });
    }

    /// The connection of a coordinator ends; the agent notices it at once, or when its host has been silent for long.
    fn cut(&mut self, number: usize) {
        let Some(session) = self.coordinators[number].session() else { return };
        self.coordinators[number].lose();
        let again = self.later(3_000_000_000);
        self.schedule(again, Due::Coordinator(number));
        let silent = self.random.below(2) == 0;
        let at = self.later(self.delay_ns) + if silent { Duration::from_secs(10) } else { Duration::ZERO };
        if let Some(link) = self.links.get_mut(&session) {
            let at = at.max(link.last[0]);
            link.last[0] = Duration::MAX;
            self.schedule(at, Due::ToAgent { session, what: Arrival::Gone });
        }
    }

    /// What holds at any time.
    fn check(&mut self) -> Result<(), String> {
        let running = self.machine.agent.queue().running();
        if running > self.slots {
            return Err(format!("{running} measurements run on {} slots", self.slots));
        }
        if running != self.machine.agent.measurements() + self.others {
            let (own, others) = (self.machine.agent.measurements(), self.others);
            return Err(format!("{running} slots are taken, {own} by coordinators and {others} by others"));
        }
        if self.machine.agent.clients() != self.links.len() {
            return Err(format!("{} clients are counted of {}", self.machine.agent.clients(), self.links.len()));
        }
        self.machine.host.check(self.machine.agent.measurements())?;
        let longest = Duration::from_nanos(self.rules.limits.hold_ns) + self.rules.grace + SLACK;
        for (session, link) in &self.links {
            let seconds = (self.now - link.opened).as_secs() + 2;
            if link.queued > seconds {
                return Err(format!("{session:?} got {} reports of its place in {seconds} s", link.queued));
            }
            if let Some(since) = self.machine.host.measuring_since(*session)
                && self.now > since + longest
            {
                return Err(format!("{session:?} has the machine since {since:?}"));
            }
        }
        Ok(())
    }

    /// What holds when nothing happens any more.
    fn check_end(&mut self) -> Result<(), String> {
        let left = [
            self.links.len(),
            self.machine.agent.clients(),
            self.machine.agent.measurements(),
            self.machine.agent.queue().running(),
        ];
        let waiting = self.machine.agent.queue().waiting();
        if left != [0; 4] || waiting != 0 {
            return Err(format!(
                "left: {left:?} connections, clients, measurements and slots, {waiting} that wait: {:?}",
                self.links
            ));
        }
        self.machine.host.check_end()?;
        for coordinator in &self.coordinators {
            coordinator.check_end()?;
        }
        Ok(())
    }
}

/// So many honest coordinators of all kinds come at once, and all measure their trials.
fn all_measure(seeds: std::ops::Range<u64>, count: usize, slots: Option<usize>) {
    for seed in seeds {
        let mut world = World::new(seed);
        let mut random = SplitMix64::new(seed);
        world.cut_one_in = usize::MAX;
        world.rules.limits = Limits { clients: count, ..Limits::default() };
        world.slots = slots.unwrap_or(world.slots);
        world.machine = Machine::new(world.slots, world.rules.clone(), Host::new(&mut random));
        let kinds = [Character::Honest, Character::Tunes, Character::Joins];
        let coordinators = (0..count).map(|number| Coordinator::of(kinds[number % 3], number, &mut random));
        world.coordinators = coordinators.collect();
        world.calendar.clear();
        (0..count).for_each(|number| world.schedule(Duration::ZERO, Due::Coordinator(number)));
        while let Some(due) = world.next() {
            world.happen(due);
            world.check().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        }
        world.check_end().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        let unfinished = world.coordinators.iter().find(|coordinator| !coordinator.has_measured_all());
        assert!(unfinished.is_none(), "seed {seed}: {unfinished:?}");
    }
}

#[test]
fn honest_coordinators_measure_all_their_trials() {
    all_measure(0..100, 9, None);
}

#[test]
fn a_thousand_clients_at_once_all_get_their_turn() {
    // Many at the same time, so that those who wait are not told their place a million times.
    all_measure(0..1, 1_000, Some(100));
}
