//! The host of the agent: workers, settings and a disk, each as slow as they like.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::random::SplitMix64;
use model::{EndResult, EndTally, HostReading, Reading, Role};
use protocol::agent::{Action, Event, NotSetUp, NotTuned, SessionId, Tuned};
use protocol::message::{
    Cause, FilePiece, FromAgent, KeptResult, Obstacle, Prepare, ReachabilityToken, ToAgent, WireRendezvous,
};
use protocol::worker_message::FromWorker;

/// What the host does later.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// The answer to an action, which the session waits for.
    To(Outcome),
    /// News of a worker of this trial.
    Worker {
        trial: u64,
        index: usize,
        what: Work,
    },
    PathProbed,
}

/// The events that answer an action.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    SetUp { ok: bool, workers: usize, shared: bool },
    Finished,
    Tuned { ok: bool, cuts: bool },
    Undone,
    Kept,
    Reverted,
    PutBack,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    Listening,
    Armed,
    Reading,
    Done,
    Failed,
    Gone,
}

/// What a session has of the host.
#[derive(Debug, Default)]
struct Own {
    /// Events that wait until the host has worked for it.
    events: VecDeque<Event>,
    actions: VecDeque<Action>,
    /// It waits for the answer to an action.
    busy: bool,
    /// Number of the last trial.
    trial: u64,
    /// Workers, if there are any, and whether each has ended that trial.
    workers: Vec<bool>,
    /// What they measure.
    prepare: Option<Box<Prepare>>,
    since: Option<Duration>,
    /// Changes of settings.
    changes: usize,
    deadline: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Host {
    sessions: BTreeMap<SessionId, Own>,
    /// Longest time for what it does, ns.
    slow_ns: u64,
    /// One in this many of its works fails.
    fails_one_in: usize,
    /// Changes that no session is responsible for.
    leaked: usize,
    /// Results that are kept for coordinators, on a disk.
    pub(super) kept: Vec<KeptResult>,
}

type Later = (Duration, Option<Answer>, Option<Box<FromAgent>>);

impl Host {
    pub(super) fn new(random: &mut SplitMix64) -> Self {
        let slow_ns = 10_u64.pow(5 + random.below(5) as u32);
        let fails_one_in = [usize::MAX, 50, 8][random.below(3)];
        Self::with(slow_ns, fails_one_in)
    }

    /// A host whose work takes up to `slow_ns`, and one in `fails_one_in` fails.
    pub(super) fn with(slow_ns: u64, fails_one_in: usize) -> Self {
        Self { sessions: BTreeMap::new(), slow_ns, fails_one_in, leaked: 0, kept: Vec::new() }
    }

    /// The host after its agent was started again, which reverts what the last one left.
    pub(super) fn after_restart(&self) -> Self {
        Self { kept: self.kept.clone(), ..Self::with(self.slow_ns, self.fails_one_in) }
    }

    /// A session has the machine.
    pub(super) fn begin(&mut self, session: SessionId, now: Duration) {
        if let Some(own) = self.sessions.get_mut(&session) {
            own.since = Some(now);
        }
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.keys().copied()
    }

    pub(super) fn open(&mut self, session: SessionId) {
        self.sessions.insert(session, Own::default());
    }

    pub(super) fn forget(&mut self, session: SessionId) {
        if let Some(own) = self.sessions.remove(&session) {
            self.leaked += own.changes;
        }
    }

    /// An event waits for a session.
    pub(super) fn queue(&mut self, session: SessionId, event: Event) {
        if let Some(own) = self.sessions.get_mut(&session) {
            own.events.push_back(event);
        }
    }

    /// The next event that the session can take.
    pub(super) fn next(&mut self, session: SessionId) -> Option<Event> {
        let own = self.sessions.get_mut(&session)?;
        if own.busy || !own.actions.is_empty() { None } else { own.events.pop_front() }
    }

    pub(super) fn act(&mut self, session: SessionId, actions: Vec<Action>) {
        if let Some(own) = self.sessions.get_mut(&session) {
            own.actions.extend(actions);
        }
    }

    pub(super) fn next_action(&mut self, session: SessionId) -> Option<Action> {
        let own = self.sessions.get_mut(&session)?;
        if own.busy { None } else { own.actions.pop_front() }
    }

    pub(super) fn is_new_deadline(&mut self, session: SessionId, at: Duration) -> bool {
        let Some(own) = self.sessions.get_mut(&session) else { return false };
        own.deadline.replace(at) != Some(at)
    }

    pub(super) fn measuring_since(&self, session: SessionId) -> Option<Duration> {
        self.sessions.get(&session)?.since
    }

