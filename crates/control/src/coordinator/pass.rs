//! One pass: a fresh set of connections between the two ends, and the legs over it.

use std::time::Duration;

use model::{Event, EventSink, Live, Role, Spec};
use tokio::sync::watch;
use tokio::time::Instant;

use super::End;
use super::common_start::CommonStart;
use super::{End, bounds};
use crate::ControlError;
use crate::proto::message::{Done, FromAgent, Prepare, ResultOf, ToAgent, WireLeg, WireRendezvous};
use crate::proto::{ANATOMY, DELAYED_READS, MIX, OVERLAP_CLOSE, RESPONSIVENESS};

/// The two ends of a measurement; transports with one end have no far one.
pub struct Pair {
    /// The end that connects.
    pub near: End,
    /// The end that accepts.
    pub far: Option<End>,
    /// As what both agents keep the result of the next pass, if they are to keep it.
    pub(super) keep: Option<ResultOf>,
}

/// The result of a pass.
pub(crate) struct PassResult {
    pub(crate) near: Done,
    pub(crate) far: Done,
    /// The first failure, if there was one.
    pub(crate) failure: Option<String>,
}

/// Whether the user wants to stop.
pub type Cancel = watch::Receiver<bool>;

/// How long to wait for the far end's error after a failed connection.
const CAUSE_LIMIT: Duration = Duration::from_millis(300);
/// Time limit for the set-up of the connections; the workers have a shorter one.
const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for an end to finish after an abort, or after the other end has finished: longer than a datagram end repeats its
/// last signal (8 s), with some margin for hosts with more flows than cores.
const END_LIMIT: Duration = Duration::from_secs(10);

impl Pair {
    /// Two ends whose agents keep no result.
    #[must_use]
    pub fn new(near: End, far: Option<End>) -> Self {
        Self { near, far, keep: None }
    }

