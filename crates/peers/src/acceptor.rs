//! The acceptor of servers whose clients have a control connection: limits who may connect and how many at a
//! time.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::transport::{at_port, programs};
use model::EndOptions;
use peer_wire::WireError;
use text::{Text, say};

use crate::line::{Input, Line, Wait};
use crate::session_deadline::{SessionDeadline, SessionDeadlines};
use crate::{MachineUse, ProgramError, Service, plain};

/// A connected client.
pub(crate) struct ClientSession<'a> {
    pub(crate) service: &'a Service,
    /// Its control connection.
    pub(crate) line: Line,
    /// The local address that it connected to.
    pub(crate) here: SocketAddr,
    pub(crate) session_deadline: SessionDeadline,
    unauthenticated: Option<&'a AtomicUsize>,
}

impl ClientSession<'_> {
    /// The machine for a measurement; `None` while others have it.
    pub(crate) fn admit(&mut self) -> Option<MachineUse> {
        // Those that wait are among the connections whose number is limited.
        let admission = self.service.admit_soon();
        self.mark_authenticated();
        self.session_deadline.extend(self.service.hold());
        admission
    }

    /// Whether to go on: the client is connected and its deadline has not passed. Anything that it sends is
    /// discarded.
    pub(crate) fn may_continue(&mut self) -> impl FnMut() -> bool + '_ {
        let Self { service, line, session_deadline, .. } = self;
        move || {
            let left = matches!(line.try_receive(&mut [0; 64]), Ok(Input::Ended) | Err(_));
            !left && !session_deadline.is_over() && !service.stopping()
        }
    }

    /// Waits for the client's next bytes on its control connection. `ended` says what is wrong with its end there.
    pub(crate) fn receive(
        &mut self,
        program: &'static str,
        limit: Duration,
        buffer: &mut [u8],
        ended: impl FnOnce() -> Result<(), WireError>,
    ) -> Result<usize, ProgramError> {
        let service = self.service;
        let cancelled = || service.stopping();
        let wait = Wait { program, limit, during: "on its control connection", cancelled: &cancelled };
        match self.line.wait(buffer, &wait)? {
            Some(count) => Ok(count),
            None => Err(ended().err().map_or(ProgramError::Interrupted, |error| self.line.peer_error(error))),
        }
    }

    /// The error for data that did not arrive within `limit`.
    pub(crate) fn without_data(&mut self, program: &'static str, limit: Duration) -> ProgramError {
        let peer = self.line.peer();
        match self.may_continue()() {
            true => ProgramError::Silent {
                address: peer.to_string(),
                peer: program,
                seconds: limit.as_secs(),
                during: "while its data was expected".into(),
            },
            false => ProgramError::socket("wait for the data of", peer, ErrorKind::ConnectionAborted),
        }
    }

    /// No longer counts it among the unauthenticated connections.
    pub(crate) fn mark_authenticated(&mut self) {
        if let Some(unauthenticated) = self.unauthenticated.take() {
            unauthenticated.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for ClientSession<'_> {
    fn drop(&mut self) {
        self.mark_authenticated();
    }
}

/// Listens on the service's addresses until the service stops and runs `conduct` for each client in its own
/// thread.
pub(crate) fn serve(service: &Service, program: &'static str, conduct: &Conduct<'_>) -> Result<(), ProgramError> {
    accept_clients(service, program, &open(service)?, conduct);
    Ok(())
}

/// Serves one client over a connection that was accepted elsewhere.
pub(crate) fn serve_one(
    service: &Service,
    program: &'static str,
    socket: TcpStream,
    conduct: &Conduct<'_>,
) -> Result<(), ProgramError> {
    let failed = |source| ProgramError::socket("serve the client of", program, source);
    let (peer, here) = (socket.peer_addr().map_err(failed)?, socket.local_addr().map_err(failed)?);
    let session_deadline = SessionDeadline::unlimited(&socket);
    let line = Line::over(socket, peer)?;
    let said = conduct(&mut ClientSession { service, line, here, session_deadline, unauthenticated: None })?;
    (service.log)(peer, &say!("{peer}: {program} {said}"));
    Ok(())
}

/// Serves a client until it ends; returns the line for the log.
pub(crate) type Conduct<'a> = dyn Fn(&mut ClientSession<'_>) -> Result<Text, ProgramError> + Sync + 'a;

/// A listener for each of the service's addresses.
pub(crate) fn open(service: &Service) -> Result<Vec<(TcpListener, SocketAddr)>, ProgramError> {
    let mut listeners: Vec<(TcpListener, SocketAddr)> = Vec::new();
    for wanted in &service.addresses {
        // Port 0 means any free port; all addresses share the one that the first got.
        let port = listeners.first().map_or(0, |(_, address)| address.port());
        let wanted = if wanted.port() == 0 { at_port(*wanted, port) } else { *wanted };
        let listener = TcpListener::from(programs::listen(wanted, &EndOptions::default())?);
        let address =
            listener.local_addr().map_err(|source| ProgramError::socket("listen for clients on", wanted, source))?;
        listeners.push((listener, address));
    }
    Ok(listeners)
}

/// Accepts clients on these listeners until the service stops.
pub(crate) fn accept_clients(
    service: &Service,
    program: &'static str,
    listeners: &[(TcpListener, SocketAddr)],
    conduct: &Conduct<'_>,
) {
    let (unauthenticated, session_deadlines) = (AtomicUsize::new(0), SessionDeadlines::default());
    std::thread::scope(|scope| {
        scope.spawn(|| session_deadlines.watch(service));
        for (listener, address) in listeners {
            (service.listening)(*address);
            let (unauthenticated, session_deadlines) = (&unauthenticated, &session_deadlines);
            scope.spawn(move || {
                while !service.stopping() {
                    let Some((socket, peer)) = plain::next(listener) else { continue };
                    if unauthenticated.fetch_add(1, Ordering::SeqCst) >= service.limits.unauthenticated {
                        unauthenticated.fetch_sub(1, Ordering::SeqCst);
                        continue;
                    }
                    let greeted = std::thread::Builder::new().name(program.into()).spawn_scoped(scope, move || {
                        let here = socket.local_addr().unwrap_or(*address);
                        let session_deadline = session_deadlines.take(&socket);
                        let line = match Line::over(socket, peer) {
                            Ok(line) => line,
                            Err(error) => {
                                unauthenticated.fetch_sub(1, Ordering::SeqCst);
                                return (service.log)(peer, &error.line_of(peer));
                            }
                        };
                        let mut client_session = ClientSession {
                            service,
                            line,
                            here,
                            session_deadline,
                            unauthenticated: Some(unauthenticated),
                        };
                        let said = conduct(&mut client_session);
                        report(
                            service,
                            program,
                            peer,
                            &client_session.session_deadline,
                            said.map(|said| say!("{program} {said}")),
                        );
                    });
                    if greeted.is_err() {
                        unauthenticated.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

/// Logs how a client's session ended.
pub(crate) fn report(
    service: &Service,
    program: &str,
    peer: SocketAddr,
    session_deadline: &SessionDeadline,
    said: Result<Text, ProgramError>,
) {
    let said = match said {
        Ok(said) => said,
        Err(_) if session_deadline.was_cut() && service.stopping() => {
            say!("{program} was disconnected because the server stops")
        }
        Err(_) if session_deadline.was_cut() => {
            say!("{program} was disconnected at its time limit (`--max-time`; 30 s before a test)")
        }
        Err(error) => return (service.log)(peer, &error.line_of(peer)),
    };
    (service.log)(peer, &say!("{peer}: {said}"));
}
