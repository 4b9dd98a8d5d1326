//! The two ends of a test: passes over fresh connections, and searches that take several of them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use model::{BothEnds, Event, Leg, PathTimes, Phase, Spec};
use schedule::LossSearch;

use super::bounds;
use super::common_start::CommonStart;
use super::end::End;
use super::error::{DialogueError, seconds};
use super::event::{Action, Answer};
use super::outside::Outside;
use super::work::Work;
use crate::message::{FromAgent, ReachabilityToken, ResultOf, WireRendezvous};
use crate::pass::{Order, Pass, PassAction, PassError, PassEvent, SETUP_LIMIT, Side};

/// The two ends of a test; transports with one end have no far one.
#[derive(Debug)]
pub(super) struct Pair {
    /// The end that connects.
    pub(super) near: End,
    /// The end that accepts.
    pub(super) far: Option<End>,
    /// As what both agents keep the result of the next pass, if they are to keep it.
    pub(super) keep: Option<ResultOf>,
}

/// What a test shows while it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shows {
    /// Readings.
    pub(super) live: bool,
    /// The passes of a search.
    pub(super) phases: bool,
    /// The rest of the run's budget, ns.
    pub(super) left_ns: Option<u64>,
}

impl Shows {
    /// What is not a part of the result.
    pub(super) const NOTHING: Self = Self { live: false, phases: false, left_ns: None };
}

/// How long to wait for the far end's error after a failed connection, with two round trips.
const CAUSE_LIMIT: Duration = Duration::from_millis(300);

/// What a pass waits for, besides its ends.
struct Pending {
    start: Option<Pin<Box<dyn Future<Output = bool>>>>,
    /// The user wants to stop, and the pass knows it.
    stops: bool,
}

/// What a pass has waited for.
enum Next {
    Message(Side, Result<FromAgent, DialogueError>),
    /// Whether all tests start.
    Start(bool),
    Stop,
    Deadline,
}

impl Pair {
    /// Two ends whose agents keep no result.
    pub(super) fn new(near: End, far: Option<End>) -> Self {
        Self { near, far, keep: None }
    }

    fn outside(&self) -> &Outside {
        self.near.outside()
    }

    /// One trial over fresh connections; with `no_loss`, a search for the highest rate without loss. Its first pass begins at the
    /// common start, if it has one.
    pub(super) async fn test(
        &mut self,
        number: u32,
        (spec, legs): (&Spec, &[Leg]),
        start: &mut Option<CommonStart>,
        shows: Shows,
    ) -> Result<BothEnds, DialogueError> {
        if !spec.no_loss {
            return self.pass(number, spec, legs, start, shows).await;
        }
        let mut search = LossSearch::new(spec, number);
        while let Some((number, spec, leg)) = search.next() {
            if self.outside().is_stopped() {
                return Err(DialogueError::Interrupted);
            }
            if shows.phases {
                let phase = Phase { activity: search.activity(), cells_done: 0, cells: 1, remaining_ns: shows.left_ns };
                self.show(Event::Phase(phase));
            }
            search.completed(self.pass(number, &spec, &[leg], start, shows).await?);
        }
        Ok(search.found())
    }

    /// Makes one pass, at the common start of simultaneous tests if there is one. An interrupt ends it early, with the results so
    /// far.
    pub(super) async fn pass(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[Leg],
        start: &mut Option<CommonStart>,
        shows: Shows,
    ) -> Result<BothEnds, DialogueError> {
        let most = bounds::frame(spec, legs);
        [Some(&self.near), self.far.as_ref()].into_iter().flatten().for_each(|end| end.accept_up_to(most));
        let order = self.order(trial, (spec, legs), start.is_some());
        let begun = self.outside().now();
        let (mut pass, actions) = Pass::begin(begun, order);
        let mut actions = VecDeque::from(actions);
        let mut pending = Pending { start: None, stops: false };
        loop {
            let event = match actions.pop_front() {
                Some(PassAction::End(Ok(mut results))) => {
                    self.fetch(trial, spec, &mut results).await;
                    return Ok(*results);
                }
                Some(PassAction::End(Err(error))) => return Err(self.error(error)),
                Some(PassAction::Send(side, message)) => {
                    self.end(side).send(*message);
                    continue;
                }
                Some(PassAction::Show(side, live)) => {
                    if shows.live {
                        self.show(Event::live(trial, side.name(), live));
                    }
                    continue;
                }
                Some(PassAction::WaitForStart) => {
                    let delay = Duration::from_nanos(spec.starts_after_ns());
                    pending.start = start.take().map(|start| Box::pin(start.wait(delay)) as Pin<Box<_>>);
                    continue;
                }
                Some(PassAction::GetToken) => PassEvent::Token(self.token(spec).await?),
                Some(PassAction::Address(listening, token)) => self.addressed(spec, listening, token).await?,
                None => match self.event(&pass, &mut pending).await? {
                    PassEvent::Message(side, mut message) => {
                        self.check(side, &mut message, (spec, legs), pass.running_for(self.outside().now()))?;
                        PassEvent::Message(side, message)
                    }
                    event => event,
                },
            };
            actions.extend(pass.on(self.outside().now(), patience(self.slower_path()), event));
        }
    }

