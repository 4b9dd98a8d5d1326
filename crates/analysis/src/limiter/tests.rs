mod claims;
mod cpu;
mod packets;
mod paths;
mod recorded;
mod recorded_case;
mod remedies;
mod series;

use model::{CoreUse, CpuUse, EndPass, HostSeries, LossLocation, Pattern, RttTally, SeriesLine, Spent};
use proptest::prelude::*;

use self::recorded_case::{RecordedCase, adds_up, around, part};
use super::*;
use crate::curve::testing::made;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

#[test]
fn every_rule_has_a_description_and_a_source() {
    for rule in RULES {
        assert!(rule.about.ends_with('.') && rule.source.len() > 10 && !rule.speaks_for.is_empty(), "{}", rule.name);
        assert_eq!(RULES.iter().filter(|other| other.name == rule.name).count(), 1, "{}", rule.name);
    }
}

#[test]
fn a_limit_without_evidence_stays_unexplained() {
    let case = RecordedCase::tcp(100, 20 * MS);
    let why = case.why();
    assert_eq!((why.limiter, part(&why, LimiterKind::Network)), (LimiterKind::Unexplained, 1.0), "{why:#?}");
    assert_eq!(why.grade, None);
    assert_eq!(why.statement.plain(), "bottleneck not identified");
    assert!(why.missing.iter().any(|one| one.contains("counters of the receiver")), "{:?}", why.missing);
}

