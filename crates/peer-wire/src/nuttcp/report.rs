//! The server's report: text, of which the lines with figures are parsed.

use std::fmt::Write as _;

/// nuttcp's megabyte and kilobyte.
const MIB: f64 = 1_048_576.0;
const KIB: f64 = 1024.0;

/// What one side counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// Whether it transmitted.
    pub transmitted: bool,
    /// Bytes moved; in a parsed report, as exact as the printed time and rate.
    pub bytes: f64,
    /// Wall time, seconds; in a parsed report, in hundredths unless the rate is more exact.
    pub real_s: f64,
    /// Bits per second.
    pub bps: f64,
    /// CPU time, seconds.
    pub cpu_s: Option<f64>,
    /// The kernel's part of that, seconds.
    pub system_s: Option<f64>,
    /// Reads or writes.
    pub calls: Option<u64>,
    /// Retransmitted segments, if the transmitter reports them.
    pub retransmits: Option<u64>,
    /// The buffers of the last data socket, if known; not parsed.
    pub windows: Option<Windows>,
}

/// A socket's buffers for sending and receiving, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// As the kernel reports them.
    pub sizes: [u64; 2],
    /// What of them holds data.
    pub available: [u64; 2],
}

impl Windows {
    /// With Linux's setting `net.ipv4.tcp_adv_win_scale`, which nuttcp computes with.
    #[must_use]
    pub fn new(sizes: [u64; 2], adv_win_scale: i32) -> Self {
        let available = |size: u64| match u32::try_from(adv_win_scale) {
            Ok(0) => size,
            Ok(scale) => size - size.checked_shr(scale).unwrap_or(0),
            Err(_) => size.checked_shr(adv_win_scale.unsigned_abs()).unwrap_or(0),
        };
        Self { sizes, available: sizes.map(available) }
    }
}

/// What a receiver counted in one interval of the client's -i.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interim {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Its length, seconds.
    pub seconds: f64,
    /// Over UDP datagrams that did not arrive and datagrams that were sent, if the data say so.
    pub datagrams: Option<[u64; 2]>,
}

impl Interim {
    /// The line that the client prints; key-value pairs with -fparse.
    #[must_use]
    pub fn to_line(&self, parse: bool) -> String {
        let (megabytes, seconds) = (self.bytes as f64 / MIB, self.seconds);
        let mbps = if seconds > 0.0 { self.bytes as f64 * 8e-6 / seconds } else { 0.0 };
        let share = |[lost, sent]: [u64; 2]| if sent > 0 { 100.0 * lost as f64 / sent as f64 } else { 0.0 };
        let loss = self.datagrams.map(|both| (both, share(both)));
        if parse {
            let loss = loss.map_or_else(String::new, |([lost, sent], share)| {
                format!(" drop={lost} pkt={sent} data_loss={share:.5}")
            });
            return format!("megabytes={megabytes:.4} real_sec={seconds:.2} rate_Mbps={mbps:.4}{loss}\n");
        }
        let loss = loss.map_or_else(String::new, |([lost, sent], share)| {
            format!(" {lost:5} / {sent:5} ~drop/pkt {share:5.2} ~%loss")
        });
        format!("{megabytes:10.4} MB / {seconds:6.2} sec = {mbps:9.4} Mbps{loss}\n")
    }
}

/// What the server sends after its last interim report, before the report.
pub const INTERIM_END: &[u8] = b"DONE\n";

