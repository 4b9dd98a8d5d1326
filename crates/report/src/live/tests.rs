#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use model::tally::Window;
use model::{
    Cell, DatagramReading, DatagramTally, EndTally, Ending, FlowReading, FlowTally, Ledger, Pattern, SocketFacts, Stop,
    TcpReading,
};

use text::Spelling;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn spec(seconds: u64) -> Spec {
    Spec { stop: Stop::TimeNs(seconds * SECOND), interval_ns: 100_000_000, ..Spec::new("tcp", Pattern::Stream) }
}

fn run(spec: Spec) -> Event {
    let mut header = crate::sample::stream().header;
    header.cells = vec![Cell::new(0, spec)];
    Event::Run(header)
}

fn started(spec: Spec, each: bool) -> LiveLines {
    let mut lines = LiveLines::new(each, Spelling::default());
    assert_eq!(lines.event(&run(spec)), [""; 0]);
    lines
}

/// A connection with so many bytes sent and received so far.
fn flow(number: u32, direction: Direction, bytes: [u64; 2], retransmits: u64) -> FlowReading {
    FlowReading {
        flow: number,
        connections: 1,
        direction,
        bytes_sent: bytes[0],
        bytes_received: bytes[1],
        transactions: 0,
        tcp: Some(TcpReading { retransmits, rtt_ns: 45_000, cwnd_bytes: 1_210_000 }),
        datagrams: None,
    }
}

fn reading(end: &str, number: u32, flows: Vec<FlowReading>) -> Event {
    let at_ns = u64::from(number) * SECOND;
    let reading =
        Reading { number, at_ns, first_arrival_ns: Some(500_000_000).filter(|_| end == "far"), flows, cpu: None };
    Event::Reading { pass: 0, end: end.to_owned(), reading }
}

fn trial(pass: u32, flows: [Vec<FlowTally>; 2], receiving_ns: u64, value: Option<f64>) -> Event {
    let [near_flows, far_flows] = flows;
    let sum = |flows: &[FlowTally], count: fn(&FlowTally) -> u64| flows.iter().map(count).sum();
    let near = EndTally {
        bytes_sent: sum(&near_flows, |flow| flow.bytes_sent),
        sending_ns: receiving_ns,
        flows: near_flows,
        ..EndTally::default()
    };
    let far = EndTally {
        bytes_received: sum(&far_flows, |flow| flow.bytes_received),
        receiving_ns,
        measured: Some(Window::default()),
        flows: far_flows,
        ..EndTally::default()
    };
    let ledger = Ledger::default();
    Event::Trial(Trial {
        cell: 0,
        pass,
        position: 0,
        near: near.into(),
        far: far.into(),
        ledger,
        value,
        verdicts: Vec::new(),
    })
}

fn total(flow: u32, bytes: [u64; 2], retransmits: u64) -> FlowTally {
    let socket = SocketFacts {
        retransmits: Some(retransmits),
        srtt_ns: Some(45_000),
        cwnd: Some(100),
        mss: Some(1448),
        ..SocketFacts::default()
    };
    FlowTally { flow, bytes_sent: bytes[0], bytes_received: bytes[1], socket, ..FlowTally::default() }
}

#[test]
fn a_trial_of_a_second_has_one_line_with_its_own_value() {
    let mut lines = started(spec(1), false);
    let one = lines.event(&trial(
        0,
        [vec![total(0, [125_000_000, 0], 3)], vec![total(0, [0, 125_000_000], 0)]],
        SECOND,
        Some(997e6),
    ));
    assert_eq!(
        one,
        [
            "     time        goodput  retransmits        RTT       cwnd",
            "    1.0 s     997 Mbit/s            3    45.0 µs     145 kB"
        ]
    );
    let two = lines.event(&trial(1, [vec![total(0, [1, 0], 0)], vec![total(0, [0, 1], 0)]], SECOND, Some(1e9)));
    assert_eq!(two, ["    2.0 s    1.00 Gbit/s            0    45.0 µs     145 kB"]);
}

