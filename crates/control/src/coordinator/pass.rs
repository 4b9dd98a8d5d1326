//! One pass: a fresh set of connections between the two ends, and the legs that are taken over it.

use std::time::Duration;

use model::{Event, EventSink, Role, Spec};
use tokio::sync::watch;
use tokio::time::Instant;

use super::End;
use crate::ControlError;
use crate::proto::message::{Done, FromAgent, Meeting, Prepare, ToAgent, WireLeg};
use crate::proto::{DELAYED_READS, OVERLAP_CLOSE};

/// The two ends of a measurement; transports with one end have no far one.
pub struct Pair {
    /// The end that connects.
    pub near: End,
    /// The end that accepts.
    pub far: Option<End>,
}

/// What a pass brought.
pub(crate) struct PassResult {
    pub(crate) near: Done,
    pub(crate) far: Done,
    /// What went wrong first, if anything did.
    pub(crate) failure: Option<String>,
}

/// Says whether the user wants to stop.
pub type Cancel = watch::Receiver<bool>;

/// How long a connection that failed waits for the far end to say why.
const CAUSE_LIMIT: Duration = Duration::from_millis(300);
/// How long the ends may take to set up their connections; a worker gives up by itself before.
const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// How long an end may take to end after it was told to, or after the other one has: longer than a datagram end repeats its last
/// word (8 s), which on a host with more flows than cores takes its time.
const END_LIMIT: Duration = Duration::from_secs(10);

