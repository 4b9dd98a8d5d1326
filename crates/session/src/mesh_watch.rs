//! A mesh as a service: passes at regular times, their history, and alerts.
//!
//! Each pass is a stored run with the name of the series. Everything else follows from those runs: a watch that is started again goes on
//! with the history and the alerts of the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use analysis::history::{Alerts, Figures, FollowedFigure, MOST_PASSES, MeshPass, history};
use command::failure::{ALERT, Failure, INTERRUPTED};
use command::setup::{clock_seed, open_store, runtime};
use command::signals::CaughtSignals;
use control::agent::HAS_METRICS;
use control::scrape::{self, Gauges};
use model::{
    AlertEvent, Cell, ChangePoint, Event, EventSink, HistoryPass, HistorySeries, MeshHistory, Nanos, Run, RunHeader,
    RunKind, SinkError, Trial, Verdict,
};
use plan::Fleet;
use store::Loaded;
use text::say;

use crate::run::{Finished, Hosts, Request, Work};
use crate::this_host::ThisHost;
use fleet::{Endpoint, Mesh, Webhook, rules};

/// The confidence of changes and their intervals.
const CONFIDENCE: f64 = 0.95;
/// A change may move by this many passes as more are known, and is still the same one.
const SAME: u32 = 2;
/// The exit code of wrong usage.
const USAGE: u8 = 2;
/// What is tested again ends this long before the next turn, or by a part of `every` where that is less, one divided by this: the pass has
/// to be closed in it.
const CLOSING: Duration = Duration::from_secs(2);
const CLOSING_PART: u32 = 4;

/// A mesh that is measured at regular times.
pub struct MeshWatch<'a> {
    /// What a pass measures, apart from its seed.
    pub mesh: &'a Mesh,
    /// The seed of each pass; `None` to draw it anew, except for that of a sample.
    pub seed: Option<u64>,
    /// The fleet, as the user named it.
    pub named: &'a str,
    /// The bus over which its agents are reached.
    pub bus: Option<&'a str>,
    /// The token of agents that have no other.
    pub hosts: Hosts,
    /// The name of the series and its runs; `None` for that of the fleet.
    pub name: Option<String>,
    /// The database of runs; `None` is the default one.
    pub store: Option<PathBuf>,
    /// Time from the start of one pass to the start of the next.
    pub every: Nanos,
    /// Time from the first pass to the latest start of one; `None` for no end.
    pub length: Option<Nanos>,
    /// Conditions beside those of the fleet.
    pub alerts: AlertConditions,
    /// Where alerts are posted.
    pub webhook: Option<Endpoint>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Ends the process at once, at the second signal.
    pub exit: fn() -> !,
    /// Shows what went wrong, from any thread.
    pub note: fn(&str),
}

/// What raises an alert.
#[derive(Debug, Clone, Default)]
pub struct AlertConditions {
    /// Conditions, with hosts or for all.
    pub texts: Vec<String>,
    /// Passes in a row in which one holds before its alert is raised.
    pub after: u32,
}