#[test]
fn short_trials_share_a_line_and_the_rest_comes_at_the_end() {
    let mut lines = started(Spec { stop: Stop::TimeNs(SECOND / 2), ..spec(1) }, false);
    let half =
        |pass, value| trial(pass, [vec![total(0, [9, 0], 1)], vec![total(0, [0, 9], 0)]], SECOND / 2, Some(value));
    assert_eq!(lines.event(&half(0, 100e6)), [""; 0]);
    let both = lines.event(&half(1, 300e6));
    assert!(both[1].starts_with("    1.0 s     200 Mbit/s            2"), "{both:?}");
    assert_eq!(lines.event(&half(2, 50e6)), [""; 0]);
    let rest = lines.event(&Event::End(Ending::default()));
    assert!(rest.len() == 1 && rest[0].starts_with("    1.5 s    50.0 Mbit/s"), "{rest:?}");
}

#[test]
fn a_long_trial_has_a_line_for_each_second_when_both_ends_were_read() {
    let mut lines = started(spec(3), false);
    let sent = |number: u32, retransmits| {
        reading("near", number, vec![flow(0, Direction::Send, [u64::from(number) * 125_000_000, 0], retransmits)])
    };
    let received = |number: u32, bytes| reading("far", number, vec![flow(0, Direction::Send, [0, bytes], 0)]);
    assert_eq!(lines.event(&sent(1, 5)), [""; 0]);
    // The first byte arrived after half a second.
    let first = lines.event(&received(1, 50_000_000));
    assert!(first[0].contains("trial") && first[1].contains("1.0 s      1     800 Mbit/s            5"), "{first:?}");
    assert_eq!(lines.event(&received(2, 150_000_000)), [""; 0]);
    let second = lines.event(&sent(2, 7));
    assert!(second.len() == 1 && second[0].contains("2.0 s      1     800 Mbit/s            2"), "{second:?}");
    // The last second is what is left of the totals.
    let last = lines.event(&trial(
        0,
        [vec![total(0, [375_000_000, 0], 7)], vec![total(0, [0, 270_000_000], 0)]],
        2_500_000_000,
        Some(864e6),
    ));
    assert!(last.len() == 1 && last[0].contains("3.0 s      1     960 Mbit/s            0"), "{last:?}");
    let next = lines.event(&Event::Reading {
        pass: 1,
        end: "near".into(),
        reading: Reading {
            number: 1,
            at_ns: SECOND,
            first_arrival_ns: None,
            flows: vec![flow(0, Direction::Send, [9, 0], 0)],
            cpu: None,
        },
    });
    assert_eq!(next, [""; 0]);
}

#[test]
fn each_flow_and_each_direction_has_its_line() {
    let both = Spec { flows: 2, direction: Direction::Both, ..spec(3) };
    let mut lines = started(both, true);
    let flows = |near: bool| -> Vec<FlowReading> {
        (0..2)
            .flat_map(|number| {
                [(Direction::Send, near), (Direction::Reverse, !near)].map(|(direction, sends)| {
                    let bytes =
                        (u64::from(number) + 1) * if direction == Direction::Send { 12_500_000 } else { 25_000_000 };
                    flow(number, direction, if sends { [bytes, 0] } else { [0, bytes] }, 1)
                })
            })
            .collect()
    };
    // Two processes report their own flows.
    let near = flows(true);
    let (first, second) = near.split_at(2);
    assert_eq!(lines.event(&reading("near", 1, first.to_vec())), [""; 0]);
    assert_eq!(lines.event(&reading("near", 1, second.to_vec())), [""; 0]);
    let printed = lines.event(&reading("far", 1, flows(false)));
    let cells: Vec<Vec<&str>> = printed.iter().map(|line| line.split_whitespace().skip(2).take(4).collect()).collect();
    assert_eq!(printed.len(), 7, "{printed:?}");
    assert_eq!(cells[1], ["1", "0", "outbound", "200"]);
    assert_eq!(cells[2], ["1", "0", "return", "200"]);
    assert_eq!(cells[5], ["1", "all", "outbound", "600"]);
    assert_eq!(cells[6], ["1", "all", "return", "600"]);
}

