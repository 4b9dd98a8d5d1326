//! `--speak`: runs whose far end is another program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use control::ControlError;
use control::agent::Agent;
use control::coordinator::{Cancel, End, Foreign, ForeignCurve, Pair, Schedule, Target, run_foreign};
use control::proto::message::Done;
use host::{RealSys, Watch, WatchOptions};
use interop::{Curve, InteropError, Login, PeerProtocol, Server, Sides, TrialObserver};
use model::{EndPass, Event, EventSink, Interval, Inventory, Run, RunHeader, Spec, Stop};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::citation;
use crate::failure::Failure;
use crate::measure::{self, Job, Sinks};
use crate::sinks::{Collect, Live, Progress};

/// A program to measure with, and where its server is.
#[derive(Clone)]
struct Far {
    spoken: &'static dyn PeerProtocol,
    host: String,
    login: Option<Arc<Login>>,
}

/// Refuses what cannot be asked of another program.
pub fn check(job: &Job<'_>, name: &str) -> Result<&'static dyn PeerProtocol, Failure> {
    let spoken = interop::protocol(name)?;
    match job.schedule {
        Schedule::Curve(_) => spoken.check_curve(&job.specs)?,
        _ => job.specs.iter().try_for_each(|spec| spoken.check(spec))?,
    }
    if job.login.is_some() {
        spoken.check_login()?;
    }
    if job.peer.from.is_some() {
        return Err(Failure::usage(format!(
            "--from with --speak {name}: {name} is spoken to from this host; leave it out"
        )));
    }
    Ok(spoken)
}

/// Measures; the error of a run that was begun comes back as a value.
pub async fn conduct(job: &Job<'_>, spoken: &'static dyn PeerProtocol) -> Result<(Run, Option<Failure>), Failure> {
    let Some(host) = job.peer.host.clone() else {
        let name = spoken.name();
        return Err(Failure::usage(format!("--speak {name} needs a far host: thru {} HOST --speak {name}", job.kind)));
    };
    let recorder = measure::recorder(job.output)?;
    let cancel = measure::watch_for_interrupts()?;
    let mut progress = (!job.output.quiet && !job.output.live).then(Progress::new);
    if let Some(progress) = &mut progress {
        progress.say("connecting");
    }
    let directory = measure::socket_directory()?;
    let mut options = measure::local_options(directory.path())?;
    options.selftest = citation::from_store(job.output.store.clone());
    let near = End::connect(Target::Local(&Agent::local(options))).await?;
    let mut far = Far { spoken, host: host.clone(), login: job.login.clone() };
    let version = match spoken.version() {
        Some(version) => version.to_owned(),
        None => far.first_look(&job.specs[0], &cancel).await?,
    };
    let pair = Pair { near, far: None };
    let mut header: RunHeader = measure::header(job, specs(job), &pair)?;
    header.far = Inventory::default();
    header.target = Some(host);
    (header.tool.far_version, header.tool.far_clock_ns) = (version, 0.0);
    let mut collect = Collect::default();
    let mut sinks = Sinks::new(&mut collect, progress, job.output.live.then_some(Live), recorder);
    let (_, failed) = run_foreign(&mut far, &header, &mut sinks, cancel).await;
    pair.near.release().await;
    let run = collect.0.ok_or_else(|| Failure::other("the run did not start"))?;
    Ok((run, failed.filter(|error| !matches!(error, ControlError::Interrupted)).map(Failure::from)))
}

/// The longest trial of a point unless told otherwise, ns: NetPIPE's own.
const TRIAL_NS: u64 = 100_000_000;
/// Trials of a point, in NetPIPE as well.
const TRIALS: u64 = 3;

/// The cells; of a curve with the length of their trials, for nobody is there to change it on the way.
fn specs(job: &Job<'_>) -> Vec<Spec> {
    let Schedule::Curve(plan) = &job.schedule else { return job.specs.clone() };
    let points = job.specs.len().max(1) as u64;
    let share = job.rule.budget_ns.map_or(TRIAL_NS, |budget| (budget / points / TRIALS).min(TRIAL_NS));
    let stop = Stop::AboutNs(plan.leg_ns.unwrap_or(share).max(LEAST_TRIAL_NS));
    job.specs.iter().map(|spec| Spec { stop, ..spec.clone() }).collect()
}

/// The shortest trial of a point, ns.
const LEAST_TRIAL_NS: u64 = 1_000_000;

impl Far {
    /// A moment's trial: whether the program is there and takes such a test, and which version it is.
    async fn first_look(&mut self, spec: &Spec, cancel: &Cancel) -> Result<String, Failure> {
        let brief = self.spoken.pilot(spec);
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
        live: &mut dyn FnMut(Interval) -> Result<(), model::SinkError>,
        cancel: &mut Cancel,
    ) -> Result<(Result<Sides, InteropError>, EndPass), ControlError> {
        let (far, own) = (self.clone(), spec.clone());
        let work = move |live_progress: &mut dyn TrialObserver, flag: &AtomicBool| {
            far.spoken.measure(&own, &far.server(), live_progress, flag)
        };
        self.apart(spec, live, cancel, work).await
    }

    /// What `work` does in a thread of its own; this end's host around it.
    async fn apart<T: Send + 'static>(
        &self,
        spec: &Spec,
        live: &mut dyn FnMut(Interval) -> Result<(), model::SinkError>,
        cancel: &mut Cancel,
        work: impl FnOnce(&mut dyn TrialObserver, &AtomicBool) -> Result<T, InteropError> + Send + 'static,
    ) -> Result<(Result<T, InteropError>, EndPass), ControlError> {
        let (tell, mut reported) = unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (spec, flag) = (spec.clone(), stop.clone());
        let mut task = tokio::task::spawn_blocking(move || {
            let mut live_progress = LiveProgress { spec: &spec, tell, watch: None, host: EndPass::default() };
            let brought = work(&mut live_progress, &flag);
            (brought, live_progress.host)
        });
        let mut wanted = true;
        loop {
            tokio::select! {
                Some(interval) = reported.recv() => live(interval)?,
                _ = cancel.wait_for(|wanted| *wanted), if wanted => {
                    stop.store(true, Ordering::SeqCst);
                    wanted = false;
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
        let mut live = |interval| sink.event(&Event::Interval { pass: number, end: "near".into(), interval });
        let (sides, host) = self.measure(spec, &mut live, cancel).await?;
        let Sides { mut near, far, failure, elapsed_ns, .. } = brought(sides)?;
        if let (Some(spent), Some(cpu)) = (near.spent.as_mut(), &host.cpu) {
            spent.host_ns = Some(cpu.busy_ns());
            spent.host_resolution_ns = Some(cpu.resolution_ns);
        }
        let near = Done { tallies: vec![near], failure, elapsed_ns, host, overlapped_by: 0 };
        Ok([near, Done { tallies: vec![far], ..Done::default() }])
    }

    async fn curve(&mut self, points: &[Spec], cancel: &mut Cancel) -> Result<ForeignCurve, ControlError> {
        let Some(first) = points.first() else { return Err(ControlError::Foreign("a curve without a point".into())) };
        let (far, own) = (self.clone(), points.to_vec());
        let work = move |live_progress: &mut dyn TrialObserver, flag: &AtomicBool| {
            far.spoken.curve(&own, &far.server(), live_progress, flag)
        };
        let (curve, host) = self.apart(first, &mut |_| Ok(()), cancel, work).await?;
        let Curve { points, failure, elapsed_ns } = brought(curve)?;
        let trials = points.iter().map(Vec::len).collect();
        let (near, far): (Vec<_>, Vec<_>) = points.into_iter().flatten().map(|[near, far]| (near, far)).unzip();
        let near = Done { tallies: near, failure, elapsed_ns, host, overlapped_by: 0 };
        Ok(ForeignCurve { trials, ends: [near, Done { tallies: far, ..Done::default() }] })
    }
}

/// An interruption is the user's wish, the rest is the other program's doing.
fn brought<T>(result: Result<T, InteropError>) -> Result<T, ControlError> {
    result.map_err(|error| match error {
        InteropError::Interrupted => ControlError::Interrupted,
        error => ControlError::Foreign(error.to_string()),
    })
}

/// Hears how a trial goes, on the thread that makes it.
struct LiveProgress<'a> {
    spec: &'a Spec,
    tell: UnboundedSender<Interval>,
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

    fn interval(&mut self, interval: Interval) {
        // Nobody listens any more where the run has failed.
        let _ = self.tell.send(interval);
    }

    fn stopped(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.finish(&mut self.host);
        }
    }
}
