//! A plan: connects to its hosts and measures its cells.

use std::collections::BTreeMap;

use ::plan::{ParsedPlan, PlanHost, slots};
use analysis::plan::Slot;
use bus::BusError;
use command::{Failure, setup};
use control::coordinator::{self, AgentEnd, ConnectedFleet, Member, PlanSchedule, Target};
use control::{Access, Answers, ControlError};
use futures_util::stream::iter;
use futures_util::{StreamExt, TryStreamExt};
use model::{Cell, Factor, FactorKind, Inventory, PlanEnd, Run, RunHeader, RunKind, Shared, Spec, Tool};
use protocol::coordinator::DialogueError;
use text::say;

use super::header::header;
use super::program::Far;
use super::request::{Request, Resumed};
use super::{Here, unless_interrupted};
use crate::run::on_bus::OnBus;

/// Agents that are connected to at the same time: each needs a file of this process.
const AT_ONCE: usize = 200;

/// Measures a plan, or the remaining part of it. The error of a run that has begun is returned as a value.
pub(super) async fn measure(
    request: &Request,
    parsed: &ParsedPlan,
    resumed: Option<&Resumed>,
    here: &mut Here<'_>,
) -> Result<Option<ControlError>, Failure> {
    let (slots, hosts) = slots(&parsed.plan, &parsed.cells)?;
    let (mut fleet, programs) =
        unless_interrupted(here.cancel.clone(), reach(request, parsed, (&slots, &hosts), here)).await?;
    let (header, trials, passes, retests) = match resumed {
        Some(Resumed { header, trials, passes, retests }) => {
            let begun = Run::new(header.clone());
            here.sinks.resume(Run { passes: passes.clone(), retests: retests.clone(), ..begun })?;
            (header.clone(), trials.clone(), passes.clone(), retests.clone())
        }
        None => {
            let mut specs: Vec<_> = parsed.specs().cloned().collect();
            choose_engines(&mut fleet, &slots, &mut specs, here).await?;
            let mut header = begin(request, parsed, specs, (&slots, &hosts), &fleet, &programs)?;
            if parsed.plan.groups().is_some() && !request.hosts.no_path {
                probe_path(&slots, &mut fleet, &mut header, here).await?;
            }
            (header, Vec::new(), Vec::new(), Vec::new())
        }
    };
    if let Some(place) = parsed.fleet.as_ref().and_then(::plan::Fleet::bus) {
        let bus = here.access.buses.to(&place).await.map_err(ControlError::from)?;
        let earlier = resumed.map(|_| Run { passes: passes.clone(), ..Run::new(header.clone()) });
        let earlier = earlier.as_ref().map(|run| (run, trials.as_slice()));
        here.sinks.keep_on(OnBus::begin(bus, place, &header.id, earlier).await?);
    }
    let unread = fleet.keep_results_of(&header, resumed.is_some()).await;
    unread.into_iter().for_each(|line| here.sinks.note(line));
    let schedule = PlanSchedule { plan: parsed.plan.clone(), slots, trials, passes, retests };
    let order = coordinator::planned(header, schedule);
    let (failed, left) = fleet.run(order, &mut here.sinks, &mut here.cancel.clone()).await;
    left.into_iter().for_each(|line| here.sinks.note(line));
    match fleet.recalled() {
        0 => {}
        1 => here.sinks.note("1 test was not repeated: its agents had kept the result"),
        many => here.sinks.note(say!("{many} tests were not repeated: their agents had kept the results")),
    }
    // An agent that is lost by now has released its machine itself.
    let _ = fleet.release_machines().await;
    let on_bus = here.sinks.leave_bus().await;
    if on_bus && !matches!(failed, Some(ControlError::Sink(_))) {
        fleet.forget_results().await;
    }
    fleet.release().await;
    Ok(failed)
}

/// Chooses the engine for all specs with `--engine auto`, each between its own hosts and with its own settings, which are reverted.
async fn choose_engines(
    fleet: &mut ConnectedFleet,
    slots: &[Slot],
    specs: &mut [Shared<Spec>],
    here: &mut Here<'_>,
) -> Result<(), Failure> {
    let is_auto = |slot: &&Slot| specs.get(slot.cell as usize).is_some_and(|spec| spec.engine.auto);
    let mut due: Vec<&Slot> = slots.iter().filter(is_auto).collect();
    // Expensive settings are changed once.
    due.sort_by_key(|slot| slot.plot);
    let mut chosen = Ok(());
    for (at, slot) in due.iter().enumerate() {
        here.sinks.status(format!("pilot trials of the send methods, cell {} of {}", at + 1, due.len()));
        let Some(spec) = specs.get_mut(slot.cell as usize) else { continue };
        chosen = fleet.choose_engine([slot.near, slot.far], spec, &mut here.cancel.clone()).await;
        if chosen.is_err() {
            break;
        }
    }
    let reverted = fleet.untune().await;
    Ok(chosen.and(reverted.map(drop))?)
}