#[test]
fn datagrams_have_loss_and_jitter() {
    let udp = Spec { transport: "udp".into(), ..spec(2) };
    let mut lines = started(udp, false);
    let datagrams = |numbers, received| Some(DatagramReading { numbers, received, jitter_ns: Some(13_000) });
    let sent = FlowReading { tcp: None, ..flow(0, Direction::Send, [125_000, 0], 0) };
    let arrived = FlowReading { tcp: None, datagrams: datagrams(100, 98), ..flow(0, Direction::Send, [0, 122_500], 0) };
    lines.event(&reading("near", 1, vec![sent]));
    let first = lines.event(&reading("far", 1, vec![arrived]));
    assert!(first[0].ends_with("goodput              lost     jitter  datagrams"), "{first:?}");
    assert!(first[1].ends_with("1.96 Mbit/s        2 (2.00 %)    13.0 µs         98"), "{first:?}");
    // At the end all that was sent counts, also what came after the last arrival.
    let Event::Trial(mut last) =
        trial(0, [vec![total(0, [250_000, 0], 0)], vec![total(0, [0, 240_000], 0)]], 1_500_000_000, Some(1e6))
    else {
        return;
    };
    last.near.flows[0].socket = SocketFacts::default();
    last.far.flows[0].socket = SocketFacts::default();
    last.near.flows[0].datagrams = Some(DatagramTally { sent: 200, ..DatagramTally::default() });
    let received = DatagramTally { received: 192, jitter_ns: Some(20_000), ..DatagramTally::default() };
    last.far.flows[0].datagrams = Some(received);
    let last = lines.event(&Event::Trial(last));
    assert!(last[0].ends_with("940 kbit/s        6 (6.00 %)    20.0 µs         94"), "{last:?}");
}

#[test]
fn the_datagrams_of_the_last_moment_are_those_of_each_flow_and_direction() {
    let spec = Spec { transport: "udp".into(), flows: 2, direction: Direction::Both, ..spec(1) };
    let mut lines = started(spec, true);
    // A flow, its direction, and the datagrams of 1000 bytes that its receiver got of those that were sent.
    let counts = [
        (0, Direction::Send, 100, 90),
        (0, Direction::Reverse, 50, 50),
        (1, Direction::Send, 200, 150),
        (1, Direction::Reverse, 40, 10),
    ];
    let flows = |near: bool| -> Vec<FlowTally> {
        let of = |(flow, direction, sent, received): (u32, Direction, u64, u64)| {
            let tally = match (direction == Direction::Send) == near {
                true => DatagramTally { sent, ..DatagramTally::default() },
                false => DatagramTally { received, jitter_ns: Some(received * 1_000), ..DatagramTally::default() },
            };
            let bytes = [tally.sent * 1_000, tally.received * 1_000];
            FlowTally { direction, datagrams: Some(tally), socket: SocketFacts::default(), ..total(flow, bytes, 0) }
        };
        counts.into_iter().map(of).collect()
    };
    let Event::Trial(mut last) = trial(0, [flows(true), flows(false)], SECOND, Some(1e6)) else { return };
    (last.near.receiving_ns, last.far.sending_ns) = (SECOND, SECOND);
    let printed = lines.event(&Event::Trial(last));
    let ends: Vec<&str> = printed[1..].iter().map(|line| line.split("bit/s").last().unwrap().trim()).collect();
    assert_eq!(
        ends,
        [
            "10 (10.0 %)    90.0 µs         90",
            "0    50.0 µs         50",
            "50 (25.0 %)     150 µs        150",
            "30 (75.0 %)    10.0 µs         10",
            "60 (20.0 %)     120 µs        240",
            "30 (33.3 %)    30.0 µs         60",
        ],
        "{printed:?}"
    );
}

