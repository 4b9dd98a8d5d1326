//! Checks from counters and clocks. Pure arithmetic.

use model::{Check, Claim, Run, SocketFacts, Trial};

/// Bytes and packets by a counter outside the tool, and the bytes of headers in each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) header: u64,
}

impl Count {
    /// Payload since an earlier count. An interface counts a GSO packet as one packet with one header; a queueing discipline
    /// counts each segment with its header. In both cases the payload is the bytes less the headers of the packets.
    pub(super) fn payload_since(&self, earlier: &Self) -> i64 {
        let bytes = self.bytes.wrapping_sub(earlier.bytes) as i64;
        bytes - (self.packets.wrapping_sub(earlier.packets) * self.header) as i64
    }
}

/// IPv4 and TCP with timestamps, bytes (RFC 791, RFC 9293, RFC 7323). Ethernet's header is 14 more.
pub(super) const TCP_IP: u64 = 20 + 20 + 12;
/// IPv4 and UDP, bytes (RFC 768).
pub(super) const UDP_IP: u64 = 20 + 8;
/// Ethernet's header without the preamble and the check sequence, which a kernel does not count.
pub(super) const ETHERNET: u64 = 14;

/// Bytes of a connection beyond the stream, by each counter: the hello, the agreement on the leg, the options of SYN.
pub(super) fn beside(counted: &[i64], payload: u64) -> Vec<i64> {
    counted.iter().map(|bytes| bytes - payload as i64).collect()
}

/// Bytes: the tool's sent bytes against the receiver's count, and against each counter less a connection's other bytes and
/// less retransmissions. The counter with the largest difference is shown.
pub(super) fn bytes(path: &str, trial: &Trial, counted: &[i64], beside: &[i64]) -> Check {
    let sent = trial.near.bytes_sent as f64;
    let retransmitted = retransmitted(trial);
    let others = counted.iter().zip(beside).map(|(bytes, beside)| (bytes - beside - retransmitted) as f64);
    let truths: Vec<f64> = others.chain([trial.far.bytes_received as f64]).collect();
    let far = |truth: &f64| (truth - sent).abs();
    let truth = truths.iter().copied().max_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(f64::NAN);
    let mut note = format!("{} kernel counters and the receiver", counted.len());
    if retransmitted > 0 {
        note += &format!(", minus {retransmitted} retransmitted bytes (TCP_INFO)");
    }
    Check::judge(Claim::Bytes, path, [sent, truth, 0.0], "B", note)
}

/// Retransmitted bytes, which the counters have twice. A kernel before 4.19 reports segments only: they are taken as full.
fn retransmitted(trial: &Trial) -> i64 {
    let full = |socket: &SocketFacts| Some(socket.retransmits? * u64::from(socket.mss?));
    let of = |socket: &SocketFacts| socket.bytes_retransmitted.or_else(|| full(socket));
    trial.near.flows.iter().filter_map(|flow| of(&flow.socket)).sum::<u64>() as i64
}

/// Rate: the receiver's goodput after the warm-up, with the headers that the shaper charged for each byte of payload.
/// `charged` is the shaper's count of the trial's bytes, framing included.
pub(super) fn rate(path: &str, trial: &Trial, charged: u64, rate_bps: u64, tolerance: f64) -> Check {
    let goodput = trial.far.measured.map_or(f64::NAN, |window| window.bytes as f64 * 8e9 / window.ns as f64);
    let seconds = trial.far.measured.map_or(0.0, |window| window.ns as f64 / 1e9);
    let wire = goodput * charged as f64 / trial.near.bytes_sent as f64;
    let truth = rate_bps as f64;
    let note = format!("{seconds:.1} s, payload is {:.2} % of the bytes on the wire", 100.0 * goodput / wire);
    Check::judge(Claim::Rate, path, [wire, truth, truth * tolerance], "bit/s", note)
}

/// The only trial of a run.
pub(super) fn trial(run: &Run) -> Option<&Trial> {
    run.outcomes.first()?.trials.first()
}

