//! A lab in the process that holds it, with its agents and a socket for `thru lab` commands. It lives for the time of a
//! command, or until it is removed.

pub mod demo;
mod job;
pub mod own;
mod persistent;
pub mod topology;

use std::cell::RefCell;
use std::ffi::OsString;
use std::process::Command;
use std::rc::Rc;

use command::Failure;
use command::setup::{own_program, write_token};
use lab::{Holder, LabError, Network, NetworkCounts, NetworkHost, Topology};
use model::{LabReport, Setting};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

pub use self::job::{LabEvent, LabJob, again_within, within};
pub use self::persistent::{Raised, hold, raise, removable, replace};
use crate::labs::own::OwnAgent;

/// The variable with the lab's name in the environment of programs on its hosts.
pub const LAB_VARIABLE: &str = "THRU_LAB";

/// The environment of programs on a host, beside [`Holder::VARIABLE`]: the lab, the host, and the token of the agents, which `thru`
/// uses as its `--token-file`. The keys of its agents stay with the lab: elsewhere their names may stand for other hosts.
const VARIABLES: [&str; 4] = [LAB_VARIABLE, "THRU_LAB_HOST", "THRU_TOKEN_FILE", "THRU_KNOWN_AGENTS"];

/// Interval of the checks whether changed links have their new properties.
const ALTERS_STEP: std::time::Duration = std::time::Duration::from_millis(1);

/// A lab that this process holds.
struct RunningLab {
    network: Rc<Network>,
    /// They end before their hosts are removed.
    agents: Vec<OwnAgent>,
    /// Connections that requested the removal and wait for it.
    waiting: Rc<RefCell<Vec<UnixStream>>>,
    down: Rc<Notify>,
}

impl RunningLab {
    /// Builds the lab, and starts an agent on each host if `with_agents`.
    fn build(topology: &Topology, name: Option<&str>, with_agents: bool, stays: bool) -> Result<Self, Failure> {
        let network = Network::make(topology, name, stays)?;
        let secret = network.file("token");
        write_token(&secret).map_err(|error| {
            Failure::host(format!("cannot write the token of the lab's agents to {}: {error}", secret.display()))
        })?;
        let agents = if with_agents { agents(&network)? } else { Vec::new() };
        Ok(Self { network: Rc::new(network), agents, waiting: Rc::default(), down: Rc::default() })
    }

    /// The lab.
    fn network(&self) -> &Network {
        &self.network
    }

    /// Serves clients on the lab's socket until `work` is done. [`Self::removal_requested`] ends when a client requests the removal.
    async fn serve_while<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let path = self.network.file("sock");
        let listener = UnixListener::bind(&path)
            .map_err(|error| Failure::host(format!("cannot make the lab's socket {}: {error}", path.display())))?;
        let tasks = tokio::task::LocalSet::new();
        let answer = async {
            // An error of the listener cannot be reported to anyone.
            while let Ok((stream, _)) = listener.accept().await {
                let (network, waiting, down) = (self.network.clone(), self.waiting.clone(), self.down.clone());
                tokio::task::spawn_local(async move {
                    if let Ok(Some(stream)) = serve_client(&network, stream).await {
                        waiting.borrow_mut().push(stream);
                        down.notify_one();
                    }
                });
            }
            std::future::pending().await
        };
        Ok(tasks
            .run_until(async {
                tokio::select! {
                    done = work => done,
                    never = answer => never,
                }
            })
            .await)
    }

    /// Ends when a client requests the removal of the lab.
    async fn removal_requested(&self) {
        self.down.notified().await;
    }

    /// Removes the lab and returns the counters of its emulated links. `note` gets a line about a link that stopped forwarding.
    ///
    /// # Errors
    /// Something of it is left behind.
    fn close(self, note: impl Fn(&str)) -> Result<LabReport, Failure> {
        if let Some(stopped) = stopped(&self.network) {
            note(&stopped.to_string());
        }
        let report = self.network.report(&self.network.counts(), &NetworkCounts::default());
        drop(self.agents);
        if let Some(network) = Rc::into_inner(self.network) {
            network.close()?;
        }
        // Clients that wait see the end of the connection now.
        drop(self.waiting);
        Ok(report)
    }
}

