#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]
//! Every pattern on every transport that has it, both ends in one process: counts agree to the byte.

mod loads;
mod pair;

use engine::transport::{ListenOptions, transport};
use engine::{Signals, now_ns, run};
use model::{Direction, EndTally, Engine, Io, Leg, Pattern, ReceiveBy, Role, SendBy, Spec, Stop, Strategy};

use self::pair::{check_exact, hello, measure, one_leg, plan, transports};

fn short(transport: &str, pattern: Pattern) -> Spec {
    let mut spec = Spec::new(transport, pattern);
    spec.stop = Stop::TimeNs(60_000_000);
    spec.interval_ns = 20_000_000;
    spec.block = if pattern.is_transactions() { 100 } else { 8_000 };
    spec
}

#[test]
fn streams_in_every_direction_on_every_transport() {
    for transport in transports() {
        for direction in [Direction::Send, Direction::Reverse, Direction::Both] {
            if transport.capabilities().single_ended && direction != Direction::Send {
                continue;
            }
            for address in ["127.0.0.1", "::1"] {
                let spec = Spec { direction, flows: 2, ..short(transport.name(), Pattern::Stream) };
                let what = format!("{} {direction:?} {address}", transport.name());
                let pair = measure(&spec, &one_leg(&spec), address);
                check_exact(&spec, &pair, &what);
                let (near, far) = pair.last();
                assert_eq!(near.bytes_sent > 0, direction != Direction::Reverse, "{what}");
                assert_eq!(
                    far.bytes_sent > 0,
                    direction != Direction::Send && !transport.capabilities().single_ended,
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn round_trips_on_every_transport_and_strategy() {
    for transport in transports() {
        for strategy in [Strategy::Blocking, Strategy::Spin, Strategy::Epoll, Strategy::Uring] {
            if strategy == Strategy::Epoll && !transport.capabilities().pollable
                || strategy == Strategy::Uring && !transport.completes()
            {
                continue;
            }
            for direction in [Direction::Send, Direction::Reverse] {
                if transport.capabilities().single_ended && direction != Direction::Send {
                    continue;
                }
                let spec = Spec { strategy, direction, reply: Some(200), ..short(transport.name(), Pattern::Rr) };
                let what = format!("{} {strategy:?} {direction:?}", transport.name());
                let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
                check_exact(&spec, &pair, &what);
                let (near, far) = pair.last();
                let requester = if direction == Direction::Send { near } else { far };
                assert!(
                    requester.rtt.as_ref().is_some_and(|rtt| rtt.count > 0 && rtt.min_ns > 0),
                    "{what}: {requester:?}"
                );
                assert!(requester.transactions > 0, "{what}");
            }
        }
    }
}

#[test]
fn transfers_move_exactly_what_was_requested() {
    for transport in transports() {
        for (stop, bytes) in [(Stop::Blocks(13), 13 * 1_000), (Stop::Bytes(12_345), 12_345), (Stop::Blocks(2), 2_000)] {
            for strategy in [Strategy::Auto, Strategy::Spin] {
                let spec =
                    Spec { block: 1_000, flows: 4, stop, strategy, ..Spec::new(transport.name(), Pattern::Transfer) };
                let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
                let what = format!("{} {stop:?} {strategy:?}", transport.name());
                let (near, far) = pair.last();
                assert_eq!(near.bytes_sent, bytes, "{what}");
                if !transport.capabilities().datagram {
                    check_exact(&spec, &pair, &what);
                    let received =
                        if transport.capabilities().single_ended { near.bytes_received } else { far.bytes_received };
                    assert_eq!(received, bytes, "{what}");
                }
            }
        }
    }
}

#[test]
fn many_flows_over_few_threads() {
    for (pattern, threads) in [(Pattern::Stream, Some(2)), (Pattern::Rr, Some(3)), (Pattern::Stream, None)] {
        for transport in ["tcp", "mptcp", "tls", "udp", "quic", "unix"] {
            let spec = Spec {
                flows: 64,
                threads,
                rate_bps: (transport == "udp" && pattern == Pattern::Stream).then_some(50_000_000),
                ..short(transport, pattern)
            };
            let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
            let what = format!("{transport} {pattern} {threads:?}");
            check_exact(&spec, &pair, &what);
            assert_eq!(pair.last().0.flows.len(), 64, "{what}");
        }
    }
}

#[test]
fn a_connection_for_each_transaction() {
    for address in ["127.0.0.1", "::1"] {
        for (transport, flows, overlap_close) in
            [("tcp", 1, false), ("tcp", 3, false), ("mptcp", 3, false), ("tcp", 2, true)]
        {
            for stop in [Stop::Transactions(25), short(transport, Pattern::Crr).stop] {
                let spec = Spec { flows, overlap_close, stop, ..short(transport, Pattern::Crr) };
                let pair = measure(&spec, &one_leg(&spec), address);
                check_exact(&spec, &pair, address);
                let (near, far) = pair.last();
                if stop == Stop::Transactions(25) {
                    assert_eq!((near.transactions, far.bytes_received), (25, 25 * spec.block), "{transport} {flows}");
                }
            }
        }
    }
}

#[test]
fn a_plain_receiver_takes_at_most_a_block_at_a_time() {
    for (transport, strategy) in [("tcp", Strategy::Auto), ("tcp", Strategy::Epoll), ("unix", Strategy::Auto)] {
        let spec = Spec { block: 700, stop: Stop::Bytes(2_000_003), strategy, ..Spec::new(transport, Pattern::Stream) };
        let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
        check_exact(&spec, &pair, transport);
        let far = pair.last().1;
        assert!(far.calls_received >= far.bytes_received.div_ceil(spec.block), "{transport} {strategy:?}: {far:?}");
    }
}

#[test]
fn a_curve_of_legs_over_one_connection() {
    let sizes = [1u64, 3, 64, 1_500, 16_384, 65_000];
    for transport in transports() {
        for (pattern, direction) in [
            (Pattern::Pingpong, Direction::Send),
            (Pattern::Stream, Direction::Send),
            (Pattern::Pingpong, Direction::Both),
            (Pattern::Pingpong, Direction::Reverse),
        ] {
            let capabilities = transport.capabilities();
            if (capabilities.single_ended || capabilities.datagram) && direction != Direction::Send {
                continue;
            }
            let legs: Vec<Leg> = sizes
                .iter()
                .filter(|size| pattern != Pattern::Stream || **size >= capabilities.min_stream_block)
                .flat_map(|size| {
                    [Stop::Transactions(17), Stop::AboutNs(2_000_000)].map(|stop| Leg {
                        block: *size,
                        reply: *size,
                        stop,
                        expected_ns: 0,
                    })
                })
                .collect();
            let spec = Spec { direction, block: 65_000, ..Spec::new(transport.name(), pattern) };
            let pair = measure(&spec, &legs, "127.0.0.1");
            let what = format!("{} {pattern} {direction:?}", transport.name());
            assert!(
                pair.near.failure.is_none() && pair.far.failure.is_none(),
                "{what}: {:?} {:?}",
                pair.near.failure,
                pair.far.failure
            );
            assert_eq!(pair.near.legs.len(), legs.len(), "{what}");
            for (index, leg) in legs.iter().enumerate() {
                let near = &pair.near.legs[index];
                let exchanges = near.transactions.max(near.blocks_sent);
                let what = format!("{what} leg {index} of {} bytes", leg.block);
                match leg.stop {
                    Stop::Transactions(count) if !capabilities.datagram && direction != Direction::Reverse => {
                        assert_eq!(exchanges, count, "{what}");
                    }
                    _ => assert!(exchanges >= 3, "{what}: {exchanges}"),
                }
                if transport.name() == "tcp" && pattern == Pattern::Pingpong {
                    let requester = if direction == Direction::Reverse { &pair.far.legs[index] } else { near };
                    let opening = if requester.transactions >= 6 { 3 } else { 1 };
                    let timed = requester.rtt.as_ref().map(|rtt| rtt.count);
                    assert_eq!(
                        timed,
                        Some(requester.transactions - opening),
                        "{what}: those that open it are not timed"
                    );
                }
                if !capabilities.single_ended && !capabilities.datagram {
                    let far = &pair.far.legs[index];
                    assert_eq!(near.bytes_sent, far.bytes_received, "{what}");
                    assert_eq!(far.bytes_sent, near.bytes_received, "{what}");
                }
            }
        }
    }
}

#[test]
fn read_and_write_carry_the_same_as_send_and_recv() {
    for transport in ["tcp", "unix"] {
        let spec = Spec { io: Io::ReadWrite, ..short(transport, Pattern::Stream) };
        let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
        check_exact(&spec, &pair, transport);
    }
}

#[test]
fn every_send_and_receive_method_moves_the_same_bytes() {
    let mut lacking = None;
    for transport in transports() {
        for send in transport.sends() {
            for receive in transport.receives() {
                let engine = Engine { send: *send, receive: *receive, auto: false };
                let wanted = Spec { engine, ..Spec::new(transport.name(), Pattern::Stream) };
                let checked = [Role::Active, Role::Passive].map(|role| transport.check_engine(&wanted, role));
                if let Some(error) = checked.into_iter().find_map(Result::err) {
                    lacking = Some(error.to_string());
                    continue;
                }
                for (stop, strategy) in [
                    (Stop::Bytes(1_234_567), Strategy::Auto),
                    (Stop::Blocks(403), Strategy::Spin),
                    (Stop::TimeNs(30_000_000), Strategy::Auto),
                ] {
                    // Paced, so that no datagram is lost for want of buffer and the counts can be compared to the byte.
                    let rate_bps = transport.capabilities().datagram.then_some(400_000_000);
                    let spec = Spec {
                        engine,
                        strategy,
                        rate_bps,
                        block: 1_000,
                        stop,
                        ..Spec::new(transport.name(), Pattern::Stream)
                    };
                    let what = format!("{} {engine} {stop:?}", transport.name());
                    let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
                    check_exact(&spec, &pair, &what);
                    let (near, far) = pair.last();
                    match stop {
                        Stop::Bytes(bytes) => assert_eq!(near.bytes_sent, bytes, "{what}"),
                        Stop::Blocks(blocks) => assert_eq!(near.bytes_sent, blocks * 1_000, "{what}"),
                        _ => {}
                    }
                    if let Some(sent) = near.datagrams {
                        assert_eq!(sent.sent, near.bytes_sent.div_ceil(1_000), "{what}");
                        assert_eq!(far.datagrams.map(|far| far.duplicates + far.reordered), Some(0), "{what}");
                    }
                    let mapped = far.flows.first().and_then(|flow| flow.socket.mapped);
                    let taken = mapped.map(|mapped| mapped.mapped_bytes + mapped.copied_bytes);
                    assert_eq!(taken, (*receive == ReceiveBy::Map).then_some(far.bytes_received), "{what}");
                    let zerocopy = near.flows.first().and_then(|flow| flow.socket.zerocopy);
                    assert_eq!(zerocopy.is_some_and(|count| count.sends > 0), *send == SendBy::Zerocopy, "{what}");
                    let in_kernel = |end: &EndTally| {
                        let encryption = end.flows.first().and_then(|flow| flow.socket.encryption.clone());
                        encryption.is_some_and(|encryption| encryption.in_kernel)
                    };
                    assert_eq!(in_kernel(near), *send == SendBy::Ktls, "{what}");
                    assert_eq!(in_kernel(far), *receive == ReceiveBy::Ktls, "{what}");
                }
            }
        }
    }
    if let Some(reason) = lacking {
        println!("SKIPPED: every_send_and_receive_method_moves_the_same_bytes, of tls: {reason}");
    }
}

#[test]
fn receivers_with_delayed_reads_take_every_byte_and_others_never_delay() {
    for direction in [Direction::Send, Direction::Reverse, Direction::Both] {
        let cases =
            [(131_072, true, None), (1_000, true, None), (131_072, false, None), (871, false, Some(400_000_000))];
        for (block, delayed_reads, drain_bps) in cases {
            for stop in [Stop::Bytes(block * 2_290 + 7), Stop::TimeNs(60_000_000)] {
                let mut spec = Spec { block, delayed_reads, direction, stop, ..Spec::new("tcp", Pattern::Stream) };
                (spec.near.drain_bps, spec.far.drain_bps) = (drain_bps, drain_bps);
                let what = format!("{direction:?} {block} {delayed_reads} {drain_bps:?} {stop:?}");
                let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
                check_exact(&spec, &pair, &what);
                let (near, far) = pair.last();
                let delayed =
                    [near, far].into_iter().flat_map(|end| &end.flows).any(|flow| flow.socket.delayed_reads.is_some());
                assert!(!delayed || delayed_reads, "{what}");
            }
        }
    }
}

#[test]
fn datagram_receivers_with_delayed_reads_lose_none_that_fit_the_buffer() {
    let stops = [Stop::Bytes(60_000_400), Stop::TimeNs(60_000_000)];
    for send in [SendBy::Mmsg, SendBy::Gso] {
        for delayed_reads in [true, false] {
            for (stop, direction) in stops.into_iter().zip([Direction::Send, Direction::Both]) {
                let mut spec = Spec {
                    engine: Engine::sending(send),
                    paced_to_receiver: true,
                    block: 1_000,
                    stop,
                    delayed_reads,
                    direction,
                    ..Spec::new("udp", Pattern::Stream)
                };
                (spec.near.rcvbuf, spec.far.rcvbuf) = (Some(1 << 20), Some(1 << 20));
                let what = format!("{send:?} {delayed_reads} {stop:?}");
                let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
                check_exact(&spec, &pair, &what);
                let (near, far) = pair.last();
                let lost =
                    |from: &EndTally, to: &EndTally| from.datagrams.unwrap().sent - to.datagrams.unwrap().received;
                assert_eq!((lost(near, far), lost(far, near)), (0, 0), "{what}");
                let delayed =
                    [near, far].into_iter().flat_map(|end| &end.flows).any(|flow| flow.socket.delayed_reads.is_some());
                assert!(!delayed || delayed_reads, "{what}");
            }
        }
    }
}

#[test]
fn a_sender_paced_to_its_receiver_loses_next_to_nothing_to_a_full_socket() {
    let stops = [Stop::Bytes(1_000_500), Stop::Blocks(1_001), Stop::TimeNs(50_000_000)];
    // The smallest of these buffers holds three datagrams; without pacing most datagrams would be lost.
    for rcvbuf in [Some(5_000), Some(40_000), None] {
        for (stop, (strategy, direction, send)) in stops.into_iter().zip([
            (Strategy::Auto, Direction::Send, SendBy::Copy),
            (Strategy::Spin, Direction::Both, SendBy::Mmsg),
            (Strategy::Epoll, Direction::Reverse, SendBy::Gso),
        ]) {
            let mut spec = Spec {
                engine: Engine::sending(send),
                paced_to_receiver: true,
                block: 1_000,
                stop,
                strategy,
                direction,
                ..Spec::new("udp", Pattern::Stream)
            };
            (spec.near.rcvbuf, spec.far.rcvbuf) = (rcvbuf, rcvbuf);
            let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
            let what = format!("{rcvbuf:?} {strategy:?} {direction:?} {send:?}");
            check_exact(&spec, &pair, &what);
            let (near, far) = pair.last();
            let (near_counts, far_counts) = (near.datagrams.unwrap(), far.datagrams.unwrap());
            // A thread that loses its core between two readings of the clock takes the path for a longer one.
            let (sent, received) = (near_counts.sent + far_counts.sent, near_counts.received + far_counts.received);
            let drops = near_counts.socket_drops + far_counts.socket_drops;
            assert!(drops <= sent / 100, "{what}: {drops} of {sent}");
            // The socket also counts dropped datagrams that only end the trial.
            assert!(
                (sent.saturating_sub(drops)..=sent).contains(&received),
                "{what}: {received} of {sent}, {drops} dropped"
            );
            if let (Stop::Bytes(bytes), Direction::Send, 0) = (stop, direction, drops) {
                assert_eq!(far.bytes_received, bytes, "{what}");
            }
        }
    }
}

#[test]
fn a_curve_over_datagrams_is_paced_in_each_leg() {
    let legs: Vec<Leg> = [8, 1_000, 9_000, 65_000]
        .map(|block| Leg { block, reply: block, stop: Stop::Transactions(500), expected_ns: 0 })
        .to_vec();
    let mut spec = Spec { paced_to_receiver: true, block: 65_000, ..Spec::new("udp", Pattern::Stream) };
    spec.far.rcvbuf = Some(60_000);
    let pair = measure(&spec, &legs, "127.0.0.1");
    assert!(pair.near.failure.is_none() && pair.far.failure.is_none(), "{:?}", (pair.near.failure, pair.far.failure));
    for (near, far) in pair.near.legs.iter().zip(&pair.far.legs) {
        assert_eq!((near.blocks_sent, near.bytes_sent), (500, far.bytes_received));
    }
}

#[test]
fn a_paced_sender_does_not_wait_for_ever_for_a_receiver_that_has_ended() {
    let mut spec =
        Spec { paced_to_receiver: true, stop: Stop::Bytes(1 << 40), block: 1_000, ..Spec::new("udp", Pattern::Stream) };
    spec.stall_ns = 300_000_000;
    let transport = transport("udp").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cookie = [4; 16];
    let options = ListenOptions::new("127.0.0.1".parse().unwrap(), directory.path().into(), cookie);
    let mut listener = transport.listen(&spec, &options).unwrap();
    let to = listener.rendezvous();
    let far_plan = plan(&spec, Role::Passive, &one_leg(&spec));
    let far = std::thread::spawn(move || {
        let (_, link) = listener.accept(now_ns() + 5_000_000_000).unwrap();
        let signals = Signals::new();
        let ends_once_something_came = &mut |report: model::Live| {
            if matches!(report, model::Live::Interval(interval) if interval.bytes_received > 0) {
                signals.abort();
            }
        };
        run(&far_plan, transport, vec![link], &signals, ends_once_something_came).unwrap()
    });
    let near_plan = plan(&spec, Role::Active, &one_leg(&spec));
    let links = vec![transport.connect(&spec, &to, &hello(cookie, 0)).unwrap()];
    let near = run(&near_plan, transport, links, &Signals::new(), &mut |_| {}).unwrap();
    let leg = near.legs.last().unwrap();
    assert!(leg.stalled && leg.bytes_sent > 0, "{leg:?}");
    assert!(far.join().unwrap().legs[0].cut_short);
}

#[test]
fn whole_pages_that_arrive_are_mapped() {
    // Over loopback MSG_ZEROCOPY copies into fresh pages, which can be mapped: of the senders here, only its pages
    // can.
    let engine = Engine { send: SendBy::Zerocopy, receive: ReceiveBy::Map, auto: false };
    let spec = Spec { engine, stop: Stop::Blocks(400), block: 64 << 10, ..Spec::new("tcp", Pattern::Stream) };
    let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
    check_exact(&spec, &pair, "map");
    let mapped = pair.last().1.flows[0].socket.mapped.unwrap();
    assert!(mapped.mapped_bytes > 0, "{mapped:?}");
}

#[test]
fn methods_that_a_transport_lacks_are_refused_by_name() {
    let engine = Engine::sending(SendBy::Gso);
    let refused = engine::pattern::check(&Spec { engine, block: 64, ..Spec::new("tcp", Pattern::Stream) })
        .unwrap_err()
        .to_string();
    assert!(refused.contains("gso") && refused.contains("sendfile"), "{refused}");
    let refused =
        engine::pattern::check(&Spec { engine, block: 64, ..Spec::new("udp", Pattern::Rr) }).unwrap_err().to_string();
    assert!(refused.contains("streams and transfers"), "{refused}");
    for spec in [Spec::new("unix-dgram", Pattern::Stream), Spec { block: 64, ..Spec::new("udp", Pattern::Rr) }] {
        let spec = Spec { paced_to_receiver: true, block: 64, ..spec };
        let refused = engine::pattern::check(&spec).unwrap_err().to_string();
        assert!(refused.contains("`--unpaced`"), "{refused}");
    }
}

#[test]
fn socket_options_are_set_and_read_back() {
    let mut spec = short("tcp", Pattern::Stream);
    spec.near.sndbuf = Some(100_000);
    spec.far.rcvbuf = Some(50_000);
    spec.near.mss = Some(1_000);
    spec.near.cc = Some("reno".into());
    spec.near.nodelay = Some(true);
    spec.near.dscp = Some(10);
    spec.near.pin = vec![0];
    spec.far.notsent_lowat = Some(16_384);
    // Any user may set the value in force, and root others.
    let root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0\t");
    spec.near.busy_poll_us = root.then_some(50);
    let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
    check_exact(&spec, &pair, "options");
    let (near, far) = pair.last();
    let (near, far) = (&near.flows[0].socket, &far.flows[0].socket);
    assert_eq!(near.sndbuf, Some(200_000), "Linux doubles the requested size");
    assert_eq!(far.rcvbuf, Some(100_000));
    assert_eq!(near.cc.as_deref(), Some("reno"));
    assert!(near.mss.is_some_and(|mss| mss <= 1_000), "{:?}", near.mss);
    assert_eq!(near.nodelay, Some(true));
    assert_eq!((near.busy_poll_us, far.busy_poll_us), (root.then_some(50), None));
}

#[test]
fn a_rate_is_kept() {
    // 40 Mbit/s for 200 ms is 1 MB; the sender may be late, never early, by more than its one-millisecond burst.
    for transport in ["tcp", "udp"] {
        let spec = Spec {
            rate_bps: Some(40_000_000),
            stop: Stop::TimeNs(200_000_000),
            block: 1_000,
            ..Spec::new(transport, Pattern::Stream)
        };
        let pair = measure(&spec, &one_leg(&spec), "127.0.0.1");
        let sent = pair.last().0.bytes_sent;
        assert!(sent <= 1_000_000 + 10_000 + 40_000, "{transport}: {sent}");
        assert!(sent > 100_000, "{transport}: {sent}");
    }
}

#[test]
fn a_peer_that_stops_reading_ends_the_trial_as_stalled() {
    let mut spec = short("tcp", Pattern::Stream);
    spec.stop = Stop::TimeNs(100_000_000);
    spec.stall_ns = 300_000_000;
    let transport = transport("tcp").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cookie = [9; 16];
    let options = ListenOptions::new("127.0.0.1".parse().unwrap(), directory.path().into(), cookie);
    spec.far.rcvbuf = Some(4_096);
    let mut listener = transport.listen(&spec, &options).unwrap();
    let to = listener.rendezvous();
    // The far end accepts, never reads, and goes away much later than a stall takes. The near end waits for the leg to open, which has
    // no limit here, so the far end cannot wait for the near one.
    let far = std::thread::spawn(move || {
        let (_, link) = listener.accept(now_ns() + 5_000_000_000).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        drop(link);
    });
    let plan = plan(&spec, Role::Active, &one_leg(&spec));
    let links = vec![transport.connect(&spec, &to, &hello(cookie, 0)).unwrap()];
    let signals = Signals::new();
    let near = run(&plan, transport, links, &signals, &mut |_| {}).unwrap();
    // Without an open leg nothing is sent at all: the trial still ends, and names the reason.
    assert!(near.failure.is_some() || near.legs.last().is_some_and(|leg| leg.stalled), "{near:?}");
    far.join().unwrap();
}
