//! How each fault is made. A fault holds the goodput well below what the rest of the path carries.

use model::LimiterKind as K;

use crate::chance::Chance;
use crate::path::{Path, Spinners};

/// Kinds of congestion control; the names without a place in the kernel are stacks that `thru` loads.
const STACKS: [&str; 7] = ["cubic", "reno", "bbr", "scalable", "highspeed", "htcp", "fast"];
/// Those whose rate under random loss is known: CUBIC's and Reno's.
const LOSS_STACKS: [&str; 2] = ["cubic", "reno"];

/// The rate of a link that does not limit, relative to the fault's.
const WIDER: f64 = 2.5;
/// Largest rate of a link, bit/s.
const MOST: f64 = 1e9;
/// Goodput relative to the rate of the fault in which it counts as produced.
const PRODUCED: [f64; 2] = [0.5, 1.6];
/// Most data in flight, bytes, so that a trial is long compared with its slow start.
const IN_FLIGHT: f64 = 1e6;

/// Whether the fault also limits over a cable without delay.
pub fn works_without_delay(kind: K) -> bool {
    matches!(kind, K::SenderApplication | K::ReceiverApplication | K::Pacing | K::Qdisc)
}

/// Draws what the faults of `kinds` share: MTU, stack, round trip, and the rate at which they limit, bit/s.
pub fn base(path: &mut Path, chance: &mut Chance, kinds: &[K], cable: bool) -> f64 {
    path.mtu = mtu(chance);
    let losing = kinds.contains(&K::Loss);
    path.cc = Some(if losing { chance.one(&LOSS_STACKS) } else { chance.one(&STACKS) }.to_owned());
    // Commands on the sender run on the near host.
    path.reverse = !kinds.iter().any(|kind| matches!(kind, K::Qdisc | K::CongestionWindow)) && chance.happens(0.25);
    if !cable {
        let shortest = if kinds.iter().all(|kind| works_without_delay(*kind) || *kind == K::Link) { 1e6 } else { 5e6 };
        path.rtt_ns = chance.log_between(shortest, 80e6) as u64;
    }
    let rate = if losing { lossy(path, chance) } else { rate(path, chance, kinds) };
    if !cable && !kinds.contains(&K::Link) {
        path.rate_bps = Some(chance.log_between((1.4 * WIDER * rate).max(10e6), MOST) as u64);
        path.queue_bytes = queue(path, chance);
    }
    // FAST, and CUBIC at the end of slow start, take a delay that varies for a queue.
    let by_delay = path.cc.as_deref().is_some_and(|cc| cc == "cubic" || cc == "fast");
    if path.rtt_ns > 0 && chance.happens(0.3) && !by_delay {
        path.jitter_ns = (path.rtt_ns as f64 * chance.log_between(0.02, 0.2)) as u64;
    }
    time(path);
    rate
}

fn mtu(chance: &mut Chance) -> u32 {
    if chance.happens(0.6) { 1_500 } else { chance.between(1_280.0, 9_001.0) as u32 }
}

/// A rate of faults that can be chosen.
fn rate(path: &Path, chance: &mut Chance, kinds: &[K]) -> f64 {
    let most = if kinds == [K::Link] { MOST } else { MOST / (1.4 * WIDER) };
    let most = if path.rtt_ns > 0 { most.min(8.0 * IN_FLIGHT / path.rtt_s()) } else { most };
    // A window has at least eight segments. A send buffer may be exceeded by one packet, so it has several.
    let window = if kinds.contains(&K::SendBuffer) { 150e3 } else { 8.0 * path.mss() };
    let least = if path.rtt_ns > 0 { (8.0 * window / path.rtt_s()).max(10e6) } else { 10e6 };
    let least = if kinds.contains(&K::ReceiverApplication) { least.max(20e6) } else { least };
    chance.log_between(least.min(most * 0.99), most)
}