#[test]
fn a_small_window_is_the_receive_window() {
    // 64 KiB over 20 ms are 26.2 Mbit/s.
    let mut case = RecordedCase::tcp(25, 20 * MS);
    case.samples(|i, one| {
        one.peer_window_bytes = Some(65_536);
        one.rwnd_limited_ns = Some(i * 87 * MS);
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::ReceiveWindow);
    adds_up(&why);
    // The share is the clock's.
    assert!((part(&why, LimiterKind::ReceiveWindow) - 0.87).abs() < 1e-9, "{why:#?}");
    assert_eq!(
        why.statement.plain(),
        "receive window (strong, 87 % of the sender's time): 64 KiB window over 20.0 ms carries at most 26.2 Mbit/s"
    );
    let shares: Vec<(&str, Option<f64>)> = why.evidence.iter().map(|one| (one.rule.as_str(), one.share)).collect();
    assert_eq!(shares, [("window-over-rtt", None), ("tcp-clocks", Some(0.87))]);
}

#[test]
fn a_full_window_that_could_carry_more_is_a_slow_reader() {
    let mut case = RecordedCase::tcp(20, 2 * MS);
    case.samples(|i, one| {
        one.rwnd_limited_ns = Some(i * 95 * MS);
        one.peer_window_bytes = Some(if i == 0 { 4 << 20 } else { 1 << 18 });
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::ReceiverApplication);
    assert!(why.statement.plain().contains("the receiver's program did not read in time"), "{}", why.statement.plain());
    // A receiver whose thread is always busy is limited by CPU.
    case.trials(|trial| trial.far.spent = Some(Spent { process_ns: 990 * MS, ..Spent::default() }));
    assert_eq!(case.limiter(), LimiterKind::ReceiverCpu);
}

#[test]
fn an_open_window_that_is_used_up_is_not_a_slow_reader() {
    // 1 MB queues before a link of 940 Mbit/s; the announced window does not change.
    let mut case = RecordedCase::tcp(940, 6 * MS);
    case.samples(|i, one| {
        one.rwnd_limited_ns = Some(i * 60 * MS);
        one.min_rtt_ns = Some(MS / 4);
        one.peer_window_bytes = Some(800_000);
    });
    let why = case.why();
    assert!(why.evidence.iter().all(|one| one.rule != "slow-reader"), "{why:#?}");
    assert!(why.evidence.iter().any(|one| one.rule == "bottleneck" && one.grade == Grade::Strong), "{why:#?}");
    assert_eq!((why.limiter, &why.also[..]), (LimiterKind::Link, &[LimiterKind::ReceiveWindow][..]));
}

#[test]
fn a_requested_reading_rate_is_found_without_clocks() {
    let mut case = RecordedCase::tcp(20, 2 * MS);
    case.outcome.spec.far.drain_bps = Some(20_000_000);
    case.trials(|trial| trial.near.flows[0].tcp.clear());
    let why = case.why();
    assert_eq!((why.limiter, why.parts.len()), (LimiterKind::ReceiverApplication, 0), "{why:#?}");
    assert!(
        why.statement
            .plain()
            .contains("the receiver's requested reading rate is 20.0 Mbit/s and it read 20.0 Mbit/s (100 %)"),
        "{}",
        why.statement.plain()
    );
    assert!(why.missing.iter().any(|one| one.contains("TCP_INFO")), "{:?}", why.missing);
}

#[test]
fn a_small_send_buffer_is_the_send_buffer() {
    let mut case = RecordedCase::tcp(20, 20 * MS);
    case.outcome.spec.near.sndbuf = Some(32_768);
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(65_536));
    case.samples(|i, one| (one.sndbuf_limited_ns, one.unacked) = (Some(i * 90 * MS), 40));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SendBuffer);
    adds_up(&why);
    // The kernel's doubling counts once.
    let said =
        "64 KiB send buffer (SO_SNDBUF of 32 KiB, which the kernel doubles) over 20.0 ms carries at most 26.2 Mbit/s";
    assert!(why.statement.plain().contains(said), "{}", why.statement.plain());
    // Twice 20 Mbit/s over 20 ms are 100 kB, rounded up.
    let [remedy] = &why.remedies[..] else { panic!("{:#?}", why.remedies) };
    assert_eq!((remedy.setting.as_str(), remedy.command.as_str()), ("sndbuf", "--sndbuf 128KiB"));
    assert_eq!((remedy.role, remedy.window_bytes), (model::Role::Active, 100_000));
    // A host that grants less than the request must grant more first.
    case.hosts[0].sysctl.insert("net.core.wmem_max".into(), "65536".into());
    let [remedy] = &case.why().remedies[..] else { panic!("no remedy") };
    assert_eq!(remedy.command, "thru tune set sysctl.net.core.wmem_max=131072");
    let said = "(now 64 KiB), and then `--sndbuf 128KiB`: 40.0 Mbit/s (twice the measured rate) × 20.0 ms RTT";
    assert!(remedy.statement.plain().contains(said), "{remedy:?}");
}

#[test]
fn a_send_buffer_of_one_segment_waits_for_delayed_acknowledgements_and_is_no_queue() {
    // Loopback with `--sndbuf 32KiB`: one segment for each delayed acknowledgement, 40 ms at most.
    let mut case = RecordedCase::tcp(24, 22 * MS);
    case.outcome.spec.near.sndbuf = Some(32_768);
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(65_536));
    case.samples(|_, one| (one.mss, one.unacked, one.cwnd, one.min_rtt_ns) = (65_483, 1, 10, Some(4_000)));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SendBuffer, "{why:#?}");
    let said = "64 KiB send buffer (SO_SNDBUF of 32 KiB, which the kernel doubles) has no room for two segments of 63.9 KiB, so \
                each waits for a delayed acknowledgement";
    assert!(why.statement.plain().contains(said) && why.also.is_empty(), "{why:#?}");
}

#[test]
fn a_sender_with_nothing_to_send_is_the_application_unless_its_core_is_full() {
    let mut case = RecordedCase::tcp(50, MS);
    case.samples(|i, one| one.busy_ns = Some(i * 10 * MS));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SenderApplication);
    assert!((part(&why, LimiterKind::SenderApplication) - 0.9).abs() < 1e-9);
    case.trials(|trial| trial.near.spent = Some(Spent { process_ns: 995 * MS, ..Spent::default() }));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SenderCpu);
    adds_up(&why);
    assert!(why.statement.plain().contains("the sender's busiest thread ran for 100 %"), "{}", why.statement.plain());
}

