//! Which way of moving blocks carries most between these two hosts: each is tried for a moment before the first trial.

use analysis::plan::Slot;
use model::{Engine, Event, EventSink, Observe, ReceiveBy, SendBy, SinkError, Spec, Stop};

use super::{Cancel, Fleet, Pair};
use crate::ControlError;
use crate::proto::message::{Done, WireLeg};

/// How long a way is tried each time, and how often: enough to tell ways apart that differ by a tenth or more.
const TRY_NS: u64 = 150_000_000;
const ROUNDS: u32 = 3;

/// The engine with the highest median goodput of `spec`'s blocks. Payload always comes out at the receiving end, copied or mapped,
/// as a program that wants it would have it.
///
/// # Errors
/// An end that was lost or has nothing to offer, or an interrupt. A way that one of the hosts does not have drops out.
pub async fn choose_engine(pair: &mut Pair, spec: &Spec, cancel: &mut Cancel) -> Result<Engine, ControlError> {
    let transport = engine::transport::transport(spec.transport.as_str())?;
    let mut tried: Vec<(Engine, Vec<f64>)> =
        transport.sends().iter().map(|send| (Engine::sending(*send), Vec::new())).collect();
    if transport.receives().contains(&ReceiveBy::Map) {
        // Only pages that nothing else holds can be mapped, and of the senders this one leaves such pages.
        let mapped = Engine { send: SendBy::Zerocopy, receive: ReceiveBy::Map, auto: false };
        tried.push((mapped, Vec::new()));
    }
    let mut failure = None;
    let mut trial = 0;
    for _ in 0..ROUNDS {
        let mut kept = Vec::new();
        for (engine, mut rates) in tried {
            match once(pair, trial, &Spec { engine, ..spec.clone() }, cancel).await {
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
    let medians = tried.into_iter().filter_map(|(engine, rates)| Some((engine, analysis::stats::median(&rates)?)));
    match (medians.max_by(|a, b| a.1.total_cmp(&b.1)), failure) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(Engine { auto: true, ..best.map(|(engine, _)| engine).unwrap_or_default() }),
    }
}

/// Settles `--engine auto` in the specs of a plan's cells, each between its own hosts with its own settings; `tell` hears for which
/// cell. Everything is put back when this returns.
///
/// # Errors
/// As [`choose_engine`], and of settings that cannot be made.
pub async fn choose_engines(
    fleet: &mut Fleet,
    slots: &[Slot],
    specs: &mut [Spec],
    cancel: &mut Cancel,
    mut tell: impl FnMut(&str),
) -> Result<(), ControlError> {
    let mut due: Vec<&Slot> = slots.iter().filter(|slot| auto(specs, slot)).collect();
    // What is dear to change is changed once.
    due.sort_by_key(|slot| slot.plot);
    let mut result = Ok(());
    for (at, slot) in due.iter().enumerate() {
        tell(&format!("trying the ways to send, cell {} of {}", at + 1, due.len()));
        let Some(spec) = specs.get_mut(slot.cell as usize) else { continue };
        match chosen(fleet, slot, spec, cancel).await {
            Ok(engine) => spec.engine = engine,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    let put_back = fleet.untune().await;
    result.and(put_back)
}

fn auto(specs: &[Spec], slot: &Slot) -> bool {
    specs.get(slot.cell as usize).is_some_and(|spec| spec.engine.auto)
}

async fn chosen(fleet: &mut Fleet, slot: &Slot, spec: &Spec, cancel: &mut Cancel) -> Result<Engine, ControlError> {
    let hosts = [slot.near, slot.far];
    let single_ended = engine::transport::transport(spec.transport.as_str())?.capabilities().single_ended;
    fleet.hold(|_, _| {}).await?;
    fleet.tune(hosts, single_ended, &spec.settings).await?;
    let Some(mut pair) = fleet.lend(hosts, single_ended) else { return Ok(spec.engine) };
    let engine = choose_engine(&mut pair, spec, cancel).await;
    fleet.take_back(hosts, pair);
    engine
}

/// The goodput of one short trial in bit/s.
async fn once(pair: &mut Pair, trial: u32, spec: &Spec, cancel: &mut Cancel) -> Result<f64, ControlError> {
    let spec = Spec {
        stop: Stop::TimeNs(TRY_NS),
        warmup_ns: 0,
        interval_ns: TRY_NS,
        observe: Observe::Off,
        capture: None,
        ..spec.clone()
    };
    let leg = WireLeg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
    let result = pair.pass(trial, &spec, &[leg], &mut Unheard, cancel).await?;
    if let Some(reason) = result.failure {
        return Err(ControlError::Trial { address: "a trial of an engine".into(), reason });
    }
    let tally = |done: Done| done.tallies.into_iter().next().unwrap_or_default();
    let (near, far) = (tally(result.near), tally(result.far));
    Ok(analysis::trial_value(&spec, &near, &far).unwrap_or(0.0))
}

/// What happens in these trials is nobody's result.
struct Unheard;

impl EventSink for Unheard {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}
