//! One coordinator's connection: the queue and the trials, after the greeting.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::transport::{Cookie, SharedPort as Port, is_link_local, scoped, transport};
use host::{Capturing, RealSys, Watch, WatchOptions};
use model::{EndPass, Role, Spec};
use text::{Said, say};
use tokio::io::{AsyncRead, AsyncWrite};

use super::addresses::Addresses;
use super::data_acceptor::{Registration, WorkerLinks};
use super::failure::TrialFailure;
use super::hold::{Member, Reserved};
use super::merge::merge;
use super::packets::{self, Connections};
use super::path_probe::{self, PathProbe};
use super::pool::{WorkerPool, first_flow_of};
use super::reach::{IssuedTokens, ProvenHosts};
use super::session_captures::SessionCaptures;
use super::session_end::{AgentRefusal, SessionEnd};
use super::watch;
use super::{AgentOptions, Shared};
use crate::ControlError;
use crate::helper::Client;
use crate::patience::ControlPath;
use crate::proto::auth::Binding;
use crate::proto::message::{
    Assignment, Done, FromAgent, FromWorker, Prepare, ToAgent, ToWorker, WireRendezvous, WorkerDone,
};
use crate::wire::Wire;

/// A coordinator's session with this agent.
pub(crate) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) wire: Wire<FromAgent, ToAgent>,
    pub(super) addresses: Addresses,
    pub(super) peer: String,
    /// The connection that the proofs cover.
    pub(super) binding: Binding,
    /// Whether its coordinator has proved that it may measure.
    pub(super) proved: bool,
    /// The purpose of the current measurement.
    pub(super) purpose: String,
    /// Whether it has joined another connection of its coordinator, which then has the settings.
    pub(super) joined: bool,
    /// Its session with the helper; dropping it restores the settings and unloads the stacks.
    pub(super) helper: Option<Client>,
    /// Whether it has changed settings.
    pub(super) changed: bool,
    /// Its captures that have not been fetched; dropping it removes them.
    session_captures: SessionCaptures,
}

/// Reports of a running trial are this many round trips apart at least, entries of its series twice as many: on a slow link they would
/// take the place of what is measured. The result has all of the series.
const READING_TRIPS: u32 = 2;
/// Longest time that a coordinator may add to the limits of a trial for its path, ns.
const MOST_PATIENCE_NS: u64 = 600_000_000_000;

/// The trial that is prepared or running.
struct Trial {
    prepare: Prepare,
    rendezvous: Vec<Option<WireRendezvous>>,
    armed: usize,
    done: Vec<WorkerDone>,
    prepared: Instant,
    setup: Duration,
    watch: Option<Watch>,
    capture: Option<Capturing>,
    overlapped: usize,
    /// The addresses of its connections, if they are captured.
    sockets: Vec<[SocketAddr; 2]>,
    /// Until all connections are up.
    registration: Option<Registration>,
    /// When the last entry of the series and the last reading were sent.
    reported: [Option<Instant>; 2],
    _reserved: Reserved,
}

