//! `thru tune`: shows, changes and restores settings of a host.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use control::ControlError;
use control::agent::recover;
use control::coordinator::{End, Target};
use control::proto::message::Obstacle;
use host::tune::{self, Allowance, Fault, Journal, RealBackend, TuneError, Tuner, Which};
use model::{Change, Family, JournalEntry, Nanos, Reverted, Setting, SettingNow};
use serde_json::{Value, json};
use session::Failure;
use session::setup;
use session::signals::Signals;
use session::values::{self, above_zero};
use tokio::time::{Instant, sleep, sleep_until};

use crate::console;

/// Interval between two attempts to change a setting that another session holds.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Flags of `thru tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru tune show dev.eth0.*                             the settings of an interface
  thru tune show sysctl.net.ipv4.tcp_rmem HOST          on another host
  thru tune set dev.eth0.mtu=9000                       until `thru tune revert`
  thru tune set cc.default=bbr HOST --for 10m           HOST runs thru serve --allow-tuning
  thru tune set \"sysctl.net.ipv4.tcp_rmem=4096 131072 33554432\" --dry-run
  thru tune revert                                      restore changes of this namespace
  thru stream HOST --set near:dev.eth0.offload.tso=off  for one measurement

Keys: sysctl.NAME, dev.NAME.mtu|txqueuelen|state|gso_max_size|..., dev.NAME.ring.rx,
dev.NAME.coalesce.rx-usecs, dev.NAME.queues.combined, dev.NAME.offload.tso, dev.NAME.rps.rx-0,
qdisc.NAME, cc.default, cc.NAME.PARAMETER, route.NETWORK.initcwnd, cpu.governor, irq.N.affinity.")]
pub struct TuneArgs {
    #[command(subcommand)]
    action: TuneAction,
}

