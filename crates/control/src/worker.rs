//! The process in which a measurement runs alone. It receives commands from its agent and does nothing else.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use engine::transport::{
    Cookie, FlowHello, HELLO_BYTES, Link, ListenOptions, Rendezvous, Transport, assist_with, local, transport, udp,
};
use engine::{EngineError, Signals, TrialPlan, now_ns};
use model::{Live, Role};
use text::Said;

use crate::helper::set_option;
use protocol::frame::{Decoder, encode};
use protocol::message::{Message, WireRendezvous};
use protocol::worker_message::{Assignment, FromWorker, ToWorker, WorkerDone};

/// Time limit for a trial's flows to connect, on a short path.
const SETUP_LIMIT_NS: u64 = 15_000_000_000;

/// Serves the agent on standard input and output until the agent closes them. That also cancels the running trial.
pub fn serve_stdio() -> std::io::Result<()> {
    let commands = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let sockets = UnixDatagram::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    serve(commands, sockets)
}

/// As [`serve_stdio`], in an existing process whose agent is at the other end of `commands`. Only for transports whose
/// connections an agent cannot accept.
pub fn serve_one(commands: UnixStream) -> std::io::Result<()> {
    let (sockets, _) = UnixDatagram::pair()?;
    serve(commands, sockets)
}

fn serve(mut commands: UnixStream, sockets: UnixDatagram) -> std::io::Result<()> {
    let to_agent = AgentSender(Arc::new(Mutex::new(commands.try_clone()?)));
    let sockets = Arc::new(sockets);
    let mut decoder = Decoder::new(ToWorker::MAX_FRAME);
    let mut buffer = vec![0; 64 << 10];
    let mut current: Option<(Arc<Signals>, mpsc::Sender<()>)> = None;
    loop {
        while let Some(command) = decoder.take::<ToWorker>().map_err(std::io::Error::other)? {
            match command {
                ToWorker::Prepare(assignment) => {
                    let (signals, (start, started)) = (Signals::new(), mpsc::channel());
                    current = Some((signals.clone(), start));
                    let (to_agent, sockets) = (to_agent.clone(), sockets.clone());
                    std::thread::spawn(move || trial(&assignment, &sockets, &signals, &started, &to_agent));
                }
                ToWorker::Start => {
                    if let Some((_, start)) = &current {
                        let _ = start.send(());
                    }
                }
                ToWorker::Abort => {
                    if let Some((signals, _)) = &current {
                        signals.abort();
                    }
                }
            }
        }
        match commands.read(&mut buffer) {
            // Closed, or reset with unread messages of ours: the agent has ended in both cases.
            Ok(0) | Err(_) => {
                // The process may outlive its agent.
                if let Some((signals, _)) = &current {
                    signals.abort();
                }
                return Ok(());
            }
            Ok(count) => decoder.push(&buffer[..count]),
        }
    }
}

/// Sends messages to the agent.
#[derive(Clone)]
struct AgentSender(Arc<Mutex<UnixStream>>);

impl AgentSender {
    /// A failure is ignored: the agent has ended then, and the closed command socket ends this process.
    fn send(&self, message: &FromWorker) {
        if let Ok(frame) = encode(message) {
            let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame);
        }
    }
}

fn trial(
    assignment: &Assignment,
    sockets: &UnixDatagram,
    signals: &Arc<Signals>,
    started: &mpsc::Receiver<()>,
    to_agent: &AgentSender,
) {
    let message = match run(assignment, sockets, signals, started, to_agent) {
        Ok(Some(done)) => FromWorker::Done(Box::new(done)),
        Ok(None) => return,
        Err(error) => FromWorker::Failed { reason: error.say() },
    };
    to_agent.send(&message);
}

/// One trial from set-up to result; `None` if it was cancelled before its start.
fn run(
    assignment: &Assignment,
    sockets: &UnixDatagram,
    signals: &Arc<Signals>,
    started: &mpsc::Receiver<()>,
    to_agent: &AgentSender,
) -> Result<Option<WorkerDone>, EngineError> {
    if let Some(helper) = assignment.helper.clone() {
        assist_with(move |socket, option| set_option(&helper, socket, option));
    }
    let plan = plan(assignment);
    let transport = transport(plan.spec.transport.as_str())?;
    let mut links = match plan.role {
        Role::Active => connect(assignment, &plan, transport)?,
        Role::Passive => accept(assignment, &plan, transport, sockets, to_agent)?,
    };
    let captured = plan.spec.capture.is_some();
    let sockets = links.iter().filter(|_| captured).filter_map(Link::ends).collect();
    to_agent.send(&FromWorker::Armed { sockets });
    if links.is_empty() || !wait_for_start(started, &mut links) {
        return Ok(None);
    }
    let live = to_agent.clone();
    let tally = engine::run(&plan, transport, links, signals, &mut |report| {
        live.send(&match report {
            Live::Interval(interval) => FromWorker::Live(interval),
            Live::Reading(reading) => FromWorker::Reading(reading),
        });
    })?;
    Ok(Some(WorkerDone {
        tallies: tally.legs,
        spans: tally.spans,
        failure: tally.failure.map(|error| error.say()),
        elapsed_ns: tally.elapsed_ns,
    }))
}

