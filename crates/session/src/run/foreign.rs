//! Runs with the server of another program as the far end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use control::ControlError;
use control::coordinator::{Cancel, Foreign, ForeignCurve, Schedule, run_foreign};
use control::proto::message::Done;
use host::{RealSys, Watch, WatchOptions};
use model::{Cell, EndPass, Event, EventSink, Inventory, Live, RunHeader, Spec, Stop, Stopping, Tool};
use peers::{Curve, InteropError, Login, PeerProtocol, Server, Sides, TrialObserver};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::Here;
use super::header::header;
use super::pair::{Cells, local_near};
use super::request::{Hosts, Request};
use crate::Failure;

/// Another program, and the host of its server.
#[derive(Clone)]
struct Far {
    program: &'static dyn PeerProtocol,
    host: String,
    login: Option<Arc<Login>>,
}

/// Refuses measurements that the other program does not support.
pub(super) fn check(
    name: &str,
    specs: &[Spec],
    schedule: &Schedule,
    has_login: bool,
    hosts: &Hosts,
) -> Result<(), Failure> {
    let program = peers::protocol(name)?;
    match schedule {
        Schedule::Curve(_) => program.check_curve(specs)?,
        _ => specs.iter().try_for_each(|spec| program.check(spec))?,
    }
    if has_login {
        program.check_login()?;
    }
    if hosts.from.is_some() {
        return Err(Failure::usage(format!(
            "`from` with `speak {name}`: thru connects to {name} from this host; omit `from`"
        )));
    }
    Ok(())
}

/// Measures. The error of a run that has begun is returned as a value.
pub(super) async fn measure(
    request: &Request,
    (specs, rule, schedule): Cells<'_>,
    program: &'static dyn PeerProtocol,
    login: Option<Arc<Login>>,
    here: &mut Here<'_>,
) -> Result<Option<ControlError>, Failure> {
    let Some(host) = request.hosts.host.clone() else {
        let name = program.name();
        return Err(Failure::usage(format!(
            "`speak {name}` needs a far host: `thru {} HOST --speak {name}`",
            request.kind
        )));
    };
    here.sinks.status("connecting");
    let near = local_near(&here.agents).await?;
    let mut far = Far { program, host: host.clone(), login };
    let version = match program.version() {
        Some(version) => version.to_owned(),
        None => far.pilot_trial(&specs[0], &here.cancel).await?,
    };
    let begun = header(request, &near, &near)?;
    let specs = timed(specs, rule, schedule);
    let header = RunHeader {
        far: Inventory::default(),
        target: Some(host),
        stopping: rule.clone(),
        cells: specs.into_iter().zip(0..).map(|(spec, id)| Cell::new(id, spec)).collect(),
        tool: Tool { far_version: version, far_clock_ns: 0.0, ..begun.tool },
        ..begun
    };
    let (_, failed) = run_foreign(&mut far, &header, &mut here.sinks, here.cancel.clone()).await;
    near.release().await;
    Ok(failed)
}

/// Default length of the longest trial of a size, ns, as in NetPIPE.
const TRIAL_NS: u64 = 100_000_000;
/// Trials of a size, as in NetPIPE.
const TRIALS: u64 = 3;

/// The specs. Those of a curve get the length of their trials now, since the other program cannot change it later.
fn timed(specs: &[Spec], rule: &Stopping, schedule: &Schedule) -> Vec<Spec> {
    let Schedule::Curve(plan) = schedule else { return specs.to_vec() };
    let points = specs.len().max(1) as u64;
    let share = rule.budget_ns.map_or(TRIAL_NS, |budget| (budget / points / TRIALS).min(TRIAL_NS));
    let stop = Stop::AboutNs(plan.leg_ns.unwrap_or(share).max(LEAST_TRIAL_NS));
    specs.iter().map(|spec| Spec { stop, ..spec.clone() }).collect()
}

/// The shortest trial of a size, ns.
const LEAST_TRIAL_NS: u64 = 1_000_000;

impl Far {
    /// A short trial: whether the program is there and accepts such a test. Returns its version.
    async fn pilot_trial(&mut self, spec: &Spec, cancel: &Cancel) -> Result<String, Failure> {
        let brief = self.program.pilot(spec);
        let (sides, _) = self.measure(&brief, &mut |_| Ok(()), &mut cancel.clone()).await?;
        Ok(sides?.version)
    }

