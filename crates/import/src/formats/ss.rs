//! ss of iproute2 with -i: what the kernel's TCP knows of each connection, as one row without a value for each.
//!
//! A line names the connection; its details follow in the same line (-O) or in the next one, which is indented. Times are in ms but
//! `busy` and its parts, which have their unit; rates have decimal prefixes. Names: ss(8) and iproute2's misc/ss.c.

use std::collections::{BTreeMap, BTreeSet};

use model::{FlowTally, Pattern, RunKind, SocketFacts, Spec, TcpSample, units};

use super::ImportFormat;
use crate::error::{Contradiction, HostError, ImportError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, lines, ns, number, rate_unit};

/// ss.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "ss", help: "ss -ti, -tin, -tmi, -tOi: TCP's state of each connection", detect, read };

/// Words of options that stand alone, and their names in a socket's facts.
const OPTIONS: [(&str, &str); 5] =
    [("ts", "timestamps"), ("usec_ts", "usec-timestamps"), ("sack", "sack"), ("ecn", "ecn"), ("ecnseen", "ecn-seen")];
/// Figures in bytes, segments or events, by their words.
const COUNTS: [(&str, &str); 24] = [
    ("mss", "mss_bytes"),
    ("pmtu", "path_mtu_bytes"),
    ("rcvmss", "receive_mss_bytes"),
    ("advmss", "advertised_mss_bytes"),
    ("cwnd", "cwnd_segments"),
    ("ssthresh", "ssthresh_segments"),
    ("bytes_sent", "bytes_sent"),
    ("bytes_retrans", "bytes_retransmitted"),
    ("bytes_acked", "bytes_acked"),
    ("bytes_received", "bytes_received"),
    ("segs_out", "segments_out"),
    ("segs_in", "segments_in"),
    ("data_segs_out", "data_segments_out"),
    ("data_segs_in", "data_segments_in"),
    ("delivered", "delivered_segments"),
    ("delivered_ce", "delivered_ce_segments"),
    ("unacked", "unacked_segments"),
    ("lost", "lost_segments"),
    ("sacked", "sacked_segments"),
    ("dsack_dups", "spurious_retransmits"),
    ("reordering", "reordering_segments"),
    ("rcv_space", "receive_space_bytes"),
    ("rcv_ssthresh", "window_bytes"),
    ("snd_wnd", "peer_window_bytes"),
];
/// Figures in ms, by their words.
const TIMES: [(&str, &str); 7] = [
    ("rto", "rto_ns"),
    ("ato", "ato_ns"),
    ("minrtt", "min_rtt_ns"),
    ("rcv_rtt", "receive_rtt_ns"),
    ("lastsnd", "last_sent_ns"),
    ("lastrcv", "last_received_ns"),
    ("lastack", "last_acked_ns"),
];
/// Figures with a unit of time, and perhaps a share in parentheses: `rwnd_limited:12ms(5.0%)`.
const BUSY: [(&str, &str); 3] =
    [("busy", "busy_ns"), ("rwnd_limited", "rwnd_limited_ns"), ("sndbuf_limited", "sndbuf_limited_ns")];
/// Rates, which follow their name after a blank.
const RATES: [(&str, &str); 3] =
    [("send", "send_bps"), ("pacing_rate", "pacing_bps"), ("delivery_rate", "delivery_bps")];
/// Words that are known and say nothing that is kept.
const IGNORED: [&str; 8] = ["qack", "bidir", "app_limited", "notsent", "backoff", "fallback", "rehash", "rcv_ooopack"];
/// States of connections that exist. Others have no details, or those of a listener.
const STATES: [&str; 8] =
    ["ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING"];
/// States without connections, whose lines are left out.
const OTHERS: [&str; 4] = ["LISTEN", "TIME-WAIT", "UNCONN", "CLOSED"];

/// Whether a text has details of TCP.
fn has_details(line: &str) -> bool {
    let has = |what: &str| line.split_whitespace().any(|word| word.starts_with(what));
    has("rto:") && has("cwnd:") && has("mss:")
}

/// The names of the columns, if the line has them.
fn is_head(line: &str) -> bool {
    line.contains("Recv-Q") && line.contains("Local Address:Port") && line.contains("Peer Address:Port")
}

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| has_details(line)) { Certainty::Certain } else { Certainty::No }
}

