//! What a rule claims agrees with the numbers that it gives.

use model::{Setting, ThreadTime};

use super::recorded_case::RecordedCase;
use super::*;

/// A rate in a statement, such as the `47.1 Mbit/s` after `before`, in bit/s.
fn rate(statement: &str, before: &str) -> Option<f64> {
    let mut words = statement.split_once(before)?.1.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let factor = match words.next()?.trim_end_matches([';', ':', ',']) {
        "bit/s" => 1.0,
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        "Tbit/s" => 1e12,
        _ => return None,
    };
    Some(number * factor)
}

/// Two times in a statement, as they are printed.
fn raised(statement: &str) -> Option<(&str, &str)> {
    let (from, rest) = statement.split_once("from its minimum of ")?.1.split_once(" to ")?;
    let unit = rest.split_inclusive(' ').take(2).map(str::len).sum::<usize>();
    Some((from, rest[..unit].trim_end_matches([' ', ';'])))
}

/// Asserts that no evidence contradicts itself or the goodput, bit/s.
fn agrees(why: &Why, goodput: f64) {
    for one in &why.evidence {
        let said = &one.statement.plain();
        assert!(raised(said).is_none_or(|(from, to)| from != to), "{said}");
        // Printed with three digits.
        assert!(rate(said, "bottleneck of about ").is_none_or(|bps| bps >= 0.99 * goodput), "{said} at {goodput}");
        assert!(rate(said, "carries at most ").is_none_or(|bps| bps <= 4.1 * goodput), "{said} at {goodput}");
        assert!(one.rule != "full-thread" || !said.contains("ran for 0 %"), "{said}");
    }
}

#[test]
fn the_contradictions_are_seen() {
    let said = "a standing queue raised the RTT from its minimum of 183 ms to 183 ms; the rate varied by 93 %";
    assert_eq!(raised(said), Some(("183 ms", "183 ms")));
    assert_eq!(rate("64.0 KiB window over 2.00 µs carries at most 262 Gbit/s", "carries at most "), Some(262e9));
    assert_eq!(rate("a bottleneck of about 9.64 Mbit/s on the path: a", "bottleneck of about "), Some(9.64e6));
}

#[test]
fn bursts_of_a_long_path_are_no_queue() {
    // A window per round trip of 183 ms, so most samples see nothing arrive and the others all of it.
    let mut case = RecordedCase::tcp(100, 183 * MS);
    case.samples(|i, one| {
        one.delivered = Some(i.div_ceil(2) * 1_700);
        one.rtt_ns = if i > 7 { 193 * MS } else { 183 * MS };
    });
    let why = case.why();
    agrees(&why, 100e6);
    assert!(why.evidence.iter().all(|one| one.rule != "bottleneck" || one.grade < Grade::Strong), "{why:#?}");
}

#[test]
fn a_queue_in_some_samples_is_described_by_those() {
    let mut case = RecordedCase::tcp(100, 183 * MS);
    case.samples(|i, one| one.rtt_ns = if i > 6 { 230 * MS } else { 183 * MS });
    let why = case.why();
    agrees(&why, 100e6);
    let found = why.evidence.iter().find(|one| one.rule == "bottleneck").expect("a queue");
    assert!(
        found.statement.plain().contains("from its minimum of 183 ms to 230 ms in a fifth"),
        "{}",
        found.statement.plain()
    );
}

#[test]
fn a_window_whose_bound_is_far_above_the_rate_does_not_limit() {
    let mut case = RecordedCase::tcp(16_400, 40_000);
    case.samples(|_, one| (one.peer_window_bytes, one.min_rtt_ns) = (Some(65_536), Some(2_000)));
    let why = case.why();
    agrees(&why, 16.4e9);
    assert_ne!(why.limiter, LimiterKind::ReceiveWindow, "{why:#?}");
}

#[test]
fn a_bottleneck_carries_at_least_what_arrived() {
    let mut case = RecordedCase::tcp(24, 45 * MS);
    case.samples(|i, one| (one.min_rtt_ns, one.delivered) = (Some(5 * MS), Some(i * 83)));
    agrees(&case.why(), 24e6);
    assert_ne!(case.why().grade, Some(Grade::Strong), "{:#?}", case.why());
    let mut udp = RecordedCase::udp(10_000, 4_200);
    udp.trials(|trial| trial.near.bytes_sent *= 2);
    agrees(&udp.why(), 100e6);
}

#[test]
fn a_thread_that_hardly_runs_is_not_limited_by_cpu() {
    let mut case = RecordedCase::tcp(24, 20 * MS);
    let thread = |cpu| ThreadTime {
        threads: 1,
        elapsed_ns: SECOND,
        cpu_ns: cpu * MS,
        wait_ns: Some(480 * MS),
        ..ThreadTime::default()
    };
    let mut limiter = |cpu| {
        case.trials(|trial| trial.far.spent = Some(Spent { busiest: Some(thread(cpu)), ..Spent::default() }));
        case.samples(|_, one| one.notsent_bytes = Some(1 << 20));
        case.limiter()
    };
    assert_eq!(limiter(4), LimiterKind::Unexplained);
    assert_eq!(limiter(150), LimiterKind::ReceiverCpu);
}