#[test]
fn a_requested_rate_is_the_sender_application_although_data_is_always_in_flight() {
    let mut case = RecordedCase::tcp(50, 50 * MS);
    case.outcome.spec.rate_bps = Some(50_000_000);
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SenderApplication);
    assert!(
        why.statement.plain().contains("the sender's requested rate is 50.0 Mbit/s and it carried 50.0 Mbit/s (100 %)"),
        "{}",
        why.statement.plain()
    );
    assert!(!why.statement.plain().contains("most of the time"), "{}", why.statement.plain());
    case.outcome.spec.rate_bps = Some(100_000_000);
    assert_eq!(case.limiter(), LimiterKind::Unexplained, "a rate that was not reached limits nothing");
    // A pause lowers the goodput, not the rate of the other intervals.
    case.outcome.spec.rate_bps = Some(50_000_000);
    case.trials(|trial| trial.far.bytes_received = trial.far.bytes_received * 9 / 10);
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SenderApplication);
    assert!(
        why.statement.plain().contains("carried 50.0 Mbit/s (100 %) for most of the time"),
        "{}",
        why.statement.plain()
    );
}

#[test]
fn losses_limit_the_congestion_window() {
    let mut case = RecordedCase::tcp(11, 20 * MS);
    case.trials(|trial| trial.near.flows[0].socket.cc = Some("reno".into()));
    case.samples(|i, one| (one.retransmits, one.ssthresh, one.cwnd) = (i, Some(14), 18));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Loss);
    assert!(
        why.statement.plain().contains("10 segments retransmitted") && why.statement.plain().contains("(Mathis)"),
        "{}",
        why.statement.plain()
    );
    let losses = why.losses.unwrap();
    assert_eq!((losses.packets, losses.locations.len(), losses.locations[0].location), (30, 1, LossLocation::Path));
    // A congestion control that does not react to loss is not limited by it, and Mathis applies to few losses and to Reno.
    case.trials(|trial| trial.near.flows[0].socket.cc = Some("bbr".into()));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    for (cc, each, reported) in [("bpf_scalable", 1, false), ("reno", 9, false), ("cubic", 1, true), ("reno", 1, true)]
    {
        case.trials(|trial| trial.near.flows[0].socket.cc = Some(cc.into()));
        case.samples(|i, one| one.retransmits = each * i);
        let why = case.why();
        assert_eq!(
            (why.limiter, why.statement.plain().contains("(Mathis)")),
            (LimiterKind::Loss, reported),
            "{cc}: {why:#?}"
        );
    }
    // A window that is not used up is not the limit.
    case.samples(|_, one| one.unacked = 9);
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    // Losses with a standing queue are its overflow: the link is the limit.
    case.samples(|_, one| one.unacked = 100);
    case.samples(|_, one| one.rtt_ns = 60 * MS);
    assert_eq!(case.limiter(), LimiterKind::Link);
}

#[test]
fn a_full_congestion_window_without_loss_is_reported() {
    let mut case = RecordedCase::tcp(57, 20 * MS);
    case.samples(|_, one| (one.cwnd, one.unacked, one.ssthresh) = (100, 100, None));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::CongestionWindow);
    assert!(why.statement.plain().contains("slow start for 100 %"), "{}", why.statement.plain());
    assert_eq!(why.grade, Some(Grade::Likely), "{why:#?}");
    case.samples(|_, one| one.ssthresh = Some(80));
    assert!(case.why().statement.plain().contains("it stopped growing because of delay"));
}

