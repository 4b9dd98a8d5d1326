//! One coordinator's connection, after the greeting: performs what [`protocol::agent`] decides.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use host::{HostReader, RealSys};
use protocol::agent::{Action, Event, SessionEnd as Decided};
use protocol::message::{FromAgent, ToAgent};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Shared;
use super::addresses::Addresses;
use super::machine::OpenSession;
use super::measurement::Measurement;
use super::path_probe::{self, PathProbe};
use super::session_captures::SessionCaptures;
use super::session_end::SessionEnd;
use crate::connection_end::ConnectionEnd;
use crate::helper::Client;
use crate::patience::{ControlPath, until};
use crate::proof::auth::Binding;
use crate::wire::Wire;

/// Longest time that a message waits for room: as long as a coordinator waits for a long result that arrives over a slow link.
const UNREAD_LIMIT: Duration = Duration::from_secs(600);

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
    /// Its session with the helper; dropping it restores the settings and unloads the stacks.
    pub(super) helper: Option<Client>,
    /// Its captures that have not been fetched; dropping it removes them.
    pub(super) session_captures: SessionCaptures,
    pub(super) measurement: Measurement,
    /// Reads the host for a coordinator that watches it.
    reader: Option<HostReader>,
    /// Why the connection has ended, if it has.
    gone: Option<ConnectionEnd>,
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
        let (proved, helper, session_captures, measurement, reader, gone) = Default::default();
        Self { shared, wire, addresses, peer, binding, proved, helper, session_captures, measurement, reader, gone }
    }

    /// Serves the authenticated coordinator until one side ends the connection.
    pub(crate) async fn run(mut self) {
        let over = match self.welcome().await {
            Ok(session) => self.serve(&session).await,
            Err(over) => over,
        };
        self.end(&over).await;
    }

    async fn serve(&mut self, session: &OpenSession) -> SessionEnd {
        let mut moves = session.machine().moves();
        let mut actions = VecDeque::new();
        loop {
            while let Some(action) = actions.pop_front() {
                match self.perform(action).await {
                    Performed::Done => {}
                    Performed::Answered(event) => actions.extend(session.on(event)),
                    Performed::Closed(Some(end)) => return end.into(),
                    Performed::Closed(None) => return self.gone.take().unwrap_or(ConnectionEnd::Closed).into(),
                }
            }
            let event = self.event(session, &mut moves).await;
            actions.extend(session.on(event));
        }
    }

    /// What happens next.
    async fn event(&mut self, session: &OpenSession, moves: &mut watch::Receiver<u64>) -> Event {
        let helper = self.helper.as_mut().filter(|_| session.minds_its_helper());
        let (here, round_trip) = (self.gone.is_none(), self.wire.path().round_trip());
        tokio::select! {
            () = Client::ended(helper) => Event::ChangesLost,
            message = self.wire.recv(), if here => match message {
                Ok(message) => Event::Message(Box::new(message)),
                Err(end) => {
                    self.gone = Some(end);
                    Event::Gone
                }
            },
            event = self.measurement.event(round_trip) => event,
            Ok(()) = moves.changed(), if session.waits() => Event::Turn,
            () = until(session.deadline()) => Event::Timer,
        }
    }

    async fn perform(&mut self, action: Action) -> Performed {
        let sent = match action {
            Action::Send(message) => self.send(&message).await,
            Action::Answer(message) => self.answer(*message).await,
            Action::Log(text) => {
                self.log(&text);
                Ok(())
            }
            Action::SetUp(prepare) => return Event::SetUp(self.prepare(*prepare).await).into(),
            Action::Listening(rendezvous) => {
                self.capture_at(&rendezvous);
                self.send(&FromAgent::Listening { rendezvous }).await
            }
            Action::Armed(sockets) => {
                self.measurement.armed(&sockets);
                self.send(&FromAgent::Armed).await
            }
            Action::Start => {
                self.measurement.start().await;
                Ok(())
            }
            Action::Abort => {
                self.measurement.abort().await;
                Ok(())
            }
            Action::EndWorkers => {
                self.measurement.end_workers();
                Ok(())
            }
            Action::Report { index, mut reading } => {
                reading.cpu = self.measurement.cpu(index);
                self.send(&FromAgent::Reading(reading)).await
            }
            Action::Finish(ended) => return Event::Finished(Box::new(self.finish(*ended).await)).into(),
            Action::ProbePath(request) => {
                self.probe_path(*request).await;
                Ok(())
            }
            Action::Tune { command, settings } => return Event::Tuned(self.tune(command, settings).await).into(),
            Action::Undo { mark } => {
                self.undo(mark).await;
                return Event::Undone.into();
            }
            Action::KeepChanges => return Event::KeptChanges(self.keep_changes().await).into(),
            Action::Revert => return Event::Reverted(self.revert().await).into(),
            Action::EndMeasurement => {
                self.measurement = Measurement::default();
                self.session_captures.clear();
                Ok(())
            }
            Action::PutBack => {
                self.end_helper().await;
                return Event::PutBack.into();
            }
            Action::Left => {
                if self.shared.options.once {
                    self.shared.served.notify_one();
                }
                Ok(())
            }
            Action::BeginReports => {
                self.reader = Some(HostReader::start(Arc::new(RealSys)));
                Ok(())
            }
            Action::ReportHost => match &mut self.reader {
                Some(reader) => {
                    let watched = Box::new(reader.read());
                    self.send(&FromAgent::Watched(watched)).await
                }
                None => Ok(()),
            },
            Action::Close(end) => return Performed::Closed(end),
        };
        match sent {
            Ok(()) => Performed::Done,
            Err(end) => {
                self.gone.get_or_insert(end);
                Event::Gone.into()
            }
        }
    }

    /// Does what a message requests that concerns the host only, and sends the answer.
    async fn answer(&mut self, message: ToAgent) -> Result<(), ConnectionEnd> {
        let answer = match message {
            ToAgent::Clock => path_probe::clocks(),
            ToAgent::ReadConditions => FromAgent::Conditions(host::conditions(&RealSys)),
            ToAgent::IssueReachToken { at } => {
                let issued = self.measurement.issued.reach_token(&self.shared, at).await;
                FromAgent::ReachToken(issued.map_err(ConnectionEnd::Io)?)
            }
            ToAgent::Fetch { file, from } => FromAgent::Piece(self.session_captures.piece(file, from).await),
            ToAgent::Forget { file, keep } => {
                self.session_captures.forget(&file, keep);
                return Ok(());
            }
            ToAgent::Results { run } => return self.results(run).await,
            ToAgent::Stored { run, below } => {
                self.forget_results(run, below).await;
                return Ok(());
            }
            settings => match self.settings(settings).await {
                Some(answer) => answer,
                None => return Ok(()),
            },
        };
        self.send(&answer).await
    }

    async fn probe_path(&mut self, request: ToAgent) {
        let ToAgent::ProbePath { peer, name, reach_token, round_trip_ns, scope } = request else { return };
        let round_trip = self.wire.path().round_trip().max(Duration::from_nanos(round_trip_ns));
        let scope = if self.addresses.peer.is_none() { scope } else { self.addresses.scope };
        let at = peer.map(|peer| engine::transport::scoped(peer, 0, scope));
        let (addresses, challenges) = (self.addresses, self.shared.challenges.clone());
        let to = self.measurement.proven.probed(at, name.as_deref(), reach_token, addresses, &challenges).await;
        self.measurement.path_probe = Some(PathProbe::start(to, round_trip));
    }

    /// Sends a message. A coordinator that makes no room for it for a long time is as good as gone.
    pub(super) async fn send(&mut self, message: &FromAgent) -> Result<(), ConnectionEnd> {
        let sent = self.wire.path().within(UNREAD_LIMIT, self.wire.send(message)).await;
        sent.unwrap_or_else(|waited| Err(ConnectionEnd::Unread { waited }))
    }
}

/// What came of an action.
enum Performed {
    Done,
    /// The session takes this event next.
    Answered(Event),
    /// The session is over, for this reason or because its connection has ended.
    Closed(Option<Decided>),
}

impl From<Event> for Performed {
    fn from(event: Event) -> Self {
        Self::Answered(event)
    }
}
