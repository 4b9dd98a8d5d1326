use super::*;
use crate::curve::testing::made;
use model::{EndTally, Interface, Pattern, SocketFacts};

/// A host with one interface.
fn host(address: &str, driver: Option<&str>, mbps: Option<u32>, mtu: u32) -> Inventory {
    let interface = Interface {
        name: "eth0".into(),
        driver: driver.map(str::to_owned),
        speed_mbps: mbps,
        mtu: Some(mtu),
        addresses: vec![format!("{address}/24")],
        ..Interface::default()
    };
    Inventory { boot_id: Some(address.into()), interfaces: vec![interface], ..Inventory::default() }
}

fn gigabit(address: &str) -> Inventory {
    host(address, Some("e1000e"), Some(1_000), 1_500)
}

fn flow(address: &str, sent: u64, received: u64) -> FlowTally {
    let socket = SocketFacts {
        local: Some(if address.contains(':') { format!("[{address}]:5000") } else { format!("{address}:5000") }),
        mss: Some(1_448),
        pmtu: Some(1_500),
        negotiated: vec!["timestamps".into()],
        ..SocketFacts::default()
    };
    FlowTally { bytes_sent: sent, bytes_received: received, socket, ..FlowTally::default() }
}

/// A stream of `transport` from `a` to `b` at `mbit` Mbit/s for a second.
fn stream(transport: &str, mbit: f64, [a, b]: [&str; 2]) -> Outcome {
    let mut outcome = made(Pattern::Stream, 0, 131_072, &[mbit * 1e6; 6]);
    outcome.spec.transport = transport.into();
    let bytes = (mbit * 125e3) as u64;
    outcome.summary.bytes_received = Some(6 * bytes);
    for trial in &mut outcome.trials {
        trial.near = EndTally { bytes_sent: bytes, flows: vec![flow(a, bytes, 0)], ..EndTally::default() }.into();
        trial.far = EndTally { bytes_received: bytes, flows: vec![flow(b, 0, bytes)], ..EndTally::default() }.into();
    }
    outcome
}

const A: &str = "10.0.0.1";
const B: &str = "10.0.0.2";

fn bounded(mut outcome: Outcome, near: &Inventory, far: &Inventory) -> Outcome {
    bound(&mut outcome, near, far);
    outcome
}

#[test]
fn tcp_on_a_gigabit_line() {
    let outcome = bounded(stream("tcp", 941.2, [A, B]), &gigabit(A), &gigabit(B));
    let ceiling = outcome.summary.ceiling.as_ref().unwrap();
    assert!((ceiling.bound_bps / 941.48e6 - 1.0).abs() < 1e-5, "{ceiling:?}");
    assert_eq!((ceiling.kind, ceiling.reason.plain().as_str()), (BoundKind::Line, "MTU 1500 on 1 Gbit/s"));
    assert!(!outcome.summary.verdicts.contains(&Verdict::AboveCeiling));
}

#[test]
fn the_slower_line_and_the_smaller_mtu_decide() {
    let far = host(B, Some("ixgbe"), Some(10_000), 9_000);
    let near = host(A, Some("igc"), Some(2_500), 9_000);
    let ceiling = bounded(stream("tcp", 100.0, [A, B]), &near, &far).summary.ceiling.unwrap();
    // The socket knows of a smaller path MTU.
    assert_eq!(ceiling.reason, "MTU 1500 on 2.5 Gbit/s".into());
    assert!((ceiling.bound_bps / 2.5 / 941.48e6 - 1.0).abs() < 1e-5);
    let unknown = host(B, None, None, 1_500);
    assert!(bounded(stream("tcp", 100.0, [A, B]), &near, &unknown).summary.ceiling.is_some(), "one end is enough");
}

#[test]
fn udp_tls_and_ipv6_have_their_own_shares() {
    let mut udp = stream("udp", 100.0, [A, B]);
    udp.spec.block = 1_472;
    let of = |outcome, near: &str, far: &str| {
        bounded(outcome, &gigabit(near), &gigabit(far)).summary.ceiling.unwrap().bound_bps / 1e6
    };
    assert!((of(udp, A, B) - 957.09).abs() < 0.01);
    assert!((of(stream("tls", 100.0, [A, B]), A, B) - 941.48 * 16_384.0 / 16_406.0).abs() < 0.01);
    let mut six = stream("tcp", 100.0, ["fd00::1", "fd00::2"]);
    for trial in &mut six.trials {
        trial.near.flows[0].socket.mss = Some(1_428);
    }
    assert!((of(six, "fd00::1", "fd00::2") - 928.48).abs() < 0.01);
    let mptcp = bounded(stream("mptcp", 100.0, [A, B]), &gigabit(A), &gigabit(B));
    assert_eq!(mptcp.summary.ceiling, None, "it may have several lines");
}

#[test]
fn both_directions_have_a_line_each_unless_it_is_half_duplex() {
    let mut both = stream("tcp", 1_000.0, [A, B]);
    both.spec.direction = Direction::Both;
    for trial in &mut both.trials {
        trial.near.flows.push(flow(A, 0, 7));
        trial.far.flows.push(flow(B, 7, 0));
    }
    let full = bounded(both.clone(), &gigabit(A), &gigabit(B)).summary.ceiling.unwrap();
    assert!(
        (full.bound_bps / 1e6 - 2.0 * 941.48).abs() < 0.01 && full.reason.plain().ends_with("in each direction"),
        "{full:?}"
    );
    let mut near = gigabit(A);
    near.interfaces[0].duplex = Some("half".into());
    let half = bounded(both, &near, &gigabit(B)).summary.ceiling.unwrap();
    assert!((half.bound_bps / 1e6 - 941.48).abs() < 0.01, "{half:?}");
}

