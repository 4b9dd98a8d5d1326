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
    assert!(
        why.statement.plain().contains("it grew exponentially for 90 % of the time (slow start)"),
        "{}",
        why.statement.plain()
    );
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
        why.statement.plain().contains("paced to 50.0 Mbit/s including headers (its pacing rate never changed)"),
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

/// Of the busiest thread of an end: the shares of a second in which it ran and waited for CPU, ms.
fn spent(ran: u64, waited: u64) -> Option<Spent> {
    let (cpu_ns, wait_ns) = (ran * MS, Some(waited * MS));
    let thread = model::ThreadTime { threads: 1, elapsed_ns: SECOND, cpu_ns, wait_ns, ..model::ThreadTime::default() };
    Some(Spent { busiest: Some(thread), ..Spent::default() })
}

#[test]
fn data_waits_before_a_bottleneck_on_the_path() {
    // A cable between busy hosts: the RTT rises while threads wait for CPU, but the send queue is empty.
    let mut case = RecordedCase::tcp(2_500, MS);
    case.samples(|_, one| {
        one.min_rtt_ns = Some(3_000);
        (one.cwnd, one.unacked, one.notsent_bytes) = (8_690, 412, Some(462));
    });
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    // The same with data in the queue is a link.
    let mut case = RecordedCase::tcp(250, 20 * MS);
    case.samples(|_, one| (one.min_rtt_ns, one.notsent_bytes) = (Some(10 * MS), Some(2 << 20)));
    assert_eq!(case.limiter(), LimiterKind::Link);
    case.samples(|_, one| one.notsent_bytes = Some(0));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
}

#[test]
fn bbr_with_a_full_congestion_window_is_limited_by_it() {
    let mut bbr = RecordedCase::tcp(48, 20 * MS);
    bbr.trials(|trial| trial.near.flows[0].socket.cc = Some("bbr".into()));
    // 83 segments of 1,448 bytes in 20 ms are 48 Mbit/s, and BBR wants twice what it estimates to be in flight.
    bbr.samples(|_, one| (one.pacing_bps, one.cwnd, one.unacked) = (Some(50_000_000), 166, 83));
    assert_eq!(bbr.limiter(), LimiterKind::Link);
    bbr.samples(|_, one| (one.cwnd, one.unacked) = (83, 83));
    assert_eq!(bbr.limiter(), LimiterKind::CongestionWindow);
}

#[test]
fn of_two_busy_threads_the_one_that_sleeps_less_is_the_limit() {
    let mut case = RecordedCase::tcp(4_000, MS);
    case.samples(|_, one| one.notsent_bytes = Some(1 << 20));
    case.trials(|trial| (trial.near.spent, trial.far.spent) = (spent(220, 380), spent(370, 510)));
    assert_eq!(case.limiter(), LimiterKind::ReceiverCpu);
    case.trials(|trial| (trial.near.spent, trial.far.spent) = (spent(250, 590), spent(180, 210)));
    assert_eq!(case.limiter(), LimiterKind::SenderCpu);
    // A receiver for which no data waits does not limit, however busy its thread is.
    case.samples(|_, one| one.notsent_bytes = Some(0));
    case.trials(|trial| (trial.near.spent, trial.far.spent) = (spent(500, 100), spent(270, 430)));
    assert_ne!(case.limiter(), LimiterKind::ReceiverCpu);
    case.samples(|i, one| one.rwnd_limited_ns = Some(i * 90 * MS));
    assert_eq!(case.limiter(), LimiterKind::ReceiverCpu);
}

#[test]
fn a_program_that_reads_late_has_time() {
    let mut case = RecordedCase::tcp(20, 2 * MS);
    case.samples(|i, one| {
        one.rwnd_limited_ns = Some(i * 95 * MS);
        one.peer_window_bytes = Some(if i == 0 { 4 << 20 } else { 1 << 18 });
    });
    case.trials(|trial| trial.far.spent = spent(50, 10));
    assert_eq!(case.limiter(), LimiterKind::ReceiverApplication);
    // One that runs most of the time, and waits for the next window in between, is limited by its CPU.
    case.trials(|trial| trial.far.spent = spent(730, 10));
    assert_eq!(case.limiter(), LimiterKind::ReceiverCpu);
    // A window that is used up is too small, however busy its reader is.
    case.samples(|_, one| one.peer_window_bytes = Some(5_200));
    assert_eq!(case.limiter(), LimiterKind::ReceiveWindow);
}

#[test]
fn a_transport_of_the_programs_queues_while_they_wait_for_cpu() {
    let mut quic = RecordedCase::tcp(4_000, MS);
    quic.trials(|trial| {
        trial.near.flows[0].tcp.clear();
        let socket = &mut trial.near.flows[0].socket;
        (socket.srtt_ns, socket.min_rtt_ns) = (Some(6 * MS), Some(30_000));
    });
    assert_eq!(quic.limiter(), LimiterKind::Link);
    quic.trials(|trial| (trial.near.spent, trial.far.spent) = (spent(440, 400), spent(380, 430)));
    assert_ne!(quic.limiter(), LimiterKind::Link);
}

#[test]
fn a_rate_that_slow_start_held_back_at_first_is_reached_later() {
    // A second of which 400 ms passed until 50 Mbit/s were reached: 42 Mbit/s in all.
    let mut case = RecordedCase::tcp(42, 70 * MS);
    case.outcome.spec.rate_bps = Some(50_000_000);
    let intervals = |case: &mut RecordedCase, bytes: fn(u64) -> u64| {
        case.trials(|trial| {
            trial.far.intervals.iter_mut().zip(0..).for_each(|(one, i)| one.bytes_received = bytes(i));
        });
    };
    intervals(&mut case, |i| if i < 4 { 375_000 } else { 625_000 });
    assert_eq!(case.limiter(), LimiterKind::SenderApplication);
    // A rate that is never reached does not limit.
    intervals(&mut case, |_| 525_000);
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
}

#[test]
fn the_round_trips_of_a_few_segments_contain_delayed_acknowledgements() {
    let mut case = RecordedCase::tcp(13, 14 * MS);
    case.samples(|_, one| (one.min_rtt_ns, one.mss, one.cwnd, one.unacked) = (Some(10 * MS), 2_948, 7, 7));
    assert_eq!(case.limiter(), LimiterKind::CongestionWindow);
    case.samples(|i, one| {
        (one.mss, one.cwnd, one.unacked) = (737, 28, 28);
        one.delivered = Some(13 * 125_000 / 737 * i / 10);
    });
    assert_eq!(case.limiter(), LimiterKind::Link);
}
