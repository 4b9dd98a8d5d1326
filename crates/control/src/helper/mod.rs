//! The helper: the part of an agent that needs privileges, behind a typed interface.
//!
//! It changes settings and restores them, loads TCP stacks, and captures packets. An agent without privileges asks a
//! helper process for these over a Unix socket ([`serve`]); an agent that keeps those of its user has one within itself. The
//! messages are the same. A helper restores what a session changed when its connection ends, so also after the agent was
//! killed or hangs.

mod client;
mod message;
mod no_packets;
mod restore;
mod session;
mod sockets;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::transport::PrivilegedOption;
use host::capture::{self, HEADERS, Tap};
use host::tune::{Allowance, Journal, TuneError};
use tokio::io::AsyncReadExt;
use tokio::net::unix::UCred;
use tokio::sync::Notify;

pub use client::Lifeline;
pub(crate) use client::{Client, set_option};
pub(crate) use message::{Answer, Request};
pub(crate) use no_packets::NoPackets;
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
    /// The packets that it captures.
    pub packets: PacketRights,
    /// Whether it sets congestion controls that are not open to every user.
    pub congestion: bool,
    /// Whether it sets socket buffers beyond the host's limits.
    pub buffers: bool,
}

/// The packets that a helper captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketRights {
    /// None.
    None,
    /// The headers of packets.
    Headers,
    /// Whole packets.
    Whole,
}

impl PacketRights {
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
            PrivilegedOption::Buffer(..) => Err(io::Error::from(io::ErrorKind::PermissionDenied).into()),
        });
    }

    /// The packets of a capture. Blocks.
    ///
    /// # Errors
    /// There are none.
    pub(crate) fn packets(&self, tap: &Tap) -> Result<capture::Packets, NoPackets> {
        match self {
            Self::Here(powers) => powers.packets(tap.clone()),
            Self::At(path) => client::packets(path, tap),
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
            packets: PacketRights::None,
            congestion: false,
            buffers: false,
        }
    }

    /// Whether they change settings of the host, load TCP stacks or capture packets.
    #[must_use]
    pub fn change_host(&self) -> bool {
        self.tuning || self.stacks || self.packets != PacketRights::None
    }

    fn packets(&self, tap: Tap) -> Result<capture::Packets, NoPackets> {
        let snaplen = match self.packets {
            PacketRights::None => return Err(NoPackets::NotAllowed),
            PacketRights::Headers => tap.snaplen.min(HEADERS),
            PacketRights::Whole => tap.snaplen,
        };
        Ok(Tap { snaplen, ..tap }.open()?)
    }
}

/// A helper process.
pub struct HelperOptions {
    /// What it does.
    pub powers: Powers,
    /// Receives the log, line by line.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// Where a helper's agents connect, and who they are.
pub enum Listening {
    /// Processes of the user with this number, and of root, until the helper is ended.
    For(u32, UnixListener),
    /// The process at the other end of this connection ([`Lifeline`]) and those that it starts, until that end is closed.
    With(UnixStream, UnixListener),
}

/// The processes that a helper serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    OfUser(u32),
    OfAgent(i32),
}

impl Served {
    /// Whether the process that has connected is one of them. Only one that runs can connect, and it is asked at once: a process that
    /// gets its number has no time to come between.
    fn has(self, peer: &UCred) -> bool {
        let parent = |process: i32| parent(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?);
        match (self, peer.pid()) {
            (Self::OfUser(user), _) => [user, 0].contains(&peer.uid()),
            (Self::OfAgent(agent), Some(process)) => process == agent || parent(process) == Some(agent),
            (Self::OfAgent(_), None) => false,
        }
    }
}

/// The number of a process's parent, in the text of its /proc/PID/stat: after its name in parentheses and its state (proc_pid_stat(5)).
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

struct Shared {
    powers: Arc<Powers>,
    served: Served,
    log: Box<dyn Fn(&str) + Send + Sync>,
    connections: AtomicUsize,
    unused: Notify,
}

/// Serves agents until its agent has ended or the caller drops the future, after restoring the settings that a killed owner left.
///
/// # Errors
/// The journal or the socket cannot be used.
pub async fn serve(options: HelperOptions, listening: Listening) -> io::Result<()> {
    let (served, listener, agent) = match listening {
        Listening::For(user, listener) => (Served::OfUser(user), listener, None),
        Listening::With(agent, listener) => {
            // The process that has made the connection.
            let process = rustix::net::sockopt::socket_peercred(&agent)?.pid;
            (Served::OfAgent(process.as_raw_pid()), listener, Some(agent))
        }
    };
    let (powers, connections, unused) = (Arc::new(options.powers), AtomicUsize::new(0), Notify::new());
    let shared = Arc::new(Shared { powers, served, log: options.log, connections, unused });
    shared.recover().map_err(io::Error::other)?;
    let Some(agent) = agent else { return shared.accept(listener).await };
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
                Ok((stream, _)) => match stream.peer_cred() {
                    Ok(peer) if self.served.has(&peer) => self.clone().admit(stream),
                    Ok(peer) => (self.log)(&format!(
                        "refused: process {} of user {} does not belong to this helper's agent",
                        peer.pid().unwrap_or_default(),
                        peer.uid()
                    )),
                    Err(error) => (self.log)(&format!("refused: cannot identify the connecting process: {error}")),
                },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_serves_its_agent_and_its_children_only() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (one, _other) = tokio::net::UnixStream::pair().unwrap();
            let peer = one.peer_cred().unwrap();
            let (own, above) = (std::process::id() as i32, rustix::process::getppid().unwrap().as_raw_pid());
            assert!(Served::OfAgent(own).has(&peer), "the agent itself");
            assert!(Served::OfAgent(above).has(&peer), "a process that it has started");
            let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let refused = !Served::OfAgent(other.id() as i32).has(&peer);
            other.kill().unwrap();
            other.wait().unwrap();
            assert!(refused, "another process of the same user");
            let user = peer.uid();
            assert!(Served::OfUser(user).has(&peer));
            assert!(user == 0 || !Served::OfUser(user + 1).has(&peer));
        });
    }

    #[test]
    fn the_parent_of_a_process_with_any_name_is_read() {
        assert_eq!(parent("7 (thru) S 5 7 7 0"), Some(5));
        assert_eq!(parent("7 (a) R 1 2 (b)) S 5 7 7 0"), Some(5));
        assert_eq!([parent(""), parent("7 (a) S x")], [None, None]);
    }
}