impl Report {
    /// Parses a line of the server's text into the report.
    pub fn read(&mut self, line: &str) {
        let Some((mark, rest)) = line.split_once(": ").filter(|(mark, _)| ["nuttcp-r", "nuttcp-t"].contains(mark))
        else {
            return;
        };
        self.transmitted = mark == "nuttcp-t";
        let words: Vec<&str> = rest.split_whitespace().collect();
        let float = |word: &str| word.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0);
        match words[..] {
            [amount, "MB", "in", time, "real", "seconds", "=", _, "KB/sec", "=", rate, "Mbps", ..] => {
                if let Some(((amount, time), rate)) = float(amount).zip(float(time)).zip(float(rate)) {
                    (self.bytes, self.bps) = (amount * MIB, rate * 1e6);
                    self.real_s = if rate > 0.0 { self.bytes * 8.0 / self.bps } else { time };
                }
            }
            [_, "MB", "in", time, "CPU", "seconds", ..] => self.cpu_s = float(time),
            [calls, "I/O", "calls,", ..] => self.calls = calls.parse().ok(),
            // From version 8 on the congestion window follows.
            ["retrans", "=", count, ..] => self.retransmits = count.parse().ok(),
            _ => {}
        }
    }

    /// The report as key-value pairs, as with -fparse.
    #[must_use]
    pub fn to_pairs(&self) -> String {
        let mark = if self.transmitted { "nuttcp-t" } else { "nuttcp-r" };
        let mut text = String::new();
        let (megabytes, real) = (self.bytes / MIB, self.real_s);
        if let Some(Windows { sizes: [send, receive], available: [sends, receives] }) = self.windows {
            let _ = writeln!(text, "{mark}: send_window_size={send} receive_window_size={receive}");
            let _ = writeln!(text, "{mark}: send_window_avail={sends} receive_window_avail={receives}");
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{mark}: megabytes={megabytes:.4} real_seconds={real:.2} rate_KBps={:.2} rate_Mbps={:.4}",
            self.bps / 8.0 / KIB,
            self.bps / 1e6,
        );
        if let Some(cpu) = self.cpu_s {
            let each = if cpu > 0.0 { self.bytes / KIB / cpu } else { 0.0 };
            let _ = writeln!(text, "{mark}: megabytes={megabytes:.4} cpu_seconds={cpu:.2} KB_per_cpu_second={each:.2}");
        }
        if let Some(count) = self.retransmits {
            let _ = writeln!(text, "{mark}: retrans={count}");
        }
        if let Some([user, system, percent]) = self.processor() {
            let clock = self.clock();
            let _ =
                writeln!(text, "{mark}: stats=cpu user={user:.1} system={system:.1} elapsed={clock} cpu={percent:.0}%");
        }
        text
    }

    /// Seconds of the processor for the program and for the kernel, and both as a share of the time, percent.
    fn processor(&self) -> Option<[f64; 3]> {
        let cpu = self.cpu_s.filter(|_| self.real_s > 0.0)?;
        let system = self.system_s.unwrap_or(cpu).min(cpu);
        Some([cpu - system, system, 100.0 * cpu / self.real_s])
    }

    /// The time in minutes and seconds.
    fn clock(&self) -> String {
        let seconds = self.real_s as u64;
        format!("{}:{:02}", seconds / 60, seconds % 60)
    }

    /// The report as text in nuttcp's format.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mark = if self.transmitted { "nuttcp-t" } else { "nuttcp-r" };
        let mut text = String::new();
        // Writing to a String cannot fail.
        if let Some(Windows { sizes: [send, receive], available: [sends, receives] }) = self.windows {
            let _ = writeln!(text, "{mark}: send window size = {send}, receive window size = {receive}");
            let _ = writeln!(text, "{mark}: available send window = {sends}, available receive window = {receives}");
        }
        let _ = writeln!(
            text,
            "{mark}: {:.4} MB in {:.2} real seconds = {:.2} KB/sec = {:.4} Mbps",
            self.bytes / MIB,
            self.real_s,
            self.bps / 8.0 / KIB,
            self.bps / 1e6,
        );
        if let Some(cpu) = self.cpu_s {
            let each = if cpu > 0.0 { self.bytes / KIB / cpu } else { 0.0 };
            let _ = writeln!(text, "{mark}: {:.4} MB in {cpu:.2} CPU seconds = {each:.2} KB/cpu sec", self.bytes / MIB);
        }
        if let Some(count) = self.retransmits {
            let _ = writeln!(text, "{mark}: retrans = {count}");
        }
        if let Some(calls) = self.calls.filter(|calls| *calls > 0) {
            let each = self.real_s * 1000.0 / calls as f64;
            let rate = if self.real_s > 0.0 { calls as f64 / self.real_s } else { 0.0 };
            let _ = writeln!(text, "{mark}: {calls} I/O calls, msec/call = {each:.2}, calls/sec = {rate:.2}");
        }
        // nuttcp's client takes the other side's CPU share from this line.
        if let Some([user, system, percent]) = self.processor() {
            let _ = writeln!(text, "{mark}: {user:.1}user {system:.1}sys {}real {percent:.0}%", self.clock());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interim_lines_are_nuttcps() {
        // As nuttcp 6.1.2's server sends them.
        let tcp = Interim { bytes: 306 << 20, seconds: 0.3, datagrams: None };
        assert_eq!(tcp.to_line(false), "  306.0000 MB /   0.30 sec = 8556.3802 Mbps\n");
        assert_eq!(tcp.to_line(true), "megabytes=306.0000 real_sec=0.30 rate_Mbps=8556.3802\n");
        let udp = Interim { bytes: 475_136, seconds: 0.4, datagrams: Some([2, 60]) };
        assert_eq!(
            udp.to_line(false),
            "    0.4531 MB /   0.40 sec =    9.5027 Mbps     2 /    60 ~drop/pkt  3.33 ~%loss\n"
        );
        assert_eq!(
            udp.to_line(true),
            "megabytes=0.4531 real_sec=0.40 rate_Mbps=9.5027 drop=2 pkt=60 data_loss=3.33333\n"
        );
    }

    #[test]
    fn windows_are_nuttcps() {
        // As nuttcp 6.1.2's server sends them with net.ipv4.tcp_adv_win_scale at 1.
        let windows = Some(Windows::new([3_939_840, 131_072], 1));
        let report = Report { windows, ..Report::default() };
        let text = "nuttcp-r: send window size = 3939840, receive window size = 131072\n\
                    nuttcp-r: available send window = 1969920, available receive window = 65536\n";
        assert!(report.to_text().starts_with(text), "{}", report.to_text());
        let pairs = "nuttcp-r: send_window_size=3939840 receive_window_size=131072\n\
                     nuttcp-r: send_window_avail=1969920 receive_window_avail=65536\n";
        assert!(report.to_pairs().starts_with(pairs), "{}", report.to_pairs());
        let available = [-2, 0, 2].map(|scale| Windows::new([100, 400], scale).available);
        assert_eq!(available, [[25, 100], [100, 400], [75, 300]]);
    }

    #[test]
    fn retransmissions_of_version_8_are_read_too() {
        let mut report = Report::default();
        report.read("nuttcp-t: retrans = 3 cwnd = 1406 KB");
        assert_eq!((report.transmitted, report.retransmits), (true, Some(3)));
    }
}