#[test]
fn a_standing_queue_is_a_link_limit_and_bufferbloat() {
    let mut case = RecordedCase::tcp(20, 45 * MS);
    case.samples(|_, one| one.min_rtt_ns = Some(5 * MS));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Link);
    assert!(
        why.statement.plain().contains("a standing queue raised the RTT from its minimum of 5.00 ms to 45.0 ms"),
        "{}",
        why.statement.plain()
    );
    assert!(
        why.notes.iter().any(|note| note.plain().contains("bufferbloat") && note.plain().contains("40.0 ms")),
        "{:?}",
        why.notes
    );
}

#[test]
fn the_line_and_a_shaper_of_the_sender_are_distinguished() {
    let mut case = RecordedCase::tcp(935, MS);
    case.outcome.summary.ceiling = Some(model::Ceiling {
        bound_bps: 941e6,
        kind: model::BoundKind::Line,
        reason: "MTU 1500 on 1 Gbit/s".into(),
        others: Vec::new(),
    });
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Link);
    assert!(why.statement.plain().contains("99.4 % of the 941 Mbit/s"), "{}", why.statement.plain());
    case.counters(false, &[("qdisc.eth0.overlimits", 9_000), ("qdisc.eth0.drops", 12), ("qdisc.eth1.drops", 900)]);
    case.outcome.summary.ceiling = None;
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Qdisc);
    assert!(
        why.statement.plain().contains("delayed packets 9,000 times") && why.statement.plain().contains("dropped 12"),
        "{}",
        why.statement.plain()
    );
}

#[test]
fn packets_that_are_always_queued_at_the_interface_are_the_link() {
    let mut case = RecordedCase::tcp(935, MS);
    case.counters(false, &[]);
    for pass in &mut case.passes {
        let line = SeriesLine { name: "qdisc.eth0.backlog".into(), unit: "B".into(), values: vec![Some(9_000.0); 10] };
        let series = HostSeries { at_ns: (0..10).collect(), lines: vec![line] };
        pass.near.observed.as_mut().unwrap().series = Some(series);
    }
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Link);
    assert!(why.statement.plain().contains("queued at the sender's interface in 100 %"), "{}", why.statement.plain());
}

#[test]
fn the_kernels_pacing_is_named() {
    let mut case = RecordedCase::tcp(48, 20 * MS);
    case.outcome.spec.near.max_pacing_bps = Some(50_000_000);
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Pacing);
    assert!(why.statement.plain().contains("paced to 50.0 Mbit/s"), "{}", why.statement.plain());
}

#[test]
fn bbrs_pacing_rate_is_the_bottleneck_unless_a_window_or_a_core_is() {
    let mut bbr = RecordedCase::tcp(48, 20 * MS);
    bbr.trials(|trial| trial.near.flows[0].socket.cc = Some("bbr".into()));
    bbr.samples(|_, one| one.pacing_bps = Some(50_000_000));
    let why = bbr.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::Link, Some(Grade::Strong)), "{why:#?}");
    assert!(
        why.statement.plain().contains("on the path: bbr estimated it at 50.0 Mbit/s and paced to that"),
        "{}",
        why.statement.plain()
    );
    // The rate of a window per RTT is not a bottleneck's.
    bbr.samples(|_, one| one.peer_window_bytes = Some(120_000));
    assert_ne!(bbr.limiter(), LimiterKind::Link);
    bbr.samples(|_, one| one.peer_window_bytes = Some(4 << 20));
    bbr.trials(|trial| trial.far.spent = Some(Spent { process_ns: 990 * MS, ..Spent::default() }));
    assert_eq!(bbr.limiter(), LimiterKind::ReceiverCpu);
}

