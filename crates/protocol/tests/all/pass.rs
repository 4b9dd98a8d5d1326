//! Passes between two ends that answer late, fail, or say nothing.

use std::collections::VecDeque;
use std::time::Duration;

use model::random::SplitMix64;
use model::{BothEnds, EndResult, Leg, PathTimes, Pattern, Spec};
use protocol::message::{FromAgent, ReachabilityToken, ToAgent};
use protocol::pass::{END_LIMIT, Order, Pass, PassAction, PassError, PassEvent, SETUP_LIMIT, Side};

/// How an end behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Works,
    /// It does not answer a request for a trial.
    IsSilent,
    /// It reports no result, but ends when it is told to.
    NeedsAbort,
    /// It reports no result at all.
    Hangs,
    /// Its result says that it ended early.
    EndsEarly,
}

/// A trial between two ends.
pub(super) fn order() -> Order {
    let spec = Spec::new("tcp", Pattern::Stream);
    Order {
        trial: 0,
        legs: vec![Leg::of(&spec)],
        spec,
        keep: None,
        path: PathTimes::default(),
        has_far: true,
        needs_token: false,
        starts_together: false,
    }
}

/// A pass and its ends in virtual time.
struct Bench {
    now: Duration,
    random: SplitMix64,
    pass: Pass,
    ends: [End; 2],
    patience: Duration,
    /// What arrives, and when.
    due: Vec<(Duration, PassEvent)>,
    /// Messages that each end got.
    got: [Vec<&'static str>; 2],
    /// The user has stopped it.
    stopped: bool,
}

impl Bench {
    fn new(seed: u64, ends: [End; 2], has_far: bool) -> (Self, VecDeque<PassAction>) {
        let mut random = SplitMix64::new(seed);
        let (needs_token, starts_together) = (random.below(2) == 0, random.below(2) == 0);
        let order = Order { has_far, needs_token, starts_together, ..order() };
        let patience = Duration::from_millis(random.below(5_000) as u64);
        let (pass, actions) = Pass::begin(Duration::ZERO, order);
        let (due, got, stopped) = Default::default();
        (Self { now: Duration::ZERO, random, pass, ends, patience, due, got, stopped }, actions.into())
    }

    fn later(&mut self, most_ms: usize, event: PassEvent) {
        let at = self.now + Duration::from_millis(self.random.below(most_ms) as u64);
        self.due.push((at, event));
    }

    /// What an end does after a message.
    fn receive(&mut self, side: Side, message: &ToAgent) {
        let end = self.ends[side as usize];
        let (name, answers) = match message {
            ToAgent::Prepare(_) if end == End::IsSilent => ("prepare", Vec::new()),
            ToAgent::Prepare(_) if side == Side::Far => {
                ("prepare", vec![FromAgent::Listening { rendezvous: Vec::new() }, FromAgent::Armed])
            }
            ToAgent::Prepare(_) => ("prepare", vec![FromAgent::Armed]),
            ToAgent::Start => {
                ("start", if matches!(end, End::Hangs | End::NeedsAbort) { Vec::new() } else { vec![done(end)] })
            }
            ToAgent::Abort => ("abort", if end == End::NeedsAbort { vec![done(End::Works)] } else { Vec::new() }),
            other => panic!("{other:?}"),
        };
        self.got[side as usize].push(name);
        for answer in answers {
            self.later(2_000, PassEvent::Message(side, Box::new(answer)));
        }
    }

    fn perform(&mut self, action: PassAction) -> Option<Result<BothEnds, PassError>> {
        match action {
            PassAction::Send(side, message) => self.receive(side, &message),
            PassAction::GetToken => {
                let token = ReachabilityToken { port: None, cookie: String::new() };
                self.later(100, PassEvent::Token(token));
            }
            PassAction::Address(rendezvous, token) => self.later(1, PassEvent::Addressed(rendezvous, token)),
            PassAction::WaitForStart => self.later(3_000, PassEvent::Start),
            PassAction::Show(..) => {}
            PassAction::End(result) => return Some(result.map(|ends| *ends)),
        }
        None
    }

    /// The next event. If there is none, and never will be, the user stops the pass.
    fn event(&mut self) -> PassEvent {
        let next = (0..self.due.len()).min_by_key(|at| self.due[*at].0);
        let deadline = self.pass.deadline(self.patience);
        match (next, deadline) {
            (Some(at), deadline) if deadline.is_none_or(|deadline| self.due[at].0 <= deadline) => {
                let (at, event) = self.due.remove(at);
                self.now = self.now.max(at);
                event
            }
            (_, Some(deadline)) => {
                self.now = self.now.max(deadline);
                PassEvent::Timer { arriving: [false; 2] }
            }
            _ => {
                assert!(!self.stopped, "the pass with {:?} waits for ever", self.ends);
                self.stopped = true;
                PassEvent::Stop
            }
        }
    }
}

fn done(end: End) -> FromAgent {
    let failure = (end == End::EndsEarly).then(|| "stalled".into());
    FromAgent::Done(Box::new(EndResult { failure, ..EndResult::default() }))
}

/// Runs a pass to its end.
fn run(seed: u64, ends: [End; 2], has_far: bool) -> (Result<BothEnds, PassError>, Bench) {
    let (mut bench, mut actions) = Bench::new(seed, ends, has_far);
    loop {
        while let Some(action) = actions.pop_front() {
            if let Some(result) = bench.perform(action) {
                return (result, bench);
            }
        }
        let event = bench.event();
        actions.extend(bench.pass.on(bench.now, bench.patience, event));
    }
}

#[test]
fn each_pass_ends_as_its_ends_let_it() {
    use End::{EndsEarly, Hangs, IsSilent, NeedsAbort, Works};
    let kinds = [Works, IsSilent, NeedsAbort, Hangs, EndsEarly];
    for seed in 0..200 {
        for ends in kinds.into_iter().flat_map(|near| kinds.map(|far| [near, far])) {
            let (result, bench) = run(seed, ends, true);
            let stopped = bench.got.each_ref().map(|got| got.iter().filter(|name| **name == "abort").count());
            assert!(stopped[0] <= 1 && stopped[0] == stopped[1], "seed {seed}, {ends:?}: {:?}", bench.got);
            let (setup, end) = (SETUP_LIMIT + bench.patience, END_LIMIT + bench.patience);
            match (ends, result) {
                ([IsSilent, _] | [_, IsSilent], Err(PassError::NotSetUp { waited })) => assert_eq!(waited, setup),
                ([Works, Works], Ok(BothEnds { failure: None, far: Some(_), .. })) => assert_eq!(stopped, [0, 0]),
                ([NeedsAbort, NeedsAbort], Ok(BothEnds { failure: None, .. })) => assert!(bench.stopped),
                ([Hangs, _] | [_, Hangs], Err(PassError::Unended { side, waited })) => {
                    assert_eq!((ends[side as usize], waited), (Hangs, end));
                }
                ([EndsEarly, _] | [_, EndsEarly] | [NeedsAbort, _] | [_, NeedsAbort], Ok(BothEnds { failure, .. })) => {
                    // The other end has finished already if the early end reports last.
                    assert!(failure.is_some(), "seed {seed}, {ends:?}");
                }
                (ends, result) => panic!("seed {seed}, {ends:?}: {result:?}"),
            }
        }
    }
}
