//! Servers for the clients of other programs, beside the agent.

use command::Failure;
use options::ValueError;
use std::any::Any;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Instant;
use thiserror::Error;

use control::agent::{LogLines, Machine};
use engine::transport::at_port;
use model::Program;
use peers::{Padding, ProgramError, ProgramProtocol, Service, Users};
use text::{Said, Text, say};
use tokio::sync::mpsc::Sender;

use crate::rights;

/// A program whose clients are served, with its port and options.
#[derive(Clone)]
pub struct ServedProgram {
    program: &'static dyn ProgramProtocol,
    pub(crate) port: u16,
    options: String,
}

/// Why a program cannot be served.
#[derive(Debug, Error, Said)]
pub enum ServedError {
    /// There is no such program.
    #[error(transparent)]
    Program(#[from] ValueError),
    /// No port after the equals sign.
    #[error("{text}: write a port from 0 to 65535 after `=`")]
    Port {
        /// What the user wrote.
        text: String,
    },
    /// Options that the program does not have.
    #[error(transparent)]
    Options(#[from] ProgramError),
}

impl FromStr for ServedProgram {
    type Err = ServedError;

    fn from_str(text: &str) -> Result<Self, ServedError> {
        let (program, options) = text.split_once(':').unwrap_or((text, ""));
        let (name, port) = program.split_once('=').map_or((program, None), |(name, port)| (name, Some(port)));
        let program = peers::protocol(Program::read(name)?);
        let port = match port {
            None => program.port(),
            Some(port) => port.parse().map_err(|_| ServedError::Port { text: text.to_owned() })?,
        };
        let options = options.trim().to_owned();
        program.check_options(&options)?;
        Ok(Self { program, port, options })
    }
}

impl std::fmt::Debug for ServedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.program.name(), self.port)
    }
}

impl ServedProgram {
    /// The program's name.
    pub fn name(&self) -> &'static str {
        self.program.name()
    }

    /// Whether its clients can log in.
    fn logs_in(&self) -> bool {
        self.program.check_login().is_ok()
    }
}

/// Where the users of a server are who log in.
#[derive(Debug, Clone)]
pub struct UserFiles {
    /// The RSA private key that decrypts logins: a PEM file without passphrase.
    pub key: PathBuf,
    /// The users, one per line.
    pub users: PathBuf,
    /// Largest difference between a client's clock and this host's, s.
    pub skew_s: u64,
    /// How logins are padded.
    pub padding: Padding,
}

impl UserFiles {
    fn read(&self) -> Result<Users, Failure> {
        Ok(Users::read(&self.key, &self.users, self.skew_s, self.padding)?)
    }
}

/// What other programs' clients are served, and how.
pub struct ServedOptions<'a> {
    /// The programs.
    pub programs: &'a [ServedProgram],
    /// The users who may log in; `None` admits everyone.
    pub users: Option<UserFiles>,
    /// The limits of the programs' clients.
    pub limits: peers::ServiceLimits,
    /// Addresses of their servers; none for those of the agent.
    pub listen: &'a [SocketAddr],
    /// Whether any client is accepted.
    pub open: bool,
    /// Gets each line of the log.
    pub log: fn(&Text),
}

impl ServedOptions<'_> {
    /// The users who may log in.
    pub(crate) fn read_users(&self) -> Result<Option<Arc<Users>>, Failure> {
        if self.users.is_some() && !self.programs.iter().any(ServedProgram::logs_in) {
            return Err(Failure::usage(say!(
                "`--rsa-private-key-path` needs `--speak iperf3`: only clients of iperf3 log in"
            )));
        }
        Ok(self.users.as_ref().map(UserFiles::read).transpose()?.map(Arc::new))
    }
}

/// A place on the machine, and who is told when it is free again.
struct Told {
    _place: Box<dyn Any + Send>,
    measured: Sender<()>,
}

impl Drop for Told {
    fn drop(&mut self) {
        // Nobody listens if the agent ends; if the end of one waits to be seen, that of another adds nothing.
        let _ = self.measured.try_send(());
    }
}

