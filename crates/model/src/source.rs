//! The sources of a host's counters, and the counters that are used by name: each name stands here only. The observers are in
//! host, whose registry refers to these sources.
//!
//! The constants are this program's own sources. Every reader of documents has them, so documents do not carry their facts. A source
//! that another program adds states its facts in its observer's entry, and documents carry them.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source of counters: its name and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its name, the first part of its counters' names.
    pub name: &'static str,
    /// Its counters are those of devices: `SOURCE.DEVICE.COLUMN`.
    pub per_device: bool,
    /// Rules of what limits and the locations of drops use its counters.
    pub is_evidence: bool,
    /// `thru watch` shows it.
    pub is_watched: bool,
    /// Counters of losses and of full buffers, or such columns of a source with devices: reports name those that increased.
    pub losses: &'static [&'static str],
}

/// What readers of a document need to know of a source that another program added ([`Observed::source_facts`](crate::Observed)).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct SourceFacts {
    /// Its counters are those of devices: `SOURCE.DEVICE.COLUMN`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub per_device: bool,
    /// What limits the measurement is judged by its counters, so a failure to read it is worth a note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_evidence: bool,
    /// Counters of losses and of full buffers, or such columns of a source with devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

impl SourceFacts {
    /// Whether a counter of this source is one of losses and full buffers.
    #[must_use]
    pub fn is_loss(&self, counter: &str) -> bool {
        is_loss(counter, self.per_device, &self.losses)
    }
}

impl From<&Source> for SourceFacts {
    fn from(source: &Source) -> Self {
        let losses = source.losses.iter().map(|name| (*name).to_owned()).collect();
        Self { per_device: source.per_device, is_evidence: source.is_evidence, losses }
    }
}

/// A source that is recorded only; further sources state how they differ.
pub const RECORDED: Source = Source { name: "", per_device: false, is_evidence: false, is_watched: false, losses: &[] };

/// CPU time of each core.
pub const CPU: Source = Source { name: "cpu", ..RECORDED };
/// /proc/stat.
pub const STAT: Source = Source { name: "stat", is_watched: true, ..RECORDED };
/// /proc/net/softnet_stat.
pub const SOFTNET: Source =
    Source { name: "softnet", is_evidence: true, is_watched: true, losses: &[counter::SOFTNET_DROPPED], ..RECORDED };
/// /proc/net/snmp.
pub const SNMP: Source = Source {
    name: "snmp",
    is_evidence: true,
    is_watched: true,
    losses: &[counter::UDP_RCVBUF_ERRORS, counter::UDP_SNDBUF_ERRORS],
    ..RECORDED
};
/// /proc/net/netstat.
pub const NETSTAT: Source = Source {
    name: "netstat",
    is_evidence: true,
    losses: &[
        counter::TCP_RCVQ_DROP,
        counter::TCP_BACKLOG_DROP,
        counter::TCP_OFO_DROP,
        counter::TCP_PRUNE_CALLED,
        counter::TCP_LISTEN_OVERFLOWS,
        counter::TCP_TIMEOUTS,
    ],
    ..RECORDED
};
/// /proc/net/snmp6.
pub const SNMP6: Source = Source {
    name: "snmp6",
    is_evidence: true,
    is_watched: true,
    losses: &[counter::UDP6_RCVBUF_ERRORS, counter::UDP6_SNDBUF_ERRORS],
    ..RECORDED
};
/// /proc/net/sockstat and sockstat6.
pub const SOCKSTAT: Source = Source { name: "sockstat", is_watched: true, ..RECORDED };
/// /proc/meminfo.
pub const MEMINFO: Source = Source { name: "meminfo", is_watched: true, ..RECORDED };
/// /proc/net/dev.
pub const DEV: Source = Source {
    name: "dev",
    per_device: true,
    is_evidence: true,
    is_watched: true,
    losses: &[column::RX_DROPPED, column::TX_DROPPED, column::RX_ERRORS, column::TX_ERRORS],
};
/// Queueing disciplines.
pub const QDISC: Source =
    Source { name: "qdisc", per_device: true, is_evidence: true, losses: &[column::DROPS], ..RECORDED };