#[test]
fn a_sum_of_many_flows_is_no_flow() {
    let spec = Spec { flows: 100, ..spec(3) };
    let sum = |bytes| vec![FlowReading { connections: 100, ..flow(0, Direction::Send, bytes, 9) }];
    let flows = |count: fn(u64) -> [u64; 2]| (0..100).map(|number| total(number, count(2_000_000), 1)).collect();
    let events = [
        run(spec),
        reading("near", 1, sum([125_000_000, 0])),
        reading("far", 1, sum([0, 125_000_000])),
        trial(0, [flows(|bytes| [bytes, 0]), flows(|bytes| [0, bytes])], 1_500_000_000, Some(1e9)),
    ];
    let mut points = LivePoints::default();
    let points: Vec<LivePoint> = events.iter().flat_map(|event| points.event(event)).collect();
    let of: Vec<_> = points.iter().map(|point| (point.flow, point.bits_per_s)).collect();
    assert_eq!(of, [(None, Some(2e9)), (None, Some(600e6))], "all together");
    let moved: Vec<_> = points.iter().map(|point| point.bytes).collect();
    assert_eq!(moved, [Some(125_000_000), Some(200_000_000)]);
    let mut lines = LiveLines::new(true, Spelling::default());
    let lines: Vec<String> = events.iter().flat_map(|event| lines.event(event)).collect();
    let whose: Vec<&str> = lines[1..].iter().map(|line| line.split_whitespace().nth(3).unwrap()).collect();
    assert_eq!(whose, ["all", "all"], "{lines:?}");
}

#[test]
fn another_programs_server_reports_only_at_the_end() {
    let mut lines = started(Spec { speak: Some(model::Program::Iperf3), ..spec(3) }, false);
    let first = lines.event(&reading("near", 1, vec![flow(0, Direction::Send, [125_000_000, 0], 0)]));
    assert!(first[0].contains(" sent ") && first[1].contains("1.00 Gbit/s"), "{first:?}");
}

#[test]
fn round_trips_and_doubtful_trials() {
    let mut lines = started(Spec { pattern: Pattern::Rr, ..spec(1) }, false);
    let Event::Trial(mut one) = trial(0, [vec![total(0, [9, 9], 0)], vec![total(0, [9, 9], 0)]], SECOND, Some(20e3))
    else {
        return;
    };
    one.verdicts.push(Verdict::Stalled);
    let printed = lines.event(&Event::Trial(one));
    assert_eq!(printed[1], "    1.0 s          20.0 k    50.0 µs            0  stalled");
}

#[test]
fn runs_of_several_cells_have_no_lines() {
    let mut lines = LiveLines::new(false, Spelling::default());
    lines.event(&Event::Run(crate::sample::curve().header));
    assert_eq!(lines.event(&reading("near", 1, vec![flow(0, Direction::Send, [1, 0], 0)])), [""; 0]);
}

