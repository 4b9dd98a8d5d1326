//! What held an outcome back, and the evidence for it.
//!
//! TCP's clocks split the sender's time into four pools: idle, limited by the receiver's window, by the send buffer, and busy
//! otherwise. Rules ([`RULES`]) look at everything else that was recorded. A rule's weight is the part of a pool that its
//! evidence accounts for: in each pool the strongest kind takes its weight of the pool, the next its weight of what is left,
//! and so on; what remains is the pool's own kind, which for the last pool is "unexplained". So the parts always add up to 1.

mod changes;
mod clocks;
mod notes;
mod placed;
mod regions;
pub mod rules;
mod scene;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{Evidence, Inventory, LimiterKind, Outcome, Pass, TimePart, Why};

use clocks::Clocks;
use scene::Scene;

pub use changes::changes;
pub use notes::between_runs;
pub use regions::regions;
pub use rules::{RULES, Rule, rule};

/// Least part of the time that is named beside the largest.
const WORTH_NAMING: f64 = 0.1;
/// Without clocks: least weight that makes a limiter, and that is named beside it.
const CONVINCING: f64 = 0.5;

/// What held `outcome` back, from its trials, the passes that they were taken in (those that were kept) and the two hosts. `None`
/// where nothing that was recorded speaks for anything. Points of a curve share passes, and a point is too short for the clocks:
/// ask for its [`changes()`] instead.
#[must_use]
pub fn why(outcome: &Outcome, passes: &[Pass], near: &Inventory, far: &Inventory) -> Option<Why> {
    let scene = Scene::new(outcome, passes, [near, far]);
    if scene.ways.is_empty() {
        return None;
    }
    let clocks = clocks::clocks(&scene).filter(|_| scene.bulk());
    let mut evidence = rules::weigh(&scene);
    evidence.extend(clocks.iter().flat_map(rules::of_clocks));
    evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let parts = clocks.map(|clocks| parts(&clocks, &evidence)).unwrap_or_default();
    let losses = placed::losses(&scene);
    let notes = notes::of_outcome(&scene);
    if evidence.is_empty() && parts.is_empty() && losses.is_none() && notes.is_empty() {
        return None;
    }
    let (limiter, also) = if parts.is_empty() { by_weight(&evidence) } else { by_share(&parts) };
    let statement = statement(limiter, &parts, &evidence);
    Some(Why { limiter, statement, parts, evidence, also, losses, notes, missing: notes::missing(&scene) })
}

/// The kinds that may take time of a pool from its own kind.
fn takes(pool: LimiterKind, kind: LimiterKind) -> bool {
    use LimiterKind as K;
    match pool {
        // Nothing to send: the program did not, or could not, give it.
        K::SenderApplication => kind == K::SenderCpu,
        // A window that is full because nobody reads is not too small.
        K::ReceiveWindow => matches!(kind, K::ReceiverApplication | K::ReceiverCpu),
        K::SendBuffer => false,
        _ => true,
    }
}

/// The partition of the time, largest part first.
fn parts(clocks: &Clocks, evidence: &[Evidence]) -> Vec<TimePart> {
    use LimiterKind as K;
    let pools = [
        (K::SenderApplication, clocks.idle, "time with nothing to send, by TCP's clocks"),
        (K::ReceiveWindow, clocks.rwnd, "time limited by the receiver's window, by TCP's clocks"),
        (K::SendBuffer, clocks.sndbuf, "time limited by the send buffer, by TCP's clocks"),
        (K::Unexplained, clocks.rest, "other busy time, by TCP's clocks"),
    ];
    let mut sums: BTreeMap<LimiterKind, (f64, Vec<String>)> = BTreeMap::new();
    for (own, time, name) in pools.into_iter().filter(|(_, time, _)| *time > 0.0) {
        let mut left = time;
        let mut give = |kind, share, method: String| {
            let (sum, methods) = sums.entry(kind).or_default();
            *sum += share;
            methods.push(method);
        };
        for (kind, weight, rule) in strongest(evidence).into_iter().filter(|(kind, ..)| takes(own, *kind)) {
            // The clocks have had their say: this pool is what they leave open.
            if rule == rules::CLOCKS || kind == own {
                continue;
            }
            give(
                kind,
                left * weight,
                format!("{name}, of which rule {rule} explains {:.0} % of what was left", 100.0 * weight),
            );
            left *= 1.0 - weight;
        }
        if left > 0.0 {
            give(
                own,
                left,
                if own == K::Unexplained { format!("{name}, for which nothing speaks") } else { name.into() },
            );
        }
    }
    let mut parts: Vec<TimePart> =
        sums.into_iter().map(|(of, (share, methods))| TimePart { of, share, method: methods.join("; ") }).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    parts
}

/// Each kind's strongest evidence beside the clocks: kind, weight, rule; strongest first.
fn strongest(evidence: &[Evidence]) -> Vec<(LimiterKind, f64, &str)> {
    let mut kinds: Vec<(LimiterKind, f64, &str)> = Vec::new();
    let mut sorted: Vec<&Evidence> = evidence.iter().filter(|one| one.rule != rules::CLOCKS).collect();
    sorted.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    for one in sorted {
        if kinds.iter().all(|(kind, ..)| *kind != one.of) {
            kinds.push((one.of, one.weight.clamp(0.0, 1.0), &one.rule));
        }
    }
    kinds
}

/// The limiter and what else limited, by their parts of the time.
fn by_share(parts: &[TimePart]) -> (LimiterKind, Vec<LimiterKind>) {
    let limiter = parts.first().map_or(LimiterKind::Unexplained, |part| part.of);
    let others = parts.iter().skip(1).filter(|part| part.share >= WORTH_NAMING && part.of != LimiterKind::Unexplained);
    (limiter, others.map(|part| part.of).collect())
}

/// The same where there are no clocks.
fn by_weight(evidence: &[Evidence]) -> (LimiterKind, Vec<LimiterKind>) {
    let mut kinds =
        strongest(evidence).into_iter().filter(|(_, weight, _)| *weight >= CONVINCING).map(|(kind, ..)| kind);
    (kinds.next().unwrap_or(LimiterKind::Unexplained), kinds.collect())
}

/// `receive window, 87 % of the sender's time; 64 KiB window over 20 ms carries at most 26 Mbit/s`.
fn statement(limiter: LimiterKind, parts: &[TimePart], evidence: &[Evidence]) -> String {
    let mut statement = limiter.words().to_owned();
    if let Some(part) = parts.iter().find(|part| part.of == limiter) {
        statement.push_str(&format!(", {:.0} % of the sender's time", 100.0 * part.share));
    }
    let of = |clocks: bool| evidence.iter().find(|one| one.of == limiter && (one.rule == rules::CLOCKS) == clocks);
    match (limiter, of(false).or_else(|| of(true))) {
        (LimiterKind::Unexplained, _) => statement.push_str("; nothing that was recorded speaks for more of it"),
        (_, Some(one)) => statement.push_str(&format!("; {}", one.statement)),
        (_, None) => {}
    }
    statement
}
