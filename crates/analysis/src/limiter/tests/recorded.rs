//! Trials that were taken over an emulated link of 50 Mbit/s and 20 ms, one for each congestion control and fault.

use super::super::*;
use super::recorded_case::around;

/// An outcome of one trial with the hosts that its ceiling and its limiter depend on.
#[derive(serde::Deserialize)]
struct Recorded {
    outcome: Outcome,
    near: Inventory,
    far: Inventory,
}

/// The limiter, and the ceiling in Mbit/s.
fn limits(recorded: &str) -> (Why, Option<f64>) {
    let Recorded { mut outcome, near, far } = serde_json::from_str(recorded).expect("a recorded outcome");
    crate::bound(&mut outcome, &near, &far);
    let why = why(&outcome, &around([&near, &far])).expect("a limiter");
    (why, outcome.summary.ceiling.map(|ceiling| ceiling.bound_bps / 1e6))
}

macro_rules! recorded {
    ($name:literal) => {
        ($name, limits(include_str!(concat!("../../../testdata/limits/", $name, ".json"))))
    };
}

#[test]
fn the_link_is_named_with_its_rate_under_every_congestion_control_and_over_udp() {
    let all = [
        recorded!("cubic"),
        recorded!("reno"),
        recorded!("bbr"),
        recorded!("bbr-short-queue"),
        recorded!("fast"),
        recorded!("udp"),
    ];
    for (name, (why, ceiling)) in all {
        assert_eq!((why.limiter, why.grade), (LimiterKind::Link, Some(Grade::Strong)), "{name}: {why:#?}");
        let rate = ["46", "47", "48"].map(|rate| format!("link rate (strong): a bottleneck of about {rate}."));
        assert!(rate.iter().any(|said| why.statement.plain().starts_with(said)), "{name}: {}", why.statement.plain());
        assert!(ceiling.is_some_and(|mbps| (46.0..50.0).contains(&mbps)), "{name}: {ceiling:?}");
        assert!(
            !why.statement.plain().contains("Mathis") && !why.also.contains(&LimiterKind::Loss),
            "{name}: {why:#?}"
        );
    }
}

#[test]
fn of_two_limits_the_binding_one_comes_first() {
    // 319 KiB may be in flight; 115 KiB fill the path.
    let (_, (why, ceiling)) = recorded!("large-window");
    assert_eq!((why.limiter, &why.also[..]), (LimiterKind::Link, &[LimiterKind::ReceiveWindow][..]), "{why:#?}");
    assert!(ceiling.is_some_and(|mbps| mbps < 50.0), "{ceiling:?}");
    let (_, (why, ceiling)) = recorded!("two-buffers");
    assert_eq!((why.limiter, &why.also[..]), (LimiterKind::ReceiveWindow, &[LimiterKind::SendBuffer][..]), "{why:#?}");
    assert!(ceiling.is_some_and(|mbps| (15.0..16.0).contains(&mbps)), "{ceiling:?}");
}

#[test]
fn losses_without_a_queue_are_the_limit_and_fit_mathis() {
    let (_, (why, _)) = recorded!("cubic-losses");
    assert_eq!((why.limiter, why.grade), (LimiterKind::Loss, Some(Grade::Strong)), "{why:#?}");
    assert!(why.statement.plain().contains("TCP carries about 6.84 Mbit/s (Mathis)"), "{}", why.statement.plain());
}