/// A line that names a connection.
#[derive(Debug, PartialEq, Eq)]
struct Ends<'a> {
    local: &'a str,
    peer: &'a str,
    /// What follows in the line: the process, and with -O the details.
    rest: &'a str,
}

/// What a line that is not indented is.
enum Opening<'a> {
    Connection(Ends<'a>),
    /// A socket without a connection.
    Other,
    /// No line of ss.
    None,
}

fn opening(line: &str) -> Opening<'_> {
    let mut rest = line.trim_start();
    let mut next = || {
        let word = rest.split_whitespace().next()?;
        rest = rest[word.len()..].trim_start();
        Some(word)
    };
    let mut word = next();
    // `tcp`, where several kinds of sockets are listed.
    if word == Some("tcp") {
        word = next();
    }
    if word.is_some_and(|state| OTHERS.contains(&state)) {
        return Opening::Other;
    }
    // With a filter for a state, its column is absent.
    if word.is_some_and(|state| STATES.contains(&state)) {
        word = next();
    }
    let numbers = [word, next()].map(|word| word.and_then(|word| word.parse::<u64>().ok()));
    let [Some(_), Some(_)] = numbers else { return Opening::None };
    match (next(), next()) {
        (Some(local), Some(peer)) if local.contains(':') && peer.contains(':') => {
            Opening::Connection(Ends { local, peer, rest })
        }
        _ => Opening::None,
    }
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut listing = Listing::default();
    let mut open: Option<(u32, &str, Ends<'_>)> = None;
    let cut = |open: &mut Option<(u32, &str, Ends<'_>)>, reading: &mut TextReading| {
        if let Some((at, line, _)) = open.take() {
            reading.refuse_text(at, line, HostError::NoDetails);
        }
    };
    for (at, line) in lines(text) {
        if is_head(line) {
            cut(&mut open, &mut reading);
            listing.close(&mut reading);
            continue;
        }
        if listing.rows.len() >= MAX_ROWS {
            reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "connections" });
            break;
        }
        if !line.starts_with(char::is_whitespace) && !line.is_empty() {
            cut(&mut open, &mut reading);
            match opening(line) {
                Opening::Connection(ends) if has_details(ends.rest) => {
                    listing.take((at, line, ends), line, &mut reading);
                }
                Opening::Connection(ends) => open = Some((at, line, ends)),
                Opening::Other | Opening::None => {}
            }
        } else if has_details(line)
            && let Some(connection) = open.take()
        {
            listing.take(connection, line, &mut reading);
        }
    }
    cut(&mut open, &mut reading);
    listing.close(&mut reading);
    reading
}

/// The connections under one head.
#[derive(Default)]
struct Listing {
    rows: Vec<Row>,
    seen: BTreeSet<(String, String)>,
    unknown: BTreeSet<String>,
}

