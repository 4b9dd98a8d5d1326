//! netperf: its classic tables (2.0 of 1998 to 2.7) and the KEY=VALUE lines of its omni output.
//!
//! A table has a title (`TCP STREAM TEST to HOST : nodelay`), a head of several lines with the units in the last one, and
//! rows of numbers; the head is absent with -P 0. With -k (and classic tests' `-- -k`) the figures are KEY=VALUE lines, with -o a line of
//! names and one of values, separated by commas. KBytes and its like are powers of 1024, bits powers of 10 (netperf's manual, option -f).

mod omni;

use model::{Count, DatagramTally, Direction, FlowTally, Pattern, RunKind, SocketFacts, Spec, Stop, Verdict};

use self::omni::Omni;
use super::ImportFormat;
use crate::error::{Contradiction, ImportError, NetperfResultError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, block, half_digit, lines, ns, number, resolution, whole};

/// netperf.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "netperf", help: "netperf's tables and its omni output", detect, read };

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| Title::of(line).is_some()) {
        return Certainty::Certain;
    }
    if bare_rows(text).is_some() { Certainty::Possible } else { Certainty::No }
}

/// The first words of the tables that -v 2 adds.
const DETAILS: [&str; 2] = ["Alignment", "Maximum"];

/// The numbers of a line that consists of numbers, as [`crate::text::numbers`] reads it; -1, which netperf prints for what it does
/// not know, is not a number.
fn numbers(line: &str) -> Option<Vec<f64>> {
    let unknown = |word: &str| word.strip_prefix("-1").is_some_and(|rest| rest.chars().all(|c| c == '.' || c == '0'));
    let figure = |word: &str| if unknown(word) { Some(f64::NAN) } else { number(word) };
    let all: Option<Vec<f64>> = line.split_whitespace().map(figure).collect();
    all.filter(|all| !all.is_empty())
}

/// A line of numbers, with its line number and its text.
type Numbers<'a> = (u32, &'a str, Vec<f64>);

/// The rows of a text that has nothing else (-P 0), with their lines, and what their columns say of the test.
fn bare_rows(text: &str) -> Option<(Title, Vec<Numbers<'_>>)> {
    let mut rows = Vec::new();
    for (at, line) in without_details(text).filter(|(_, line)| !line.trim().is_empty()) {
        rows.push((at, line, numbers(line)?));
    }
    // The remote end's socket sizes follow in a line of their own after round trips.
    let sizes =
        |row: &[f64], count: usize| row.iter().take(count).all(|size| whole(*size).is_some_and(|size| size > 0));
    let is_stream =
        |row: &[f64]| matches!(row.len(), 5 | 7 | 9) && sizes(row, 3) && row[0] >= 1024.0 && row[1] >= 1024.0;
    let is_trip =
        |row: &[f64]| matches!(row.len(), 6 | 8 | 10) && sizes(row, 4) && row[0] >= 1024.0 && row[1] >= 1024.0;
    let is_rest = |row: &[f64]| row.len() == 2 && sizes(row, 2);
    let all = |fits: &dyn Fn(&[f64]) -> bool| !rows.is_empty() && rows.iter().all(|(.., row)| fits(row));
    let pattern = match () {
        () if all(&is_stream) => Pattern::Stream,
        () if is_trip(&rows.first()?.2) && all(&|row| is_trip(row) || is_rest(row)) => Pattern::Rr,
        () => return None,
    };
    let title = Title {
        transport: "tcp",
        pattern,
        direction: Direction::Send,
        sendfile: false,
        target: None,
        nodelay: false,
        omni: false,
    };
    Some((title, rows))
}

/// The facts of a title.
#[derive(Debug, Clone, PartialEq)]
struct Title {
    transport: &'static str,
    pattern: Pattern,
    direction: Direction,
    sendfile: bool,
    target: Option<String>,
    nodelay: bool,
    omni: bool,
}

