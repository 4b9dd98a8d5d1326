//! The connections of a coordinator, and the work that its dialogues ask for.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Bound;
use std::pin::Pin;
use std::process::Stdio;
use std::task::Poll;
use std::time::{Duration, Instant};

use engine::transport::{at_port, lacks_scope, scope_hint, scope_of, scoped};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use host::{RealSys, Sys};
use model::{EndOptions, Event as RunEvent, EventSink, PathTimes, SinkError};
use protocol::coordinator::{
    Action, Answer, Connected, Dialogue, DialogueError, End, Event, Fault, LineEnd, LineId, Outside, Seen, Work, WorkId,
};
use protocol::message::{FromAgent, ToAgent};
use schedule::FailureKind;
use text::{Said, say};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::greeting::{AgentFacts, Greeted};
use super::program::{FarProgram, ProgramTest};
use super::reached::Reached;
use super::{Cancel, disk};
use crate::patience::until;
use crate::wire::Wire;
use crate::{ConnectionEnd, ControlError};

/// Events of tests with other programs that may wait for the sink: several seconds of their readings.
const READINGS: usize = 64;
/// Errors that are kept until the run has ended: one of them may end it.
const FAULTS: usize = 1_000;

/// What dialogues have of the outside.
pub(super) struct Lines {
    outside: Outside,
    wires: BTreeMap<LineId, Wire<ToAgent, FromAgent>>,
    /// The last connection that a message came from: all have their turn.
    last: LineId,
    /// How the agents were reached, by the numbers of their hosts.
    pub(super) reached: BTreeMap<usize, Reached>,
    /// Other programs, by the numbers of their hosts; a test that is under way has its program.
    pub(super) programs: BTreeMap<usize, Box<dyn FarProgram>>,
    faults: BTreeMap<usize, ControlError>,
    /// In a lab: the process that reports on its emulated links.
    lab: Option<lab::Holder>,
}

/// Work that goes on.
type Working = FuturesUnordered<Pin<Box<dyn Future<Output = Worked>>>>;

/// Work that is done.
enum Worked {
    Connected(WorkId, usize, Result<Box<Greeted>, ControlError>),
    Tested(WorkId, usize, Box<dyn FarProgram>, ProgramTest),
    Done(WorkId, Result<(), ControlError>),
}

/// What has happened.
enum Happened {
    Arrived(LineId, Result<FromAgent, ConnectionEnd>),
    Worked(Worked),
    Shown(Box<RunEvent>),
    Stop,
    Deadline,
}

impl Lines {
    pub(super) fn new() -> Self {
        let random = engine::random().map(u64::from_ne_bytes).unwrap_or_default();
        let outside = Outside::new(now(), random);
        let (wires, last, reached, programs, faults) = Default::default();
        Self { outside, wires, last, reached, programs, faults, lab: lab::Holder::of_this_host() }
    }

    pub(super) fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Takes the connection of an agent that has greeted.
    pub(super) fn connect(&mut self, greeted: Greeted) -> (End, AgentFacts) {
        let (connected, facts) = self.connected(greeted);
        (End::new(&self.outside, connected), facts)
    }

    fn connected(&mut self, greeted: Greeted) -> (Connected, AgentFacts) {
        let Greeted { name, facts, instance, namespace, reached, wire } = greeted;
        let line = self.outside.line();
        self.wires.insert(line, wire);
        self.see(line);
        let namespace = facts.inventory.boot_id.clone().zip(namespace);
        (Connected { line, name, instance, address: reached.address(), host_name: reached.name(), namespace }, facts)
    }

    /// Moves the connection of an end, over which nothing was said, to others.
    pub(super) fn move_to(&mut self, end: &End, others: &mut Self) -> End {
        let line = others.outside.line();
        if let Some(wire) = self.wires.remove(&end.line()) {
            others.wires.insert(line, wire);
            others.see(line);
        }
        End::new(&others.outside, end.connected(line))
    }

