//! What a host's counters did around a pass, as its observers read them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the observers of one end saw from the start of a pass to its end.
///
/// Counters are named `SOURCE.NAME` or `SOURCE.DEVICE.NAME`, with the kernel's own names: `snmp.Tcp.RetransSegs`,
/// `netstat.TcpExt.TCPTimeouts`, `softnet.dropped`, `dev.eth0.rx_bytes`, `qdisc.eth0.drops`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Observed {
    /// From the first reading to the last, ns.
    pub window_ns: u64,
    /// CPU time that reading cost, ns.
    pub cost_ns: u64,
    /// The sources that were read. A counter of one of them that `counters` does not name did not change.
    pub sources: Vec<String>,
    /// Sources that could not be read, with the reason: nothing is known of their counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What each counter that changed grew by.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, i64>,
    /// Readings over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<HostSeries>,
}

impl Observed {
    /// What a counter grew by: 0 where its source was read and it did not change, `None` where nothing is known of it.
    #[must_use]
    pub fn grew(&self, counter: &str) -> Option<i64> {
        let source = counter.split('.').next().unwrap_or_default();
        self.counters.get(counter).copied().or_else(|| self.sources.iter().any(|read| read == source).then_some(0))
    }
}

/// Readings over time, all taken at the same moments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostSeries {
    /// When each reading was taken, ns since this end started the pass.
    pub at_ns: Vec<u64>,
    /// What was read: rates since the reading before, or levels, as the unit says.
    pub lines: Vec<SeriesLine>,
}

/// One quantity over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesLine {
    /// A counter's name, or what the level is of: `cpu.0.busy`, `softnet.dropped`, `dev.eth0.rx_bytes`.
    pub name: String,
    /// `1/s` or `B/s` for counters, `ratio` for shares of time, `B` or `packets` for levels.
    pub unit: String,
    /// One for each moment; null where the source could not be read then.
    pub values: Vec<Option<f64>>,
}