/// Draws the share of lost segments and returns the rate that they allow: the larger one of Reno's (Mathis and others, 1997) and
/// CUBIC's (RFC 9438, section 5.1), with enough losses for an average.
fn lossy(path: &mut Path, chance: &mut Chance) -> f64 {
    loop {
        let loss = chance.log_between(0.001, 0.03);
        let segments = (1.22 / loss.sqrt()).max(1.054 * (path.rtt_s() / loss).powf(0.75));
        let rate = segments * path.mss() * 8.0 / path.rtt_s();
        let lost = 2.0 * loss * segments / path.rtt_s();
        if rate < MOST / (1.4 * WIDER) && lost >= 15.0 {
            path.loss = loss;
            return rate;
        }
        path.rtt_ns = chance.log_between(5e6, 80e6) as u64;
    }
}

/// The queue before a link: half to three times the data in flight.
fn queue(path: &Path, chance: &mut Chance) -> u64 {
    let in_flight = path.rate_bps.unwrap_or(0) as f64 * path.rtt_s() / 8.0;
    (in_flight * chance.log_between(0.5, 3.0)).max(100e3) as u64
}

/// Drop-tail, CoDel or RED.
fn discipline(path: &Path, chance: &mut Chance) -> Option<String> {
    let part = |share: f64| (share * path.queue_bytes as f64) as u64;
    match chance.between(0.0, 1.0) {
        share if share < 0.6 => None,
        share if share < 0.8 => Some("{ codel = { target = \"5ms\", interval = \"100ms\", ecn = false } }".into()),
        _ => Some(format!(
            "{{ red = {{ min = {}, max = {}, probability = \"5%\", weight = 0.002, ecn = false }} }}",
            part(0.3),
            part(0.9)
        )),
    }
}

/// One long trial, or two of a second where it is long enough.
fn time(path: &mut Path) {
    let (time, trials) = if path.rtt_ns > 20_000_000 { ("2s", "1") } else { ("1s", "2") };
    path.flag("time", time);
    path.flag("trials", trials);
}

/// Makes a fault that limits the path to `rate` bit/s.
pub fn apply(path: &mut Path, chance: &mut Chance, kind: K, rate: f64) {
    let bits = format!("{}bit", rate as u64);
    let window = rate * path.rtt_s() / 8.0;
    match kind {
        K::SenderApplication => path.flag("rate", bits),
        K::ReceiverApplication => path.flag("drain", bits),
        K::Pacing => path.of_sender("pacing", &bits),
        K::ReceiveWindow => receive_window(path, chance, window),
        K::SendBuffer => send_buffer(path, chance, window),
        K::Link => {
            path.rate_bps = Some((rate as u64).max(10_000_000));
            path.queue_bytes = queue(path, chance);
            path.discipline = discipline(path, chance);
        }
        K::CongestionWindow => {
            let segments = (window / path.mss()).round().max(4.0);
            path.before.push(clamp(segments));
        }
        K::Qdisc => path.before.push(shaper(chance, &bits, rate)),
        // Random loss is the link's.
        _ => {}
    }
    let [low, high] = PRODUCED;
    let low = if kind == K::Loss { 0.25 } else { low };
    path.expect(low * rate, high * rate);
}

/// A route with a largest congestion window. The kernel applies it to a destination for which it has metrics, so after a connection.
fn clamp(segments: f64) -> String {
    format!(
        "ip route change $(ip route show dev eth0 | head -n 1) dev eth0 cwnd lock {segments}; \"$THRU_PROGRAM\" stream b --bytes 64KiB \
         --trials 1 --no-path --no-store --quiet"
    )
}

/// A receive buffer of about that payload: of the socket, or the limit of its autotuning.
fn receive_window(path: &mut Path, chance: &mut Chance, bytes: f64) {
    // The kernel doubles SO_RCVBUF, up to net.core.rmem_max.
    if bytes < 100e3 && chance.happens(0.5) {
        path.of_receiver("rcvbuf", &format!("{}", bytes as u64));
    } else {
        let all = 2 * bytes as u64;
        path.sysctl.insert("net.ipv4.tcp_rmem".into(), format!("4096 {} {all}", all.min(131_072)));
    }
}

