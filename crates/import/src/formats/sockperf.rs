//! sockperf: ping-pong and under-load latencies, and throughput, also of several runs of the program.
//!
//! Times are half a round trip unless the output reports --full-rtt; MBps and Mbps are 2^20 (both from its source). The size of messages
//! is printed with a throughput alone.

use model::{Count, Pattern, RttTally, RunKind, Spec, Stop, Verdict};

use super::ImportFormat;
use super::repetitions::{self, Listed};
use crate::error::{Contradiction, ImportError, StreamError};
use crate::listing::{Certainty, Imported, Row, TextReading, unless_reported};
use crate::text::{after, block, lines, ns, number, resolution, whole};

/// sockperf.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "sockperf", help: "sockperf's ping-pong, under-load and throughput summaries", detect, read };

const MBPS: f64 = 1_048_576.0;
/// sockperf's default of --msg-size, bytes.
const DEFAULT_BLOCK: u64 = 14;

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| line.contains("sockperf: ")) { Certainty::Certain } else { Certainty::No }
}

/// A line without colours and without the program's name, before which a log may have words of its own.
fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.split_once("sockperf: ").map_or(text.as_str(), |(_, rest)| rest).trim().to_owned()
}

/// Whether the line comes before the last one of a result, so that after a result it is that of the next test.
fn begins(line: &str) -> bool {
    let starts = [
        "== version #",
        "Warmup stage",
        "Starting test",
        "[Total Run]",
        "Total of ",
        "====> avg-",
        "Summary: Message Rate is",
    ];
    starts.iter().any(|words| line.starts_with(words)) || line.contains("IP = ")
}

/// One test.
#[derive(Default)]
struct Session {
    line: u32,
    version: Option<String>,
    /// The servers, and which of them the statistics are of.
    targets: Vec<String>,
    server: usize,
    tcp: bool,
    block: Option<u64>,
    rate: Option<f64>,
    seconds: Option<f64>,
    sent: Option<u64>,
    received: Option<u64>,
    /// Times are full round trips.
    full_rtt: bool,
    mean_us: Option<f64>,
    /// The mean again, in the summary.
    summary_us: Option<f64>,
    min_us: Option<f64>,
    max_us: Option<f64>,
    quantiles_us: Vec<(String, f64)>,
    dropped: Option<f64>,
    messages_per_s: Option<f64>,
    /// Mbps as printed.
    rate_mbps: Option<f64>,
    /// The relative rounding error of the value.
    rounding: f64,
    text: String,
    error: Option<(u32, String)>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut open: Option<Session> = None;
    let mut found: Vec<Listed> = Vec::new();
    for (at, raw) in lines(text) {
        let line = plain(raw);
        let version = line.strip_prefix("== version #").map(|rest| rest.trim_end_matches('=').trim().to_owned());
        // The next test; without its first line it has the version of the one before. A test over several servers has statistics of each.
        let next = open.as_ref().is_some_and(|session| !session.text.is_empty());
        let server = line.contains("Printing statistics for Server No: ");
        if version.is_some() || (next && (begins(&line) || server)) {
            let before = open.take();
            let version = version.or(before.as_ref().and_then(|session| session.version.clone()));
            let targets = before.as_ref().filter(|_| server).map_or(Vec::new(), |session| session.targets.clone());
            let tcp = server && before.as_ref().is_some_and(|session| session.tcp);
            close(before, &mut found, &mut reading);
            open = Some(Session { line: at, version, targets, tcp, ..Session::default() });
        }
        if open.is_none() && !(raw.contains("sockperf: ") || begins(&line)) {
            continue;
        }
        let session = open.get_or_insert_with(|| Session { line: at, ..Session::default() });
        session.read_line(at, &line);
    }
    close(open, &mut found, &mut reading);
    reading.imported = repetitions::gathered(found);
    reading
}

impl Session {
    fn read_line(&mut self, at: u32, line: &str) {
        if let Some(rest) = line.split_once("IP = ").map(|(_, rest)| rest) {
            self.targets.extend(rest.split_whitespace().next().map(str::to_owned));
            self.tcp = line.contains("# TCP");
        } else if let Some(number) = after(line, "Printing statistics for Server No:") {
            self.server = number as usize;
        } else if let Some(rest) = line.strip_prefix("ERROR:").filter(|_| self.text.is_empty()) {
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
            if name.trim().parse() == Ok(50.0) {
                self.rounding = last_resolution(line);
            }
        } else if line.starts_with("# dropped messages") {
            self.dropped = after(line, "=");
        } else if line.contains("msg-size=") && line.contains("NOTE") {
            self.block = after(line, "msg-size=").and_then(block);
            self.rate = after(line, "mps=");
        } else if line.starts_with("Summary: Message Rate is") {
            self.messages_per_s = after(line, "is");
        } else if line.starts_with("Summary: BandWidth is") {
            self.rate_mbps = after(line, "(");
            self.rounding =
                line.split_once('(').map_or(0.0, |(_, rest)| last_resolution(rest.trim_end_matches(" Mbps)")));
            self.text = line.to_owned();
        } else if line.starts_with("Summary: ") {
            self.summary_us = after(line, " is ");
            self.text = line.to_owned();
        } else if line.starts_with("Total of ") && line.contains(" messages sent in ") {
            self.sent = after(line, "Total of").and_then(whole);
            self.seconds = after(line, "sent in");
        }
    }

