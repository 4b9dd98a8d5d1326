//! `thru serve --speak`: other programs' clients beside the agent's coordinators.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use control::agent::Machine;
use interop::{InteropError, Service, Speaks};

use crate::commands::serve::ServeArgs;
use crate::failure::Failure;

/// A program whose clients are served, on which port, and with which options of its own.
#[derive(Clone)]
pub struct Spoken {
    program: &'static dyn Speaks,
    port: u16,
    words: String,
}

impl FromStr for Spoken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, words) = text.split_once(':').unwrap_or((text, ""));
        let (name, port) = place.split_once('=').map_or((place, None), |(name, port)| (name, Some(port)));
        let program = interop::spoken(name).map_err(|error| error.to_string())?;
        let port = match port {
            None => program.port(),
            Some(port) => port.parse().map_err(|_| format!("{text}: write a port after the =, 0 to 65535"))?,
        };
        let words = words.trim().to_owned();
        program.check_words(&words).map_err(|error| error.to_string())?;
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
}

/// The servers that run.
pub struct Speaking(Vec<(Arc<Service>, JoinHandle<()>)>);

impl Speaking {
    /// Starts a server for each program, and returns when all listen.
    pub fn start(args: &ServeArgs, addresses: &[SocketAddr], machine: &Machine) -> Result<Self, Failure> {
        let mut started = Self(Vec::new());
        let logs_in = |spoken: &Spoken| spoken.program.check_login().is_ok();
        if args.users.are_given() && !args.speak.iter().any(logs_in) {
            return Err(Failure::usage(
                "--rsa-private-key-path without --speak iperf3: no other program's clients log in",
            ));
        }
        for spoken in &args.speak {
            let places: Vec<SocketAddr> =
                addresses.iter().map(|address| SocketAddr::new(address.ip(), spoken.port)).collect();
            let count = places.len();
            let (tell, told) = channel::<Result<(), InteropError>>();
            let (machine, quiet, name) = (machine.clone(), args.is_quiet(), spoken.name());
            let said = tell.clone();
            let say = move |text: &str| {
                if !quiet {
                    eprintln!("thru serve: {text}");
                }
            };
            let service = Arc::new(Service {
                addresses: places,
                words: spoken.words.clone(),
                users: if logs_in(spoken) { args.users.read()? } else { None },
                limits: args.spoken_limits(),
                admit: Box::new(move || machine.try_enter()),
                news: Box::new(say),
                listening: Box::new(move |address| {
                    say(&format!("speaking {name} on {address}"));
                    let _ = said.send(Ok(()));
                }),
                stop: AtomicBool::new(false),
            });
            let (program, serving) = (spoken.program, service.clone());
            let thread = std::thread::spawn(move || {
                if let Err(error) = program.serve(&serving) {
                    let _ = tell.send(Err(error));
                }
            });
            started.0.push((service, thread));
            for _ in 0..count {
                match told.recv() {
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