/// Counters of network drivers.
pub const ETHTOOL: Source = Source { name: "ethtool", ..RECORDED };
/// /proc/interrupts.
pub const IRQ: Source = Source { name: "irq", ..RECORDED };
/// Energy of processor packages.
pub const RAPL: Source = Source { name: "rapl", ..RECORDED };
/// Processor events.
pub const PERF: Source = Source { name: "perf", ..RECORDED };
/// Scheduling of thru's own threads.
pub const SCHED: Source = Source { name: "sched", ..RECORDED };

/// This program's own sources, in the order in which the observers read.
pub const SOURCES: [Source; 15] =
    [CPU, STAT, SOFTNET, SNMP, NETSTAT, SNMP6, SOCKSTAT, MEMINFO, DEV, QDISC, ETHTOOL, IRQ, RAPL, PERF, SCHED];

impl Source {
    /// The source among these of a counter or of an entry of [`Observed::missing`](crate::Observed); `None` if it is another.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        SOURCES.iter().find(|source| source.has(name))
    }

    /// Whether a counter, or an entry of [`Observed::missing`](crate::Observed), is about this source.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        first_part(name) == self.name
    }

    /// Whether a counter is one of this source.
    #[must_use]
    pub fn owns(&self, counter: &str) -> bool {
        counter.strip_prefix(self.name).is_some_and(|rest| rest.starts_with('.'))
    }

    /// The device and the column of a counter of this source; `None` if the counter is not one of a device of it.
    #[must_use]
    pub fn device<'a>(&self, counter: &'a str) -> Option<(&'a str, &'a str)> {
        counter
            .strip_prefix(self.name)
            .and_then(|rest| rest.strip_prefix('.'))
            .filter(|_| self.per_device)?
            .rsplit_once('.')
    }

    /// Whether a counter of this source is one of losses and full buffers. A qdisc's root counts the drops of its classes, too, so
    /// these are left out.
    #[must_use]
    pub fn is_loss(&self, counter: &str) -> bool {
        self.owns(counter) && is_loss(counter, self.per_device, self.losses)
    }
}

/// The name of the source of a counter, or of an entry of [`Observed::missing`](crate::Observed).
#[must_use]
pub fn first_part(name: &str) -> &str {
    name.split(['.', ':']).next().unwrap_or(name)
}

fn is_loss(counter: &str, per_device: bool, losses: &[impl AsRef<str>]) -> bool {
    let listed = |name: &str| losses.iter().any(|loss| loss.as_ref() == name);
    let rest = counter.split_once('.').map_or("", |(_, rest)| rest);
    match rest.rsplit_once('.').filter(|_| per_device) {
        Some((device, column)) => !device.contains(':') && listed(column),
        None => listed(counter),
    }
}

