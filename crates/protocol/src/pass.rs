//! One pass at both ends: they are prepared, start, and are waited for. Transports with one end have no far one.
//!
//! [`Pass`] reads no clock and does no I/O: its caller performs the [`PassAction`]s in their order, and passes their answers. An end whose
//! connection is lost, or that fails, ends the pass at its caller.

use std::time::Duration;

use model::{BothEnds, EndResult, Leg, Live, PathTimes, Role, Spec};
use text::{Text, say};

use crate::agent::Time;
use crate::message::{FromAgent, Prepare, ReachabilityToken, ResultOf, ToAgent, WireRendezvous};

/// Time limit for the set-up of the connections, on a short path; the workers have a shorter one.
pub const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for an end to finish after an abort, or after the other end has finished: longer than a datagram end repeats its
/// last signal (8 s), with some margin for hosts with more flows than cores. Longer on a path that shows that it needs more.
pub const END_LIMIT: Duration = Duration::from_secs(10);
/// How long to go on waiting for a result that is arriving, before it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Longest time for it.
const MOST_ARRIVING: Duration = Duration::from_secs(600);

/// An end of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that connects.
    Near,
    /// The end that accepts.
    Far,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Number of the pass within the measurement.
    pub trial: u32,
    /// The measurement.
    pub spec: Spec,
    /// The legs, in their order.
    pub legs: Vec<Leg>,
    /// As what the agents keep their results, if they are to keep them.
    pub keep: Option<ResultOf>,
    /// What the control connections show of the path.
    pub path: PathTimes,
    /// Whether there is a far end.
    pub has_far: bool,
    /// Whether the near end's agent needs a reachability token of the far end's.
    pub needs_token: bool,
    /// Whether it starts together with other tests.
    pub starts_together: bool,
}

/// What happens to a pass.
#[derive(Debug)]
pub enum PassEvent {
    /// An end sent a message.
    Message(Side, Box<FromAgent>),
    /// The answer to [`PassAction::GetToken`].
    Token(ReachabilityToken),
    /// The answer to [`PassAction::Address`]: where the near end connects, and the token that proves that it may.
    Addressed(Vec<WireRendezvous>, Option<ReachabilityToken>),
    /// The common start of simultaneous tests.
    Start,
    /// The user wants to stop, or another test cannot start.
    Stop,
    /// The deadline has passed. `arriving`: a message of the near and of the far end is arriving.
    Timer {
        /// For the near end and the far end.
        arriving: [bool; 2],
    },
}

/// What is to be done for a pass.
#[derive(Debug)]
pub enum PassAction {
    /// Send a message to an end.
    Send(Side, Box<ToAgent>),
    /// Get a reachability token of the far end; answered by [`PassEvent::Token`].
    GetToken,
    /// Fill in how the far end is reached; answered by [`PassEvent::Addressed`].
    Address(Vec<WireRendezvous>, Option<ReachabilityToken>),
    /// All connections are up: wait for the other tests; answered by [`PassEvent::Start`] or [`PassEvent::Stop`].
    WaitForStart,
    /// Show what an end reports of the running trial.
    Show(Side, Live),
    /// The pass has ended.
    End(Result<Box<BothEnds>, PassError>),
}

/// Why a pass ends without results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassError {
    /// Its connections were not established in time.
    NotSetUp {
        /// How long it took.
        waited: Duration,
    },
    /// An end reports no result, even after it was told to end.
    Unended {
        /// The end.
        side: Side,
        /// How long it had.
        waited: Duration,
    },
    /// The user wanted to stop, or another test could not start, before the start.
    Interrupted,
}

/// One pass.
#[derive(Debug)]
pub struct Pass {
    order: Order,
    token: Option<ReachabilityToken>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    SettingUp {
        since: Time,
        armed: [bool; 2],
    },
    /// Armed, until all tests are.
    Waiting,
    Running(Box<Running>),
    Over,
}

#[derive(Debug)]
struct Running {
    since: Time,
    results: [Option<EndResult>; 2],
    /// Since when, and for how long on a short path, what is missing is waited for.
    limit: Option<(Time, Duration)>,
    arriving_since: Option<Time>,
    aborted: bool,
    failure: Option<Text>,
}