#[test]
fn datagrams_without_room_are_the_socket_buffers_and_located() {
    let mut case = RecordedCase::udp(10_000, 9_000);
    case.counters(true, &[("snmp.Udp.RcvbufErrors", 700), ("dev.eth0.rx_dropped", 200)]);
    case.counters(false, &[("qdisc.eth0.drops", 40)]);
    let why = case.why();
    assert_eq!((why.limiter, why.parts.len()), (LimiterKind::SocketBuffer, 0), "{why:#?}");
    assert!(
        why.statement.plain().contains("no room for 700 of 10,000 datagrams (7.00 %)"),
        "{}",
        why.statement.plain()
    );
    let losses = why.losses.unwrap();
    let located: Vec<(LossLocation, u64)> = losses.locations.iter().map(|one| (one.location, one.packets)).collect();
    use LossLocation::{Path, ReceiverInterface, SenderQdisc, SocketBuffer};
    assert_eq!(located, [(SenderQdisc, 120), (Path, 180), (ReceiverInterface, 600), (SocketBuffer, 2_100)]);
    assert_eq!(losses.packets, 3_000);
    assert!(losses.locations[1].by.contains("no counter of either host"), "{losses:?}");
}

#[test]
fn drops_of_other_traffic_never_account_for_more_than_is_missing() {
    let mut case = RecordedCase::udp(10_000, 9_990);
    case.counters(true, &[("snmp.Udp.RcvbufErrors", 1 << 40), ("softnet.dropped", 7)]);
    let losses = case.why().losses.unwrap();
    assert_eq!((losses.packets, losses.locations.len(), losses.locations[0].packets), (30, 1, 30));
}

#[test]
fn segments_that_had_arrived_are_lost_nowhere() {
    let mut case = RecordedCase::tcp(11, 20 * MS);
    case.samples(|i, one| one.retransmits = 3 * i);
    case.samples(|i, one| one.spurious = Some(i));
    case.counters(true, &[]);
    let losses = case.why().losses.unwrap();
    let located: Vec<(LossLocation, u64)> = losses.locations.iter().map(|one| (one.location, one.packets)).collect();
    assert_eq!(
        (located, losses.of.as_str()),
        (vec![(LossLocation::Path, 60), (LossLocation::Nowhere, 30)], "segments")
    );
}

#[test]
fn one_transaction_at_a_time_is_the_round_trip() {
    let mut case = RecordedCase::tcp(1, MS);
    case.outcome.spec.pattern = Pattern::Rr;
    let rtt = RttTally {
        count: 900,
        min_ns: MS,
        p50_ns: MS,
        mean_ns: 1.05e6,
        p99_ns: None,
        max_ns: 2 * MS,
        batch: 1,
        histogram: None,
    };
    case.trials(|trial| (trial.near.rtt, trial.near.transactions) = (Some(rtt.clone()), 940));
    case.outcome.summary.transactions_per_s = Some(940.0);
    let why = case.why();
    assert_eq!((why.limiter, why.parts.len()), (LimiterKind::RoundTrip, 0), "{why:#?}");
    assert!(why.statement.plain().contains("with a mean RTT of 1.05 ms"), "{}", why.statement.plain());
    // With a requested rate that is reached the connection waits for its next turn.
    case.outcome.summary.transactions_per_s = Some(100.0);
    case.outcome.spec.block = 64;
    case.outcome.spec.rate_bps = Some(51_200);
    assert_eq!(case.limiter(), LimiterKind::SenderApplication);
}

#[test]
fn a_stalled_trial_names_the_end_that_blocked_and_for_how_long() {
    let mut case = RecordedCase::tcp(20, 2 * MS);
    case.samples(|i, one| {
        one.bytes_acked = Some(i.min(4));
        one.peer_window_bytes = Some(if i < 4 { 65_536 } else { 0 });
    });
    case.trials(|trial| trial.near.stalled = true);
    let said = case.why().notes[0].plain();
    assert_eq!(
        said,
        "A trial stalled for its last 600 ms: the receiver blocked (its program did not read, so its window closed)."
    );
    case.samples(|_, one| (one.peer_window_bytes, one.unacked) = (Some(65_536), 12));
    assert!(case.why().notes[0].plain().contains("12 segments were in flight and none was acknowledged"));
    case.samples(|_, one| one.unacked = 0);
    assert!(case.why().notes[0].plain().contains("the sender's program blocked"), "{:?}", case.why().notes);
}