/// Answers one client; returns the connection when the client requests the removal of the lab.
async fn serve_client(network: &Network, stream: UnixStream) -> std::io::Result<Option<UnixStream>> {
    let mut stream = BufReader::new(stream);
    let mut earlier = NetworkCounts::default();
    let mut request = String::new();
    while stream.read_line(&mut request).await? > 0 {
        if let Some(settings) = request.strip_prefix(Holder::LINKS) {
            let refused = set_links(network, settings).await.err().map(|error| error.to_string());
            stream.write_all((serde_json::to_string(&refused)? + "\n").as_bytes()).await?;
            request.clear();
            continue;
        }
        let down = request.trim() == Holder::DOWN;
        let counts = network.counts();
        if down {
            earlier = NetworkCounts::default();
        }
        let line = serde_json::to_string(&network.report(&counts, &earlier))? + "\n";
        earlier = counts;
        stream.write_all(line.as_bytes()).await?;
        if down {
            return Ok(Some(stream.into_inner()));
        }
        request.clear();
    }
    Ok(None)
}

/// Why links do not have their new properties.
#[derive(Debug, Error)]
enum LinksError {
    #[error(transparent)]
    Settings(#[from] serde_json::Error),
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Stopped(#[from] LinkStopped),
}

/// An emulated link that forwards nothing any more.
#[derive(Debug, Error)]
#[error("the emulated link {link} stopped forwarding: {why}")]
struct LinkStopped {
    link: String,
    why: String,
}

/// The first link of a lab that stopped.
fn stopped(network: &Network) -> Option<LinkStopped> {
    network.failure().map(|(link, why)| LinkStopped { link, why })
}

/// Changes the links, and waits until that is done.
async fn set_links(network: &Network, settings: &str) -> Result<(), LinksError> {
    let settings: Vec<Setting> = serde_json::from_str(settings)?;
    network.set_links(&settings)?;
    while network.alters() {
        tokio::time::sleep(ALTERS_STEP).await;
    }
    stopped(network).map_or(Ok(()), |stopped| Err(stopped.into()))
}

/// Whether this process runs on a host of a lab.
#[must_use]
pub fn is_inside() -> bool {
    std::env::var_os(Holder::VARIABLE).is_some()
}

/// A command that runs on a host, in the environment of a lab.
fn on_host(host: &NetworkHost, network: &Network, words: &[String]) -> Result<Command, Failure> {
    let (program, args) = program(words)?;
    let mut command = host.command(program);
    command.args(args);
    set_lab_environment(&mut command, network.name(), &host.name, |end| network.file(end).into());
    Ok(command)
}

/// Sets the environment of a lab on a command.
fn set_lab_environment(command: &mut Command, lab: &str, host: &str, file: impl Fn(&str) -> OsString) {
    let [name, own, secret, known] = VARIABLES;
    command.env(name, lab).env(own, host).env(Holder::VARIABLE, file("sock"));
    command.env(secret, file("token")).env(known, file("agents"));
}

/// An agent on each host, on all its addresses and the default port. They start in parallel to save time.
fn agents(network: &Network) -> Result<Vec<OwnAgent>, Failure> {
    let own = own_program()?;
    let start = |host: &NetworkHost| {
        let mut flags: Vec<OsString> =
            vec!["--allow-tuning".into(), "--allow-stacks".into(), "--token-file".into(), network.file("token").into()];
        // Only processes of the lab reach it, and who makes a lab is root.
        flags.extend(["--user".into(), "root".into()]);
        flags.extend(["--listen".into(), "0.0.0.0".into()]);
        let mut command = host.command(&own);
        set_lab_environment(&mut command, network.name(), &host.name, |end| network.file(end).into());
        OwnAgent::serving(command, &flags, &format!("host {} of the lab", host.name))
    };
    let started: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = network.hosts().iter().map(|host| scope.spawn(|| start(host))).collect();
        starting.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    started.into_iter().collect()
}

/// A command and its arguments; `thru` stands for this program.
fn program(words: &[String]) -> Result<(String, &[String]), Failure> {
    match words {
        [first, rest @ ..] if first == "thru" => Ok((own_program()?.display().to_string(), rest)),
        [first, rest @ ..] => Ok((first.clone(), rest)),
        [] => Err(Failure::usage("write a command after --")),
    }
}