/// The subcommands of `thru tune`.
#[derive(Debug, Subcommand)]
enum TuneAction {
    /// Show settings.
    Show {
        /// Keys or patterns with *; a HOST other than this one comes last [default: the common keys].
        #[arg(value_name = "KEY|HOST")]
        words: Vec<String>,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Change settings. If one cannot be changed, none is.
    Set {
        /// Settings; a HOST other than this one comes last.
        #[arg(required = true, value_name = "KEY=VALUE|HOST")]
        words: Vec<String>,
        /// Restore them after this time or at Ctrl-C.
        #[arg(long = "for", value_name = "TIME", value_parser = above_zero::<Nanos>, conflicts_with = "keep")]
        duration: Option<Nanos>,
        /// Keep them until `thru tune revert`. This is the default on this host; on a HOST, the default is until Ctrl-C.
        #[arg(long)]
        keep: bool,
        /// Print the changes without making them.
        #[arg(long)]
        dry_run: bool,
        /// Wait at most this long for a setting that another session holds.
        #[arg(long, value_name = "TIME", default_value = "0s")]
        wait: Nanos,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Restore settings.
    Revert {
        /// ID of a journal entry, or `all` for those of all network namespaces; a HOST other than this one comes last
        /// [default: the entries of this network namespace and of the whole host].
        #[arg(value_name = "ID|all|HOST")]
        words: Vec<String>,
        /// Also restore settings that somebody else has changed since.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// List changes that are not restored yet.
    Journal {
        /// A host that runs `thru serve` [default: this host].
        #[arg(value_parser = values::host)]
        host: Option<String>,
        #[command(flatten)]
        common: CommonFlags,
    },
}

/// The output and the journal, and the token for another host.
#[derive(Debug, Clone, Args)]
struct CommonFlags {
    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Folder of this host's journal [default: /run/throughline/tune; not as root: below $XDG_RUNTIME_DIR].
    #[arg(long, value_name = "DIR", env = "THRU_JOURNAL")]
    journal: Option<PathBuf>,

    /// File with the token of HOST's agent.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &TuneArgs) -> Result<u8, Failure> {
    match &args.action {
        TuneAction::Show { words, common } => {
            let (keys, host) = split_show(words)?;
            let settings = match host {
                None => tune::show(&RealBackend, keys, &Allowance::All)?,
                Some(host) => at(common, host, "tune show", async |end| end.show(keys).await)?,
            };
            common.print(&json!({ "settings": settings }), || settings.iter().for_each(print_setting));
            Ok(0)
        }
        TuneAction::Set { words, duration, keep, dry_run, wait, common } => {
            let (settings, host) = split_set(words)?;
            let change =
                SetRequest { settings, duration: *duration, keep: *keep, wait: Duration::from_nanos(wait.0), common };
            match (host, dry_run) {
                (None, true) => change.preview(),
                (None, false) => change.on_this_host(),
                (Some(host), true) => change.preview_at(host),
                (Some(host), false) => change.at_agent(host),
            }
        }
        TuneAction::Revert { words, force, common } => revert(words, *force, common),
        TuneAction::Journal { host, common } => {
            let entries = match host {
                None => tune::entries(&common.journal()?, &Allowance::All)?,
                Some(host) => at(common, host, "tune journal", async |end| end.journal().await)?,
            };
            common.print(&json!({ "entries": entries }), || print_entries(&entries));
            Ok(0)
        }
    }
}

/// Keys and HOST of `show`. A last word that does not look like a key is a host.
fn split_show(words: &[String]) -> Result<(&[String], Option<&str>), Failure> {
    let Some((last, keys)) = words.split_last() else { return Ok((words, None)) };
    let (keys, host) = if tune::is_key(last) { (words, None) } else { (keys, Some(last.as_str())) };
    // A mistyped key gets an error about the key, not about a host that cannot be reached.
    let wrong = keys.iter().find(|word| !tune::is_key(word)).or(words.last().filter(|last| tune::resembles_key(last)));
    match wrong.map(|word| tune::show(&RealBackend, std::slice::from_ref(word), &Allowance::All)) {
        Some(Err(error)) => Err(error.into()),
        _ => Ok((keys, host)),
    }
}

/// Settings and HOST of `set`.
fn split_set(words: &[String]) -> Result<(Vec<Setting>, Option<&str>), Failure> {
    let (pairs, host) = match words.split_last() {
        Some((last, pairs)) if !last.contains('=') => (pairs, Some(last.as_str())),
        _ => (words, None),
    };
    let settings =
        pairs.iter().map(|word| word.parse::<Setting>().map_err(Failure::usage)).collect::<Result<Vec<_>, _>>()?;
    if settings.is_empty() {
        return Err(Failure::usage("nothing to set: write KEY=VALUE, such as dev.eth0.mtu=9000"));
    }
    Ok((settings, host))
}

/// A request to change settings.
struct SetRequest<'a> {
    settings: Vec<Setting>,
    duration: Option<Nanos>,
    keep: bool,
    wait: Duration,
    common: &'a CommonFlags,
}

impl SetRequest<'_> {
    fn tuner(&self) -> Result<Tuner, Failure> {
        let journal = self.common.journal()?;
        for line in recover(&journal)? {
            errln!("thru: {line}");
        }
        let command: Vec<String> = std::env::args().skip(1).collect();
        Ok(Tuner::new(Arc::new(RealBackend), journal, format!("thru {}", command.join(" ")), Duration::ZERO))
    }

    fn preview(&self) -> Result<u8, Failure> {
        let journal = self.common.journal()?;
        let tuner = Tuner::new(Arc::new(RealBackend), journal, "thru tune set --dry-run", Duration::ZERO);
        let changes = tuner.preview(&self.settings)?;
        self.common.print(&json!({ "would_change": changes }), || {
            for change in &changes {
                outln!("{}: {} would become {}{}", change.key, change.before, change.requested, remarks(change));
            }
        });
        Ok(0)
    }

    fn on_this_host(&self) -> Result<u8, Failure> {
        // From here on no signal ends this process in the middle of a change.
        let mut signals = Signals::catch()?;
        let mut tuner = self.tuner()?;
        let changes = runtime(self.change_when_free(&mut signals, async || {
            // Preview first: if another session holds one of them, none is changed.
            let changed = tuner.preview(&self.settings).and_then(|_| tuner.tune(&self.settings));
            let busy = changed.as_ref().is_err_and(|error| error.fault() == Fault::Busy);
            (changed.map_err(Failure::from), busy)
        }))?;
        let Some(duration) = self.duration else {
            let id = tuner.keep()?;
            self.common.print(&json!({ "id": id, "changes": changes }), || {
                print_changes(&changes);
                outln!("kept until `thru tune revert {}`", id.as_deref().unwrap_or_default());
            });
            return Ok(0);
        };
        if !self.common.json {
            print_changes(&changes);
        }
        runtime(async {
            tokio::select! {
                () = sleep(Duration::from_nanos(duration.0)) => {}
                _ = signals.next() => {}
            }
            Ok(())
        })?;
        let back = tuner.revert();
        self.print_restored(&changes, &back);
        Ok(0)
    }

    /// Repeats a change while another session holds a setting, until it succeeds, `--wait` is over or a signal comes. `change` also returns
    /// whether a setting is held.
    async fn change_when_free(
        &self,
        signals: &mut Signals,
        mut change: impl AsyncFnMut() -> (Result<Vec<Change>, Failure>, bool),
    ) -> Result<Vec<Change>, Failure> {
        let deadline = Instant::now() + self.wait;
        loop {
            let (changed, busy) = change().await;
            if !busy || Instant::now() >= deadline {
                return changed;
            }
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                _ = signals.next() => return Err(ControlError::Interrupted.into()),
            }
        }
    }

