//! A measurement between two ends, each with an agent.

use command::Failure;
use control::ControlError;
use control::agent::Agent;
use control::coordinator::{self, AgentEnd, Cancel, ConnectedFleet, Member, Schedule, Target};
use model::{Cell, Family, Goal, RunHeader, Spec, Stopping};
use text::say;
use vec1::Vec1;

use super::header::header;
use super::request::Request;
use super::sinks::Sinks;
use super::{Here, unless_interrupted};
use crate::launch::Offer;

/// The cells of a measurement, its stop rule and its schedule.
pub(super) type Cells<'a> = (&'a Vec1<Spec>, &'a Stopping, &'a Schedule);

/// Measures. The error of a run that has begun is returned as a value.
pub(super) async fn measure(
    request: &Request,
    cells: Cells<'_>,
    here: &mut Here<'_>,
) -> Result<Option<ControlError>, Failure> {
    let mut fleet = unless_interrupted(here.cancel.clone(), reach(request, cells.0.first(), here)).await?;
    let measured = apply_and_measure(request, cells, &mut fleet, &mut here.sinks, here.cancel.clone()).await;
    // Settings of a run that has not begun are restored while the ends are still connected.
    match fleet.untune().await {
        Ok(left) => left.into_iter().for_each(|line| here.sinks.note(line)),
        Err(error) => here.sinks.note(say!("{error}; the agent there reverts its settings itself")),
    }
    let failed = measured?;
    engine::transport::pvm::leave();
    fleet.release().await;
    Ok(failed)
}

/// Applies the settings of the specs, and measures. The error of a run that has begun is returned as a value.
async fn apply_and_measure(
    request: &Request,
    (specs, rule, schedule): Cells<'_>,
    fleet: &mut ConnectedFleet,
    sinks: &mut Sinks<'_>,
    cancel: Cancel,
) -> Result<Option<ControlError>, Failure> {
    let settings = fleet.apply_all(specs).await?;
    let specs = with_engines(specs, fleet, sinks, &cancel).await?;
    let near = fleet.facts(0).ok_or_else(|| Failure::other("the near end is not connected"))?;
    let begun = header(request, near, fleet.facts(1).unwrap_or(near))?;
    let has_far = fleet.facts(1).is_some();
    let mut header = RunHeader {
        settings,
        target: request.hosts.host.clone().filter(|_| has_far),
        stopping: rule.clone(),
        cells: specs.into_iter().zip(0..).map(|(spec, id)| Cell::new(id, spec)).collect(),
        ..begun
    };
    if !request.hosts.no_path {
        sinks.status("probing the path");
        let spec = header.cells[0].spec.clone();
        let probe = async { Ok(fleet.probe_path([0, 1], &mut header, &spec).await?) };
        unless_interrupted(cancel.clone(), probe).await?;
    }
    coordinator::fit_to_path(&mut header, schedule);
    let schedule = with_possible_anatomy(schedule, &mut header);
    let order = coordinator::scheduled(header, &schedule);
    let (failed, left) = fleet.run(order, sinks, &mut cancel.clone()).await;
    left.into_iter().for_each(|line| sinks.note(line));
    Ok(failed)
}

/// Connects to both ends and waits for their machines.
async fn reach(request: &Request, spec: &Spec, here: &mut Here<'_>) -> Result<ConnectedFleet, Failure> {
    let hosts = &request.hosts;
    let transport = engine::transport::transport(spec.transport.as_str())?;
    let capabilities = transport.capabilities();
    let (access, [local_near, local_far]) = (&here.access, &here.agents);
    let remote = |host| Target::Remote { host, access, family: hosts.family };
    here.sinks.status("connecting");
    let far = match (&hosts.host, &here.offer) {
        _ if capabilities.single_ended => None,
        (_, Some(offer)) => Some(connect_to_offer(offer).await?),
        (Some(host), None) => Some(AgentEnd::connect(remote(host)).await?),
        (None, None) if transport.facts().one_host => Some(AgentEnd::connect(Target::Local(local_far)).await?),
        (None, None) => {
            return Err(Failure::usage(format!(
                "{} needs a far host: run `thru serve` on HOST, then `thru {} HOST`",
                spec.transport, request.kind
            )));
        }
    };
    // A transport with one end is measured on the named host.
    let near = match hosts.from.as_ref().or(hosts.host.as_ref().filter(|_| capabilities.single_ended)) {
        Some(host) => AgentEnd::connect(remote(host)).await?,
        None => AgentEnd::connect(Target::Local(local_near)).await?,
    };
    if far.as_ref().is_some_and(|far| !far.instance().is_empty() && far.instance() == near.instance()) {
        return Err(Failure::usage(say!(
            "HOST and `--from` are the same agent, which cannot wait for itself: omit `--from`"
        )));
    }
    let ends = std::iter::once(near).chain(far);
    let ends = ends.inspect(|end| end.facts.note.iter().for_each(|note| here.sinks.note(note.as_str())));
    let members = ends.map(Member::agent).collect();
    let mut fleet = ConnectedFleet::new(members, &format!("{} {}", request.kind, spec.transport));
    fleet.acquire(|name, ahead| here.sinks.status(say!("{name} is busy: {ahead} ahead in the queue"))).await?;
    Ok(fleet)
}

/// Connects to the agent that a launcher started, at the first of its addresses that answers.
async fn connect_to_offer(offer: &Offer) -> Result<AgentEnd, Failure> {
    let access = offer.access();
    let mut failure = Failure::other("the agent of the far end has no address");
    for address in &offer.addresses {
        match AgentEnd::connect(Target::Remote { host: address, access: &access, family: Family::Any }).await {
            Ok(end) => return Ok(end),
            Err(error) => failure = error.into(),
        }
    }
    Err(failure)
}

/// The near end within this process, without a queue: no other measurement of this process waits for it.
pub(super) async fn local_near(agents: &[Agent; 2]) -> Result<AgentEnd, Failure> {
    Ok(AgentEnd::connect(Target::Local(&agents[0])).await?)
}

/// A curve keeps the request for an anatomy, and a search for shorter round trips gets one, if the engine can stamp round trips.
fn with_possible_anatomy(schedule: &Schedule, header: &mut RunHeader) -> Schedule {
    let mut schedule = schedule.clone();
    let possible = |spec: &Spec| engine::pattern::check(spec).is_ok();
    match &mut schedule {
        Schedule::Curve(plan) => {
            plan.anatomy &= !header.cells[0].spec.is_stream();
            plan.anatomy &= coordinator::anatomy_of(header).as_ref().is_some_and(possible);
            plan.check &=
                coordinator::check_stream_of(header).is_none_or(|stream| engine::pattern::check(&stream).is_ok());
        }
        Schedule::Advise(plan) if plan.goal == Goal::Latency => {
            let spec = &mut header.cells[0].spec;
            let stamped = Spec { anatomy: true, ..Spec::clone(spec) };
            if possible(&stamped) {
                *spec = stamped.into();
            }
        }
        _ => {}
    }
    schedule
}

/// The specs, with `engine auto` replaced by the fastest send method of a pilot trial each.
async fn with_engines(
    specs: &[Spec],
    fleet: &mut ConnectedFleet,
    sinks: &mut Sinks<'_>,
    cancel: &Cancel,
) -> Result<Vec<Spec>, Failure> {
    let mut settled = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut spec = spec.clone();
        if spec.engine.auto {
            sinks.status("comparing send methods");
            fleet.choose_engine([0, 1], &mut spec, &mut cancel.clone()).await?;
        }
        settled.push(spec);
    }
    Ok(settled)
}
