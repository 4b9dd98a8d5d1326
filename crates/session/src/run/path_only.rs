//! What can be measured of a path whose far end has nothing to measure with: route, path MTU, echoes and hops.

use command::Failure;
use control::ControlError;
use control::coordinator::{AgentEnd, first_open_port};
use model::{Ending, Event, EventSink, Finding, FindingKind, Inventory, Path, Program, RunHeader, Tool};
use protocol::message::PathFacts;
use text::say;

use super::header::header;
use super::pair::local_near;
use super::request::{Hosts, Request};
use super::{Here, unless_interrupted};

/// The programs that a check measures with where no agent answers, best first. Only a measurement shows whether one of the others is there:
/// NPtcp serves one connection and ends, and a STAMP reflector has no connections.
const PROGRAMS: [Program; 3] = [Program::Iperf3, Program::Netperf, Program::Nuttcp];

/// The program whose server accepts connections at the host of a measurement.
///
/// # Errors
/// The name does not resolve, or the runtime cannot be started.
pub fn program_at(hosts: &Hosts) -> Result<Option<Program>, Failure> {
    let Some(host) = &hosts.host else { return Ok(None) };
    let ports = PROGRAMS.map(|program| peers::protocol(program).port());
    let found = command::setup::runtime()?.block_on(first_open_port(host, hosts.family, &ports))?;
    Ok(found.and_then(|port| PROGRAMS.into_iter().zip(ports).find(|(_, of)| *of == port)).map(|(program, _)| program))
}

/// Probes the path. The error of a run that has begun is returned as a value.
pub(super) async fn measure(request: &Request, here: &mut Here<'_>) -> Result<Option<ControlError>, Failure> {
    let host = request.hosts.host.clone().ok_or_else(|| Failure::usage("there is no host to probe the path to"))?;
    let mut near = local_near(&here.agents).await?;
    let begun = header(request, &near.facts, &near.facts)?;
    let mut header = RunHeader {
        far: Inventory::default(),
        target: Some(host.clone()),
        tool: Tool { far_version: String::new(), far_clock_ns: 0.0, ..begun.tool },
        ..begun
    };
    let started = std::time::Instant::now();
    if let Some(facts) = probe(&mut near, &host, request, here).await? {
        control::coordinator::note_path(facts, &mut header.near, &mut header.path_outbound);
    }
    near.release().await;
    if !header.path_outbound.as_ref().is_some_and(answered) {
        return Err(Failure::unreached(say!(
            "{host} does not answer: neither an agent, nor another program, nor echoes"
        )));
    }
    let found = Finding {
        kind: FindingKind::Concern,
        statement: say!(
            "there is nothing at {host} to measure with: run `thru serve --invite` there, and here the line that it prints"
        ),
        estimate: None,
        block: None,
        cells: Vec::new(),
        comparison: None,
    };
    let unmet = analysis::of_check(&header, &[]);
    let ending = Ending {
        how: "finished".into(),
        error: None,
        duration_ns: started.elapsed().as_nanos() as u64,
        clocks: None,
        drift: None,
    };
    let findings = unmet.into_iter().chain([found]).map(Event::Finding);
    for event in std::iter::once(Event::Run(header)).chain(findings).chain([Event::End(ending)]) {
        here.sinks.event(&event).map_err(ControlError::from)?;
    }
    Ok(None)
}

/// The path to a host without an agent, as the near end within this process sees it.
pub(super) async fn probe(
    near: &mut AgentEnd,
    host: &str,
    request: &Request,
    here: &mut Here<'_>,
) -> Result<Option<PathFacts>, Failure> {
    here.sinks.status("probing the path");
    near.talk(async |end| end.acquire(request.kind.name(), |_| {}).await).await?;
    let probe = async { Ok(near.probe_host(host, request.hosts.family).await?) };
    unless_interrupted(here.cancel.clone(), probe).await
}

/// Whether a probe had any answer from the path.
fn answered(path: &Path) -> bool {
    let echoed = path.ping.as_ref().is_some_and(|ping| ping.received > 0);
    echoed || path.hops.as_ref().is_some_and(|hops| hops.iter().any(|hop| hop.address.is_some()))
}
