//! One coordinator's session: it waits for the machine, has it, or watches it.

use std::time::Duration;

use text::{Said, say};

use super::action::{Action, Event, NotSetUp};
use super::queue::Place;
use super::session_end::{HelperLost, Refusal, SessionEnd};
use super::trial::Trial;
use super::tuning::{self, Tuning};
use super::{Client, Machine, SessionId, Time};
use crate::message::{Cause, FromAgent, Prepare, RefusalCause, ToAgent};
use crate::worker_message::FromWorker;

/// Shortest interval of the reports to one waiting client: many clients that get each change would disturb the running
/// measurement.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Most characters of a purpose.
const MAX_PURPOSE: usize = 500;

#[derive(Debug)]
pub(super) struct Session {
    id: SessionId,
    client: Client,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// It does not have the machine.
    Idle,
    /// It waits for the machine.
    Waiting {
        place: Place,
        purpose: String,
        /// The number of clients in front that was reported, and when.
        reported: Option<(usize, Time)>,
        /// When it looks again.
        look: Option<Time>,
    },
    /// It has the machine.
    Measuring(Box<Measuring>),
    /// It gets reports of the host.
    Watching {
        every: Duration,
        due: Time,
    },
    Over,
}

/// A session that has the machine.
#[derive(Debug)]
struct Measuring {
    /// With which it has the machine: its own, or that of the connection that it joined.
    ticket: String,
    joined: bool,
    purpose: String,
    since: Time,
    deadline: Time,
    trial: Option<Trial>,
    probing: bool,
    tuning: Tuning,
    leaving: Option<Leaving>,
}

/// A measurement that ends.
#[derive(Debug)]
struct Leaving {
    /// When its changes of the host are reverted; `None` if that has begun.
    at: Option<Time>,
    /// Why the session ends, if it does.
    end: Leave,
}

#[derive(Debug)]
enum Leave {
    /// The coordinator released the machine, and may acquire it again.
    Released,
    /// The connection has ended.
    Gone,
    /// The agent ends the session.
    Ended(SessionEnd),
}

