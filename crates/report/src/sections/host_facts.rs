//! A host's inventory and its path as named texts, for `thru host` and for the page's table of both hosts.

use std::collections::BTreeMap;

use model::{ByteSize, CpuAccounting, Device, Interface, Inventory, Path, units};

/// One fact as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostFact {
    /// Its group: `host`, `processor`, `kernel`, `memory and limits`.
    pub(crate) group: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// Its value; `None` if it is unknown.
    pub(crate) value: Option<String>,
    /// Whether equal hosts are expected to differ in it, such as in free memory.
    pub(crate) expected_to_differ: bool,
}

/// The facts of a host, without interfaces and settings.
pub(crate) fn host_facts(host: &Inventory) -> Vec<HostFact> {
    let mut all = Vec::new();
    let mut add = |group, name: &str, expected_to_differ, value: Option<String>| {
        let value = value.filter(|text| !text.is_empty());
        all.push(HostFact { group, name: name.to_owned(), value, expected_to_differ });
    };
    let size = |bytes: u64| ByteSize(bytes).to_string();
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    add("host", "host name", true, host.hostname.clone());
    add("host", "kernel", false, host.kernel.clone());
    add("host", "kernel build", false, host.kernel_version.clone());
    add("host", "architecture", false, host.arch.clone());
    add("host", "distribution", false, host.os.clone());
    add("host", "virtualisation", false, host.virtualisation.clone());
    add("host", "boot", true, host.boot_id.clone());
    add("processor", "processor", false, host.cpu_model.clone());
    add("processor", "processors online", false, number(host.cores));
    add("processor", "NUMA nodes", false, number(host.numa_nodes));
    let processor = host.processor.clone().unwrap_or_default();
    add("processor", "model and microcode", false, Some(pairs(&processor.identity, " ")));
    add("processor", "cores online", false, processor.online);
    let layout = processor.sockets.zip(processor.cores_per_socket).zip(processor.threads_per_core);
    let layout = layout.map(|((sockets, cores), threads)| format!("{sockets} x {cores} x {threads}"));
    add("processor", "sockets x cores x threads", false, layout);
    add("processor", "cores of NUMA nodes", false, Some(pairs(&processor.node_cores, ": ")));
    let caches = processor.cache_bytes.iter().map(|(name, bytes)| format!("{name} {}", size(*bytes)));
    add("processor", "caches", false, Some(caches.collect::<Vec<_>>().join(", ")));
    add("processor", "flags", false, Some(processor.flags.join(" ")));
    let hertz = |hz: u64| format!("{:.2} GHz", hz as f64 / 1e9);
    let range = processor.min_hz.zip(processor.max_hz).map(|(low, high)| format!("{} to {}", hertz(low), hertz(high)));
    add("processor", "frequency", false, range);
    add("processor", "frequency governor", false, governors(host));
    add("processor", "isolated cores", false, processor.isolated);
    let mitigated = processor.mitigations.iter().filter(|(_, word)| *word != "Not affected");
    let mitigated: BTreeMap<_, _> = mitigated.map(|(name, word)| (name.clone(), word.clone())).collect();
    add("processor", "mitigations", false, Some(pairs(&mitigated, ": ")));
    let kernel = host.kernel_setup.clone().unwrap_or_default();
    add("kernel", "boot parameters", false, Some(kernel.parameters.join(" ")));
    add("kernel", "preemption", false, kernel.preemption);
    let from = kernel.hz_source.as_ref().map_or(String::new(), |source| format!(" ({source})"));
    add("kernel", "ticks per second", false, kernel.hz.map(|hz| format!("{hz}{from}")));
    add("kernel", "CPU time", false, kernel.cpu_accounting.as_ref().map(accounting));
    add("kernel", "clock source", false, host.clock_source.clone());
    add("kernel", "clock sources available", false, Some(kernel.clock_sources.join(" ")));
    add("kernel", "irqbalance", false, host.irqbalance.map(|runs| if runs { "running" } else { "not running" }.into()));
    add("kernel", "tuned profile", false, host.tuned_profile.clone());
    add("kernel", "congestion controls", false, Some(host.congestion_controls.join(", ")));
    add("memory and limits", "memory", false, host.memory_bytes.map(size));
    add("memory and limits", "memory available", true, host.memory_available_bytes.map(size));
    let load = host.load_average.map(|load| load.map(|value| format!("{value:.2}")).join(", "));
    add("memory and limits", "load average", true, load);
    add("memory and limits", "huge pages", false, Some(pairs(&host.hugepages, " ")));
    add("memory and limits", "control groups", false, host.limits.as_ref().map(limits));
    all
}