#[test]
fn limits_that_the_measurement_sets_are_those_of_the_host() {
    // 192 KiB over 80 ms are 19.7 Mbit/s.
    let mut case = RecordedCase::tcp(18, 80 * MS);
    case.hosts[1].sysctl.insert("net.ipv4.tcp_rmem".into(), "4096 131072 6291456".into());
    case.trials(|trial| trial.far.flows[0].socket.rcvbuf = Some(262_144));
    case.samples(|_, one| one.peer_window_bytes = Some(196_608));
    assert!(!case.why().statement.plain().contains("tcp_rmem"), "{}", case.why().statement.plain());
    case.outcome.spec.settings.far =
        vec![Setting { key: "sysctl.net.ipv4.tcp_rmem".into(), value: "4096 87380 262144".into() }];
    let why = case.why();
    assert!(
        why.statement.plain().contains("window (at the limit of net.ipv4.tcp_rmem) over"),
        "{}",
        why.statement.plain()
    );
    // Twice 18 Mbit/s × 80 ms, as memory.
    let [remedy] = &why.remedies[..] else { panic!("{:#?}", why.remedies) };
    assert_eq!((remedy.now.as_str(), remedy.value.as_str()), ("4096 87380 262144", "4096 87380 720896"));
    assert!(remedy.statement.plain().contains("36.0 Mbit/s (twice the measured rate)"), "{remedy:?}");
}

#[test]
fn a_window_that_is_not_scaled_is_named_with_the_host_that_has_it_off() {
    let mut case = RecordedCase::tcp(6, 80 * MS);
    case.samples(|_, one| one.peer_window_bytes = Some(65_535));
    assert!(!case.why().statement.plain().contains("scal"), "{}", case.why().statement.plain());
    for (off, said) in [(0, "the sending host"), (1, "the receiving host")] {
        case.hosts[off].sysctl.insert("net.ipv4.tcp_window_scaling".into(), "0".into());
        let why = case.why();
        assert_eq!(why.limiter, LimiterKind::ReceiveWindow);
        let said = format!("64.0 KiB window (not scaled: {said} has net.ipv4.tcp_window_scaling=0) over 80.0 ms");
        assert!(why.statement.plain().contains(&said), "{}", why.statement.plain());
        let [remedy] = &why.remedies[..] else { panic!("{:#?}", why.remedies) };
        assert_eq!(remedy.command, "thru tune set sysctl.net.ipv4.tcp_window_scaling=1");
        assert_eq!(remedy.role, [model::Role::Active, model::Role::Passive][off]);
        case.hosts[off].sysctl.clear();
    }
    // A small buffer of a host that scales is the buffer's.
    case.hosts[1].sysctl.insert("net.ipv4.tcp_window_scaling".into(), "1".into());
    assert!(!case.why().statement.plain().contains("scal"), "{}", case.why().statement.plain());
}

proptest! {
    #[test]
    fn no_claim_contradicts_its_own_numbers(
        mbit in 1u64..50_000, shortest in 2_000u64..300_000_000, added in prop::array::uniform11(0u64..100_000_000),
        step in prop::array::uniform11(0u64..5_000), cwnd in 2u32..5_000, unacked in 0u32..5_000, window in 1u32..1 << 26,
        clocks in prop::array::uniform3(0u64..1_000), ran in 0u64..1_000, waited in 0u64..1_000, sndbuf in prop::option::of(4_096u64..1 << 24),
        sent in 1u64..100_000, arrived in 0u64..100_000,
    ) {
        let mut case = RecordedCase::tcp(mbit, shortest);
        let mut delivered = 0;
        let levels: Vec<u64> = step.iter().map(|by| { delivered += by; delivered }).collect();
        let [busy, rwnd, buffer] = clocks;
        case.samples(|i, one| {
            one.rtt_ns = shortest + added[i as usize];
            one.delivered = Some(levels[i as usize]);
            (one.cwnd, one.unacked, one.peer_window_bytes) = (cwnd, unacked, Some(window));
            one.busy_ns = Some(i * busy * MS / 10);
            one.rwnd_limited_ns = Some(i * rwnd * MS / 10);
            one.sndbuf_limited_ns = Some(i * buffer * MS / 10);
        });
        case.outcome.spec.near.sndbuf = sndbuf;
        let thread = ThreadTime { threads: 1, elapsed_ns: SECOND, cpu_ns: ran * MS, wait_ns: Some(waited * MS), ..ThreadTime::default() };
        case.trials(|trial| {
            trial.near.flows[0].socket.sndbuf = sndbuf;
            trial.near.spent = Some(Spent { busiest: Some(thread), ..Spent::default() });
            trial.far.spent = trial.near.spent.clone();
        });
        agrees(&case.why(), mbit as f64 * 1e6);
        let udp = RecordedCase::udp(sent, arrived.min(sent));
        if let Some(why) = why(&udp.outcome, &udp.recorded()) {
            agrees(&why, 100e6);
        }
    }
}