impl Title {
    /// `[MIGRATED ]TCP STREAM TEST [from A (A) port 0 AF_INET] to B (B) port 0 AF_INET[ : nodelay]`.
    fn of(line: &str) -> Option<Self> {
        let (name, rest) = line.trim().split_once(" TEST ")?;
        let target = rest.strip_prefix("to ").or_else(|| rest.split_once(" to ").map(|(_, target)| target))?;
        let target = target.split_whitespace().next().map(str::to_owned);
        let upper = name.to_uppercase();
        let omni = upper.starts_with("OMNI");
        let others = ["UDP", "SCTP", "DCCP", "SDP"].into_iter().find(|other| upper.contains(other));
        let transport = others.map_or("tcp", |other| if other == "UDP" { "udp" } else { other });
        let (pattern, direction) = match () {
            () if upper.contains("CONNECT/REQUEST/RESPONSE") => (Pattern::Crr, Direction::Send),
            () if upper.contains("REQUEST/RESPONSE") => (Pattern::Rr, Direction::Send),
            () if upper.contains("MAERTS") => (Pattern::Stream, Direction::Reverse),
            () if ["STREAM", "SENDFILE", "SEND"].iter().any(|word| upper.ends_with(word)) => {
                (Pattern::Stream, Direction::Send)
            }
            () if omni && upper.ends_with("RECEIVE") => (Pattern::Stream, Direction::Reverse),
            () if omni => (Pattern::Rr, Direction::Send),
            () => return None,
        };
        let nodelay = line.rsplit(':').next().is_some_and(|last| last.contains("nodelay"));
        Some(Self { transport, pattern, direction, sendfile: upper.contains("SENDFILE"), target, nodelay, omni })
    }

    fn spec(&self) -> Spec {
        let mut spec = Spec { direction: self.direction, ..Spec::new(self.transport, self.pattern) };
        spec.near.nodelay = self.nodelay.then_some(true);
        if self.sendfile {
            spec.engine.send = model::SendBy::Sendfile;
        }
        spec
    }
}

/// bit/s of one of netperf's units, or 1 for transactions per second; `None` for a word that is not a unit of a rate.
fn unit(word: &str) -> Option<f64> {
    Some(match word.strip_suffix("ec").unwrap_or(word) {
        "bits/s" => 1.0,
        "10^3bits/s" => 1e3,
        "10^6bits/s" => 1e6,
        "10^9bits/s" => 1e9,
        "Bytes/s" => 8.0,
        "KBytes/s" => 8.0 * 1024.0,
        "MBytes/s" => 8.0 * 1024.0 * 1024.0,
        "GBytes/s" => 8.0 * 1024.0 * 1024.0 * 1024.0,
        "Trans/s" => 1.0,
        _ => return None,
    })
}

/// A line of the warning that the results vary (-I).
fn is_warning(line: &str) -> bool {
    line.trim_start().starts_with("!!!")
}

/// The lines without the tables that -v 2 adds below a result: alignment, calls, and the segment size. Each ends with its numbers.
fn without_details(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let mut within = false;
    lines(text).filter(move |(_, line)| {
        within |= DETAILS.iter().any(|word| line.trim_start().starts_with(word));
        within &= Title::of(line).is_none();
        let is_detail = within;
        within &= numbers(line).is_none();
        !is_detail
    })
}