    fn preview_at(&self, host: &str) -> Result<u8, Failure> {
        let keys: Vec<String> = self.settings.iter().map(|setting| setting.key.clone()).collect();
        let now = at(self.common, host, "tune set --dry-run", async |end| end.show(&keys).await)?;
        let pairs: Vec<_> = now.iter().zip(&self.settings).collect();
        let changes: Vec<Value> = pairs
            .iter()
            .map(|(now, setting)| json!({ "key": now.key, "before": now.value, "requested": setting.value, "host_wide": now.host_wide }))
            .collect();
        self.common.print(&json!({ "would_change": changes }), || {
            for (now, setting) in &pairs {
                let wide = if now.host_wide { " (host-wide)" } else { "" };
                outln!("{}: {} would become {}{wide}", now.key, now.value, setting.value);
            }
        });
        Ok(0)
    }

    fn at_agent(&self, host: &str) -> Result<u8, Failure> {
        let mut signals = Signals::catch()?;
        let (changes, back) = runtime(async {
            let mut end = tokio::select! {
                reached = reach(self.common, host, "tune set") => reached?,
                _ = signals.next() => return Err(ControlError::Interrupted.into()),
            };
            let changed = self.change_and_hold(&mut end, &mut signals).await;
            end.release().await;
            changed
        })?;
        match back {
            Some(back) => self.print_restored(&changes, &back),
            None => self.common.print(&json!({ "changes": changes }), || {
                print_changes(&changes);
                outln!("kept on {host} until `thru tune revert {host}`");
            }),
        }
        Ok(0)
    }

