//! What to change where a buffer has reached a host's limit.

use super::recorded_case::RecordedCase;
use super::*;

#[test]
fn buffers_at_the_hosts_limits_are_reported_with_the_window_that_is_needed() {
    // 4 MiB over 80 ms are 419 Mbit/s.
    let mut case = RecordedCase::tcp(400, 80 * MS);
    case.hosts[0].sysctl.insert("net.ipv4.tcp_wmem".into(), "4096 16384 4194304".into());
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(4 << 20));
    case.samples(|_, one| (one.cwnd, one.peer_window_bytes) = (6_000, Some(16 << 20)));
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::SendBuffer, Some(Grade::Strong)), "{why:#?}");
    assert!(
        why.statement.plain().contains("4 MiB send buffer (at the limit of net.ipv4.tcp_wmem) over"),
        "{}",
        why.statement.plain()
    );
    let [remedy] = &why.remedies[..] else { panic!("{:#?}", why.remedies) };
    assert_eq!((remedy.now.as_str(), remedy.value.as_str()), ("4096 16384 4194304", "4096 16384 16777216"));
    let said = "`thru tune set 'sysctl.net.ipv4.tcp_wmem=4096 16384 16777216'` on the near host (now 4 MiB): 800 Mbit/s (twice the \
                measured rate) × 80.0 ms RTT needs a window of 7.63 MiB; the third value of net.ipv4.tcp_wmem counts memory, so \
                it is twice that, rounded up";
    assert_eq!(remedy.statement.plain(), said);
    // The receiver's limit follows where it would be next, and the line's rate counts where it is known.
    case.hosts[1].sysctl.insert("net.ipv4.tcp_rmem".into(), "4096\t131072\t6291456".into());
    case.outcome.summary.ceiling = Some(model::Ceiling {
        bound_bps: 2.5e9,
        kind: model::BoundKind::Line,
        reason: "eth0 on 2.5 Gbit/s".into(),
        others: Vec::new(),
    });
    let settings: Vec<(model::Role, String)> =
        case.why().remedies.into_iter().map(|one| (one.role, one.value)).collect();
    let of = |role, value: &str| (role, value.to_owned());
    let expected = [of(model::Role::Active, "4096 16384 50331648"), of(model::Role::Passive, "4096 131072 50331648")];
    assert_eq!(settings, expected);
    case.outcome.summary.ceiling = None;
    case.hosts[1].sysctl.clear();
    // A buffer that can still grow is not too small.
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(3 << 20));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    // The same for the receiver's limit.
    case.hosts[1].sysctl.insert("net.ipv4.tcp_rmem".into(), "4096\t131072\t6291456".into());
    case.trials(|trial| trial.far.flows[0].socket.rcvbuf = Some(6 << 20));
    case.samples(|_, one| one.peer_window_bytes = Some(4 << 20));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::ReceiveWindow);
    assert!(
        why.statement.plain().contains("window (at the limit of net.ipv4.tcp_rmem) over"),
        "{}",
        why.statement.plain()
    );
    assert_eq!(why.remedies[0].command, "thru tune set 'sysctl.net.ipv4.tcp_rmem=4096 131072 16777216'");
    assert!(why.remedies[0].statement.plain().contains(" on the far host (now 6 MiB): "), "{:?}", why.remedies);
}

#[test]
fn a_full_link_needs_no_larger_buffer() {
    let mut case = RecordedCase::tcp(250, 20 * MS);
    case.hosts[0].sysctl.insert("net.ipv4.tcp_wmem".into(), "4096 16384 524288".into());
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(512 << 10));
    case.samples(|_, one| (one.cwnd, one.min_rtt_ns, one.notsent_bytes) = (6_000, Some(10 * MS), Some(2 << 20)));
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::Link, Some(Grade::Strong)), "{why:#?}");
    assert!(why.also.contains(&LimiterKind::SendBuffer), "{why:#?}");
    assert!(why.remedies.is_empty(), "{:#?}", why.remedies);
}
