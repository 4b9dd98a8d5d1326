//! One pass: a fresh set of connections between the two ends, and the legs over it.

use std::time::Duration;

use model::{BothEnds, EndResult, Event, EventSink, Leg, Live, PathTimes, Role, Spec};
use text::{Text, say};
use tokio::sync::watch;
use tokio::time::Instant;

use super::common_start::CommonStart;
use super::{AgentEnd, bounds};
use crate::ControlError;
use crate::connection_end::seconds;
use crate::patience::ControlPath;
use protocol::message::{FromAgent, Prepare, ResultOf, ToAgent, WireRendezvous};

/// The two ends of a measurement; transports with one end have no far one.
pub struct Pair {
    /// The end that connects.
    pub near: AgentEnd,
    /// The end that accepts.
    pub far: Option<AgentEnd>,
    /// As what both agents keep the result of the next pass, if they are to keep it.
    pub(super) keep: Option<ResultOf>,
}

/// How long to go on waiting for a result that is arriving, before it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Longest time for it.
const MOST_ARRIVING: Duration = Duration::from_secs(600);

/// Whether the user wants to stop.
pub type Cancel = watch::Receiver<bool>;

/// How long to wait for the far end's error after a failed connection, with two round trips.
const CAUSE_LIMIT: Duration = Duration::from_millis(300);
/// Time limit for the set-up of the connections, on a short path; the workers have a shorter one.
const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for an end to finish after an abort, or after the other end has finished: longer than a datagram end repeats its
/// last signal (8 s), with some margin for hosts with more flows than cores. Longer on a path that shows that it needs more.
const END_LIMIT: Duration = Duration::from_secs(10);

impl Pair {
    /// Two ends whose agents keep no result.
    #[must_use]
    pub fn new(near: AgentEnd, far: Option<AgentEnd>) -> Self {
        Self { near, far, keep: None }
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
        self.arm(trial, spec, legs, cancel).await?;
        if let Some(start) = start.take() {
            self.wait_for(start, Duration::from_nanos(spec.starts_after_ns()), cancel).await?;
        }
        // The passive end first: it must be ready when the active end sends.
        if let Some(far) = &self.far {
            far.send(&ToAgent::Start).await?;
        }
        self.near.send(&ToAgent::Start).await?;
        let mut result = self.collect(trial, spec, legs, sink, cancel).await?;
        self.fetch(trial, spec, &mut result, sink, cancel).await;
        Ok(result)
    }

