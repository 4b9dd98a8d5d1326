//! A path to produce: its faults, its link and what is measured over it.

use std::collections::BTreeMap;

use model::LimiterKind;
use model::units::{bits_per_second, seconds};
use serde::{Deserialize, Serialize};

/// Overhead of IPv4 and TCP with time stamps, bytes.
const HEADERS: u32 = 52;

/// A path and one measurement over it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Path {
    /// Seed of the set.
    pub seed: u64,
    /// Number within the set.
    pub index: u32,
    /// What was drawn, such as `loss`, `link rate + pacing` or `innocent: tls`.
    pub name: String,
    /// What limits it, one or two; empty for an innocent path, where only the hosts do.
    pub faults: Vec<LimiterKind>,
    /// MTU, bytes.
    pub mtu: u32,
    /// Round trip of the link, ns; 0 for a cable without an emulator.
    pub rtt_ns: u64,
    /// Largest deviation from its one-way delay, ns. The delay changes at intervals of twice that.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Rate of the link in the direction of the payload, bit/s; absent: unlimited.
    pub rate_bps: Option<u64>,
    /// Its queue, bytes.
    pub queue_bytes: u64,
    /// What the queue does before it is full, as in a topology; absent: nothing.
    #[serde(default)]
    pub discipline: Option<String>,
    /// Share of the segments that it loses.
    pub loss: f64,
    /// The longest packet that it carries, bytes, if that is less than its MTU.
    #[serde(default)]
    pub hole: Option<u32>,
    /// Share of the segments that take longer, and by how much, ns; later ones overtake them.
    #[serde(default)]
    pub reorder: Option<(f64, u64)>,
    /// Rate of the link in the direction of the acknowledgements, bit/s; absent: that of the cable.
    #[serde(default)]
    pub back_bps: Option<u64>,
    /// Its queue, bytes.
    #[serde(default)]
    pub back_queue_bytes: u64,
    /// Another program's flow between the same hosts, in the direction of the payload.
    #[serde(default)]
    pub beside: bool,
    /// The far end sends.
    pub reverse: bool,
    /// Sender's congestion control.
    pub cc: Option<String>,
    /// Network settings of both hosts.
    pub sysctl: BTreeMap<String, String>,
    /// Commands on the sending host before the measurement.
    pub before: Vec<String>,
    /// Programs that keep a core busy during the measurement.
    pub spinners: Option<Spinners>,
    /// Arguments of `thru stream b`.
    pub flags: Vec<String>,
    /// Goodput between which the faults limit it, bit/s. Outside something else did.
    pub expected_bps: Option<[f64; 2]>,
}

/// Programs that keep a core busy.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Spinners {
    /// The core.
    pub core: u32,
    /// Their number.
    pub count: u32,
}

impl Path {
    /// A path between two hosts with large buffers and without faults.
    pub fn bare(seed: u64, index: u32) -> Self {
        let ample = |first: &str| format!("4096 {first} 67108864");
        let sysctl = [("net.ipv4.tcp_rmem", ample("131072")), ("net.ipv4.tcp_wmem", ample("65536"))];
        Self {
            seed,
            index,
            name: String::new(),
            faults: Vec::new(),
            mtu: 1_500,
            rtt_ns: 0,
            jitter_ns: 0,
            rate_bps: None,
            queue_bytes: 0,
            discipline: None,
            loss: 0.0,
            hole: None,
            reorder: None,
            back_bps: None,
            back_queue_bytes: 0,
            beside: false,
            reverse: false,
            cc: None,
            sysctl: sysctl.map(|(key, value)| (key.to_owned(), value)).into(),
            before: Vec::new(),
            spinners: None,
            flags: Vec::new(),
            expected_bps: None,
        }
    }

    /// Payload of a full TCP segment, bytes.
    pub fn mss(&self) -> f64 {
        f64::from(self.mtu - HEADERS)
    }

    /// Round trip in seconds.
    pub fn rtt_s(&self) -> f64 {
        self.rtt_ns as f64 / 1e9
    }

    /// Adds `--name value`.
    pub fn flag(&mut self, name: &str, value: impl Into<String>) {
        self.flags.extend([format!("--{name}"), value.into()]);
    }

    /// Adds an option of the sender.
    pub fn of_sender(&mut self, name: &str, value: &str) {
        let value = if self.reverse { format!(",{value}") } else { format!("{value},") };
        self.flag(name, value);
    }

    /// Adds an option of the receiver.
    pub fn of_receiver(&mut self, name: &str, value: &str) {
        let value = if self.reverse { format!("{value},") } else { format!(",{value}") };
        self.flag(name, value);
    }

    /// Narrows the goodput in which its faults limit it.
    pub fn expect(&mut self, low: f64, high: f64) {
        let [lowest, highest] = self.expected_bps.unwrap_or([0.0, f64::INFINITY]);
        self.expected_bps = Some([lowest.max(low), highest.min(high)]);
    }

    /// The path in one line.
    pub fn about(&self) -> String {
        let mut parts = vec![self.name.clone()];
        parts.extend(self.rate_bps.map(|bps| bits_per_second(bps as f64)));
        if self.rtt_ns > 0 {
            parts.push(seconds(self.rtt_ns as f64));
        }
        parts.push(format!("MTU {}", self.mtu));
        if self.jitter_ns > 0 {
            parts.push(format!("±{}", seconds(self.jitter_ns as f64)));
        }
        parts.extend(
            self.discipline.as_ref().map(|text| text.chars().filter(|one| one.is_alphabetic()).take(5).collect()),
        );
        if self.loss > 0.0 {
            parts.push(format!("loss {:.2} %", 100.0 * self.loss));
        }
        parts.extend(self.hole.map(|bytes| format!("carries {bytes} B")));
        parts.extend(self.reorder.map(|(share, ns)| format!("{:.1} % by {}", 100.0 * share, seconds(ns as f64))));
        parts.extend(self.back_bps.map(|bps| format!("back {}", bits_per_second(bps as f64))));
        parts.extend(self.beside.then(|| "beside iperf3".to_owned()));
        parts.extend(self.spinners.map(|one| format!("{} spinners on core {}", one.count, one.core)));
        format!("{}; {}", parts.join(", "), [self.flags.join(" "), self.before.join("; ")].join(" | "))
    }
}
