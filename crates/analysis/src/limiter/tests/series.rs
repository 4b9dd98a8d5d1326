//! What the series of a connection shows over time, where one reading would not.

use super::*;

#[test]
fn a_window_that_doubles_in_each_round_trip_is_slow_start() {
    // A connection that ends within slow start: of 1,280 segments half are sent in the last round trip.
    let mut case = RecordedCase::tcp(15, 100 * MS);
    case.samples(|i, one| {
        one.cwnd = 10 << i.min(9);
        one.unacked = one.cwnd / 2;
        one.delivered = Some(10 * ((1 << i.min(9)) - 1));
        one.notsent_bytes = Some(100_000);
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::CongestionWindow, "{why:#?}");
    assert!(why.statement.contains("it grew exponentially for 90 % of the time (slow start)"), "{}", why.statement);
    // The same window that has ended to grow says nothing.
    case.samples(|_, one| (one.cwnd, one.unacked) = (5_120, 2_560));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    // A tenth per round trip is congestion avoidance.
    case.samples(|i, one| (one.cwnd, one.unacked) = (100 + 10 * i as u32, 50));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
}

#[test]
fn a_pacing_rate_that_never_changes_is_a_cap_unless_it_is_bbrs_estimate() {
    let mut case = RecordedCase::tcp(48, 20 * MS);
    let stack =
        |case: &mut RecordedCase, cc: &str| case.trials(|trial| trial.near.flows[0].socket.cc = Some(cc.into()));
    stack(&mut case, "cubic");
    case.samples(|_, one| one.pacing_bps = Some(50_000_000));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Pacing, "{why:#?}");
    assert!(
        why.statement.contains("paced to 50.0 Mbit/s including headers (its pacing rate never changed)"),
        "{why:#?}"
    );
    stack(&mut case, "bbr");
    assert_ne!(case.limiter(), LimiterKind::Pacing);
    // The congestion control's own pacing rate follows the window and the RTT.
    stack(&mut case, "cubic");
    case.samples(|i, one| one.pacing_bps = Some(50_000_000 + i * 1_000));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    // A rate that is not reached does not limit.
    case.samples(|_, one| one.pacing_bps = Some(90_000_000));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
}

#[test]
fn a_send_buffer_of_which_a_third_is_always_free_limits_before_a_congestion_window_of_its_size() {
    // 512 kB of send buffer carry two thirds of that in a round trip; the congestion window has 482 kB.
    let mut case = RecordedCase::tcp(49, 56 * MS);
    case.outcome.spec.near.sndbuf = Some(256_000);
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(512_000));
    case.samples(|i, one| (one.cwnd, one.unacked) = (333, if i % 2 == 0 { 224 } else { 292 }));
    assert_eq!(case.limiter(), LimiterKind::SendBuffer);
    // A window below two thirds of the buffer is full before it.
    case.samples(|_, one| (one.cwnd, one.unacked) = (220, 220));
    assert_eq!(case.limiter(), LimiterKind::CongestionWindow);
}
