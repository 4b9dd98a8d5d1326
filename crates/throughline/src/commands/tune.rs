//! `thru tune`: settings of a host, shown, changed and put back.

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
use tokio::time::{Instant, sleep, sleep_until};

use crate::failure::Failure;
use crate::measure;
use crate::signals::Signals;
use crate::values::{self, above_zero};

/// How often a setting that somebody else holds is asked for again.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Flags of `thru tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru tune show dev.eth0.*                               what can be set of an interface, and what it is
  thru tune show sysctl.net.ipv4.tcp_rmem HOST            on another host
  thru tune set dev.eth0.mtu=9000                         until `thru tune revert`
  thru tune set cc.default=bbr HOST --for 10m             for ten minutes (far hosts need `thru serve --allow-tuning`)
  thru tune set \"sysctl.net.ipv4.tcp_rmem=4096 131072 33554432\" --dry-run
  thru tune revert                                        all that was left or kept in this network namespace
  thru stream HOST --set near:dev.eth0.offload.tso=off    for one measurement

Keys: sysctl.NAME, dev.NAME.mtu|txqueuelen|state|gso_max_size|..., dev.NAME.ring.rx, dev.NAME.coalesce.rx-usecs,
dev.NAME.queues.combined, dev.NAME.offload.tso, dev.NAME.rps.rx-0, qdisc.NAME, cc.default, cc.NAME.PARAMETER,
route.NETWORK.initcwnd, cpu.governor, irq.N.affinity.")]
pub struct TuneArgs {
    #[command(subcommand)]
    what: What,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum What {
    /// Show settings.
    Show {
        /// Keys or patterns with *, and last the HOST if it is not this one [default: the usual keys].
        words: Vec<String>,
        #[command(flatten)]
        place: Destination,
    },
    /// Change settings: all, or none.
    Set {
        /// KEY=VALUE, and last the HOST if it is not this one.
        #[arg(required = true)]
        words: Vec<String>,
        /// Put them back after this time (or at Ctrl-C).
        #[arg(long = "for", value_name = "TIME", value_parser = above_zero::<Nanos>, conflicts_with = "keep")]
        duration: Option<Nanos>,
        /// Leave them until `thru tune revert`: the default here; on a HOST they are put back at Ctrl-C otherwise.
        #[arg(long)]
        keep: bool,
        /// Change nothing; say what would be changed.
        #[arg(long)]
        dry_run: bool,
        /// Wait at most this long for a setting that somebody else holds.
        #[arg(long, value_name = "TIME", default_value = "0s")]
        wait: Nanos,
        #[command(flatten)]
        place: Destination,
    },
    /// Put settings back.
    Revert {
        /// An entry of the journal, or `all` for those of all network namespaces, and last the HOST if it is not this one
        /// [default: those of this network namespace and of the whole host].
        words: Vec<String>,
        /// Also overwrite what somebody else has changed meanwhile.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        place: Destination,
    },
    /// List what was changed and is not back.
    Journal {
        /// Another host.
        #[arg(value_parser = values::host)]
        host: Option<String>,
        #[command(flatten)]
        place: Destination,
    },
}

/// Where, and how it is told.
#[derive(Debug, Clone, Args)]
struct Destination {
    /// As JSON.
    #[arg(long)]
    json: bool,

    /// Directory of this host's journal [default: /run/throughline/tune, or below $XDG_RUNTIME_DIR].
    #[arg(long, value_name = "DIR", env = "THRU_JOURNAL")]
    journal: Option<PathBuf>,

