//! The names of counters for people: `snmp.Tcp.RetransSegs` counts retransmitted segments.

/// What a counter of a host counts; its own name where there are no better words.
pub(super) fn in_words(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let words = match parts.as_slice() {
        ["cpu", core, "busy"] => return format!("core {core}"),
        ["cpu", core, share] => return format!("core {core}, {share}"),
        ["dev", device, "rx_bytes"] => return format!("{device}, received"),
        ["dev", device, "tx_bytes"] => return format!("{device}, sent"),
        ["dev", device, "rx_dropped"] => return format!("{device}, dropped on receipt"),
        ["dev", device, "tx_dropped"] => return format!("{device}, dropped on sending"),
        ["qdisc", device, .., "drops"] => return format!("{device}, dropped by the queue"),
        ["qdisc", device, .., "backlog"] => return format!("{device}, waiting in the queue"),
        ["stat", "ctxt"] => "context switches",
        ["stat", "intr"] => "interrupts",
        ["softnet", "dropped"] => "packets dropped before the stack",
        ["softnet", "squeezed"] => "rounds of the stack that ran out of time",
        ["snmp", "Tcp", "RetransSegs"] => "retransmitted segments",
        ["snmp", "Udp", "RcvbufErrors"] => "datagrams dropped at a full receive buffer",
        ["snmp", "Udp", "SndbufErrors"] => "datagrams dropped at a full send buffer",
        ["sockstat", "TCP", "mem"] => "memory of TCP sockets",
        ["sockstat", "UDP", "mem"] => "memory of UDP sockets",
        _ => name,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_what_they_count() {
        let names = ["cpu.1.busy", "cpu.0.softirq", "dev.eth0.tx_bytes", "snmp.Tcp.RetransSegs", "snmp.Ip.Forwarding"];
        let words = ["core 1", "core 0, softirq", "eth0, sent", "retransmitted segments", "snmp.Ip.Forwarding"];
        assert_eq!(names.map(in_words), words);
    }
}
