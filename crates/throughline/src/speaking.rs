//! `thru serve --speak`: other programs' clients beside the agent's coordinators.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use control::agent::Machine;
use interop::{InteropError, PeerProtocol, Service};

use crate::commands::serve::ServeArgs;
use crate::failure::Failure;

/// A program whose clients are served, on which port, and with which options of its own.
#[derive(Clone)]
pub struct Spoken {
    program: &'static dyn PeerProtocol,
    port: u16,
    words: String,
}

impl FromStr for Spoken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, words) = text.split_once(':').unwrap_or((text, ""));
        let (name, port) = place.split_once('=').map_or((place, None), |(name, port)| (name, Some(port)));
        let program = interop::protocol(name).map_err(|error| error.to_string())?;
        let port = match port {
            None => program.port(),
            Some(port) => port.parse().map_err(|_| format!("{text}: write a port after the =, 0 to 65535"))?,
        };
        let words = words.trim().to_owned();
        program.check_options(&words).map_err(|error| error.to_string())?;
        Ok(Self { program, port, words })
    }
}

impl std::fmt::Debug for Spoken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.program.name(), self.port)
    }
}

impl Spoken {
    /// The program's name.
    pub fn name(&self) -> &'static str {
        self.program.name()
    }

    /// Whether its clients can log in.
    fn logs_in(&self) -> bool {
        self.program.check_login().is_ok()
    }
}

/// What a program's server may do and whom it tells; `listening` hears of each address that it listens on.
fn service(
    args: &ServeArgs,
    spoken: &Spoken,
    machine: Machine,
    addresses: Vec<SocketAddr>,
    listening: impl Fn(SocketAddr) + Send + Sync + 'static,
) -> Result<Service, Failure> {
    let (quiet, name) = (args.is_quiet(), spoken.name());
    let say = move |text: &str| {
        if !quiet {
            errln!("thru serve: {text}");
        }
    };
    Ok(Service {
        addresses,
        options: spoken.words.clone(),
        users: if spoken.logs_in() { args.users.read()? } else { None },
        limits: args.spoken_limits(),
        admit: Box::new(move || machine.try_enter()),
        log: Box::new(say),
        listening: Box::new(move |address| {
            say(&format!("speaking {name} on {address}"));
            listening(address);
        }),
        stop: AtomicBool::new(false),
    })
}

/// Serves the client whose connection is standard input.
pub fn serve_input(args: &ServeArgs) -> Result<u8, Failure> {
    let [spoken] = &args.speak[..] else {
        return Err(Failure::usage("--inetd with several programs: a connection is of one of them, name that"));
    };
    let none = |_| {
        Failure::usage(
            "--inetd: standard input is no TCP connection; let inetd (stream tcp nowait) or systemd (Accept=yes) start it",
        )
    };
    let socket = TcpStream::from(std::io::stdin().as_fd().try_clone_to_owned().map_err(none)?);
    let (peer, here) = (socket.peer_addr().map_err(none)?, socket.local_addr().map_err(none)?);
    if !here.ip().to_canonical().is_loopback() && !args.is_open() {
        let name = spoken.name();
        return Err(Failure::usage(format!(
            "--inetd --speak {name} for {peer}: its clients know no token; give --open to let anybody in"
        )));
    }
    let service = service(args, spoken, Machine::new(1), Vec::new(), |_| {})?;
    spoken.program.serve_one(&service, socket)?;
    Ok(0)
}

/// The servers that run.
pub struct Speaking(Vec<(Arc<Service>, JoinHandle<()>)>);

impl Speaking {
    /// Starts a server for each program, and returns when all listen.
    pub fn start(args: &ServeArgs, addresses: &[SocketAddr], machine: &Machine) -> Result<Self, Failure> {
        let mut started = Self(Vec::new());
        if args.users.are_given() && !args.speak.iter().any(Spoken::logs_in) {
            return Err(Failure::usage(
                "--rsa-private-key-path without --speak iperf3: no other program's clients log in",
            ));
        }
        for spoken in &args.speak {
            let places: Vec<SocketAddr> =
                addresses.iter().map(|address| SocketAddr::new(address.ip(), spoken.port)).collect();
            let count = places.len();
            let (tell, reported) = channel::<Result<(), InteropError>>();
            let (name, said) = (spoken.name(), tell.clone());
            let listening = move |_| {
                let _ = said.send(Ok(()));
            };
            let service = Arc::new(service(args, spoken, machine.clone(), places, listening)?);
            let (program, serving) = (spoken.program, service.clone());
            let thread = std::thread::spawn(move || {
                if let Err(error) = program.serve(&serving) {
                    let _ = tell.send(Err(error));
                }
            });
            started.0.push((service, thread));
            for _ in 0..count {
                match reported.recv() {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        started.stop();
                        return Err(Failure::host(format!("{error}; give another port: --speak {name}=PORT")));
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
            // One that panicked has ended as well.
            let _ = thread.join();
        }
    }
}
