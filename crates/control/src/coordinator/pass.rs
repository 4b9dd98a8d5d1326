//! One pass: a fresh set of connections between the two ends, and the legs over it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::{Duration, Instant};

use model::{BothEnds, Event, EventSink, Leg, PathTimes, Spec};
use protocol::message::{FromAgent, ReachabilityToken, ResultOf, ToAgent, WireRendezvous};
use protocol::pass::{END_LIMIT, Order, Pass, PassAction, PassError, PassEvent, SETUP_LIMIT, Side};
use text::say;
use tokio::sync::watch;

use super::common_start::CommonStart;
use super::metrics::Metrics;
use super::{AgentEnd, bounds};
use crate::ControlError;
use crate::connection_end::seconds;
use crate::patience::{ControlPath, until};

/// The two ends of a measurement; transports with one end have no far one.
pub struct Pair {
    /// The end that connects.
    pub near: AgentEnd,
    /// The end that accepts.
    pub far: Option<AgentEnd>,
    /// As what both agents keep the result of the next pass, if they are to keep it.
    pub(super) keep: Option<ResultOf>,
    /// The TCP metrics caches of their hosts, for a run that compares trials.
    pub(super) metrics: Option<Metrics>,
}

/// Whether the user wants to stop.
pub type Cancel = watch::Receiver<bool>;

/// How long to wait for the far end's error after a failed connection, with two round trips.
const CAUSE_LIMIT: Duration = Duration::from_millis(300);

/// What a pass waits for, besides its ends.
struct Pending {
    start: Option<Starting>,
    /// The user wants to stop, and the pass knows it.
    stops: bool,
}

/// Whether the tests start together.
type Starting = Pin<Box<dyn Future<Output = bool> + Send>>;

impl Pair {
    /// Two ends whose agents keep no result.
    #[must_use]
    pub fn new(near: AgentEnd, far: Option<AgentEnd>) -> Self {
        Self { near, far, keep: None, metrics: None }
    }

    /// Makes one pass, at the common start of simultaneous tests if there is one. An interrupt ends it early, with the results so
    /// far.
    pub(crate) async fn pass(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[Leg],
        start: &mut Option<CommonStart>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        let most = bounds::frame(spec, legs);
        [Some(&self.near), self.far.as_ref()].into_iter().flatten().for_each(|end| end.accept_up_to(most));
        let order = self.order(trial, (spec, legs), start.is_some());
        let begun = Instant::now();
        let (mut pass, actions) = Pass::begin(Duration::ZERO, order);
        let mut actions = VecDeque::from(actions);
        let mut pending = Pending { start: None, stops: false };
        loop {
            let event = match actions.pop_front() {
                Some(PassAction::End(Ok(mut results))) => {
                    self.fetch(trial, spec, &mut results, sink, cancel).await;
                    return Ok(*results);
                }
                Some(PassAction::End(Err(error))) => return Err(self.error(error)),
                Some(PassAction::Send(side, message)) => {
                    self.end(side).send(&message).await?;
                    continue;
                }
                Some(PassAction::Show(side, live)) => {
                    sink.event(&Event::live(trial, side.name(), live))?;
                    continue;
                }
                Some(PassAction::WaitForStart) => {
                    let delay = Duration::from_nanos(spec.starts_after_ns());
                    pending.start = start.take().map(|start| Box::pin(start.wait(delay)) as Starting);
                    continue;
                }
                Some(PassAction::GetToken) => PassEvent::Token(self.token(spec, cancel).await?),
                Some(PassAction::Address(listening, token)) => self.addressed(spec, listening, token)?,
                None => match self.event(&pass, begun, &mut pending, cancel).await? {
                    PassEvent::Message(side, mut message) => {
                        self.check(side, &mut message, (spec, legs), pass.running_for(begun.elapsed()))?;
                        PassEvent::Message(side, message)
                    }
                    event => event,
                },
            };
            actions.extend(pass.on(begun.elapsed(), self.slower_path().patience(), event));
        }
    }

    /// What happens next.
    async fn event(
        &mut self,
        pass: &Pass,
        begun: Instant,
        pending: &mut Pending,
        cancel: &mut Cancel,
    ) -> Result<PassEvent, ControlError> {
        let deadline = pass.deadline(self.slower_path().patience());
        let deadline = deadline.and_then(|deadline| begun.checked_add(deadline));
        let Pending { start, stops } = pending;
        let (side, message) = tokio::select! {
            message = self.near.recv(pass.during(Side::Near)) => (Side::Near, message),
            message = received(self.far.as_mut(), pass.during(Side::Far)) => (Side::Far, message),
            is_common = started(start) => {
                *start = None;
                return Ok(if is_common { PassEvent::Start } else { PassEvent::Stop });
            }
            () = cancelled(cancel), if !*stops => {
                *stops = true;
                return Ok(PassEvent::Stop);
            }
            () = until(deadline) => {
                let far = self.far.as_ref().is_some_and(AgentEnd::is_receiving);
                return Ok(PassEvent::Timer { arriving: [self.near.is_receiving(), far] });
            }
        };
        match message {
            Ok(message) => Ok(PassEvent::Message(side, Box::new(message))),
            Err(error) if side == Side::Near && pass.is_setting_up() => Err(cause(error, self.far.as_mut()).await),
            Err(error) => Err(error),
        }
    }

    fn order(&mut self, trial: u32, (spec, legs): (&Spec, &[Leg]), starts_together: bool) -> Order {
        let slower = self.slower_path();
        let path = PathTimes {
            round_trip_ns: slower.round_trip().as_nanos() as u64,
            patience_ns: slower.patience().as_nanos() as u64,
        };
        Order {
            trial,
            spec: spec.clone(),
            legs: legs.to_vec(),
            keep: self.keep.take(),
            path,
            has_far: self.far.is_some(),
            needs_token: self.near.needs_reach_token(),
            starts_together,
        }
    }

