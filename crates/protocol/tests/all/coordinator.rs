//! Coordinators of all kinds, as the agent sees them.

use std::time::Duration;

use model::random::SplitMix64;
use model::{Leg, PathTimes, Pattern, Role, Setting, Spec};
use protocol::agent::SessionId;
use protocol::message::{FromAgent, Prepare, ToAgent};

/// How a coordinator behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Character {
    /// Measures its trials, and says when it has done so.
    Honest,
    /// The same, and changes settings before.
    Tunes,
    /// The same, and is killed at any time.
    Dies,
    /// The same over a connection that joins another coordinator's.
    Joins,
    /// Acquires the machine and does nothing.
    Sleeps,
    /// Watches the host.
    Watches,
    /// Sends what it likes.
    Hostile,
}

/// What a coordinator does next.
#[derive(Debug)]
pub(super) enum Wish {
    /// It waits for the agent.
    Nothing,
    Wait(Duration),
    Connect,
    Send(Box<ToAgent>),
    /// It ends its connection.
    Close,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It connects.
    Away,
    /// It is connected, and has asked for nothing.
    There,
    Acquires,
    Watches,
    /// It has the machine.
    Ready,
    Tunes,
    Confirms,
    SetsUp,
    Starts,
    Measures,
    Fails,
    Resets,
    /// It has nothing more to do, or was sent away.
    Over,
}

#[derive(Debug)]
pub(super) struct Coordinator {
    number: usize,
    character: Character,
    state: State,
    connection: Option<(u64, SessionId)>,
    /// Trials that are to be measured.
    trials: usize,
    /// How often it connects anew.
    tries: usize,
    /// Messages of a hostile one.
    messages: usize,
    tuned: bool,
    /// The ticket of its own measurement.
    ticket: Option<String>,
}

impl Coordinator {
    pub(super) fn new(number: usize, random: &mut SplitMix64) -> Self {
        use Character::{Dies, Honest, Hostile, Joins, Sleeps, Tunes, Watches};
        let character = [Honest, Honest, Tunes, Dies, Joins, Sleeps, Watches, Hostile][random.below(8)];
        Self::of(character, number, random)
    }

    pub(super) fn of(character: Character, number: usize, random: &mut SplitMix64) -> Self {
        let (state, connection, ticket) = (State::Away, None, None);
        let (trials, tries, messages) = (1 + random.below(4), 1 + random.below(3), random.below(30));
        Self { number, character, state, connection, trials, tries, messages, tuned: false, ticket }
    }

    pub(super) fn connection(&self) -> Option<u64> {
        self.connection.map(|(number, _)| number)
    }

    pub(super) fn session(&self) -> Option<SessionId> {
        self.connection.map(|(_, session)| session)
    }

    pub(super) fn ticket(&self) -> Option<String> {
        self.ticket.clone()
    }

    pub(super) fn connected(&mut self, connection: u64, session: SessionId) {
        self.connection = Some((connection, session));
        self.state = State::There;
    }

    /// Its connection is lost.
    pub(super) fn lose(&mut self) {
        (self.connection, self.ticket, self.tuned) = (None, None, false);
        self.tries = self.tries.saturating_sub(1);
        self.state = if self.tries > 0 && self.state != State::Over { State::Away } else { State::Over };
    }

    pub(super) fn receive(&mut self, message: FromAgent) {
        self.state = match (self.state, message) {
            (_, FromAgent::Refused { .. }) => State::Over,
            (State::Acquires, FromAgent::Granted { ticket }) => {
                self.ticket = ticket;
                State::Ready
            }
            (State::Tunes, FromAgent::Tuned { confirm: true, .. }) => State::Confirms,
            (State::Tunes | State::Confirms, FromAgent::Tuned { .. } | FromAgent::Kept | FromAgent::Untuned { .. }) => {
                State::Ready
            }
            (State::SetsUp, FromAgent::Armed) => State::Starts,
            (State::SetsUp | State::Starts | State::Measures, FromAgent::Failed { .. }) => {
                self.trials -= 1;
                State::Fails
            }
            (State::Measures, FromAgent::Done(_)) => {
                self.trials -= 1;
                State::Ready
            }
            (State::Resets, FromAgent::Reset) => State::Ready,
            // A report of the host, for one that watches.
            (State::Watches, _) => {
                self.trials -= 1;
                if self.trials == 0 { State::Over } else { State::Watches }
            }
            (state, _) => state,
        };
    }