    /// File with the secret that HOST's agent was started with.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &TuneArgs) -> Result<u8, Failure> {
    match &args.what {
        What::Show { words, place } => {
            let (keys, host) = split_show(words)?;
            let settings = match host {
                None => tune::show(&RealBackend, keys, &Allowance::All)?,
                Some(host) => at(place, host, "tune show", async |end| end.show(keys).await)?,
            };
            place.tell(&json!({ "settings": settings }), || settings.iter().for_each(print_setting));
            Ok(0)
        }
        What::Set { words, duration, keep, dry_run, wait, place } => {
            let (settings, host) = split_set(words)?;
            let order = Set { settings, duration: *duration, keep: *keep, wait: Duration::from_nanos(wait.0), place };
            match (host, dry_run) {
                (None, true) => order.preview(),
                (None, false) => order.here(),
                (Some(host), true) => order.preview_at(host),
                (Some(host), false) => order.there(host),
            }
        }
        What::Revert { words, force, place } => revert(words, *force, place),
        What::Journal { host, place } => {
            let entries = match host {
                None => tune::entries(&place.journal()?, &Allowance::All)?,
                Some(host) => at(place, host, "tune journal", async |end| end.journal().await)?,
            };
            place.tell(&json!({ "entries": entries }), || print_entries(&entries));
            Ok(0)
        }
    }
}

/// Keys and HOST of `show`: what does not look like a key, and stands last, is a host.
fn split_show(words: &[String]) -> Result<(&[String], Option<&str>), Failure> {
    let Some((last, keys)) = words.split_last() else { return Ok((words, None)) };
    let (keys, host) = if tune::is_key(last) { (words, None) } else { (keys, Some(last.as_str())) };
    // A key that was mistyped is not a host that cannot be reached.
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

/// An order to change settings.
struct Set<'a> {
    settings: Vec<Setting>,
    duration: Option<Nanos>,
    keep: bool,
    wait: Duration,
    place: &'a Destination,
}

impl Set<'_> {
    fn tuner(&self) -> Result<Tuner, Failure> {
        let journal = self.place.journal()?;
        for line in recover(&journal)? {
            errln!("thru: {line}");
        }
        let command: Vec<String> = std::env::args().skip(1).collect();
        Ok(Tuner::new(Arc::new(RealBackend), journal, format!("thru {}", command.join(" ")), Duration::ZERO))
    }

    fn preview(&self) -> Result<u8, Failure> {
        let journal = self.place.journal()?;
        let tuner = Tuner::new(Arc::new(RealBackend), journal, "thru tune set --dry-run", Duration::ZERO);
        let changes = tuner.preview(&self.settings)?;
        self.place.tell(&json!({ "would_change": changes }), || {
            for change in &changes {
                outln!("{}: {} would become {}{}", change.key, change.before, change.requested, remarks(change));
            }
        });
        Ok(0)
    }