/// Whether the line after a title is one of a classic test: its own head, numbers (-P 0), or an error.
fn has_own_head(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    ["Recv", "Local", "Socket", "TCP", "UDP", "netperf:"].contains(&first)
        || number(first).is_some()
        || omni::is_key_value(line)
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut table: Option<(Title, f64)> = None;
    let mut listing: Vec<(Title, [u64; 2], Imported)> = Vec::new();
    let mut omni: Option<Omni<'_>> = None;
    // A UDP stream has a second line, of the receiver.
    let mut sender: Option<Sender> = None;
    let (mut count, mut latest) = (0, 0);
    // Between a title and the line after it, and the width of the interval that its warning has.
    let (mut begun, mut unsure): (bool, Option<String>) = (false, None);
    if let Some((title, rows)) = bare_rows(text) {
        of_bare_rows(&title, &rows, &mut reading);
        return reading;
    }
    for (number_of_line, line) in without_details(text) {
        if let Some(title) = Title::of(line) {
            Omni::close(omni.take(), &mut reading);
            (begun, unsure) = (true, None);
            if !["tcp", "udp"].contains(&title.transport) {
                reading.refuse(number_of_line, NetperfResultError::Transport(title.transport));
                table = None;
            } else if title.omni {
                omni = Some(Omni::new(number_of_line, title));
                table = None;
            } else {
                // A title within a table does not repeat the head, so the units are kept.
                let units = table.take().map_or(1e6, |(_, units)| units);
                table = Some((title, units));
            }
            continue;
        }
        if let Some(open) = &mut omni {
            // The same test again, without a title (-P 0).
            if open.has(line) {
                let next = open.again(number_of_line);
                Omni::close(omni.replace(next), &mut reading);
            }
            omni.iter_mut().for_each(|open| open.take(line));
            continue;
        }
        // A classic test with -k, -o or -O has the head of its selectors instead of its own.
        let selected = begun && !line.trim().is_empty() && !is_warning(line) && !has_own_head(line);
        if (omni::is_key_value(line) || selected)
            && let Some((title, _)) = table.take()
        {
            omni.insert(Omni::new(number_of_line, title)).take(line);
            continue;
        }
        begun &= line.trim().is_empty() || is_warning(line);
        let Some((title, units)) = &mut table else { continue };
        if let Some((_, width)) = line.split_once("Confidence intervals: Throughput").filter(|_| is_warning(line)) {
            unsure = Some(width.trim_start_matches([' ', ':']).trim().to_owned());
        }
        if line.trim_start().starts_with("netperf:") {
            let error = line.trim().to_owned();
            reading.refuse(number_of_line, ImportError::OwnError { program: "netperf", error });
            continue;
        }
        if let Some(scale) = line.split_whitespace().find_map(unit) {
            *units = scale;
            continue;
        }
        let Some(all) = numbers(line) else {
            // Heads have no numbers; a row with other words among its numbers is refused.
            if line.split_whitespace().filter_map(number).count() >= 4 {
                reading.refuse_text(number_of_line, line, NetperfResultError::NotNumbers);
            }
            continue;
        };
        count += 1;
        if count > MAX_ROWS {
            reading.refuse(number_of_line, ImportError::TooMany { most: MAX_ROWS, what: "rows" });
            break;
        }
        match row(title, *units, &all, number_of_line, line, &mut sender) {
            Ok(Some((sizes, mut row))) => {
                if let Some(width) = unsure.take() {
                    row.flag(
                        Verdict::TargetMissed,
                        format!("netperf did not reach the requested confidence: its throughput interval is {width}"),
                    );
                }
                let same = |(other, own, _): &(Title, [u64; 2], Imported)| other == title && *own == sizes;
                match listing.iter().position(same) {
                    Some(at) => {
                        listing[at].2.rows.push(row);
                        latest = at;
                    }
                    None => {
                        latest = listing.len();
                        listing.push((title.clone(), sizes, started(title, sizes, row)));
                    }
                }
            }
            // The second line of a request/response row.
            Ok(None) if title.pattern != Pattern::Stream => {
                let latest = listing.get_mut(latest).and_then(|(_, _, imported)| imported.rows.last_mut());
                latest.into_iter().for_each(|row| remote_buffers(row, &all));
            }
            Ok(None) => {}
            Err(reason) => reading.refuse_text(number_of_line, line, reason),
        }
    }
    Omni::close(omni, &mut reading);
    for (_, _, mut imported) in listing {
        flag_stalled_rows(&mut imported.rows);
        let first = imported.rows.first().map(|row| row.spec.block);
        if imported.kind == RunKind::Stream && imported.rows.iter().any(|row| Some(row.spec.block) != first) {
            imported.kind = RunKind::Curve;
        }
        reading.imported.push(imported);
    }
    reading
}