impl Listing {
    fn take(&mut self, (at, line, ends): (u32, &str, Ends<'_>), details: &str, reading: &mut TextReading) {
        let details = if ends.rest.is_empty() || !has_details(ends.rest) { details } else { ends.rest };
        if !self.seen.insert((ends.local.to_owned(), ends.peer.to_owned())) {
            // The same connection again is another reading, of another time.
            self.close(reading);
            self.seen.insert((ends.local.to_owned(), ends.peer.to_owned()));
        }
        match Details::of(details).and_then(Details::checked) {
            Ok(details) => {
                self.unknown.extend(details.unknown.iter().cloned());
                self.rows.push(row(&ends, &details, at, line));
            }
            Err(reason) => reading.refuse_text(at, line, reason),
        }
    }

    fn close(&mut self, reading: &mut TextReading) {
        let Self { rows, unknown, .. } = std::mem::take(self);
        if rows.is_empty() {
            return;
        }
        reading.imported.push(Imported {
            tool: "ss".into(),
            kind: RunKind::Environment,
            rows,
            assumed: vec!["block", "stop"],
            unknown: unknown.into_iter().collect(),
            ..Imported::default()
        });
    }
}

/// The details of a connection.
#[derive(Default)]
struct Details {
    figures: BTreeMap<String, f64>,
    negotiated: Vec<String>,
    cc: Option<String>,
    wscale: Option<(u8, u8)>,
    app_limited: bool,
    unknown: BTreeSet<String>,
}

impl Details {
    fn of(text: &str) -> Result<Self, ImportError> {
        let mut details = Self::default();
        let mut words = text.split_whitespace().peekable();
        let named = |table: &'static [(&str, &str)], word: &str| {
            table.iter().find(|(known, _)| *known == word).map(|(_, name)| (*name).to_owned())
        };
        while let Some(word) = words.next() {
            let Some((name, value)) = word.split_once(':') else {
                if let Some(rate) = named(&RATES, word) {
                    let value = words.next().ok_or_else(|| HostError::NoRate(word.to_owned()))?;
                    let bps = bits(value).ok_or_else(|| ImportError::word(value, "a rate"))?;
                    details.figures.insert(rate, bps);
                } else if let Some(option) = named(&OPTIONS, word) {
                    details.negotiated.push(option);
                } else if word == "fastopen" {
                    details.negotiated.push("fast-open".into());
                } else if words.peek().is_some_and(|next| next.starts_with("wscale:") || next.starts_with("rto:")) {
                    // The congestion control stands alone before the first word with a value.
                    details.cc = Some(word.to_owned());
                } else if !IGNORED.contains(&word) {
                    details.unknown.insert(word.to_owned());
                }
                details.app_limited |= word == "app_limited";
                continue;
            };
            let wrong = || HostError::NoNumber(word.to_owned());
            if let Some(figure) = named(&COUNTS, name) {
                details.figures.insert(figure, number(value).ok_or_else(wrong)?);
            } else if let Some(figure) = named(&TIMES, name) {
                details.figures.insert(figure, number(value).ok_or_else(wrong)? * 1e6);
            } else if let Some(figure) = named(&BUSY, name) {
                details.figures.insert(figure, milliseconds(value).ok_or_else(wrong)? * 1e6);
            } else {
                details.pair(name, value).ok_or_else(wrong)?;
            }
        }
        details.negotiated.extend(details.wscale.map(|_| "wscale".to_owned()));
        Ok(details)
    }