/// What a watch reports.
pub enum WatchNews<'a> {
    /// It begins, with this history and this address of the metrics.
    Begun(&'a MeshHistory, Option<SocketAddr>),
    /// A pass was measured.
    Pass(&'a MeshHistory, &'a Run),
    /// A level has changed.
    Change(&'a HistorySeries, &'a ChangePoint),
    /// An alert was raised or resolved, also while a pass is under way.
    Alert(&'a AlertEvent),
    /// It is over, with these alerts still raised.
    Ended(&'a MeshHistory),
}

/// The name of a series without one of its own: that of the fleet's file or source.
#[must_use]
pub fn series_name(named: &str) -> String {
    let stem = Path::new(named).file_stem().filter(|_| Path::new(named).is_file());
    format!("watch-{}", stem.map_or_else(|| named.to_owned(), |stem| stem.to_string_lossy().into_owned()))
}

/// The history of a series with the alerts of these conditions, the fleet's own among them, and the seed of its last pass. Runs before
/// `since_unix_ns` are left out.
///
/// # Errors
/// The store cannot be read; a condition or a selection is wrong.
pub fn history_of(
    fleet: &Fleet,
    name: &str,
    store: Option<&Path>,
    conditions: &AlertConditions,
    since_unix_ns: u64,
) -> Result<MeshHistory, Failure> {
    let mut series = Series::open(fleet, name, store, conditions)?;
    series.passes.retain(|pass| pass.pass.started_unix_ns >= since_unix_ns);
    Ok(series.history())
}

/// Watches until the time is over or a signal ends it; `measure` conducts a run and passes its events on. Returns the exit code: whether an
/// alert is still raised.
///
/// # Errors
/// What keeps it from beginning: wrong usage, a store that cannot be read, an address that is taken.
pub fn watch(
    watch: &MeshWatch<'_>,
    measure: &mut dyn FnMut(&Request, &mut dyn EventSink) -> Result<Finished, Failure>,
    tell: &mut dyn FnMut(WatchNews<'_>),
) -> Result<u8, Failure> {
    if watch.metrics.is_some() && !HAS_METRICS {
        return Err(Failure::usage(say!("`--metrics`: this thru was built without the feature `metrics`")));
    }
    let fleet = fleet::open_over(watch.named, watch.bus)?;
    let name = watch.name.clone().unwrap_or_else(|| series_name(watch.named));
    let mut series = Series::open(&fleet, &name, watch.store.as_deref(), &watch.alerts)?;
    // Its mistakes are found now, not in the first pass.
    watch.mesh.plan(watch.named, &fleet, &ThisHost)?;
    let webhook = watch.webhook.clone().map(|endpoint| Webhook::start(endpoint, watch.note)).transpose()?;
    let shown = Arc::new(Mutex::new(Shown::default()));
    let source = shown.clone();
    let metrics = watch.metrics.map(|address| {
        scrape::spawn(address, Arc::new(move || source.lock().unwrap_or_else(PoisonError::into_inner).text()))
    });
    let metrics = metrics.transpose()?;
    let (runtime, mut signals) = (runtime()?, CaughtSignals::catch()?);
    let mut known = series.history();
    series.announced = changes_of(&known).map(|(of, change)| (key(of), change.at_unix_ns)).collect();
    shown.lock().unwrap_or_else(PoisonError::into_inner).take(&series, &known, 0);
    tell(WatchNews::Begun(&known, metrics));
    let first = Instant::now() + series.time_to_next(watch.every);
    let (mut due, mut measured) = (first, 0);
    while watch.length.is_none_or(|length| due.duration_since(first) <= Duration::from_nanos(length.0)) {
        let stopped = runtime.block_on(async {
            tokio::select! {
                biased;
                _ = signals.next() => true,
                () = tokio::time::sleep_until(due.into()) => false,
            }
        });
        if stopped {
            break;
        }
        let drawn = if watch.mesh.share < 1.0 { series.sample_seed } else { clock_seed() };
        let seed = watch.seed.unwrap_or(drawn);
        let mesh = Mesh { seed, ..watch.mesh.clone() };
        let mut parsed = mesh.plan(watch.named, &fleet, &ThisHost)?;
        parsed.plan.retests_until_unix_ns = Some(retests_until(due, Duration::from_nanos(watch.every.0)));
        let request = Request {
            kind: RunKind::Mesh,
            name: Some(name.clone()),
            hosts: watch.hosts.clone(),
            expected: Vec::new(),
            unstored: false,
            store: watch.store.clone(),
            exit: watch.exit,
            work: Work::Plan { parsed: Box::new(parsed), resumed: None },
        };
        let mut alert = |event: AlertEvent| {
            tell(WatchNews::Alert(&event));
            if let Some(webhook) = &webhook {
                webhook.post(event);
            }
        };
        let mut begun = Begun::new(&mut series.alerts, &mut alert);
        let measured_pass = measure(&request, &mut begun);
        let is_judged = begun.is_judged;
        let (pass, run) = match measured_pass {
            Ok(Finished { run, failure }) => {
                if run.ending.as_ref().is_some_and(|ending| ending.how == "interrupted") {
                    break;
                }
                if let Some(failure) = failure {
                    (watch.note)(&format!("the pass is incomplete: {failure}"));
                }
                (MeshPass::of(&run.header, &run.outcomes), Some(run))
            }
            Err(failure) if failure.code() == INTERRUPTED => break,
            // What was wrong from the beginning stays wrong.
            Err(failure) if failure.code() == USAGE && measured == 0 => return Err(failure),
            Err(failure) => {
                (watch.note)(&format!("the pass was not measured: {failure}"));
                (series.without_values(&request), None)
            }
        };
        measured += 1;
        let alerts = if is_judged { Vec::new() } else { series.alerts.pass(&pass) };
        if run.is_some() {
            series.add(pass);
        }
        known = series.history();
        shown.lock().unwrap_or_else(PoisonError::into_inner).take(&series, &known, measured);
        if let Some(run) = &run {
            tell(WatchNews::Pass(&known, run));
        }
        for (of, change) in changes_of(&known).filter(|(of, change)| series.is_new(&known, of, change)) {
            tell(WatchNews::Change(of, change));
        }
        series.announce(&known);
        for event in alerts {
            tell(WatchNews::Alert(&event));
            if let Some(webhook) = &webhook {
                webhook.post(event);
            }
        }
        let missed = turns_missed(due.elapsed(), watch.every);
        if missed > 0 {
            let turns = if missed == 1 { "1 turn was".to_owned() } else { format!("{missed} turns were") };
            let took = model::units::seconds(due.elapsed().as_nanos() as f64);
            (watch.note)(&format!("{turns} skipped, because the pass took {took}; the next one starts on schedule"));
        }
        due += Duration::from_nanos(watch.every.0) * (missed + 1);
    }
    if webhook.is_some_and(|webhook| !webhook.finish()) {
        (watch.note)("the webhook has not accepted all alerts");
    }
    // A pass that was cut off may have raised and resolved some.
    known.alerts = series.alerts.raised().cloned().collect();
    tell(WatchNews::Ended(&known));
    Ok(if known.alerts.is_empty() { 0 } else { ALERT })
}

/// The turns that have passed by the end of a pass, beside its own.
fn turns_missed(since_due: Duration, every: Nanos) -> u32 {
    u32::try_from(since_due.as_nanos() / u128::from(every.0.max(1))).unwrap_or(u32::MAX - 1)
}

/// When what is tested again has to be over, ns since the Unix epoch, in a pass that was due at `due`.
fn retests_until(due: Instant, every: Duration) -> u64 {
    let end = due + every - CLOSING.min(every / CLOSING_PART);
    engine::unix_ns().saturating_add(end.saturating_duration_since(Instant::now()).as_nanos() as u64)
}

/// The figures of a pass while it is measured: an alert leaves when the tests that show it are over.
struct Begun<'a> {
    alerts: &'a mut Alerts,
    raise: &'a mut dyn FnMut(AlertEvent),
    /// The cells, and how their figures are found.
    cells: Vec<Cell>,
    figures: Option<Figures>,
    header: RunHeader,
    /// The trials of the cells that have not had all of them.
    trials: BTreeMap<u32, Vec<Trial>>,
    /// What the outcomes have so far, and their number.
    pass: MeshPass,
    outcomes: usize,
    /// The whole pass has been judged.
    is_judged: bool,
}

impl<'a> Begun<'a> {
    fn new(alerts: &'a mut Alerts, raise: &'a mut dyn FnMut(AlertEvent)) -> Self {
        Self {
            alerts,
            raise,
            cells: Vec::new(),
            figures: None,
            header: RunHeader::default(),
            trials: BTreeMap::new(),
            pass: MeshPass::default(),
            outcomes: 0,
            is_judged: false,
        }
    }

    fn begin(&mut self, header: &RunHeader) {
        self.pass = MeshPass::begun(header);
        self.figures = Some(Figures::new(header));
        self.cells.clone_from(&header.cells);
        self.header = RunHeader { cells: Vec::new(), ..header.clone() };
    }

    /// Judges the figures of a cell that has had all its trials.
    fn trial(&mut self, trial: &Trial) {
        let own = self.trials.entry(trial.cell).or_default();
        own.push(trial.clone());
        let rule = &self.header.stopping;
        let whole = own.iter().filter(|trial| !trial.verdicts.contains(&Verdict::CutShort)).count();
        if whole < rule.max_trials as usize {
            return;
        }
        let trials = self.trials.remove(&trial.cell).unwrap_or_default();
        let (Some(cell), Some(figures)) = (Cell::find(&self.cells, trial.cell), &self.figures) else { return };
        let outcome = analysis::outcome(cell, trials, rule, analysis::Context::default());
        for (key, value) in figures.of(cell, &outcome) {
            self.alerts.figure(&self.pass.pass, &key, value).into_iter().for_each(&mut self.raise);
        }
    }
}

impl EventSink for Begun<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Run(header) => self.begin(header),
            Event::Trial(trial) => self.trial(trial),
            Event::Outcome(outcome) => {
                self.outcomes += 1;
                if let (Some(cell), Some(figures)) = (Cell::find(&self.cells, outcome.cell), &self.figures) {
                    self.pass.values.extend(figures.of(cell, outcome));
                }
            }
            // What follows the last outcome of a pass that goes on: its rounds are over, and something is tested again.
            Event::Phase(_) if !self.is_judged && self.outcomes > 0 && self.outcomes == self.cells.len() => {
                self.is_judged = true;
                self.alerts.pass(&self.pass).into_iter().for_each(&mut self.raise);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Judges what is stored of a pass that was cut off: its alerts have left, and are not raised again.
fn judge_again(alerts: &mut Alerts, Loaded { run, orphans, .. }: &Loaded) {
    let mut has_left = |_| {};
    let mut begun = Begun::new(alerts, &mut has_left);
    begun.begin(&run.header);
    let trials = run.outcomes.iter().flat_map(|outcome| &outcome.trials);
    trials.chain(orphans).for_each(|trial| begun.trial(trial));
    // A pass with all its outcomes was judged as a whole, and tested again what stood out. An interrupted one ends with outcomes of what
    // there was.
    let has_outcomes = run.outcomes.len() == run.header.cells.len() && orphans.is_empty();
    if (has_outcomes && run.ending.is_none()) || !run.retests.is_empty() {
        alerts.pass(&MeshPass::of(&run.header, &run.outcomes));
    } else {
        alerts.cut_off();
    }
}

/// The passes of a series and its alerts.
struct Series {
    name: String,
    passes: Vec<MeshPass>,
    alerts: Alerts,
    /// The changes that were told: whose, and since when.
    announced: BTreeSet<(String, u64)>,
    /// The seed of a sample: that of the earlier passes, so that the same pairs are measured.
    sample_seed: u64,
}

impl Series {
    fn open(fleet: &Fleet, name: &str, store: Option<&Path>, conditions: &AlertConditions) -> Result<Self, Failure> {
        let texts: Vec<String> = fleet.alerts.iter().chain(&conditions.texts).cloned().collect();
        let mut alerts = Alerts::new(name, rules(fleet, &texts)?, conditions.after);
        let store = open_store(store)?;
        let runs = store.series(name, RunKind::Mesh, MOST_PASSES)?;
        let sample_seed = runs.last().map_or_else(clock_seed, |(header, _)| header.stopping.seed);
        let passes: Vec<MeshPass> = runs.iter().map(|(header, outcomes)| MeshPass::of(header, outcomes)).collect();
        let mut cut_off = store.cut_off(name, RunKind::Mesh, MOST_PASSES)?.into_iter().peekable();
        for pass in &passes {
            let is_earlier = |loaded: &Loaded| loaded.run.header.started_unix_ns < pass.pass.started_unix_ns;
            while let Some(earlier) = cut_off.next_if(is_earlier) {
                judge_again(&mut alerts, &earlier);
            }
            alerts.pass(pass);
        }
        cut_off.for_each(|last| judge_again(&mut alerts, &last));
        Ok(Self { name: name.to_owned(), passes, alerts, announced: BTreeSet::new(), sample_seed })
    }

    fn add(&mut self, pass: MeshPass) {
        self.passes.push(pass);
        let over = self.passes.len().saturating_sub(MOST_PASSES);
        self.passes.drain(..over);
    }

    fn history(&self) -> MeshHistory {
        let alerts = self.alerts.raised().cloned().collect();
        MeshHistory { alerts, ..history(&self.name, &self.passes, CONFIDENCE) }
    }

    /// How long until the next turn after the last stored pass.
    fn time_to_next(&self, every: Nanos) -> Duration {
        let next = self.passes.last().map_or(0, |last| last.pass.started_unix_ns.saturating_add(every.0));
        // A clock that was set back must not make it wait for long.
        Duration::from_nanos(next.saturating_sub(engine::unix_ns()).min(every.0))
    }

    /// A pass that could not begin: no host has a value.
    fn without_values(&self, request: &Request) -> MeshPass {
        let hosts = match &request.work {
            Work::Plan { parsed, .. } => parsed.plan.from.iter().chain(&parsed.plan.to).cloned().collect(),
            Work::Measurement { .. } | Work::Path => BTreeSet::new(),
        };
        let pass = HistoryPass { run: String::new(), started_unix_ns: engine::unix_ns() };
        MeshPass { pass, hosts, ..MeshPass::default() }
    }

    fn is_new(&self, known: &MeshHistory, of: &HistorySeries, change: &ChangePoint) -> bool {
        let place = |at: u64| known.passes.iter().position(|pass| pass.started_unix_ns == at);
        let own = key(of);
        let told = self.announced.iter().filter(|(key, _)| *key == own).filter_map(|(_, at)| place(*at));
        !told.into_iter().any(|at| (at as u32).abs_diff(change.pass) <= SAME)
    }

    fn announce(&mut self, known: &MeshHistory) {
        self.announced.extend(changes_of(known).map(|(of, change)| (key(of), change.at_unix_ns)));
    }
}

fn changes_of(history: &MeshHistory) -> impl Iterator<Item = (&HistorySeries, &ChangePoint)> {
    history.series.iter().flat_map(|series| series.changes.iter().map(move |change| (series, change)))
}

/// What a series is of, as one text.
fn key(series: &HistorySeries) -> String {
    let name = |host: &Option<String>| host.clone().unwrap_or_default();
    [series.figure.clone(), name(&series.from), name(&series.to), series.levels.clone()].join("\n")
}

/// What the metrics show.
#[derive(Default)]
struct Shown {
    measured: u32,
    last_unix_ns: Option<u64>,
    last: Option<MeshPass>,
    alerts: Vec<model::AlertState>,
}

impl Shown {
    fn take(&mut self, series: &Series, known: &MeshHistory, measured: u32) {
        self.measured = measured;
        self.last = series.passes.last().cloned();
        self.last_unix_ns = self.last.as_ref().map(|last| last.pass.started_unix_ns);
        self.alerts.clone_from(&known.alerts);
    }

    fn text(&self) -> String {
        let one = |name, help, value: f64| Gauges { name, help, values: vec![(Vec::new(), value)] };
        let mut all = vec![
            one("throughline_mesh_passes", "Passes since this watch started", f64::from(self.measured)),
            one("throughline_mesh_alerts", "Raised alerts", self.alerts.len() as f64),
        ];
        if let Some(at) = self.last_unix_ns {
            let age = engine::unix_ns().saturating_sub(at) as f64 / 1e9;
            let (name, help) = ("throughline_mesh_last_pass_timestamp_seconds", "Start of the last pass");
            all.push(one(name, help, at as f64 / 1e9));
            all.push(one("throughline_mesh_last_pass_age_seconds", "Time since the start of the last pass", age));
        }
        let raised = self.alerts.iter().map(|alert| {
            let labels = vec![
                ("condition", alert.condition.clone()),
                ("from", alert.from.clone()),
                ("to", alert.to.clone().unwrap_or_default()),
            ];
            (labels, 1.0)
        });
        let (name, help) = ("throughline_mesh_alert", "A raised alert");
        all.push(Gauges { name, help, values: raised.collect() });
        for (figure, name, help, scale) in [
            (
                FollowedFigure::Goodput,
                "throughline_mesh_goodput_bits_per_second",
                "Goodput of a pair in the last pass",
                1.0,
            ),
            (FollowedFigure::Rtt, "throughline_mesh_rtt_seconds", "Median round trip of a pair in the last pass", 1e-9),
            (FollowedFigure::RttP99, "throughline_mesh_rtt_p99_seconds", "99th percentile of the round trips", 1e-9),
            (FollowedFigure::Loss, "throughline_mesh_loss_ratio", "Share of the datagrams that were lost", 1.0),
        ] {
            let own = self.last.iter().flat_map(|last| &last.values).filter(|(key, _)| key.figure == figure);
            let values: Vec<_> = own
                .map(|(key, value)| {
                    let mut labels = vec![("from", key.from.clone()), ("to", key.to.clone())];
                    if !key.levels.is_empty() {
                        labels.push(("levels", key.levels.clone()));
                    }
                    (labels, value * scale)
                })
                .collect();
            if !values.is_empty() {
                all.push(Gauges { name, help, values });
            }
        }
        scrape::text(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn a_pass_that_takes_longer_skips_turns_and_never_overlaps() {
        let every = Nanos(10_000_000_000);
        let of = |seconds| turns_missed(Duration::from_secs(seconds), every);
        assert_eq!([0, 9, 10, 19, 35].map(of), [0, 0, 1, 1, 3]);
    }

    /// What a pass between three hosts raises with `goodput<500Mbit`, and whether that was before its last test.
    fn raised(events: &[Event]) -> (Vec<String>, bool) {
        let rule =
            analysis::history::Rule { condition: "goodput<500Mbit".parse().unwrap(), hosts: None, text: "slow".into() };
        let mut alerts = Alerts::new("w", vec![rule], 1);
        let (mut said, at) = (Vec::new(), std::cell::Cell::new(0));
        let mut raise = |event: AlertEvent| said.push((at.get(), event.text));
        let mut begun = Begun::new(&mut alerts, &mut raise);
        for event in events {
            begun.event(event).unwrap();
            at.set(at.get() + 1);
        }
        let is_judged = begun.is_judged;
        (said.into_iter().map(|(at, text)| format!("{at}: {}", text.plain())).collect(), is_judged)
    }

    /// The first events of a pass of two rounds from a to b, a to c and b to a; nothing was measured to c.
    fn measured(mbits: f64) -> Vec<Event> {
        let cell = |id: u32, from: &str, to: &str| {
            let levels = [("from", from), ("to", to)].map(|(name, host)| (name.to_owned(), host.to_owned()));
            Cell { levels: levels.into(), ..Cell::new(id, model::Spec::new("tcp", Pattern::Stream)) }
        };
        let cells = vec![cell(0, "a", "b"), cell(1, "a", "c"), cell(2, "b", "a")];
        let hosts: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let plan = model::Plan { from: hosts.clone(), to: hosts, ..model::Plan::default() };
        let stopping = model::Stopping { max_trials: 2, ..model::Stopping::default() };
        let header = RunHeader { cells, stopping, plan: Some(Box::new(plan)), ..RunHeader::default() };
        let trial = |cell: u32, pass: u32| {
            let bytes = (mbits * 1e6 / 8.0) as u64;
            let far = model::EndTally { bytes_received: bytes, receiving_ns: 1_000_000_000, ..Default::default() };
            let (near, ledger) = Default::default();
            let value = Some(mbits * 1e6);
            Event::Trial(Trial { cell, pass, position: 0, near, far: far.into(), ledger, value, verdicts: Vec::new() })
        };
        std::iter::once(Event::Run(header))
            .chain([(0, 0), (2, 1), (2, 2), (0, 3)].map(|(cell, pass)| trial(cell, pass)))
            .collect()
    }

    fn outcomes(events: &[Event]) -> Vec<Event> {
        let Event::Run(header) = &events[0] else { panic!("a run") };
        let of = |cell: &Cell| {
            let own = events.iter().filter_map(|event| match event {
                Event::Trial(trial) if trial.cell == cell.id => Some(trial.clone()),
                _ => None,
            });
            Event::Outcome(analysis::outcome(cell, own.collect(), &header.stopping, analysis::Context::default()))
        };
        header.cells.iter().map(of).collect()
    }

    #[test]
    fn an_alert_leaves_after_the_last_test_of_its_pair() {
        let (said, is_judged) = raised(&measured(400.0));
        let expected = [
            "3: b → a: goodput 400 Mbit/s, below 500 Mbit/s (slow)",
            "4: a → b: goodput 400 Mbit/s, below 500 Mbit/s (slow)",
        ];
        assert_eq!((said, is_judged), (expected.map(str::to_owned).into(), false));
        assert_eq!(raised(&measured(600.0)).0, [""; 0]);
    }

    #[test]
    fn a_host_without_a_value_is_told_before_anything_is_tested_again_and_not_in_an_interrupted_pass() {
        let mut events = measured(600.0);
        events.extend(outcomes(&events));
        assert_eq!(raised(&events).0, [""; 0]);
        events.push(Event::Phase(model::Phase::default()));
        let (said, is_judged) = raised(&events);
        assert_eq!((said.len(), is_judged), (1, true), "{said:?}");
        assert!(said[0].starts_with("8: c has no value"), "{said:?}");
    }

    #[test]
    fn a_host_without_a_value_is_told_once_though_its_pass_was_killed_while_it_was_tested_again() {
        let events = measured(600.0);
        let Event::Run(header) = &events[0] else { panic!("a run") };
        let outcomes: Vec<model::Outcome> = outcomes(&events)
            .into_iter()
            .filter_map(|event| if let Event::Outcome(outcome) = event { Some(outcome) } else { None })
            .collect();
        let raised = |change: &dyn Fn(&mut Loaded)| {
            let run = Run { outcomes: outcomes.clone(), ..Run::new(header.clone()) };
            let mut loaded = Loaded { run, orphans: Vec::new(), damaged: Vec::new() };
            change(&mut loaded);
            let mut alerts = Alerts::new("w", Vec::new(), 1);
            judge_again(&mut alerts, &loaded);
            alerts.raised().map(|alert| alert.from.clone()).collect::<Vec<String>>()
        };
        assert_eq!(raised(&|_| {}), ["c"], "it was told when the rounds were over");
        assert_eq!(raised(&|loaded| loaded.run.outcomes.truncate(1)), [""; 0], "killed in a round");
        let interrupted = model::Ending { how: "interrupted".into(), ..model::Ending::default() };
        assert_eq!(raised(&|loaded| loaded.run.ending = Some(interrupted.clone())), [""; 0]);
    }

    #[test]
    fn what_is_tested_again_ends_before_the_next_turn() {
        let until = |every: u64| {
            let (now, due) = (engine::unix_ns(), Instant::now());
            retests_until(due, Duration::from_secs(every)).saturating_sub(now) / 1_000_000_000
        };
        assert!((57..60).contains(&until(60)) && (5..8).contains(&until(8)), "{} {}", until(60), until(8));
    }

    #[test]
    fn a_series_is_named_after_its_fleet() {
        let file = tempfile::Builder::new().prefix("lab").suffix(".toml").tempfile().unwrap();
        let stem = file.path().file_stem().unwrap().to_str().unwrap().to_owned();
        assert_eq!(series_name(file.path().to_str().unwrap()), format!("watch-{stem}"));
        assert_eq!(series_name("slurm:node[1-4]"), "watch-slurm:node[1-4]");
    }
}