/// How the kernel accounts CPU time.
fn accounting(of: &CpuAccounting) -> String {
    let cores = match of.exact_cores.as_deref() {
        None => "sampled: each tick is charged to the task that it interrupts".to_owned(),
        Some("all") => "exact on all cores".to_owned(),
        Some(cores) => format!("exact on cores {cores}, sampled by ticks on the others"),
    };
    let interrupts = if of.interrupts_timed { ", interrupts timed separately" } else { "" };
    format!("{cores}{interrupts} ({})", of.option)
}

/// The resolution of CPU time: how often the kernel samples it, if known, and the step of the reported values.
pub(crate) fn cpu_time_resolution(resolution_ns: u64, host: &Inventory) -> String {
    let step = units::seconds(resolution_ns as f64);
    let kernel = host.kernel_setup.as_ref();
    let exact = kernel.and_then(|kernel| kernel.cpu_accounting.as_ref()).is_some_and(|of| of.exact_cores.is_some());
    match kernel.and_then(model::KernelSetup::tick_ns).filter(|_| !exact) {
        Some(tick) => format!("sampled every {}, resolution {step}", units::seconds(tick as f64)),
        None => format!("resolution {step}"),
    }
}

/// One governor for all cores, or one by policy.
fn governors(host: &Inventory) -> Option<String> {
    let by_policy = host.processor.as_ref().map(|processor| &processor.governors)?;
    let first = by_policy.values().next();
    if by_policy.values().all(|governor| Some(governor) == first) {
        return first.cloned().or_else(|| host.governor.clone());
    }
    Some(pairs(by_policy, ": "))
}

