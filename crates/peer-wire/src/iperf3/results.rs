//! What each end counted, as JSON.

use serde::Deserialize;
use serde_json::Value;

use super::error::Iperf3Error;
use super::json::Writer;

/// The longest accepted results, in bytes. iperf3 has no limit; a server's output over a day has some MiB.
pub const RESULTS_LIMIT: usize = 16 << 20;

/// Most streams that a test can have: 128 in each direction.
const STREAMS_LIMIT: usize = 256;

/// The numbers of `count` streams in the order of opening: 1, 3, 4, 5, ... iperf3 skips 2.
pub fn stream_ids(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|at| if at == 0 { 1 } else { at + 2 })
}

/// What one end counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// CPU time of the process in percent of one CPU: total, user and system.
    pub cpu_percent: [f64; 3],
    /// Whether this end sends and knows its retransmissions; `None` if it only receives.
    pub has_retransmits: Option<bool>,
    /// The congestion control that was used.
    pub congestion: Option<String>,
    /// The server's output as JSON, if the client requested it.
    pub server_output_json: Option<Value>,
    /// The server's output as text, if the client requested it.
    pub server_output_text: Option<String>,
    /// Its streams.
    pub streams: Vec<StreamResult>,
}

/// Datagrams of the omitted time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// Lost.
    pub errors: i64,
    /// Sent or received.
    pub packets: u64,
}

/// What one end counted of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamResult {
    /// The stream's number, see [`stream_ids`].
    pub id: u32,
    /// Bytes sent or received. iperf3 carries numbers as doubles: exact up to 2^53.
    pub bytes: u64,
    /// Retransmitted segments; `None` if unknown.
    pub retransmits: Option<u64>,
    /// Jitter after RFC 1889, in seconds; 0 from a sender.
    pub jitter_s: f64,
    /// Lost datagrams less late ones, so it can be negative.
    pub errors: i64,
    /// Datagrams sent, or the highest number received.
    pub packets: u64,
    /// Counts of the omitted time; absent before 3.14.
    pub omitted: Option<Omitted>,
    /// Seconds from the start to the end; absent before 3.2.
    pub end_time_s: Option<f64>,
}

/// The keys as they are on the wire. Numbers are doubles, as cJSON has them.
#[derive(Deserialize)]
struct Wire {
    cpu_util_total: f64,
    cpu_util_user: f64,
    cpu_util_system: f64,
    sender_has_retransmits: f64,
    congestion_used: Option<String>,
    server_output_json: Option<Value>,
    server_output_text: Option<String>,
    streams: Vec<WireStream>,
}

#[derive(Deserialize)]
struct WireStream {
    id: f64,
    bytes: f64,
    retransmits: f64,
    jitter: f64,
    errors: f64,
    packets: f64,
    omitted_errors: Option<f64>,
    omitted_packets: Option<f64>,
    end_time: Option<f64>,
}

/// Filters the values that mean "unknown". Some builds write -1 as an unsigned 64-bit number.
fn known(number: f64) -> Option<f64> {
    (0.0..9e18).contains(&number).then_some(number)
}

fn count(key: &'static str, number: f64) -> Result<u64, Iperf3Error> {
    known(number).map(|number| number as u64).ok_or(Iperf3Error::Count { key, number })
}

impl Results {
    /// Parses an end's JSON; the test has `streams` streams.
    ///
    /// # Errors
    /// What is wrong with it: not JSON, a missing key, an invalid number, an unknown or repeated stream.
    pub fn from_json(json: &[u8], streams: u32) -> Result<Self, Iperf3Error> {
        let wire: Wire = serde_json::from_slice(json).map_err(|source| Iperf3Error::NotResults { source })?;
        if wire.streams.len() > STREAMS_LIMIT {
            return Err(Iperf3Error::TooManyStreams { count: wire.streams.len(), limit: STREAMS_LIMIT });
        }
        let mut read: Vec<StreamResult> = Vec::with_capacity(wire.streams.len());
        for stream in &wire.streams {
            let stream = stream.read()?;
            if !stream_ids(streams).any(|id| id == stream.id) {
                return Err(Iperf3Error::UnknownStream { id: stream.id.into() });
            }
            if read.iter().any(|other| other.id == stream.id) {
                return Err(Iperf3Error::Repeated { id: stream.id });
            }
            read.push(stream);
        }
        Ok(Self {
            cpu_percent: [wire.cpu_util_total, wire.cpu_util_user, wire.cpu_util_system],
            has_retransmits: known(wire.sender_has_retransmits).map(|has| has != 0.0),
            congestion: wire.congestion_used,
            server_output_json: wire.server_output_json,
            server_output_text: wire.server_output_text,
            streams: read,
        })
    }

    /// The JSON for the wire, with iperf3's keys in iperf3's order.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = Writer::new();
        let [total, user, system] = self.cpu_percent;
        json.value("cpu_util_total", total);
        json.value("cpu_util_user", user);
        json.value("cpu_util_system", system);
        json.value("sender_has_retransmits", self.has_retransmits.map_or(-1, i32::from));
        json.option("congestion_used", self.congestion.as_deref());
        json.option("server_output_json", self.server_output_json.clone());
        json.option("server_output_text", self.server_output_text.as_deref());
        let streams: Vec<Value> = self.streams.iter().map(StreamResult::value).collect();
        json.value("streams", streams);
        json.end()
    }
}

impl StreamResult {
    fn value(&self) -> Value {
        let retransmits = self.retransmits.map_or(Value::from(-1), Value::from);
        let mut value = serde_json::json!({
            "id": self.id, "bytes": self.bytes, "retransmits": retransmits, "jitter": self.jitter_s,
            "errors": self.errors, "packets": self.packets, "start_time": 0, "end_time": self.end_time_s.unwrap_or(0.0),
        });
        if let Some(omitted) = self.omitted {
            value["omitted_errors"] = omitted.errors.into();
            value["omitted_packets"] = omitted.packets.into();
        }
        value
    }
}

impl WireStream {
    fn read(&self) -> Result<StreamResult, Iperf3Error> {
        let id = count("id", self.id)?;
        let omitted = match (self.omitted_errors, self.omitted_packets) {
            (Some(errors), Some(packets)) => {
                Some(Omitted { errors: errors as i64, packets: count("omitted_packets", packets)? })
            }
            (None, None) => None,
            _ => return Err(Iperf3Error::Omitted),
        };
        Ok(StreamResult {
            id: u32::try_from(id).map_err(|_| Iperf3Error::UnknownStream { id })?,
            bytes: count("bytes", self.bytes)?,
            retransmits: known(self.retransmits).map(|again| again as u64),
            jitter_s: known(self.jitter).ok_or(Iperf3Error::Jitter { number: self.jitter })?,
            errors: self.errors as i64,
            packets: count("packets", self.packets)?,
            omitted,
            end_time_s: self.end_time,
        })
    }
}
