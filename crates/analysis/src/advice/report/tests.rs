use super::*;
use crate::advice::{Level, Levels, SearchRule, TrialScore};
use model::Pattern;

fn candidates() -> Vec<Candidate> {
    let of = |name, labels: &[&str]| Candidate::of(name, labels.iter().map(|label| Level::start(*label)).collect());
    vec![of("window", &["16KiB", "kernel", "1MiB"]), of("cc", &["cubic", "bbr"])]
}

/// A search over scores, with its confirmation.
fn gone(goal: Goal, score: impl Fn(&[usize]) -> f64) -> (Advice, Vec<Finding>) {
    let candidates = candidates();
    let rule = SearchRule { min_effect: 0.01, min_goodput: None, seed: 1 };
    let mut search = Search::new(&[3, 2], rule);
    let score = |at: &Levels| Some(TrialScore { score: score(at), goodput: None });
    while let Some(round) = search.next_round() {
        search.record(&round.trials.iter().map(score).collect::<Vec<_>>());
    }
    let mut confirmed = Vec::new();
    if let Some(mut fresh) = crate::advice::Confirmation::new(&search, 400) {
        while let Some(round) = fresh.next_round() {
            fresh.record(round.trials.each_ref().map(score));
        }
        confirmed = fresh.judged();
    }
    let (start, host) = (Spec::new("tcp", Pattern::Stream), Inventory::default());
    let untried = ["mtu", "rings"].map(|what| Untried::NotAllowed { class: what }.of(what));
    let spent = [AdviceSpent { on: "window".into(), trials: 8, ns: 4_000_000_000 }];
    let result = SearchResult {
        goal,
        start: &start,
        target: Some("beta"),
        candidates: &candidates,
        search: &search,
        confirmed: &confirmed,
        untried: &untried,
        spent: &spent,
        hosts: [&host, &host],
    };
    super::advice(&result, |levels| u32::try_from(levels.len()).ok())
}

fn said(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.statement.plain()).collect::<Vec<_>>().join("\n")
}

#[test]
fn gains_and_unchanged_dimensions_are_reported_with_intervals() {
    let (advice, findings) = gone(Goal::Throughput, |at| [0.0, 0.5, 0.2][at[0]] - 0.1 * at[1] as f64);
    assert!(advice.confirmed && advice.steps.is_empty(), "a single change has no steps: {advice:?}");
    assert_eq!(advice.best, [("window".to_owned(), "kernel".to_owned())].into());
    let estimate = advice.total.as_ref().unwrap().estimate.as_ref().unwrap();
    assert!((estimate.value - 0.5f64.exp()).abs() < 1e-9 && estimate.n == 16);
    let text = said(&findings);
    assert!(text.contains("With window kernel the goodput changes by +64.87 % (95 % interval"), "{text}");
    assert!(text.contains("cc stays cubic: bbr is worse, -9.52 %"), "{text}");
    assert!(
        text.contains("Not tried: mtu, rings (needs host settings: `--allow mtu,rings`).")
            && text.contains("window 8 trials in 4"),
        "{text}"
    );
    assert_eq!((findings[0].kind, findings[0].cells.as_slice()), (FindingKind::Advice, &[0, 1][..]));
}

#[test]
fn several_changes_have_a_step_each() {
    let (advice, findings) = gone(Goal::Throughput, |at| [0.0, 0.5, 0.2][at[0]] + 0.1 * at[1] as f64);
    assert_eq!(advice.steps.iter().map(|step| step.dimension.as_str()).collect::<Vec<_>>(), ["window", "cc"]);
    assert!(said(&findings).contains("cc (cubic to bbr) changes the goodput by +10.52 %"), "{}", said(&findings));
}

#[test]
fn shorter_times_are_better() {
    let (advice, findings) = gone(Goal::Latency, |at| 0.25 * at[1] as f64);
    let estimate = advice.total.unwrap().estimate.unwrap();
    assert!((estimate.value - (-0.25f64).exp()).abs() < 1e-9);
    assert!(said(&findings).contains("the mean RTT changes by -22.12 %"), "{}", said(&findings));
}

#[test]
fn without_a_gain_there_is_no_advice() {
    let (advice, findings) = gone(Goal::Throughput, |_| 0.0);
    assert!(!advice.confirmed && advice.best.is_empty() && advice.command.is_none() && advice.total.is_none());
    let text = said(&findings);
    assert!(text.starts_with("No change in 2 dimensions improved the goodput by more than 1.00 %."), "{text}");
    assert!(text.contains("makes no difference"), "{text}");
}
