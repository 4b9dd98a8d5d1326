//! One trial at this end: its workers, its capture and its result.

use std::net::IpAddr;
use std::path::Path;

use engine::transport::{Cookie, SharedPort as Port, is_link_local, scoped, transport};
use host::Capturing;
use model::{EndPass, EndResult, Role, Spec};
use protocol::agent::{Ended, NotSetUp};
use protocol::coordinator::DialogueError;
use protocol::message::{Prepare, WireRendezvous};
use protocol::worker_message::{Assignment, ToWorker};
use text::Said;

use super::AgentOptions;
use super::data_acceptor::WorkerLinks;
use super::failure::TrialFailure;
use super::measurement::Trial;
use super::merge::merge;
use super::packets::{self, Connections};
use super::pool::{WorkerPool, first_flow_of};
use super::session::Session;
use crate::ControlError;

/// Longest time that a coordinator may add to the limits of a trial for its path, ns.
const MOST_PATIENCE_NS: u64 = 600_000_000_000;

impl Session {
    /// Prepares the workers for a trial. Returns where the agent's port listens for them, if it does.
    pub(super) async fn prepare(&mut self, prepare: Prepare) -> Result<Option<Vec<WireRendezvous>>, NotSetUp> {
        self.try_prepare(prepare).await.map_err(Into::into)
    }

    async fn try_prepare(&mut self, mut prepare: Prepare) -> Result<Option<Vec<WireRendezvous>>, TrialFailure> {
        self.measurement.trial = None;
        check(&prepare)?;
        if let Some(lost) = self.lost_helper() {
            return Err(lost.into());
        }
        self.localize(&mut prepare);
        self.measurement.proven.locate(&mut prepare, self.addresses, &self.shared).await?;
        self.provide_stack(&mut prepare).await?;
        let listen_on = self.measurement.issued.listen_on(self.addresses.here, &self.shared);
        Ok(self.set_up(prepare, listen_on).await?)
    }

    /// Adapts what a coordinator on another host cannot know: a link-local address is on the link of its connection here, by this host's
    /// number; and the path keeps this agent no longer than any.
    fn localize(&self, prepare: &mut Prepare) {
        prepare.path.patience_ns = prepare.path.patience_ns.min(MOST_PATIENCE_NS);
        if self.addresses.peer.is_some() {
            for address in prepare.rendezvous.iter_mut().filter_map(|target| target.address.as_mut()) {
                *address = match is_link_local(address.ip()) {
                    true => scoped(address.ip(), address.port(), self.addresses.scope),
                    false => *address,
                };
            }
        }
    }

    async fn set_up(
        &mut self,
        prepare: Prepare,
        listen_on: Option<IpAddr>,
    ) -> Result<Option<Vec<WireRendezvous>>, ControlError> {
        let spec = &prepare.spec;
        engine::transport::check_options(prepare.role, spec)?;
        let count = spec.processes as usize;
        let through_shared_port = prepare.role == Role::Passive && self.by_shared_port(spec)?;
        let pool = match &mut self.measurement.pool {
            Some(running) if running.len() == count => running,
            slot => slot.insert(WorkerPool::start(&self.shared.options.workers, count)?),
        };
        let cookie: Cookie = engine::random().map_err(|source| ControlError::io("draw a random number", source))?;
        let mut expected = Vec::new();
        for index in 0..count {
            let (first_flow, end_flow) =
                (first_flow_of(spec.flows, index, count), first_flow_of(spec.flows, index + 1, count));
            let assignment = Assignment {
                prepare: Prepare {
                    rendezvous: prepare.rendezvous.get(index).cloned().into_iter().collect(),
                    ..prepare.clone()
                },
                first_flow,
                end_flow,
                through_shared_port,
                listen_on,
                scope: self.addresses.scope,
                directory: self.shared.options.directory.clone(),
                cookie: hex::encode(cookie),
                helper: self.shared.options.helper.path().map(Path::to_owned),
            };
            if through_shared_port {
                // Links are numbered from at most twice the flow; a range that is too wide does no harm.
                let width = if spec.direction == model::Direction::Both { 2 } else { 1 };
                let links = first_flow * width..end_flow * width;
                // The probe's link has the number after the last flow's, and belongs to the first worker.
                let probe = (index == 0 && spec.probe.is_some()).then_some(spec.flows * width);
                let failed = |source| ControlError::io("share a socket with a worker process", source);
                let sockets = pool.sockets(index)?;
                expected.push(WorkerLinks::new(prepare.trial, links, probe, sockets).map_err(failed)?);
            }
            let command = ToWorker::Prepare(Box::new(assignment));
            pool.send(index, &command)
                .await
                .map_err(|ended| DialogueError::Setup { address: "this host".into(), reason: ended.say() })?;
        }
        let capture = match prepare.role {
            Role::Active => {
                let targets = || prepare.rendezvous.iter().filter_map(|target| target.address);
                let (to, ports) = (targets().next().map(|to| to.ip()), targets().map(|to| to.port()).collect());
                self.capture(&prepare, ports, to)
            }
            Role::Passive if through_shared_port => {
                self.capture(&prepare, self.shared.port.into_iter().collect(), None)
            }
            // Starts when the workers have reported where they listen.
            Role::Passive => None,
        };
        let registration = through_shared_port.then(|| self.shared.data_acceptor.register(cookie, expected));
        let shared_port = WireRendezvous {
            address: None,
            name: None,
            port: self.shared.port,
            shared: true,
            path: None,
            cookie: hex::encode(cookie),
            boot_id: None,
            blob: String::new(),
        };
        self.measurement.trial = Some(Trial { prepare, watch: None, capture, registration });
        Ok(through_shared_port.then(|| vec![shared_port; count]))
    }