/// A send buffer of that payload in the same two ways.
fn send_buffer(path: &mut Path, chance: &mut Chance, bytes: f64) {
    if bytes < 200e3 && chance.happens(0.5) {
        path.of_sender("sndbuf", &format!("{}", bytes as u64 / 2));
    } else {
        let all = bytes as u64;
        path.sysctl.insert("net.ipv4.tcp_wmem".into(), format!("4096 {} {all}", all.min(16_384)));
    }
}

/// A shaper at the sender's interface.
fn shaper(chance: &mut Chance, bits: &str, rate: f64) -> String {
    let burst = (rate / 8.0 * 0.004).max(70e3) as u64;
    if chance.happens(0.5) {
        let latency = chance.between(10.0, 60.0) as u64;
        return format!("tc qdisc replace dev eth0 root tbf rate {bits} burst {burst} latency {latency}ms");
    }
    format!(
        "tc qdisc replace dev eth0 root handle 1: htb default 1; tc class add dev eth0 parent 1: classid 1:1 htb rate {bits} burst \
         {burst} cburst {burst}"
    )
}

/// A sender of datagrams at a rate, alone or faster than the link.
pub fn datagrams(path: &mut Path, chance: &mut Chance, kind: K) {
    path.name.push_str(": datagrams");
    path.rtt_ns = chance.log_between(1e6, 80e6) as u64;
    path.reverse = chance.happens(0.3);
    let limit = chance.log_between(10e6, MOST / (1.4 * WIDER));
    let [link, rate] = match kind {
        K::Link => [limit, limit * chance.between(1.3, 2.0)],
        _ => [chance.log_between((1.4 * WIDER * limit).max(20e6), MOST), limit],
    };
    path.rate_bps = Some((link as u64).max(10_000_000));
    path.queue_bytes = queue(path, chance);
    path.flags.push("--udp".into());
    path.flag("rate", format!("{}bit", rate as u64));
    time(path);
    path.expect(PRODUCED[0] * limit, PRODUCED[1] * limit);
}

/// Connections that end in slow start.
pub fn slow_start(path: &mut Path, chance: &mut Chance) {
    path.name = "congestion window: slow start".into();
    path.cc = Some(chance.one(&STACKS).to_owned());
    path.rtt_ns = chance.log_between(15e6, 80e6) as u64;
    // The receiver's window grows from its own small start unless its buffer is large from the beginning.
    path.sysctl.insert("net.ipv4.tcp_rmem".into(), "4096 16777216 67108864".into());
    let bytes = chance.log_between(20.0, 100.0) * path.mss();
    // The link would carry all of it in a small part of a round trip.
    let rate = chance.log_between((8.0 * 4.0 * bytes / path.rtt_s()).min(0.9 * MOST), MOST);
    path.rate_bps = Some(rate as u64);
    path.queue_bytes = queue(path, chance);
    path.flag("bytes", format!("{}", bytes as u64));
    path.flag("block", "16KiB");
    path.flag("trials", "6");
    path.expect(0.0, 0.5 * rate);
}

/// A link that is shared with nothing and carries what it is asked to.
fn link(path: &mut Path, chance: &mut Chance, rtt_ns: [f64; 2], bps: [f64; 2]) -> f64 {
    path.mtu = mtu(chance);
    path.rtt_ns = chance.log_between(rtt_ns[0], rtt_ns[1]) as u64;
    let bps = chance.log_between(bps[0], bps[1]) as u64;
    path.rate_bps = Some(bps);
    path.queue_bytes = queue(path, chance);
    bps as f64
}

/// Bytes of an acknowledgement with two segments' time, on a wire.
const ACKNOWLEDGEMENT: f64 = 99.0;

