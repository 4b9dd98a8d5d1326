//! The helper: the part of an agent that needs privileges, behind a typed interface.
//!
//! It changes settings and restores them, loads TCP stacks, and opens packet sockets. An agent without privileges asks a
//! helper process for these over a Unix socket ([`serve`]); an agent that keeps those of its user has one within itself. The
//! messages are the same. A helper restores what a session changed when its connection ends, so also after the agent was
//! killed or hangs.

mod client;
mod message;
mod restore;
mod session;
mod sockets;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::transport::PrivilegedOption;
use host::capture::{HEADERS, Wanted, packet_socket};
use host::tune::{Allowance, Journal, TuneError};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

pub use client::Lifeline;
pub(crate) use client::{Client, set_option};
pub(crate) use message::{Answer, Request};
pub use restore::{changes_line, recover};

/// Time between two attempts to accept a connection, after one failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a helper does for agents.
#[derive(Debug, Clone)]
pub struct Powers {
    /// Whether it changes settings.
    pub tuning: bool,
    /// The settings that it shows and, if it changes any, changes.
    pub allowance: Allowance,
    /// The journal's directory, if it is not the default one.
    pub journal: Option<PathBuf>,
    /// Whether it loads TCP stacks.
    pub stacks: bool,
    /// Whether users without CAP_NET_ADMIN may choose a stack that it loaded: the agent's workers have none.
    pub stacks_for_any_user: bool,
    /// The packet sockets that it opens.
    pub packets: Packets,
    /// Whether it sets congestion controls that are not open to every user.
    pub congestion: bool,
    /// Whether it sets socket buffers beyond the host's limits.
    pub buffers: bool,
}

/// The packet sockets that a helper opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// None.
    None,
    /// Only for the headers of packets.
    Headers,
    /// For whole packets.
    Whole,
}

impl Packets {
    /// Those of the option `allow-capture`, which may say `payload`; `None` if it is not given.
    #[must_use]
    pub fn allowed(option: Option<&str>) -> Self {
        match option {
            None => Self::None,
            Some("payload") => Self::Whole,
            Some(_) => Self::Headers,
        }
    }
}

/// Where an agent's helper is.
#[derive(Debug, Clone)]
pub enum Helper {
    /// In the agent's own process.
    Here(Arc<Powers>),
    /// A process that listens on this Unix socket.
    At(PathBuf),
}

impl Helper {
    /// Its socket, if it is another process.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Here(_) => None,
            Self::At(path) => Some(path),
        }
    }

    /// Sets congestion controls of the servers for other programs' clients in this process, which have no token, so no buffers.
    pub fn assist_here(&self) {
        let Some(path) = self.path().map(Path::to_owned) else { return };
        engine::transport::assist_with(move |socket, option| match option {
            PrivilegedOption::Congestion(_) => set_option(&path, socket, option),
            PrivilegedOption::Buffer(..) => Err(io::ErrorKind::PermissionDenied.into()),
        });
    }

    /// Opens a packet socket. Blocks.
    ///
    /// # Errors
    /// The reason and the remedy.
    pub(crate) fn packet_socket(&self, wanted: &Wanted, snaplen: u32) -> Result<OwnedFd, String> {
        match self {
            Self::Here(powers) => powers.packet_socket(wanted, snaplen),
            Self::At(path) => client::packet_socket(path, wanted, snaplen),
        }
    }
}

impl Powers {
    /// Those of an agent that only measures: it shows settings of the network.
    #[must_use]
    pub fn none() -> Self {
        Self {
            tuning: false,
            allowance: Allowance::Network(Vec::new()),
            journal: None,
            stacks: false,
            stacks_for_any_user: false,
            packets: Packets::None,
            congestion: false,
            buffers: false,
        }
    }

    fn packet_socket(&self, wanted: &Wanted, snaplen: u32) -> Result<OwnedFd, String> {
        let snaplen = match self.packets {
            Packets::None => return Err("this helper opens no packet sockets: start it with `allow-capture`".into()),
            Packets::Headers => snaplen.min(HEADERS),
            Packets::Whole => snaplen,
        };
        packet_socket(wanted, snaplen)
    }
}

/// A helper process.
pub struct HelperOptions {
    /// What it does.
    pub powers: Powers,
    /// Receives the log, line by line.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Where a helper's agents connect.
pub enum Listening {
    /// On this socket, until the helper is ended.
    On(UnixListener),
    /// On the socket that the agent at the other end passes ([`Lifeline`]), until that end is closed.
    With(UnixStream),
}

struct Shared {
    powers: Arc<Powers>,
    log: Box<dyn Fn(&str) + Send + Sync>,
    connections: AtomicUsize,
    unused: Notify,
}

/// Serves agents until its agent has ended or the caller drops the future. A helper that no agent has started first restores the
/// settings that a killed owner left; otherwise its agent has.
///
/// # Errors
/// The journal or the socket cannot be used.
pub async fn serve(options: HelperOptions, listening: Listening) -> io::Result<()> {
    let (powers, connections, unused) = (Arc::new(options.powers), AtomicUsize::new(0), Notify::new());
    let shared = Arc::new(Shared { powers, log: options.log, connections, unused });
    let agent = match listening {
        Listening::On(listener) => {
            shared.recover().map_err(io::Error::other)?;
            return shared.accept(listener).await;
        }
        Listening::With(agent) => agent,
    };
    let receiving = agent.try_clone()?;
    let passed = tokio::task::spawn_blocking(move || client::receive_listener(&receiving));
    let Some(listener) = passed.await.map_err(io::Error::other)?? else { return Ok(()) };
    agent.set_nonblocking(true)?;
    let mut agent = tokio::net::UnixStream::from_std(agent)?;
    tokio::select! {
        accepted = shared.accept(listener) => return accepted,
        _ = agent.read_u8() => {}
    }
    // The agent's sessions have ended with it, and put everything back.
    while shared.connections.load(Ordering::SeqCst) > 0 {
        shared.unused.notified().await;
    }
    Ok(())
}

impl Shared {
    fn recover(&self) -> Result<(), TuneError> {
        if self.powers.tuning {
            recover(&Journal::open(self.powers.journal.as_deref())?)?.iter().for_each(|line| (self.log)(line));
        }
        Ok(())
    }

    async fn accept(self: &Arc<Self>, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.clone().admit(stream),
                // Most likely out of file descriptors: wait until some are closed.
                Err(error) => {
                    (self.log)(&format!("cannot accept: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(self: Arc<Self>, stream: tokio::net::UnixStream) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            session::receive(&self.powers, stream, &self.log).await;
            self.connections.fetch_sub(1, Ordering::SeqCst);
            self.unused.notify_one();
        });
    }
}