    /// Lets a dialogue go on until it ends.
    pub(super) async fn perform<T>(
        &mut self,
        code: impl Future<Output = T>,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> T {
        let mut dialogue = Dialogue::new(&self.outside, code);
        let (relay, mut shown) = mpsc::channel(READINGS);
        let (mut working, mut events) = (Working::new(), VecDeque::new());
        let own_cancel = cancel.clone();
        loop {
            let (now, unix_ns) = (now(), engine::unix_ns());
            for action in dialogue.on(now, unix_ns, events.pop_front()) {
                events.extend(self.act(action, sink, &working, (&relay, &own_cancel)).await);
            }
            if let Some(end) = dialogue.end() {
                return end;
            }
            if !events.is_empty() {
                continue;
            }
            let stops = !self.outside.is_stopped();
            let deadline = dialogue.deadline().map(|at| Instant::now() + at.saturating_sub(now));
            let happened = tokio::select! {
                (line, message) = self.arrival() => Happened::Arrived(line, message),
                Some(worked) = working.next() => Happened::Worked(worked),
                Some(event) = shown.recv() => Happened::Shown(Box::new(event)),
                () = cancelled(cancel), if stops => Happened::Stop,
                () = until(deadline) => Happened::Deadline,
            };
            events.extend(self.event(happened, sink));
        }
    }

    /// What has happened, as the dialogue takes it.
    fn event(&mut self, happened: Happened, sink: &mut dyn EventSink) -> Option<Event> {
        match happened {
            Happened::Arrived(line, arrived) => {
                self.see(line);
                Some(Event::Arrived(line, arrived.map_err(|end| LineEnd(end.say()))))
            }
            Happened::Worked(worked) => Some(self.worked(worked)),
            Happened::Shown(event) => self.show(&event, sink),
            Happened::Stop => Some(Event::Stop),
            Happened::Deadline => {
                let lines: Vec<LineId> = self.wires.keys().copied().collect();
                lines.into_iter().for_each(|line| self.see(line));
                None
            }
        }
    }

    fn worked(&mut self, worked: Worked) -> Event {
        let (id, answer) = match worked {
            Worked::Connected(id, host, Ok(greeted)) => {
                self.reached.insert(host, greeted.reached.clone());
                (id, Answer::Connected(Box::new(self.connected(*greeted).0)))
            }
            Worked::Connected(id, _, Err(error)) | Worked::Done(id, Err(error)) => {
                (id, Answer::Failed(self.fault(error)))
            }
            Worked::Tested(id, host, program, result) => {
                self.programs.insert(host, program);
                let answer = match result {
                    Ok((both, repeats)) => Answer::Tested(both, repeats),
                    Err(error) => Answer::Failed(self.fault(error)),
                };
                (id, answer)
            }
            Worked::Done(id, Ok(())) => (id, Answer::Done),
        };
        Event::Done(id, answer)
    }

    /// Does what a dialogue wants. Returns what follows at once.
    async fn act(
        &mut self,
        action: Action,
        sink: &mut dyn EventSink,
        working: &Working,
        (relay, cancel): (&mpsc::Sender<RunEvent>, &Cancel),
    ) -> Option<Event> {
        match action {
            Action::Send(line, message) => {
                // One that has ended says so when it is read. One whose agent reads nothing must not hold up the others.
                let sent = self.wires.get(&line)?.send(&message).now_or_never();
                let unread = || Err(LineEnd("it does not read what this host sends".into()));
                return sent.is_none().then(|| Event::Arrived(line, unread()));
            }
            Action::AcceptUpTo(line, bytes) => self.wires.get(&line)?.accept_up_to(bytes),
            Action::Close(line) => self.wires.remove(&line)?.close().await,
            Action::Cut(line) => drop(self.wires.remove(&line)),
            Action::Show(event) => return self.show(&event, sink),
            Action::Work(id, work) => {
                let answer = self.work(id, work, working, relay, cancel)?;
                return Some(Event::Done(id, answer));
            }
        }
        None
    }

    /// Begins some work. Returns the answer of one that is done at once.
    fn work(
        &mut self,
        id: WorkId,
        work: Work,
        working: &Working,
        relay: &mpsc::Sender<RunEvent>,
        cancel: &Cancel,
    ) -> Option<Answer> {
        match work {
            Work::Connect { host } => {
                // The dialogue reports a host that was not reached before as one to which no connection is possible.
                let Some(reached) = self.reached.get(&host).cloned() else { return Some(Answer::Done) };
                working.push(Box::pin(async move {
                    Worked::Connected(id, host, Greeted::again(&reached).await.map(Box::new))
                }));
            }
            Work::Test { host, number, spec, legs, live } => {
                let Some(mut program) = self.programs.remove(&host) else { return Some(Answer::Done) };
                let (mut relay, mut cancel) = (Relay(live.then(|| relay.clone())), cancel.clone());
                working.push(Box::pin(async move {
                    let result = program.test(number, &spec, &legs, &mut relay, &mut cancel).await;
                    Worked::Tested(id, host, program, result)
                }));
            }
            Work::Address { control, far, port, shared } => {
                let address = data_address(control, &far, port, shared);
                return Some(address.map_or_else(|error| Answer::Failed(self.fault(error)), Answer::Address));
            }
            Work::SetLinks(settings) => {
                let Some(holder) = lab::Holder::of_this_host() else {
                    let error = say!("this host is not in a lab: run the plan with `--lab`");
                    return Some(Answer::Failed(self.fault(DialogueError::Links(error).into())));
                };
                working.push(Box::pin(async move {
                    // The holder waits until what is in flight has arrived.
                    let set = tokio::task::spawn_blocking(move || holder.set_links(&settings)).await;
                    let set = set.unwrap_or_else(|error| Err(std::io::Error::other(error)));
                    Worked::Done(id, set.map_err(|error| DialogueError::Links(error.say()).into()))
                }));
            }
            Work::BeginLinks => {
                // A holder that does not answer now has no report later, which is detected then.
                let _ = self.lab.as_mut().map(lab::Holder::begin);
                return Some(Answer::Done);
            }
            Work::ReadLinks => {
                let report = self.lab.as_mut().map(|lab| lab.report().ok().map(Box::new));
                return Some(report.map_or(Answer::NoLab, Answer::Links));
            }
            Work::ForgetPath(address) => {
                working.push(Box::pin(async move { Worked::Done(id, forget_path(address).await) }));
            }
            Work::Disk(what) => {
                let done = disk::work(&what).map_err(|error| ControlError::io("write a capture", error));
                return Some(done.map_or_else(|error| Answer::Failed(self.fault(error)), Answer::Bytes));
            }
        }
        None
    }

    fn show(&mut self, event: &RunEvent, sink: &mut dyn EventSink) -> Option<Event> {
        sink.event(event).err().map(|error| Event::Broken(self.fault(error.into())))
    }

    /// Notes what is seen of a connection.
    fn see(&self, line: LineId) {
        let Some(wire) = self.wires.get(&line) else { return };
        let path = PathTimes {
            round_trip_ns: wire.path().round_trip().as_nanos() as u64,
            patience_ns: wire.path().patience().as_nanos() as u64,
        };
        self.outside.see(line, Seen { path, arriving: wire.is_receiving(), received_bytes: wire.received_bytes() });
    }

    /// The next message, of any connection whose last message was read. Pings are left out.
    async fn arrival(&mut self) -> (LineId, Result<FromAgent, ConnectionEnd>) {
        poll_fn(|context| {
            for turn in [(Bound::Excluded(self.last), Bound::Unbounded), (Bound::Unbounded, Bound::Included(self.last))]
            {
                for (line, wire) in self.wires.range_mut(turn).filter(|(line, _)| self.outside.takes_of(**line)) {
                    let mut arrived = wire.poll_recv(context);
                    while let Poll::Ready(Ok(FromAgent::Ping)) = arrived {
                        arrived = wire.poll_recv(context);
                    }
                    if let Poll::Ready(arrived) = arrived {
                        self.last = *line;
                        return Poll::Ready((*line, arrived));
                    }
                }
            }
            Poll::Pending
        })
        .await
    }

    /// An error as a dialogue takes it.
    fn fault(&mut self, error: ControlError) -> Fault {
        let number = self.faults.last_key_value().map_or(0, |(last, _)| last + 1);
        let fault = Fault { number, kind: kind(&error), said: error.say() };
        self.faults.insert(number, error);
        if self.faults.len() > FAULTS {
            self.faults.pop_first();
        }
        fault
    }

    /// The error of a dialogue; one that came from here is as it was.
    pub(super) fn error(&mut self, error: DialogueError) -> ControlError {
        match error {
            DialogueError::Outside(fault) => match self.faults.remove(&fault.number) {
                Some(error) => error,
                None => DialogueError::Outside(fault).into(),
            },
            error => error.into(),
        }
    }
}

/// The address for data connections, for a rendezvous that has only a port. The agent's shared port is reached as the control connection
/// reached it: the agent does not know under which number it is forwarded.
fn data_address(
    control: Option<SocketAddr>,
    far: &EndOptions,
    port: u16,
    shared: bool,
) -> Result<SocketAddr, ControlError> {
    let control = control.unwrap_or_else(|| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    let address = match (far.data_at, far.data_addr) {
        (Some(at), _) => at_port(at, if at.port() > 0 { at.port() } else { port }),
        (None, Some(address)) => scoped(address, port, scope_of(&control)),
        (None, None) if shared => control,
        // Keeps a link-local address's scope.
        (None, None) => at_port(control, port),
    };
    if lacks_scope(&address) {
        let host = address.ip().to_string();
        return Err(ControlError::NoInterface { host, hint: scope_hint(address.ip()) });
    }
    Ok(address)
}

/// Removes what this host's kernel knows of earlier connections to an address. This needs root.
async fn forget_path(address: IpAddr) -> Result<(), ControlError> {
    let mut command = Command::new("ip");
    command.args(["tcp_metrics", "flush", &address.to_string()]);
    command.env("LC_ALL", "C").stdin(Stdio::null()).kill_on_drop(true);
    let failed = |source| ControlError::io("run ip", source);
    let output = command.output().await.map_err(failed)?;
    // Without an entry it fails with ESRCH.
    let no_entry = String::from_utf8_lossy(&output.stderr).contains("No such process");
    if output.status.success() || no_entry { Ok(()) } else { Err(failed(std::io::ErrorKind::PermissionDenied.into())) }
}

/// What an error is a failure of.
fn kind(error: &ControlError) -> FailureKind {
    match error {
        ControlError::Dialogue(error) => error.kind(),
        ControlError::Engine(_) => FailureKind::Setup,
        ControlError::Unreachable { .. } | ControlError::NoAgent { .. } | ControlError::NoGreeting { .. } => {
            FailureKind::Host
        }
        _ => FailureKind::Run,
    }
}

/// Passes live readings of a test with another program to the sink.
struct Relay(Option<mpsc::Sender<RunEvent>>);

impl EventSink for Relay {
    fn event(&mut self, event: &RunEvent) -> Result<(), SinkError> {
        if let Some(sink) = &self.0 {
            // A sink that is this far behind shows fewer readings.
            let _ = sink.try_send(event.clone());
        }
        Ok(())
    }
}

/// The monotonic clock of this host.
fn now() -> Duration {
    Duration::from_nanos(RealSys.now_ns())
}

/// Completes when the user wants to stop; never if the sender is gone.
async fn cancelled(cancel: &mut Cancel) {
    if cancel.wait_for(|wanted| *wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}
