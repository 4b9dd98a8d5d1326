//! The process in which a measurement runs alone. It takes orders from its agent and does nothing else.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use engine::transport::{
    Cookie, FlowHello, HELLO_BYTES, Link, ListenOptions, Rendezvous, Transport, local, transport, udp,
};
use engine::{EngineError, Leg, Signals, TrialPlan, now_ns};
use model::Role;

use crate::proto::auth;
use crate::proto::frame::{Decoder, MAX_FRAME, encode};
use crate::proto::message::{Assignment, FromWorker, Meeting, ToWorker, WorkerDone};

/// How long the flows of a trial may take to come up.
const SETUP_LIMIT_NS: u64 = 15_000_000_000;

/// Serves the agent on standard input and output until it closes them, which is also how it says that nobody wants the result
/// any more.
pub fn serve_stdio() -> std::io::Result<()> {
    let orders = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let sockets = UnixDatagram::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    serve(orders, sockets)
}

/// The same in a process that is there already, for an agent at the other end of `orders`. Only for transports that no agent
/// can take connections for.
pub fn serve_one(orders: UnixStream) -> std::io::Result<()> {
    let (sockets, _) = UnixDatagram::pair()?;
    serve(orders, sockets)
}

fn serve(mut orders: UnixStream, sockets: UnixDatagram) -> std::io::Result<()> {
    let words = Words(Arc::new(Mutex::new(orders.try_clone()?)));
    let sockets = Arc::new(sockets);
    let mut decoder = Decoder::new(MAX_FRAME);
    let mut buffer = vec![0; 64 << 10];
    let mut current: Option<(Arc<Signals>, mpsc::Sender<()>)> = None;
    loop {
        while let Some(order) = decoder.take::<ToWorker>().map_err(std::io::Error::other)? {
            match order {
                ToWorker::Prepare(assignment) => {
                    let (signals, (start, started)) = (Signals::new(), mpsc::channel());
                    current = Some((signals.clone(), start));
                    let (words, sockets) = (words.clone(), sockets.clone());
                    std::thread::spawn(move || trial(&assignment, &sockets, &signals, &started, &words));
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
        match orders.read(&mut buffer) {
            // Closed, or reset with words of ours unread: the agent is gone either way.
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

/// Where a worker says what it has to say.
#[derive(Clone)]
struct Words(Arc<Mutex<UnixStream>>);

impl Words {
    /// An agent that cannot be told is gone, and the process ends with its orders.
    fn say(&self, word: &FromWorker) {
        if let Ok(frame) = encode(word) {
            let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame);
        }
    }
}

fn trial(
    assignment: &Assignment,
    sockets: &UnixDatagram,
    signals: &Arc<Signals>,
    started: &mpsc::Receiver<()>,
    words: &Words,
) {
    let word = match run(assignment, sockets, signals, started, words) {
        Ok(Some(done)) => FromWorker::Done(Box::new(done)),
        Ok(None) => return,
        Err(error) => FromWorker::Failed { reason: error.to_string() },
    };
    words.say(&word);
}

/// One trial from set-up to result; `None` when it was dropped before it started.
fn run(
    assignment: &Assignment,
    sockets: &UnixDatagram,
    signals: &Arc<Signals>,
    started: &mpsc::Receiver<()>,
    words: &Words,
) -> Result<Option<WorkerDone>, EngineError> {
    let plan = plan(assignment);
    let transport = transport(plan.spec.transport.as_str())?;
    let mut links = match plan.role {
        Role::Active => connect(assignment, &plan, transport)?,
        Role::Passive => accept(assignment, &plan, transport, sockets, words)?,
    };
    let captured = plan.spec.capture.is_some();
    let sockets = links.iter().filter(|_| captured).filter_map(Link::ends).collect();
    words.say(&FromWorker::Armed { sockets });
    if links.is_empty() || !wait_for_start(started, &mut links) {
        return Ok(None);
    }
    let live = words.clone();
    let tally = engine::run(&plan, transport, links, signals, &mut |interval| live.say(&FromWorker::Live(interval)))?;
    Ok(Some(WorkerDone {
        tallies: tally.legs,
        spans: tally.spans,
        failure: tally.failure.map(|error| error.to_string()),
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
    let legs = prepare.legs.iter();
    TrialPlan {
        spec: prepare.spec.clone(),
        role: prepare.role,
        trial: prepare.trial,
        flows: assignment.first_flow..assignment.end_flow,
        legs: legs
            .map(|leg| Leg { block: leg.block, reply: leg.reply, stop: leg.stop, expected_ns: leg.expected_ns })
            .collect(),
    }
}

fn connect(assignment: &Assignment, plan: &TrialPlan, transport: &dyn Transport) -> Result<Vec<Link>, EngineError> {
    let rendezvous = match assignment.prepare.meet.first() {
        Some(meeting) => {
            check_machine(transport, meeting)?;
            Rendezvous {
                address: meeting.address,
                path: meeting.path.clone(),
                cookie: cookie(&meeting.cookie),
                blob: auth::unhex(&meeting.blob).unwrap_or_default(),
            }
        }
        None => Rendezvous::default(),
    };
    let links = plan.links();
    let hellos = links.iter().map(|link| FlowHello::new(rendezvous.cookie, plan.trial, link.index));
    let hellos = hellos.collect::<Result<Vec<_>, _>>()?;
    transport.connect_all(&plan.spec, &rendezvous, &hellos)
}

/// A path means nothing on another machine.
fn check_machine(transport: &dyn Transport, meeting: &Meeting) -> Result<(), EngineError> {
    let here = boot_id();
    if transport.capabilities().one_machine && meeting.boot_id.is_some() && meeting.boot_id != here {
        return Err(EngineError::Unsupported {
            what: format!("{} between two machines", transport.name()),
            remedy: "it works within one; use tcp or udp".into(),
        });
    }
    Ok(())
}

fn boot_id() -> Option<String> {
    use host::Sys;
    host::RealSys.read("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
}

fn cookie(text: &str) -> Cookie {
    auth::unhex(text).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
}

/// Waits for all connections of this worker, from the agent's port or from a listener of its own, and puts them in order.
fn accept(
    assignment: &Assignment,
    plan: &TrialPlan,
    transport: &dyn Transport,
    sockets: &UnixDatagram,
    words: &Words,
) -> Result<Vec<Link>, EngineError> {
    let deadline = now_ns() + SETUP_LIMIT_NS;
    let cookie = cookie(&assignment.cookie);
    let wanted = plan.links();
    let mut arrived: Vec<Option<Link>> = wanted.iter().map(|_| None).collect();
    let places: HashMap<u32, usize> = wanted.iter().enumerate().map(|(place, link)| (link.index, place)).collect();
    let mut missing = wanted.len();
    let mut listener = None;
    if !assignment.through_shared_port {
        let place = ListenOptions {
            address: assignment.listen_on.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into()),
            directory: assignment.directory.clone(),
            cookie,
        };
        let opened = transport.listen(&plan.spec, &place)?;
        words.say(&FromWorker::Listening(meeting(&opened.rendezvous(), assignment)));
        listener = Some(opened);
    }
    while missing > 0 {
        let (hello, link) = match &mut listener {
            Some(listener) => listener.accept(deadline)?,
            None => take(transport, plan, sockets, cookie, deadline, &mut arrived)?,
        };
        // A second connection for a link is closed by being dropped.
        if let Some(place) = places.get(&hello.link).filter(|_| hello.trial == plan.trial)
            && arrived[*place].is_none()
        {
            arrived[*place] = Some(link);
            missing -= 1;
        }
    }
    Ok(arrived.into_iter().flatten().collect())
}

fn meeting(rendezvous: &Rendezvous, assignment: &Assignment) -> Meeting {
    // Bound to the address that the control connection came to, or to the data address that the spec names: the coordinator
    // knows either, so that the port is enough, also behind address translation.
    let port = rendezvous.address.map(|address| address.port());
    Meeting {
        address: None,
        port,
        path: rendezvous.path.clone(),
        cookie: assignment.cookie.clone(),
        boot_id: boot_id(),
        blob: auth::hex(&rendezvous.blob),
    }
}

/// The next connection that the agent's port hands in.
fn take(
    transport: &dyn Transport,
    plan: &TrialPlan,
    sockets: &UnixDatagram,
    cookie: Cookie,
    deadline_ns: u64,
    arrived: &mut [Option<Link>],
) -> Result<(FlowHello, Link), EngineError> {
    let failed = |source: std::io::Error| EngineError::Socket {
        operation: "take a data connection from",
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
        // One that came late for an earlier trial is closed by being dropped.
        if let (Some(hello), Some(socket)) = (FlowHello::decode(&bytes[..count], [&cookie]), socket) {
            return Ok((hello, transport.adopt(&plan.spec, socket, &hello)?));
        }
    }
}