/// Acknowledgements that return over a slow link.
pub fn return_path(path: &mut Path, chance: &mut Chance) {
    path.reverse = chance.happens(0.3);
    path.cc = Some(chance.one(&STACKS[..3]).to_owned());
    let bps = link(path, chance, [5e6, 80e6], [20e6, 400e6]);
    let limit = bps * chance.between(0.05, 0.25);
    let back = limit / (2.0 * path.mss() * 8.0) * ACKNOWLEDGEMENT * 8.0;
    path.back_bps = Some(back as u64);
    path.back_queue_bytes = (back / 8.0 * chance.between(0.1, 0.5)).max(2.0 * f64::from(path.mtu)).max(4_000.0) as u64;
    time(path);
    path.expect(0.0, 0.7 * bps);
}

/// A delay that varies, which CUBIC takes for a queue at the end of slow start.
pub fn jitter(path: &mut Path, chance: &mut Chance) {
    path.cc = Some("cubic".to_owned());
    path.reverse = chance.happens(0.3);
    let bps = link(path, chance, [20e6, 80e6], [200e6, MOST]);
    path.jitter_ns = (path.rtt_ns as f64 * chance.between(0.1, 0.3)) as u64;
    time(path);
    path.expect(0.0, 0.4 * bps);
}

/// A link that another program's flow uses.
pub fn other_traffic(path: &mut Path, chance: &mut Chance) {
    path.cc = Some(chance.one(&STACKS[..3]).to_owned());
    path.reverse = chance.happens(0.3);
    let bps = link(path, chance, [2e6, 60e6], [20e6, 400e6]);
    path.beside = true;
    time(path);
    path.expect(0.0, 0.7 * bps);
}

/// A path that carries no packets of the full size and does not report it.
pub fn hole(path: &mut Path, chance: &mut Chance) {
    path.reverse = chance.happens(0.3);
    path.rtt_ns = chance.log_between(1e6, 80e6) as u64;
    path.hole = Some(chance.between(1_300.0, 1_450.0) as u32);
    if chance.happens(0.5) {
        path.flags.push("--udp".into());
        path.flag("block", format!("{}", chance.between(1_450.0, 1_473.0) as u64));
        path.flag("rate", "20Mbit");
    } else {
        path.cc = Some(chance.one(&STACKS[..3]).to_owned());
        path.flag("stall", "3s");
    }
    path.flag("time", "2s");
    path.flag("trials", "1");
    path.expect(0.0, 1e6);
}

/// Segments that overtake each other, which TCP takes for loss: later than it waits for (RFC 8985, section 6.2: at most a round trip).
/// The queue has room for all of them.
pub fn reordering(path: &mut Path, chance: &mut Chance) {
    path.cc = Some(chance.one(&LOSS_STACKS).to_owned());
    path.reverse = chance.happens(0.3);
    let bps = link(path, chance, [10e6, 60e6], [200e6, MOST]);
    path.queue_bytes = 16_000_000;
    path.reorder = Some((chance.log_between(0.005, 0.1), (path.rtt_ns as f64 * chance.between(1.0, 2.5)) as u64));
    time(path);
    path.expect(0.0, 0.4 * bps);
}

/// A shaper at the sender with room for a few packets, so that its drops limit the window long before its rate does.
pub fn short_queue(path: &mut Path, chance: &mut Chance) {
    path.name.push_str(": short queue");
    path.cc = Some(chance.one(&LOSS_STACKS).to_owned());
    path.rtt_ns = chance.log_between(10e6, 60e6) as u64;
    let rate = chance.log_between(50e6, 400e6);
    let (bits, packets) = (format!("{}bit", rate as u64), chance.between(3.0, 8.0) as u32);
    let limit = packets * (path.mtu + 14);
    path.before.push(format!("tc qdisc replace dev eth0 root tbf rate {bits} burst 64k limit {limit}"));
    time(path);
    path.expect(0.0, 0.8 * rate);
}