macro_rules! names {
    ($(#[doc = $about:literal] $name:ident = $text:literal;)*) => {
        $(#[doc = $about] pub const $name: &str = $text;)*
        /// All of them.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

/// Counters that are used by name.
pub mod counter {
    names! {
        /// Context switches.
        CONTEXT_SWITCHES = "stat.ctxt";
        /// Interrupts.
        INTERRUPTS = "stat.intr";
        /// Threads that run or are ready to.
        RUNNING = "stat.procs_running";
        /// Threads that wait for I/O.
        BLOCKED = "stat.procs_blocked";
        /// Packets that soft interrupts processed.
        SOFTNET_PROCESSED = "softnet.processed";
        /// Packets dropped because a core's input queue was full.
        SOFTNET_DROPPED = "softnet.dropped";
        /// How often processing stopped with packets left.
        SOFTNET_SQUEEZED = "softnet.squeezed";
        /// IP datagrams discarded for lack of buffers.
        IP_IN_DISCARDS = "snmp.Ip.InDiscards";
        /// IP datagrams with errors in their headers.
        IP_IN_HEADER_ERRORS = "snmp.Ip.InHdrErrors";
        /// Failed reassemblies of IP fragments.
        IP_REASSEMBLY_FAILS = "snmp.Ip.ReasmFails";
        /// Established TCP connections.
        TCP_ESTABLISHED = "snmp.Tcp.CurrEstab";
        /// TCP segments received.
        TCP_IN_SEGMENTS = "snmp.Tcp.InSegs";
        /// TCP segments sent, without retransmissions.
        TCP_OUT_SEGMENTS = "snmp.Tcp.OutSegs";
        /// TCP segments retransmitted.
        TCP_RETRANSMITTED = "snmp.Tcp.RetransSegs";
        /// UDP datagrams that could not be delivered.
        UDP_IN_ERRORS = "snmp.Udp.InErrors";
        /// UDP datagrams that found a receive buffer full.
        UDP_RCVBUF_ERRORS = "snmp.Udp.RcvbufErrors";
        /// UDP datagrams that found a send buffer full.
        UDP_SNDBUF_ERRORS = "snmp.Udp.SndbufErrors";
        /// As `UDP_IN_ERRORS`, over IPv6.
        UDP6_IN_ERRORS = "snmp6.Udp6InErrors";
        /// As `UDP_RCVBUF_ERRORS`, over IPv6.
        UDP6_RCVBUF_ERRORS = "snmp6.Udp6RcvbufErrors";
        /// As `UDP_SNDBUF_ERRORS`, over IPv6.
        UDP6_SNDBUF_ERRORS = "snmp6.Udp6SndbufErrors";
        /// Reports of segments that arrived twice (D-SACK).
        TCP_DSACK_RECEIVED = "netstat.TcpExt.TCPDSACKRecv";
        /// Segments dropped at a full receive queue.
        TCP_RCVQ_DROP = "netstat.TcpExt.TCPRcvQDrop";
        /// Segments dropped at a full backlog.
        TCP_BACKLOG_DROP = "netstat.TcpExt.TCPBacklogDrop";
        /// Out-of-order segments dropped for lack of memory.
        TCP_OFO_DROP = "netstat.TcpExt.TCPOFODrop";
        /// Segments pruned from a receive queue.
        TCP_RCV_PRUNED = "netstat.TcpExt.RcvPruned";
        /// How often a receive queue was pruned.
        TCP_PRUNE_CALLED = "netstat.TcpExt.PruneCalled";
        /// Connections that found a full queue of a listener.
        TCP_LISTEN_OVERFLOWS = "netstat.TcpExt.ListenOverflows";
        /// Retransmission timeouts.
        TCP_TIMEOUTS = "netstat.TcpExt.TCPTimeouts";
        /// Free memory, bytes.
        MEMORY_FREE = "meminfo.MemFree";
        /// Memory that is available for new work, bytes.
        MEMORY_AVAILABLE = "meminfo.MemAvailable";
    }
}

/// Columns of the sources with devices that are used by name.
pub mod column {
    names! {
        /// Bytes received by an interface.
        RX_BYTES = "rx_bytes";
        /// Packets received by an interface.
        RX_PACKETS = "rx_packets";
        /// Received packets that an interface dropped.
        RX_DROPPED = "rx_dropped";
        /// Receive errors of an interface.
        RX_ERRORS = "rx_errors";
        /// Bytes sent by an interface.
        TX_BYTES = "tx_bytes";
        /// Packets sent by an interface.
        TX_PACKETS = "tx_packets";
        /// Packets to send that an interface dropped.
        TX_DROPPED = "tx_dropped";
        /// Send errors of an interface.
        TX_ERRORS = "tx_errors";
        /// Packets that a qdisc dropped.
        DROPS = "drops";
        /// How often a qdisc held packets back to keep its rate.
        OVERLIMITS = "overlimits";
        /// Bytes queued in a qdisc.
        BACKLOG = "backlog";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_belongs_to_the_source_that_its_name_begins_with() {
        for name in counter::ALL {
            assert!(Source::of(name).is_some_and(|source| !source.per_device), "{name}");
        }
        assert_eq!(Source::of("rapl: no such folder"), Some(&RAPL));
        assert_eq!((Source::of("snmp6.Udp6InErrors"), Source::of("sockstatx.a")), (Some(&SNMP6), None));
        let losses = SOURCES.iter().filter(|source| !source.per_device).flat_map(|source| source.losses);
        assert!(losses.copied().all(|name| Source::of(name).is_some_and(|source| source.is_loss(name))));
    }

    #[test]
    fn the_column_of_a_device_is_what_follows_the_last_dot() {
        assert_eq!(DEV.device("dev.eth0.100.rx_bytes"), Some(("eth0.100", "rx_bytes")));
        assert_eq!((DEV.device("qdisc.eth0.drops"), STAT.device("stat.intr")), (None, None));
        assert!(QDISC.is_loss("qdisc.eth0.drops") && !QDISC.is_loss("qdisc.eth0.1:10.drops"));
        assert!(DEV.is_loss("dev.eth0.rx_errors") && !DEV.is_loss("dev.eth0.rx_bytes"));
    }
}