    /// Changes the settings at an agent and holds them for their time. Returns the changes, and unless they are kept, those that were
    /// restored.
    async fn change_and_hold(
        &self,
        end: &mut End,
        signals: &mut Signals,
    ) -> Result<(Vec<Change>, Option<Vec<Change>>), Failure> {
        let change = async || {
            let changed =
                if self.keep { end.tune_and_keep(&self.settings).await } else { end.tune(&self.settings).await };
            let busy = matches!(changed, Err(ControlError::Tune { obstacle: Obstacle::Busy, .. }));
            (changed.map_err(Failure::from), busy)
        };
        let changes = self.change_when_free(signals, change).await?;
        if self.keep {
            return Ok((changes, None));
        }
        if !self.common.json {
            print_changes(&changes);
        }
        let end_of_time = self.duration.map(|duration| Instant::now() + Duration::from_nanos(duration.0));
        let time = async {
            match end_of_time {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            _ = signals.next() => {}
            error = end.lost_contact() => return Err(error.into()),
        }
        let back = end.untune().await?;
        Ok((changes, Some(back)))
    }

    fn print_restored(&self, changes: &[Change], back: &[Change]) {
        self.common.print(&json!({ "changes": changes, "put_back": back }), || print_back(back));
    }
}

fn revert(words: &[String], force: bool, common: &CommonFlags) -> Result<u8, Failure> {
    let is_which = |word: &str| word == "all" || tune::is_entry(word);
    let (which, host) = match words {
        [] => (None, None),
        [one] if is_which(one) => (Some(one.as_str()), None),
        [one] => (None, Some(one.as_str())),
        [which, host] if is_which(which) => (Some(which.as_str()), Some(host.as_str())),
        _ => {
            return Err(Failure::usage("usage: `thru tune revert [ID|all] [HOST]`; `thru tune journal` lists the IDs"));
        }
    };
    let done = match host {
        None => {
            let which = match which {
                None => Which::Here,
                Some("all") => Which::All,
                Some(id) => Which::One(id.to_owned()),
            };
            tune::revert(&common.journal()?, &RealBackend, &which, force, &Allowance::All)?
        }
        Some(host) => {
            let id = which.filter(|which| *which != "all").map(str::to_owned);
            at(common, host, "tune revert", async |end| end.revert(id, which == Some("all"), force).await)?
        }
    };
    common.print(&json!({ "reverted": done }), || print_reverted(&done));
    Ok(u8::from(done.iter().any(|one| !one.done)))
}

/// Connects to an agent, waits for its machine, and does `work` with it.
fn at<T>(
    common: &CommonFlags,
    host: &str,
    purpose: &str,
    work: impl AsyncFnOnce(&mut End) -> Result<T, ControlError>,
) -> Result<T, Failure> {
    runtime(async {
        let mut end = reach(common, host, purpose).await?;
        let result = work(&mut end).await;
        end.release().await;
        Ok(result?)
    })
}

/// Connects to an agent and waits for its machine.
async fn reach(common: &CommonFlags, host: &str, purpose: &str) -> Result<End, Failure> {
    let token = setup::token(common.token_file.as_deref())?;
    let mut end = End::connect(Target::Remote { host, token: token.as_ref(), family: Family::Any }).await?;
    end.acquire(purpose, |ahead| errln!("thru: {host} is busy: {ahead} ahead in the queue")).await?;
    Ok(end)
}

fn runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::other(format!("cannot start: {error}")))?.block_on(work)
}

impl CommonFlags {
    fn journal(&self) -> Result<Journal, TuneError> {
        Journal::open(self.journal.as_deref())
    }

    fn print(&self, json: &Value, print: impl FnOnce()) {
        if self.json {
            console::document(&format!("{json:#}\n"));
        } else {
            print();
        }
    }
}

fn print_setting(setting: &SettingNow) {
    let wide = if setting.host_wide { "  (host-wide)" } else { "" };
    outln!("{:<44} {}{wide}", setting.key, setting.value);
}

fn remarks(change: &Change) -> String {
    let wide = change.host_wide.then_some("host-wide");
    let remarks: Vec<&str> = wide.into_iter().chain(change.note.as_deref()).collect();
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) }
}

fn print_changes(changes: &[Change]) {
    for change in changes {
        outln!("{}: {} is now {}{}", change.key, change.before, change.now, remarks(change));
    }
}

fn print_back(changes: &[Change]) {
    for change in changes {
        outln!("{}: restored to {}{}", change.key, change.now, remarks(change));
    }
}

fn print_reverted(done: &[Reverted]) {
    if done.is_empty() {
        outln!("nothing to restore");
    }
    for one in done {
        outln!("{} '{}'", one.id, one.command);
        for change in &one.changes {
            outln!("  {}: {} -> {}{}", change.key, change.before, change.now, remarks(change));
        }
        if let Some(note) = &one.note {
            outln!("  {note}");
        }
    }
}

fn print_entries(entries: &[JournalEntry]) {
    if entries.is_empty() {
        outln!("no changes");
    }
    for entry in entries {
        let state = match (entry.alive, entry.kept) {
            (true, _) => format!("held by process {}", entry.pid),
            (false, true) => "kept".into(),
            (false, false) => "left by a process that has ended".into(),
        };
        let namespace = if entry.here { "" } else { ", in another network namespace" };
        outln!("{} '{}': {state}{namespace}", entry.id, entry.command);
        for change in &entry.changes {
            outln!("  {}: {} -> {}{}", change.key, change.before, change.now, remarks(change));
        }
    }
}