/// Other programs on the core of one end. Over a cable the sender needs a whole core and the receiver, with large blocks, most of one,
/// so the slowed one limits.
pub fn processor(path: &mut Path, chance: &mut Chance, kind: K) {
    path.mtu = mtu(chance);
    path.cc = Some(chance.one(&STACKS).to_owned());
    path.reverse = chance.happens(0.25);
    let core = u32::from((kind == K::ReceiverCpu) != path.reverse);
    let (fewest, smallest) = if kind == K::SenderCpu { (2.0, 16e3) } else { (4.0, 128e3) };
    path.spinners = Some(Spinners { core, count: chance.between(fewest, 9.0) as u32 });
    path.flag("pin", "0,1");
    path.flag("block", format!("{}", chance.log_between(smallest, 1e6) as u64));
    time(path);
}

/// A path whose delay falls now and then, so that datagrams arrive in bursts, and a receiving socket with room for a few of them.
pub fn socket_buffer(path: &mut Path, chance: &mut Chance) {
    let rate = chance.log_between(20e6, MOST / (1.4 * WIDER));
    path.rtt_ns = chance.log_between(12e6, 80e6) as u64;
    path.jitter_ns = chance.log_between(3e6, 0.5 * path.rtt_ns as f64) as u64;
    path.rate_bps = Some(chance.log_between((1.4 * WIDER * rate).max(100e6), MOST) as u64);
    path.queue_bytes = 4_000_000;
    path.reverse = chance.happens(0.3);
    path.flags.push("--udp".into());
    path.flag("rate", format!("{}bit", rate as u64));
    path.of_receiver("rcvbuf", &format!("{}", chance.log_between(2e3, 10e3) as u64));
    time(path);
    path.expect(0.0, 0.93 * rate);
}

/// A path that only the hosts limit.
pub fn innocent(mut path: Path, chance: &mut Chance) -> Path {
    path.mtu = mtu(chance);
    path.cc = Some(chance.one(&STACKS).to_owned());
    path.reverse = chance.happens(0.3);
    if chance.happens(0.5) {
        // The kernel's own limits of buffers.
        path.sysctl.clear();
    }
    if chance.happens(0.3) {
        path.flag("pin", "0,1");
    }
    let (kind, block) = match chance.between(0.0, 1.0) {
        share if share < 0.5 => ("cable", chance.log_between(8e3, 1e6)),
        share if share < 0.57 => ("tls", chance.log_between(8e3, 200e3)),
        share if share < 0.62 => ("quic", chance.log_between(8e3, 200e3)),
        share if share < 0.7 => ("udp", 1_200.0),
        _ => ("small blocks", chance.log_between(8.0, 32.0)),
    };
    match kind {
        "tls" => path.flag("transport", "tls"),
        "quic" => (path.flag("transport", "quic"), path.cc = None).1,
        "udp" => (path.flags.push("--udp".into()), path.cc = None).1,
        "small blocks" => delayed(&mut path, chance),
        _ => cable(&mut path, chance),
    }
    path.name = format!("innocent: {kind}");
    path.flag("block", format!("{}", block as u64));
    time(&mut path);
    path
}

/// Several connections, or another way to send.
fn cable(path: &mut Path, chance: &mut Chance) {
    if chance.happens(0.3) {
        path.flag("flows", chance.one(&["2", "3", "4"]));
    }
    if chance.happens(0.3) {
        path.flag("engine", chance.one(&["sendfile", "splice", "zerocopy"]));
    }
    if chance.happens(0.1) {
        path.reverse = false;
        path.flags.push("--both".into());
    }
}

/// A delay and a link that carry a multiple of what a sender of small blocks needs.
fn delayed(path: &mut Path, chance: &mut Chance) {
    path.rtt_ns = chance.log_between(200e3, 10e6) as u64;
    if chance.happens(0.5) {
        path.rate_bps = Some(MOST as u64);
        path.queue_bytes = 4_000_000;
        path.expect(0.0, 0.5 * MOST);
    }
}