impl Pair {
    /// Makes one pass. An interrupt ends it early and yields what was counted until then.
    pub(crate) async fn pass(
        &mut self,
        trial: u32,
        spec: &Spec,
        legs: &[WireLeg],
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<PassResult, ControlError> {
        self.arm(trial, spec, legs, cancel).await?;
        // The passive end first: it must be there when the active one speaks.
        if let Some(far) = &self.far {
            far.send(&ToAgent::Start).await?;
        }
        self.near.send(&ToAgent::Start).await?;
        let mut result = self.collect(trial, spec, sink, cancel).await?;
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
        self.can_do(spec)?;
        let prepare = |role, meet, reach_token| {
            ToAgent::Prepare(Box::new(Prepare {
                trial,
                role,
                spec: spec.clone(),
                legs: legs.to_vec(),
                meet,
                reach_token,
            }))
        };
        let setup = async {
            let (mut meet, mut reach_token) = (Vec::new(), None);
            if let Some(far) = &mut self.far {
                if self.near.wants_reach_token() {
                    reach_token = Some(far.proves_itself(spec.far.data_addr).await?);
                }
                far.send(&prepare(Role::Passive, Vec::new(), None)).await?;
                let places = loop {
                    if let FromAgent::Listening { places } = far.recv("while it set up a trial").await? {
                        break places;
                    }
                };
                let addressed = |place: Meeting| Meeting {
                    address: place.address.or_else(|| far.data_address(spec.far.data_addr, place.port?)),
                    ..place
                };
                meet = places.into_iter().map(addressed).collect();
            }
            self.near.send(&prepare(Role::Active, meet, reach_token)).await?;
            let (mut near_armed, mut far_armed) = (false, self.far.is_none());
            while !(near_armed && far_armed) {
                let far = async {
                    match &mut self.far {
                        Some(far) => far.recv("while it took connections").await,
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
                reason: "the data connections did not come up within 20 s: a firewall may pass the control port only; see --data".into(),
            })),
            () = cancelled(cancel) => Err(ControlError::Interrupted),
        }
    }

    /// Whether both programs know what the spec asks of them: an older one would leave it out without a word.
    fn can_do(&self, spec: &Spec) -> Result<(), ControlError> {
        let ends = [(Some(&self.near), &spec.near), (self.far.as_ref(), &spec.far)];
        for (end, options) in ends.into_iter().filter_map(|(end, options)| Some((end?, options))) {
            end.can_have(options)?;
            let requested = [
                (options.drain_bps.is_some(), "drain"),
                (spec.delayed_reads, DELAYED_READS),
                (spec.overlap_close, OVERLAP_CLOSE),
            ];
            if let Some((_, flag)) = requested.into_iter().find(|(requested, flag)| *requested && !end.can(flag)) {
                let reason =
                    format!("thru {} there does not know --{flag}: update it, or leave --{flag} out", end.version);
                return Err(ControlError::Refused { address: end.name.clone(), reason });
            }
        }
        Ok(())
    }

    /// Waits for both ends' results. Once one has ended (or the user has had enough) the other gets a limited time.
    async fn collect(
        &mut self,
        trial: u32,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<PassResult, ControlError> {
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
                    Some(end) => end.recv("in mid-trial").await,
                    None => std::future::pending().await,
                }
            };
            let (end, message) = tokio::select! {
                message = self.near.recv("in mid-trial") => ("near", message?),
                message = from_far => ("far", message?),
                () = cancelled(cancel), if !aborted => {
                    self.abort().await?;
                    (aborted, limit) = (true, Some(Instant::now() + END_LIMIT));
                    continue;
                }
                () = tokio::time::sleep_until(deadline) => {
                    if aborted {
                        let name = if near.is_none() { &self.near.name } else { self.far.as_ref().map_or(&self.near.name, |far| &far.name) };
                        return Err(ControlError::Trial { address: name.clone(), reason: "did not end the trial when told to".into() });
                    }
                    let late = if near.is_none() { "near" } else { "far" };
                    failure.get_or_insert_with(|| format!("the {late} end had not ended some seconds after the other one"));
                    self.abort().await?;
                    (aborted, limit) = (true, Some(Instant::now() + END_LIMIT));
                    continue;
                }
            };
            match message {
                FromAgent::Live(interval) => sink.event(&Event::Interval { pass: trial, end: end.into(), interval })?,
                FromAgent::Done(done) => {
                    // The other end waits for one that will not come any more.
                    if let Some(reason) = &done.failure
                        && !aborted
                    {
                        failure.get_or_insert_with(|| format!("{end} end: {reason}"));
                        self.abort().await?;
                        (aborted, limit) = (true, Some(Instant::now() + END_LIMIT));
                    }
                    *(if end == "near" { &mut near } else { &mut far }) = Some(*done);
                    // What is still on its way to the other end may take as long as a stall does, not longer.
                    limit =
                        limit.or_else(|| Some(Instant::now() + END_LIMIT + Duration::from_nanos(2 * spec.stall_ns)));
                }
                _ => {}
            }
        }
    }

    /// After a set-up that failed: makes both ends drop their half of it. An end that was ready would go on waiting, and take the
    /// connections of the next trial for its own. A spec that no agent accepts has that effect on all versions of it.
    pub(crate) async fn start_afresh(&mut self, spec: &Spec) -> Result<(), ControlError> {
        let nothing = Spec { flows: 0, ..spec.clone() };
        for (role, end) in [(Role::Active, Some(&mut self.near)), (Role::Passive, self.far.as_mut())] {
            let Some(end) = end else { continue };
            let address = end.name.clone();
            let (legs, meet) = (Vec::new(), Vec::new());
            let prepare = Prepare { trial: u32::MAX, role, spec: nothing.clone(), legs, meet, reach_token: None };
            end.send(&ToAgent::Prepare(Box::new(prepare))).await?;
            let refused = async {
                loop {
                    match end.recv("after a set-up that failed").await {
                        Err(ControlError::Setup { reason, .. }) if reason.contains("--flows 0") => return Ok(()),
                        Err(error @ ControlError::Lost { .. }) => return Err(error),
                        // What the failed set-up still had to say.
                        _ => {}
                    }
                }
            };
            tokio::time::timeout(END_LIMIT, refused).await.map_err(|_| ControlError::Trial {
                address,
                reason: "it did not drop a set-up that failed".into(),
            })??;
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

/// Ends when the user wants to stop; never where nobody can say so any more.
pub(crate) async fn cancelled(cancel: &mut Cancel) {
    if cancel.wait_for(|wanted| *wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Why the near end could not connect: a far end whose measuring process died refuses connections before it has said so, and its word
/// tells more than the refusal.
async fn cause(refusal: ControlError, far: Option<&mut End>) -> ControlError {
    let Some(far) = far else { return refusal };
    match tokio::time::timeout(CAUSE_LIMIT, far.recv("while it took connections")).await {
        Ok(Err(error @ (ControlError::Trial { .. } | ControlError::Lost { .. }))) => error,
        _ => refusal,
    }
}
