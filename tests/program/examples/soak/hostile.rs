//! What is no client: random bytes, connections that never say anything or a byte a second, at every open port.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use model::SplitMix64;

use crate::shared::Load;

/// Ports of the other programs that the open agent serves: iperf3, NetPIPE and nuttcp.
const OTHERS: [u16; 3] = [5201, 5002, 5000];
/// Connections that are half open, and as many that are slow.
const HELD: usize = 60;
/// The beginning of a control connection, for those who send it slowly.
const BEGINNING: &[u8] = b"THRUCTLS\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03";

pub(crate) fn start(load: &Load) {
    for thread in 0..3 {
        let load = load.clone();
        std::thread::spawn(move || garbage(&load, load.random(100 + thread)));
    }
    let (silent, slow, datagrams) = (load.clone(), load.clone(), load.clone());
    std::thread::spawn(move || hold(&silent, false, silent.random(110)));
    std::thread::spawn(move || hold(&slow, true, slow.random(111)));
    std::thread::spawn(move || send_datagrams(&datagrams, datagrams.random(112)));
}

/// An open port: mostly the agents' own.
fn port(load: &Load, random: &mut SplitMix64) -> String {
    let host = load.open.rsplit_once(':').expect("a port").0;
    match random.below(7) {
        0..=2 => load.root.clone(),
        3 => load.open.clone(),
        other => format!("{host}:{}", OTHERS[other - 4]),
    }
}

fn bytes(random: &mut SplitMix64, most: usize) -> Vec<u8> {
    let prefix: &[u8] = [&b""[..], b"THRUCTLS", b"THRUDATA", b"THRU", b"GET / HTTP/1.1\r\n"][random.below(5)];
    let count = random.below(most);
    prefix.iter().copied().chain((0..count).map(|_| random.next_u64() as u8)).collect()
}

fn garbage(load: &Load, mut random: SplitMix64) {
    while load.goes_on() {
        let (to, sent) = (port(load, &mut random), bytes(&mut random, 4_096));
        if let Ok(mut stream) = TcpStream::connect(to) {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let _ = stream.write_all(&sent);
            if random.below(2) == 0 {
                let _ = stream.read(&mut [0; 256]);
            }
            load.counts.add("connections with random bytes");
        }
        std::thread::sleep(Duration::from_millis(random.below(60) as u64));
    }
}

/// Keeps connections open. The agent closes them; those that it does not close in a minute are closed here and counted.
fn hold(load: &Load, slow: bool, mut random: SplitMix64) {
    let kind = if slow { "slow connections, a byte a second" } else { "half-open connections" };
    let mut held: Vec<(TcpStream, Instant, usize)> = Vec::new();
    while load.goes_on() {
        while held.len() < HELD {
            let Ok(stream) = TcpStream::connect(port(load, &mut random)) else { break };
            let _ = stream.set_nonblocking(true);
            load.counts.add(kind);
            held.push((stream, Instant::now(), 0));
        }
        held.retain_mut(|(stream, since, sent)| {
            let written = !slow || stream.write_all(&BEGINNING[*sent % BEGINNING.len()..][..1]).is_ok();
            *sent += 1;
            // A closed connection reads its end, or an error.
            let open = written
                && stream
                    .read(&mut [0; 256])
                    .map_or_else(|error| error.kind() == std::io::ErrorKind::WouldBlock, |count| count > 0);
            if open && since.elapsed() > Duration::from_secs(60) {
                load.counts.add(&format!("{kind}, closed by the soak after a minute"));
                return false;
            }
            open
        });
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn send_datagrams(load: &Load, mut random: SplitMix64) {
    let Ok(socket) = UdpSocket::bind("0.0.0.0:0") else { return };
    while load.goes_on() {
        let (to, sent) = (port(load, &mut random), bytes(&mut random, 1_400));
        if socket.send_to(&sent, to).is_ok() {
            load.counts.add("datagrams of random bytes");
        }
        std::thread::sleep(Duration::from_millis(random.below(40) as u64));
    }
}