    fn here(&self) -> Result<u8, Failure> {
        // From here on no signal ends this process with half of it done.
        let mut signals = Signals::catch()?;
        let mut tuner = self.tuner()?;
        let changes = runtime(self.changed(&mut signals, async || {
            // PathFacts at first: while one of several is held none is changed.
            let changed = tuner.preview(&self.settings).and_then(|_| tuner.tune(&self.settings));
            let busy = changed.as_ref().is_err_and(|error| error.fault() == Fault::Busy);
            (changed.map_err(Failure::from), busy)
        }))?;
        let Some(duration) = self.duration else {
            let id = tuner.keep()?;
            self.place.tell(&json!({ "id": id, "changes": changes }), || {
                print_changes(&changes);
                outln!("kept until `thru tune revert {}`", id.as_deref().unwrap_or_default());
            });
            return Ok(0);
        };
        if !self.place.json {
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
        self.told_back(&changes, &back);
        Ok(0)
    }

    /// Asks for the change, which also says whether somebody else holds a setting, until it is made, nobody wants to wait any longer, or
    /// a signal comes.
    async fn changed(
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
                () = sleep(ASK_EVERY) => {}
                _ = signals.next() => return Err(ControlError::Interrupted.into()),
            }
        }
    }

    fn preview_at(&self, host: &str) -> Result<u8, Failure> {
        let keys: Vec<String> = self.settings.iter().map(|setting| setting.key.clone()).collect();
        let now = at(self.place, host, "tune set --dry-run", async |end| end.show(&keys).await)?;
        let pairs: Vec<_> = now.iter().zip(&self.settings).collect();
        let changes: Vec<Value> = pairs
            .iter()
            .map(|(now, setting)| json!({ "key": now.key, "before": now.value, "asked": setting.value, "host_wide": now.host_wide }))
            .collect();
        self.place.tell(&json!({ "would_change": changes }), || {
            for (now, setting) in &pairs {
                let wide = if now.host_wide { " (host-wide)" } else { "" };
                outln!("{}: {} would become {}{wide}", now.key, now.value, setting.value);
            }
        });
        Ok(0)
    }

    fn there(&self, host: &str) -> Result<u8, Failure> {
        let mut signals = Signals::catch()?;
        let (changes, back) = runtime(async {
            let mut end = tokio::select! {
                reached = reach(self.place, host, "tune set") => reached?,
                _ = signals.next() => return Err(ControlError::Interrupted.into()),
            };
            let held = self.held(&mut end, &mut signals).await;
            end.release().await;
            held
        })?;
        match back {
            Some(back) => self.told_back(&changes, &back),
            None => self.place.tell(&json!({ "changes": changes }), || {
                print_changes(&changes);
                outln!("kept there until `thru tune revert {host}`");
            }),
        }
        Ok(0)
    }

    /// Changes the settings at an agent and holds them for their time; what was changed, and what was put back unless it is to stay.
    async fn held(&self, end: &mut End, signals: &mut Signals) -> Result<(Vec<Change>, Option<Vec<Change>>), Failure> {
        let change = async || {
            let changed =
                if self.keep { end.tune_and_keep(&self.settings).await } else { end.tune(&self.settings).await };
            let busy = matches!(changed, Err(ControlError::Tune { obstacle: Obstacle::Busy, .. }));
            (changed.map_err(Failure::from), busy)
        };
        let changes = self.changed(signals, change).await?;
        if self.keep {
            return Ok((changes, None));
        }
        if !self.place.json {
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

    fn told_back(&self, changes: &[Change], back: &[Change]) {
        self.place.tell(&json!({ "changes": changes, "put_back": back }), || print_back(back));
    }
}

fn revert(words: &[String], force: bool, place: &Destination) -> Result<u8, Failure> {
    let is_which = |word: &str| word == "all" || tune::is_entry(word);
    let (which, host) = match words {
        [] => (None, None),
        [one] if is_which(one) => (Some(one.as_str()), None),
        [one] => (None, Some(one.as_str())),
        [which, host] if is_which(which) => (Some(which.as_str()), Some(host.as_str())),
        _ => return Err(Failure::usage("write `thru tune revert [ID|all] [HOST]`; `thru tune journal` lists IDs")),
    };
    let done = match host {
        None => {
            let which = match which {
                None => Which::Here,
                Some("all") => Which::All,
                Some(id) => Which::One(id.to_owned()),
            };
            tune::revert(&place.journal()?, &RealBackend, &which, force, &Allowance::All)?
        }
        Some(host) => {
            let id = which.filter(|which| *which != "all").map(str::to_owned);
            at(place, host, "tune revert", async |end| end.revert(id, which == Some("all"), force).await)?
        }
    };
    place.tell(&json!({ "reverted": done }), || print_reverted(&done));
    Ok(u8::from(done.iter().any(|one| !one.done)))
}

/// Does something with an agent that has let us in and given us its machine.
fn at<T>(
    place: &Destination,
    host: &str,
    purpose: &str,
    work: impl AsyncFnOnce(&mut End) -> Result<T, ControlError>,
) -> Result<T, Failure> {
    runtime(async {
        let mut end = reach(place, host, purpose).await?;
        let result = work(&mut end).await;
        end.release().await;
        Ok(result?)
    })
}

/// Connects to an agent and waits for its machine.
async fn reach(place: &Destination, host: &str, purpose: &str) -> Result<End, Failure> {
    let token = measure::token(place.token_file.as_deref())?;
    let mut end = End::connect(Target::Remote { host, token: token.as_ref(), family: Family::Any }).await?;
    end.acquire(purpose, |ahead| errln!("thru: {host} is busy: {ahead} before us")).await?;
    Ok(end)
}

fn runtime<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::other(format!("cannot start: {error}")))?.block_on(work)
}

impl Destination {
    fn journal(&self) -> Result<Journal, TuneError> {
        Journal::open(self.journal.as_deref())
    }

    fn tell(&self, json: &Value, print: impl FnOnce()) {
        if self.json {
            out!("{json:#}\n");
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
    let said: Vec<&str> = wide.into_iter().chain(change.note.as_deref()).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) }
}

fn print_changes(changes: &[Change]) {
    for change in changes {
        outln!("{}: {} is now {}{}", change.key, change.before, change.now, remarks(change));
    }
}

fn print_back(changes: &[Change]) {
    for change in changes {
        outln!("{}: {} again{}", change.key, change.now, remarks(change));
    }
}

fn print_reverted(done: &[Reverted]) {
    if done.is_empty() {
        outln!("nothing to put back");
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
        outln!("nothing is changed");
    }
    for entry in entries {
        let state = match (entry.alive, entry.kept) {
            (true, _) => format!("held by process {}", entry.pid),
            (false, true) => "kept".into(),
            (false, false) => "left by an owner that is no more".into(),
        };
        let place = if entry.here { "" } else { ", in another network namespace" };
        outln!("{} '{}': {state}{place}", entry.id, entry.command);
        for change in &entry.changes {
            outln!("  {}: {} -> {}{}", change.key, change.before, change.now, remarks(change));
        }
    }
}