    /// Whether the shared port can receive the data: the transport can use it, and no option must be set before the handshake.
    fn by_shared_port(&self, spec: &Spec) -> Result<bool, ControlError> {
        let capabilities = transport(spec.transport.as_str())?.capabilities();
        let mut far = spec.far.clone();
        let covered = far.data_addr.take().is_none_or(|address| self.shared.covers(address));
        let has_shared_port = matches!(capabilities.shared_port, Some(Port::Tcp | Port::Udp));
        Ok(has_shared_port
            && self.shared.port.is_some()
            && covered
            && !far.needs_own_listener()
            && !spec.renews_connections())
    }

    /// Starts the capture that a trial requests, if it does, on the connections to `to` and these ports.
    fn capture(&mut self, prepare: &Prepare, ports: Vec<u16>, to: Option<IpAddr>) -> Option<Capturing> {
        let connections = Connections {
            role: prepare.role,
            trial: prepare.trial,
            ports,
            to,
            here: prepare.spec.far.data_addr.or(self.addresses.here),
            coordinator: &self.peer,
        };
        let AgentOptions { captures, helper, .. } = &self.shared.options;
        packets::begin(captures, &mut self.session_captures, helper, &prepare.spec, connections)
    }

    /// All workers have reported where they listen: starts the capture that the trial requests, if it does.
    pub(super) fn capture_at(&mut self, rendezvous: &[WireRendezvous]) {
        let Some(mut trial) = self.measurement.trial.take() else { return };
        let ports = rendezvous.iter().filter_map(|listener| listener.port).collect();
        trial.capture = self.capture(&trial.prepare, ports, None);
        self.measurement.trial = Some(trial);
    }

    /// The result of a trial whose workers have finished.
    pub(super) async fn finish(&mut self, ended: Ended) -> EndResult {
        let Some(Trial { prepare, watch, capture, .. }) = self.measurement.trial.take() else {
            return EndResult::default();
        };
        let mut host = EndPass { setup_ns: ended.set_up_in.as_nanos() as u64, ..EndPass::default() };
        if let Some(watch) = watch {
            watch.finish(&mut host);
        }
        // After the host's counters were read: the end of a capture is not part of the trial.
        if let Some(capture) = capture {
            host.capture = packets::end(capture).await;
        }
        let (mut tallies, failure, elapsed_ns) = merge(ended.done, &prepare.spec);
        let failure = failure.or_else(|| self.lost_helper().map(|lost| lost.say()));
        // If the pass is one trial, the host's CPU time around it belongs to the trial.
        if let (Some(spent), Some(cpu)) = (tallies.first_mut().and_then(|tally| tally.spent.as_mut()), &host.cpu) {
            spent.host_ns = Some(cpu.busy_ns());
            spent.host_resolution_ns = Some(cpu.resolution_ns);
        }
        #[cfg(feature = "metrics")]
        self.shared.measured.note(&tallies, failure.is_some());
        debug_assert!(tallies.len() <= prepare.legs.len(), "a worker has a tally for each of its legs only");
        let done = EndResult {
            tallies,
            failure,
            elapsed_ns,
            host,
            overlapped_by: u32::try_from(ended.overlapped).unwrap_or(u32::MAX),
        };
        self.keep_result(&prepare, &done).await;
        done
    }
}

/// Whether the measurement and each of its legs is possible.
fn check(prepare: &Prepare) -> Result<(), engine::EngineError> {
    engine::pattern::check(&prepare.spec)?;
    prepare.legs.iter().try_for_each(|leg| engine::pattern::check(&leg.with_blocks(&prepare.spec)))
}
