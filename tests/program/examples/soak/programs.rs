//! Real commands on other hosts: they measure, watch and tune, one after the other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::SplitMix64;

use crate::counts::Counts;
use crate::harm;
use crate::world::World;

/// Threads that run one command after the other.
const HANDS: u64 = 4;
/// A command that takes longer has lost its agent, and would be a fault.
const LIMIT: Duration = Duration::from_secs(120);
pub(crate) const SACK: &str = "far:sysctl.net.ipv4.tcp_sack=0";
pub(crate) const RMEM: &str = "sysctl.net.ipv4.tcp_rmem=4096 200000 8000000";

/// What a command line is made of, so that threads need no world.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) root: String,
    pub(crate) open: String,
    pub(crate) agents: [u32; 2],
    pub(crate) programs: lab::NetworkHost,
    pub(crate) lost: lab::NetworkHost,
    folder: PathBuf,
    pub(crate) counts: Counts,
    running: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

pub(crate) struct Programs {
    desk: Desk,
    threads: Vec<JoinHandle<()>>,
}

impl Programs {
    pub(crate) fn start(world: &World, seed: u64) -> Self {
        let desk = Desk {
            root: world.root.host().to_owned(),
            open: world.open.host().to_owned(),
            agents: [world.root.pid(), world.open.pid()],
            programs: world.host("programs").clone(),
            lost: world.host("lost").clone(),
            folder: world.sandbox.path(""),
            counts: Counts::default(),
            running: Arc::default(),
            stop: Arc::default(),
        };
        let random = |thread: u64| SplitMix64::new(seed.wrapping_mul(2_000).wrapping_add(thread));
        let mut threads = Vec::new();
        let mut thread = |number: u64, work: fn(&Desk, SplitMix64)| {
            let (desk, random) = (desk.clone(), random(number));
            threads.push(std::thread::spawn(move || work(&desk, random)));
        };
        (0..HANDS).for_each(|hand| thread(hand, work));
        thread(10, harm::kill_commands);
        thread(11, harm::kill_workers);
        thread(12, harm::lose_the_network);
        Self { desk, threads }
    }

    /// Commands that run at the moment.
    pub(crate) fn running(&self) -> usize {
        self.desk.running.load(Ordering::SeqCst)
    }

    pub(crate) fn stop(self) -> BTreeMap<String, u64> {
        self.desk.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        self.desk.counts.all()
    }
}

impl Desk {
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while self.goes_on() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn spawn(&self, host: &lab::NetworkHost, open: bool, args: &[&str]) -> Child {
        use std::os::unix::process::CommandExt;
        let mut command: Command = host.command(program::binary::thru());
        command.args(args).process_group(0).current_dir(&self.folder).env("TMPDIR", &self.folder);
        command.env("THRU_KNOWN_AGENTS", self.folder.join("known_agents"));
        command.env("THRU_STORE", self.folder.join("runs.sqlite")).env("THRU_JOURNAL", self.folder.join("journal"));
        if !open {
            command.env("THRU_TOKEN_FILE", self.folder.join("token"));
        }
        self.running.fetch_add(1, Ordering::SeqCst);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("thru starts")
    }

    /// Waits for its end; a soak that ends kills it. Its exit code.
    fn wait(&self, mut child: Child) -> Option<i32> {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > LIMIT || !self.goes_on() {
                let _ = child.kill();
            }
            if begun.elapsed() > LIMIT {
                self.counts.add("commands that did not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        status.code()
    }

    pub(crate) fn kill(&self, mut child: Child) {
        let _ = child.kill();
        let _ = child.wait();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One command after the other.
fn work(desk: &Desk, mut random: SplitMix64) {
    let others: Vec<String> = {
        let host = desk.open.rsplit_once(':').expect("a port").0;
        ["5201", "5002", "5000"].map(|port| format!("{host}:{port}")).into()
    };
    let (root, open) = (desk.root.as_str(), desk.open.as_str());
    let brief = ["--trials", "2", "--no-store"];
    let kinds: [(&str, bool, Vec<&str>); 13] = [
        ("streams", false, vec!["stream", root, "--time", "100ms"]),
        ("streams in both directions", false, vec!["stream", root, "--both", "--flows", "4", "--time", "100ms"]),
        ("streams over quic", false, vec!["stream", root, "--transport", "quic", "--time", "100ms"]),
        ("streams over tls", false, vec!["stream", root, "--transport", "tls", "--time", "100ms"]),
        ("streams over udp", true, vec!["stream", open, "--udp", "--rate", "10Mbit", "--time", "100ms"]),
        ("round trips", false, vec!["rr", root, "--time", "100ms"]),
        ("round trips of the open agent", true, vec!["rr", open, "--flows", "8", "--time", "100ms"]),
        ("transfers", true, vec!["transfer", open, "--count", "3"]),
        ("streams with settings of the far end", false, vec!["stream", root, "--set", SACK, "--time", "100ms"]),
        ("changed settings", false, vec!["tune", "set", RMEM, root, "--for", "200ms"]),
        ("watches", false, vec!["watch", root, "--count", "2", "--interval", "100ms"]),
        ("iperf3 tests", true, vec!["stream", &others[0], "--speak", "iperf3", "--time", "100ms"]),
        ("nuttcp tests", true, vec!["stream", &others[2], "--speak", "nuttcp", "--time", "1s"]),
    ];
    while desk.goes_on() {
        let (what, open, args) = &kinds[random.below(kinds.len())];
        let measures = !matches!(args[0], "tune" | "watch");
        let args = [&args[..], if measures { &brief[..] } else { &[] }].concat();
        let code = desk.wait(desk.spawn(&desk.programs, *open, &args));
        match code {
            // Two trials seldom reach the wanted precision, which is 3 or 8.
            Some(0 | 3 | 8) => desk.counts.add(&format!("{what} that ended well")),
            Some(code) => desk.counts.add(&format!("{what} that ended with code {code}")),
            None => {}
        }
        desk.pause(Duration::from_millis(random.below(300) as u64));
    }
}