impl Session {
    pub(super) fn new(id: SessionId, client: Client) -> Self {
        Self { id, client, phase: Phase::Idle }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. })
    }

    pub(super) fn minds_its_helper(&self) -> bool {
        let Phase::Measuring(own) = &self.phase else { return false };
        own.tuning.changed && own.trial.is_none() && own.leaving.is_none()
    }

    /// The purpose and the start of a measurement, unless it has joined another one.
    pub(super) fn measures(&self) -> Option<(&str, Time)> {
        let Phase::Measuring(own) = &self.phase else { return None };
        (!own.joined).then_some((own.purpose.as_str(), own.since))
    }

    pub(super) fn deadline(&self, machine: &Machine) -> Option<Time> {
        match &self.phase {
            Phase::Idle | Phase::Over => None,
            Phase::Waiting { look, .. } => *look,
            Phase::Watching { every, due } => {
                Some((*due).max(due.saturating_sub(*every) + machine.queue.watch_interval(self.client.source)))
            }
            Phase::Measuring(own) => match &own.leaving {
                Some(leaving) => leaving.at,
                None => [Some(own.deadline), own.tuning.unconfirmed.as_ref().map(|changes| changes.until)]
                    .into_iter()
                    .flatten()
                    .min(),
            },
        }
    }

    pub(super) fn on(&mut self, now: Time, event: Event, machine: &mut Machine, actions: &mut Vec<Action>) {
        match event {
            Event::Message(message) => self.receive(now, *message, machine, actions),
            Event::Turn => self.turn(now, machine, actions),
            Event::Timer => self.timer(now, machine, actions),
            Event::Gone => self.end(now, Leave::Gone, machine, actions),
            event => self.answer(now, event, machine, actions),
        }
    }

    /// An answer to an action, or news of the workers.
    fn answer(&mut self, now: Time, event: Event, machine: &mut Machine, actions: &mut Vec<Action>) {
        let Phase::Measuring(own) = &mut self.phase else { return };
        if matches!(event, Event::PutBack) {
            return self.leave(machine, actions);
        }
        if own.leaving.is_some() {
            return;
        }
        match event {
            Event::SetUp(Ok(shared_port)) => {
                if let Some(trial) = &mut own.trial {
                    trial.is_set_up(now);
                }
                let listening = shared_port.map(|rendezvous| FromAgent::Listening { rendezvous });
                actions.extend(listening.map(send));
            }
            Event::SetUp(Err(NotSetUp { reason, cause })) => {
                own.fail((self.id, machine), FromAgent::Failed { reason, cause }, actions);
            }
            Event::Worker { index, message, round_trip } => {
                own.worker(now, (self.id, machine), (index, round_trip), *message, actions);
            }
            Event::WorkerGone { reason } => {
                let reason = say!("a worker process ended: {reason}; finished trials are kept");
                own.fail((self.id, machine), FromAgent::Failed { reason, cause: Cause::Trial }, actions);
            }
            Event::Finished(result) => actions.push(send(FromAgent::Done(result))),
            Event::PathProbed(facts) => {
                own.probing = false;
                actions.push(send(FromAgent::PathProbed(facts)));
            }
            Event::Tuned(result) => own.tuning.tuned(now, result, self.client.is_remote, actions),
            Event::KeptChanges(result) => own.tuning.kept(result, actions),
            Event::Undone => actions.push(send(tuning::not_confirmed())),
            Event::Reverted(changes) => {
                own.tuning.changed = false;
                actions.push(send(FromAgent::Tuned { changes, confirm: false }));
            }
            Event::ChangesLost => {
                own.tuning.changed = false;
                self.refuse(now, HelperLost, machine, actions);
            }
            _ => {}
        }
    }

    fn receive(&mut self, now: Time, message: ToAgent, machine: &mut Machine, actions: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Idle => self.receive_idle(now, message, machine, actions),
            Phase::Waiting { .. } => match message {
                ToAgent::Ping => {}
                ToAgent::Release => self.give_up(machine),
                _ => self.out_of_order(now, "in the queue", machine, actions),
            },
            Phase::Watching { .. } => match message {
                ToAgent::Ping => {}
                ToAgent::Release => self.give_up(machine),
                _ => self.out_of_order(now, "during `watch`", machine, actions),
            },
            Phase::Measuring(own) if own.leaving.is_some() => {}
            Phase::Measuring(own) if own.tuning.unconfirmed.is_some() => match message {
                ToAgent::Keep => own.tuning.confirm(actions),
                ToAgent::Ping => {}
                _ => self.out_of_order(now, "before the confirmation of a change", machine, actions),
            },
            Phase::Measuring(_) => self.receive_measuring(now, message, machine, actions),
            Phase::Over => {}
        }
    }

    fn receive_idle(&mut self, now: Time, message: ToAgent, machine: &mut Machine, actions: &mut Vec<Action>) {
        match message {
            ToAgent::Ping | ToAgent::Release | ToAgent::Abort => {}
            ToAgent::Clock | ToAgent::Results { .. } | ToAgent::Stored { .. } => {
                actions.push(Action::Answer(Box::new(message)));
            }
            ToAgent::Acquire { purpose, join: Some(ticket) } => {
                match machine.holds.join(&ticket, self.id) {
                    Ok(deadline) => self.begin(now, &purpose, (ticket, true), deadline, actions),
                    Err(error) => self.refuse(now, error, machine, actions),
                };
            }
            ToAgent::Acquire { purpose, join: None } => {
                let place = machine.queue.join(self.client.source);
                self.phase = Phase::Waiting { place, purpose, reported: None, look: None };
                self.turn(now, machine, actions);
            }
            ToAgent::Watch { interval_ns } => {
                machine.queue.watch(self.client.source);
                let every = Duration::from_nanos(interval_ns);
                self.phase = Phase::Watching { every, due: now.saturating_add(every) };
                actions.push(Action::BeginReports);
            }
            _ => self.refuse(now, Refusal::NotAcquired, machine, actions),
        }
    }

    fn receive_measuring(&mut self, now: Time, message: ToAgent, machine: &mut Machine, actions: &mut Vec<Action>) {
        let Phase::Measuring(own) = &mut self.phase else { return };
        match message {
            ToAgent::Prepare(prepare) => own.prepare(now, (self.id, machine), prepare, actions),
            ToAgent::Start => {
                if let Some(trial) = &mut own.trial {
                    trial.start(&machine.queue);
                    actions.push(Action::Start);
                }
            }
            ToAgent::Abort => actions.push(Action::Abort),
            ToAgent::Reset => own.fail((self.id, machine), FromAgent::Reset, actions),
            // One at a time; a second request during a probe is out of order.
            ToAgent::ProbePath { .. } if !own.probing => {
                own.probing = true;
                actions.push(Action::ProbePath(Box::new(message)));
            }
            ToAgent::Tune { settings, keep } => match tuning::not_allowed(&machine.rules, own.joined) {
                Some(refusal) => actions.push(send(refusal)),
                None => {
                    let command = format!("{} ({})", own.purpose, self.client.name);
                    own.tuning.tune(command, settings, keep, actions);
                }
            },
            ToAgent::Revert { .. } => match tuning::not_allowed(&machine.rules, own.joined) {
                Some(refusal) => actions.push(send(refusal)),
                None => actions.push(Action::Answer(Box::new(message))),
            },
            ToAgent::Untune => actions.push(Action::Revert),
            ToAgent::ReadConditions
            | ToAgent::Clock
            | ToAgent::IssueReachToken { .. }
            | ToAgent::Fetch { .. }
            | ToAgent::Forget { .. }
            | ToAgent::Show { .. }
            | ToAgent::Journal
            | ToAgent::Results { .. }
            | ToAgent::Stored { .. } => actions.push(Action::Answer(Box::new(message))),
            ToAgent::Release => self.end(now, Leave::Released, machine, actions),
            // A confirmation that is late or was not expected.
            ToAgent::Ping | ToAgent::Keep => {}
            _ => self.refuse(now, Refusal::OutOfOrder, machine, actions),
        }
    }

    /// Takes the machine if it is the turn of this session, or reports how many are in front, at most once per [`REPORT_INTERVAL`].
    fn turn(&mut self, now: Time, machine: &mut Machine, actions: &mut Vec<Action>) {
        let Phase::Waiting { place, purpose, reported, look } = &mut self.phase else { return };
        *look = None;
        match (machine.queue.enter(place), *reported) {
            (Ok(()), _) => {
                let (purpose, ticket) = (std::mem::take(purpose), self.client.ticket.clone());
                let limit = Duration::from_nanos(machine.rules.limits.hold_ns);
                let deadline = now.saturating_add(limit);
                machine.holds.begin(&ticket, self.id, deadline);
                self.begin(now, &purpose, (ticket, false), deadline, actions);
            }
            (Err(ahead), Some((last, _))) if last == ahead => {}
            (Err(_), Some((_, at))) if now < at + REPORT_INTERVAL => *look = Some(at + REPORT_INTERVAL),
            (Err(ahead), _) => {
                *reported = Some((ahead, now));
                let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
                actions.push(send(FromAgent::Queued { ahead }));
            }
        }
    }

    /// Has the machine.
    fn begin(
        &mut self,
        now: Time,
        purpose: &str,
        (ticket, joined): (String, bool),
        deadline: Time,
        actions: &mut Vec<Action>,
    ) {
        actions.push(send(FromAgent::Granted { ticket: (!joined).then(|| ticket.clone()) }));
        let what = if joined { "measures at the same time" } else { "measures" };
        actions.push(Action::Log(say!("{what} {purpose}")));
        let purpose = model::plain(&purpose.chars().take(MAX_PURPOSE).collect::<String>()).into_owned();
        let (trial, probing, tuning, leaving) = Default::default();
        self.phase = Phase::Measuring(Box::new(Measuring {
            ticket,
            joined,
            purpose,
            since: now,
            deadline,
            trial,
            probing,
            tuning,
            leaving,
        }));
    }

    fn timer(&mut self, now: Time, machine: &mut Machine, actions: &mut Vec<Action>) {
        if self.deadline(machine).is_none_or(|deadline| now < deadline) {
            return;
        }
        match &mut self.phase {
            Phase::Waiting { .. } => self.turn(now, machine, actions),
            Phase::Watching { every, due } => {
                // Reports that were missed are not made up for.
                *due = if now < *due + *every { *due + *every } else { now + *every };
                actions.push(Action::ReportHost);
            }
            Phase::Measuring(own) => match &mut own.leaving {
                Some(leaving) => {
                    leaving.at = None;
                    actions.push(Action::PutBack);
                }
                None if now >= own.deadline => self.refuse(now, Refusal::TimeLimit, machine, actions),
                None => own.tuning.undo(actions),
            },
            Phase::Idle | Phase::Over => {}
        }
    }

    /// Leaves the queue, or the watchers.
    fn give_up(&mut self, machine: &mut Machine) {
        match &self.phase {
            Phase::Waiting { place, .. } => machine.queue.give_up(place),
            Phase::Watching { .. } => machine.queue.unwatch(self.client.source),
            _ => {}
        }
        self.phase = Phase::Idle;
    }

    /// Gives back all that it has, whatever it does.
    pub(super) fn free(mut self, machine: &mut Machine) {
        match &self.phase {
            Phase::Measuring(_) => self.leave(machine, &mut Vec::new()),
            _ => self.give_up(machine),
        }
    }

    /// Ends the session, and says why.
    fn refuse(&mut self, now: Time, refusal: impl Into<Refusal>, machine: &mut Machine, actions: &mut Vec<Action>) {
        let refusal = refusal.into();
        actions.push(send(FromAgent::Refused { reason: refusal.say(), cause: RefusalCause::Other }));
        self.end(now, Leave::Ended(refusal.into()), machine, actions);
    }

    fn out_of_order(&mut self, now: Time, during: &'static str, machine: &mut Machine, actions: &mut Vec<Action>) {
        self.end(now, Leave::Ended(SessionEnd::OutOfOrder { during }), machine, actions);
    }

    /// Ends the measurement, and then perhaps the session.
    fn end(&mut self, now: Time, end: Leave, machine: &mut Machine, actions: &mut Vec<Action>) {
        let Phase::Measuring(own) = &mut self.phase else {
            self.give_up(machine);
            return self.close(end, actions);
        };
        if own.leaving.is_some() {
            return;
        }
        own.trial = None;
        machine.holds.release(&own.ticket, self.id);
        if own.tuning.unconfirmed.is_some() {
            own.tuning.undo(actions);
        }
        actions.push(Action::EndMeasurement);
        // A lost coordinator may come back; one that was asked to leave does not.
        let waits = match &end {
            Leave::Released | Leave::Ended(SessionEnd::Refused(Refusal::TimeLimit)) => false,
            Leave::Gone | Leave::Ended(_) => own.tuning.changed,
        };
        let at = waits.then(|| now.saturating_add(machine.rules.grace));
        own.leaving = Some(Leaving { at, end });
        if !waits {
            actions.push(Action::PutBack);
        }
    }

    /// The host is as it was: others may have the machine.
    fn leave(&mut self, machine: &mut Machine, actions: &mut Vec<Action>) {
        let Phase::Measuring(own) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        if machine.holds.leave(&own.ticket, self.id) {
            machine.queue.leave();
            actions.push(Action::Left);
        }
        if let Some(Leaving { end, .. }) = own.leaving {
            self.close(end, actions);
        }
    }

    fn close(&mut self, end: Leave, actions: &mut Vec<Action>) {
        let reason = match end {
            Leave::Released => return,
            Leave::Gone => None,
            Leave::Ended(end) => Some(end),
        };
        actions.push(Action::Close(reason));
        self.phase = Phase::Over;
    }
}

