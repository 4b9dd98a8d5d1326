//! The network between processes and agents: what is sent, late, lost and twisted.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use model::{EndResult, EndTally, PathTimes};
use protocol::agent::{Client, Event as AgentEvent, SessionId};
use protocol::coordinator::{Connected, Event, LineEnd, LineId, Outside, Seen};
use protocol::message::{Cause, FromAgent, ToAgent};

use super::super::machine::Out;
use super::{Due, Said, World};

/// A connection of a process to an agent. Messages keep their order.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) process: u64,
    pub(super) line: LineId,
    pub(super) agent: usize,
    pub(super) life: u64,
    pub(super) session: SessionId,
    /// When the last message of each direction arrives: to the agent, to the process.
    pub(super) last: [Duration; 2],
    /// Nothing more gets through.
    pub(super) cut: bool,
    /// Whether its agent, and its process, has done with it.
    pub(super) ended: [bool; 2],
    /// What has arrived and is not taken.
    pub(super) waiting: VecDeque<Option<Box<FromAgent>>>,
}

impl World {
    pub(super) fn connect(&mut self, process: u64, outside: &Outside, agent: usize) -> Option<Connected> {
        let number = self.number();
        let side = &mut self.agents[agent];
        let life = side.life.filter(|_| !side.cut_off)?;
        let client = Client {
            source: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, (process % 250) as u8))),
            is_proved: true,
            is_remote: true,
            name: format!("process {process}"),
            ticket: format!("ticket {number}"),
        };
        let session = side.machine.open(client).ok()?;
        let line = outside.line();
        let (last, ended, waiting) = ([self.now; 2], [false; 2], VecDeque::new());
        let link = Link { process, line, agent, life, session, last, cut: false, ended, waiting };
        self.links.insert(number, link);
        self.by_line.insert((process, line), number);
        self.by_session.insert((agent, life, session), number);
        let patience_ns = 30 * self.delay_ns;
        let path = PathTimes { round_trip_ns: self.delay_ns, patience_ns };
        outside.see(line, Seen { path, ..Seen::default() });
        Some(Connected {
            line,
            name: format!("host {agent}"),
            instance: format!("instance {agent} {life}"),
            address: Some(SocketAddr::from(([192, 0, 2, agent as u8], 6280))),
            host_name: None,
            namespace: Some((format!("host {agent}"), 1)),
        })
    }

    /// Passes on messages that a process can take now.
    pub(super) fn pass_on(&mut self, process: u64) -> Result<(), String> {
        loop {
            let Some(own) = self.processes.get(&process) else { return Ok(()) };
            let waiting = self.waiting.range((process, 0)..=(process, u64::MAX)).map(|(_, number)| *number);
            let takes = |number: &u64| self.links.get(number).is_some_and(|link| own.outside.takes_of(link.line));
            let next = waiting.into_iter().find(takes);
            let Some((number, link)) = next.and_then(|number| Some((number, self.links.get_mut(&number)?))) else {
                return Ok(());
            };
            let line = link.line;
            let first = link.waiting.pop_front();
            if link.waiting.is_empty() {
                self.waiting.remove(&(process, number));
            }
            let arrived = match first.flatten() {
                Some(message) if *message == FromAgent::Ping => continue,
                Some(message) => Ok(*message),
                None => {
                    self.side_ends(number, 1);
                    Err(LineEnd("the connection was closed".into()))
                }
            };
            self.go_on(process, Some(Event::Arrived(line, arrived)))?;
        }
    }

    pub(super) fn link_of(&self, process: u64, line: LineId) -> Option<u64> {
        self.by_line.get(&(process, line)).copied()
    }

    pub(super) fn send_to_agent(&mut self, process: u64, line: LineId, message: Box<ToAgent>) {
        let Some(number) = self.link_of(process, line) else { return };
        if self.faults.cut_one_in.is_some_and(|many| self.random.below(many) == 0) {
            return self.cut(number, Duration::from_secs(8));
        }
        let at = self.later(self.delay_ns);
        let Some(link) = self.links.get_mut(&number).filter(|link| !link.cut) else { return };
        let at = at.max(link.last[0]);
        link.last[0] = at;
        self.schedule(at, Due::ToAgent { link: number, what: Some(message) });
    }

    /// A connection is lost: each side notices it at once, or after some silence.
    pub(super) fn cut(&mut self, number: u64, silence: Duration) {
        let [near, far] = [0, 1].map(|_| {
            let silent = if self.random.below(2) == 0 { silence } else { Duration::ZERO };
            self.later(self.delay_ns) + silent
        });
        let Some(link) = self.links.get_mut(&number).filter(|link| !link.cut) else { return };
        link.cut = true;
        let (near, far) = (near.max(link.last[1]), far.max(link.last[0]));
        self.schedule(far, Due::ToAgent { link: number, what: None });
        self.schedule(near, Due::ToProcess { link: number, what: None });
    }

    /// A process ends a connection.
    pub(super) fn end_link(&mut self, number: u64, silence: Duration) {
        let at = self.later(self.delay_ns) + silence;
        let Some(link) = self.links.get_mut(&number) else { return };
        if !std::mem::replace(&mut link.cut, true) {
            let at = at.max(link.last[0]);
            self.schedule(at, Due::ToAgent { link: number, what: None });
        }
        self.side_ends(number, 1);
    }

    /// The agent (0) or the process (1) has done with a connection, which is forgotten when both have.
    fn side_ends(&mut self, number: u64, side: usize) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.ended[side] = true;
        if link.ended[1] {
            link.waiting.clear();
            self.waiting.remove(&(link.process, number));
        }
        if link.ended == [true; 2] {
            self.by_line.remove(&(link.process, link.line));
            self.by_session.remove(&(link.agent, link.life, link.session));
            self.links.remove(&number);
        }
    }

    pub(super) fn cut_lines_of(&mut self, process: u64) {
        let own: Vec<u64> =
            self.links.iter().filter(|(_, link)| link.process == process).map(|(number, _)| *number).collect();
        let silence = if self.random.below(2) == 0 { Duration::from_secs(10) } else { Duration::ZERO };
        own.into_iter().for_each(|number| self.end_link(number, silence));
    }

    pub(super) fn cut_links_of(&mut self, agent: usize, silence: Duration) {
        let own: Vec<u64> =
            self.links.iter().filter(|(_, link)| link.agent == agent).map(|(number, _)| *number).collect();
        own.into_iter().for_each(|number| self.cut(number, silence));
    }

    pub(super) fn arrive(&mut self, number: u64, what: Option<Box<ToAgent>>) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let (agent, session, life) = (link.agent, link.session, link.life);
        if let (Some(said), Some(message)) = (&mut self.said, &what) {
            said.push((number, Said::ToAgent(ToAgent::clone(message))));
        }
        let event = what.map_or(AgentEvent::Gone, AgentEvent::Message);
        if matches!(event, AgentEvent::Gone) {
            self.side_ends(number, 0);
        }
        if self.agents[agent].life != Some(life) {
            return;
        }
        let outs = self.agents[agent].machine.on(self.now, session, event, &mut self.random);
        self.follow(agent, outs);
    }

    /// Passes on what follows from an event at an agent.
    pub(super) fn follow(&mut self, agent: usize, outs: Vec<Out>) {
        let life = self.agents[agent].life.unwrap_or_default();
        for out in outs {
            match out {
                Out::Send(session, message) => {
                    let message = if self.agents[agent].hostile { self.twist(message) } else { message };
                    self.send_to_process(agent, life, session, Some(message));
                }
                Out::End(session) => self.send_to_process(agent, life, session, None),
                Out::Later(session, after, answer) => {
                    let at = self.now + after;
                    self.schedule(at, Due::Host { agent, life, session, answer });
                }
                Out::Deadline(session, at) => self.schedule(at, Due::AgentTimer { agent, life, session }),
            }
        }
    }

    /// What a hostile agent sends in place of a message.
    pub(super) fn twist(&mut self, message: Box<FromAgent>) -> Box<FromAgent> {
        if self.random.below(6) > 0 {
            return message;
        }
        Box::new(match self.random.below(7) {
            0 => FromAgent::Armed,
            1 => FromAgent::Done(Box::new(EndResult { tallies: vec![EndTally::default(); 3], ..EndResult::default() })),
            2 => FromAgent::Granted { ticket: None },
            3 => FromAgent::Listening { rendezvous: Vec::new() },
            4 => FromAgent::Failed { reason: "no".into(), cause: Cause::Trial },
            5 => FromAgent::Reset,
            _ => FromAgent::Tuned { changes: Vec::new(), confirm: true },
        })
    }

    pub(super) fn send_to_process(
        &mut self,
        agent: usize,
        life: u64,
        session: SessionId,
        what: Option<Box<FromAgent>>,
    ) {
        let Some(number) = self.by_session.get(&(agent, life, session)).copied() else { return };
        let at = self.later(self.delay_ns);
        let Some(link) = self.links.get_mut(&number).filter(|link| !link.cut) else { return };
        link.cut |= what.is_none();
        let at = at.max(link.last[1]);
        link.last[1] = at;
        let is_end = what.is_none();
        self.schedule(at, Due::ToProcess { link: number, what });
        if is_end {
            self.side_ends(number, 0);
        }
    }
}
