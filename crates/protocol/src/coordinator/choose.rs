//! `--engine auto`: pilot trials with each send method find the one with the highest goodput between two hosts.

use model::{EndResult, Engine, Leg, Observe, ReceiveBy, SendBy, Spec, Stop};
use schedule::{Between, Methods};

use super::error::DialogueError;
use super::fleet::Fleet;
use super::pair::{Pair, Shows};

/// Length of a pilot trial, ns, and how many each method gets: enough to distinguish methods that differ by 10 % or more.
const PILOT_NS: u64 = 150_000_000;
const ROUNDS: u32 = 3;

impl Fleet {
    /// The engine with the highest median goodput of `spec`'s blocks between two hosts with its settings, of those that the transport has.
    /// The receiving end always gets the payload, copied or mapped, as an application would.
    ///
    /// # Errors
    /// A lost connection, an interrupt, settings that cannot be changed, or no method that works. A method that one of the hosts does not
    /// have is left out.
    pub async fn choose_engine(
        &mut self,
        Between { hosts, single_ended }: Between,
        spec: &Spec,
        methods: &Methods,
    ) -> Result<Engine, DialogueError> {
        self.hold(|_, _| {}).await?;
        self.tune(hosts, single_ended, &spec.settings).await?;
        let Some(mut lent) = self.lend(hosts, single_ended) else { return Ok(spec.engine) };
        let engine = choose_engine(&mut lent.pair, spec, methods).await;
        self.take_back(hosts, lent);
        engine
    }
}

async fn choose_engine(pair: &mut Pair, spec: &Spec, methods: &Methods) -> Result<Engine, DialogueError> {
    let mut tried: Vec<(Engine, Vec<f64>)> =
        methods.sends.iter().map(|send| (Engine::sending(*send), Vec::new())).collect();
    if methods.receives.contains(&ReceiveBy::Map) {
        // Only pages that nothing else uses can be mapped, and of the send methods only this one leaves such pages.
        let mapped = Engine { send: SendBy::Zerocopy, receive: ReceiveBy::Map, auto: false };
        tried.push((mapped, Vec::new()));
    }
    let mut failure = None;
    let mut trial = 0;
    for _ in 0..ROUNDS {
        let mut kept = Vec::new();
        for (engine, mut rates) in tried {
            match pilot_trial(pair, trial, &Spec { engine, ..spec.clone() }).await {
                Ok(rate) => {
                    rates.push(rate);
                    kept.push((engine, rates));
                }
                Err(error @ (DialogueError::Interrupted | DialogueError::Lost { .. })) => return Err(error),
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

/// The goodput of one pilot trial in bit/s.
async fn pilot_trial(pair: &mut Pair, trial: u32, spec: &Spec) -> Result<f64, DialogueError> {
    let spec = Spec {
        stop: Stop::TimeNs(PILOT_NS),
        warmup_ns: 0,
        interval_ns: PILOT_NS,
        observe: Observe::Off,
        capture: None,
        ..spec.clone()
    };
    let result = pair.pass(trial, &spec, &[Leg::of(&spec)], &mut None, Shows::NOTHING).await?;
    if let Some(reason) = result.failure {
        return Err(DialogueError::Trial { address: "pilot trial of a send method".into(), reason });
    }
    let tally = |end: EndResult| end.tallies.into_iter().next().unwrap_or_default();
    let (near, far) = (tally(result.near), tally(result.far.unwrap_or_default()));
    Ok(analysis::trial_value(&spec, &near, &far).unwrap_or(0.0))
}
