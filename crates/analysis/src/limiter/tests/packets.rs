//! Packets that are too large, and packets in another order.

use super::recorded_case::RecordedCase;
use super::*;

#[test]
fn datagrams_above_the_far_mtu_are_named() {
    let mut case = RecordedCase::udp(1_000, 0);
    case.trials(|trial| {
        (trial.near.bytes_sent, trial.far.bytes_received) = (2_800_000, 0);
        trial.near.flows[0].socket.peer = Some("10.0.0.1:6280".into());
        trial.far.flows.clear();
    });
    // Without the receiver's MTU other causes are as good.
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::Unexplained, None), "{why:#?}");
    assert!(
        why.statement.plain().contains("possible path MTU: 0 of 1,000 datagrams arrived"),
        "{}",
        why.statement.plain()
    );
    case.path_mtu = [Some(1_400), Some(1_300)];
    assert!(
        case.why().statement.plain().contains("larger than the MTU of 1400 bytes on the path"),
        "{}",
        case.why().statement.plain()
    );
    case.path_mtu = [None; 2];
    case.hosts[1].interfaces[0].mtu = Some(1_500);
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::PathMtu, Some(Grade::Strong)), "{why:#?}");
    let said = "each is a packet of 2828 bytes, larger than the MTU of 1500 bytes on the path";
    assert!(why.statement.plain().contains(said), "{}", why.statement.plain());
    // If fragments arrive, the MTU is not at fault.
    case.trials(|trial| trial.far.datagrams.as_mut().unwrap().received = 700);
    assert!(case.why().evidence.iter().all(|one| one.of != LimiterKind::PathMtu), "{:#?}", case.why());
}

#[test]
fn full_segments_that_never_arrive_are_a_black_hole() {
    let mut case = RecordedCase::tcp(20, 20 * MS);
    case.samples(|i, one| {
        (one.bytes_acked, one.delivered, one.unacked, one.state) = (Some(300), Some(2), 10, 4);
        (one.timeouts, one.retransmits) = (Some(i / 3), i / 3);
    });
    case.trials(|trial| {
        (trial.far.bytes_received, trial.near.stalled) = (0, true);
        trial.far.intervals.clear();
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::PathMtu, "{why:#?}");
    assert!(
        why.statement.plain().contains("no segment of 1448 bytes was acknowledged in 3 timeouts"),
        "{}",
        why.statement.plain()
    );
    case.path_mtu = [Some(1_400), None];
    let why = case.why();
    assert_eq!(why.grade, Some(Grade::Strong), "{why:#?}");
    assert!(
        why.statement.plain().contains("the path carries packets of up to 1400 bytes"),
        "{}",
        why.statement.plain()
    );
    // A path that carries full segments between its outages is not a black hole.
    case.samples(|i, one| one.bytes_acked = Some(300 + i * 1_448));
    assert_ne!(case.limiter(), LimiterKind::PathMtu);
}

#[test]
fn retransmissions_of_overtaken_segments_are_reordering_and_no_loss() {
    let mut case = RecordedCase::tcp(11, 20 * MS);
    case.samples(|i, one| {
        (one.retransmits, one.spurious, one.ssthresh, one.cwnd) = (10 * i, Some(9 * i), Some(14), 18);
        (one.reordering, one.state) = (30, 1);
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Reordering, "{why:#?}");
    let said = "90 of 100 retransmitted segments had arrived (D-SACK), and segments were overtaken by up to 30 others";
    assert!(why.statement.plain().contains(said) && !why.also.contains(&LimiterKind::Loss), "{why:#?}");
    // Retransmissions of lost segments are not needless, and a late timer alone is not reordering.
    case.samples(|_, one| one.spurious = Some(0));
    assert_eq!(case.limiter(), LimiterKind::Loss);
    case.samples(|i, one| (one.spurious, one.reordering, one.timeouts) = (Some(9 * i), 3, Some(5 * i)));
    assert_eq!(case.limiter(), LimiterKind::Loss);
    // Without timeouts they were taken for lost because later ones had arrived.
    case.samples(|_, one| one.timeouts = Some(0));
    assert_eq!(case.limiter(), LimiterKind::Reordering);
}