/// Probes the path of groups, all of which have the same hosts.
async fn probe_path(
    slots: &[Slot],
    fleet: &mut ConnectedFleet,
    header: &mut RunHeader,
    here: &mut Here<'_>,
) -> Result<(), Failure> {
    let (Some(first), Some(cell)) = (slots.first(), header.cells.first()) else { return Ok(()) };
    here.sinks.status("probing the path");
    let (hosts, spec) = ([first.near, first.far], cell.spec.clone());
    let probe = async { Ok(fleet.probe_path(hosts, header, &spec).await?) };
    unless_interrupted(here.cancel.clone(), probe).await
}

/// Connects to every host and waits for its machine. Returns the versions of other programs, by the numbers of their hosts.
async fn reach(
    request: &Request,
    parsed: &ParsedPlan,
    (slots, hosts): (&[Slot], &[PlanHost]),
    here: &mut Here<'_>,
) -> Result<(ConnectedFleet, BTreeMap<usize, String>), Failure> {
    let family = parsed.specs().next().map(|spec| spec.family).unwrap_or_default();
    let (shared, [local_near, local_far]) = (&here.access, &here.agents);
    let of_fleet = |name: &str| parsed.fleet.as_ref().and_then(|fleet| fleet.host(name));
    let mut members: Vec<Member> = Vec::with_capacity(hosts.len());
    let mut programs = BTreeMap::new();
    let mut instances: Vec<[String; 2]> = Vec::new();
    let mut missing = Vec::new();
    let is_mesh = request.kind == RunKind::Mesh && hosts.len() > 2;
    let agents: Vec<&String> = hosts.iter().filter_map(PlanHost::agent).collect();
    match &agents[..] {
        [] => {}
        [one] => here.sinks.status(say!("connecting to {one}")),
        many => here.sinks.status(say!("connecting to {} hosts", many.len())),
    }
    let token_file = here.token_file.clone();
    let answers = Answers::default();
    let access = |name: &str| {
        let own = match of_fleet(name) {
            Some(host) => fleet::access(host, token_file.as_deref(), &shared.buses),
            None => Ok(Access { buses: shared.buses.clone(), ..setup::access(token_file.as_deref())? }),
        };
        // Only a mesh goes on without a host.
        Ok::<_, Failure>(if is_mesh { Access { answers: answers.clone(), ..own? } } else { own? })
    };
    let connect = async |name: &String| {
        let (own, control) = (access(name)?, of_fleet(name).map_or(name, |host| &host.control));
        let end = AgentEnd::connect(Target::Remote { host: control, access: &own, family }).await;
        Ok::<_, Failure>((name.clone(), end))
    };
    let mut reached: BTreeMap<String, Result<AgentEnd, ControlError>> =
        iter(agents).map(connect).buffer_unordered(AT_ONCE).try_collect().await?;
    for (number, host) in hosts.iter().enumerate() {
        let end = match host {
            PlanHost::LocalNear => AgentEnd::connect(Target::Local(local_near)).await,
            PlanHost::LocalFar => AgentEnd::connect(Target::Local(local_far)).await,
            PlanHost::Remote(name) => {
                reached.remove(name).ok_or_else(|| Failure::other(format!("{name} was not connected")))?
            }
            PlanHost::Program { program, host } => {
                here.sinks.status(say!("connecting to {host}"));
                let slot = slots.iter().find(|slot| slot.far == number);
                let spec = slot.map(|slot| parsed.spec(slot.cell));
                let spec = spec.ok_or_else(|| Failure::other("a host without a cell"))?;
                let (far, version) = Far::reach(*program, host, spec, &here.cancel).await?;
                here.sinks.note(say!("{host} runs {version}"));
                members.push(Member::program(far));
                programs.insert(number, version);
                continue;
            }
        };
        let end = match (end, host) {
            (Ok(end), _) => end,
            // A mesh goes on without a host, and tries it again.
            (Err(error), PlanHost::Remote(name)) if is_mesh && does_not_answer(&error) => {
                here.sinks.note(say!("{name} does not answer and will be retried during the mesh: {error}"));
                let control = of_fleet(name).map_or(name, |host| &host.control);
                missing.push(Failure::from(&error));
                members.push(Member::lost(name, control, access(name)?, family, &error));
                continue;
            }
            (Err(error), _) => return Err(error.into()),
        };
        if let Some(note) = &end.facts.note {
            here.sinks.note(note.as_str());
        }
        if let Some([_, other]) =
            instances.iter().find(|[other, _]| !end.instance().is_empty() && *other == end.instance())
        {
            return Err(Failure::usage(format!(
                "{other} and {} are names of the same agent: use one of them",
                end.name()
            )));
        }
        instances.push([end.instance().to_owned(), end.name().to_owned()]);
        members.push(Member::agent(end));
    }
    // Two hosts make a pair.
    if hosts.len() < missing.len() + 2
        && let Some(failure) = missing.into_iter().next()
    {
        return Err(failure);
    }
    let groups = parsed.plan.groups().map(|groups| format!("{} groups of flows", groups.levels.len()));
    let mut fleet = ConnectedFleet::new(members, groups.as_deref().unwrap_or("a plan"));
    fleet.acquire(|name, ahead| here.sinks.status(say!("{name} is busy: {ahead} ahead in the queue"))).await?;
    Ok((fleet, programs))
}