    fn server(&self) -> Server<'_> {
        Server { host: &self.host, login: self.login.as_deref() }
    }

    /// One trial.
    async fn measure(
        &self,
        spec: &Spec,
        live: &mut dyn FnMut(Live) -> Result<(), model::SinkError>,
        cancel: &mut Cancel,
    ) -> Result<(Result<Sides, InteropError>, EndPass), ControlError> {
        let (far, own) = (self.clone(), spec.clone());
        let work = move |live_progress: &mut dyn TrialObserver, flag: &AtomicBool| {
            far.program.measure(&own, &far.server(), live_progress, flag)
        };
        self.run_blocking(spec, live, cancel, work).await
    }

    /// Runs `work` in a blocking thread. Returns its result, and this host's counters over that time.
    async fn run_blocking<T: Send + 'static>(
        &self,
        spec: &Spec,
        live: &mut dyn FnMut(Live) -> Result<(), model::SinkError>,
        cancel: &mut Cancel,
        work: impl FnOnce(&mut dyn TrialObserver, &AtomicBool) -> Result<T, InteropError> + Send + 'static,
    ) -> Result<(Result<T, InteropError>, EndPass), ControlError> {
        let (sender, mut reports) = unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (spec, flag) = (spec.clone(), stop.clone());
        let mut task = tokio::task::spawn_blocking(move || {
            let mut live_progress = LiveProgress { spec: &spec, sender, watch: None, host: EndPass::default() };
            let result = work(&mut live_progress, &flag);
            (result, live_progress.host)
        });
        let mut running = true;
        loop {
            tokio::select! {
                Some(report) = reports.recv() => live(report)?,
                _ = cancel.wait_for(|cancelled| *cancelled), if running => {
                    stop.store(true, Ordering::SeqCst);
                    running = false;
                }
                done = &mut task => {
                    return done.map_err(|error| ControlError::Foreign(format!("the measuring thread failed: {error}")));
                }
            }
        }
    }
}

impl Foreign for Far {
    async fn trial(
        &mut self,
        number: u32,
        spec: &Spec,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> Result<[Done; 2], ControlError> {
        let mut live = |report| sink.event(&Event::live(number, "near", report));
        let (sides, host) = self.measure(spec, &mut live, cancel).await?;
        let Sides { mut near, far, failure, elapsed_ns, .. } = into_control_error(sides)?;
        if let (Some(spent), Some(cpu)) = (near.spent.as_mut(), &host.cpu) {
            spent.host_ns = Some(cpu.busy_ns());
            spent.host_resolution_ns = Some(cpu.resolution_ns);
        }
        let near = Done { tallies: vec![near], failure, elapsed_ns, host, overlapped_by: 0 };
        Ok([near, Done { tallies: vec![far], ..Done::default() }])
    }

    async fn curve(&mut self, points: &[Spec], cancel: &mut Cancel) -> Result<ForeignCurve, ControlError> {
        let Some(first) = points.first() else { return Err(ControlError::Foreign("a curve without a size".into())) };
        let (far, own) = (self.clone(), points.to_vec());
        let work = move |live_progress: &mut dyn TrialObserver, flag: &AtomicBool| {
            far.program.curve(&own, &far.server(), live_progress, flag)
        };
        let (curve, host) = self.run_blocking(first, &mut |_| Ok(()), cancel, work).await?;
        let Curve { points, failure, elapsed_ns } = into_control_error(curve)?;
        let trials = points.iter().map(Vec::len).collect();
        let (near, far): (Vec<_>, Vec<_>) = points.into_iter().flatten().map(|[near, far]| (near, far)).unzip();
        let near = Done { tallies: near, failure, elapsed_ns, host, overlapped_by: 0 };
        Ok(ForeignCurve { trials, ends: [near, Done { tallies: far, ..Done::default() }] })
    }
}

/// Distinguishes an interruption by the user from a failure of the other program.
fn into_control_error<T>(result: Result<T, InteropError>) -> Result<T, ControlError> {
    result.map_err(|error| match error {
        InteropError::Interrupted => ControlError::Interrupted,
        error => ControlError::Foreign(error.to_string()),
    })
}

/// Forwards the progress of a trial from the thread that runs it.
struct LiveProgress<'a> {
    spec: &'a Spec,
    sender: UnboundedSender<Live>,
    watch: Option<Watch>,
    host: EndPass,
}

impl TrialObserver for LiveProgress<'_> {
    fn starting(&mut self, setup_ns: u64) {
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
        // The receiver is gone if the run has failed.
        let _ = self.sender.send(report);
    }

    fn stopped(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.finish(&mut self.host);
        }
    }
}
