//! Runs with the server of another program as the far end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use command::Failure;
use control::ControlError;
use control::coordinator::{self, Cancel, ConnectedFleet, FarProgram, Member, ProgramTest, Schedule, Unfixed};
use host::{RealSys, Watch, WatchOptions};
use model::{
    BothEnds, Cell, EndPass, EndResult, EndTally, Event, EventSink, HostSettings, Inventory, Leg, Live, Program,
    RunHeader, RunKind, Spec, Stop, Stopping, Tool,
};
use peers::{Curve, CurveLimits, Login, OpenCurve, ProgramError, ProgramProtocol, ProgramServer, Sides, TrialObserver};
use protocol::coordinator::DialogueError;
use text::{Said, Text, say};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use vec1::Vec1;

use super::header::header;
use super::pair::{Cells, local_near};
use super::request::{Hosts, Request};
use super::{Here, path_only};

/// Another program, and the host of its server.
#[derive(Clone)]
struct Peer {
    program: &'static dyn ProgramProtocol,
    host: String,
    login: Option<Arc<Login>>,
}

/// The far end of a run.
pub(super) struct Far {
    peer: Peer,
    /// It has completed a test.
    tested: bool,
    /// The first trial, if it began before the run.
    first: Option<Underway<Sides>>,
    /// The session of the curve, if it was opened before the run.
    opened: Option<Box<dyn OpenCurve>>,
}

/// Refuses measurements that the other program does not support.
pub(super) fn check(
    program: Program,
    specs: &[Spec],
    schedule: &Schedule,
    has_login: bool,
    hosts: &Hosts,
) -> Result<(), Failure> {
    let name = program.name();
    let program = peers::protocol(program);
    match schedule {
        Schedule::Curve(_) => program.check_curve(specs)?,
        _ => specs.iter().try_for_each(|spec| program.check(spec))?,
    }
    if has_login {
        program.check_login()?;
    }
    if hosts.from.is_some() {
        return Err(Failure::usage(say!(
            "`--from` with `--speak {name}`: thru connects to {name} from this host; omit `--from`"
        )));
    }
    Ok(())
}

/// Measures. The error of a run that has begun is returned as a value.
pub(super) async fn measure(
    request: &Request,
    (specs, rule, schedule): Cells<'_>,
    program: &'static dyn ProgramProtocol,
    login: Option<Arc<Login>>,
    here: &mut Here<'_>,
) -> Result<Option<ControlError>, Failure> {
    let Some(host) = request.hosts.host.clone() else {
        let name = program.name();
        return Err(Failure::usage(say!(
            "`--speak {name}` needs a far host: `thru {} HOST --speak {name}`",
            request.kind
        )));
    };
    here.sinks.status("connecting");
    let mut near = local_near(&here.agents).await?;
    let mut far = Far::new(program, host.clone(), login);
    let specs = timed(specs, rule, schedule);
    let is_check = request.kind == RunKind::Check;
    if is_check && specs.first().is_point() {
        // Its server ends after one connection, so the look for it cannot be another one.
        far.open_curve(&specs, &mut here.cancel.clone()).await?;
    }
    let of_path = (is_check || matches!(schedule, Schedule::Sequence(_))) && !request.hosts.no_path;
    // Before a trial fills the queues of the path.
    let path = if of_path { path_only::probe(&mut near, &host, request, here).await? } else { None };
    let version = match program.version() {
        Some(version) => version.to_owned(),
        None if rule.max_trials == 1 && program.may_serve_once() => {
            // A pilot trial would be the one test of such a server. The run begins when this trial moves data, so
            // that a refusal is known before.
            far.first = Some(far.begin_first(specs.first(), &mut here.cancel.clone()).await?);
            program.name().to_owned()
        }
        None => far.pilot_trial(specs.first(), &here.cancel).await?,
    };
    let begun = header(request, &near.facts, &near.facts)?;
    let mut header = RunHeader {
        far: Inventory::default(),
        target: Some(host.clone()),
        stopping: rule.clone(),
        cells: specs.into_iter().zip(0..).map(|(spec, id)| Cell::new(id, spec)).collect(),
        tool: Tool { far_version: version, far_clock_ns: 0.0, ..begun.tool },
        ..begun
    };
    if let Some(facts) = path {
        control::coordinator::note_path(facts, &mut header.near, &mut header.path_outbound);
        coordinator::fit_to_path(&mut header, schedule);
    }
    let schedule = match schedule {
        Schedule::Curve(_) => Schedule::Whole,
        Schedule::Sequence(unfixed) => Schedule::Sequence(*unfixed),
        _ => Schedule::Single(Unfixed::default()),
    };
    let members = vec![Member::agent(near), Member::program(far)];
    let mut fleet = ConnectedFleet::new(members, request.kind.name());
    let order = coordinator::scheduled(header, &schedule);
    let (failed, left) = fleet.run(order, &mut here.sinks, &mut here.cancel.clone()).await;
    left.into_iter().for_each(|line| here.sinks.note(line));
    fleet.release().await;
    Ok(failed)
}