#[test]
fn different_directions_are_reported() {
    let mut outbound = RecordedCase::tcp(80, 2 * MS);
    outbound.outcome.spec.direction = model::Direction::Both;
    for (i, trial) in outbound.outcome.trials.iter_mut().enumerate() {
        (trial.far.bytes_sent, trial.far.sending_ns) = (5_000_000, SECOND);
        (trial.near.bytes_received, trial.near.receiving_ns) = (5_000_000 + 1_000 * i as u64, SECOND);
    }
    let why = outbound.why();
    let said = why.notes.iter().find(|note| note.plain().contains("directions")).unwrap();
    assert!(
        said.plain().contains("80.0 Mbit/s outbound, 40.0 Mbit/s return (ratio 2.00 with a 95 % interval of"),
        "{said:?}"
    );
    let runs = |return_bps: f64| {
        let one = made(Pattern::Stream, 0, 1_024, &[8e8, 8.1e8, 7.9e8]);
        let mut other = made(Pattern::Stream, 0, 1_024, &[return_bps, 1.01 * return_bps, 0.99 * return_bps]);
        other.spec.direction = model::Direction::Reverse;
        between_runs(&[("one", &one), ("two", &other)])
    };
    assert!(
        runs(4e8)[0].plain().contains("the ratio of outbound (one) to return (two) is 2.00 with"),
        "{:?}",
        runs(4e8)
    );
    assert_eq!(runs(8e8), []);
}

#[test]
fn a_window_below_the_bandwidth_delay_product_is_reported_with_its_numbers() {
    let mut case = RecordedCase::tcp(25, 20 * MS);
    case.samples(|_, one| one.peer_window_bytes = Some(65_536));
    let line = model::Bound { kind: model::BoundKind::Line, bps: 1e9, reason: "1 Gbit/s".into() };
    case.outcome.summary.ceiling = Some(model::Ceiling {
        bound_bps: 26e6,
        kind: model::BoundKind::Window,
        reason: "window".into(),
        others: vec![line],
    });
    let notes = case.why().notes;
    assert!(
        notes
            .iter()
            .any(|note| note.plain().contains("window of 64 KiB is smaller") && note.plain().contains("needs 2.38 MiB")),
        "{notes:?}"
    );
}

#[test]
fn without_records_there_is_no_limiter() {
    let outcome = made(Pattern::Stream, 0, 1_024, &[]);
    assert_eq!(why(&outcome, &around([&Inventory::default(), &Inventory::default()])), None);
}

#[test]
fn two_buffers_of_nearly_the_same_size_are_both_reported() {
    let mut case = RecordedCase::tcp(14, 22 * MS);
    (case.outcome.spec.near.sndbuf, case.outcome.spec.far.rcvbuf) = (Some(32_768), Some(32_768));
    case.trials(|trial| trial.near.flows[0].socket.sndbuf = Some(65_536));
    case.samples(|i, one| {
        (one.peer_window_bytes, one.cwnd, one.unacked) = (Some(39_096), 56, 27);
        (one.rwnd_limited_ns, one.sndbuf_limited_ns) = (Some(i * 66 * MS), Some(i * 12 * MS));
    });
    let why = case.why();
    assert_eq!((why.limiter, &why.also[..]), (LimiterKind::ReceiveWindow, &[LimiterKind::SendBuffer][..]), "{why:#?}");
    let said = "; likely also send buffer: 64 KiB send buffer (SO_SNDBUF of 32 KiB, which the kernel doubles) over 22.0 ms \
                carries at most 23.8 Mbit/s";
    assert!(
        why.statement.plain().starts_with("receive window (strong, 66 %") && why.statement.plain().contains(said),
        "{}",
        why.statement.plain()
    );
    let settings: Vec<&str> = why.remedies.iter().map(|one| one.command.as_str()).collect();
    assert_eq!(settings, ["--rcvbuf 128KiB", "--sndbuf 128KiB"]);
}