/// False where the trial is dropped before it starts.
fn wait_for_start(started: &mpsc::Receiver<()>, links: &mut [Link]) -> bool {
    loop {
        match started.recv_timeout(udp::RETRY) {
            Ok(()) => return true,
            Err(mpsc::RecvTimeoutError::Timeout) => links.iter_mut().for_each(Link::answer_handshake),
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn plan(assignment: &Assignment) -> TrialPlan {
    let prepare = &assignment.prepare;
    TrialPlan {
        spec: prepare.spec.clone(),
        role: prepare.role,
        trial: prepare.trial,
        flows: assignment.first_flow..assignment.end_flow,
        legs: prepare.legs.clone(),
        path: prepare.path,
    }
}

fn connect(assignment: &Assignment, plan: &TrialPlan, transport: &dyn Transport) -> Result<Vec<Link>, EngineError> {
    let rendezvous = match assignment.prepare.rendezvous.first() {
        Some(target) => {
            check_machine(transport, target)?;
            Rendezvous {
                address: target.address,
                path: target.path.clone(),
                cookie: cookie(&target.cookie),
                blob: hex::decode(&target.blob).unwrap_or_default(),
                patience: Duration::from_nanos(plan.path.patience_ns),
            }
        }
        None => Rendezvous::default(),
    };
    let links = plan.links();
    let hellos = links.iter().map(|link| FlowHello::new(rendezvous.cookie, plan.trial, link.index));
    let hellos = hellos.collect::<Result<Vec<_>, _>>()?;
    transport.connect_all(&plan.spec, &rendezvous, &hellos)
}

/// Refuses a rendezvous path of another machine.
fn check_machine(transport: &dyn Transport, target: &WireRendezvous) -> Result<(), EngineError> {
    let here = boot_id();
    if transport.facts().one_host && target.boot_id.is_some() && target.boot_id != here {
        return Err(EngineError::unsupported(
            format!("{} between two machines", transport.name()),
            format!(
                "it works within one machine only; use {}",
                engine::transport::names(|other| other.facts().ip.is_some())
            ),
        ));
    }
    Ok(())
}

fn boot_id() -> Option<String> {
    use host::Sys;
    host::RealSys.read("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}

fn cookie(text: &str) -> Cookie {
    hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
}

/// Waits for all connections of this worker, from the agent's port or from its own listener, and sorts them by link.
fn accept(
    assignment: &Assignment,
    plan: &TrialPlan,
    transport: &dyn Transport,
    sockets: &UnixDatagram,
    to_agent: &AgentSender,
) -> Result<Vec<Link>, EngineError> {
    let deadline = now_ns() + SETUP_LIMIT_NS + plan.path.patience_ns;
    let cookie = cookie(&assignment.cookie);
    let wanted = plan.links();
    let mut arrived: Vec<Option<Link>> = wanted.iter().map(|_| None).collect();
    let positions: HashMap<u32, usize> = wanted.iter().enumerate().map(|(at, link)| (link.index, at)).collect();
    let mut missing = wanted.len();
    let mut listener = None;
    if !assignment.through_shared_port {
        let options = ListenOptions {
            address: assignment.listen_on.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into()),
            scope: assignment.scope,
            directory: assignment.directory.clone(),
            cookie,
            patience: Duration::from_nanos(plan.path.patience_ns),
        };
        let opened = transport.listen(&plan.spec, &options)?;
        to_agent.send(&FromWorker::Listening(rendezvous_message(&opened.rendezvous(), assignment)));
        listener = Some(opened);
    }
    while missing > 0 {
        let (hello, link) = match &mut listener {
            Some(listener) => listener.accept(deadline)?,
            None => take(transport, plan, sockets, cookie, deadline, &mut arrived)?,
        };
        // A second connection for a link is dropped, which closes it.
        if let Some(position) = positions.get(&hello.link).filter(|_| hello.trial == plan.trial)
            && arrived[*position].is_none()
        {
            arrived[*position] = Some(link);
            missing -= 1;
        }
    }
    Ok(arrived.into_iter().flatten().collect())
}

fn rendezvous_message(rendezvous: &Rendezvous, assignment: &Assignment) -> WireRendezvous {
    // The listener is bound to the address that the control connection came to, to all addresses, or to the spec's data address. The
    // coordinator knows one of them, so the port is enough, also behind address translation.
    let port = rendezvous.address.map(|address| address.port());
    WireRendezvous {
        address: None,
        name: None,
        port,
        shared: false,
        path: rendezvous.path.clone(),
        cookie: assignment.cookie.clone(),
        boot_id: boot_id(),
        blob: hex::encode(&rendezvous.blob),
    }
}

/// The next connection from the agent's port.
fn take(
    transport: &dyn Transport,
    plan: &TrialPlan,
    sockets: &UnixDatagram,
    cookie: Cookie,
    deadline_ns: u64,
    arrived: &mut [Option<Link>],
) -> Result<(FlowHello, Link), EngineError> {
    let failed = |source: std::io::Error| EngineError::Socket {
        operation: "receive a data connection from",
        address: "the agent".into(),
        source,
    };
    loop {
        let left = deadline_ns.saturating_sub(now_ns());
        if left == 0 {
            return Err(failed(std::io::ErrorKind::TimedOut.into()));
        }
        let pause = std::time::Duration::from_nanos(left).min(udp::RETRY);
        sockets.set_read_timeout(Some(pause)).map_err(failed)?;
        let mut bytes = [0; HELLO_BYTES];
        let (count, socket): (usize, Option<OwnedFd>) = match local::recv_fd(sockets, &mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                arrived.iter_mut().flatten().for_each(Link::answer_handshake);
                continue;
            }
            other => other.map_err(failed)?,
        };
        // A late connection of an earlier trial is dropped, which closes it.
        if let (Some(hello), Some(socket)) = (FlowHello::decode(&bytes[..count], [&cookie]), socket) {
            return Ok((hello, transport.adopt(&plan.spec, socket, &hello)?));
        }
    }
}
