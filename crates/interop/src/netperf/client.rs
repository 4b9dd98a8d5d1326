//! Our client at a netserver.

use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::{Link, foreign};
use model::{Direction, Role, Spec, Stop};
use speak::Turn;
use speak::netperf::{Client, ClientAction, Counted, PEER, Ready};

use super::bare::{Bare, farewell};
use super::{ask, flow, told};
use crate::line::{Heard, Line, later};
use crate::{Hears, InteropError, Sides};

/// How long a server may take to answer, as netperf has it.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// How long a server that ends by itself may take beyond its time, ns.
const LATE_NS: u64 = 2_000_000_000;
/// How long it may take to close at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The data connection: what the engine gets, and what this end keeps of it.
enum Data {
    Tcp(TcpStream),
    Udp(UdpSocket),
    /// One for each transaction.
    Calls,
}

/// Measures once.
pub(super) fn measure(
    spec: &Spec,
    host: &str,
    hears: &mut dyn Hears,
    cancel: &AtomicBool,
) -> Result<Sides, InteropError> {
    ask::request(spec, 0)?;
    let begun = Instant::now();
    let mut line = Line::connect(PEER.name, host, PEER.port, spec.family)?;
    let request = ask::request(spec, if line.peer().is_ipv4() { 4 } else { 6 })?;
    let mut turn = Turn::default();
    let mut machine = Client::open(&request, &mut turn);
    line.say(&turn.send)?;
    let ready: Ready = loop {
        match next(&mut line, &mut machine, cancel)? {
            ClientAction::Run(ready) => break ready,
            ClientAction::Counted(_) => {}
        }
    };
    let mut target = line.peer();
    target.set_port(ready.data_port);
    let (data, link) = open(spec, target)?;
    hears.starting(begun.elapsed().as_nanos() as u64);
    let mut cancelled = false;
    let mut wrong: Option<InteropError> = None;
    let mut early: Option<Counted> = None;
    let mut buffer = [0; 1024];
    let mut turn = Turn::default();
    let ran = flow::run(&until(spec), Role::Active, link, &mut |interval| hears.interval(interval), &mut |signals| {
        if cancel.load(Ordering::SeqCst) {
            cancelled = true;
            signals.stop();
        }
        if wrong.is_some() || early.is_some() {
            return;
        }
        // A server that has counted already has closed its end of the data.
        wrong = match line.glance(&mut buffer) {
            Ok(Heard::Nothing) => None,
            Ok(Heard::Bytes(count)) => {
                machine.receive(&buffer[..count], &mut turn).err().map(|error| line.wrong(error))
            }
            Ok(Heard::Ended) => machine.ended().err().map(|error| line.wrong(error)),
            Err(error) => Some(error),
        };
        early = turn.actions.drain(..).find_map(counts);
        if wrong.is_some() {
            signals.abort();
        }
    });
    hears.stopped();
    if let Some(error) = wrong {
        return Err(error);
    }
    let mut ran = ran?;
    close(&data, cancel);
    drop(data);
    let counted = match early {
        Some(counted) => counted,
        None => loop {
            if let Some(counted) = counts(next(&mut line, &mut machine, cancel)?) {
                break counted;
            }
        },
    };
    line.close(CLOSE_LIMIT);
    let mut near = ran.legs.pop().unwrap_or_default();
    near.cut_short |= cancelled;
    Ok(Sides {
        near,
        far: told::far(spec, &counted),
        failure: ran.failure.map(|error| error.to_string()),
        elapsed_ns: ran.elapsed_ns,
        version: crate::Speaks::version(&super::Netperf).unwrap_or_default().into(),
    })
}

fn counts(action: ClientAction) -> Option<Counted> {
    match action {
        ClientAction::Counted(counted) => Some(counted),
        ClientAction::Run(_) => None,
    }
}

/// The measurement as this end has it: a server that sends ends it, shortly after the time it was told.
fn until(spec: &Spec) -> Spec {
    let stop = match spec.stop {
        Stop::TimeNs(ns) if spec.direction == Direction::Reverse => Stop::TimeNs(ns + LATE_NS),
        stop => stop,
    };
    Spec { stop, ..spec.clone() }
}

fn open(spec: &Spec, target: SocketAddr) -> Result<(Data, Link), InteropError> {
    let failed = |source| InteropError::socket("keep the connection to", target, source);
    if spec.pattern == "crr" {
        return Ok((Data::Calls, foreign::callers(spec, target)?));
    }
    let socket: OwnedFd = foreign::dial(spec, target, 0)?;
    let kept = socket.try_clone().map_err(failed)?;
    if spec.transport == "udp" {
        return Ok((Data::Udp(kept.into()), foreign::datagrams(socket, Bare::default())?));
    }
    Ok((Data::Tcp(kept.into()), foreign::stream(socket, spec)))
}

/// Says that no more comes, and waits until the server has taken all and closed as well.
fn close(data: &Data, cancel: &AtomicBool) {
    match data {
        Data::Calls => {}
        Data::Udp(socket) => farewell(socket),
        Data::Tcp(socket) => {
            let deadline = Instant::now() + ANSWER_LIMIT;
            let (mut socket, mut rest) = (socket, vec![0; 64 << 10]);
            // A server that has gone is met again on the control connection.
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.set_nonblocking(false);
            let _ = socket.set_read_timeout(Some(flow::STEP));
            while Instant::now() < deadline && !cancel.load(Ordering::SeqCst) {
                match socket.read(&mut rest) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if later(&error) => {}
                    Err(_) => return,
                }
            }
        }
    }
}

/// What the server says next.
fn next(line: &mut Line, machine: &mut Client, cancel: &AtomicBool) -> Result<ClientAction, InteropError> {
    let deadline = Instant::now() + ANSWER_LIMIT;
    let mut buffer = [0; 1024];
    let mut turn = Turn::default();
    loop {
        if let Some(action) = turn.actions.pop() {
            return Ok(action);
        }
        match line.hear(&mut buffer, flow::STEP)? {
            Heard::Bytes(count) => {
                machine.receive(&buffer[..count], &mut turn).map_err(|error| line.wrong(error))?;
            }
            Heard::Ended => {
                machine.ended().map_err(|error| line.wrong(error))?;
                return Err(InteropError::Interrupted);
            }
            Heard::Nothing if cancel.load(Ordering::SeqCst) => return Err(InteropError::Interrupted),
            Heard::Nothing if Instant::now() > deadline => {
                return Err(InteropError::Silent {
                    address: line.peer().to_string(),
                    peer: PEER.name,
                    seconds: ANSWER_LIMIT.as_secs(),
                    during: "on its control connection",
                });
            }
            Heard::Nothing => {}
        }
    }
}