    /// Makes one pass, at the common start of simultaneous tests if there is one. An interrupt ends it early, with the results so
    /// far.
    pub(crate) async fn pass(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[WireLeg],
        start: &mut Option<CommonStart>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<PassResult, ControlError> {
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
        self.fetch(trial, spec, [&mut result.near, &mut result.far], sink, cancel).await;
        Ok(result)
    }

    async fn arm(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[WireLeg],
        cancel: &mut Cancel,
    ) -> Result<(), ControlError> {
        self.check_capabilities(spec)?;
        let most = bounds::frame(spec, legs);
        [Some(&self.near), self.far.as_ref()].into_iter().flatten().for_each(|end| end.accept_up_to(most));
        let keep = self.keep.take();
        let prepare = |role, rendezvous, reach_token| {
            ToAgent::Prepare(Box::new(Prepare {
                trial,
                role,
                spec: spec.clone(),
                legs: legs.to_vec(),
                rendezvous,
                reach_token,
                keep: keep.clone(),
            }))
        };
        let setup = async {
            let (mut rendezvous, mut reach_token) = (Vec::new(), None);
            if let Some(far) = &mut self.far {
                if self.near.needs_reach_token() {
                    reach_token = Some(far.require_reach_token(spec.far.data_addr).await?);
                }
                far.send(&prepare(Role::Passive, Vec::new(), None)).await?;
                let listening = loop {
                    if let FromAgent::Listening { rendezvous } = far.recv("during the set-up of a trial").await? {
                        break rendezvous;
                    }
                };
                // An agent names ports of its own host only: whatever address it gives, this host connects to the one it knows.
                let addressed = |target: WireRendezvous| WireRendezvous {
                    address: target.port.and_then(|port| far.data_address(spec.far.data_addr, port, target.shared)),
                    ..target
                };
                rendezvous = listening.into_iter().map(addressed).collect();
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
            armed = tokio::time::timeout(SETUP_LIMIT, setup) => armed.unwrap_or_else(|_| Err(ControlError::Setup {
                address: "set-up".into(),
                reason: format!(
                    "the data connections were not established within {} s: a firewall may allow only the control connection; see `data`",
                    SETUP_LIMIT.as_secs()
                ),
            })),
            () = cancelled(cancel) => Err(ControlError::Interrupted),
        }
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

    /// Whether both programs can give the stamps of round trips.
    #[must_use]
    pub fn can_stamp(&self) -> bool {
        self.near.can(ANATOMY) && self.far.as_ref().is_some_and(|far| far.can(ANATOMY))
    }

    /// Checks that both programs know the options of the spec: an older one would ignore an unknown option.
    fn check_capabilities(&self, spec: &Spec) -> Result<(), ControlError> {
        let ends = [(Some(&self.near), &spec.near), (self.far.as_ref(), &spec.far)];
        for (end, options) in ends.into_iter().filter_map(|(end, options)| Some((end?, options))) {
            end.check_congestion_control(options)?;
            let requested = [
                (options.drain_bps.is_some(), "drain", "drain"),
                (spec.delayed_reads, DELAYED_READS, DELAYED_READS),
                (spec.overlap_close, OVERLAP_CLOSE, OVERLAP_CLOSE),
                (spec.anatomy, ANATOMY, ANATOMY),
                (!spec.mix.is_empty(), MIX, "block imix"),
                (spec.responsiveness, RESPONSIVENESS, RESPONSIVENESS),
            ];
            let missing = |(requested, name, _): &(bool, &str, &str)| *requested && !end.can(name);
            if let Some((.., flag)) = requested.into_iter().find(missing) {
                let reason =
                    format!("thru {} there does not support --{flag}: update it, or leave --{flag} out", end.version);
                return Err(ControlError::Refused { address: end.name.clone(), reason });
            }
        }
        Ok(())
    }

    /// Waits for both ends' results. After one end has finished, or after an interrupt, the other has limited time.
    async fn collect(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[WireLeg],
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<PassResult, ControlError> {
        let begun = Instant::now();
        let mut near: Option<Done> = None;
        let mut far: Option<Done> = self.far.is_none().then(Done::default);
        let mut limit: Option<Instant> = None;
        let mut aborted = false;
        let mut failure: Option<String> = None;
        loop {
            match (near.take(), far.take()) {
                (Some(near), Some(far)) => return Ok(PassResult { near, far, failure }),
                (one, other) => (near, far) = (one, other),
            }
            let deadline = limit.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
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
                    (aborted, limit) = (true, Some(Instant::now() + END_LIMIT));
                    continue;
                }
                () = tokio::time::sleep_until(deadline) => {
                    if aborted {
                        let name = if near.is_none() { &self.near.name } else { self.far.as_ref().map_or(&self.near.name, |far| &far.name) };
                        return Err(ControlError::Trial { address: name.clone(), reason: "the trial did not end after an abort: a measuring process there may be stopped (SIGSTOP), or its host overloaded".into() });
                    }
                    let late = if near.is_none() { "near" } else { "far" };
                    failure.get_or_insert_with(|| format!("the {late} end did not finish in time after the other end"));
                    self.abort().await?;
                    (aborted, limit) = (true, Some(Instant::now() + END_LIMIT));
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
                        checked.map_err(|reason| ControlError::Trial { address: from.name.clone(), reason })?;
                    }
                    // The other end would wait in vain.
                    if let Some(reason) = &done.failure
                        && !aborted
                    {
                        failure.get_or_insert_with(|| format!("{end} end: {reason}"));
                        self.abort().await?;
                        (aborted, limit) = (true, Some(Instant::now() + END_LIMIT));
                    }
                    *(if end == "near" { &mut near } else { &mut far }) = Some(*done);
                    // Data in flight to the other end may take as long as the stall time, not longer.
                    limit =
                        limit.or_else(|| Some(Instant::now() + END_LIMIT + Duration::from_nanos(2 * spec.stall_ns)));
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

impl End {
    /// Makes its agent cancel the trial that is prepared or running.
    pub(super) async fn cancel_trial(&mut self) -> Result<(), ControlError> {
        self.send(&ToAgent::Reset).await?;
        let address = self.name.clone();
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
        let reason = || "the agent did not cancel a failed set-up".to_owned();
        tokio::time::timeout(END_LIMIT, answered)
            .await
            .map_err(|_| ControlError::Trial { address, reason: reason() })?
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
async fn cause(refusal: ControlError, far: Option<&mut End>) -> ControlError {
    let Some(far) = far else { return refusal };
    match tokio::time::timeout(CAUSE_LIMIT, far.recv("while it accepted connections")).await {
        Ok(Err(error @ (ControlError::Trial { .. } | ControlError::Lost { .. }))) => error,
        _ => refusal,
    }
}
