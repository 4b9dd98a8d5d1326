//! sockperf: ping-pong and under-load latencies, and throughput.
//!
//! Times are half a round trip unless the output reports --full-rtt; MBps and Mbps are 2^20 (both from its source).

use model::{Count, RttTally, Spec, Stop, Verdict};

use super::Format;
use crate::listing::{Confidence, Imported, Reading, Row, unless_reported};
use crate::text::{block, lines, ns, number, whole};

/// sockperf.
pub(super) const FORMAT: Format =
    Format { name: "sockperf", help: "sockperf's ping-pong, under-load and throughput summaries", detect, read };

const MBPS: f64 = 1_048_576.0;
/// sockperf's default of --msg-size, bytes.
const DEFAULT_BLOCK: u64 = 14;

fn detect(text: &str) -> Confidence {
    if lines(text).any(|(_, line)| line.contains("sockperf: ")) { Confidence::Certain } else { Confidence::No }
}

/// A line without colours and without the program's name.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.trim_start_matches("sockperf: ").trim().to_owned()
}

/// The number after `label`.
fn after(line: &str, label: &str) -> Option<f64> {
    let (_, rest) = line.split_once(label)?;
    number(rest.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next()?.trim_end_matches('.'))
}

/// One test.
#[derive(Default)]
struct Session {
    line: u32,
    version: Option<String>,
    target: Option<String>,
    tcp: bool,
    block: Option<u64>,
    rate: Option<f64>,
    seconds: Option<f64>,
    sent: Option<u64>,
    received: Option<u64>,
    /// Times are full round trips.
    full_rtt: bool,
    mean_us: Option<f64>,
    min_us: Option<f64>,
    max_us: Option<f64>,
    quantiles_us: Vec<(String, f64)>,
    dropped: Option<f64>,
    messages_per_s: Option<f64>,
    /// Mbps as printed.
    rate_mbps: Option<f64>,
    text: String,
    error: Option<(u32, String)>,
}

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut open: Option<Session> = None;
    for (at, line) in lines(text) {
        let line = plain(line);
        if let Some(version) = line.strip_prefix("== version #") {
            close(open.take(), &mut reading);
            let version = Some(version.trim_end_matches('=').trim().to_owned());
            open = Some(Session { line: at, version, ..Session::default() });
            continue;
        }
        let session = open.get_or_insert_with(|| Session { line: at, ..Session::default() });
        session.read_line(at, &line);
    }
    close(open, &mut reading);
    reading
}

impl Session {
    fn read_line(&mut self, at: u32, line: &str) {
        if let Some(rest) = line.split_once("IP = ").map(|(_, rest)| rest) {
            self.target = rest.split_whitespace().next().map(str::to_owned);
            self.tcp = line.contains("# TCP");
        } else if let Some(rest) = line.strip_prefix("ERROR:") {
            self.error = Some((at, rest.trim().to_owned()));
        } else if line.contains("RunTime=") {
            // The line is printed first for the whole run, then without the warm-up.
            self.seconds = after(line, "RunTime=").or(self.seconds);
            self.sent = after(line, "SentMessages=").and_then(whole).or(self.sent);
            self.received = after(line, "ReceivedMessages=").and_then(whole).or(self.received);
        } else if line.starts_with("====> avg-") {
            self.full_rtt = line.contains("avg-rtt") || line.contains("avg-round");
            self.mean_us = line.split_once('=').and_then(|_| after(line.trim_start_matches('='), "="));
        } else if line.starts_with("---> <MAX>") {
            self.max_us = after(line, "=");
        } else if line.starts_with("---> <MIN>") {
            self.min_us = after(line, "=");
        } else if let Some((name, _)) = line.strip_prefix("---> percentile ").and_then(|rest| rest.split_once('=')) {
            self.quantiles_us.extend(after(line, "=").map(|value| (name.trim().to_owned(), value)));
        } else if line.starts_with("# dropped messages") {
            self.dropped = after(line, "=");
        } else if line.contains("msg-size=") && line.contains("NOTE") {
            self.block = after(line, "msg-size=").and_then(block);
            self.rate = after(line, "mps=");
        } else if line.starts_with("Summary: Message Rate is") {
            self.messages_per_s = after(line, "is");
        } else if line.starts_with("Summary: BandWidth is") {
            self.rate_mbps = after(line, "(");
            self.text = line.to_owned();
        } else if line.starts_with("Summary: ") {
            self.text = line.to_owned();
        } else if line.starts_with("Total of ") && line.contains(" messages sent in ") {
            self.sent = after(line, "Total of").and_then(whole);
            self.seconds = after(line, "sent in");
        }
    }