/// Whether a host is down, or not there: one that refuses would refuse again.
fn does_not_answer(error: &ControlError) -> bool {
    matches!(
        error,
        ControlError::Resolve { .. }
            | ControlError::Unreachable { .. }
            | ControlError::NoAgent { .. }
            | ControlError::NoGreeting { .. }
            | ControlError::Dialogue(DialogueError::Lost { .. })
            | ControlError::Bus(BusError::Absent { .. })
    )
}

fn begin(
    request: &Request,
    parsed: &ParsedPlan,
    mut specs: Vec<Shared<Spec>>,
    (slots, hosts): (&[Slot], &[PlanHost]),
    fleet: &ConnectedFleet,
    programs: &BTreeMap<usize, String>,
) -> Result<RunHeader, Failure> {
    let first = slots.first().ok_or_else(|| Failure::other("the plan has no cell"))?;
    // Of a mesh, the first pair of hosts that answered.
    let reached = slots.iter().find_map(|slot| Some((fleet.facts(slot.near)?, fleet.facts(slot.far)?)));
    let reached = reached.or_else(|| fleet.facts(first.near).map(|near| (near, near)));
    let (near, far) = reached.ok_or_else(|| Failure::other("the near host is not connected"))?;
    let inventory = |host: usize| fleet.facts(host).map(|facts| &facts.inventory);
    // Cells whose specs were changed alike have one again.
    for at in 1..specs.len() {
        let (before, rest) = specs.split_at_mut(at);
        rest[0].share(&before[at - 1]);
    }
    let cells = parsed.cells.iter().zip(specs).zip(0..).map(|((cell, spec), id)| {
        let slot = Slot::of_cell(slots, id).unwrap_or(first);
        let mut levels = cell.planned.levels.clone();
        for factor in parsed.plan.factors.iter().filter(|factor| factor.kind == FactorKind::Observed) {
            levels.insert(factor.name.clone(), observed(factor, [inventory(slot.near), inventory(slot.far)]));
        }
        Cell { id, spec, levels }
    });
    let several = parsed.plan.from.len() > 1 || parsed.plan.to.len() > 1;
    let named = hosts.iter().enumerate().filter_map(|(number, host)| match host {
        // Nothing is known of a host that did not answer.
        PlanHost::Remote(name) => Some((name.clone(), inventory(number).cloned().unwrap_or_default())),
        PlanHost::LocalNear | PlanHost::LocalFar | PlanHost::Program { .. } => None,
    });
    let mut begun = header(request, near, far)?;
    if let Some(version) = programs.get(&first.far) {
        begun.far = Inventory::default();
        begun.tool = Tool { far_version: version.clone(), far_clock_ns: 0.0, ..begun.tool };
    }
    Ok(RunHeader {
        name: begun.name.or(parsed.name.clone()),
        target: (!parsed.plan.to.is_empty()).then(|| parsed.plan.to.join(", ")),
        stopping: parsed.rule.clone(),
        cells: cells.collect(),
        plan: Some(Box::new(parsed.plan.clone())),
        hosts: if several { named.collect() } else { Default::default() },
        ..begun
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
