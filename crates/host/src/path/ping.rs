//! Ten echoes: round trips and loss of an unloaded path.

use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use model::Ping;

use super::echo::Echo;

const COUNT: u16 = 10;
/// Between two echoes, so that one does not queue behind another.
const GAP: Duration = Duration::from_millis(15);
/// As the ping programs send: 56 bytes of data.
const DATA: usize = 56;

/// Pings `peer`; ends when all have answered, or at `until`.
///
/// # Errors
/// Why it is not possible here, with the remedy.
pub(super) fn ping(peer: IpAddr, until: Instant) -> Result<Ping, String> {
    let echo = match Echo::open(peer) {
        Ok(echo) => echo,
        Err(error) => return program(peer).ok_or_else(|| needs_right(&error.to_string())),
    };
    let packet = DATA + echo.overhead();
    let mut sent: Vec<Option<Instant>> = Vec::new();
    let mut times = Vec::new();
    let mut seen = [false; COUNT as usize];
    let mut take = |sequence: u16, sent: &[Option<Instant>]| {
        let now = Instant::now();
        if let (Some(Some(at)), Some(seen)) = (sent.get(usize::from(sequence)), seen.get_mut(usize::from(sequence)))
            && !std::mem::replace(seen, true)
        {
            times.push(now.duration_since(*at).as_nanos() as u64);
        }
        times.len()
    };
    let mut failure = None;
    for sequence in 0..COUNT {
        let at = Instant::now();
        let went = echo.send(sequence, packet);
        sent.push(went.is_ok().then_some(at));
        failure = went.err().or(failure);
        while let Some(sequence) = echo.receive((at + GAP).min(until)) {
            take(sequence, &sent);
        }
        std::thread::sleep((at + GAP).min(until).saturating_duration_since(Instant::now()));
    }
    let count = sent.iter().flatten().count();
    if count == 0 {
        let reason = failure.map_or_else(String::new, |error| error.to_string());
        return Err(format!("ping: echoes to {peer} cannot be sent: {reason}"));
    }
    let mut received = take(COUNT, &sent);
    while received < count && Instant::now() < until {
        match echo.receive(until) {
            Some(sequence) => received = take(sequence, &sent),
            // The error that ended the wait stays readable for a moment.
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(digest(echo.method(), count as u32, packet as u32, &times))
}

/// Why there is no ping, and the remedy.
fn needs_right(error: &str) -> String {
    format!(
        "ping: thru cannot open an ICMP socket ({error}) and the program ping cannot either: widen \
            net.ipv4.ping_group_range, or give thru CAP_NET_RAW (setcap cap_net_raw+ep)"
    )
}

fn digest(method: &str, sent: u32, packet_bytes: u32, times: &[u64]) -> Ping {
    let values: Vec<f64> = times.iter().map(|ns| *ns as f64).collect();
    Ping {
        method: method.into(),
        sent,
        received: times.len() as u32,
        packet_bytes,
        min_ns: times.iter().min().copied(),
        median_ns: model::median(&values).map(|ns| ns as u64),
        max_ns: times.iter().max().copied(),
    }
}

/// The system's program, which usually has the privilege that this process lacks. Four echoes, because it allows
/// ordinary users at most one per 0.2 s.
fn program(peer: IpAddr) -> Option<Ping> {
    let requested = ["-n", "-c", "4", "-i", "0.2", "-W", "1"];
    let output = Command::new("ping").args(requested).arg(peer.to_string()).output().ok()?;
    read(&String::from_utf8_lossy(&output.stdout), if peer.is_ipv6() { 104 } else { 84 })
}

/// The output of iputils' and BusyBox's ping: a line with `time=0.045 ms` for each reply, and `4 packets transmitted`.
fn read(text: &str, packet_bytes: u32) -> Option<Ping> {
    let time = |line: &str| {
        let milliseconds: f64 = line.split_once("time=")?.1.split_ascii_whitespace().next()?.parse().ok()?;
        Some((milliseconds * 1e6).round() as u64)
    };
    let line = text.lines().find(|line| line.contains("packets transmitted"))?;
    let sent: u32 = line.split_ascii_whitespace().next()?.parse().ok()?;
    let times: Vec<u64> = text.lines().filter_map(time).collect();
    (sent > 0).then(|| digest("ping", sent, packet_bytes, &times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_lines_are_read() {
        let text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
            64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.200 ms\n\
            64 bytes from 192.0.2.1: icmp_seq=2 ttl=64 time=0.100 ms\n\
            64 bytes from 192.0.2.1: icmp_seq=4 ttl=64 time=0.400 ms\n\n\
            --- 192.0.2.1 ping statistics ---\n4 packets transmitted, 3 received, 25% packet loss, time 603ms\n";
        let ping = read(text, 84).unwrap();
        assert_eq!((ping.sent, ping.received), (4, 3));
        assert_eq!((ping.min_ns, ping.median_ns, ping.max_ns), (Some(100_000), Some(200_000), Some(400_000)));
        assert_eq!(read("ping: socket: Operation not permitted\n", 84), None);
    }

    #[test]
    fn without_replies_there_are_no_times() {
        let ping = digest("icmp-socket", 10, 84, &[]);
        assert_eq!((ping.received, ping.min_ns, ping.median_ns, ping.max_ns), (0, None, None, None));
        assert_eq!(digest("icmp-socket", 2, 84, &[30, 10]).median_ns, Some(20));
    }
}
