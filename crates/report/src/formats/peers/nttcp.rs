//! The lines of nttcp 1.47 with -T and -v: for each trial the lines about the session, the titles, and a line of each end.
//!
//! The table is nttcp's default format, `%9b%8.2rt%8.2ct%12.4rbr%12.4cbr%8c%10.2rcr%10.1ccr`, with MBit of 10^6 bit. CPU seconds are
//! those of the measuring processes; without them the run is refused, because nttcp always prints them. The session lines have the
//! order of the published ones of 2012. Left out are process numbers, the option line, and the lines about waiting for the other end,
//! whose places depend on time.

use core::net::SocketAddr;
use std::fmt::Write as _;

use model::{EndTally, SocketFacts, TransportName};

use super::quantity::seconds;
use super::test::{Test, ends};
use super::{NTTCP, each_test};
use crate::{NoForm, Piece, ReportError, View};

/// The shortest time that nttcp prints, s.
const MIN_S: f64 = 0.000_01;
const TITLES: &str = "     Bytes  Real s   CPU s Real-MBit/s  CPU-MBit/s   Calls  Real-C/s   CPU-C/s\n";

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &NTTCP, "", text)
}

fn text(test: &Test<'_>) -> Result<String, NoForm> {
    // Refuses rates without counts.
    test.directions()?;
    let mut text = String::new();
    for trial in &test.trials {
        let outbound = test.outbound_flags() == [true];
        let (sender, receiver) = ends(trial, outbound);
        let port = port(sender, receiver);
        let counted = [
            (sender, "transmitted", (sender.bytes_sent, sender.sending_ns, sender.calls_sent)),
            (receiver, "received", (receiver.bytes_received, receiver.receiving_ns, receiver.calls_received)),
        ];
        let [local, remote] = if outbound { [0, 1] } else { [1, 0] };
        text.push_str("nttcp-l: nttcp, version 1.47\n");
        if outbound {
            // The receiver announces its port.
            let host = test.host();
            let announced = port.map_or_else(String::new, |port| format!(" (=dataport: {port})"));
            let _ = writeln!(text, "nttcp-l: from {host}: \"{host}\"{announced}");
        }
        for (mark, at) in [('l', local), ('1', remote)] {
            text.push_str(&session_lines(test, mark, counted[at].0, receiver, (sender.bytes_sent, port)));
        }
        text.push('\n');
        for (mark, at) in [('l', local), ('1', remote)] {
            let (end, what, (bytes, ns, calls)) = counted[at];
            let _ = writeln!(text, "nttcp-{mark}: {what} {bytes} bytes");
            if test.spec().transport == TransportName::Udp && at == 1 {
                let _ = writeln!(text, "nttcp-{mark}: got EOF");
            }
            if mark == 'l' {
                text.push_str(TITLES);
            }
            text.push_str(&line(mark, bytes, seconds(ns), cpu(end)?, calls));
        }
        text.push_str("nttcp-1: exiting\n\n");
    }
    Ok(text)
}

/// The port of the receiver's first socket, which another program leaves to the sender's to know.
fn port(sender: &EndTally, receiver: &EndTally) -> Option<u16> {
    let of = |end: &EndTally, address: fn(&SocketFacts) -> Option<&String>| -> Option<u16> {
        address(&end.flows.first()?.socket)?.rsplit_once(':')?.1.parse().ok()
    };
    of(receiver, |socket| socket.local.as_ref()).or_else(|| of(sender, |socket| socket.peer.as_ref()))
}

/// What an end says of its socket: at the receiver where the connection came from, the buffers if they are known, and the request.
fn session_lines(
    test: &Test<'_>,
    mark: char,
    end: &EndTally,
    receiver: &EndTally,
    (bytes, port): (u64, Option<u16>),
) -> String {
    let spec = test.spec();
    let mut text = String::new();
    let socket = end.flows.first().map(|flow| &flow.socket);
    let udp = spec.transport == TransportName::Udp;
    let from = socket.and_then(|socket| socket.peer.as_ref()?.parse::<SocketAddr>().ok());
    if let Some(from) = from.filter(|_| core::ptr::eq(end, receiver) && !udp) {
        let _ = writeln!(text, "nttcp-{mark}: accept from {}", from.ip().to_canonical());
    }
    let sizes = socket.map_or([None; 2], |socket| [socket.sndbuf, socket.rcvbuf]);
    for (what, size) in ["send", "receive"].into_iter().zip(sizes) {
        if let Some(size) = size {
            let _ = writeln!(text, "nttcp-{mark}: {what} window size = {size}");
        }
    }
    let (count, protocol) = (bytes.div_ceil(spec.block), if udp { "udp" } else { "tcp" });
    let port = port.map_or_else(String::new, |port| port.to_string());
    let _ = writeln!(text, "nttcp-{mark}: buflen={}, bufcnt={count}, dataport={port}/{protocol}", spec.block);
    text
}

