//! From a plan to a finished run: connects to its hosts, measures its cells, stores and prints them.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use analysis::plan::{PlannedCell, Slot};
use control::ControlError;
use control::agent::{Agent, Captures};
use control::coordinator::{self, End, Fleet, PlanSchedule, Target};
use control::proto::auth::Token;
use model::{Cell, Factor, FactorKind, Inventory, Pass, PlanEnd, Run, RunHeader, Spec, Tool, Trial};

use super::ParsedPlan;
use crate::citation;
use crate::failure::Failure;
use crate::flags::Output;
use crate::prepare::{self, local_options, socket_directory, token, watch_for_interrupts};
use crate::sinks::{Collect, Live, Progress, Sinks};

/// The earlier part of a continued run.
#[derive(Debug)]
pub struct Resumed {
    /// Its header, which does not change.
    pub header: RunHeader,
    /// All its trials.
    pub trials: Vec<Trial>,
    /// Its passes.
    pub passes: Vec<Pass>,
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanHost {
    /// This process, as the near end.
    LocalNear,
    /// This process, as the far end.
    LocalFar,
    /// An agent.
    Remote(String),
}

/// The slots of the cells, one for all sizes of a curve, and the hosts by the numbers that the slots use.
pub fn slots(cells: &[PlannedCell], specs: &[Spec]) -> Result<(Vec<Slot>, Vec<PlanHost>), Failure> {
    let mut hosts: Vec<PlanHost> = Vec::new();
    let mut number = |host: PlanHost| {
        hosts.iter().position(|other| *other == host).unwrap_or_else(|| {
            hosts.push(host);
            hosts.len() - 1
        })
    };
    let mut ends = Vec::with_capacity(cells.len());
    for (cell, spec) in cells.iter().zip(specs) {
        let named = |host: &Option<String>| host.clone().map(PlanHost::Remote);
        let transport = engine::transport::transport(spec.transport.as_str())?;
        ends.push(if transport.capabilities().single_ended {
            // Measured on the named host.
            (number(named(&cell.from).or(named(&cell.to)).unwrap_or(PlanHost::LocalNear)), None)
        } else {
            let near = number(named(&cell.from).unwrap_or(PlanHost::LocalNear));
            (near, Some(number(named(&cell.to).unwrap_or(PlanHost::LocalFar))))
        });
    }
    let count = hosts.len();
    let mut slots: Vec<Slot> = Vec::new();
    for (((cell, spec), (near, far)), id) in cells.iter().zip(specs).zip(ends).zip(0..) {
        // A number that no host has stands for "no far host".
        let far = far.unwrap_or(count + near);
        let of = |cell: &PlannedCell| (cell.combination, cell.from.clone(), cell.to.clone());
        let one_curve = |slot: &&mut Slot| spec.is_point() && of(&cells[slot.cell as usize]) == of(cell);
        match slots.last_mut().filter(one_curve) {
            Some(slot) => slot.sizes += 1,
            None => {
                let (plot, combination) = (cell.plot, cell.combination);
                slots.push(Slot { cell: id, sizes: 1, plot, combination, near, far });
            }
        }
    }
    Ok((slots, hosts))
}

/// Measures a plan, or the remaining part of it.
pub async fn conduct(
    parsed: &ParsedPlan,
    output: &Output,
    token_file: Option<&Path>,
    resumed: Option<Resumed>,
) -> Result<(Run, Option<Failure>), Failure> {
    let mut recorder = prepare::recorder(output)?;
    let token = token(token_file)?;
    let cancel = watch_for_interrupts()?;
    let mut progress = (!output.quiet && !output.live).then(Progress::new);
    let directory = socket_directory()?;
    let (mut local_near, mut local_far) = (local_options(directory.path())?, local_options(directory.path())?);
    for options in [&mut local_near, &mut local_far] {
        options.selftest = citation::from_store(output.store.clone());
        options.captures = Captures::AsRequested;
    }
    let agents = [Agent::local(local_near), Agent::local(local_far)];
    let (slots, hosts) = slots(&parsed.cells, &parsed.specs)?;
    let mut interrupted = cancel.clone();
    let reached = tokio::select! {
        reached = reach(parsed, &hosts, &agents, token.as_ref(), progress.as_mut()) => reached,
        _ = interrupted.wait_for(|stop| *stop) => Err(ControlError::Interrupted.into()),
    };
    let mut fleet = reached?;
    let mut collect = Collect::default();
    let (header, trials, passes) = match resumed {
        Some(resumed) => {
            if let Some(recorder) = &mut recorder {
                recorder.resume(&resumed.header.id)?;
            }
            collect.0 = Some(Run { passes: resumed.passes.clone(), ..Run::new(resumed.header.clone()) });
            (resumed.header, resumed.trials, resumed.passes)
        }
        None => {
            let mut specs = parsed.specs.clone();
            let status = |what: &str| {
                if let Some(progress) = &mut progress {
                    progress.status(what);
                }
            };
            coordinator::choose_engines(&mut fleet, &slots, &mut specs, &mut cancel.clone(), status).await?;
            (header(parsed, specs, output, &slots, &hosts, &fleet)?, Vec::new(), Vec::new())
        }
    };
    let schedule = PlanSchedule { plan: parsed.plan.clone(), slots, trials, passes };
    let mut sinks = Sinks::new(&mut collect, progress, output.live.then_some(Live), recorder);
    let (_, failed) = coordinator::run_plan(&mut fleet, &header, &schedule, &mut sinks, cancel).await;
    drop(sinks);
    fleet.release().await;
    let run = collect.0.ok_or_else(|| Failure::other("the run did not start"))?;
    let failed = failed.filter(|error| !matches!(error, ControlError::Interrupted)).map(Failure::from);
    Ok((run, failed))
}

/// Connects to every host and waits for its machine.
async fn reach(
    parsed: &ParsedPlan,
    hosts: &[PlanHost],
    [local_near, local_far]: &[Agent; 2],
    token: Option<&Token>,
    mut progress: Option<&mut Progress>,
) -> Result<Fleet, Failure> {
    let family = parsed.specs.first().map(|spec| spec.family).unwrap_or_default();
    let mut ends: Vec<End> = Vec::with_capacity(hosts.len());
    for host in hosts {
        if let (Some(progress), PlanHost::Remote(name)) = (&mut progress, host) {
            progress.status(&format!("connecting to {name}"));
        }
        let end = End::connect(match host {
            PlanHost::LocalNear => Target::Local(local_near),
            PlanHost::LocalFar => Target::Local(local_far),
            PlanHost::Remote(host) => Target::Remote { host, token, family },
        })
        .await?;
        if let Some(other) = ends.iter().find(|other| !end.instance.is_empty() && other.instance == end.instance) {
            return Err(Failure::usage(format!(
                "{} and {} are two names of the same agent: name it once",
                other.name, end.name
            )));
        }
        ends.push(end);
    }
    let mut fleet = Fleet::new(ends, "a plan");
    fleet
        .acquire(|name, ahead| {
            if let Some(progress) = &mut progress {
                progress.status(&format!("{name} is busy: {ahead} ahead in the queue"));
            }
        })
        .await?;
    Ok(fleet)
}

fn header(
    parsed: &ParsedPlan,
    specs: Vec<Spec>,
    output: &Output,
    slots: &[Slot],
    hosts: &[PlanHost],
    fleet: &Fleet,
) -> Result<RunHeader, Failure> {
    let started_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let entropy = u16::from_be_bytes(engine::random().map_err(Failure::other)?);
    let first = slots.first().ok_or_else(|| Failure::other("the plan has no cell"))?;
    let near = fleet.end(first.near).ok_or_else(|| Failure::other("the near host is not connected"))?;
    let far = fleet.end(first.far).unwrap_or(near);
    let inventory = |host: usize| fleet.end(host).map(|end| &end.inventory);
    let cells = parsed.cells.iter().zip(specs).zip(0..).map(|((planned, spec), id)| {
        let slot = slots.iter().find(|slot| slot.cells().contains(&id)).unwrap_or(first);
        let mut levels = planned.levels.clone();
        for factor in parsed.plan.factors.iter().filter(|factor| factor.kind == FactorKind::Observed) {
            levels.insert(factor.name.clone(), observed(factor, [inventory(slot.near), inventory(slot.far)]));
        }
        Cell { id, spec, levels }
    });
    let several = parsed.plan.from.len() > 1 || parsed.plan.to.len() > 1;
    let named = hosts.iter().enumerate().filter_map(|(number, host)| match host {
        PlanHost::Remote(name) => Some((name.clone(), inventory(number)?.clone())),
        PlanHost::LocalNear | PlanHost::LocalFar => None,
    });
    Ok(RunHeader {
        id: store::new_run_id(started_unix_ns, entropy),
        name: output.name.clone().or(parsed.name.clone()),
        kind: "run".into(),
        command: std::env::args().collect(),
        started_unix_ns,
        tool: Tool {
            near_version: near.version.clone(),
            far_version: far.version.clone(),
            near_clock_ns: near.clock_ns,
            far_clock_ns: far.clock_ns,
        },
        target: (!parsed.plan.to.is_empty()).then(|| parsed.plan.to.join(", ")),
        stopping: parsed.rule.clone(),
        cells: cells.collect(),
        near: near.inventory.clone(),
        far: far.inventory.clone(),
        plan: Some(Box::new(parsed.plan.clone())),
        hosts: if several { named.collect() } else { Default::default() },
        ..RunHeader::default()
    })
}

/// The level of an observed factor, from the inventories. For both ends, two values if they differ.
fn observed(factor: &Factor, ends: [Option<&Inventory>; 2]) -> String {
    let value = |host: &Inventory| {
        if let Some(name) = factor.key.strip_prefix("sysctl.") {
            return host.sysctl.get(name).cloned();
        }
        let facts = serde_json::to_value(host).ok()?;
        match facts.get(&factor.key)? {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    };
    let [near, far] = ends.map(|host| host.and_then(value).unwrap_or_else(|| "unknown".to_owned()));
    match factor.end {
        PlanEnd::Near => near,
        PlanEnd::Far => far,
        PlanEnd::Both if near == far => near,
        PlanEnd::Both => format!("{near} / {far}"),
    }
}