impl Measuring {
    fn prepare(
        &mut self,
        now: Time,
        (id, machine): (SessionId, &mut Machine),
        prepare: Box<Prepare>,
        actions: &mut Vec<Action>,
    ) {
        // An earlier trial that is not over gives back what it reserved, and its workers do not know of this one.
        if self.trial.take().is_some() {
            actions.push(Action::EndWorkers);
        }
        machine.holds.release(&self.ticket, id);
        let reserved = machine.holds.reserve((&self.ticket, id), &machine.rules.limits, &prepare.spec, &prepare.legs);
        match reserved {
            Ok(()) => {
                self.trial = Some(Trial::new(now, prepare.spec.processes as usize));
                actions.push(Action::SetUp(prepare));
            }
            Err(error) => {
                let failed = FromAgent::Failed { reason: error.say(), cause: Cause::Limits };
                self.fail((id, machine), failed, actions);
            }
        }
    }

    fn worker(
        &mut self,
        now: Time,
        (id, machine): (SessionId, &mut Machine),
        from: (usize, Duration),
        message: FromWorker,
        actions: &mut Vec<Action>,
    ) {
        let Some(trial) = &mut self.trial else { return };
        if let FromWorker::Failed { reason } = message {
            let cause = trial.cause();
            return self.fail((id, machine), FromAgent::Failed { reason, cause }, actions);
        }
        if trial.on(now, from, message, actions)
            && let Some(trial) = self.trial.take()
        {
            machine.holds.release(&self.ticket, id);
            actions.push(Action::Finish(Box::new(trial.ended(&machine.queue))));
        }
    }

    /// Ends the trial; the next one gets new workers.
    fn fail(&mut self, (id, machine): (SessionId, &mut Machine), message: FromAgent, actions: &mut Vec<Action>) {
        self.trial = None;
        machine.holds.release(&self.ticket, id);
        actions.extend([Action::EndWorkers, send(message)]);
    }
}

fn send(message: FromAgent) -> Action {
    Action::Send(Box::new(message))
}