impl Side {
    /// "near" or "far".
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

impl Pass {
    /// Begins a pass.
    #[must_use]
    pub fn begin(now: Time, order: Order) -> (Self, Vec<PassAction>) {
        let armed = [false, !order.has_far];
        let pass = Self { order, token: None, phase: Phase::SettingUp { since: now, armed } };
        let first = match (pass.order.has_far, pass.order.needs_token) {
            (true, true) => PassAction::GetToken,
            (true, false) => pass.prepare(Side::Far, Vec::new(), None),
            (false, _) => pass.prepare(Side::Near, Vec::new(), None),
        };
        (pass, vec![first])
    }

    /// Takes an event, and returns what is to be done. `patience` is how much longer than on a short path answers may take.
    #[must_use]
    pub fn on(&mut self, now: Time, patience: Duration, event: PassEvent) -> Vec<PassAction> {
        let mut actions = Vec::new();
        match (&mut self.phase, event) {
            (Phase::SettingUp { armed, .. }, PassEvent::Message(side, message)) => match *message {
                FromAgent::Listening { rendezvous } if side == Side::Far => {
                    actions.push(PassAction::Address(rendezvous, self.token.take()));
                }
                FromAgent::Armed => {
                    armed[side as usize] = true;
                    if *armed == [true; 2] {
                        self.armed(now, &mut actions);
                    }
                }
                _ => {}
            },
            (Phase::SettingUp { .. }, PassEvent::Token(token)) => {
                self.token = Some(token);
                actions.push(self.prepare(Side::Far, Vec::new(), None));
            }
            (Phase::SettingUp { .. }, PassEvent::Addressed(rendezvous, token)) => {
                actions.push(self.prepare(Side::Near, rendezvous, token));
            }
            (Phase::SettingUp { since, .. }, PassEvent::Timer { .. }) => {
                let waited = now.saturating_sub(*since);
                if waited >= SETUP_LIMIT + patience {
                    self.end(Err(PassError::NotSetUp { waited }), &mut actions);
                }
            }
            (Phase::Waiting, PassEvent::Start) => self.start(now, &mut actions),
            (Phase::SettingUp { .. } | Phase::Waiting, PassEvent::Stop) => {
                self.end(Err(PassError::Interrupted), &mut actions);
            }
            (Phase::Running(_), event) => self.run(now, patience, event, &mut actions),
            // An armed end sends nothing but pings, unless it fails.
            (Phase::SettingUp { .. } | Phase::Waiting | Phase::Over, _) => {}
        }
        actions
    }

    /// When the pass gets [`PassEvent::Timer`], if nothing else happens before.
    #[must_use]
    pub fn deadline(&self, patience: Duration) -> Option<Time> {
        match &self.phase {
            Phase::SettingUp { since, .. } => Some(*since + SETUP_LIMIT + patience),
            Phase::Running(running) => running.limit.map(|(since, limit)| since + limit + patience),
            Phase::Waiting | Phase::Over => None,
        }
    }

    /// Whether its connections are set up.
    #[must_use]
    pub fn is_setting_up(&self) -> bool {
        matches!(self.phase, Phase::SettingUp { .. })
    }

    /// How long it runs.
    #[must_use]
    pub fn running_for(&self, now: Time) -> Duration {
        match &self.phase {
            Phase::Running(running) => now.saturating_sub(running.since),
            _ => Duration::ZERO,
        }
    }

    /// The end of a sentence about a connection that is lost now: "while it connected".
    #[must_use]
    pub fn during(&self, side: Side) -> &'static str {
        match (&self.phase, side) {
            (Phase::SettingUp { .. }, Side::Near) => "while it connected",
            (Phase::SettingUp { .. }, Side::Far) => "during the set-up of a trial",
            (Phase::Waiting, _) => "before the start of a trial",
            (Phase::Running(_) | Phase::Over, _) => "during a trial",
        }
    }

    fn prepare(
        &self,
        side: Side,
        rendezvous: Vec<WireRendezvous>,
        reach_token: Option<ReachabilityToken>,
    ) -> PassAction {
        let Order { trial, spec, legs, keep, path, .. } = self.order.clone();
        let role = if side == Side::Near { Role::Active } else { Role::Passive };
        let prepare = Prepare { trial, role, spec, legs, rendezvous, reach_token, keep, path };
        PassAction::Send(side, Box::new(ToAgent::Prepare(Box::new(prepare))))
    }