    async fn arm(&mut self, trial: u32, spec: &Spec, legs: &[Leg], cancel: &mut Cancel) -> Result<(), ControlError> {
        let most = bounds::frame(spec, legs);
        [Some(&self.near), self.far.as_ref()].into_iter().flatten().for_each(|end| end.accept_up_to(most));
        let keep = self.keep.take();
        let slower = self.slower_path().clone();
        let path = PathTimes {
            round_trip_ns: slower.round_trip().as_nanos() as u64,
            patience_ns: slower.patience().as_nanos() as u64,
        };
        let prepare = |role, rendezvous, reach_token| {
            ToAgent::Prepare(Box::new(Prepare {
                trial,
                role,
                spec: spec.clone(),
                legs: legs.to_vec(),
                rendezvous,
                reach_token,
                keep: keep.clone(),
                path,
            }))
        };
        let setup = async {
            let (mut rendezvous, mut reach_token) = (Vec::new(), None);
            if let Some(far) = &mut self.far {
                if self.near.needs_reach_token() {
                    reach_token = Some(far.reach_token(spec.far.data_addr).await?);
                }
                far.send(&prepare(Role::Passive, Vec::new(), None)).await?;
                let listening = loop {
                    if let FromAgent::Listening { rendezvous } = far.recv("during the set-up of a trial").await? {
                        break rendezvous;
                    }
                };
                // An agent names ports of its own host only: whatever address it gives, this host connects to the one it knows.
                let addressed = |target: WireRendezvous| {
                    let address =
                        target.port.map(|port| far.data_address(&spec.far, port, target.shared)).transpose()?;
                    Ok(WireRendezvous { address, name: far.name_for_others(&spec.far), ..target })
                };
                rendezvous = listening.into_iter().map(addressed).collect::<Result<Vec<_>, ControlError>>()?;
                // The agent's port answers the near agent's challenge under the number under which data reach it.
                if let (Some(token), Some(WireRendezvous { shared: true, address: Some(address), .. })) =
                    (&mut reach_token, rendezvous.first())
                {
                    token.port = Some(address.port());
                }
            }
            self.near.send(&prepare(Role::Active, rendezvous, reach_token)).await?;
            let (mut near_armed, mut far_armed) = (false, self.far.is_none());
            while !(near_armed && far_armed) {
                let far = async {
                    match &mut self.far {
                        Some(far) => far.recv("while it accepted connections").await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    message = self.near.recv("while it connected") => match message {
                        Ok(message) => near_armed |= matches!(message, FromAgent::Armed),
                        Err(error) => return Err(cause(error, self.far.as_mut()).await),
                    },
                    message = far => far_armed |= matches!(message?, FromAgent::Armed),
                }
            }
            Ok(())
        };
        tokio::select! {
            armed = slower.within(SETUP_LIMIT, setup) => armed.unwrap_or_else(|waited| Err(ControlError::Setup {
                address: "set-up".into(),
                reason: say!(
                    "the data connections were not established within {}: a firewall may allow only the control connection; see `--data`",
                    seconds(waited)
                ),
            })),
            () = cancelled(cancel) => Err(ControlError::Interrupted),
        }
    }

    /// The path of the control connection on which answers take longer.
    fn slower_path(&self) -> &ControlPath {
        let near = self.near.path();
        let far = self.far.as_ref().map(AgentEnd::path);
        far.filter(|far| far.patience() > near.patience()).unwrap_or(near)
    }

    /// Waits, armed, until the test is to start. If another test cannot start, or the user wants to stop, this one is interrupted.
    async fn wait_for(&mut self, start: CommonStart, delay: Duration, cancel: &mut Cancel) -> Result<(), ControlError> {
        let during = "before the start of a trial";
        let started = start.wait(delay);
        tokio::pin!(started);
        loop {
            let from_far = async {
                match &mut self.far {
                    Some(far) => far.recv(during).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                started = &mut started => return if started { Ok(()) } else { Err(ControlError::Interrupted) },
                // An armed end sends nothing but pings, unless it fails.
                message = self.near.recv(during) => drop(message?),
                message = from_far => drop(message?),
                () = cancelled(cancel) => return Err(ControlError::Interrupted),
            }
        }
    }

    /// Waits for both ends' results. After one end has finished, or after an interrupt, the other has limited time.
    async fn collect(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[Leg],
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        let begun = Instant::now();
        let mut near: Option<EndResult> = None;
        let mut far: Option<EndResult> = None;
        // Since when, and for how long on a short path, what is missing is waited for.
        let mut limit: Option<(Instant, Duration)> = None;
        let mut arriving_since: Option<Instant> = None;
        let mut aborted = false;
        let mut failure: Option<Text> = None;
        loop {
            if far.is_some() == self.far.is_some()
                && let Some(near) = near.take()
            {
                return Ok(BothEnds { near, far, failure });
            }
            let forever = Duration::from_secs(86_400);
            let patience = self.slower_path().patience();
            let deadline = limit.map_or_else(|| Instant::now() + forever, |(since, limit)| since + limit + patience);
            let from_far = async {
                match &mut self.far {
                    Some(end) => end.recv("during a trial").await,
                    None => std::future::pending().await,
                }
            };
            let (end, message) = tokio::select! {
                message = self.near.recv("during a trial") => ("near", message?),
                message = from_far => ("far", message?),
                () = cancelled(cancel), if !aborted => {
                    self.abort().await?;
                    (aborted, limit) = (true, Some((Instant::now(), END_LIMIT)));
                    continue;
                }
                () = tokio::time::sleep_until(deadline) => {
                    // The path may have shown itself to be slower, and a long result may be arriving.
                    let late = if near.is_none() { &self.near } else { self.far.as_ref().unwrap_or(&self.near) };
                    if self.slower_path().patience() > patience + LOOK_AGAIN {
                        continue;
                    }
                    if late.is_receiving() && arriving_since.get_or_insert_with(Instant::now).elapsed() < MOST_ARRIVING {
                        limit = Some((Instant::now(), LOOK_AGAIN));
                        continue;
                    }
                    if aborted {
                        let waited = limit.map_or(END_LIMIT, |(_, limit)| limit + patience);
                        return Err(ControlError::Trial { address: late.name.clone(), reason: unended(waited).into() });
                    }
                    let late = if near.is_none() { "near" } else { "far" };
                    failure.get_or_insert_with(|| say!("the {late} end did not finish in time after the other end had"));
                    self.abort().await?;
                    (aborted, limit) = (true, Some((Instant::now(), END_LIMIT)));
                    continue;
                }
            };
            match message {
                FromAgent::Live(interval) => sink.event(&Event::live(trial, end, Live::Interval(interval)))?,
                FromAgent::Reading(reading) => sink.event(&Event::live(trial, end, Live::Reading(reading)))?,
                FromAgent::Done(mut done) => {
                    let from = if end == "near" { Some(&self.near) } else { self.far.as_ref() };
                    if let Some(from) = from.filter(|from| from.address.is_some()) {
                        let checked = bounds::check(&mut done, spec, legs, begun.elapsed());
                        checked.map_err(|excess| ControlError::Trial {
                            address: from.name.clone(),
                            reason: excess.to_string().into(),
                        })?;
                    }
                    // The other end would wait in vain.
                    if let Some(reason) = &done.failure
                        && !aborted
                    {
                        failure.get_or_insert_with(|| say!("{end} end: {reason}"));
                        self.abort().await?;
                        (aborted, limit) = (true, Some((Instant::now(), END_LIMIT)));
                    }
                    *(if end == "near" { &mut near } else { &mut far }) = Some(*done);
                    // Data in flight to the other end may take as long as the stall time, not longer.
                    limit =
                        limit.or_else(|| Some((Instant::now(), END_LIMIT + Duration::from_nanos(2 * spec.stall_ns))));
                }
                _ => {}
            }
        }
    }

    /// After a failed set-up: makes both ends cancel their part of it. An end that was ready would otherwise accept the
    /// connections of the next trial.
    pub(crate) async fn cancel_setup(&mut self) -> Result<(), ControlError> {
        for end in std::iter::once(&mut self.near).chain(self.far.as_mut()) {
            end.cancel_trial().await?;
        }
        Ok(())
    }

    async fn abort(&self) -> Result<(), ControlError> {
        self.near.send(&ToAgent::Abort).await?;
        match &self.far {
            Some(far) => far.send(&ToAgent::Abort).await,
            None => Ok(()),
        }
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
