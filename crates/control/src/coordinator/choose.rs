//! `--engine auto`: pilot trials with each send method find the one with the highest goodput between two hosts.

use analysis::plan::Slot;
use model::{EndResult, Engine, Event, EventSink, Leg, Observe, ReceiveBy, SendBy, Shared, SinkError, Spec, Stop};

use super::{Cancel, ConnectedFleet, Pair};
use crate::ControlError;

/// Length of a pilot trial, ns, and how many each method gets: enough to distinguish methods that differ by 10 % or more.
const PILOT_NS: u64 = 150_000_000;
const ROUNDS: u32 = 3;

/// The engine with the highest median goodput of `spec`'s blocks. The receiving end always gets the payload, copied or mapped,
/// as an application would.
///
/// # Errors
/// A lost connection, an interrupt, or no method that works. A method that one of the hosts does not have is left out.
pub async fn choose_engine(pair: &mut Pair, spec: &Spec, cancel: &mut Cancel) -> Result<Engine, ControlError> {
    let transport = engine::transport::transport(spec.transport.as_str())?;
    let mut tried: Vec<(Engine, Vec<f64>)> =
        transport.sends().iter().map(|send| (Engine::sending(*send), Vec::new())).collect();
    if transport.receives().contains(&ReceiveBy::Map) {
        // Only pages that nothing else uses can be mapped, and of the send methods only this one leaves such pages.
        let mapped = Engine { send: SendBy::Zerocopy, receive: ReceiveBy::Map, auto: false };
        tried.push((mapped, Vec::new()));
    }
    let mut failure = None;
    let mut trial = 0;
    for _ in 0..ROUNDS {
        let mut kept = Vec::new();
        for (engine, mut rates) in tried {
            match pilot_trial(pair, trial, &Spec { engine, ..spec.clone() }, cancel).await {
                Ok(rate) => {
                    rates.push(rate);
                    kept.push((engine, rates));
                }
                Err(error @ (ControlError::Interrupted | ControlError::Lost { .. })) => return Err(error),
                Err(error) => failure = Some(error),
            }
            trial += 1;
        }
        tried = kept;
    }
    let medians = tried.into_iter().filter_map(|(engine, rates)| Some((engine, model::median(&rates)?)));
    match (medians.max_by(|a, b| a.1.total_cmp(&b.1)), failure) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(Engine { auto: true, ..best.map(|(engine, _)| engine).unwrap_or_default() }),
    }
}

/// Chooses the engine for all specs of a plan with `--engine auto`, each between its own hosts and with its own settings.
/// `progress` receives a line for each cell. All settings are reverted when this returns.
///
/// # Errors
/// As [`choose_engine`], and settings that cannot be changed.
pub async fn choose_engines(
    fleet: &mut ConnectedFleet,
    slots: &[Slot],
    specs: &mut [Shared<Spec>],
    cancel: &mut Cancel,
    mut progress: impl FnMut(&str),
) -> Result<(), ControlError> {
    let mut due: Vec<&Slot> = slots.iter().filter(|slot| is_auto(specs, slot)).collect();
    // Expensive settings are changed once.
    due.sort_by_key(|slot| slot.plot);
    let mut result = Ok(());
    for (at, slot) in due.iter().enumerate() {
        progress(&format!("pilot trials of the send methods, cell {} of {}", at + 1, due.len()));
        let Some(spec) = specs.get_mut(slot.cell as usize) else { continue };
        match choose_for_slot(fleet, slot, spec, cancel).await {
            Ok(engine) => spec.engine = engine,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    let reverted = fleet.untune().await;
    result.and(reverted)
}

fn is_auto(specs: &[Shared<Spec>], slot: &Slot) -> bool {
    specs.get(slot.cell as usize).is_some_and(|spec| spec.engine.auto)
}

async fn choose_for_slot(
    fleet: &mut ConnectedFleet,
    slot: &Slot,
    spec: &Spec,
    cancel: &mut Cancel,
) -> Result<Engine, ControlError> {
    let hosts = [slot.near, slot.far];
    let single_ended = engine::transport::transport(spec.transport.as_str())?.capabilities().single_ended;
    fleet.hold(|_, _| {}).await?;
    fleet.tune(hosts, single_ended, &spec.settings).await?;
    let Some(mut lent) = fleet.lend(hosts, single_ended) else { return Ok(spec.engine) };
    let engine = choose_engine(&mut lent.pair, spec, cancel).await;
    fleet.take_back(hosts, lent);
    engine
}

/// The goodput of one pilot trial in bit/s.
async fn pilot_trial(pair: &mut Pair, trial: u32, spec: &Spec, cancel: &mut Cancel) -> Result<f64, ControlError> {
    let spec = Spec {
        stop: Stop::TimeNs(PILOT_NS),
        warmup_ns: 0,
        interval_ns: PILOT_NS,
        observe: Observe::Off,
        capture: None,
        ..spec.clone()
    };
    let result = pair.pass(trial, &spec, &[Leg::of(&spec)], &mut None, &mut Discard, cancel).await?;
    if let Some(reason) = result.failure {
        return Err(ControlError::Trial { address: "pilot trial of a send method".into(), reason });
    }
    let tally = |end: EndResult| end.tallies.into_iter().next().unwrap_or_default();
    let (near, far) = (tally(result.near), tally(result.far.unwrap_or_default()));
    Ok(analysis::trial_value(&spec, &near, &far).unwrap_or(0.0))
}

/// Discards the events of pilot trials, which are not part of the result.
struct Discard;

impl EventSink for Discard {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}