/// The longest trial of a size, ns, as in NetPIPE.
const TRIAL_NS: u64 = 200_000_000;
/// Trials of a size, as in NetPIPE.
const TRIALS: u64 = 3;

/// The specs. Those of a curve get the length of their trials now, since the other program cannot change it later.
fn timed(specs: &Vec1<Spec>, rule: &Stopping, schedule: &Schedule) -> Vec1<Spec> {
    let Schedule::Curve(plan) = schedule else { return specs.clone() };
    let points = specs.len().max(1) as u64;
    let share = rule.budget_ns.map_or(TRIAL_NS, |budget| (budget / points / TRIALS).min(TRIAL_NS));
    let stop = Stop::AboutNs(plan.leg_ns.unwrap_or(share).max(LEAST_TRIAL_NS));
    specs.clone().mapped(|spec| Spec { stop, ..spec })
}

/// The time limits of a check's curve: with the probes of the path it takes less than 15 s.
const CHECK: CurveLimits = CurveLimits {
    connect: Duration::from_secs(2),
    answer: Duration::from_secs(2),
    whole: Some(Duration::from_millis(8_500)),
};

/// The shortest trial of a size, ns.
const LEAST_TRIAL_NS: u64 = 1_000_000;

impl Peer {
    fn server(&self) -> ProgramServer<'_> {
        ProgramServer { host: &self.host, login: self.login.as_deref() }
    }
}

impl Far {
    /// The server of a program at `host`, with its version. A short trial of `spec` shows that it is there, unless
    /// the protocol alone determines the version.
    pub(super) async fn reach(
        program: Program,
        host: &str,
        spec: &Spec,
        cancel: &Cancel,
    ) -> Result<(Self, String), Failure> {
        let program = peers::protocol(program);
        let mut far = Self::new(program, host.to_owned(), None);
        let version = match program.version() {
            Some(version) => version.to_owned(),
            None => far.pilot_trial(&Spec { settings: HostSettings::default(), ..spec.clone() }, cancel).await?,
        };
        Ok((far, version))
    }

    fn new(program: &'static dyn ProgramProtocol, host: String, login: Option<Arc<Login>>) -> Self {
        Self { peer: Peer { program, host, login }, tested: false, first: None, opened: None }
    }

    /// A short trial: whether the program is there and accepts such a test. Returns its version.
    async fn pilot_trial(&mut self, spec: &Spec, cancel: &Cancel) -> Result<String, Failure> {
        let brief = self.peer.program.pilot(spec);
        let (sides, _) = self.begin(&brief).finish(&mut |_| Ok(()), &mut cancel.clone()).await?;
        let version = sides?.version;
        self.tested = true;
        Ok(version)
    }

    /// The first trial, from when its data flows.
    async fn begin_first(&self, spec: &Spec, cancel: &mut Cancel) -> Result<Underway<Sides>, Failure> {
        let mut first = self.begin(spec);
        if !first.starts(cancel).await {
            let (sides, _) = first.finish(&mut |_| Ok(()), cancel).await?;
            sides?;
            return Err(ControlError::Program("the trial ended before it began".into()).into());
        }
        Ok(first)
    }

