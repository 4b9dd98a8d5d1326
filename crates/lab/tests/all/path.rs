//! Emulated paths between real namespaces. Without the privilege they skip loudly, except in CI as root.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests may stop at the first surprise too")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::{
    Bursts, Codel, CrossoverSpec, DirectionSpec, Discipline, Lab, LabError, LabHost, LinkChange, PathCounts, PathSpec,
    Reorder, available,
};

/// Longer than anything here takes on a busy machine; a test that reaches it has failed.
const LIMIT: Duration = Duration::from_secs(60);
const PORT: u16 = 5_001;
const TRANSFER: usize = 24 << 20;

/// A path, or `None` and a line with the reason.
fn path(test: &str, spec: &PathSpec) -> Option<Lab> {
    let made = available().and_then(|()| Lab::path(spec));
    match made {
        Ok(lab) => Some(lab),
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            let root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0\t");
            assert!(!(ci && root), "{test} must run in CI as root: {error}");
            std::io::stderr().write_all(format!("SKIPPED: {test}: {error}\n").as_bytes()).unwrap();
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn link(mtu: u32) -> CrossoverSpec {
    CrossoverSpec { mtu, ..CrossoverSpec::default() }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// This binary on a host, in one of the ignored tests below.
fn role(host: &LabHost, name: &str, at: &str) -> Command {
    let mut command = host.command(std::env::current_exe().unwrap());
    let (_, module) = module_path!().split_once("::").unwrap(); // the harness leaves out the name of the binary
    command.args(["--ignored", "--exact", &format!("{module}::{name}"), "--nocapture"]);
    command.env("LAB_ADDRESS", at).stdout(Stdio::null());
    command
}

/// The counts of both directions once nothing is in flight any more. The first counts of a path may include a refused
/// packet that one host sent before the other was up.
fn settled(lab: &Lab) -> [PathCounts; 2] {
    let path = lab.emulator().unwrap();
    let mut counts = path.counts();
    eventually("the path is empty", || {
        let before = std::mem::replace(&mut counts, path.counts());
        before == counts && counts.iter().all(|direction| direction.travelling() == 0)
    });
    assert_eq!(path.failure(), None);
    for direction in &counts {
        assert_eq!(direction.arrived + direction.duplicated, direction.delivered + direction.dropped());
    }
    counts
}

/// Counters of a host's device: packets sent, dropped in sending, received.
fn device(host: &LabHost) -> [u64; 3] {
    let output = host.command("ip").args(["-j", "-s", "link", "show", "dev", &host.interface]).output().unwrap();
    let links: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    ["/stats64/tx/packets", "/stats64/tx/dropped", "/stats64/rx/packets"]
        .map(|pointer| links[0].pointer(pointer).and_then(serde_json::Value::as_u64).unwrap())
}

/// Round-trip times of `count` pings, in ms, ascending.
fn ping(lab: &Lab, address: IpAddr, count: usize) -> Vec<f64> {
    let (count, address) = (count.to_string(), address.to_string());
    let args = ["-n", "-i", "0.01", "-c", &count, &address];
    let output = lab.host("a").unwrap().command("ping").args(args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn a_ping_takes_the_configured_time_and_never_less() {
    let forward = DirectionSpec { delay: Duration::from_millis(20), ..DirectionSpec::default() };
    let reverse = DirectionSpec { delay: Duration::from_millis(5), ..DirectionSpec::default() };
    let spec = PathSpec { link: link(1_500), forward, reverse, seed: 1 };
    let Some(lab) = path("a_ping_takes_the_configured_time_and_never_less", &spec) else { return };
    let b = lab.host("b").unwrap();
    let first = settled(&lab);
    for address in [IpAddr::V4(b.v4), IpAddr::V6(b.v6)] {
        let times = ping(&lab, address, 40);
        assert_eq!(times.len(), 40, "a path without noise loses nothing");
        // ping prints three digits: 25.0 stands for 24.95 and more.
        assert!(times[0] >= 24.95, "{times:?}");
        // Not a test of precision, because the machine may be busy: the delay is not applied twice, or in another
        // unit.
        assert!(times[0] < 40.0, "{times:?}");
    }
    let last = settled(&lab);
    let [forward, reverse] = [0, 1].map(|direction| last[direction].since(&first[direction]));
    assert_eq!((forward.dropped(), reverse.dropped()), (0, 0));
    assert!(forward.arrived >= 80 && reverse.arrived >= 80, "{forward:?}");
    assert_eq!(forward.late.count(), forward.delivered, "pings are single packets");
    lab.close().unwrap();
}

#[test]
#[ignore = "a process of other tests"]
fn send_datagrams() {
    let Ok(at) = std::env::var("LAB_ADDRESS") else { return };
    let (at, count) = at.split_once(' ').unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for _ in 0..count.parse::<u32>().unwrap() {
        socket.send_to(&[7; 500], at).unwrap();
        // A yield keeps the burst within the device's queue where the emulator has no core of its own.
        std::thread::yield_now();
    }
}

#[test]
fn every_datagram_is_delivered_or_dropped_at_a_known_location() {
    let sent = 20_000;
    let noise = 0.02;
    // 500 bytes, 28 of headers and 38 of framing at 20 Mbit/s: the queue fills at any pace of the sender.
    let forward =
        DirectionSpec { rate_bps: Some(20_000_000), queue_bytes: 400_000, loss: noise, ..DirectionSpec::default() };
    let spec = PathSpec { link: link(1_500), forward, reverse: DirectionSpec::default(), seed: 42 };
    let Some(lab) = path("every_datagram_is_delivered_or_dropped_at_a_known_location", &spec) else { return };
    let [a, b] = lab.hosts() else { unreachable!() };
    let counters = || (device(a), device(b));
    let (before, first) = (counters(), settled(&lab));
    // Nothing listens at b: what arrives there is answered, if at all, by ICMP in the reverse direction.
    let at = format!("{}:{PORT} {sent}", b.v4);
    assert!(role(a, "send_datagrams", &at).status().unwrap().success());
    let (after, last) = (counters(), settled(&lab));
    let forward = last[0].since(&first[0]);
    // Neighbour discovery and the like may add a packet or two, in the device's counts as in the path's.
    let (left_a, lost_a) = (after.0[0] - before.0[0], after.0[1] - before.0[1]);
    assert!(left_a + lost_a >= sent, "{left_a} + {lost_a}");
    assert!((left_a..left_a + 10).contains(&forward.arrived), "{left_a}: {forward:?}");
    let entered = device(b)[2] - before.1[2];
    assert!((forward.delivered..forward.delivered + 10).contains(&entered), "{entered}: {forward:?}");
    assert!(forward.dropped_queue > 0, "{forward:?}");
    // Noise affects what the queue let through.
    let n = (forward.arrived - forward.dropped_queue) as f64;
    let (mean, deviation) = (n * noise, (n * noise * (1.0 - noise)).sqrt());
    assert!((forward.dropped_loss as f64 - mean).abs() < 4.0 * deviation, "{forward:?}");
    assert_eq!((forward.dropped_ring, forward.refused), (0, 0));
    lab.close().unwrap();
}

/// Byte `at` of the stream that the next two tests send.
fn byte(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

#[test]
#[ignore = "a process of other tests"]
fn send_stream() {
    let Ok(at) = std::env::var("LAB_ADDRESS") else { return };
    let mut flow = None;
    eventually("the receiver listens", || {
        flow = TcpStream::connect(&at).ok();
        flow.is_some()
    });
    let data: Vec<u8> = (0..TRANSFER).map(byte).collect();
    flow.unwrap().write_all(&data).unwrap();
}

#[test]
#[ignore = "a process of other tests"]
fn receive_stream() {
    let Ok(at) = std::env::var("LAB_ADDRESS") else { return };
    let (mut flow, _) = TcpListener::bind(&at).unwrap().accept().unwrap();
    let mut data = Vec::new();
    flow.read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), TRANSFER);
    let wrong = data.iter().enumerate().find(|(at, found)| **found != byte(*at));
    assert_eq!(wrong, None, "a byte differs");
}

/// Sends a stream across a path, once for each IP version, and returns the counts of the forward direction.
fn stream(lab: &Lab) -> PathCounts {
    let [a, b] = lab.hosts() else { unreachable!() };
    let first = settled(lab);
    for address in [IpAddr::V4(b.v4), IpAddr::V6(b.v6)] {
        let at = SocketAddr::new(address, PORT).to_string();
        let mut receiver = role(b, "receive_stream", &at).spawn().unwrap();
        let mut sender = role(a, "send_stream", &at).spawn().unwrap();
        assert!(receiver.wait().unwrap().success(), "what arrived over {at} is not what was sent");
        assert!(sender.wait().unwrap().success());
    }
    settled(lab)[0].since(&first[0])
}

#[test]
fn a_stream_arrives_whole_through_queue_and_noise() {
    // Losses within TSO packets make every kind of run; a wrong checksum or number would break the stream.
    for mtu in [1_500, 9_000] {
        let direction = DirectionSpec {
            delay: Duration::from_millis(1),
            rate_bps: Some(1_000_000_000),
            queue_bytes: 200_000,
            loss: 2e-3,
            ..DirectionSpec::default()
        };
        let spec = PathSpec::symmetric(link(mtu), direction);
        let Some(lab) = path("a_stream_arrives_whole_through_queue_and_noise", &spec) else { return };
        let forward = stream(&lab);
        let segments = (2 * TRANSFER / mtu as usize) as u64;
        assert!(forward.arrived >= segments, "TSO packets count by their segments: {forward:?}");
        assert!(forward.dropped_loss > 0, "{forward:?}");
        assert!(forward.late.count() < forward.delivered, "not one TSO packet: {forward:?}");
        lab.close().unwrap();
    }
}

#[test]
fn a_stream_arrives_whole_over_a_path_of_nothing() {
    let spec = PathSpec::symmetric(link(9_000), DirectionSpec::default());
    let Some(lab) = path("a_stream_arrives_whole_over_a_path_of_nothing", &spec) else { return };
    let forward = stream(&lab);
    assert_eq!(forward.dropped(), 0, "{forward:?}");
    assert!(forward.delivered_bytes > 2 * TRANSFER as u64);
    lab.close().unwrap();
}

/// A counter of a host's network stack, as `nstat` names it.
fn counter(host: &LabHost, name: &str) -> u64 {
    let output = host.command("nstat").args(["-asz", name]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_stream_arrives_whole_through_every_kind_of_noise() {
    let direction = DirectionSpec {
        delay: Duration::from_millis(1),
        rate_bps: Some(1_000_000_000),
        queue_bytes: 200_000,
        bursts: Bursts { p: 2e-4, r: 0.3, h: 0.2, k: 1.0 },
        corrupt: 2e-3,
        duplicate: 5e-3,
        reorder: Reorder { probability: 2e-3, by: Duration::from_millis(2) },
        ..DirectionSpec::default()
    };
    let spec = PathSpec { link: link(1_500), forward: direction, reverse: DirectionSpec::default(), seed: 11 };
    let Some(lab) = path("a_stream_arrives_whole_through_every_kind_of_noise", &spec) else { return };
    let b = lab.host("b").unwrap();
    let before = counter(b, "TcpInErrs");
    let forward = stream(&lab);
    assert!(forward.dropped_burst > 0 && forward.duplicated > 0 && forward.reordered > 0, "{forward:?}");
    assert!(forward.kept_back >= forward.reordered && forward.corrupted > 0, "{forward:?}");
    // TCP's own checksum finds each of them, as on a wire.
    assert_eq!(counter(b, "TcpInErrs") - before, forward.corrupted);
    lab.close().unwrap();
}

#[test]
fn codel_marks_ecn_capable_segments_and_drops_none() {
    let codel = Codel { target: Duration::from_millis(1), interval: Duration::from_millis(10), ecn: true };
    let forward = DirectionSpec {
        rate_bps: Some(500_000_000),
        queue_bytes: 64 << 20,
        discipline: Discipline::Codel(codel),
        ..DirectionSpec::default()
    };
    let spec = PathSpec { link: link(1_500), forward, reverse: DirectionSpec::default(), seed: 1 };
    let Some(lab) = path("codel_marks_ecn_capable_segments_and_drops_none", &spec) else { return };
    for host in lab.hosts() {
        assert!(host.command("sysctl").args(["-qw", "net.ipv4.tcp_ecn=1"]).status().unwrap().success());
    }
    let b = lab.host("b").unwrap();
    let before = counter(b, "IpExtInCEPkts") + counter(b, "Ip6InCEPkts");
    let forward = stream(&lab);
    assert_eq!(forward.dropped(), 0, "{forward:?}");
    // The stack counts packets, of which one may hold several segments.
    let seen = counter(b, "IpExtInCEPkts") + counter(b, "Ip6InCEPkts") - before;
    assert!((1..=forward.marked).contains(&seen), "{seen}: {forward:?}");
    lab.close().unwrap();
}

#[test]
fn a_path_changes_when_it_should() {
    let later = LinkChange {
        at: Duration::from_millis(200),
        delay: Some(Duration::from_millis(40)),
        mtu: Some(1_000),
        ..LinkChange::default()
    };
    let forward = DirectionSpec { delay: Duration::from_millis(5), changes: vec![later], ..DirectionSpec::default() };
    let spec = PathSpec { link: link(1_500), forward, reverse: DirectionSpec::default(), seed: 1 };
    let Some(lab) = path("a_path_changes_when_it_should", &spec) else { return };
    let b = IpAddr::V4(lab.host("b").unwrap().v4);
    eventually("the delay is the later one", || ping(&lab, b, 1)[0] >= 40.0);
    let first = settled(&lab)[0].clone();
    let args = ["-n", "-i", "0.01", "-c", "20", "-W", "1", "-s", "1200", &b.to_string()];
    let long = lab.host("a").unwrap().command("ping").args(args).stdout(Stdio::null()).status().unwrap();
    assert!(!long.success());
    assert_eq!(settled(&lab)[0].since(&first).dropped_mtu, 20);
    lab.close().unwrap();
}

#[test]
fn the_same_seed_loses_the_same_segments() {
    let lossy = DirectionSpec { loss: 0.1, ..DirectionSpec::default() };
    let spec = PathSpec { forward: lossy, reverse: DirectionSpec::default(), link: link(1_500), seed: 5 };
    let lost = || {
        let lab = path("the_same_seed_loses_the_same_segments", &spec)?;
        let b = lab.host("b").unwrap().v4;
        // The router solicitations of IPv6 would interfere.
        for host in lab.hosts() {
            let off = "net.ipv6.conf.all.disable_ipv6=1";
            assert!(host.command("sysctl").args(["-qw", off]).status().unwrap().success());
        }
        let before = settled(&lab)[0].arrived;
        let args = ["-n", "-i", "0.005", "-c", "300", "-W", "1", &b.to_string()];
        let output = lab.host("a").unwrap().command("ping").args(args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let number = |line: &str| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse::<u32>().ok();
        Some((before, text.lines().filter_map(number).collect::<Vec<_>>()))
    };
    let Some((skipped, first)) = lost() else { return };
    let Some((again, second)) = lost() else { return };
    assert!((200..300).contains(&first.len()), "{first:?}");
    // Packets before the first ping have used draws; if both runs used the same number, the same pings are missing.
    if skipped == again {
        assert_eq!(first, second);
    }
}

#[test]
fn impossible_paths_are_refused_before_anything_is_made() {
    let spec = PathSpec::symmetric(link(1_500), DirectionSpec { loss: 2.0, ..DirectionSpec::default() });
    assert!(matches!(Lab::path(&spec), Err(LabError::Spec { .. })));
}