    fn show(&self, event: Event) {
        self.outside().act(Action::Show(Box::new(event)));
    }

    /// What happens next.
    async fn event(&mut self, pass: &Pass, pending: &mut Pending) -> Result<PassEvent, DialogueError> {
        match self.next(pass, pending).await {
            Next::Message(side, Ok(message)) => Ok(PassEvent::Message(side, Box::new(message))),
            Next::Message(Side::Near, Err(error)) if pass.is_setting_up() => Err(self.cause(error).await),
            Next::Message(_, Err(error)) => Err(error),
            Next::Start(true) => Ok(PassEvent::Start),
            Next::Start(false) => Ok(PassEvent::Stop),
            Next::Stop => {
                pending.stops = true;
                Ok(PassEvent::Stop)
            }
            Next::Deadline => {
                let far = self.far.as_ref().is_some_and(|far| far.seen().arriving);
                Ok(PassEvent::Timer { arriving: [self.near.seen().arriving, far] })
            }
        }
    }

    async fn next(&self, pass: &Pass, pending: &mut Pending) -> Next {
        let outside = self.outside();
        let deadline = pass.deadline(patience(self.slower_path()));
        let mut near = pin!(self.near.recv(pass.during(Side::Near)));
        let mut far = pin!(received(self.far.as_ref(), pass.during(Side::Far)));
        let (mut stop, mut late) = (outside.stopped(), outside.until(deadline.unwrap_or(Duration::MAX)));
        let Pending { start, stops } = pending;
        poll_fn(|context| {
            if let Poll::Ready(message) = near.as_mut().poll(context) {
                return Poll::Ready(Next::Message(Side::Near, message));
            }
            if let Poll::Ready(message) = far.as_mut().poll(context) {
                return Poll::Ready(Next::Message(Side::Far, message));
            }
            if let Some(Poll::Ready(all)) = start.as_mut().map(|start| start.as_mut().poll(context)) {
                *start = None;
                return Poll::Ready(Next::Start(all));
            }
            if !*stops && Pin::new(&mut stop).poll(context).is_ready() {
                return Poll::Ready(Next::Stop);
            }
            if deadline.is_some() && Pin::new(&mut late).poll(context).is_ready() {
                return Poll::Ready(Next::Deadline);
            }
            Poll::Pending
        })
        .await
    }

    fn order(&mut self, trial: u32, (spec, legs): (&Spec, &[Leg]), starts_together: bool) -> Order {
        Order {
            trial,
            spec: spec.clone(),
            legs: legs.to_vec(),
            keep: self.keep.take(),
            path: self.slower_path(),
            has_far: self.far.is_some(),
            needs_token: self.near.needs_reach_token(),
            starts_together,
        }
    }

    fn end(&self, side: Side) -> &End {
        match (side, &self.far) {
            (Side::Far, Some(far)) => far,
            _ => &self.near,
        }
    }

    /// A reachability token of the far end.
    async fn token(&mut self, spec: &Spec) -> Result<ReachabilityToken, DialogueError> {
        let outside = self.outside().clone();
        let Some(far) = &mut self.far else { return Err(DialogueError::Interrupted) };
        let begun = outside.now();
        let limit = SETUP_LIMIT + patience(far.path());
        let token = outside.within(limit, far.reach_token(spec.far.data_addr));
        match outside.unless_stopped(token).await {
            Some(Some(token)) => token,
            Some(None) => Err(DialogueError::not_set_up(outside.now().saturating_sub(begun))),
            None => Err(DialogueError::Interrupted),
        }
    }

