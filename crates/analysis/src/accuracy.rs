//! The errors of a self-test that apply to a measurement, by its regime: what it measures, how, and how fast.

use model::{CitedError, Claim, Direction, Inventory, Outcome, SelfTestCitation};

/// Errors of the last self-test of the end that measures `outcome`, or of the other one: of a stream the receiver, of round trips the
/// near end. The headline figure's error comes first.
#[must_use]
pub fn accuracy(outcome: &Outcome, near: &Inventory, far: &Inventory) -> Vec<CitedError> {
    let far_measures = is_stream(outcome) && outcome.spec.direction == Direction::Send;
    let [first, second] = if far_measures { [far, near] } else { [near, far] };
    let cited = first.selftest.as_ref().or(second.selftest.as_ref());
    cited.map_or_else(Vec::new, |cited| of_regime(outcome, cited))
}

fn of_regime(outcome: &Outcome, cited: &SelfTestCitation) -> Vec<CitedError> {
    let of = |claim| cited.errors.iter().find(move |error| error.claim == claim).cloned();
    let summary = &outcome.summary;
    let mut errors = Vec::new();
    if is_stream(outcome) {
        errors.extend(nearest_rate(cited, summary.goodput_bps).cloned());
        if summary.packets_sent.is_some() {
            errors.extend([of(Claim::Loss), of(Claim::Reorder)].into_iter().flatten());
        }
        if outcome.spec.rate_bps.is_some() {
            errors.extend(of(Claim::Pacing));
        }
        errors.extend(of(Claim::Added).filter(|_| summary.probe.is_some()));
    } else {
        errors.extend(of(Claim::Rtt));
        errors.extend(of(Claim::Anatomy).filter(|_| summary.anatomy.is_some()));
        errors.extend(of(Claim::OneWay).filter(|_| summary.one_way.is_some()));
    }
    errors
}

/// Whether bytes are measured, not round trips.
fn is_stream(outcome: &Outcome) -> bool {
    outcome.summary.goodput_bps.is_some()
}

/// The error at the tested rate with the smallest ratio to `goodput_bps`.
fn nearest_rate(cited: &SelfTestCitation, goodput_bps: Option<f64>) -> Option<&CitedError> {
    let goodput = goodput_bps.filter(|bps| *bps > 0.0)?;
    let far = |error: &&CitedError| (error.truth / goodput).ln().abs();
    let rates = cited.errors.iter().filter(|error| error.claim == Claim::Rate && error.truth > 0.0);
    rates.min_by(|a, b| far(a).total_cmp(&far(b)))
}

#[cfg(test)]
mod tests {
    use model::{Check, Pattern, Spec, Summary};

    use super::*;

    fn host() -> Inventory {
        let error = |claim, truth, error| {
            CitedError::of(&Check::judge(claim, "p", [truth + error, truth, 1e9], "unit", String::new()))
        };
        let errors = vec![
            error(Claim::Rate, 1e8, 1.0),
            error(Claim::Rate, 1e9, 2.0),
            error(Claim::Rate, 2e10, 3.0),
            error(Claim::Rtt, 8e6, 4.0),
            error(Claim::Added, 0.0, 5.0),
            error(Claim::Loss, 100.0, 6.0),
            error(Claim::Pacing, 1e8, 7.0),
            error(Claim::Anatomy, 8e6, 8.0),
        ];
        let selftest = Some(SelfTestCitation { errors, ..SelfTestCitation::default() });
        Inventory { selftest, ..Inventory::default() }
    }

    fn errors(spec: Spec, summary: Summary, [near, far]: [&Inventory; 2]) -> Vec<f64> {
        let outcome =
            Outcome { cell: 0, spec: spec.into(), summary, estimate: None, histogram: None, trials: Vec::new() };
        accuracy(&outcome, near, far).iter().map(|cited| cited.error.round()).collect()
    }

    #[test]
    fn a_stream_has_the_error_of_the_nearest_rate() {
        let (tested, other) = (host(), Inventory::default());
        let stream = |bps| Summary { goodput_bps: Some(bps), ..Summary::default() };
        let spec = Spec::new("tcp", Pattern::Stream);
        assert_eq!(errors(spec.clone(), stream(9.4e8), [&other, &tested]), [2.0]);
        assert_eq!(errors(spec.clone(), stream(5e9), [&other, &tested]), [3.0], "by their ratio");
        assert_eq!(errors(spec.clone(), stream(1e6), [&tested, &other]), [1.0], "of the other end if need be");
        assert_eq!(errors(spec, stream(1e6), [&other, &other]), [0.0; 0]);
    }

    #[test]
    fn datagrams_and_round_trips_have_their_own_checks() {
        let host = host();
        let udp = Spec { rate_bps: Some(100), ..Spec::new("udp", Pattern::Stream) };
        let summary = Summary { goodput_bps: Some(1e8), packets_sent: Some(9), ..Summary::default() };
        assert_eq!(errors(udp, summary, [&host, &host]), [1.0, 6.0, 7.0]);
        let divided = Summary { anatomy: Some(Box::default()), ..Summary::default() };
        assert_eq!(errors(Spec::new("tcp", Pattern::Rr), divided, [&host, &host]), [4.0, 8.0]);
        assert_eq!(errors(Spec::new("tcp", Pattern::Pingpong), Summary::default(), [&host, &host]), [4.0]);
    }
}
