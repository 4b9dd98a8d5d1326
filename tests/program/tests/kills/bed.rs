//! Two hosts of a lab, a plan that changes settings of both, and one journal.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use lab::{CrossoverSpec, Lab};
use program::agent::OTHER_USER;
use program::{Agent, Doc, Running, Sandbox, binary, skip};

use super::events::{Kept, of_outcomes};
use super::tally::Tally;

pub(crate) const SACK: &str = "sysctl.net.ipv4.tcp_sack";
const RMEM: &str = "sysctl.net.ipv4.tcp_rmem";
const FILES: [&str; 3] = ["/proc/sys/net/ipv4/tcp_sack", "/proc/sys/net/ipv4/tcp_rmem", "/sys/class/net/eth0/mtu"];
/// Trials of the plan: four cells, three rounds.
pub(crate) const TRIALS: usize = 12;
/// Longer than anything takes to go back by itself on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// An end of the plan's measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Near,
    Far,
}

impl End {
    pub(crate) const BOTH: [Self; 2] = [Self::Near, Self::Far];

    fn host(self) -> &'static str {
        match self {
            Self::Near => "a",
            Self::Far => "b",
        }
    }
}

/// The MTU changes from cell to cell, the others hold for the whole plan.
pub(crate) fn plan(first: &str) -> String {
    let factor = |end: &str| {
        format!(
            "[[factor]]\nname = \"{end} mtu\"\nsetting = \"dev.eth0.mtu\"\nend = \"{end}\"\nlevels = [1300, 1400]\n"
        )
    };
    format!(
        "{first}[base]\ntime = \"20ms\"\nobserve = \"off\"\n\
         [settings]\nboth = {{ \"{SACK}\" = 0, \"{RMEM}\" = \"4096 200000 8000000\" }}\n{}{}[repeat]\nmin = 3\nmax = 3\n",
        factor("near"),
        factor("far")
    )
}

pub(crate) struct Bed {
    lab: Lab,
    pub(crate) sandbox: Sandbox,
    before: [String; 2],
}

impl Bed {
    pub(crate) fn new(test: &str) -> Option<Self> {
        let lab = skip::lab(test, &CrossoverSpec::default())?;
        let sandbox = Sandbox::with_token();
        std::fs::write(sandbox.path("plan.toml"), plan("to = \"${host}\"\n")).unwrap();
        let mut bed = Self { lab, sandbox, before: Default::default() };
        bed.before = End::BOTH.map(|end| bed.state(end));
        Some(bed)
    }

    /// `thru` on the host of an end. All hosts share the journal, as all namespaces of a machine do.
    pub(crate) fn command(&self, end: End, args: &[&str]) -> Command {
        let mut command = self.lab.host(end.host()).unwrap().command(binary::thru());
        command.env("THRU_JOURNAL", self.sandbox.path("journal"));
        self.sandbox.prepare(command, args)
    }

    pub(crate) fn run(&self, end: End, args: &[&str]) {
        Running::of(self.command(end, args)).wait().ok();
    }

    /// The flags of the far end's agent.
    pub(crate) fn serving(&self) -> Vec<String> {
        let listen = format!("{}:0", self.lab.host("b").unwrap().v4);
        let flags = ["--listen", &listen, "--allow-tuning", "--grace", "100ms", "--user", OTHER_USER];
        self.sandbox.token_flags().into_iter().chain(flags).map(str::to_owned).collect()
    }

    pub(crate) fn agent(&self) -> Agent {
        let mut command = self.lab.host("b").unwrap().command(binary::thru());
        command.env("THRU_JOURNAL", self.sandbox.path("journal"));
        let flags = self.serving();
        Agent::spawn(command, &flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn plan(&self, agent: &Agent) -> Running {
        let to = format!("host={}", agent.host());
        Running::of(self.command(End::Near, &["run", "plan.toml", "--var", &to, "--live"]))
    }

    /// Many trials with settings of both ends.
    pub(crate) fn stream(&self, agent: &Agent) -> Running {
        let (near, far) = (format!("near:{RMEM}=4096 200000 8000000"), format!("far:{SACK}=0"));
        let mtu = ["--set", "near:dev.eth0.mtu=1400", "--set", "far:dev.eth0.mtu=1400"];
        let flags = ["--set", &near, "--set", &far, "--time", "20ms", "--trials", "30", "--no-path", "--live"];
        Running::of(self.command(End::Near, &[&["stream", agent.host()], &flags[..], &mtu].concat()))
    }

    /// The settings of an end, as the kernel has them.
    pub(crate) fn state(&self, end: End) -> String {
        let output = self.lab.host(end.host()).unwrap().command("cat").args(FILES).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn is_back(&self, end: End) -> bool {
        self.state(end) == self.before[end as usize]
    }

    pub(crate) fn records(&self) -> usize {
        records(&self.sandbox)
    }

    /// What restores settings that a killed owner left: a command that is for that, or the next one that changes any. Without
    /// settings to restore, it removes a record that its owner had no time to remove.
    pub(crate) fn recover(&self, kill: usize, at_once: bool) {
        if at_once && self.records() == 0 {
            return;
        }
        for end in End::BOTH {
            if kill.is_multiple_of(2) {
                self.run(end, &["tune", "revert"]);
            } else {
                self.run(end, &["tune", "set", &format!("{SACK}=1"), "--for", "1ms"]);
            }
        }
    }

    /// The trials that the store has of its only run.
    pub(crate) fn stored(&self) -> BTreeSet<Kept> {
        stored(&self.sandbox)
    }

    /// Whether the next command leaves no folder.
    pub(crate) fn is_clean(&self, tally: &mut Tally) {
        is_clean(&self.sandbox, tally);
    }
}

/// Files of the journal, one for each owner of changed settings.
pub(crate) fn records(sandbox: &Sandbox) -> usize {
    let files = std::fs::read_dir(sandbox.path("journal")).into_iter().flatten().flatten();
    files.filter(|file| file.path().extension().is_some_and(|end| end == "jsonl")).count()
}

/// Removes the store.
pub(crate) fn forget_runs(sandbox: &Sandbox) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(sandbox.path(&format!("runs.sqlite{end}")));
    }
}

/// Whether something comes true in time.
pub(crate) fn comes_true(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

pub(crate) fn stored(sandbox: &Sandbox) -> BTreeSet<Kept> {
    let shown = sandbox.run(&["show", "last", "--json"]);
    Doc::try_parse(&shown.stdout).map(|doc| of_outcomes(&doc.run.outcomes)).unwrap_or_default()
}

pub(crate) fn is_clean(sandbox: &Sandbox, tally: &mut Tally) {
    sandbox.run(&["watch", "--count", "1"]).ok();
    let entries = std::fs::read_dir(sandbox.path("")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> = names.filter(|name| name.starts_with("thru-")).collect();
    tally.check(left.is_empty(), || format!("folders are left: {left:?}"));
}
