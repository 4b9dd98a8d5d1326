//! nttcp 1.47: its table, with a line `l` of the local end and a line `1` of the remote one, and with -v the lines about the session:
//! the socket buffers of each end (`nttcp-l: send window size = 16384`) and which end sent.
//!
//! MBit are 10^6 bit (8388608 bytes in one tick of 1/300 s are printed as 20134.6727). A count of nine or more
//! digits touches the end's mark: `l134217728`, and `1134217728` for the remote end.

use model::{Count, Direction, FlowTally, Pattern, RunKind, SocketFacts, Spec, Spent, Stop, Verdict};

use super::ImportFormat;
use crate::error::{Contradiction, ImportError, StreamError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, half_digit, lines, ns, number, resolution, whole};

/// nttcp.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "nttcp", help: "nttcp's tables and sessions", detect, read };

/// A value below this share of the listing's median is a slow one.
const SLOW: f64 = 0.5;
/// A time of fewer steps of its last digit is too coarse.
const MIN_STEPS: f64 = 10.0;

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| is_head(line)) { Certainty::Certain } else { Certainty::No }
}

fn is_head(line: &str) -> bool {
    line.contains("Real-MBit/s") && line.contains("CPU-MBit/s") && line.contains("Bytes")
}

/// The host in `HOST: "HOST" (=...`, which may be an IPv6 address.
fn peer(rest: &str) -> Option<&str> {
    rest.split(": \"").next().filter(|host| *host != rest).or_else(|| rest.split(':').next())
}

/// The end, 0 for its send and 1 for its receive buffer, and the bytes of `nttcp-1: receive window size = 87380`.
fn window(line: &str) -> Option<(char, usize, u64)> {
    let rest = line.trim().strip_prefix("nttcp-")?;
    let (end, rest) = (rest.chars().next()?, rest.get(1..)?.strip_prefix(": ")?);
    let (what, bytes) = rest.split_once(" window size = ")?;
    let index = ["send", "receive"].iter().position(|name| *name == what)?;
    Some((end, index, bytes.trim().parse().ok()?))
}

/// A line of the table.
struct Line {
    number: u32,
    text: String,
    bytes: u64,
    real_s: f64,
    real_step_s: f64,
    cpu_s: f64,
    bps: f64,
    cpu_bps: f64,
    calls: u64,
    columns_touch: bool,
    /// Real and CPU time, s, each from the column with more digits.
    finer_s: [f64; 2],
}

impl Line {
    /// A line of the end `mark`; the columns after it are bytes, real and CPU seconds, real and CPU rate, calls, and calls a
    /// second by both times.
    fn of(mark: char, number_of_line: u32, text: &str) -> Result<Self, ImportError> {
        let rest = text.trim_start().strip_prefix(mark).ok_or(ImportError::Missing("mark of an end"))?;
        let columns_touch = rest.starts_with(|c: char| c.is_ascii_digit());
        let words = columns(rest);
        let [bytes, real, cpu, rate, cpu_rate, calls, ..] = words.as_slice() else {
            return Err(ImportError::Columns { found: words.len(), expected: 8 });
        };
        let read = |word: &str| number(word).ok_or_else(|| ImportError::word(word, "a number"));
        let count = |word: &str| whole(read(word)?).ok_or_else(|| ImportError::word(word, "an integer"));
        let bytes = count(bytes)?;
        let [own, of_cpu] = [(real, rate), (cpu, cpu_rate)].map(|(time, rate)| finer(bytes, time, rate));
        let finer_s = [own.ok_or(ImportError::Missing("time"))?, of_cpu.ok_or(ImportError::Missing("CPU time"))?];
        let real_s = read(real)?;
        let line = Self {
            number: number_of_line,
            text: text.to_owned(),
            bytes,
            real_s,
            real_step_s: half_digit(real) * 2.0,
            cpu_s: read(cpu)?,
            bps: read(rate)? * 1e6,
            cpu_bps: read(cpu_rate)? * 1e6,
            calls: count(calls)?,
            columns_touch,
            finer_s,
        };
        // The rate is computed from a finer time than the printed one; they must agree within the digits of both.
        let exact = bytes as f64 * 8.0 / line.bps;
        let rounding = half_digit(real) + exact * resolution(rate);
        if line.bps <= 0.0 || (exact - real_s).abs() > rounding * 1.02 {
            return Err(Contradiction::Time { bytes, seconds: real_s }.into());
        }
        Ok(line)
    }

    fn ns(&self) -> u64 {
        ns(self.finer_s[0])
    }

    /// CPU time of the end's process.
    fn cpu_ns(&self) -> u64 {
        ns(self.finer_s[1])
    }
}