fn cpu(end: &EndTally) -> Result<f64, NoForm> {
    end.spent.as_ref().map(|spent| seconds(spent.process_ns)).ok_or(NoForm::CpuTime)
}

fn line(mark: char, bytes: u64, real_s: f64, cpu_s: f64, calls: u64) -> String {
    let (real, cpu) = (real_s.max(MIN_S), cpu_s.max(MIN_S));
    let rate = |time: f64| bytes as f64 / time / 125_000.0;
    let each = |time: f64| calls as f64 / time;
    format!(
        "{mark}{bytes:9}{real:8.2}{cpu:8.2}{:12.4}{:12.4}{calls:8}{:10.2}{:10.1}\n",
        rate(real),
        rate(cpu),
        each(real),
        each(cpu),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::peers::round_trip::{rendered, with_cpu};
    use crate::sample;

    #[test]
    fn recorded_lines_are_reproduced() {
        // Times from the printed rates, which are finer: bytes / 125000 / rate.
        for (bytes, rate, cpu_rate, calls, printed) in [
            (8_388_608, 865.7309, 1342.1773, 2177, "l  8388608    0.08    0.05    865.7309   1342.1773    2177"),
            (134_217_728, 5706.0205, 35_793.780_4, 2048, "l134217728    0.19    0.03   5706.0205  35793.7804    2048"),
        ] {
            let time = |rate: f64| bytes as f64 / 125_000.0 / rate;
            let written = line('l', bytes, time(rate), time(cpu_rate), calls);
            assert!(written.starts_with(printed), "{written}");
        }
    }

    #[test]
    fn the_local_end_is_first_whoever_sends() {
        let mut run = with_cpu(sample::stream());
        run.outcomes[0].trials.truncate(1);
        let trial = &mut run.outcomes[0].trials[0];
        (trial.near.bytes_sent, trial.far.bytes_received) = (3_000, 2_000);
        assert!(rendered("nttcp", &run).contains("\nl     3000") && rendered("nttcp", &run).contains("\n1     2000"));
        run.outcomes[0].spec.direction = model::Direction::Reverse;
        let trial = &mut run.outcomes[0].trials[0];
        std::mem::swap(&mut trial.near, &mut trial.far);
        assert!(rendered("nttcp", &run).contains("\nl     2000") && rendered("nttcp", &run).contains("\n1     3000"));
    }

    #[test]
    fn the_session_has_the_lines_of_the_published_one() {
        let mut run = with_cpu(sample::stream());
        run.header.target = Some("10.0.0.229:6280".into());
        let outcome = &mut run.outcomes[0];
        outcome.trials.truncate(1);
        outcome.spec.block = 4096;
        let trial = &mut outcome.trials[0];
        let socket = |local: &str, peer: &str| model::FlowTally {
            socket: SocketFacts {
                local: Some(local.into()),
                peer: Some(peer.into()),
                sndbuf: Some(16_384),
                rcvbuf: Some(87_380),
                ..SocketFacts::default()
            },
            ..model::FlowTally::default()
        };
        let (near, far) = ("10.0.0.150:40000", "10.0.0.229:5038");
        (trial.near.flows, trial.far.flows) = (vec![socket(near, far)], vec![socket(far, near)]);
        (trial.near.bytes_sent, trial.far.bytes_received) = (8_388_608, 8_388_608);
        let text = rendered("nttcp", &run);
        let lines: Vec<&str> = text.lines().collect();
        let published = [
            "nttcp-l: nttcp, version 1.47",
            "nttcp-l: from 10.0.0.229: \"10.0.0.229\" (=dataport: 5038)",
            "nttcp-l: send window size = 16384",
            "nttcp-l: receive window size = 87380",
            "nttcp-l: buflen=4096, bufcnt=2048, dataport=5038/tcp",
            "nttcp-1: accept from 10.0.0.150",
            "nttcp-1: send window size = 16384",
            "nttcp-1: receive window size = 87380",
            "nttcp-1: buflen=4096, bufcnt=2048, dataport=5038/tcp",
            "",
            "nttcp-l: transmitted 8388608 bytes",
        ];
        assert_eq!(lines[..published.len()], published);
        assert_eq!(format!("{}\n", lines[11]), TITLES);
        assert!(lines[12].starts_with("l  8388608 "), "{text}");
        assert_eq!((lines[13], lines[15]), ("nttcp-1: received 8388608 bytes", "nttcp-1: exiting"));
        assert!(lines[14].starts_with("1  8388608 "), "{text}");
        // The record's own lines, without those that are left out, in their order.
        let record = include_str!("../../../../import/tests/data/2012-nttcp-verbose.txt");
        let record: Vec<&str> = record.lines().filter(|line| published.contains(line)).take(published.len()).collect();
        assert_eq!(record, published);
    }
}