    /// Opens the session of a check's curve. Whatever does not answer as the program does is not there.
    async fn open_curve(&mut self, points: &Vec1<Spec>, cancel: &mut Cancel) -> Result<(), Failure> {
        let (peer, own) = (self.peer.clone(), points.clone());
        let opening =
            Underway::begin(points.first(), move |_, flag| peer.program.open_curve(&own, &peer.server(), CHECK, flag));
        let (opened, _) = opening.finish(&mut |_| Ok(()), cancel).await?;
        self.opened = Some(opened.map_err(|error| match error {
            ProgramError::Interrupted | ProgramError::Unsupported { .. } => error.into(),
            other => Failure::unreached(other),
        })?);
        Ok(())
    }

    /// Begins a trial.
    fn begin(&self, spec: &Spec) -> Underway<Sides> {
        let (peer, own) = (self.peer.clone(), spec.clone());
        Underway::begin(spec, move |live_progress, flag| {
            peer.program.measure(&own, &peer.server(), live_progress, flag)
        })
    }
}

/// Work in a blocking thread.
struct Underway<T> {
    task: JoinHandle<(Result<T, ProgramError>, EndPass)>,
    reports: Receiver<Progress>,
    /// Set to end it.
    stop: Arc<AtomicBool>,
}

/// Reports of a trial that may wait to be shown.
const MOST_REPORTS: usize = 64;

/// What the thread reports of its work.
enum Progress {
    Started,
    Live(Live),
}

impl<T: Send + 'static> Underway<T> {
    fn begin(
        spec: &Spec,
        work: impl FnOnce(&mut dyn TrialObserver, &AtomicBool) -> Result<T, ProgramError> + Send + 'static,
    ) -> Self {
        let (sender, reports) = channel(MOST_REPORTS);
        let stop = Arc::new(AtomicBool::new(false));
        let (spec, flag) = (spec.clone(), stop.clone());
        let task = tokio::task::spawn_blocking(move || {
            let mut live_progress = LiveProgress { spec: &spec, sender, watch: None, host: EndPass::default() };
            let result = work(&mut live_progress, &flag);
            (result, live_progress.host)
        });
        Self { task, reports, stop }
    }

    /// Waits until its data flows; false if it ends before.
    async fn starts(&mut self, cancel: &mut Cancel) -> bool {
        let mut running = true;
        loop {
            tokio::select! {
                report = self.reports.recv() => return report.is_some(),
                _ = cancel.wait_for(|cancelled| *cancelled), if running => {
                    self.stop.store(true, Ordering::SeqCst);
                    running = false;
                }
            }
        }
    }

    /// Waits for its end. Returns its result, and this host's counters over that time.
    async fn finish(
        mut self,
        live: &mut dyn FnMut(Live) -> Result<(), model::SinkError>,
        cancel: &mut Cancel,
    ) -> Result<(Result<T, ProgramError>, EndPass), ControlError> {
        let mut running = true;
        loop {
            tokio::select! {
                Some(report) = self.reports.recv() => if let Progress::Live(report) = report {
                    live(report)?;
                },
                _ = cancel.wait_for(|cancelled| *cancelled), if running => {
                    self.stop.store(true, Ordering::SeqCst);
                    running = false;
                }
                done = &mut self.task => {
                    return done.map_err(|error| ControlError::Program(format!("the measuring thread failed: {error}").into()));
                }
            }
        }
    }
}

impl FarProgram for Far {
    fn test<'a>(
        &'a mut self,
        number: u32,
        spec: &'a Spec,
        legs: &'a [Leg],
        sink: &'a mut dyn EventSink,
        cancel: &'a mut Cancel,
    ) -> Pin<Box<dyn Future<Output = ProgramTest> + 'a>> {
        Box::pin(async move {
            if spec.is_point() {
                let points = legs.iter().map(|leg| Spec { block: leg.block, stop: leg.stop, ..spec.clone() });
                return self.curve(points.collect(), cancel).await;
            }
            let both = self.trial(number, spec, sink, cancel).await?;
            Ok((Box::new(both), Vec::new()))
        })
    }
}