impl Session {
    pub(crate) fn new<T>(
        shared: Arc<Shared>,
        stream: T,
        addresses: Addresses,
        peer: String,
        binding: Binding,
        path: ControlPath,
    ) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        let wire = Wire::start_on(stream, &FromAgent::Ping, path);
        Self {
            shared,
            wire,
            addresses,
            peer,
            binding,
            proved: false,
            purpose: String::new(),
            joined: false,
            helper: None,
            changed: false,
            session_captures: SessionCaptures::default(),
        }
    }

    /// Serves the authenticated coordinator until one side ends the connection.
    pub(crate) async fn run(mut self) {
        let over = match self.welcome().await {
            Ok(_client) => self.serve().await,
            Err(over) => over,
        };
        self.end(&over).await;
    }

    async fn serve(&mut self) -> SessionEnd {
        loop {
            if let Err(over) = self.answer().await {
                return over;
            }
        }
    }

    /// Answers the next message of a coordinator that does not have the machine.
    async fn answer(&mut self) -> Result<(), SessionEnd> {
        match self.wire.recv().await? {
            ToAgent::Ping | ToAgent::Release | ToAgent::Abort => {}
            ToAgent::Clock => self.wire.send(&path_probe::clocks()).await?,
            ToAgent::AskUsers => self.wire.send(&self.users()).await?,
            message @ (ToAgent::Results { .. } | ToAgent::Stored { .. }) => self.results(message).await?,
            ToAgent::Acquire { purpose, join } => self.hold(&purpose, join.as_deref()).await?,
            ToAgent::Watch { interval_ns } => {
                let watcher = self.shared.queue.watch(self.source());
                watch::serve(&mut self.wire, interval_ns, &watcher).await?;
            }
            _ => return Err(self.refuse(AgentRefusal::NotAcquired).await),
        }
        Ok(())
    }

    /// Waits in the queue or joins another connection of its coordinator, then serves measurements until the coordinator releases
    /// the machine.
    async fn hold(&mut self, purpose: &str, join: Option<&str>) -> Result<(), SessionEnd> {
        let member = match join {
            Some(ticket) => match self.shared.holds.join(ticket) {
                Ok(member) => member,
                Err(error) => return Err(self.refuse(error).await),
            },
            None => match self.queue_up().await? {
                Some(member) => member,
                None => return Ok(()),
            },
        };
        self.joined = join.is_some();
        let ticket = (!self.joined).then(|| member.ticket().to_owned());
        self.wire.send(&FromAgent::Granted { ticket }).await?;
        let what = if self.joined { "measures at the same time" } else { "measures" };
        self.log(&say!("{what} {purpose}"));
        self.purpose = super::one_line(purpose);
        let shared = self.shared.clone();
        // A connection that joined another one's hold is no further user.
        let using = join.is_none().then(|| shared.users.begin(self.purpose.clone(), self.source()));
        let measured = tokio::time::timeout_at(member.deadline(), self.measure(&member)).await;
        self.session_captures.clear();
        let result = match measured {
            Ok(Err(over)) => {
                // The next coordinator must not find this one's settings.
                self.revert_after_grace().await;
                Err(over)
            }
            Ok(Ok(())) => Ok(()),
            Err(_) => Err(self.refuse(AgentRefusal::TimeLimit).await),
        };
        self.end_helper().await;
        drop(using);
        if member.leave() && self.shared.options.once {
            self.shared.served.notify_one();
        }
        result
    }

    /// Waits in the queue; `None` if the coordinator leaves it.
    async fn queue_up(&mut self) -> Result<Option<Member>, SessionEnd> {
        let mut position = self.shared.queue.join(self.source());
        loop {
            tokio::select! {
                turn = position.turn() => match turn {
                    None => break,
                    Some(ahead) => {
                        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
                        self.wire.send(&FromAgent::Queued { ahead }).await?;
                    }
                },
                over = until_released(&mut self.wire) => return over.map(|()| None),
            }
        }
        let ticket = hex::encode(engine::random::<16>().map_err(SessionEnd::Random)?);
        let limit = Duration::from_nanos(self.shared.options.limits.hold_ns);
        Ok(Some(self.shared.holds.begin(position, ticket, limit)))
    }

    /// Trials, until released.
    async fn measure(&mut self, member: &Member) -> Result<(), SessionEnd> {
        let mut pool: Option<WorkerPool> = None;
        let mut trial: Option<Trial> = None;
        let mut path_probe: Option<PathProbe> = None;
        let (mut issued, mut proven) = (IssuedTokens::default(), ProvenHosts::default());
        loop {
            let probed = async {
                match &mut path_probe {
                    Some(path_probe) => path_probe.result().await,
                    None => std::future::pending().await,
                }
            };
            let message = async {
                match &mut pool {
                    Some(pool) => pool.message().await,
                    None => std::future::pending().await,
                }
            };
            // A trial says itself that its helper has ended.
            let helper_ended = Client::ended(self.helper.as_mut().filter(|_| self.changed && trial.is_none()));
            tokio::select! {
                () = helper_ended => return Err(self.settings_are_lost().await),
                message = self.wire.recv() => match message? {
                    ToAgent::Prepare(prepare) => {
                        // What an earlier trial reserved is given back first.
                        trial = None;
                        match self.prepare(*prepare, &mut pool, (&issued, &mut proven), member).await {
                            Ok(ready) => trial = Some(ready),
                            Err(failure) => {
                                pool = None;
                                self.wire.send(&failure.message(false)).await?;
                            }
                        }
                    }
                    ToAgent::Start => {
                        if let (Some(pool), Some(trial)) = (&pool, &mut trial) {
                            trial.watch = Some(Watch::start(Arc::new(RealSys), &watch_options(trial, pool)));
                            trial.overlapped = self.shared.queue.running().saturating_sub(1);
                            pool.send_all(&ToWorker::Start).await?;
                        }
                    }
                    ToAgent::Abort => {
                        if let Some(pool) = &pool {
                            pool.send_all(&ToWorker::Abort).await?;
                        }
                    }
                    ToAgent::Reset => {
                        // Workers that wait for connections end with their pool: the next trial gets new ones.
                        (pool, trial) = (None, None);
                        self.wire.send(&FromAgent::Reset).await?;
                    }
                    ToAgent::ReadConditions => {
                        self.wire.send(&FromAgent::Conditions(host::conditions(&RealSys))).await?;
                    }
                    ToAgent::Clock => self.wire.send(&path_probe::clocks()).await?,
                    // One at a time; a second request during a probe is out of order.
                    ToAgent::ProbePath { peer, name, reach_token, round_trip_ns, scope } if path_probe.is_none() => {
                        let round_trip = self.wire.path().round_trip().max(Duration::from_nanos(round_trip_ns));
                        let scope = if self.addresses.peer.is_none() { scope } else { self.addresses.scope };
                        let at = peer.map(|peer| scoped(peer, 0, scope));
                        let to = proven.probed(at, name.as_deref(), reach_token, self.addresses, &self.shared.challenges).await;
                        path_probe = Some(PathProbe::start(to, round_trip));
                    }
                    ToAgent::IssueReachToken { at } => {
                        let reach_token = issued.reach_token(&self.shared, at).await.map_err(SessionEnd::Random)?;
                        self.wire.send(&FromAgent::ReachToken(reach_token)).await?;
                    }
                    ToAgent::Fetch { file, from } => {
                        let piece = self.session_captures.piece(file, from).await;
                        self.wire.send(&FromAgent::Piece(piece)).await?;
                    }
                    ToAgent::Forget { file, keep } => self.session_captures.forget(&file, keep),
                    message @ (ToAgent::Tune { .. }
                    | ToAgent::Keep
                    | ToAgent::Untune
                    | ToAgent::Show { .. }
                    | ToAgent::Journal
                    | ToAgent::Revert { .. }) => self.settings(message).await?,
                    message @ (ToAgent::Results { .. } | ToAgent::Stored { .. }) => self.results(message).await?,
                    ToAgent::Release => return Ok(()),
                    ToAgent::Ping => {}
                    _ => return Err(self.refuse(AgentRefusal::OutOfOrder).await),
                },
                found = probed => {
                    path_probe = None;
                    self.wire.send(&FromAgent::PathProbed(Box::new(found))).await?;
                }
                (index, message) = message => {
                    let running = trial.as_ref().is_some_and(|trial| trial.watch.is_some());
                    let outcome = match message {
                        Ok(message) => self.handle(index, message, &mut trial).await,
                        Err(end) => Err(TrialFailure::WorkerEnded(end)),
                    };
                    if let Err(failure) = outcome {
                        // The state of the workers is unknown: the next trial gets new ones.
                        (pool, trial) = (None, None);
                        self.wire.send(&failure.message(running)).await?;
                    }
                }
            }
        }
    }

    /// Prepares the workers for a trial.
    async fn prepare(
        &mut self,
        mut prepare: Prepare,
        pool: &mut Option<WorkerPool>,
        (issued, proven): (&IssuedTokens, &mut ProvenHosts),
        member: &Member,
    ) -> Result<Trial, TrialFailure> {
        let reserved = member.reserve(&self.shared.options.limits, &prepare.spec, &prepare.legs)?;
        check(&prepare)?;
        if let Some(lost) = self.lost_helper() {
            return Err(lost.into());
        }
        self.localize(&mut prepare);
        proven.locate(&mut prepare, self.addresses, &self.shared).await?;
        self.provide_stack(&mut prepare).await?;
        let listen_on = issued.listen_on(self.addresses.here, &self.shared);
        Ok(self.set_up(prepare, pool, reserved, listen_on).await?)
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
        pool: &mut Option<WorkerPool>,
        reserved: Reserved,
        listen_on: Option<IpAddr>,
    ) -> Result<Trial, ControlError> {
        let spec = &prepare.spec;
        engine::transport::check_options(prepare.role, spec)?;
        let count = spec.processes as usize;
        let pool = match pool {
            Some(running) if running.len() == count => running,
            slot => slot.insert(WorkerPool::start(&self.shared.options.workers, count)?),
        };
        let cookie: Cookie = engine::random().map_err(|source| ControlError::io("draw a random number", source))?;
        let through_shared_port = prepare.role == Role::Passive && self.by_shared_port(spec)?;
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
                .map_err(|ended| ControlError::Setup { address: "this host".into(), reason: ended.say() })?;
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
        if through_shared_port {
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
            let rendezvous = vec![shared_port; count];
            let _ = self.wire.send(&FromAgent::Listening { rendezvous }).await;
        }
        Ok(Trial {
            prepare,
            rendezvous: vec![None; count],
            armed: 0,
            done: Vec::new(),
            prepared: Instant::now(),
            setup: Duration::ZERO,
            watch: None,
            capture,
            overlapped: 0,
            sockets: Vec::new(),
            registration,
            reported: [None; 2],
            _reserved: reserved,
        })
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

    /// Handles a worker's message; an error ends the trial.
    async fn handle(
        &mut self,
        index: usize,
        message: FromWorker,
        trial: &mut Option<Trial>,
    ) -> Result<(), TrialFailure> {
        let Some(current) = trial else { return Ok(()) };
        match message {
            FromWorker::Listening(listener) => {
                current.rendezvous[index] = Some(listener);
                if let Some(rendezvous) = current.rendezvous.iter().cloned().collect::<Option<Vec<_>>>() {
                    let ports = rendezvous.iter().filter_map(|listener| listener.port).collect();
                    current.capture = self.capture(&current.prepare, ports, None);
                    self.wire.send(&FromAgent::Listening { rendezvous }).await?;
                }
            }
            FromWorker::Armed { sockets } => {
                current.armed += 1;
                current.sockets.extend(sockets);
                if current.armed == current.rendezvous.len() {
                    // Later connections are not part of the trial.
                    current.registration = None;
                    if let Some(capture) = &current.capture {
                        let Prepare { role, spec, .. } = &current.prepare;
                        capture.keep(packets::own(*role, spec, &current.sockets));
                    }
                    current.setup = current.prepared.elapsed();
                    self.wire.send(&FromAgent::Armed).await?;
                }
            }
            // A single worker's series is the end's. With several, their sum is in the result.
            FromWorker::Live(interval) if current.rendezvous.len() == 1 => {
                if is_due(&mut current.reported[0], 2 * READING_TRIPS * self.wire.path().round_trip()) {
                    self.wire.send(&FromAgent::Live(interval)).await?;
                }
            }
            FromWorker::Live(_) => {}
            FromWorker::Reading(mut reading) => {
                // Of several workers, the first one's readings have what is the host's.
                reading.cpu = current.watch.as_mut().filter(|_| index == 0).and_then(Watch::lap);
                if current.rendezvous.len() > 1
                    || is_due(&mut current.reported[1], READING_TRIPS * self.wire.path().round_trip())
                {
                    self.wire.send(&FromAgent::Reading(reading)).await?;
                }
            }
            FromWorker::Failed { reason } => return Err(TrialFailure::Reported(reason)),
            FromWorker::Done(done) => {
                current.done.push(*done);
                if current.done.len() == current.rendezvous.len()
                    && let Some(ended) = trial.take()
                {
                    let done = self.finish(ended).await;
                    self.wire.send(&FromAgent::Done(Box::new(done))).await?;
                }
            }
        }
        Ok(())
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

    async fn finish(&mut self, trial: Trial) -> Done {
        let mut host = EndPass { setup_ns: trial.setup.as_nanos() as u64, ..EndPass::default() };
        if let Some(watch) = trial.watch {
            watch.finish(&mut host);
        }
        // After the host's counters were read: the end of a capture is not part of the trial.
        if let Some(capture) = trial.capture {
            host.capture = packets::end(capture).await;
        }
        let overlapped = trial.overlapped.max(self.shared.queue.running().saturating_sub(1));
        let (mut tallies, failure, elapsed_ns) = merge(trial.done, &trial.prepare.spec);
        let failure = failure.or_else(|| self.lost_helper().map(|lost| lost.say()));
        // If the pass is one trial, the host's CPU time around it belongs to the trial.
        if let (Some(spent), Some(cpu)) = (tallies.first_mut().and_then(|tally| tally.spent.as_mut()), &host.cpu) {
            spent.host_ns = Some(cpu.busy_ns());
            spent.host_resolution_ns = Some(cpu.resolution_ns);
        }
        #[cfg(feature = "metrics")]
        self.shared.measured.note(&tallies, failure.is_some());
        debug_assert!(tallies.len() <= trial.prepare.legs.len(), "a worker has a tally for each of its legs only");
        let done =
            Done { tallies, failure, elapsed_ns, host, overlapped_by: u32::try_from(overlapped).unwrap_or(u32::MAX) };
        self.keep_result(&trial.prepare, &done).await;
        done
    }
}

/// Whether `pause` has passed since the last report; it counts as sent then.
fn is_due(last: &mut Option<Instant>, pause: Duration) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= pause);
    if due {
        *last = Some(Instant::now());
    }
    due
}

/// Whether the measurement and each of its legs is possible.
fn check(prepare: &Prepare) -> Result<(), engine::EngineError> {
    engine::pattern::check(&prepare.spec)?;
    prepare.legs.iter().try_for_each(|leg| engine::pattern::check(&leg.of(&prepare.spec)))
}

/// What the observers read around a trial. This agent and its workers are the tool's own processes.
fn watch_options(trial: &Trial, pool: &WorkerPool) -> WatchOptions {
    let Prepare { role, spec, .. } = &trial.prepare;
    let workers = pool.processes().into_iter().map(|pid| ("worker", pid));
    WatchOptions {
        observe: spec.observe,
        interval_ns: spec.observe_interval_ns,
        processes: std::iter::once(("agent", std::process::id())).chain(workers).collect(),
        avoid: spec.end(*role).pin.clone(),
    }
}

/// Waits until the coordinator leaves the queue or its connection ends.
async fn until_released(wire: &mut Wire<FromAgent, ToAgent>) -> Result<(), SessionEnd> {
    loop {
        match wire.recv().await? {
            ToAgent::Ping => {}
            ToAgent::Release => return Ok(()),
            _ => return Err(SessionEnd::OutOfOrder { during: "in the queue" }),
        }
    }
}