    /// All connections are up.
    fn armed(&mut self, now: Time, actions: &mut Vec<PassAction>) {
        if self.order.starts_together {
            self.phase = Phase::Waiting;
            actions.push(PassAction::WaitForStart);
        } else {
            self.start(now, actions);
        }
    }

    fn start(&mut self, now: Time, actions: &mut Vec<PassAction>) {
        // The passive end first: it must be ready when the active end sends.
        actions.extend(self.to_all(&ToAgent::Start));
        let (results, limit, arriving_since, failure) = Default::default();
        self.phase =
            Phase::Running(Box::new(Running { since: now, results, limit, arriving_since, aborted: false, failure }));
    }

    /// A message to both ends, the far one first.
    fn to_all(&self, message: &ToAgent) -> Vec<PassAction> {
        let far = self.order.has_far.then_some(Side::Far);
        let send = |side| PassAction::Send(side, Box::new(message.clone()));
        far.into_iter().chain([Side::Near]).map(send).collect()
    }

    /// After one end has finished, or after an interrupt, the other has limited time.
    fn run(&mut self, now: Time, patience: Duration, event: PassEvent, actions: &mut Vec<PassAction>) {
        let abort = self.to_all(&ToAgent::Abort);
        let Phase::Running(running) = &mut self.phase else { return };
        match event {
            PassEvent::Message(side, message) => match *message {
                FromAgent::Live(interval) => actions.push(PassAction::Show(side, Live::Interval(interval))),
                FromAgent::Reading(reading) => actions.push(PassAction::Show(side, Live::Reading(reading))),
                FromAgent::Done(result) => {
                    // The other end would wait in vain.
                    if let Some(reason) = result.failure.as_ref().filter(|_| !running.aborted) {
                        running.failure.get_or_insert_with(|| say!("{} end: {reason}", side.name()));
                        running.abort(now);
                        actions.extend(abort);
                    }
                    running.results[side as usize] = Some(*result);
                    // Data in flight to the other end may take as long as the stall time, not longer.
                    let limit = END_LIMIT + Duration::from_nanos(self.order.spec.stall_ns.saturating_mul(2));
                    running.limit.get_or_insert((now, limit));
                    if running.has_all(self.order.has_far) {
                        let [near, far] = std::mem::take(&mut running.results);
                        let failure = running.failure.take();
                        let results = BothEnds { near: near.unwrap_or_default(), far, failure };
                        self.end(Ok(Box::new(results)), actions);
                    }
                }
                _ => {}
            },
            PassEvent::Stop if !running.aborted => {
                running.abort(now);
                actions.extend(abort);
            }
            PassEvent::Timer { arriving } => {
                let Some((since, limit)) = running.limit else { return };
                // The path may have shown itself to be slower, and a long result may be arriving.
                if now < since + limit + patience {
                    return;
                }
                let side = if running.results[Side::Near as usize].is_none() { Side::Near } else { Side::Far };
                if arriving[side as usize]
                    && now.saturating_sub(*running.arriving_since.get_or_insert(now)) < MOST_ARRIVING
                {
                    running.limit = Some((now, LOOK_AGAIN));
                } else if running.aborted {
                    self.end(Err(PassError::Unended { side, waited: limit + patience }), actions);
                } else {
                    let late = side.name();
                    running
                        .failure
                        .get_or_insert_with(|| say!("the {late} end did not finish in time after the other end had"));
                    running.abort(now);
                    actions.extend(abort);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, result: Result<Box<BothEnds>, PassError>, actions: &mut Vec<PassAction>) {
        self.phase = Phase::Over;
        actions.push(PassAction::End(result));
    }
}

impl Running {
    fn abort(&mut self, now: Time) {
        (self.aborted, self.limit) = (true, Some((now, END_LIMIT)));
    }

    fn has_all(&self, has_far: bool) -> bool {
        self.results[0].is_some() && (self.results[1].is_some() || !has_far)
    }
}