/// The round trips in ping's output, ns.
pub(super) fn ping_times(text: &str) -> Vec<f64> {
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse::<f64>().ok();
    text.lines().filter_map(time).map(|ms| ms * 1e6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::tally::Window;
    use model::{EndTally, FlowTally, Ledger};

    fn trial(sent: u64, received: u64, retransmits: u64) -> Trial {
        repeating(sent, received, retransmits, None)
    }

    /// A trial that retransmitted segments, whose bytes the kernel reports or not.
    fn repeating(sent: u64, received: u64, segments: u64, bytes: Option<u64>) -> Trial {
        let (retransmits, mss) = (Some(segments), Some(1_000));
        let socket = SocketFacts { retransmits, bytes_retransmitted: bytes, mss, ..SocketFacts::default() };
        let near = EndTally {
            bytes_sent: sent,
            flows: vec![FlowTally { socket, ..FlowTally::default() }],
            ..EndTally::default()
        };
        let measured = Some(Window { bytes: received / 2, ns: 1_000_000_000 });
        let far = EndTally { bytes_received: received, measured, ..EndTally::default() };
        Trial {
            cell: 0,
            pass: 0,
            position: 0,
            near: near.into(),
            far: far.into(),
            ledger: Ledger::default(),
            value: None,
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn super_packets_and_segments_count_the_same_payload() {
        let before = Count { bytes: 1_000, packets: 3, header: 66 };
        // 44 segments of 1,448 bytes: one packet at an interface, 44 packets at a queueing discipline.
        let interface = Count { bytes: 1_000 + 66 + 44 * 1_448, packets: 4, header: 66 };
        let discipline = Count { bytes: 1_000 + 44 * (66 + 1_448), packets: 47, header: 66 };
        assert_eq!(interface.payload_since(&before), 44 * 1_448);
        assert_eq!(discipline.payload_since(&before), 44 * 1_448);
    }

    #[test]
    fn one_byte_more_or_less_fails_and_the_worst_counter_is_shown() {
        let beside = beside(&[164, 156], 100);
        assert_eq!(beside, [64, 56]);
        let exact = bytes("p", &trial(5_000, 5_000, 0), &[5_064, 5_056], &beside);
        assert!(exact.passed && exact.error == 0.0, "{exact:?}");
        let more = bytes("p", &trial(5_000, 5_000, 0), &[5_064, 5_059], &beside);
        assert!(!more.passed && more.truth == 5_003.0, "{more:?}");
        let repeated = bytes("p", &trial(5_000, 5_000, 2), &[7_064, 7_056], &beside);
        assert!(repeated.passed && repeated.note.contains("2000 retransmitted bytes"), "{repeated:?}");
        // The second segment was not full.
        let partial = bytes("p", &repeating(5_000, 5_000, 2, Some(1_300)), &[6_364, 6_356], &beside);
        assert!(partial.passed && partial.note.contains("1300 retransmitted bytes"), "{partial:?}");
        assert!(!bytes("p", &trial(5_000, 4_999, 0), &[5_064, 5_056], &beside).passed);
    }

    #[test]
    fn a_rate_is_that_of_the_wire() {
        // Half of 2,000,000 bytes in a second, 1.05 bytes on the wire for each.
        let check = rate("p", &trial(2_000_000, 2_000_000, 0), 2_100_000, 8_400_000, 0.002);
        assert!(check.passed && (check.measured - 8_400_000.0).abs() < 1e-3, "{check:?}");
        assert!(!rate("p", &trial(2_000_000, 2_000_000, 0), 2_100_000, 8_420_000, 0.002).passed);
        let mut none = trial(1, 1, 0);
        none.far.measured = None;
        assert!(!rate("p", &none, 1, 1, 0.5).passed);
    }

    #[test]
    fn pings_are_read() {
        let text = "PING 198.18.0.2 56 data bytes\n64 bytes from 198.18.0.2: icmp_seq=1 ttl=64 time=8.09 ms\n\
                    64 bytes from 198.18.0.2: icmp_seq=2 ttl=64 time=8.01 ms\n\n2 packets transmitted, time 12ms\n";
        let times = ping_times(text);
        assert_eq!(times.len(), 2);
        assert!((model::median(&times).unwrap() - 8_050_000.0).abs() < 1.0, "{times:?}");
    }
}
