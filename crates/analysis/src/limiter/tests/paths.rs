//! The return path, other traffic, delay that varies, and queues that are too short.

use model::{Pattern, TcpSample};

use super::recorded_case::{RecordedCase, around};
use super::*;

/// A flow at 10 Mbit/s whose round trips grow from 20 ms by 36 ms in 100 until then, and the bytes that the receiver reports: those that the sender has
/// seen acknowledged `back` of the added delay before.
fn growing_delay(back: f64, until_ns: u64) -> RecordedCase {
    let mut case = RecordedCase::tcp(10, 20 * MS);
    let rtt_ns = |at_ns: u64| 20 * MS + at_ns.min(until_ns) * 36 / 100;
    let bytes = |at_ns: u64| at_ns * 10 / 8_000;
    case.samples(|i, one| {
        one.rtt_ns = rtt_ns(i * 100 * MS);
        (one.bytes_acked, one.delivered) = (Some(bytes(one.at_ns)), Some(bytes(one.at_ns) / 1_448));
        (one.notsent_bytes, one.acks_received) = (Some(100_000), Some(40 * i));
    });
    case.trials(|trial| {
        let sample = |i: u64| {
            let at_ns = i * 50 * MS;
            let added = rtt_ns(at_ns) - 20 * MS;
            let later = 10 * MS + (back * added as f64) as u64;
            TcpSample { at_ns, bytes_received: Some(bytes(at_ns + later)), ..TcpSample::default() }
        };
        trial.far.flows[0].tcp = (0..19).map(sample).collect();
    });
    case
}

#[test]
fn delay_that_arises_after_the_data_has_arrived_is_the_return_path() {
    let why = growing_delay(1.0, 500 * MS).why();
    assert_eq!(why.limiter, LimiterKind::ReturnPath, "{why:#?}");
    assert!(why.statement.plain().contains("acknowledgements (400 per second) queued on the return path"), "{why:#?}");
    let why = growing_delay(0.0, 500 * MS).why();
    assert_eq!(why.limiter, LimiterKind::Link, "{why:#?}");
    assert!(why.evidence.iter().all(|one| one.of != LimiterKind::ReturnPath), "{why:#?}");
}

#[test]
fn round_trips_that_are_level_after_the_start_do_not_show_where_the_delay_arose() {
    let why = growing_delay(1.0, 100 * MS).why();
    assert_eq!(why.limiter, LimiterKind::Link, "{why:#?}");
    assert!(why.evidence.iter().all(|one| one.of != LimiterKind::ReturnPath), "{why:#?}");
}

#[test]
fn a_return_path_that_is_slow_gives_no_rate_of_the_path() {
    let known = |case: &RecordedCase| known_bps(&case.outcome, &case.hosts[0], &case.hosts[1]);
    assert_eq!(known(&growing_delay(1.0, 500 * MS)), None);
    assert!(known(&growing_delay(0.0, 500 * MS)).is_some_and(|bps| (bps - 10e6).abs() < 1e6));
}

/// A bottleneck with a standing queue.
fn full_link() -> RecordedCase {
    let mut case = RecordedCase::tcp(40, 50 * MS);
    case.samples(|_, one| (one.min_rtt_ns, one.notsent_bytes) = (Some(20 * MS), Some(1 << 20)));
    case
}

#[test]
fn bytes_of_others_on_an_interface_are_other_traffic() {
    let mut case = full_link();
    assert_eq!(case.limiter(), LimiterKind::Link);
    case.counters(true, &[("dev.eth0.rx_bytes", 5_300_000), ("dev.lo.rx_bytes", 90_000_000)]);
    assert_eq!(case.limiter(), LimiterKind::Link, "its own headers, and a few bytes of control");
    case.counters(true, &[("dev.eth0.rx_bytes", 12_000_000)]);
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::OtherTraffic, Some(Grade::Strong)), "{why:#?}");
    let said = "6.77 MB of other traffic passed eth0 of the receiver, besides 5.23 MB of this measurement (56 % is other traffic)";
    assert!(why.statement.plain().contains(said), "{}", why.statement.plain());
    // Simultaneous tests of the same run are not other traffic.
    case.outcome.spec.start_ns = Some(1);
    assert_ne!(case.limiter(), LimiterKind::OtherTraffic);
}

#[test]
fn others_take_nothing_from_a_path_that_is_not_full() {
    let mut case = RecordedCase::tcp(40, 20 * MS);
    case.counters(true, &[("dev.eth0.rx_bytes", 12_000_000)]);
    assert!(case.why().evidence.iter().all(|one| one.of != LimiterKind::OtherTraffic), "{:#?}", case.why());
}

#[test]
fn a_queue_that_stood_before_the_data_is_other_traffic() {
    let mut case = full_link();
    for (trial, shortest) in case.outcome.trials.iter_mut().zip([44, 20, 42]) {
        trial.near.flows[0].tcp.iter_mut().for_each(|one| one.min_rtt_ns = Some(shortest * MS));
    }
    let why = case.why();
    let found = why.evidence.iter().find(|one| one.of == LimiterKind::OtherTraffic).unwrap();
    assert_eq!(found.grade, Grade::Likely, "{why:#?}");
    let said = "the shortest RTT was 44.0 ms in one trial and 20.0 ms in another";
    assert!(found.statement.plain().contains(said), "{}", found.statement.plain());
}

/// A full congestion window without loss, after slow start.
fn stopped_growing() -> RecordedCase {
    let mut case = RecordedCase::tcp(11, 20 * MS);
    case.samples(|_, one| (one.cwnd, one.unacked, one.ssthresh) = (20, 20, Some(18)));
    case
}

#[test]
fn delay_that_varies_without_the_data_is_jitter() {
    let mut case = stopped_growing();
    assert_eq!(case.limiter(), LimiterKind::CongestionWindow);
    case.samples(|i, one| {
        (one.rtt_ns, one.min_rtt_ns, one.delivered) = ((21 + i * 7 % 11) * MS, Some(20 * MS), Some(10 * i * i));
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Jitter, "{why:#?}");
    assert!(why.statement.plain().contains("do not follow the data in flight"), "{}", why.statement.plain());
    // Before a queue the RTT follows the data in flight.
    case.samples(|i, one| one.unacked = 16 + (i * 7 % 11) as u32);
    assert_ne!(case.limiter(), LimiterKind::Jitter);
}

#[test]
fn drops_of_the_senders_own_queue_that_need_no_retransmission_are_the_qdiscs() {
    let mut case = stopped_growing();
    case.counters(false, &[("qdisc.eth0.drops", 3)]);
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Qdisc, "{why:#?}");
    assert!(
        why.statement.plain().contains("the sender's qdisc had no room for 3 packets"),
        "{}",
        why.statement.plain()
    );
    assert!(why.evidence.iter().all(|one| one.of != LimiterKind::CongestionWindow), "{why:#?}");
}

#[test]
fn a_path_is_known_between_the_two_hosts_that_were_probed() {
    let mtu = |bytes| Path { mtu: Some(model::PathMtu { bytes, ..Default::default() }), ..Path::default() };
    let header = RunHeader { path_outbound: Some(mtu(1_400)), path_return: Some(mtu(1_300)), ..RunHeader::default() };
    let outcome = made(Pattern::Stream, 0, 1_024, &[1e9]);
    assert_eq!(Recorded::around(&outcome, &header, &[]).path_mtu, [Some(1_400), Some(1_300)]);
    assert_eq!(around([&header.near, &header.far]).path_mtu, [None; 2]);
}