/// The columns of a line. Ten million calls and more touch the rate before them, which has four decimals.
fn columns(line: &str) -> Vec<&str> {
    let mut columns = Vec::new();
    for word in line.split_whitespace() {
        let end = word.find('.').map_or(word.len(), |point| point + 5);
        match word.split_at_checked(end) {
            Some((rate, calls)) if columns.len() == 4 && !calls.is_empty() => columns.extend([rate, calls]),
            _ => columns.push(word),
        }
    }
    columns
}

/// The time in `time`, or that of `bytes` at the rate in `megabits`, whichever has more digits.
fn finer(bytes: u64, time: &str, megabits: &str) -> Option<f64> {
    match number(megabits).filter(|rate| *rate > 0.0 && resolution(megabits) < resolution(time)) {
        Some(rate) => Some(bytes as f64 * 8.0 / (rate * 1e6)),
        None => number(time),
    }
}

/// Send and receive buffer of an end, bytes.
type Windows = [Option<u64>; 2];

/// The facts in the lines before a table.
#[derive(Default, Clone)]
struct Session {
    version: Option<String>,
    target: Option<String>,
    block: Option<u64>,
    count: Option<u64>,
    udp: bool,
    /// The port that the receiver listened on.
    port: Option<u16>,
    /// The local end received.
    reverse: bool,
    local: Windows,
    remote: Windows,
}

#[derive(Default)]
struct Table {
    session: Session,
    local: Option<Line>,
    remote: Option<Line>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut session = Session::default();
    let mut table: Option<Table> = None;
    let mut imported = Imported { tool: "nttcp".into(), kind: RunKind::Stream, ..Imported::default() };
    for (number_of_line, line) in lines(text) {
        if let Some(version) = line.split("nttcp, version ").nth(1) {
            flush(table.take(), &mut imported, &mut reading);
            // Another far end begins another listing.
            session = Session { version: Some(version.trim().to_owned()), ..Session::default() };
        } else if let Some(host) = line.strip_prefix("nttcp-l: from ").and_then(peer) {
            if imported.target.as_deref().is_some_and(|target| target != host) {
                close(&mut imported, &mut reading);
            }
            imported.target = Some(host.to_owned());
            session.target = Some(host.to_owned());
        } else if let Some(facts) = line.strip_prefix("nttcp-l: buflen=") {
            let mut facts = facts.split(',');
            session.block = facts.next().and_then(|word| crate::text::block(number(word)?));
            session.count = facts.next().and_then(|word| {
                whole(number(word.strip_prefix(" bufcnt=").or_else(|| word.strip_prefix("bufcnt="))?)?)
            });
            session.udp = line.contains("/udp");
            let port = line.split_once("dataport=").and_then(|(_, rest)| rest.split('/').next()?.trim().parse().ok());
            session.port = port.filter(|port| *port > 0);
        } else if let Some((end, index, bytes)) = window(line) {
            (if end == 'l' { &mut session.local } else { &mut session.remote })[index] = Some(bytes);
        } else if line.starts_with("nttcp-l: received ") {
            session.reverse = true;
        } else if is_head(line) {
            flush(table.take(), &mut imported, &mut reading);
            table = Some(Table { session: std::mem::take(&mut session), ..Table::default() });
        } else if let Some(open) = &mut table {
            for (mark, slot) in [('l', &mut open.local), ('1', &mut open.remote)] {
                let begins = line.trim_start().strip_prefix(mark);
                if slot.is_none()
                    && begins.is_some_and(|rest| rest.starts_with(|c: char| c == ' ' || c.is_ascii_digit()))
                {
                    match Line::of(mark, number_of_line, line) {
                        Ok(line) => *slot = Some(line),
                        Err(reason) => reading.refuse_text(number_of_line, line, reason),
                    }
                    break;
                }
            }
        }
        if imported.rows.len() >= MAX_ROWS {
            reading.refuse(number_of_line, ImportError::TooMany { most: MAX_ROWS, what: "measurements" });
            break;
        }
    }
    flush(table, &mut imported, &mut reading);
    close(&mut imported, &mut reading);
    reading
}

