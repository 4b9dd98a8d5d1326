//! One end of a trial, from open links to tallies: gives each flow its thread.

use std::sync::Arc;

use model::{Live, Strategy};

use super::merge;
use super::tally::LegTally;
use super::trial::{Threads, Trial};
use crate::core::{Counters, EngineError, LinkPlan, Signals, TrialPlan, clock_cost_ns};
use crate::pattern::{MAX_THREADS, strategy};
use crate::transport::{Link, Transport};

/// Runs one end of a trial over its open links and returns when this end is finished. `live` receives each entry of
/// the series, and the counts so far, as it happens.
pub fn run(
    plan: &TrialPlan,
    transport: &dyn Transport,
    links: Vec<Link>,
    signals: &Arc<Signals>,
    live: &mut dyn FnMut(Live),
) -> Result<LegTally, EngineError> {
    let capabilities = transport.capabilities();
    let strategy = strategy(&plan.spec, transport, links.len())?;
    let probe = plan.probe();
    let probes = probe.as_ref().map_or(0, |probe| probe.spec.flows as usize);
    let count = links.len() - probes;
    let threads = match strategy {
        Strategy::Blocking => count,
        _ => plan.spec.threads.map_or(MAX_THREADS, |threads| threads as usize).min(count),
    };
    let shared: Arc<Vec<Counters>> = Arc::new((0..count).map(|_| Counters::default()).collect());
    let new_group = |plan: &TrialPlan, strategy| Threads { plan: Arc::new(plan.clone()), strategy, flows: Vec::new() };
    let mut groups: Vec<Threads> = (0..threads).map(|_| new_group(plan, strategy)).collect();
    let mut breakers = Vec::with_capacity(links.len());
    for (slot, (link, link_plan)) in links.into_iter().zip(plan.links()).enumerate() {
        let group = if slot >= count { threads + slot - count } else { slot % threads };
        let flow = match &probe {
            // Each flow of the probe has its own counters and its own thread, so that it neither appears in the stream's
            // figures nor waits for its flows.
            Some(probe) if slot >= count => {
                groups.push(new_group(probe, crate::pattern::strategy(&probe.spec, transport, 1)?));
                let link_plan = LinkPlan { flow: (slot - count) as u32, ..link_plan };
                groups[group].setup(link_plan, Arc::new(vec![Counters::default()]), 0)
            }
            _ => groups[group].setup(link_plan, shared.clone(), slot),
        };
        let flow = link.into_flow(flow)?;
        breakers.push(flow.breaker());
        groups[group].flows.push(flow);
    }
    clock_cost_ns();
    let trial = Trial { plan, shared: &shared, breakers: &breakers, signals };
    let mut outcome = trial.run(groups, probes, live)?;
    if capabilities.single_ended {
        outcome.legs.iter_mut().zip(&mut outcome.spans).for_each(|(tally, span)| merge::mirror(tally, span));
    }
    Ok(outcome)
}