fn limits(limits: &model::ResourceLimits) -> String {
    let parts = [
        limits.cpus.map(|cpus| format!("{cpus:.2} cores")),
        limits.memory_bytes.map(|bytes| format!("{} of memory", ByteSize(bytes))),
        limits.cores.as_ref().map(|cores| format!("cores {cores}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let limit = if parts.is_empty() { "no limit".into() } else { parts.join(", ") };
    format!("version {}: {limit}", limits.version)
}

fn pairs<V: std::fmt::Display>(map: &BTreeMap<String, V>, between: &str) -> String {
    map.iter().map(|(name, value)| format!("{name}{between}{value}")).collect::<Vec<_>>().join("; ")
}

/// An interface in one line, with what ifconfig shows.
pub(crate) fn interface_line(of: &Interface) -> String {
    let kind = of.device.as_ref().and_then(|device| device.kind.clone());
    let parts = [
        of.state.clone(),
        kind,
        of.mtu.map(|mtu| format!("MTU {mtu}")),
        of.speed_mbps.map(|mbps| units::bits_per_second(f64::from(mbps) * 1e6)),
        of.duplex.clone().map(|duplex| format!("{duplex} duplex")),
        of.driver.clone(),
        of.txqueuelen.map(|length| format!("txqueuelen {length}")),
        of.rx_queues.zip(of.tx_queues).map(|(rx, tx)| format!("{rx} rx and {tx} tx queues")),
        of.numa_node.map(|node| format!("NUMA node {node}")),
        of.pci_slot.clone(),
        Some(of.addresses.join(" ")).filter(|list| !list.is_empty()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Further facts of an interface's device, as names and values; unknown ones are left out.
pub(crate) fn device_facts(device: &Device) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let mut add =
        |name, value: Option<String>| all.extend(value.filter(|text| !text.is_empty()).map(|text| (name, text)));
    add("product", device.product.clone());
    add("hardware address", device.mac.clone());
    add("flags", Some(device.flags.join(" ")));
    add("member of", device.master.clone());
    add("lower devices", Some(device.lower.join(" ")));
    add("VLAN", device.vlan.map(|vlan| vlan.to_string()));
    add("bond mode", device.bond_mode.clone());
    add("qdisc", Some(device.qdiscs.join("; ")));
    let segments = device.gso_max_bytes.zip(device.gro_max_bytes);
    add("largest GSO and GRO", segments.map(|(gso, gro)| format!("{gso} and {gro} bytes")));
    add("driver version", device.driver_version.clone());
    add("driver parameters", Some(pairs(&device.driver_parameters, " ")));
    add("firmware", device.firmware.clone());
    add("bus", device.bus.clone());
    add("rings", Some(pairs(&device.rings, " ")));
    add("queues", Some(pairs(&device.channels, " ")));
    add("coalescing", Some(pairs(&device.coalescing, " ")));
    let switch = |on: &bool| if *on { "on" } else { "off" };
    let pause: BTreeMap<String, &str> = device.pause.iter().map(|(name, on)| (name.clone(), switch(on))).collect();
    add("pause frames", Some(pairs(&pause, " ")));
    for (name, wanted) in
        [("offloads on", "on"), ("offloads off (changeable)", "off"), ("offloads always on", "on [fixed]")]
    {
        let names = device.offloads.iter().filter(|(_, state)| *state == wanted).map(|(name, _)| name.as_str());
        add(name, Some(names.collect::<Vec<_>>().join(" ")));
    }
    if let Some(link) = &device.link {
        add("autonegotiation", link.autoneg.map(|on| if on { "on" } else { "off" }.into()));
        add("advertised modes", Some(link.advertised.join(" ")));
        add("peer's modes", Some(link.peer.join(" ")));
    }
    if let Some(module) = &device.module {
        let parts = [&module.kind, &module.vendor, &module.part, &module.revision];
        add("module", Some(parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")));
    }
    if let Some(stamps) = &device.timestamping {
        let clock = stamps.clock.map_or(String::new(), |number| format!(", clock {number}"));
        add("timestamps", Some(format!("{}{clock}", stamps.capabilities.join(" "))));
    }
    if let Some(pci) = &device.pci {
        let link = |mts: Option<u32>, width: Option<u32>| {
            let (width, rate) = (width?, f64::from(mts?) / 1e3);
            Some(format!("{width} lane{} of {rate} GT/s", if width == 1 { "" } else { "s" }))
        };
        let parts = [
            pci.id.clone(),
            link(pci.speed_mts, pci.width),
            link(pci.max_speed_mts, pci.max_width).map(|max| format!("capable of {max}")),
            pci.max_clock_mhz.map(|mhz| format!("without PCI Express, at most {mhz} MHz")),
            pci.bus_bits.map(|bits| format!("{bits} bits")),
            pci.read_request_bytes.map(|bytes| format!("reads of {bytes} bytes")),
            pci.payload_bytes.map(|bytes| format!("payload of {bytes} bytes")),
        ];
        add("PCI", Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    }
    let irq = |irq: &model::Irq| {
        let line = irq.line.as_deref().unwrap_or("?");
        format!("{line} ({}) on {}", irq.irq, irq.cores.as_deref().unwrap_or("?"))
    };
    add("interrupts", Some(device.irqs.iter().map(irq).collect::<Vec<_>>().join("; ")));
    add("steering", Some(pairs(&device.steering, " ")));
    if let Some(neighbour) = &device.neighbour {
        let parts = [&neighbour.system, &neighbour.port, &neighbour.port_description];
        add("neighbour (LLDP)", Some(parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", ")));
    }
    add("kernel message", device.kernel_message.clone());
    let counted: BTreeMap<String, u64> =
        device.totals.iter().filter(|(_, count)| **count > 0).map(|(name, count)| (name.clone(), *count)).collect();
    add("counters", Some(pairs(&counted, " ")));
    let rate =
        |packets: f64, bits: f64| format!("{} packets/s, {}", units::count(packets), units::bits_per_second(bits));
    add(
        "traffic before the run",
        device.traffic.map(|seen| {
            format!("in {}; out {}", rate(seen.rx_packets_per_s, seen.rx_bps), rate(seen.tx_packets_per_s, seen.tx_bps))
        }),
    );
    all
}

/// A path as names and values; unknown facts are left out.
pub(crate) fn path_facts(path: &Path) -> Vec<(&'static str, String)> {
    let mut all = vec![("peer", path.peer.clone())];
    let mut add = |name, value: Option<String>| all.extend(value.map(|text| (name, text)));
    if let Some(route) = &path.route {
        let parts = [
            route.interface.as_ref().map(|name| format!("via {name}")),
            route.source.as_ref().map(|source| format!("from {source}")),
            Some(route.gateway.as_ref().map_or("no gateway".into(), |gateway| format!("gateway {gateway}"))),
            route.mtu.map(|mtu| format!("MTU {mtu}")),
            route.initcwnd.map(|window| format!("initcwnd {window}")),
            route.initrwnd.map(|window| format!("initrwnd {window}")),
            route.advmss.map(|mss| format!("advmss {mss}")),
            route.cc.as_ref().map(|cc| format!("congestion control {cc}")),
            route.quickack.map(|on| format!("quickack {}", u8::from(on))),
        ];
        add("route", Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    }
    add(
        "path MTU",
        path.mtu.as_ref().map(|mtu| {
            let confirmed = if mtu.confirmed { "confirmed" } else { "not confirmed" };
            let reported = mtu.reported_by.as_ref().map_or(String::new(), |router| format!(", reported by {router}"));
            format!("{} bytes ({}, {confirmed}{reported})", mtu.bytes, mtu.method)
        }),
    );
    add(
        "ping",
        path.ping.as_ref().map(|ping| {
            let counts = format!("{} of {} answered", ping.received, ping.sent);
            let times = ping.min_ns.zip(ping.median_ns).zip(ping.max_ns).map(|((min, median), max)| {
                let [min, median, max] = [min, median, max].map(|ns| units::seconds(ns as f64));
                format!(", {min} / {median} / {max} (min, median, max)")
            });
            counts + &times.unwrap_or_default()
        }),
    );
    add(
        "hops",
        path.hops.as_ref().map(|hops| {
            let hop = |hop: &model::Hop| {
                let shortest: Vec<u64> = hop.rtt_ns.into_iter().collect();
                let times = if hop.rtts_ns.is_empty() { &shortest } else { &hop.rtts_ns };
                let times: String = times.iter().map(|ns| format!(" {}", units::seconds(*ns as f64))).collect();
                let silent = hop.probes.map_or(0, |probes| (probes as usize).saturating_sub(hop.rtts_ns.len()));
                let silent = if hop.rtts_ns.is_empty() { String::new() } else { " *".repeat(silent) };
                let others: String = hop.others.iter().map(|other| format!(" {other}")).collect();
                format!("{} {}{others}{times}{silent}", hop.hop, hop.address.as_deref().unwrap_or("no reply"))
            };
            hops.iter().map(hop).collect::<Vec<_>>().join("; ")
        }),
    );
    add("not determined", Some(path.missing.join("; ")).filter(|text| !text.is_empty()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Hop, PathMtu, Pci, Ping, Route};

    fn value(facts: &[(&'static str, String)], name: &str) -> Option<String> {
        facts.iter().find(|fact| fact.0 == name).map(|fact| fact.1.clone())
    }

    #[test]
    fn unknown_facts_of_a_device_are_left_out() {
        let offloads =
            [("rx-gro", "on"), ("rx-lro", "off"), ("tx-lockless", "on [fixed]"), ("esp-hw-offload", "off [fixed]")];
        let device = Device {
            offloads: offloads.map(|(name, state)| (name.to_owned(), state.to_owned())).into(),
            pci: Some(Pci { speed_mts: Some(2_500), width: Some(1), ..Pci::default() }),
            ..Device::default()
        };
        let facts = device_facts(&device);
        let names: Vec<&str> = facts.iter().map(|fact| fact.0).collect();
        assert_eq!(names, ["offloads on", "offloads off (changeable)", "offloads always on", "PCI"]);
        assert_eq!(value(&facts, "offloads off (changeable)").as_deref(), Some("rx-lro"));
        assert_eq!(value(&facts, "PCI").as_deref(), Some("1 lane of 2.5 GT/s"));
        assert_eq!(device_facts(&Device::default()), []);
    }

    #[test]
    fn the_accounting_of_cpu_time_is_explained() {
        let mut host = Inventory::default();
        assert_eq!(cpu_time_resolution(10_000_000, &host), "resolution 10.0 ms");
        let tick = CpuAccounting { option: "TICK_CPU_ACCOUNTING".into(), ..CpuAccounting::default() };
        host.kernel_setup = Some(model::KernelSetup {
            hz: Some(250),
            hz_source: Some("/proc/config.gz".into()),
            cpu_accounting: Some(tick),
            ..model::KernelSetup::default()
        });
        assert_eq!(cpu_time_resolution(10_000_000, &host), "sampled every 4.00 ms, resolution 10.0 ms");
        let value_of = |host: &Inventory, name: &str| {
            let facts = host_facts(host);
            facts.into_iter().find(|fact| fact.name == name).and_then(|fact| fact.value).unwrap()
        };
        assert_eq!(value_of(&host, "ticks per second"), "250 (/proc/config.gz)");
        assert_eq!(
            value_of(&host, "CPU time"),
            "sampled: each tick is charged to the task that it interrupts (TICK_CPU_ACCOUNTING)"
        );
        let exact = host.kernel_setup.as_mut().unwrap().cpu_accounting.as_mut().unwrap();
        *exact = CpuAccounting {
            option: "VIRT_CPU_ACCOUNTING_GEN".into(),
            exact_cores: Some("1-7".into()),
            interrupts_timed: true,
        };
        // Exact accounting does not depend on the tick.
        assert_eq!(cpu_time_resolution(10_000_000, &host), "resolution 10.0 ms");
        let text = value_of(&host, "CPU time");
        assert!(text.starts_with("exact on cores 1-7, ") && text.contains("interrupts timed separately"), "{text}");
    }

    #[test]
    fn a_path_lists_hops_without_a_reply_and_leaves_unknown_times_out() {
        let hop = |hop, address: Option<&str>| Hop {
            hop,
            address: address.map(str::to_owned),
            rtt_ns: address.map(|_| 2_000_000),
            ..Hop::default()
        };
        let several = Hop {
            rtts_ns: vec![2_100_000, 2_000_000],
            probes: Some(3),
            others: vec!["192.0.2.3".into()],
            ..hop(3, Some("192.0.2.2"))
        };
        let path = Path {
            peer: "192.0.2.9".into(),
            route: Some(Route { interface: Some("eth0".into()), initcwnd: Some(20), ..Route::default() }),
            mtu: Some(PathMtu {
                bytes: 1_400,
                method: "udp".into(),
                confirmed: false,
                reported_by: Some("192.0.2.1".into()),
            }),
            ping: Some(Ping { sent: 10, ..Ping::default() }),
            hops: Some(vec![hop(1, None), hop(2, Some("192.0.2.9")), several]),
            ..Path::default()
        };
        let facts = path_facts(&path);
        assert_eq!(value(&facts, "route").as_deref(), Some("via eth0, no gateway, initcwnd 20"));
        assert_eq!(
            value(&facts, "path MTU").as_deref(),
            Some("1400 bytes (udp, not confirmed, reported by 192.0.2.1)")
        );
        assert_eq!(value(&facts, "ping").as_deref(), Some("0 of 10 answered"));
        assert_eq!(
            value(&facts, "hops").as_deref(),
            Some("1 no reply; 2 192.0.2.9 2.00 ms; 3 192.0.2.2 192.0.2.3 2.10 ms 2.00 ms *")
        );
        assert_eq!(value(&facts, "not determined"), None);
    }
}