    /// What it does now. `waits`: it has said what it wants, and the agent has the next word.
    pub(super) fn wish(&mut self, random: &mut SplitMix64, neighbour: Option<String>, waits: &mut bool) -> Wish {
        if self.state == State::Over {
            return if self.connection.is_some() { Wish::Close } else { Wish::Nothing };
        }
        if self.character == Character::Dies && self.state != State::Away && random.below(12) == 0 {
            return Wish::Close;
        }
        if self.character == Character::Hostile && self.state != State::Away {
            return self.mischief(random);
        }
        *waits = true;
        match self.state {
            State::Away => Wish::Connect,
            State::There if self.character == Character::Watches => {
                self.state = State::Watches;
                Wish::Send(Box::new(ToAgent::Watch { interval_ns: 50_000_000 }))
            }
            State::There => {
                self.state = State::Acquires;
                let join = neighbour.filter(|_| self.character == Character::Joins);
                Wish::Send(Box::new(ToAgent::Acquire { purpose: format!("trials of {}", self.number), join }))
            }
            State::Ready => {
                let wish = self.go_on(random);
                *waits = self.state != State::Over;
                wish
            }
            State::Confirms => Wish::Send(Box::new(ToAgent::Keep)),
            State::Starts => {
                self.state = State::Measures;
                Wish::Send(Box::new(ToAgent::Start))
            }
            State::Fails => {
                self.state = State::Resets;
                Wish::Send(Box::new(ToAgent::Reset))
            }
            State::Measures if random.below(5) == 0 => Wish::Send(Box::new(ToAgent::Abort)),
            _ => Wish::Nothing,
        }
    }

    /// What it does with the machine.
    fn go_on(&mut self, random: &mut SplitMix64) -> Wish {
        if self.character == Character::Sleeps && random.below(3) > 0 {
            return Wish::Wait(Duration::from_secs(1 + random.below(20) as u64));
        }
        if self.character == Character::Tunes && !self.tuned {
            self.tuned = true;
            self.state = State::Tunes;
            let setting = Setting { key: "sysctl.net.core.somaxconn".into(), value: "4096".into() };
            return Wish::Send(Box::new(ToAgent::Tune { settings: vec![setting], keep: random.below(4) == 0 }));
        }
        if self.trials == 0 {
            self.state = State::Over;
            return Wish::Send(Box::new(ToAgent::Release));
        }
        self.state = State::SetsUp;
        Wish::Send(Box::new(ToAgent::Prepare(Box::new(prepare(random)))))
    }

    fn mischief(&mut self, random: &mut SplitMix64) -> Wish {
        if self.messages == 0 {
            self.state = State::Over;
            return Wish::Close;
        }
        self.messages -= 1;
        if random.below(4) == 0 {
            return Wish::Wait(Duration::from_millis(random.below(4_000) as u64));
        }
        let settings = vec![Setting { key: "sysctl.net.core.somaxconn".into(), value: "1".into() }];
        Wish::Send(Box::new(match random.below(16) {
            0..=2 => ToAgent::Acquire { purpose: "anything".into(), join: None },
            3 => ToAgent::Acquire { purpose: "anything".into(), join: Some("a guess".into()) },
            4 | 5 => ToAgent::Prepare(Box::new(prepare(random))),
            6 => ToAgent::Start,
            7 => ToAgent::Abort,
            8 => ToAgent::Reset,
            9 | 10 => ToAgent::Tune { settings, keep: random.below(2) == 0 },
            11 => ToAgent::Keep,
            12 => ToAgent::Untune,
            13 => ToAgent::Watch { interval_ns: random.next_u64() >> random.below(64) },
            14 => ToAgent::AskUsers,
            _ => ToAgent::Release,
        }))
    }

    /// It has measured all that it wanted, or was sent away with a reason.
    pub(super) fn check_end(&self) -> Result<(), String> {
        if self.state == State::Over {
            return Ok(());
        }
        Err(format!("coordinator {} ({:?}) waits for ever: {:?}", self.number, self.character, self.state))
    }

    pub(super) fn has_measured_all(&self) -> bool {
        self.state == State::Over && self.trials == 0
    }
}

fn prepare(random: &mut SplitMix64) -> Prepare {
    let spec = Spec { processes: 1 + random.below(3) as u32, flows: 4, ..Spec::new("tcp", Pattern::Stream) };
    let legs = vec![Leg::of(&spec)];
    let (rendezvous, reach_token, keep) = Default::default();
    let path = PathTimes::default();
    Prepare { trial: 0, role: Role::Passive, spec, legs, rendezvous, reach_token, keep, path }
}