    /// Begins an action. Returns what follows from it, when, and what is sent at once.
    pub(super) fn perform(&mut self, session: SessionId, action: Action, random: &mut SplitMix64) -> Vec<Later> {
        let (slow_ns, fails) = (self.slow_ns, random.below(self.fails_one_in) == 0);
        let Some(own) = self.sessions.get_mut(&session) else { return Vec::new() };
        let after = Duration::from_nanos(random.next_u64() % slow_ns);
        let mut answered = |event: Outcome| {
            own.busy = true;
            vec![(after, Some(Answer::To(event)), None)]
        };
        match action {
            Action::SetUp(prepare) => {
                let (workers, shared) = (prepare.spec.processes as usize, random.below(2) == 0);
                own.prepare = Some(prepare);
                answered(Outcome::SetUp { ok: !fails, workers, shared })
            }
            Action::Finish(_) => answered(Outcome::Finished),
            Action::Tune { .. } => answered(Outcome::Tuned { ok: !fails, cuts: random.below(3) == 0 }),
            Action::Undo { mark } => {
                own.changes = own.changes.min(mark);
                answered(Outcome::Undone)
            }
            Action::KeepChanges => answered(Outcome::Kept),
            Action::Revert => answered(Outcome::Reverted),
            Action::PutBack => answered(Outcome::PutBack),
            Action::ProbePath(_) => vec![(after, Some(Answer::PathProbed), None)],
            Action::Start => own.run(random, fails),
            Action::Abort => own.all(Work::Done, after),
            Action::EndWorkers | Action::EndMeasurement => {
                own.workers.clear();
                Vec::new()
            }
            Action::Listening(rendezvous) => {
                let mut later = own.all(Work::Armed, after);
                later.push((Duration::ZERO, None, Some(Box::new(FromAgent::Listening { rendezvous }))));
                later
            }
            Action::Armed(_) => vec![(Duration::ZERO, None, Some(Box::new(FromAgent::Armed)))],
            Action::Report { reading, .. } => vec![(Duration::ZERO, None, Some(Box::new(FromAgent::Reading(reading))))],
            Action::ReportHost => vec![(Duration::ZERO, None, Some(Box::new(FromAgent::Ping)))],
            Action::Answer(message) => {
                let answers = self.answer(*message);
                answers.into_iter().map(|answer| (Duration::ZERO, None, Some(Box::new(answer)))).collect()
            }
            Action::Log(_) | Action::Left | Action::BeginReports | Action::Send(_) | Action::Close(_) => Vec::new(),
        }
    }

    /// Something is done. Returns the event of it.
    pub(super) fn done(&mut self, session: SessionId, answer: Answer) -> Option<Event> {
        let own = self.sessions.get_mut(&session)?;
        match answer {
            Answer::To(event) => {
                own.busy = false;
                if let (Outcome::Finished, Some(prepare)) = (event, &own.prepare) {
                    self.kept.extend(kept(prepare));
                }
                Some(own.answered(event))
            }
            Answer::PathProbed => own.or_queue(Event::PathProbed(Box::default())),
            Answer::Worker { trial, index, what } => {
                let has_ended = own.workers.get_mut(index).filter(|_| trial == own.trial)?;
                if *has_ended {
                    return None;
                }
                *has_ended = matches!(what, Work::Done | Work::Failed | Work::Gone);
                own.or_queue(work(index, what))
            }
        }
    }

    /// What holds at any time: a host is in no more measurements than have the machine, and has changes of those only.
    pub(super) fn check(&self, measurements: usize) -> Result<(), String> {
        let working = self.sessions.values().filter(|own| !own.workers.is_empty()).count();
        if working > 0 && measurements == 0 {
            return Err(format!("{working} sessions have workers, and none has the machine"));
        }
        if self.leaked > 0 {
            return Err(format!("{} changes of settings are left", self.leaked));
        }
        Ok(())
    }

    pub(super) fn check_end(&self) -> Result<(), String> {
        let changes: usize = self.sessions.values().map(|own| own.changes).sum();
        if changes == 0 { Ok(()) } else { Err(format!("{changes} changes of settings are left at the end")) }
    }
}

impl Own {
    /// The event now, or when the session can take it.
    fn or_queue(&mut self, event: Event) -> Option<Event> {
        if self.busy || !self.actions.is_empty() || !self.events.is_empty() {
            self.events.push_back(event);
            return None;
        }
        Some(event)
    }

    fn all(&self, what: Work, after: Duration) -> Vec<Later> {
        let trial = self.trial;
        let of = |index| (after, Some(Answer::Worker { trial, index, what }), None);
        (0..self.workers.len()).map(of).collect()
    }

    /// A trial runs: readings, and the end of each worker.
    fn run(&mut self, random: &mut SplitMix64, fails: bool) -> Vec<Later> {
        let time = Duration::from_millis(1 + random.below(3_000) as u64);
        let mut later = self.all(Work::Reading, time / 2);
        later.extend(self.all(Work::Done, time));
        if fails {
            let what = if random.below(2) == 0 { Work::Failed } else { Work::Gone };
            later.extend(self.all(what, time / 3).into_iter().take(1));
        }
        later
    }

