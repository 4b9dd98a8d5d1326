//! `thru tune`: shows, changes and restores settings of a host.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use command::{Failure, values};
use model::{Change, Nanos, Setting};
use options::values::above_zero;
use serde_json::{Value, json};
use session::tuning::{self, Changed, Lasting, TuneRequest, TuningPlace};

use crate::console;

/// Flags of `thru tune`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/tune.txt").trim_end())]
pub struct TuneArgs {
    #[command(subcommand)]
    action: TuneAction,
}

/// The subcommands of `thru tune`.
#[derive(Debug, Subcommand)]
enum TuneAction {
    /// Show settings.
    Show {
        /// Keys or patterns with *; for another host, add HOST at the end [default: the common keys].
        #[arg(value_name = "KEY|HOST")]
        words: Vec<String>,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Change settings: all of them, or none if one cannot be changed.
    Set {
        /// Settings; for another host, add HOST at the end.
        #[arg(required = true, value_name = "KEY=VALUE|HOST")]
        words: Vec<String>,
        #[command(flatten)]
        how: HowFlags,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Apply the settings of a file with lines of sysctl.conf or `echo VALUE > /proc/sys/...`; on another host only net.* ones. List
    /// the lines that are not applied.
    Apply {
        /// The file.
        #[arg(value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
        /// A host that runs `thru serve --allow-tuning` [default: this host].
        #[arg(value_parser = values::host)]
        host: Option<String>,
        #[command(flatten)]
        how: HowFlags,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// Restore settings.
    Revert {
        /// ID of a journal entry, or `all` for those of all network namespaces; for another host, add HOST at the end
        /// [default: the entries of this network namespace and of the whole host].
        #[arg(value_name = "ID|all|HOST")]
        words: Vec<String>,
        /// Also restore settings that someone else has changed since.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        common: CommonFlags,
    },
    /// List changes that have not been restored yet.
    Journal {
        /// A host that runs `thru serve` [default: this host].
        #[arg(value_parser = values::host)]
        host: Option<String>,
        #[command(flatten)]
        common: CommonFlags,
    },
}

/// For how long settings are changed.
#[derive(Debug, Clone, Args)]
struct HowFlags {
    /// Restore them after this time or at Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = above_zero::<Nanos>, conflicts_with = "keep")]
    duration: Option<Nanos>,

    /// Keep them until `thru tune revert`: the default on this host. On another HOST, the default is until Ctrl-C.
    #[arg(long)]
    keep: bool,

    /// Print the changes without making them.
    #[arg(long)]
    dry_run: bool,

    /// Wait up to this long for a setting that another session holds.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    wait: Nanos,
}

/// The output and the journal, and the token for another host.
#[derive(Debug, Clone, Args)]
struct CommonFlags {
    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Folder of this host's journal [default: /run/throughline/tune; without root: below $XDG_RUNTIME_DIR].
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
            let (keys, host) = tuning::of_show(words)?;
            let settings = common.place(host).show(keys, "tune show")?;
            common.print(&json!({ "settings": settings }), || report::settings(&settings));
            Ok(0)
        }
        TuneAction::Set { words, how, common } => {
            let (settings, host) = tuning::of_set(words)?;
            how.change(settings, host, common)
        }
        TuneAction::Apply { file, host, how, common } => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
            let found = tuning::of_sysctl_file(&name, &text)?.of_host(&name, &common.place(host.as_deref()))?;
            for line in &found.left {
                errln!("thru: not applied: {line}");
            }
            how.change(found.settings, host.as_deref(), common)
        }
        TuneAction::Revert { words, force, common } => {
            let (which, host) = tuning::of_revert(words)?;
            let done = common.place(host).revert(which, *force)?;
            common.print(&json!({ "reverted": done }), || report::reverted_settings(&done));
            Ok(u8::from(done.iter().any(|one| !one.done)))
        }
        TuneAction::Journal { host, common } => {
            let entries = common.place(host.as_deref()).entries()?;
            common.print(&json!({ "entries": entries }), || report::settings_journal(&entries));
            Ok(0)
        }
    }
}

impl HowFlags {
    fn change(&self, settings: Vec<Setting>, host: Option<&str>, common: &CommonFlags) -> Result<u8, Failure> {
        let request = TuneRequest {
            settings,
            duration: self.duration.map(|time| Duration::from_nanos(time.0)),
            keep: self.keep,
            wait: Duration::from_nanos(self.wait.0),
        };
        if self.dry_run { preview(&request, host, common) } else { set(&request, host, common) }
    }
}

fn preview(request: &TuneRequest, host: Option<&str>, common: &CommonFlags) -> Result<u8, Failure> {
    let changes = request.preview(&common.place(host))?;
    let shown: Vec<Value> = match host {
        None => changes.iter().map(|one| json!(one)).collect(),
        // What another host would make of them is not known.
        Some(_) => changes
            .iter()
            .map(|one| json!({ "key": one.key, "before": one.before, "requested": one.requested, "host_wide": one.host_wide }))
            .collect(),
    };
    common.print(&json!({ "would_change": shown }), || report::planned_settings(&changes));
    Ok(0)
}

fn set(request: &TuneRequest, host: Option<&str>, common: &CommonFlags) -> Result<u8, Failure> {
    let held = |changes: &[Change]| {
        if !common.json {
            out!("{}", report::changed_settings(changes));
        }
    };
    let Changed { changes, ending } = request.make(&common.place(host), held)?;
    match (ending, host) {
        (Lasting::Restored(back), _) => {
            common.print(&json!({ "changes": changes, "put_back": back }), || report::restored_settings(&back));
        }
        (Lasting::Kept(_), Some(host)) => common.print(&json!({ "changes": changes }), || {
            report::changed_settings(&changes) + &format!("kept on {host} until `thru tune revert {host}`\n")
        }),
        (Lasting::Kept(id), None) => common.print(&json!({ "id": id, "changes": changes }), || {
            let id = id.as_deref().unwrap_or_default();
            report::changed_settings(&changes) + &format!("kept until `thru tune revert {id}`\n")
        }),
    }
    Ok(0)
}

impl CommonFlags {
    fn place<'a>(&'a self, host: Option<&'a str>) -> TuningPlace<'a> {
        let (journal, token_file) = (self.journal.as_deref(), self.token_file.as_deref());
        TuningPlace { host, journal, token_file, note: &|line| errln!("thru: {line}") }
    }

    fn print(&self, json: &Value, text: impl FnOnce() -> String) {
        if self.json {
            console::document(&format!("{json:#}\n"));
        } else {
            out!("{}", text());
        }
    }
}