    /// A word with several numbers, or an unknown one; `None` if it cannot be read.
    fn pair(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "rtt" => {
                let (mean, deviation) = value.split_once('/')?;
                self.figures.insert("rtt_ns".into(), number(mean)? * 1e6);
                self.figures.insert("rtt_deviation_ns".into(), number(deviation)? * 1e6);
            }
            "retrans" => {
                let (_, total) = value.split_once('/')?;
                self.figures.insert("retransmits".into(), number(total)?);
            }
            "wscale" => {
                let (sends, receives) = value.split_once(',')?;
                self.wscale = Some((sends.parse().ok()?, receives.parse().ok()?));
            }
            // (r0,rb131072,t0,tb3939840,f0,w0,o0,bl0,d0), of the kernel's sk_meminfo.
            "skmem" => {
                for part in value.trim_matches(['(', ')']).split(',') {
                    let digits = part.find(|c: char| c.is_ascii_digit())?;
                    let figure = match &part[..digits] {
                        "rb" => "receive_socket_bytes",
                        "tb" => "send_socket_bytes",
                        "d" => "socket_drops",
                        _ => continue,
                    };
                    self.figures.insert(figure.into(), number(&part[digits..])?);
                }
            }
            name if IGNORED.contains(&name) => {}
            name => {
                self.unknown.insert(name.to_owned());
            }
        }
        Some(())
    }

    fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.figure(name).map(|value| value as u64)
    }

    /// What a reader of the listing looks for.
    fn sentence(&self) -> String {
        let time = |name: &str| self.figure(name).map(units::seconds);
        let count = |name: &str| self.count(name).filter(|count| *count > 0);
        let parts = [
            time("rtt_ns").map(|rtt| format!("RTT {rtt}")),
            time("min_rtt_ns").map(|rtt| format!("shortest {rtt}")),
            count("cwnd_segments")
                .zip(count("mss_bytes"))
                .map(|(cwnd, mss)| format!("cwnd {cwnd} segments of {mss} B")),
            self.figure("delivery_bps").map(|bps| format!("delivery rate {}", units::bits_per_second(bps))),
            count("bytes_sent").map(|bytes| format!("{bytes} B sent")),
            count("bytes_received").map(|bytes| format!("{bytes} B received")),
            count("retransmits")
                .map(|count| format!("{count} segment{} retransmitted", if count == 1 { "" } else { "s" })),
            time("rwnd_limited_ns").map(|time| format!("limited by the receive window for {time}")),
            time("sndbuf_limited_ns").map(|time| format!("limited by the send buffer for {time}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Refuses counts that contradict each other.
    fn checked(self) -> Result<Self, ImportError> {
        // The start and the end of a connection are acknowledged like a byte each.
        let most = [
            ("bytes_acked", "bytes_sent", 2.0),
            ("bytes_retransmitted", "bytes_sent", 0.0),
            ("data_segments_out", "segments_out", 0.0),
            ("data_segments_in", "segments_in", 0.0),
        ];
        for (part, whole, more) in most {
            if let Some((part_value, whole_value)) = self.figure(part).zip(self.figure(whole))
                && part_value > whole_value + more
            {
                return Err(Contradiction::Part { part, part_value, whole, whole_value }.into());
            }
        }
        Ok(self)
    }
}

/// bit/s of `14.9Gbps` or `14881537118bps`.
fn bits(word: &str) -> Option<f64> {
    let digits = word.find(|c: char| c.is_ascii_alphabetic())?;
    Some(number(&word[..digits])? * rate_unit(&word[digits..])?)
}

/// Milliseconds of `16ms` or `12ms(5.0%)`.
fn milliseconds(word: &str) -> Option<f64> {
    number(word.split('(').next()?.strip_suffix("ms")?)
}

/// A row of a connection: its facts and one reading of its TCP. It has no value, because nothing was measured.
fn row(ends: &Ends<'_>, details: &Details, at: u32, line: &str) -> Row {
    let mut row = Row::new(Spec::new("tcp", Pattern::Stream), 0.0, at, line);
    row.trial.value = None;
    row.levels.insert("connection".into(), format!("{} to {}", ends.local, ends.peer));
    let small = |name: &str| details.count(name).and_then(|count| u32::try_from(count).ok());
    let time = |name: &str| details.figure(name).map(|value| ns(value / 1e9));
    let socket = SocketFacts {
        local: Some(ends.local.to_owned()),
        peer: Some(ends.peer.to_owned()),
        sndbuf: details.count("send_socket_bytes"),
        rcvbuf: details.count("receive_socket_bytes"),
        cc: details.cc.clone(),
        mss: small("mss_bytes"),
        pmtu: small("path_mtu_bytes"),
        negotiated: details.negotiated.clone(),
        wscale: details.wscale,
        // ss leaves them out where there were none.
        retransmits: Some(details.count("retransmits").unwrap_or(0)),
        bytes_retransmitted: details.count("bytes_retransmitted"),
        min_rtt_ns: time("min_rtt_ns"),
        srtt_ns: time("rtt_ns"),
        peer_window_bytes: small("peer_window_bytes"),
        ..SocketFacts::default()
    };
    let sample = TcpSample {
        rtt_ns: time("rtt_ns").unwrap_or(0),
        rttvar_ns: time("rtt_deviation_ns").unwrap_or(0),
        min_rtt_ns: time("min_rtt_ns"),
        rto_ns: time("rto_ns"),
        cwnd: small("cwnd_segments").unwrap_or(0),
        ssthresh: small("ssthresh_segments"),
        mss: small("mss_bytes").unwrap_or(0),
        unacked: small("unacked_segments").unwrap_or(0),
        lost: small("lost_segments").unwrap_or(0),
        retransmits: details.count("retransmits").unwrap_or(0),
        bytes_retransmitted: details.count("bytes_retransmitted"),
        reordering: small("reordering_segments").unwrap_or(3),
        pacing_bps: details.count("pacing_bps"),
        delivery_bps: details.count("delivery_bps"),
        app_limited: details.app_limited,
        busy_ns: details.count("busy_ns"),
        rwnd_limited_ns: details.count("rwnd_limited_ns"),
        sndbuf_limited_ns: details.count("sndbuf_limited_ns"),
        delivered: details.count("delivered_segments"),
        delivered_ce: details.count("delivered_ce_segments"),
        bytes_acked: details.count("bytes_acked"),
        bytes_received: details.count("bytes_received"),
        peer_window_bytes: small("peer_window_bytes"),
        window_bytes: small("window_bytes"),
        ..TcpSample::default()
    };
    let [sent, received] = ["bytes_sent", "bytes_received"].map(|name| details.count(name).unwrap_or(0));
    row.trial.near.flows = vec![FlowTally {
        bytes_sent: sent,
        bytes_received: received,
        socket,
        tcp: vec![sample],
        ..FlowTally::default()
    }];
    row.remarks.push(format!("{} to {}: {}", ends.local, ends.peer, details.sentence()));
    row.figures = details.figures.clone();
    row
}