    /// Where the near end connects to the far end.
    async fn addressed(
        &self,
        spec: &Spec,
        listening: Vec<WireRendezvous>,
        mut token: Option<ReachabilityToken>,
    ) -> Result<PassEvent, DialogueError> {
        let far = self.end(Side::Far);
        let mut rendezvous = Vec::with_capacity(listening.len());
        // An agent names ports of its own host only: whatever address it gives, this host connects to the one it knows.
        for target in listening {
            let address = match target.port {
                None => None,
                Some(port) => {
                    let (control, of_far) = (far.address, Box::new(spec.far.clone()));
                    match self.outside().ask(Work::Address { control, far: of_far, port, shared: target.shared }).await
                    {
                        Answer::Address(address) => Some(address),
                        Answer::Failed(fault) => return Err(DialogueError::Outside(fault)),
                        _ => None,
                    }
                }
            };
            rendezvous.push(WireRendezvous { address, name: far.name_for_others(&spec.far), ..target });
        }
        // The agent's port answers the near agent's challenge under the number under which data reach it.
        if let (Some(token), Some(WireRendezvous { shared: true, address: Some(address), .. })) =
            (&mut token, rendezvous.first())
        {
            token.port = Some(address.port());
        }
        Ok(PassEvent::Addressed(rendezvous, token))
    }

    /// Checks the result of another host, which cannot have measured more than this one saw.
    fn check(
        &self,
        side: Side,
        message: &mut FromAgent,
        (spec, legs): (&Spec, &[Leg]),
        took: Duration,
    ) -> Result<(), DialogueError> {
        let from = self.end(side);
        match message {
            FromAgent::Done(result) if from.address.is_some() => {
                bounds::check(result, spec, legs, took).map_err(|excess| DialogueError::Trial {
                    address: from.name.clone(),
                    reason: excess.to_string().into(),
                })
            }
            _ => Ok(()),
        }
    }

    fn error(&self, error: PassError) -> DialogueError {
        match error {
            PassError::NotSetUp { waited } => DialogueError::not_set_up(waited),
            PassError::Unended { side, waited } => {
                DialogueError::Trial { address: self.end(side).name.clone(), reason: unended(waited).into() }
            }
            PassError::Interrupted => DialogueError::Interrupted,
        }
    }

    /// The path of the control connection on which answers take longer.
    fn slower_path(&self) -> PathTimes {
        let near = self.near.path();
        let far = self.far.as_ref().map(End::path);
        far.filter(|far| far.patience_ns > near.patience_ns).unwrap_or(near)
    }

    /// After a failed set-up: makes both ends cancel their part of it. An end that was ready would otherwise accept the
    /// connections of the next trial.
    pub(super) async fn cancel_setup(&self) -> Result<(), DialogueError> {
        for end in std::iter::once(&self.near).chain(self.far.as_ref()) {
            end.cancel_trial().await?;
        }
        Ok(())
    }

    /// Why the near end could not connect. A far end whose worker process ended refuses connections before it reports the failure,
    /// and that report is more precise than the refusal.
    async fn cause(&self, refusal: DialogueError) -> DialogueError {
        let Some(far) = &self.far else { return refusal };
        let limit = CAUSE_LIMIT + 2 * Duration::from_nanos(far.path().round_trip_ns);
        match self.outside().within(limit, far.recv("while it accepted connections")).await {
            Some(Err(error @ (DialogueError::Trial { .. } | DialogueError::Lost { .. }))) => error,
            _ => refusal,
        }
    }
}

/// How much longer than on a short path answers may take.
fn patience(path: PathTimes) -> Duration {
    Duration::from_nanos(path.patience_ns)
}

/// Why a trial without a reported end is given up. Nobody here can see the reason.
fn unended(waited: Duration) -> String {
    format!(
        "no result came within {} of the trial's abort: a measuring process there may be stopped, its host overloaded, or the \
         path slower than that",
        seconds(waited)
    )
}

/// The next message of an end; never without one.
async fn received(end: Option<&End>, during: &str) -> Result<FromAgent, DialogueError> {
    match end {
        Some(end) => end.recv(during).await,
        None => std::future::pending().await,
    }
}