    fn answered(&mut self, event: Outcome) -> Event {
        match event {
            Outcome::SetUp { ok: false, .. } => {
                Event::SetUp(Err(NotSetUp { reason: "no room".into(), cause: Cause::Setup }))
            }
            Outcome::SetUp { workers, shared, .. } => {
                self.trial += 1;
                self.workers = vec![false; workers];
                // With the agent's port all workers are connected through it; else each says where it listens.
                // An end that connects does not listen.
                let connects = self.prepare.as_ref().is_some_and(|prepare| prepare.role == Role::Active);
                let next = if shared || connects { Work::Armed } else { Work::Listening };
                self.events.extend((0..workers).map(|index| work(index, next)));
                Event::SetUp(Ok((shared && !connects).then(|| vec![rendezvous(); workers])))
            }
            Outcome::Finished => Event::Finished(Box::new(self.prepare.as_deref().map(measured).unwrap_or_default())),
            Outcome::Tuned { ok: false, .. } => {
                let reason = "the kernel refuses".into();
                Event::Tuned(Err(NotTuned { reason, obstacle: Obstacle::Host, lost: false }))
            }
            Outcome::Tuned { cuts, .. } => {
                let mark = self.changes;
                self.changes += 1;
                Event::Tuned(Ok(Tuned { changes: vec![change()], mark, cuts }))
            }
            Outcome::Undone => Event::Undone,
            Outcome::Kept => {
                self.changes = 0;
                Event::KeptChanges(Ok(()))
            }
            Outcome::Reverted => {
                self.changes = 0;
                Event::Reverted(Vec::new())
            }
            Outcome::PutBack => {
                self.changes = 0;
                self.since = None;
                Event::PutBack
            }
        }
    }
}

fn work(index: usize, what: Work) -> Event {
    let message = match what {
        Work::Gone => return Event::WorkerGone { reason: "killed".into() },
        Work::Listening => FromWorker::Listening(rendezvous()),
        Work::Armed => FromWorker::Armed { sockets: Vec::new() },
        Work::Reading => FromWorker::Reading(Reading::default()),
        Work::Done => FromWorker::Done(Box::default()),
        Work::Failed => FromWorker::Failed { reason: "no route".into() },
    };
    Event::Worker { index, message: Box::new(message), round_trip: Duration::from_millis(1) }
}

fn change() -> model::Change {
    let value = |text: &str| text.to_owned();
    let (key, host_wide, note) = (value("sysctl.net.core.somaxconn"), false, None);
    model::Change { key, before: value("1"), requested: value("2"), now: value("2"), host_wide, note }
}

fn rendezvous() -> WireRendezvous {
    let (address, name, port, path, boot_id) = Default::default();
    WireRendezvous { address, name, port, shared: false, path, cookie: String::new(), boot_id, blob: String::new() }
}

/// What an end has measured: both ends of one attempt have the same number of bytes, and no other one has.
pub(super) fn measured(prepare: &Prepare) -> EndResult {
    let attempt = prepare.keep.as_ref().and_then(|keep| u64::from_str_radix(&keep.attempt, 16).ok()).unwrap_or(0);
    let bytes = 1_000_000_000 + u64::from(prepare.trial % 1_000) * 1_000 + attempt % 1_000;
    let ns = 1_000_000_000;
    let tally = match prepare.role {
        Role::Active => EndTally { bytes_sent: bytes, sending_ns: ns, ..EndTally::default() },
        Role::Passive => EndTally { bytes_received: bytes, receiving_ns: ns, ..EndTally::default() },
    };
    EndResult { tallies: vec![tally; prepare.legs.len()], elapsed_ns: ns, ..EndResult::default() }
}

fn kept(prepare: &Prepare) -> Option<KeptResult> {
    let (of, trial, role) = (prepare.keep.clone()?, prepare.trial, prepare.role);
    Some(KeptResult { of, trial, role, done: measured(prepare) })
}

impl Host {
    /// The host's answers to a message that concerns it only.
    fn answer(&mut self, message: ToAgent) -> Vec<FromAgent> {
        vec![match message {
            ToAgent::Clock => FromAgent::Clock { realtime_ns: 0, monotonic_ns: 0 },
            ToAgent::Fetch { .. } => FromAgent::Piece(FilePiece::default()),
            ToAgent::Show { .. } => FromAgent::Shown { settings: Vec::new() },
            ToAgent::Journal => FromAgent::Journal { entries: Vec::new() },
            ToAgent::IssueReachToken { .. } => {
                FromAgent::ReachToken(ReachabilityToken { port: None, cookie: String::new() })
            }
            ToAgent::ReadConditions => FromAgent::Conditions(HostReading::default()),
            ToAgent::Stored { run, below } => {
                self.kept.retain(|kept| kept.of.run != run || kept.trial >= below);
                return Vec::new();
            }
            ToAgent::Results { run } => {
                let own = self.kept.iter().filter(|kept| kept.of.run == run);
                let own = own.map(|kept| FromAgent::Result(Box::new(kept.clone())));
                return own.chain([FromAgent::NoMoreResults { unread: None }]).collect();
            }
            _ => return Vec::new(),
        }]
    }
}