    fn row(&self) -> Result<(RunKind, Row), ImportError> {
        let transport = if self.tcp { "tcp" } else { "udp" };
        // The size follows from the two rates where it is not printed.
        let carried = self.rate_mbps.zip(self.messages_per_s).map(|(mbps, per_s)| mbps * MBPS / 8.0 / per_s);
        let derived = carried.filter(|bytes| bytes.is_finite()).and_then(|bytes| block(bytes.round()));
        let bytes = self.block.or(derived).unwrap_or(DEFAULT_BLOCK);
        let mut spec = Spec { block: bytes, ..Spec::new(transport, Pattern::Pingpong) };
        let elapsed = self.seconds.map(ns).filter(|ns| *ns > 0);
        spec.stop = elapsed.map_or(spec.stop, Stop::TimeNs);
        if let Some((printed, per_s)) = self.rate_mbps.zip(self.messages_per_s) {
            spec.pattern = Pattern::Stream;
            let value = printed * MBPS;
            let computed = per_s * bytes as f64 * 8.0;
            if self.block.is_some() && (value - computed).abs() > 0.01 * computed {
                return Err(Contradiction::MessageSize { megabits: printed, per_s, block: bytes }.into());
            }
            if let Some((sent, seconds)) = self.sent.zip(self.seconds).filter(|(_, seconds)| *seconds > 0.0) {
                let own = sent as f64 / seconds;
                if (own - per_s).abs() > 0.02 * own.max(per_s) {
                    return Err(Contradiction::MessageRate { messages: sent, seconds, per_s }.into());
                }
            }
            spec.rate_bps = self.rate.and_then(|per_s| whole(per_s * bytes as f64 * 8.0)).filter(|bps| *bps > 0);
            let mut row = Row::new(spec, value, self.line, &self.text);
            row.rounded(self.rounding);
            row.remarks.push("counted by the client: a sender's rate, not a receiver's".into());
            row.figure("sender_rate_bps", value);
            row.figure("messages_per_s", per_s);
            if let Some(sent) = self.sent {
                row.trial.near.report(Count::BlocksSent, sent);
            }
            if let Some(elapsed) = elapsed {
                row.trial.near.report(Count::SendingNs, elapsed);
            }
            return Ok((RunKind::Stream, row));
        }
        let scale = if self.full_rtt { 1e3 } else { 2e3 };
        let rtt_ns = |printed_us: f64| printed_us * scale;
        let middle = self.quantiles_us.iter().find(|(name, _)| name.parse() == Ok(50.0)).map(|(_, value)| *value);
        let (Some(mean), Some(middle)) = (self.mean_us, middle) else {
            return Err(StreamError::Incomplete.into());
        };
        self.check(mean)?;
        let mut row = Row::new(spec, rtt_ns(middle), self.line, &self.text);
        row.rounded(self.rounding);
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
        Ok((RunKind::Rr, row))
    }

    /// Refuses latencies that contradict each other, and more replies than messages.
    fn check(&self, mean: f64) -> Result<(), ImportError> {
        let mut ranked: Vec<(f64, f64)> =
            self.quantiles_us.iter().filter_map(|(name, value)| Some((number(name)?, *value))).collect();
        ranked.extend(self.min_us.map(|min| (0.0, min)));
        ranked.extend(self.max_us.map(|max| (100.0, max)));
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        if ranked.windows(2).any(|pair| pair[0].1 > pair[1].1) {
            return Err(StreamError::Percentiles.into());
        }
        let outside = |us: f64| self.min_us.is_some_and(|min| us < min) || self.max_us.is_some_and(|max| us > max);
        if outside(mean) || self.summary_us.is_some_and(|again| (again - mean).abs() > 0.01 * mean) {
            return Err(Contradiction::MeanLatency(mean).into());
        }
        match self.sent.zip(self.received) {
            Some((sent, received)) if received > sent => {
                Err(Contradiction::Answers { received, answers: "replies", sent, questions: "messages" }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The relative rounding error of the last word of a line.
fn last_resolution(line: &str) -> f64 {
    line.split_whitespace().next_back().map_or(0.0, resolution)
}

fn close(session: Option<Session>, found: &mut Vec<Listed>, reading: &mut TextReading) {
    let Some(session) = session else { return };
    if let Some((line, error)) = &session.error {
        reading.refuse(*line, ImportError::OwnError { program: "sockperf", error: error.clone() });
        return;
    }
    match session.row() {
        Ok((kind, row)) => {
            let mut notes = Vec::new();
            if kind == RunKind::Rr {
                notes.push(match session.full_rtt {
                    true => "times are full round trips".to_owned(),
                    false => "sockperf's latency is half a round trip: values are twice the printed ones".to_owned(),
                });
            } else {
                notes.push("rates are in units of 2^20 bit/s".to_owned());
            }
            let sized = session.block.is_some() || kind == RunKind::Stream;
            if !sized {
                notes.push(format!(
                    "the message size is not in the file: sockperf's default of {DEFAULT_BLOCK} bytes is assumed"
                ));
            }
            let imported = Imported {
                tool: "sockperf".into(),
                version: session.version,
                kind,
                target: session.targets.get(session.server).or(session.targets.last()).cloned(),
                rows: vec![row],
                notes,
                assumed: unless_reported(sized.then_some(DEFAULT_BLOCK)),
                ..Imported::default()
            };
            found.push(Listed { imported, sized });
        }
        Err(reason) => reading.refuse(session.line, reason),
    }
}
