//! The front of a server whose clients each hold a control connection: who may come in, and how many at a time.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::transport::foreign;
use model::EndOptions;

use crate::line::Line;
use crate::{Admission, InteropError, Service, plain};

/// A client that has come.
pub(crate) struct Guest<'a> {
    pub(crate) service: &'a Service,
    /// Its control connection.
    pub(crate) line: Line,
    /// Where it came to.
    pub(crate) here: SocketAddr,
    strangers: Option<&'a AtomicUsize>,
}

impl Guest<'_> {
    /// The machine for a measurement; `None` while others have it.
    pub(crate) fn admit(&mut self) -> Option<Admission> {
        self.leave();
        (self.service.admit)()
    }

    /// It is no stranger any more.
    pub(crate) fn leave(&mut self) {
        if let Some(strangers) = self.strangers.take() {
            strangers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Listens on the service's addresses until it is told to stop, and gives each client to `conduct`, in a thread of its own.
pub(crate) fn serve(service: &Service, program: &'static str, conduct: &Conduct<'_>) -> Result<(), InteropError> {
    attend(service, program, &open(service)?, conduct);
    Ok(())
}

/// Serves the one client of a connection that somebody else has accepted.
pub(crate) fn serve_one(
    service: &Service,
    program: &'static str,
    socket: TcpStream,
    conduct: &Conduct<'_>,
) -> Result<(), InteropError> {
    let failed = |source| InteropError::socket("serve the client of", program, source);
    let (peer, here) = (socket.peer_addr().map_err(failed)?, socket.local_addr().map_err(failed)?);
    let line = Line::over(socket, peer)?;
    let said = conduct(&mut Guest { service, line, here, strangers: None })?;
    (service.news)(&format!("{peer}: {program} {said}"));
    Ok(())
}

/// Serves a client to its end; what is to be said of it then.
pub(crate) type Conduct<'a> = dyn Fn(&mut Guest<'_>) -> Result<String, InteropError> + Sync + 'a;

/// A listener for each of the service's addresses.
pub(crate) fn open(service: &Service) -> Result<Vec<(TcpListener, SocketAddr)>, InteropError> {
    let mut listeners: Vec<(TcpListener, SocketAddr)> = Vec::new();
    for wanted in &service.addresses {
        // Port 0 asks for any; the second address then takes the one that the first got.
        let port = listeners.first().map_or(0, |(_, address)| address.port());
        let wanted = if wanted.port() == 0 { SocketAddr::new(wanted.ip(), port) } else { *wanted };
        let listener = TcpListener::from(foreign::listen(wanted, &EndOptions::default())?);
        let address =
            listener.local_addr().map_err(|source| InteropError::socket("listen for clients on", wanted, source))?;
        listeners.push((listener, address));
    }
    Ok(listeners)
}

/// Serves who comes to these listeners until the service is told to stop.
pub(crate) fn attend(
    service: &Service,
    program: &'static str,
    listeners: &[(TcpListener, SocketAddr)],
    conduct: &Conduct<'_>,
) {
    let strangers = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (listener, address) in listeners {
            (service.listening)(*address);
            let strangers = &strangers;
            scope.spawn(move || {
                while !service.stopping() {
                    let Some((socket, peer)) = plain::next(listener) else { continue };
                    if strangers.fetch_add(1, Ordering::SeqCst) >= service.limits.strangers {
                        strangers.fetch_sub(1, Ordering::SeqCst);
                        continue;
                    }
                    let greeted = std::thread::Builder::new().name(program.into()).spawn_scoped(scope, move || {
                        let here = socket.local_addr().unwrap_or(*address);
                        let line = Line::over(socket, peer).inspect_err(|_| {
                            strangers.fetch_sub(1, Ordering::SeqCst);
                        });
                        let said = line
                            .and_then(|line| conduct(&mut Guest { service, line, here, strangers: Some(strangers) }));
                        match said {
                            Ok(said) => (service.news)(&format!("{peer}: {program} {said}")),
                            Err(error) => (service.news)(&format!("{peer}: {error}")),
                        }
                    });
                    if greeted.is_err() {
                        strangers.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}