#[test]
fn groups_have_one_line_for_all_together_in_the_time_since_the_common_start() {
    let mut lines = LiveLines::new(false, Spelling::default());
    let Event::Run(mut header) = run(spec(3)) else { panic!("a run") };
    header.plan = crate::sample::groups().header.plan;
    let late = Spec { start_ns: Some(SECOND), stop: Stop::TimeNs(SECOND), ..spec(3) };
    header.cells = vec![Cell::new(0, spec(3)), Cell::new(1, late)];
    assert_eq!(lines.event(&Event::Run(header)), [""; 0]);
    let both_ends = |lines: &mut LiveLines, group: u32, number: u32, bytes: u64| {
        let of_group = |event: Event| match event {
            Event::Reading { end, reading, .. } => Event::Reading { pass: group, end, reading },
            other => other,
        };
        let near = reading("near", number, vec![flow(0, Direction::Send, [bytes, 0], 1)]);
        assert_eq!(lines.event(&of_group(near)), [""; 0]);
        lines.event(&of_group(reading("far", number, vec![flow(0, Direction::Send, [0, bytes], 0)])))
    };
    assert_eq!(both_ends(&mut lines, 0, 1, 50_000_000), [""; 0], "the other group may follow");
    let first = both_ends(&mut lines, 0, 2, 175_000_000);
    assert!(first[1].contains("1.0 s     800 Mbit/s            1  1 of 2 groups"), "{first:?}");
    // The late group's first second is the second one of the run.
    assert_eq!(both_ends(&mut lines, 1, 1, 25_000_000), [""; 0]);
    let second = both_ends(&mut lines, 0, 3, 300_000_000);
    assert!(second.len() == 1 && second[0].contains("2.0 s    1.40 Gbit/s            1"), "{second:?}");
}

#[test]
fn a_round_of_a_comparison_has_a_line_with_the_difference_so_far() {
    let mut header = crate::sample::pair().header;
    header.cells = vec![Cell::new(0, spec(1)), Cell::new(1, spec(1))];
    let mut lines = LiveLines::new(false, Spelling::default());
    assert_eq!(lines.event(&Event::Run(header)), [""; 0]);
    let mut all = Vec::new();
    for pass in 0..24 {
        // A B B A, with a bit less of B.
        let cell = u32::from(matches!(pass % 4, 1 | 2));
        let value = Some(if cell == 0 { 1e9 } else { 0.97e9 } + f64::from(pass) * 1e5);
        let Event::Trial(trial) = trial(pass, [Vec::new(), Vec::new()], SECOND, value) else { unreachable!() };
        all.extend(lines.event(&Event::Trial(Trial { cell, ..trial })));
    }
    assert_eq!(all.len(), 7, "{all:?}");
    assert_eq!(all[0], "  round               A               B   B to A so far");
    assert_eq!(all[1], "      1     1.00 Gbit/s      970 Mbit/s   -3.0 %");
    assert!(all[6].ends_with("   -3.0 % (-3.0 % to -3.0 %)"), "{all:?}");
}

#[test]
fn entries_of_the_series_are_points_of_their_own() {
    let entry = |end: &str, number: u64, interval: [u64; 2]| {
        let [bytes_received, transactions] = interval;
        let (start_ns, end_ns) = (number * SECOND / 10, (number + 1) * SECOND / 10);
        let interval = Interval { start_ns, end_ns, bytes_received, transactions, ..Interval::default() };
        Event::Interval { pass: 0, end: end.to_owned(), interval }
    };
    let mut fine = LivePoints::with_series();
    assert_eq!(fine.event(&run(spec(3))), []);
    let [point] = fine.event(&entry("far", 4, [1_250_000, 0])).try_into().unwrap();
    assert_eq!((point.fine, point.time_s, point.bits_per_s, point.flow), (true, 0.5, Some(100e6), None));
    // What the near end receives is of no direction that is measured, and behind the end arrives what was in flight.
    assert_eq!(fine.event(&entry("near", 4, [1_250_000, 0])), []);
    assert_eq!(fine.event(&entry("far", 31, [1_250_000, 0])), []);
    let mut coarse = LivePoints::default();
    coarse.event(&run(spec(3)));
    assert_eq!(coarse.event(&entry("far", 4, [1_250_000, 0])), []);
    let mut trips = LivePoints::with_series();
    trips.event(&run(Spec { pattern: Pattern::Rr, ..spec(3) }));
    let [point] = trips.event(&entry("near", 0, [9, 40])).try_into().unwrap();
    assert_eq!((point.transactions_per_s, point.bits_per_s), (Some(400.0), None));
}
