//! A host's counters around a pass, as its observers read them.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::first_part;
use crate::{CpuUse, Source, SourceFacts};

/// What the observers of one end read from the start of a pass to its end.
///
/// Counters are named `SOURCE.NAME` or `SOURCE.DEVICE.NAME`, with the kernel's own names: `snmp.Tcp.RetransSegs`,
/// `netstat.TcpExt.TCPTimeouts`, `softnet.dropped`, `dev.eth0.rx_bytes`, `qdisc.eth0.drops`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Observed {
    /// From the first reading to the last, ns.
    pub window_ns: u64,
    /// CPU time of the readings, ns.
    pub cost_ns: u64,
    /// The sources that were read. A counter of a source did not change if neither `counters` nor `missing` names it.
    pub sources: Vec<String>,
    /// Sources, devices and counters that could not be read, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What the sources are that another program added; absent for this program's own sources.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub source_facts: BTreeMap<String, SourceFacts>,
    /// The increase of each counter that changed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, i64>,
    /// Levels at the first and at the last reading: memory in bytes, numbers of sockets and processes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, [u64; 2]>,
    /// Readings over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<HostSeries>,
}

impl Observed {
    /// The increase of a counter: 0 if its source was read and it did not change, `None` if it is unknown.
    #[must_use]
    pub fn grew(&self, counter: &str) -> Option<i64> {
        if let Some(by) = self.counters.get(counter) {
            return Some(*by);
        }
        let source = counter.split('.').next().unwrap_or_default();
        let read =
            self.sources.iter().any(|read| read == source) && !self.missing.iter().any(|gap| covers(gap, counter));
        read.then_some(0)
    }
}

impl Observed {
    /// Whether a counter is one of losses and full buffers; false for those of an unknown source.
    #[must_use]
    pub fn is_loss(&self, counter: &str) -> bool {
        let other = || self.source_facts.get(first_part(counter));
        match Source::of(counter) {
            Some(source) => source.is_loss(counter),
            None => other().is_some_and(|source| source.is_loss(counter)),
        }
    }

    /// Whether an entry of [`missing`](Self::missing) is about a source by which limits are judged.
    #[must_use]
    pub fn is_evidence(&self, gap: &str) -> bool {
        let other = || self.source_facts.get(first_part(gap)).is_some_and(|source| source.is_evidence);
        Source::of(gap).map_or_else(other, |source| source.is_evidence)
    }
}

/// Whether an entry of `missing` (`dev.eth0: reason`) is about a counter.
fn covers(gap: &str, counter: &str) -> bool {
    let of = gap.split_once(": ").map_or(gap, |(of, _)| of);
    counter.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Readings over time, all at the same times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostSeries {
    /// Time of each reading, ns since this end started the pass.
    pub at_ns: Vec<u64>,
    /// The quantities: rates since the previous reading, or levels; the unit distinguishes them.
    pub lines: Vec<SeriesLine>,
}

/// One quantity over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SeriesLine {
    /// Name of the counter or level: `cpu.0.busy`, `softnet.dropped`, `dev.eth0.rx_bytes`.
    pub name: String,
    /// `1/s` or `B/s` for counters, `ratio` for shares of time, `B` or `packets` for levels.
    pub unit: String,
    /// One for each time; null if the source could not be read.
    pub values: Vec<Option<f64>>,
}

/// A host over one interval of `thru watch`. A source that could not be read is null and named in `missing`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Watched {
    /// End of the interval by the host's own clock, ns after 1970.
    pub at_unix_ns: u64,
    /// Length of the interval, ns.
    pub window_ns: u64,
    /// CPU time of each core.
    pub cpu: Option<CpuUse>,
    /// Threads that run or are ready to run, at the end.
    pub running: Option<u64>,
    /// Threads that wait for I/O, at the end.
    pub blocked: Option<u64>,
    /// Free memory, bytes.
    pub memory_free_bytes: Option<u64>,
    /// Memory available for new work, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Interrupts per second.
    pub interrupts_per_s: Option<f64>,
    /// Context switches per second.
    pub context_switches_per_s: Option<f64>,
    /// Packets per second that were dropped because a core's input queue was full.
    pub softnet_dropped_per_s: Option<f64>,
    /// How often per second packet processing stopped with work left.
    pub softnet_squeezed_per_s: Option<f64>,
    /// Interfaces that existed at the start and at the end of the interval.
    pub interfaces: Vec<WatchedInterface>,
    /// Established TCP connections at the end.
    pub tcp_established: Option<u64>,
    /// TCP segments received per second.
    pub tcp_in_per_s: Option<f64>,
    /// TCP segments sent per second, without retransmissions.
    pub tcp_out_per_s: Option<f64>,
    /// TCP segments retransmitted per second.
    pub tcp_retransmits_per_s: Option<f64>,
    /// UDP datagrams per second that could not be delivered, IPv4 and IPv6.
    pub udp_errors_per_s: Option<f64>,
    /// What could not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One interface over an interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct WatchedInterface {
    /// Name.
    pub name: String,
    /// Received, bit/s as the interface counts them.
    pub rx_bps: f64,
    /// Received packets per second.
    pub rx_packets_per_s: f64,
    /// Sent, bit/s.
    pub tx_bps: f64,
    /// Sent packets per second.
    pub tx_packets_per_s: f64,
    /// Packets per second that were dropped in either direction.
    pub drops_per_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchanged_counter_is_0_and_an_unread_one_is_unknown() {
        let seen = Observed {
            sources: vec!["snmp".into(), "dev".into()],
            missing: vec![
                "rapl: no such folder".into(),
                "dev.eth1: removed before the end".into(),
                "dev.eth2.rx_bytes: decreased".into(),
            ],
            counters: [("snmp.Tcp.RetransSegs".to_owned(), 7)].into(),
            ..Observed::default()
        };
        assert_eq!(seen.grew("snmp.Tcp.RetransSegs"), Some(7));
        assert_eq!(seen.grew("snmp.Udp.RcvbufErrors"), Some(0));
        assert_eq!(seen.grew("rapl.package-0"), None);
        assert_eq!((seen.grew("dev.eth1.rx_bytes"), seen.grew("dev.eth10.rx_bytes")), (None, Some(0)));
        assert_eq!((seen.grew("dev.eth2.rx_bytes"), seen.grew("dev.eth2.tx_bytes")), (None, Some(0)));
    }

    #[test]
    fn a_document_carries_the_facts_of_a_source_that_its_readers_may_not_know() {
        let port =
            Source { name: "port", per_device: true, is_evidence: true, losses: &["lost"], ..crate::source::RECORDED };
        let seen = Observed { source_facts: [("port".to_owned(), (&port).into())].into(), ..Observed::default() };
        let read: Observed = serde_json::from_str(&serde_json::to_string(&seen).unwrap()).unwrap();
        assert!(read.is_loss("port.p1.lost") && !read.is_loss("port.p1.sent") && !read.is_loss("other.p1.lost"));
        assert!(read.is_evidence("port: no such file") && !read.is_evidence("other: no such file"));
        assert!(read.is_loss("dev.eth0.rx_errors") && read.is_evidence("dev: no such file"), "without facts, too");
    }
}
