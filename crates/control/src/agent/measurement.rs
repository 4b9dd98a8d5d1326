//! The workers of a coordinator that has the machine, and the trial that they make.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use host::{Capturing, RealSys, Watch, WatchOptions};
use protocol::agent::Event;
use protocol::message::Prepare;
use protocol::worker_message::ToWorker;
use text::Said;

use super::data_acceptor::Registration;
use super::packets;
use super::path_probe::PathProbe;
use super::pool::WorkerPool;
use super::reach::{IssuedTokens, ProvenHosts};

/// What a coordinator uses of this host while it has the machine.
#[derive(Default)]
pub(super) struct Measurement {
    pub(super) pool: Option<WorkerPool>,
    pub(super) trial: Option<Trial>,
    pub(super) path_probe: Option<PathProbe>,
    pub(super) issued: IssuedTokens,
    pub(super) proven: ProvenHosts,
}

/// The trial that is prepared or running.
pub(super) struct Trial {
    pub(super) prepare: Prepare,
    pub(super) watch: Option<Watch>,
    pub(super) capture: Option<Capturing>,
    /// Until all connections are up.
    pub(super) registration: Option<Registration>,
}

impl Measurement {
    /// What happens next to the workers, with a round trip of the control connection, and to the path probe. Dropping the future loses
    /// nothing.
    pub(super) async fn event(&mut self, round_trip: Duration) -> Event {
        let Self { pool, path_probe, .. } = self;
        let message = async {
            match pool {
                Some(pool) => pool.message().await,
                None => std::future::pending().await,
            }
        };
        let probed = async {
            match path_probe {
                Some(path_probe) => path_probe.result().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            (index, message) = message => match message {
                Ok(message) => Event::Worker { index, message: Box::new(message), round_trip },
                Err(end) => Event::WorkerGone { reason: end.say() },
            },
            facts = probed => {
                self.path_probe = None;
                Event::PathProbed(Box::new(facts))
            }
        }
    }

    /// Begins to watch the host, and starts the workers. One that has ended says so by itself.
    pub(super) async fn start(&mut self) {
        if let (Some(pool), Some(trial)) = (&self.pool, &mut self.trial) {
            trial.watch = Some(Watch::start(Arc::new(RealSys), &watch_options(&trial.prepare, pool)));
            let _ = pool.send_all(&ToWorker::Start).await;
        }
    }

    /// Ends the trial, with its result so far.
    pub(super) async fn abort(&mut self) {
        if let Some(pool) = &self.pool {
            let _ = pool.send_all(&ToWorker::Abort).await;
        }
    }

    /// Ends the workers and their trial.
    pub(super) fn end_workers(&mut self) {
        (self.pool, self.trial) = (None, None);
    }

    /// All connections are up: later ones are not part of the trial, and packets of these are kept.
    pub(super) fn armed(&mut self, sockets: &[[SocketAddr; 2]]) {
        let Some(Trial { prepare: Prepare { role, spec, .. }, capture, registration, .. }) = &mut self.trial else {
            return;
        };
        *registration = None;
        if let Some(capture) = capture {
            capture.keep(packets::own(*role, spec, sockets));
        }
    }

    /// The CPU time of the host, which goes with the readings of the first worker.
    pub(super) fn cpu(&mut self, worker: usize) -> Option<model::CpuUse> {
        self.trial.as_mut()?.watch.as_mut().filter(|_| worker == 0).and_then(Watch::lap)
    }
}

/// What the observers read around a trial. This agent and its workers are the tool's own processes.
fn watch_options(Prepare { role, spec, .. }: &Prepare, pool: &WorkerPool) -> WatchOptions {
    let workers = pool.processes().into_iter().map(|pid| ("worker", pid));
    WatchOptions {
        observe: spec.observe,
        interval_ns: spec.observe_interval_ns,
        processes: std::iter::once(("agent", std::process::id())).chain(workers).collect(),
        avoid: spec.end(*role).pin.clone(),
    }
}