/// The limits and the log of a program's server. `measured` is told of each measurement that has ended, `listening` is called with each
/// address that it listens on.
fn service(
    options: &ServedOptions<'_>,
    peer: &ServedProgram,
    users: Option<Arc<Users>>,
    machine: Machine,
    measured: Option<Sender<()>>,
    addresses: Vec<SocketAddr>,
    listening: impl Fn(SocketAddr) + Send + Sync + 'static,
) -> Service {
    let (log, name) = (options.log, peer.name());
    Service {
        addresses,
        options: peer.options.clone(),
        users: users.filter(|_| peer.logs_in()),
        limits: options.limits.clone(),
        admit: Box::new(move || {
            let place = machine.try_enter()?;
            Some(match measured.clone() {
                Some(measured) => Box::new(Told { _place: place, measured }),
                None => place,
            })
        }),
        log: bounded(log),
        listening: Box::new(move |address| {
            log(&say!("speaking {name} on {address}"));
            listening(address);
        }),
        stop: AtomicBool::new(false),
    }
}

/// A log in which other programs' clients, who have no token, cause few lines.
fn bounded(log: fn(&Text)) -> peers::Log {
    let lines = LogLines::default();
    Box::new(move |peer, text| {
        let line = lines.line(peer.ip(), text.clone(), Instant::now());
        line.iter().for_each(&log);
    })
}

/// Serves the client whose connection is standard input.
pub fn serve_input(options: &ServedOptions<'_>) -> Result<u8, Failure> {
    let [peer] = options.programs else {
        return Err(Failure::usage(say!("`--inetd` serves one program: give `--speak` once")));
    };
    let not_a_connection = |_| {
        Failure::usage(say!(
            "`--inetd`: standard input is not a TCP connection; start it from inetd (stream tcp nowait) or systemd (Accept=yes)"
        ))
    };
    let input = std::io::stdin().as_fd().try_clone_to_owned().map_err(not_a_connection)?;
    let socket = TcpStream::from(input);
    let client = socket.peer_addr().map_err(not_a_connection)?;
    let local = socket.local_addr().map_err(not_a_connection)?;
    if !local.ip().to_canonical().is_loopback() && !options.open {
        let name = peer.name();
        return Err(Failure::usage(say!(
            "`--inetd` with `--speak {name}` for {client}: clients of other programs have no token; add `--speak-open` to accept any client"
        )));
    }
    let users = options.read_users()?;
    rights::lower_for_client(options.log)?;
    let service = service(options, peer, users, Machine::new(1), None, Vec::new(), |_| {});
    peers::serve_one(peer.program, &service, socket)?;
    Ok(0)
}

/// The running servers.
pub struct ProgramServers(Vec<(Arc<Service>, JoinHandle<()>)>);

impl ProgramServers {
    /// Starts a server for each program and returns when all listen. `measured` is told of each measurement that has ended.
    pub(crate) fn start(
        options: &ServedOptions<'_>,
        users: Option<&Arc<Users>>,
        addresses: &[SocketAddr],
        machine: &Machine,
        measured: Option<&Sender<()>>,
    ) -> Result<Self, Failure> {
        let mut started = Self(Vec::new());
        for peer in options.programs {
            let own: Vec<SocketAddr> = addresses.iter().map(|address| at_port(*address, peer.port)).collect();
            let count = own.len();
            let (failed, results) = channel::<Result<(), ProgramError>>();
            let (name, started_listening) = (peer.name(), failed.clone());
            let listening = move |_| {
                let _ = started_listening.send(Ok(()));
            };
            let service =
                Arc::new(service(options, peer, users.cloned(), machine.clone(), measured.cloned(), own, listening));
            let (program, serving) = (peer.program, service.clone());
            let thread = std::thread::spawn(move || {
                if let Err(error) = program.serve(&serving) {
                    let _ = failed.send(Err(error));
                }
            });
            started.0.push((service, thread));
            for _ in 0..count {
                match results.recv() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        started.stop();
                        return Err(Failure::host(say!("{error}; use another port: `--speak {name}=PORT`")));
                    }
                    Err(_) => return Err(Failure::other(format!("the server for {name} ended"))),
                }
            }
        }
        Ok(started)
    }

    /// Ends them all.
    pub fn stop(self) {
        for (service, _) in &self.0 {
            service.stop.store(true, Ordering::SeqCst);
        }
        for (_, thread) in self.0 {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}