#[test]
fn the_speed_of_a_virtual_device_is_not_used() {
    let of = |near: &Inventory, far: &Inventory| bounded(stream("tcp", 9e3, [A, B]), near, far).summary.ceiling;
    for driver in [None, Some("veth"), Some("virtio_net")] {
        let without = |address| host(address, driver, Some(10_000), 1_500);
        assert_eq!(of(&without(A), &without(B)), None, "{driver:?}");
    }
    // Both addresses are this host's: the line is not used.
    let mut one = gigabit(A);
    one.interfaces[0].addresses.push(format!("{B}/24"));
    assert_eq!(of(&one, &one), None);
}

#[test]
fn a_window_per_rtt_is_a_ceiling_too() {
    let mut outcome = stream("tcp", 20.0, [A, B]);
    for trial in &mut outcome.trials {
        let socket = &mut trial.near.flows[0].socket;
        (socket.peer_window_bytes, socket.min_rtt_ns) = (Some(65_536), Some(20_000_000));
    }
    let found = bounded(outcome.clone(), &gigabit(A), &gigabit(B)).summary.ceiling.unwrap();
    assert_eq!((found.kind, found.others.len()), (BoundKind::Line, 0), "the kernel can enlarge that window");
    outcome.spec.far.rcvbuf = Some(32_768);
    let found = bounded(outcome.clone(), &gigabit(A), &gigabit(B)).summary.ceiling.unwrap();
    assert_eq!((found.kind, found.reason.plain().as_str()), (BoundKind::Window, "window 64 KiB over 20.0 ms"));
    assert!((found.bound_bps - 65_536.0 * 8.0 / 0.02).abs() < 1.0);
    assert_eq!(found.others.iter().map(|other| other.kind).collect::<Vec<_>>(), [BoundKind::Line]);
    // The kernel's doubling counts once: 64 KiB over 21.1 ms are 24.8 Mbit/s.
    outcome.spec.near.sndbuf = Some(32_768);
    for trial in &mut outcome.trials {
        let socket = &mut trial.near.flows[0].socket;
        (socket.sndbuf, socket.min_rtt_ns) = (Some(65_536), Some(21_100_000));
    }
    let found = bounded(outcome, &gigabit(A), &gigabit(B)).summary.ceiling.unwrap();
    let buffer = found.others.iter().find(|other| other.kind == BoundKind::SendBuffer).unwrap();
    assert_eq!(
        (buffer.reason.plain().as_str(), (buffer.bps / 1e5).round()),
        ("send buffer 64 KiB over 21.1 ms", 248.0)
    );
}

#[test]
fn a_window_bound_far_above_the_goodput_is_not_a_ceiling() {
    // Over loopback: 4 MiB in 8 µs would be 4.2 Tbit/s.
    let mut outcome = stream("tcp", 8_000.0, [A, B]);
    outcome.spec.far.rcvbuf = Some(2 << 20);
    outcome.spec.near.sndbuf = Some(2 << 20);
    for trial in &mut outcome.trials {
        let socket = &mut trial.near.flows[0].socket;
        (socket.peer_window_bytes, socket.sndbuf, socket.min_rtt_ns) = (Some(4 << 20), Some(4 << 20), Some(8_000));
    }
    assert_eq!(bounded(outcome, &Inventory::default(), &Inventory::default()).summary.ceiling, None);
}

#[test]
fn requested_rates_are_bounds() {
    let mut outcome = stream("tcp", 9.9, [A, B]);
    outcome.spec.rate_bps = Some(10_000_000);
    outcome.spec.near.max_pacing_bps = Some(4_000_000);
    outcome.spec.flows = 3;
    let found = bounded(outcome, &Inventory::default(), &Inventory::default()).summary.ceiling.unwrap();
    assert_eq!((found.bound_bps, found.reason.plain().as_str()), (10e6, "requested rate of 10.0 Mbit/s"));
    assert_eq!((found.others[0].kind, found.others[0].bps), (BoundKind::Pacing, 12e6));
}

#[test]
fn a_goodput_above_its_ceiling_is_found_and_a_first_block_does_not_count() {
    let above = bounded(stream("tcp", 1_100.0, [A, B]), &gigabit(A), &gigabit(B));
    assert!(above.summary.verdicts.contains(&Verdict::AboveCeiling));
    assert!((excess(&above).unwrap() - 0.168).abs() < 0.001);
    // 40 blocks in the time of 39.
    let mut paced = stream("tcp", 40.0 / 39.0 * 400.0, [A, B]);
    paced.spec.rate_bps = Some(400_000_000);
    paced.summary.bytes_received = Some(6 * 40 * 131_072);
    assert_eq!(bounded(paced, &gigabit(A), &gigabit(B)).summary.verdicts, []);
}

#[test]
fn round_trips_have_no_ceiling() {
    let mut rr = made(Pattern::Rr, 0, 1, &[1.0; 6]);
    rr.spec.rate_bps = Some(1);
    assert_eq!(bounded(rr, &gigabit(A), &gigabit(B)).summary.ceiling, None);
}
