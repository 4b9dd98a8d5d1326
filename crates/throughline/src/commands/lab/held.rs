//! A lab as the process has it that holds it: with its agents, and a socket for those who ask.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use control::experiment::OwnAgent;
use lab::{Holder, Network, NetworkCounts, NetworkHost, Topology};
use model::LabReport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

use super::program;
use crate::failure::Failure;

/// What programs on a host find in their environment, beside [`Holder::VARIABLE`]: the lab, their host, and the secret of its
/// agents, which `thru` takes for its `--token-file`.
const VARIABLES: [&str; 3] = ["THRU_LAB", "THRU_LAB_HOST", "THRU_TOKEN_FILE"];

/// A lab that this process holds.
pub struct Held {
    network: Rc<Network>,
    /// They end before their hosts go.
    agents: Vec<OwnAgent>,
    /// Who asked for its end, and waits for it.
    waiting: Rc<RefCell<Vec<UnixStream>>>,
    down: Rc<Notify>,
}

impl Held {
    /// Builds the lab, and starts an agent on each host unless none are wanted.
    pub fn build(topology: &Topology, name: Option<&str>, with_agents: bool, stays: bool) -> Result<Self, Failure> {
        let network = Network::make(topology, name, stays)?;
        write_secret(&network.file("token"))?;
        let agents = if with_agents { agents(&network)? } else { Vec::new() };
        Ok(Self { network: Rc::new(network), agents, waiting: Rc::default(), down: Rc::default() })
    }

    /// The lab.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Answers who asks over the lab's socket, as long as `work` takes. [`Self::asked_down`] ends when somebody wants the lab gone.
    pub async fn answer_while<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let path = self.network.file("sock");
        let listener = UnixListener::bind(&path)
            .map_err(|error| Failure::host(format!("cannot make the lab's socket, {}: {error}", path.display())))?;
        let tasks = tokio::task::LocalSet::new();
        let answer = async {
            // A listener that fails has nobody to tell it to.
            while let Ok((stream, _)) = listener.accept().await {
                let (network, waiting, down) = (self.network.clone(), self.waiting.clone(), self.down.clone());
                tokio::task::spawn_local(async move {
                    if let Ok(Some(stream)) = talk(&network, stream).await {
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

    /// Ends when somebody wants the lab gone.
    pub async fn asked_down(&self) {
        self.down.notified().await;
    }

    /// Removes the lab and says what its emulated links did.
    pub fn close(self) -> Result<LabReport, Failure> {
        let report = self.network.report(&self.network.counts(), &NetworkCounts::default());
        if let Some((link, why)) = self.network.failure() {
            errln!("thru: the emulated link {link} had stopped carrying anything: {why}");
        }
        drop(self.agents);
        if let Some(network) = Rc::into_inner(self.network) {
            network.close()?;
        }
        // Who waits sees the end of the connection now.
        drop(self.waiting);
        Ok(report)
    }
}

/// Answers one who asks; returns the connection when its other end wants the lab gone.
async fn talk(network: &Network, stream: UnixStream) -> std::io::Result<Option<UnixStream>> {
    let mut stream = BufReader::new(stream);
    let mut earlier = NetworkCounts::default();
    let mut request = String::new();
    while stream.read_line(&mut request).await? > 0 {
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

/// A command that will run these words on a host, in the environment of a lab.
pub fn on_host(host: &NetworkHost, network: &Network, words: &[String]) -> Result<Command, Failure> {
    let (program, args) = program(words)?;
    let mut command = host.command(program);
    command.args(args);
    dress(&mut command, network.name(), &host.name, |end| network.file(end).into());
    Ok(command)
}

/// Gives a command the environment of a lab.
pub fn dress(command: &mut Command, lab: &str, host: &str, file: impl Fn(&str) -> OsString) {
    let [name, own, token] = VARIABLES;
    command.env(name, lab).env(own, host).env(token, file("token")).env(Holder::VARIABLE, file("sock"));
}

/// A secret that only root can read, 32 hexadecimal digits.
fn write_secret(path: &Path) -> Result<(), Failure> {
    let failed =
        |error| Failure::host(format!("cannot write the secret of the lab's agents, {}: {error}", path.display()));
    let mut secret = [0; 16];
    std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut secret)).map_err(failed)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(file, "{digits}").map_err(failed)
}

/// An agent on each host, on all its addresses and the usual port. All start at once: each takes its time.
fn agents(network: &Network) -> Result<Vec<OwnAgent>, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))?;
    let start = |host: &NetworkHost| {
        let mut flags: Vec<OsString> =
            vec!["--allow-tuning".into(), "--allow-stacks".into(), "--token-file".into(), network.file("token").into()];
        let listen = host.addresses.iter().map(|address| match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        });
        for address in listen.chain(["127.0.0.1".to_owned()]) {
            flags.extend(["--listen".into(), address.into()]);
        }
        let mut command = host.command(&own);
        dress(&mut command, network.name(), &host.name, |end| network.file(end).into());
        OwnAgent::serving(command, &flags, &format!("host {} of the lab", host.name))
    };
    let started: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = network.hosts().iter().map(|host| scope.spawn(|| start(host))).collect();
        starting.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    Ok(started.into_iter().collect::<Result<_, _>>()?)
}
