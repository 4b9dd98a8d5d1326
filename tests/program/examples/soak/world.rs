//! The lab, the two agents, and what the host was like before.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::topology::{LabLink, Node, NodeKind, Topology};
use lab::{Network, NetworkHost};
use program::agent::children_called;
use program::{Agent, Running, Sandbox, binary};

/// A user without rights.
const NOBODY: u32 = 65_534;
/// Hosts: the crowd's, that of the measuring programs, the one whose link fails, the agents'.
const HOSTS: [&str; 4] = ["crowd", "programs", "lost", "agents"];
/// The setting files of the agents' host that clients change.
const FILES: [&str; 3] = ["/proc/sys/net/ipv4/tcp_sack", "/proc/sys/net/ipv4/tcp_rmem", "/sys/class/net/eth0/mtu"];
/// Clients that the agent of root admits at once.
const CLIENTS: &str = "1100";

pub(crate) struct World {
    // First, so that the agents end before their host.
    pub(crate) root: Agent,
    pub(crate) open: Agent,
    pub(crate) network: Network,
    pub(crate) sandbox: Sandbox,
    before: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let network = Network::make(&star(), None, false).expect("a lab");
        let sandbox = Sandbox::with_token();
        let host = network.host("agents").expect("it is there").clone();
        let before = settings(&host);
        let listen = format!("{}:0", host.addresses[0]);
        let flags = ["--listen", &listen, "--allow-tuning", "--grace", "500ms", "--max-clients", CLIENTS];
        let command = apart(host.command(binary::thru()), &sandbox, "root");
        let root = Agent::spawn(command, &[&sandbox.token_flags()[..], &flags].concat());
        let open = Self::open_agent(&host, &sandbox, &listen);
        Self { root, open, network, sandbox, before }
    }

    /// An agent of an ordinary user, for everyone and for other programs.
    fn open_agent(host: &NetworkHost, sandbox: &Sandbox, listen: &str) -> Agent {
        let mut command = host.command("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        // Its user may not reach the folder of the build.
        let program = sandbox.path("thru");
        fs::copy(binary::thru(), &program).expect("a copy");
        let mut command = apart(command, sandbox, "open");
        command.arg(program);
        Agent::spawn(command, &["--listen", listen, "--open", "--speak", "iperf3,netpipe,nuttcp"])
    }

    pub(crate) fn host(&self, name: &str) -> &NetworkHost {
        self.network.host(name).expect("it is there")
    }

    /// `thru` on a host of the lab, out of reach of Ctrl-C.
    pub(crate) fn command(&self, host: &str, args: &[&str]) -> Command {
        let mut command = self.sandbox.prepare(self.host(host).command(binary::thru()), args);
        command.process_group(0);
        command
    }

    /// Both agents have served somebody: what they open once is open.
    pub(crate) fn measure_once(&self) {
        for agent in [&self.root, &self.open] {
            assert!(self.measures(agent), "an agent that nobody has disturbed measures");
        }
    }

    pub(crate) fn measures(&self, agent: &Agent) -> bool {
        let args = ["stream", agent.host(), "--time", "100ms", "--trials", "2", "--no-store"];
        let mut command = self.command("programs", &args);
        if agent.pid() == self.open.pid() {
            command.env_remove("THRU_TOKEN_FILE");
        }
        let finished = Running::of(command).wait();
        // Too few trials for the precision that is wanted.
        let measured = matches!(finished.code, Some(0 | 3 | 8));
        if !measured {
            println!("{:?}: {}", finished.code, finished.stderr);
        }
        measured && !finished.stderr.contains("ahead in the queue")
    }

    pub(crate) fn helper(&self) -> Option<u32> {
        children_called(self.root.pid(), "helper").first().copied()
    }

    pub(crate) fn runs(&self) -> bool {
        [self.root.pid(), self.open.pid()].into_iter().all(program::process::runs) && self.helper().is_some()
    }

    pub(crate) fn settings_are_back(&self) -> bool {
        settings(self.host("agents")) == self.before
    }

    /// Files of the journal, one for each owner of changed settings.
    pub(crate) fn journal(&self) -> usize {
        let files = fs::read_dir(self.sandbox.path("root").join("journal")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "jsonl")).count()
    }

    /// The agents' temporary folders and what is in them.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let of = |folder: &str| walk(&self.sandbox.path(folder).join("tmp"));
        ["root", "open"].into_iter().flat_map(of).collect()
    }
}

/// The same command with a folder of its own for temporary files, the key and the journal.
fn apart(mut command: Command, sandbox: &Sandbox, name: &str) -> Command {
    let folder = sandbox.path(name);
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    [&folder, &temporary].into_iter().for_each(|folder| chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may"));
    command.env("TMPDIR", temporary).env("THRU_AGENT_KEY", folder.join("agent.key"));
    // The helper makes it, for root alone.
    command.env("THRU_JOURNAL", folder.join("journal")).env("THRU_STORE", folder.join("runs.sqlite"));
    command.process_group(0);
    command
}

fn star() -> Topology {
    let host = |name: &&str| Node { name: (*name).to_owned(), kind: NodeKind::Host };
    let switch = Node { name: "switch".into(), kind: NodeKind::Switch };
    let nodes: Vec<Node> = HOSTS.iter().map(host).chain([switch]).collect();
    let links = (0..HOSTS.len()).map(|host| LabLink::new([host, HOSTS.len()])).collect();
    Topology { name: "soak".into(), about: None, seed: 1, nodes, links, sysctls: Vec::new() }
}

fn settings(host: &NetworkHost) -> String {
    let output = host.command("cat").args(FILES).output().expect("cat");
    String::from_utf8(output.stdout).expect("text")
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.flat_map(|entry| [vec![entry.path()], walk(&entry.path())].concat()).collect()
}
