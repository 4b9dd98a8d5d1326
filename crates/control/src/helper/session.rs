//! A helper's session with an agent.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use host::tune::{self, Journal, RealBackend, TuneError, TuneFault, Tuner, Which};
use model::{Change, Setting, StackRule};
use stacks::{HeldRegistrations, StackError};
use text::{Said, say};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::UnixStream;

use super::message::{Answer, Request, SESSION, SOCKET};
use super::restore::{changes_line, recover};
use super::{Powers, sockets};
use crate::wire::Wire;
use protocol::message::Obstacle;

/// Serves a connection by its first byte.
pub(super) async fn receive(powers: &Arc<Powers>, mut stream: UnixStream, log: &(dyn Fn(&str) + Send + Sync)) {
    let mut kind = [0];
    match stream.read_exact(&mut kind).await {
        Ok(_) if kind == [SESSION] => {
            let wire = Wire::start(stream, &Answer::Ping);
            wire.trust();
            Session::new(powers.clone()).serve(wire, log).await;
        }
        Ok(_) if kind == [SOCKET] => {
            let powers = powers.clone();
            let answered = blocking(move || sockets::answer(&powers, &stream.into_std()?)).await;
            match answered {
                // The agent has ended the capture, or itself.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
                Err(error) => log(&format!("a request for a socket or packets: {error}")),
                Ok(()) => {}
            }
        }
        _ => {}
    }
}

/// What one session holds; dropping it restores the settings and unloads the stacks.
pub(super) struct Session {
    powers: Arc<Powers>,
    tuner: Option<Tuner>,
    stacks: HeldRegistrations,
}

impl Session {
    pub(super) fn new(powers: Arc<Powers>) -> Self {
        Self { powers, tuner: None, stacks: HeldRegistrations::default() }
    }

    /// Serves it over a stream within this process.
    pub(super) async fn serve_here<T>(self, stream: T)
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        self.serve(Wire::quiet(stream), &|_| {}).await;
    }

    /// Answers requests until the connection ends, then puts everything back.
    async fn serve(mut self, mut wire: Wire<Answer, Request>, log: &(dyn Fn(&str) + Send + Sync)) {
        while let Ok(request) = wire.recv().await {
            if request == Request::Ping {
                continue;
            }
            let answer;
            (self, answer) = blocking(move || {
                let answer = self.answer(request);
                (self, answer)
            })
            .await;
            if wire.send(&answer).await.is_err() {
                break;
            }
        }
        let (_, changes) = blocking(move || {
            let changes = self.end();
            (self, changes)
        })
        .await;
        if !changes.is_empty() {
            log(&format!("the agent is gone; reverted: {}", changes_line(&changes)));
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        let tuned = match request {
            Request::Tune { command, settings } => self.tune(command, &settings),
            Request::Undo { mark } => Ok(Answer::Reverted {
                changes: self.tuner.as_mut().map(|tuner| tuner.revert_to(mark)).unwrap_or_default(),
            }),
            Request::Keep => match self.tuner.take() {
                Some(mut tuner) => tuner.keep().map(|_| Answer::Kept),
                None => Ok(Answer::Kept),
            },
            Request::Revert => Ok(Answer::Reverted { changes: self.revert() }),
            Request::Show { keys } => {
                tune::show(&RealBackend, &keys, &self.powers.allowance).map(|settings| Answer::Shown { settings })
            }
            Request::Journal => self
                .journal()
                .and_then(|journal| tune::entries(&journal, &self.powers.allowance))
                .map(|entries| Answer::Journal { entries }),
            Request::RevertLeft { id, all, force } => self.revert_left(id, all, force),
            Request::Load { stack, rules } => return self.load(&stack, &rules),
            Request::End => Ok(Answer::Reverted { changes: self.end() }),
            Request::Capture(_) | Request::Set(_) | Request::Ping => {
                return Answer::host("unexpected request");
            }
        };
        tuned.unwrap_or_else(|error| refused(&error))
    }

    fn journal(&self) -> Result<Journal, TuneError> {
        Journal::open(self.powers.journal.as_deref())
    }

    /// A refusal unless settings may be changed.
    fn not_allowed(&self) -> Option<Answer> {
        (!self.powers.tuning).then(|| Answer::Refused {
            reason: say!("this helper changes no settings: start it with `--allow-tuning`"),
            obstacle: Obstacle::Refused,
        })
    }

    fn tune(&mut self, command: String, settings: &[Setting]) -> Result<Answer, TuneError> {
        if let Some(refusal) = self.not_allowed() {
            return Ok(refusal);
        }
        let mut recovered = Vec::new();
        if self.tuner.is_none() {
            let journal = self.journal()?;
            // What killed processes left must not count as the host's own settings.
            recovered = recover(&journal)?;
            let tuner = Tuner::new(Arc::new(RealBackend), journal, command, Duration::ZERO);
            self.tuner = Some(tuner.within(self.powers.allowance.clone()));
        }
        let Some(tuner) = &mut self.tuner else { unreachable!("it was just made") };
        let (mark, cuts) = (tuner.mark(), tuner.cuts(settings));
        Ok(Answer::Tuned { changes: tuner.tune(settings)?, mark, cuts, recovered })
    }

    fn revert_left(&self, id: Option<String>, all: bool, force: bool) -> Result<Answer, TuneError> {
        if let Some(refusal) = self.not_allowed() {
            return Ok(refusal);
        }
        let which = match (id, all) {
            (Some(id), _) => Which::One(id),
            (None, true) => Which::All,
            (None, false) => Which::Here,
        };
        let sessions = tune::revert(&self.journal()?, &RealBackend, &which, force, &self.powers.allowance)?;
        Ok(Answer::Left { sessions })
    }

    fn revert(&mut self) -> Vec<Change> {
        self.tuner.take().map(|mut tuner| tuner.revert()).unwrap_or_default()
    }

    fn end(&mut self) -> Vec<Change> {
        self.stacks = HeldRegistrations::default();
        self.revert()
    }

    fn load(&mut self, stack: &str, rules: &[StackRule]) -> Answer {
        if !self.powers.stacks {
            return Answer::host(say!("this helper loads no TCP stacks: start it with `--allow-stacks`"));
        }
        // A name of the program's own stacks only: no file of the agent's choice goes into the kernel.
        let name = stacks::StackRequest::parse(stack)
            .and_then(|request| request.ok_or_else(|| stacks::unknown(stack)))
            .and_then(|request| request.with_rules(rules))
            .and_then(|request| self.stacks.ensure(&request, self.powers.stacks_for_any_user));
        name.map_or_else(|error: StackError| Answer::host(error.say()), |name| Answer::Loaded { name })
    }
}

fn refused(error: &TuneError) -> Answer {
    let obstacle = match error.fault() {
        TuneFault::Wrong => Obstacle::Wrong,
        TuneFault::Refused => Obstacle::Refused,
        TuneFault::Busy => Obstacle::Busy,
        TuneFault::Host => Obstacle::Host,
    };
    Answer::Refused { reason: error.say(), obstacle }
}

/// Runs blocking work on another thread, so that pings continue.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