    fn end(&self, side: Side) -> &AgentEnd {
        match (side, &self.far) {
            (Side::Far, Some(far)) => far,
            _ => &self.near,
        }
    }

    /// A reachability token of the far end.
    async fn token(&mut self, spec: &Spec, cancel: &mut Cancel) -> Result<ReachabilityToken, ControlError> {
        let path = self.slower_path().clone();
        let Some(far) = &mut self.far else { return Err(ControlError::Interrupted) };
        tokio::select! {
            token = path.within(SETUP_LIMIT, far.reach_token(spec.far.data_addr)) => {
                token.unwrap_or_else(|waited| Err(not_set_up(waited)))
            }
            () = cancelled(cancel) => Err(ControlError::Interrupted),
        }
    }

    /// Where the near end connects to the far end.
    fn addressed(
        &self,
        spec: &Spec,
        listening: Vec<WireRendezvous>,
        mut token: Option<ReachabilityToken>,
    ) -> Result<PassEvent, ControlError> {
        let far = self.end(Side::Far);
        // An agent names ports of its own host only: whatever address it gives, this host connects to the one it knows.
        let addressed = |target: WireRendezvous| {
            let address = target.port.map(|port| far.data_address(&spec.far, port, target.shared)).transpose()?;
            Ok(WireRendezvous { address, name: far.name_for_others(&spec.far), ..target })
        };
        let rendezvous = listening.into_iter().map(addressed).collect::<Result<Vec<_>, ControlError>>()?;
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
    ) -> Result<(), ControlError> {
        let from = self.end(side);
        match message {
            FromAgent::Done(result) if from.address.is_some() => {
                bounds::check(result, spec, legs, took).map_err(|excess| ControlError::Trial {
                    address: from.name.clone(),
                    reason: excess.to_string().into(),
                })
            }
            _ => Ok(()),
        }
    }

    fn error(&self, error: PassError) -> ControlError {
        match error {
            PassError::NotSetUp { waited } => not_set_up(waited),
            PassError::Unended { side, waited } => {
                ControlError::Trial { address: self.end(side).name.clone(), reason: unended(waited).into() }
            }
            PassError::Interrupted => ControlError::Interrupted,
        }
    }

    /// The path of the control connection on which answers take longer.
    fn slower_path(&self) -> &ControlPath {
        let near = self.near.path();
        let far = self.far.as_ref().map(AgentEnd::path);
        far.filter(|far| far.patience() > near.patience()).unwrap_or(near)
    }

    /// After a failed set-up: makes both ends cancel their part of it. An end that was ready would otherwise accept the
    /// connections of the next trial.
    pub(crate) async fn cancel_setup(&mut self) -> Result<(), ControlError> {
        for end in std::iter::once(&mut self.near).chain(self.far.as_mut()) {
            end.cancel_trial().await?;
        }
        Ok(())
    }
}

impl AgentEnd {
    /// Makes its agent cancel the trial that is prepared or running.
    pub(super) async fn cancel_trial(&mut self) -> Result<(), ControlError> {
        self.send(&ToAgent::Reset).await?;
        let (address, path) = (self.name.clone(), self.path().clone());
        let answered = async {
            loop {
                match self.recv("after a failed set-up").await {
                    Ok(FromAgent::Reset) => return Ok(()),
                    Err(error @ ControlError::Lost { .. }) => return Err(error),
                    // A late message of the failed set-up.
                    _ => {}
                }
            }
        };
        let reason = || "the agent did not cancel a failed set-up".into();
        path.within(END_LIMIT, answered).await.map_err(|_| ControlError::Trial { address, reason: reason() })?
    }
}

/// Why a trial is given up whose end is not reported. What the reason is, nobody here can see.
fn unended(waited: Duration) -> String {
    format!(
        "no result came within {} of the trial's abort: a measuring process there may be stopped, its host overloaded, or the \
         path slower than that",
        seconds(waited)
    )
}

/// The next message of an end; never without one.
async fn received(end: Option<&mut AgentEnd>, during: &str) -> Result<FromAgent, ControlError> {
    match end {
        Some(end) => end.recv(during).await,
        None => std::future::pending().await,
    }
}

/// Whether the tests start together, once that is known; never without a common start.
async fn started(starting: &mut Option<Starting>) -> bool {
    match starting {
        Some(starting) => starting.await,
        None => std::future::pending().await,
    }
}

fn not_set_up(waited: Duration) -> ControlError {
    ControlError::Setup {
        address: "set-up".into(),
        reason: say!(
            "the data connections were not established within {}: a firewall may allow only the control connection; see `--data`",
            seconds(waited)
        ),
    }
}

/// Completes when the user wants to stop; never if the sender is gone.
pub(crate) async fn cancelled(cancel: &mut Cancel) {
    if cancel.wait_for(|wanted| *wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Why the near end could not connect. A far end whose worker process ended refuses connections before it reports the failure,
/// and that report is more precise than the refusal.
async fn cause(refusal: ControlError, far: Option<&mut AgentEnd>) -> ControlError {
    let Some(far) = far else { return refusal };
    let limit = CAUSE_LIMIT + 2 * far.path().round_trip();
    match tokio::time::timeout(limit, far.recv("while it accepted connections")).await {
        Ok(Err(error @ (ControlError::Trial { .. } | ControlError::Lost { .. }))) => error,
        _ => refusal,
    }
}