/// Rows without a header: the number of columns identifies the test, and the units are netperf's own.
fn of_bare_rows(title: &Title, rows: &[Numbers<'_>], reading: &mut TextReading) {
    let mut imported: Option<Imported> = None;
    for (at, line, all) in rows.iter().take(MAX_ROWS) {
        match row(title, 1e6, all, *at, line, &mut None) {
            Ok(Some((sizes, row))) => match &mut imported {
                Some(imported) => imported.rows.push(row),
                None => imported = Some(started(title, sizes, row)),
            },
            Ok(None) => {
                let latest = imported.as_mut().and_then(|imported| imported.rows.last_mut());
                latest.into_iter().for_each(|row| remote_buffers(row, all));
            }
            Err(reason) => reading.refuse_text(*at, line, reason),
        }
    }
    reading.imported.extend(imported.map(|imported| Imported {
        assumed: vec!["transport", "direction"],
        notes: [imported.notes, vec!["no header (-P 0): rates are taken to be in 10^6 bit/s".into()]].concat(),
        ..imported
    }));
}

fn started(title: &Title, sizes: [u64; 2], row: Row) -> Imported {
    let kind = if title.pattern == Pattern::Stream { RunKind::Stream } else { RunKind::Rr };
    let [first, second] = sizes.map(|bytes| if bytes == 0 { "unknown".to_owned() } else { format!("{bytes} bytes") });
    // A time that is printed as zero does not tell how long the test was asked to run.
    let unknown = row.figures.get("elapsed_ns") == Some(&0.0);
    Imported {
        tool: "netperf".into(),
        kind,
        target: title.target.clone(),
        notes: vec![format!("socket sizes in the first two columns: {first} and {second}")],
        rows: vec![row],
        assumed: if unknown { vec!["stop"] } else { Vec::new() },
        ..Imported::default()
    }
}

/// The sender's line of a UDP stream: its number, and its columns.
type Sender = (u32, Vec<f64>);

/// The columns of CPU use, which follow the others with -c and -C.
const STREAM_CPU: [&str; 4] =
    ["send_cpu_percent", "receive_cpu_percent", "send_us_per_kibibyte", "receive_us_per_kibibyte"];
const TRANSACTION_CPU: [&str; 4] =
    ["local_cpu_percent", "remote_cpu_percent", "local_us_per_transaction", "remote_us_per_transaction"];

fn cpu(row: &mut Row, names: [&str; 4], figures: &[f64]) {
    names.iter().zip(figures).for_each(|(name, figure)| row.figure(name, *figure));
}

/// The receive and the send buffer of one end's socket; nothing if both are unknown.
fn buffers(receive: f64, send: f64) -> Vec<FlowTally> {
    let size = |bytes: f64| whole(bytes).filter(|bytes| *bytes > 0);
    let socket = SocketFacts { rcvbuf: size(receive), sndbuf: size(send), ..SocketFacts::default() };
    if socket == SocketFacts::default() { Vec::new() } else { vec![FlowTally { socket, ..FlowTally::default() }] }
}

/// The buffers at the remote end of request/response: the second line of a row.
fn remote_buffers(row: &mut Row, sizes: &[f64]) {
    if let [send, receive] = sizes {
        row.figure("remote_send_socket_bytes", *send);
        row.figure("remote_receive_socket_bytes", *receive);
        row.trial.far.flows = buffers(*receive, *send);
    }
}

/// The time in `column` of a line, ns; 0 for one that is printed as zero, which is shorter than its last digit.
fn elapsed(text: &str, column: usize, seconds: f64) -> Result<u64, NetperfResultError> {
    let ns = ns(seconds);
    let word = text.split_whitespace().nth(column).unwrap_or_default();
    if ns > 0 || (seconds == 0.0 && half_digit(word) < 0.5) {
        Ok(ns)
    } else {
        Err(NetperfResultError::Duration(seconds))
    }
}

/// Sets the length of a row whose time is `ns`, at the end that measured it.
fn lasted(row: &mut Row, ns: u64, count: Count) {
    row.figure("elapsed_ns", ns as f64);
    if ns == 0 {
        row.flag(Verdict::ResolutionLimited, "the time has too few digits: printed as zero");
        return;
    }
    row.spec.stop = Stop::TimeNs(ns);
    // Round trips are timed at the near end, streams at the receiver.
    let near = row.spec.direction == Direction::Reverse || row.spec.pattern.is_transactions();
    if near { &mut row.trial.near } else { &mut row.trial.far }.report(count, ns);
}

/// Takes the digits of the value in `column`. An unknown value refuses the row.
fn rounded(row: &mut Row, text: &str, column: usize) -> Result<(), NetperfResultError> {
    match row.trial.value {
        Some(value) if value.is_finite() => {
            row.rounded(text.split_whitespace().nth(column).map_or(0.0, resolution));
            Ok(())
        }
        _ => Err(NetperfResultError::NoRate),
    }
}

/// Refuses more datagrams received than were sent, and a rate that the received ones contradict.
fn check_datagrams(
    [sent, okay]: [f64; 2],
    bps: f64,
    block: u64,
    seconds: f64,
    text: &str,
) -> Result<(), Contradiction> {
    if okay > sent {
        return Err(Contradiction::ReceivedMessages { received: okay, sent });
    }
    let own = okay * block as f64 * 8.0 / seconds;
    let digits = |column: usize| text.split_whitespace().nth(column).map_or(0.0, resolution);
    let rounding = 1.5 * (digits(1) + digits(3)) + 0.02;
    if own.is_finite() && rounding.is_finite() && (own - bps).abs() > rounding * own.max(bps) {
        return Err(Contradiction::Messages { messages: okay, block, seconds, bps });
    }
    Ok(())
}

/// A row of a table with its socket sizes; `None` if it continues in the next line, or belongs to the previous one.
fn row(
    title: &Title,
    units: f64,
    all: &[f64],
    line: u32,
    text: &str,
    sender: &mut Option<Sender>,
) -> Result<Option<([u64; 2], Row)>, ImportError> {
    const NO_SENDER: ImportError = ImportError::Without { what: "receiver's line", lacks: "a sender's line" };
    let mut spec = title.spec();
    let size = |bytes: f64| block(bytes).ok_or(NetperfResultError::Block(bytes));
    // What is unknown, NaN, is 0.
    let sizes = |a: f64, b: f64| [a as u64, b as u64];
    match (title.pattern, title.transport, all) {
        (Pattern::Stream, "udp", [receiver, seconds, okay, throughput, rest @ ..])
            if matches!((&sender, rest), (Some(_), []) | (Some((_, _)), [_, _])) =>
        {
            let (first, sent) = sender.take().ok_or(NO_SENDER)?;
            spec.block = size(sent[1])?;
            let mut row = Row::new(spec, throughput * units, line, text);
            row.remarks.push(format!("the sender's figures are in line {first}"));
            row.figure("sender_messages", sent[3]);
            row.figure("sender_errors", sent[4]);
            row.figure("sender_rate_bps", sent[5] * units);
            row.figure("receiver_messages", *okay);
            row.figure("receiver_rate_bps", throughput * units);
            row.figure("send_socket_bytes", sent[0]);
            row.figure("receive_socket_bytes", *receiver);
            if let ([.., send_percent, send_us], [receive_percent, receive_us]) = (&sent[..], rest)
                && sent.len() == 8
            {
                cpu(&mut row, STREAM_CPU, &[*send_percent, *receive_percent, *send_us, *receive_us]);
            }
            check_datagrams([sent[3], *okay], throughput * units, row.spec.block, *seconds, text)?;
            rounded(&mut row, text, 3)?;
            let counts = [sent[3], *okay].map(whole);
            lasted(&mut row, elapsed(text, 1, *seconds)?, Count::ReceivingNs);
            if ns(sent[2]) > 0 {
                row.trial.near.report(Count::SendingNs, ns(sent[2]));
                row.spec.stop = Stop::TimeNs(ns(sent[2]));
            }
            if let [Some(sent), Some(received)] = counts {
                let bytes = [sent, received].map(|messages| messages.checked_mul(row.spec.block));
                if let [Some(sent), Some(received)] = bytes {
                    row.trial.near.report(Count::BytesSent, sent);
                    row.trial.far.report(Count::BytesReceived, received);
                }
                row.trial.near.datagrams = Some(DatagramTally { sent, ..DatagramTally::default() });
                row.trial.far.datagrams = Some(DatagramTally { received, ..DatagramTally::default() });
            }
            row.trial.near.flows = buffers(f64::NAN, sent[0]);
            row.trial.far.flows = buffers(*receiver, f64::NAN);
            if okay < &sent[3] {
                row.flag(Verdict::Loss, "the receiver counted fewer messages than the sender");
            }
            Ok(Some((sizes(sent[0], *receiver), row)))
        }
        (Pattern::Stream, "udp", [_, _, seconds, _, _, _] | [_, _, seconds, _, _, _, _, _]) => {
            elapsed(text, 2, *seconds)?;
            *sender = Some((line, all.to_vec()));
            Ok(None)
        }
        (Pattern::Stream, "udp", [_, _, _, _] | [_, _, _, _, _]) => Err(NO_SENDER),
        (Pattern::Stream, "tcp", [receive, send, message, seconds, throughput, rest @ ..]) => {
            spec.block = size(*message)?;
            let reverse = spec.direction == Direction::Reverse;
            let mut row = Row::new(spec, throughput * units, line, text);
            rounded(&mut row, text, 4)?;
            lasted(&mut row, elapsed(text, 3, *seconds)?, Count::ReceivingNs);
            row.figure("throughput_bps", throughput * units);
            row.figure("receive_socket_bytes", *receive);
            row.figure("send_socket_bytes", *send);
            cpu(&mut row, STREAM_CPU, rest);
            let [receiver, sender] = [buffers(*receive, f64::NAN), buffers(f64::NAN, *send)];
            (row.trial.near.flows, row.trial.far.flows) = if reverse { (receiver, sender) } else { (sender, receiver) };
            Ok(Some((sizes(*receive, *send), row)))
        }
        (Pattern::Rr | Pattern::Crr, _, [send, receive, request, response, seconds, rate, rest @ ..]) => {
            spec.block = size(*request)?;
            spec.reply = Some(size(*response)?).filter(|reply| *reply != spec.block);
            let mut row = Row::new(spec, *rate, line, text);
            rounded(&mut row, text, 5)?;
            lasted(&mut row, elapsed(text, 4, *seconds)?, Count::ReceivingNs);
            row.figure("transactions_per_s", *rate);
            row.figure("local_send_socket_bytes", *send);
            row.figure("local_receive_socket_bytes", *receive);
            cpu(&mut row, TRANSACTION_CPU, rest);
            row.trial.near.flows = buffers(*receive, *send);
            Ok(Some((sizes(*send, *receive), row)))
        }
        // The second line of a request/response row: the remote end's socket sizes.
        (Pattern::Rr | Pattern::Crr, _, [_, _]) => Ok(None),
        (_, _, [_]) => Err(ImportError::Without { what: "a number", lacks: "its unit (-v 0)" }),
        _ => Err(NetperfResultError::Columns(all.len()).into()),
    }
}

/// Flags stalled rows, which ran far longer than the others of their listing and carried far less. Each becomes a cell of its own, to
/// leave the value of the valid rows of the same size unchanged. A row that was requested to run longer is valid by its rate. Rows of
/// about the usual length get the same nominal length.
fn flag_stalled_rows(rows: &mut [Row]) {
    let length = |row: &Row| row.figures.get("elapsed_ns").copied();
    let middle = |of: &dyn Fn(&Row) -> Option<f64>| model::median(&rows.iter().filter_map(of).collect::<Vec<f64>>());
    let usual = middle(&length).filter(|usual| rows.len() >= 3 && *usual > 0.0);
    let Some(usual) = usual else { return };
    let Some(middle) = middle(&|row| row.trial.value) else { return };
    for row in rows.iter_mut() {
        let Some((ns, value)) = length(row).zip(row.trial.value) else { continue };
        if ns > 1.5 * usual && value < 0.5 * middle {
            row.levels.insert("listed".into(), format!("line {}, anomalous", row.line));
            row.flag(
                Verdict::Stalled,
                format!(
                    "anomalous: {:.2} s instead of {:.2} s, at {:.3} % of the median rate",
                    ns / 1e9,
                    usual / 1e9,
                    value / middle * 100.0
                ),
            );
        }
        if ns == 0.0 {
            continue;
        }
        // 9.99 s and 10.00 s are the same request.
        let nominal = if (ns / usual - 1.0).abs() < 0.01 { usual } else { ns };
        row.spec.stop = Stop::TimeNs(nominal as u64);
    }
}