#[test]
fn datagram_losses_at_a_steady_rate_are_a_bottleneck() {
    let mut case = RecordedCase::udp(10_000, 4_200);
    case.trials(|trial| {
        (trial.near.bytes_sent, trial.far.bytes_received) = (14_000_000, 5_880_000);
        trial.far.intervals.iter_mut().for_each(|one| one.bytes_received = 588_000);
        trial.near.spent = Some(Spent { process_ns: 990 * MS, ..Spent::default() });
    });
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::Link, Some(Grade::Strong)), "{why:#?}");
    let said =
        "a bottleneck of about 47.0 Mbit/s on the path: 58.0 % of the datagrams were lost there, with 112 Mbit/s sent";
    assert!(why.statement.plain().contains(said), "{}", why.statement.plain());
    // One long interval does not hide the others.
    case.trials(|trial| trial.far.intervals.last_mut().unwrap().end_ns += SECOND);
    assert!(
        case.why().statement.plain().contains("a bottleneck of about 47.0 Mbit/s"),
        "{}",
        case.why().statement.plain()
    );
    // Drops at the receiving host are not a bottleneck on the path.
    case.trials(|trial| trial.far.datagrams.as_mut().unwrap().socket_drops = 5_800);
    assert_eq!(case.limiter(), LimiterKind::SocketBuffer);
}

proptest! {
    #[test]
    fn the_parts_always_add_up(
        clocks in prop::array::uniform3(0u64..2_000), rtt in 0u64..100_000_000, shortest in 1u64..100_000_000, cwnd in 0u32..2_000,
        window in 0u32..1 << 24, ran in 0u64..2_000, retransmits in 0u64..500, mbit in 1u64..10_000, rate in prop::option::of(1u64..1 << 34),
        drain in prop::option::of(1u64..1 << 34), overlimits in 0i64..1_000_000,
    ) {
        let mut case = RecordedCase::tcp(mbit, rtt);
        let [busy, rwnd, sndbuf] = clocks;
        case.samples(|i, one| {
            one.busy_ns = Some(i * busy * MS / 10);
            one.rwnd_limited_ns = Some(i * rwnd * MS / 10);
            one.sndbuf_limited_ns = Some(i * sndbuf * MS / 10);
            one.min_rtt_ns = Some(shortest);
            (one.cwnd, one.unacked, one.ssthresh) = (cwnd, cwnd / 2 * 2, Some(cwnd / 2));
            one.peer_window_bytes = Some(window);
            one.retransmits = retransmits * i;
        });
        case.outcome.spec.rate_bps = rate;
        case.outcome.spec.far.drain_bps = drain;
        case.outcome.spec.near.sndbuf = drain;
        case.trials(|trial| trial.near.spent = Some(Spent { process_ns: ran * MS, ..Spent::default() }));
        case.counters(false, &[("qdisc.eth0.overlimits", overlimits)]);
        let why = case.why();
        let sum: f64 = why.parts.iter().map(|part| part.share).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9, "{} {:#?}", sum, why.parts);
        prop_assert!(why.parts.iter().all(|part| (0.0..=1.0).contains(&part.share)), "{:#?}", why.parts);
        // Shares of time come from clocks, and a limiter has evidence.
        let clocks = ["tcp-clocks", "full-thread"];
        prop_assert!(why.evidence.iter().all(|one| one.share.is_none() || clocks.contains(&one.rule.as_str())), "{:#?}", why.evidence);
        prop_assert_eq!(why.grade.is_none(), why.limiter == LimiterKind::Unexplained);
        prop_assert!(why.evidence.iter().all(|one| !one.statement.plain().contains("NaN")), "{:#?}", why.evidence);
    }
}