/// Makes a row of a table.
fn flush(table: Option<Table>, imported: &mut Imported, reading: &mut TextReading) {
    let Some(Table { session, local, remote }) = table else { return };
    let receiver = if session.reverse { [&local, &remote] } else { [&remote, &local] };
    let Some(line) = receiver.into_iter().flatten().next() else { return };
    let requested = session.block.zip(session.count);
    let requested = requested.and_then(|(block, count)| Some((block, block.checked_mul(count)?)));
    if let Some((block, expected)) = requested
        && !session.udp
        // A time limit of this program's ends in the last buffer.
        && (line.bytes > expected || line.bytes + block <= expected)
    {
        reading.refuse(line.number, StreamError::Bytes { bytes: line.bytes, requested: expected });
        return;
    }
    let transport = if session.udp { "udp" } else { "tcp" };
    let mut spec = Spec { stop: Stop::Bytes(line.bytes.max(1)), ..Spec::new(transport, Pattern::Stream) };
    spec.block = session.block.unwrap_or(4096);
    if session.reverse {
        spec.direction = Direction::Reverse;
    }
    let mut row = Row::new(spec, line.bps, line.number, &line.text);
    for (end, line) in [("local", &local), ("remote", &remote)] {
        let Some(line) = line else { continue };
        row.figure(&format!("{end}_bytes"), line.bytes as f64);
        row.figure(&format!("{end}_real_ns"), line.real_s * 1e9);
        row.figure(&format!("{end}_cpu_ns"), line.cpu_s * 1e9);
        row.figure(&format!("{end}_rate_bps"), line.bps);
        row.figure(&format!("{end}_cpu_rate_bps"), line.cpu_bps);
        row.figure(&format!("{end}_calls"), line.calls as f64);
        if line.columns_touch {
            row.remarks.push(format!("the {end} end's mark runs into its {} bytes; they were separated", line.bytes));
        }
    }
    let windows = [("local", session.local), ("remote", session.remote)];
    for (end, [send, receive]) in windows {
        for (name, bytes) in [("send", send), ("receive", receive)] {
            bytes.into_iter().for_each(|bytes| row.figure(&format!("{end}_{name}_window_bytes"), bytes as f64));
        }
    }
    let (near, far) = (&mut row.trial.near, &mut row.trial.far);
    for (end, line, windows, sends) in
        [(near, &local, session.local, !session.reverse), (far, &remote, session.remote, session.reverse)]
    {
        let [sndbuf, rcvbuf] = windows;
        // The receiver listens on all addresses of its host.
        let listens = session.port.filter(|_| !sends).map(|port| format!("0.0.0.0:{port}"));
        if sndbuf.or(rcvbuf).is_some() || listens.is_some() {
            let socket = SocketFacts { sndbuf, rcvbuf, local: listens, ..SocketFacts::default() };
            end.flows = vec![FlowTally { socket, ..FlowTally::default() }];
        }
        let Some(line) = line else { continue };
        let counts = match sends {
            true => [Count::BytesSent, Count::CallsSent, Count::SendingNs],
            false => [Count::BytesReceived, Count::CallsReceived, Count::ReceivingNs],
        };
        for (count, value) in counts.into_iter().zip([line.bytes, line.calls, line.ns()]) {
            end.report(count, value);
        }
        end.spent = Some(Spent { process_ns: line.cpu_ns(), ..Spent::default() });
    }
    if remote.is_none() && !session.reverse {
        row.remarks.push("the remote end's line is missing: a sender's rate, not a receiver's".into());
    }
    if line.real_s < MIN_STEPS * line.real_step_s {
        row.flag(Verdict::ResolutionLimited, "the time has fewer than 10 steps of 0.01 s");
    }
    imported.version = session.version.or(imported.version.take());
    imported.rows.push(row);
}

/// Ends a listing, and flags what only its rows together show.
fn close(imported: &mut Imported, reading: &mut TextReading) {
    let listing = Imported { tool: "nttcp".into(), kind: RunKind::Stream, ..Imported::default() };
    let mut done = std::mem::replace(imported, listing);
    if done.rows.is_empty() {
        return;
    }
    let values: Vec<f64> = done.rows.iter().filter_map(|row| row.trial.value).collect();
    if let Some(middle) = model::median(&values).filter(|_| values.len() >= 3) {
        let slow: Vec<usize> = (0..values.len()).filter(|row| values[*row] < SLOW * middle).collect();
        if let [slow] = slow.as_slice() {
            let part = values[*slow] / middle * 100.0;
            done.rows[*slow].remarks.push(format!("the only slow value: {part:.0} % of its listing's median"));
        }
    }
    let blocks: std::collections::BTreeSet<u64> = done.rows.iter().map(|row| row.spec.block).collect();
    for end in ["local", "remote"] {
        let rates: Vec<f64> =
            done.rows.iter().filter_map(|row| row.figures.get(&format!("{end}_cpu_rate_bps")).copied()).collect();
        let same = |rate: &f64| rates.first() == Some(rate);
        if blocks.len() > 1 && rates.len() > 2 && rates.iter().all(same) {
            done.notes.push(format!(
                "the {end} end's CPU rate is {} Mbit/s in all {} rows: a single clock tick, not a measurement",
                rates[0] / 1e6,
                rates.len()
            ));
        }
    }
    if blocks.len() > 1 {
        done.kind = RunKind::Curve;
    }
    reading.imported.push(done);
}
