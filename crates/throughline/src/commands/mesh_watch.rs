//! `thru fleet watch` and `thru fleet history`: a mesh as a service.

use analysis::history::ConditionError;
use command::Failure;
use fleet::Endpoint;
use session::mesh_watch::{self, AlertConditions, MeshWatch, WatchNews};
use session::{Hosts, Screen};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use model::{Event, EventSink, Nanos, SinkError};
use options::values::{above_zero, whole};
use text::{Text, say};

use super::mesh::What;
use crate::flags::{FleetName, at_once};
use crate::sinks::Terminal;
use crate::{console, output};

/// Flags of `thru fleet watch`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/fleet-watch.txt").trim_end())]
pub struct WatchArgs {
    #[command(flatten)]
    what: What,

    /// Time from the start of one pass to the start of the next.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = above_zero::<Nanos>)]
    every: Nanos,

    /// Start no new pass after this long [default: run until interrupted].
    #[arg(long = "for", value_name = "TIME", value_parser = above_zero::<Nanos>)]
    length: Option<Nanos>,

    #[command(flatten)]
    alerts: AlertFlags,

    /// POST each alert that is raised or resolved to this URL as JSON.
    #[arg(long, value_name = "URL", value_parser = fleet::endpoint)]
    webhook: Option<Endpoint>,

    /// Serve the last pass and the alerts as OpenMetrics text (Prometheus) at http://ADDR:PORT/metrics.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,

    /// File with the agents' token, for hosts that have no token of their own.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    series: Series,

    /// Print only alerts and errors.
    #[arg(long, short)]
    quiet: bool,
}

/// What raises an alert.
#[derive(Debug, Args)]
struct AlertFlags {
    /// Raise an alert for each pair that meets this condition: goodput<500Mbit, rtt.p99>2ms, loss>1%, or drop>20% or rise>50% from
    /// the usual value. HOSTS after the condition limit it to those hosts. May be repeated; the fleet's own `alerts` also apply.
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    alert: Vec<String>,

    /// Raise an alert once its condition holds in this many passes in a row.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=u32::MAX))]
    alert_after: u32,
}

impl AlertFlags {
    fn conditions(&self) -> AlertConditions {
        AlertConditions { texts: self.alert.clone(), after: self.alert_after }
    }
}

/// Which passes belong together, and where they are.
#[derive(Debug, Args)]
struct Series {
    /// Name of the series and of its runs in the store [default: watch- and the name of the fleet's file].
    #[arg(long, value_parser = options::values::name)]
    name: Option<String>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Flags of `thru fleet history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    #[command(flatten)]
    fleet: FleetName,

    /// Show only passes that started within the last TIME.
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    last: Option<Nanos>,

    #[command(flatten)]
    alerts: AlertFlags,

    #[command(flatten)]
    series: Series,

    /// Print the history as JSON.
    #[arg(long)]
    json: bool,

    /// Also draw each pair over time to FILE (.svg or .png). If there are several figures, the others are written next to it.
    #[arg(short, long, value_name = "FILE", value_parser = output::picture)]
    output: Option<PathBuf>,
}

fn condition(text: &str) -> Result<String, ConditionError> {
    fleet::condition(text).map(|_| text.to_owned())
}

/// Runs `thru fleet watch`.
pub fn watch(args: &WatchArgs) -> Result<u8, Failure> {
    if args.what.traffic.is_some() {
        return Err(Failure::usage(say!(
            "`thru fleet watch` follows single pairs: omit `--traffic`, or use `thru mesh`"
        )));
    }
    let mesh = args.what.mesh(None)?;
    let named = args.what.hosts.fleet.named()?;
    let request = MeshWatch {
        mesh: &mesh,
        seed: args.what.seed,
        named: &named,
        bus: args.what.bus.bus.as_deref(),
        hosts: Hosts { token_file: args.token_file.clone(), ..Hosts::default() },
        name: args.series.name.clone(),
        store: args.series.store.clone(),
        every: args.every,
        length: args.length,
        alerts: args.alerts.conditions(),
        webhook: args.webhook.clone(),
        metrics: args.metrics,
        exit: at_once,
        note: |line| errln!("thru: {line}"),
    };
    let mut tell = |told: WatchNews<'_>| match told {
        WatchNews::Alert(event) => outln!("{}", report::mesh_alert(event)),
        _ if args.quiet => {}
        WatchNews::Begun(history, metrics) => {
            outln!("{}", report::mesh_watch(history));
            metrics.into_iter().for_each(|address| outln!("The metrics are at http://{address}/metrics."));
        }
        WatchNews::Pass(history, run) => outln!("{}", report::mesh_pass(history, run)),
        WatchNews::Change(series, change) => outln!("{}", report::mesh_change(series, change)),
        WatchNews::Ended(_) => {
            let name = args.series.name.as_ref().map_or_else(String::new, |name| format!(" --name {name}"));
            outln!("Next: `thru fleet history {named}{name}`");
        }
    };
    let mut measure = |request: &session::Request, watch: &mut dyn EventSink| {
        let mut both = Both { terminal: Terminal::watching(args.quiet), watch };
        let finished = session::conduct(request, &mut both);
        both.terminal.close(finished.is_ok())?;
        finished
    };
    mesh_watch::watch(&request, &mut measure, &mut tell)
}

/// The screen of a pass, and the watch, which prints alerts while it is under way.
struct Both<'a> {
    terminal: Terminal,
    watch: &'a mut dyn EventSink,
}

impl EventSink for Both<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        let Self { terminal, watch } = self;
        terminal.beside(|| watch.event(event))?;
        terminal.event(event)
    }
}

impl Screen for Both<'_> {
    fn status(&mut self, what: &Text) {
        self.terminal.status(what);
    }

    fn note(&mut self, line: &Text) {
        self.terminal.note(line);
    }
}

/// Runs `thru fleet history`.
pub fn history(args: &HistoryArgs) -> Result<u8, Failure> {
    let named = args.fleet.named()?;
    let of_fleet = fleet::open(&named)?;
    let name = args.series.name.clone().unwrap_or_else(|| mesh_watch::series_name(&named));
    let now = engine::unix_ns();
    let since = args.last.map_or(0, |last| now.saturating_sub(last.0));
    let history =
        mesh_watch::history_of(&of_fleet, &name, args.series.store.as_deref(), &args.alerts.conditions(), since)?;
    if args.json {
        console::json(&history)?;
    } else {
        out!("{}", report::mesh_history(&history, output::layout()));
    }
    if let Some(path) = &args.output {
        let figures = report::history_figures(&history);
        if figures.is_empty() {
            return Err(Failure::other("no pair has a value over time, so there is nothing to draw"));
        }
        output::draw(&figures, path)?.iter().for_each(|path| errln!("{}", path.display()));
    }
    Ok(0)
}