    fn row(&self) -> Result<(&'static str, Row), String> {
        let transport = if self.tcp { "tcp" } else { "udp" };
        let bytes = self.block.unwrap_or(DEFAULT_BLOCK);
        let mut spec = Spec { block: bytes, ..Spec::new(transport, "pingpong") };
        let elapsed = self.seconds.map(ns).filter(|ns| *ns > 0);
        spec.stop = elapsed.map_or(spec.stop, Stop::TimeNs);
        if let Some((printed, per_s)) = self.rate_mbps.zip(self.messages_per_s) {
            spec.pattern = "stream".into();
            let value = printed * MBPS;
            let computed = per_s * bytes as f64 * 8.0;
            if self.block.is_some() && (value - computed).abs() > 0.01 * computed {
                return Err(format!("{printed} Mbps contradicts {per_s} messages/s of {bytes} bytes"));
            }
            spec.rate_bps = self.rate.and_then(|per_s| whole(per_s * bytes as f64 * 8.0)).filter(|bps| *bps > 0);
            let mut row = Row::new(spec, value, self.line, &self.text);
            row.remarks.push("counted by the client: a sender's rate, not a receiver's".into());
            row.figure("sender_rate_bps", value);
            row.figure("messages_per_s", per_s);
            if let Some(sent) = self.sent {
                row.trial.near.report(Count::BlocksSent, sent);
            }
            if let Some(elapsed) = elapsed {
                row.trial.near.report(Count::SendingNs, elapsed);
            }
            return Ok(("stream", row));
        }
        let scale = if self.full_rtt { 1e3 } else { 2e3 };
        let rtt_ns = |printed_us: f64| printed_us * scale;
        let middle = self.quantiles_us.iter().find(|(name, _)| name.parse() == Ok(50.0)).map(|(_, value)| *value);
        let (Some(mean), Some(middle)) = (self.mean_us, middle) else {
            return Err("no latency with percentiles, and no throughput: the test did not complete".into());
        };
        let mut row = Row::new(spec, rtt_ns(middle), self.line, &self.text);
        let (min, max) = (self.min_us.unwrap_or(middle), self.max_us.unwrap_or(middle));
        if let Some(count) = self.received {
            let p99 = self.quantiles_us.iter().find(|(name, _)| name.parse() == Ok(99.0));
            let p99 = p99.filter(|_| count >= RttTally::P99_SAMPLES);
            let of = |us: f64| rtt_ns(us).round() as u64;
            row.trial.near.rtt = (self.min_us.is_some() && self.max_us.is_some()).then(|| RttTally {
                count,
                min_ns: of(min),
                p50_ns: of(middle),
                mean_ns: rtt_ns(mean),
                p99_ns: p99.map(|(_, us)| of(*us)),
                max_ns: of(max),
                batch: 1,
                histogram: None,
            });
            row.trial.near.report(Count::Transactions, count);
        }
        if let Some(sent) = self.sent {
            row.trial.near.report(Count::BlocksSent, sent);
        }
        if let Some(elapsed) = elapsed {
            row.trial.near.report(Count::ReceivingNs, elapsed);
        }
        row.figure("printed_mean_ns", mean * 1e3);
        for (name, us) in &self.quantiles_us {
            row.figure(&format!("printed_p{name}_ns"), us * 1e3);
        }
        if let Some(dropped) = self.dropped {
            row.figure("dropped_messages", dropped);
            if dropped > 0.0 {
                row.flag(Verdict::Loss, format!("{dropped} messages were dropped"));
            }
        }
        Ok(("rr", row))
    }
}

fn close(session: Option<Session>, reading: &mut Reading) {
    let Some(session) = session else { return };
    if let Some((line, error)) = &session.error {
        reading.refuse(*line, format!("sockperf's own error: {error}"));
        return;
    }
    match session.row() {
        Ok((kind, row)) => {
            let mut notes = Vec::new();
            if kind == "rr" {
                notes.push(match session.full_rtt {
                    true => "times are full round trips".to_owned(),
                    false => "sockperf's latency is half a round trip: values are twice the printed ones".to_owned(),
                });
            } else {
                notes.push("rates are in units of 2^20 bit/s".to_owned());
            }
            if session.block.is_none() {
                notes.push(format!(
                    "the message size is not in the file: sockperf's default of {DEFAULT_BLOCK} bytes is assumed"
                ));
            }
            reading.imported.push(Imported {
                tool: "sockperf".into(),
                version: session.version,
                kind: kind.into(),
                target: session.target,
                rows: vec![row],
                notes,
                assumed: unless_reported(session.block),
                ..Imported::default()
            });
        }
        Err(reason) => reading.refuse(session.line, reason),
    }
}