impl Far {
    /// One trial over fresh connections: the results of the near end, and of the far end as the program reported it.
    async fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<BothEnds, ControlError> {
        let mut live = |report| sink.event(&Event::live(number, "near", report));
        let trial = self.first.take().unwrap_or_else(|| self.begin(spec));
        let (sides, host) = trial.finish(&mut live, cancel).await?;
        let sides = match sides {
            Err(error @ ProgramError::Unreachable { .. }) if self.tested && self.peer.program.may_serve_once() => {
                let name = self.peer.program.name();
                return Err(ControlError::Program(say!(
                    "{error}; if {name} there ends after one test (-1), use `--trials 1`"
                )));
            }
            sides => into_control_error(sides)?,
        };
        self.tested = true;
        let Sides { mut near, far, failure, elapsed_ns, .. } = sides;
        if let (Some(spent), Some(cpu)) = (near.spent.as_mut(), &host.cpu) {
            spent.host_ns = Some(cpu.busy_ns());
            spent.host_resolution_ns = Some(cpu.resolution_ns);
        }
        Ok(both_ends(vec![near], vec![far], failure, elapsed_ns, host))
    }

    /// All points of a curve over one control connection, with the number of trials of each.
    async fn curve(&mut self, points: Vec<Spec>, cancel: &mut Cancel) -> ProgramTest {
        let Some(first) = points.first() else { return Err(ControlError::Program("a curve without a size".into())) };
        let (peer, own, opened, wanted) = (self.peer.clone(), points.clone(), self.opened.take(), points.len());
        let curve = Underway::begin(first, move |live_progress, flag| {
            let opened = match opened {
                Some(opened) => opened,
                None => peer.program.open_curve(&own, &peer.server(), CurveLimits::default(), flag)?,
            };
            opened.measure(live_progress, flag)
        });
        let (curve, host) = curve.finish(&mut |_| Ok(()), cancel).await?;
        let Curve { points, failure, elapsed_ns } = into_control_error(curve)?;
        // A program's own limit may have left out the last sizes.
        let mut trials: Vec<usize> = points.iter().map(Vec::len).collect();
        trials.resize(wanted, 0);
        let (near, far): (Vec<_>, Vec<_>) = points.into_iter().flatten().map(|[near, far]| (near, far)).unzip();
        Ok((Box::new(both_ends(near, far, failure, elapsed_ns, host)), trials))
    }
}

/// The results of a test with another program, which says nothing of its host.
fn both_ends(
    near: Vec<EndTally>,
    far: Vec<EndTally>,
    failure: Option<Text>,
    elapsed_ns: u64,
    host: EndPass,
) -> BothEnds {
    let near = EndResult { tallies: near, failure: failure.clone(), elapsed_ns, host, overlapped_by: 0 };
    BothEnds { near, far: Some(EndResult { tallies: far, ..EndResult::default() }), failure }
}

/// Distinguishes an interruption by the user from a failure of the other program.
fn into_control_error<T>(result: Result<T, ProgramError>) -> Result<T, ControlError> {
    result.map_err(|error| match error {
        ProgramError::Interrupted => DialogueError::Interrupted.into(),
        error => ControlError::Program(error.say()),
    })
}

/// Forwards the progress of a trial from the thread that runs it.
struct LiveProgress<'a> {
    spec: &'a Spec,
    sender: Sender<Progress>,
    watch: Option<Watch>,
    host: EndPass,
}

impl TrialObserver for LiveProgress<'_> {
    fn starting(&mut self, setup_ns: u64) {
        let _ = self.sender.try_send(Progress::Started);
        self.host.setup_ns = setup_ns;
        self.watch = Some(Watch::start(
            Arc::new(RealSys),
            &WatchOptions {
                observe: self.spec.observe,
                interval_ns: self.spec.observe_interval_ns,
                processes: vec![("worker", std::process::id())],
                avoid: self.spec.near.pin.clone(),
            },
        ));
    }

    fn live(&mut self, report: Live) {
        // A screen that is this far behind shows fewer readings; the receiver is gone if the run has failed.
        let _ = self.sender.try_send(Progress::Live(report));
    }

    fn stopped(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.finish(&mut self.host);
        }
    }
}
