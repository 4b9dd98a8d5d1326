//! The sequence diagrams of the manual are what agents and coordinators say. `UPDATE_MANUAL=1` writes them anew.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Setting;
use protocol::agent::{Action, Agent, Client, Event, Rules, SessionId, Tuned};
use protocol::message::{FromAgent, ToAgent, WireRendezvous};
use protocol::pass::{Pass, PassAction, PassEvent, Side};
use protocol::worker_message::FromWorker;
use serde::Serialize;

use super::fleets::{Faults, Said, World};
use super::pass::order;
use super::runs::Run;

/// Characters between the lines of two parties.
const WIDTH: usize = 22;

/// An agent, and what is drawn.
struct Drawing {
    agents: Vec<Agent>,
    /// The parties, from left to right; the coordinators' connections and the agents.
    parties: Vec<&'static str>,
    lines: Vec<String>,
    now: Duration,
}

impl Drawing {
    fn new(parties: &[&'static str], agents: usize) -> Self {
        let agent = || {
            let mut agent = Agent::new(1);
            agent.obey(Rules { allows_tuning: true, ..Rules::default() });
            agent
        };
        let heads = parties.iter().map(|name| format!("{name:<0$}", WIDTH + 1)).collect::<String>();
        let agents = (0..agents).map(|_| agent()).collect();
        Self { agents, parties: parties.to_vec(), lines: vec![heads.trim_end().to_owned()], now: Duration::ZERO }
    }

    /// An arrow from one party to another one.
    fn arrow(&mut self, from: usize, to: usize, message: &impl Serialize) {
        let name = match serde_json::to_value(message).unwrap() {
            serde_json::Value::String(name) => name,
            value => value.as_object().unwrap().keys().next().unwrap().clone(),
        };
        let mut line: Vec<char> = " ".repeat((WIDTH + 1) * (self.parties.len() - 1) + 1).chars().collect();
        (0..self.parties.len()).for_each(|party| line[party * (WIDTH + 1)] = '|');
        let (left, right) = (from.min(to) * (WIDTH + 1) + 1, from.max(to) * (WIDTH + 1));
        line[left..right].fill('-');
        if from < to {
            line[right - 1] = '>';
        } else {
            line[left] = '<';
        }
        let start = (left + right - name.len() - 2) / 2;
        for (at, letter) in format!(" {name} ").chars().enumerate() {
            line[start + at] = letter;
        }
        self.lines.push(line.into_iter().collect::<String>().trim_end().to_owned());
    }

    /// Opens a session of a coordinator.
    fn open(&mut self, agent: usize) -> SessionId {
        let client = Client { is_remote: true, ticket: "ticket".into(), ..Client::default() };
        self.agents[agent].open(client).unwrap()
    }

    /// A message to an agent, and what it answers at once.
    fn say(
        &mut self,
        (from, to): (usize, usize),
        (agent, session): (usize, SessionId),
        message: ToAgent,
    ) -> Vec<FromAgent> {
        self.arrow(from, to, &message);
        self.happen((to, from), (agent, session), Event::Message(Box::new(message)))
    }

    /// An event at an agent, and what it says then. Its host does all that it is asked for.
    fn happen(
        &mut self,
        (from, to): (usize, usize),
        (agent, session): (usize, SessionId),
        event: Event,
    ) -> Vec<FromAgent> {
        let (mut events, mut said) = (VecDeque::from([event]), Vec::new());
        while let Some(event) = events.pop_front() {
            for action in self.agents[agent].on(self.now, session, event) {
                match action {
                    Action::Send(message) => said.push(*message),
                    Action::Listening(rendezvous) => said.push(FromAgent::Listening { rendezvous }),
                    Action::Armed(_) => said.push(FromAgent::Armed),
                    Action::SetUp(prepare) => {
                        let listens = (prepare.role == model::Role::Passive).then(|| vec![rendezvous()]);
                        events.push_back(Event::SetUp(Ok(listens)));
                    }
                    Action::Finish(_) => events.push_back(Event::Finished(Box::default())),
                    Action::Tune { .. } => {
                        let tuned = Tuned { changes: Vec::new(), mark: 0, cuts: true };
                        events.push_back(Event::Tuned(Ok(tuned)));
                    }
                    Action::Revert => events.push_back(Event::Reverted(Vec::new())),
                    Action::PutBack => events.push_back(Event::PutBack),
                    _ => {}
                }
            }
        }
        said.iter().for_each(|message| self.arrow(from, to, message));
        said
    }

    fn text(&self) -> String {
        self.lines.join("\n")
    }
}

fn rendezvous() -> WireRendezvous {
    let (address, name, port, path, boot_id) = Default::default();
    WireRendezvous { address, name, port, shared: true, path, cookie: String::new(), boot_id, blob: String::new() }
}

fn acquire(join: Option<&str>) -> ToAgent {
    ToAgent::Acquire { purpose: "stream".into(), join: join.map(str::to_owned) }
}

fn worker(message: FromWorker) -> Event {
    Event::Worker { index: 0, message: Box::new(message), round_trip: Duration::ZERO }
}

/// A trial between two agents.
fn trial() -> String {
    let mut drawing = Drawing::new(&["near agent", "coordinator", "far agent"], 2);
    let sessions = [drawing.open(0), drawing.open(1)];
    let party = |side: Side| if side == Side::Near { 0 } else { 2 };
    let at = |side: Side| (side as usize, sessions[side as usize]);
    for side in [Side::Near, Side::Far] {
        drawing.say((1, party(side)), at(side), acquire(None));
    }
    let (mut pass, actions) = Pass::begin(Duration::ZERO, order());
    let mut actions = VecDeque::from(actions);
    // What the workers do next, when nothing else happens.
    let works = |side| [(side, FromWorker::Armed { sockets: Vec::new() })];
    let mut later: VecDeque<(Side, FromWorker)> = [works(Side::Near), works(Side::Far)].concat().into();
    later.extend([Side::Near, Side::Far].map(|side| (side, FromWorker::Done(Box::default()))));
    loop {
        let said = match actions.pop_front() {
            Some(PassAction::Send(side, message)) => {
                let said = drawing.say((1, party(side)), at(side), *message);
                said.into_iter().map(|message| (side, message)).collect::<Vec<_>>()
            }
            Some(PassAction::Address(rendezvous, token)) => {
                actions.extend(pass.on(Duration::ZERO, Duration::ZERO, PassEvent::Addressed(rendezvous, token)));
                continue;
            }
            Some(PassAction::End(result)) => {
                result.unwrap();
                break;
            }
            Some(other) => panic!("{other:?}"),
            None => {
                let (side, message) = later.pop_front().expect("the pass ends");
                let said = drawing.happen((party(side), 1), at(side), worker(message));
                said.into_iter().map(|message| (side, message)).collect()
            }
        };
        for (side, message) in said {
            actions.extend(pass.on(Duration::ZERO, Duration::ZERO, PassEvent::Message(side, Box::new(message))));
        }
    }
    for side in [Side::Near, Side::Far] {
        drawing.say((1, party(side)), at(side), ToAgent::Release);
    }
    drawing.text()
}

/// Two coordinators at one agent, and a second connection of the first one.
fn queue() -> String {
    let mut drawing = Drawing::new(&["coordinator", "its second", "agent", "another one"], 1);
    let [first, second, other] = std::array::from_fn(|_| drawing.open(0));
    drawing.say((0, 2), (0, first), acquire(None));
    drawing.say((3, 2), (0, other), acquire(None));
    drawing.say((1, 2), (0, second), acquire(Some("ticket")));
    drawing.say((0, 2), (0, first), ToAgent::Release);
    drawing.say((1, 2), (0, second), ToAgent::Release);
    drawing.happen((2, 3), (0, other), Event::Turn);
    drawing.text()
}

/// A change of settings that may cut the control connection.
fn settings() -> String {
    let mut drawing = Drawing::new(&["coordinator", "agent"], 1);
    let session = drawing.open(0);
    let settings = vec![Setting { key: "dev.eth0.mtu".into(), value: "9000".into() }];
    for message in
        [acquire(None), ToAgent::Tune { settings, keep: false }, ToAgent::Keep, ToAgent::Untune, ToAgent::Release]
    {
        drawing.say((0, 1), (0, session), message);
    }
    drawing.text()
}

/// What a simulated run says, in as few columns as it has connections; what repeats itself is left out.
fn of_run(world: &mut World, parties: &[&'static str]) -> String {
    world.listen();
    world.run(None).unwrap();
    let mut drawing = Drawing::new(parties, 0);
    let mut links: Vec<u64> = Vec::new();
    for (link, said) in world.said() {
        let column = links.iter().position(|known| *known == link).unwrap_or_else(|| {
            links.push(link);
            links.len() - 1
        });
        match said {
            Said::ToAgent(ToAgent::Stored { .. } | ToAgent::IssueReachToken { .. })
            | Said::ToProcess(FromAgent::Reading(_) | FromAgent::ReachToken(_) | FromAgent::Ping) => {}
            Said::ToAgent(message) => drawing.arrow(0, column + 1, &message),
            Said::ToProcess(message) => drawing.arrow(column + 1, 0, &message),
        }
    }
    drawing.text()
}

/// Two senders of an incast, whose receiver has one connection for each test.
fn together() -> String {
    let run = Run::incast(&[0, 1, 2]);
    let mut world = World::of(1, 3, vec![run], Faults::default());
    of_run(&mut world, &["coordinator", "sender", "other sender", "receiver", "receiver again"])
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/protocol.md")
}

#[test]
fn the_diagrams_of_the_manual_are_what_is_said() {
    let (old, mut new) = (fs::read_to_string(page()).unwrap(), String::new());
    let mut lines = old.lines();
    let mut drawn = 0;
    while let Some(line) = lines.next() {
        new += &format!("{line}\n");
        let Some(name) = line.strip_prefix("<!-- sequence: ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let diagram = match name {
            "trial" => trial(),
            "queue" => queue(),
            "settings" => settings(),
            "together" => together(),
            other => panic!("no diagram '{other}'"),
        };
        new += &format!("{}\n{diagram}\n```\n", lines.next().unwrap());
        lines.by_ref().find(|line| *line == "```").expect("the end of the block");
        drawn += 1;
    }
    assert_eq!(drawn, 4);
    if std::env::var_os("UPDATE_MANUAL").is_some() {
        return fs::write(page(), new).unwrap();
    }
    assert_eq!(old, new, "UPDATE_MANUAL=1 draws them anew");
}
