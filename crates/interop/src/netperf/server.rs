//! Our netserver's door.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Scope;

use engine::transport::foreign;
use model::EndOptions;
use rustix::event::{PollFd, PollFlags, Timespec};
use speak::netperf::PEER;

use super::{STEP, session};
use crate::{InteropError, Service};

/// Serves on all addresses until the service is told to stop.
pub(super) fn serve(service: &Service) -> Result<(), InteropError> {
    if service.limits.rate_bps.is_some() {
        return Err(InteropError::unsupported(
            "--speak netperf with --max-rate",
            "netperf tells its server no rate: leave one out",
        ));
    }
    let mut listeners = Vec::new();
    for wanted in &service.addresses {
        let listener = TcpListener::from(foreign::listen(*wanted, &EndOptions::default())?);
        let failed = |source| InteropError::socket("listen for netperf on", wanted, source);
        let address = listener.local_addr().map_err(failed)?;
        listeners.push((listener, address));
    }
    let clients = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (listener, address) in &listeners {
            (service.listening)(*address);
            let clients = &clients;
            scope.spawn(move || attend(scope, listener, service, clients));
        }
    });
    Ok(())
}

/// Lets clients in: each has a control connection, and many may measure at once, as far as the machine's places go.
fn attend<'s, 'e>(scope: &'s Scope<'s, 'e>, listener: &'e TcpListener, service: &'e Service, clients: &'e AtomicUsize) {
    let most = service.limits.strangers.max(1);
    while !service.stopping() {
        let Some((socket, peer)) = accept(listener) else { continue };
        if clients.fetch_add(1, Ordering::SeqCst) >= most {
            clients.fetch_sub(1, Ordering::SeqCst);
            (service.news)(&format!("{peer}: {} turned away: {most} clients are connected", PEER.name));
            continue;
        }
        let served = std::thread::Builder::new().name(PEER.name.into()).spawn_scoped(scope, move || {
            session::serve(service, socket, peer);
            clients.fetch_sub(1, Ordering::SeqCst);
        });
        if served.is_err() {
            clients.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The next connection, if there is one soon.
pub(super) fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    let limit = Timespec { tv_sec: 0, tv_nsec: STEP.as_nanos() as i64 };
    let mut wanted = [PollFd::new(listener, PollFlags::IN)];
    match rustix::event::poll(&mut wanted, Some(&limit)) {
        Ok(1) => listener.accept().ok(),
        _ => None,
    }
}
