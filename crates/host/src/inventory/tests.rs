use std::collections::BTreeMap;

use model::{Device, Interface, Inventory, Pci};

use super::*;
use crate::sys::{FakeSys, RealSys};

/// The inventory of a host recorded in testdata/.
fn recorded(host: &str) -> Inventory {
    inventory(&FakeSys::new(format!("{}/testdata/{host}", env!("CARGO_MANIFEST_DIR"))))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_virtual_machine_is_described_as_it_was_recorded() {
    let facts = recorded("vm");
    assert_eq!(facts.hostname, some("vm"));
    assert_eq!(facts.kernel, some("6.18.44"));
    assert_eq!(facts.kernel_version, some("#1 SMP PREEMPT_DYNAMIC"));
    assert_eq!(facts.arch, some("x86_64"));
    assert_eq!(facts.os, some("Debian GNU/Linux 12 (bookworm)"));
    assert_eq!(facts.cpu_model, some("AMD EPYC"));
    assert_eq!((facts.cores, facts.numa_nodes), (Some(2), Some(1)));
    assert_eq!(facts.memory_bytes, Some(24_684_092 * 1024));
    assert_eq!(facts.memory_available_bytes, Some(24_268_948 * 1024));
    assert_eq!(facts.load_average, Some([0.25, 0.48, 0.36]));
    assert_eq!(facts.clock_source, some("tsc"));
    assert_eq!(facts.virtualisation, some("KVM virtual machine, Docker container"));
    assert_eq!(facts.boot_id, some("a0513730-3c68-4904-9881-8bcbf1f80fa5"));
    assert_eq!(facts.sysctl.len(), 28);
    assert_eq!(facts.sysctl["net.ipv4.tcp_rmem"], "4096 131072 33554432");
    assert_eq!(facts.sysctl["net.ipv4.ip_local_port_range"], "32768 60999");
}

#[test]
fn facts_that_the_virtual_machine_does_not_report_are_named() {
    let facts = recorded("vm");
    assert_eq!(facts.governor, None);
    for missing in [
        "frequency governor: /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor does not exist here",
        "eth0: speed and duplex: the driver does not report it",
        "ifb0: speed and duplex: the link is down",
        "boot parameters: /proc/cmdline does not exist here",
        "control groups: /proc/self/cgroup does not exist here",
        "irqbalance and tuned: a container does not see the host's services",
        "kernel's messages of the devices: /dev/kmsg does not exist here",
    ] {
        assert!(facts.missing.iter().any(|what| what == missing), "{missing}: {:#?}", facts.missing);
    }
    let rings = "rings: ethtool's netlink: ";
    assert_eq!(facts.missing.iter().filter(|what| what.starts_with(rings)).count(), 1, "{:#?}", facts.missing);
}

#[test]
fn a_virtio_interface_takes_its_slot_from_the_function_above_it() {
    let interfaces = recorded("vm").interfaces;
    let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["eth0", "ifb0", "lo"]);
    let expected = Interface {
        name: "eth0".into(),
        mtu: Some(1400),
        state: some("up"),
        speed_mbps: None,
        duplex: None,
        driver: some("virtio_net"),
        txqueuelen: Some(1000),
        addresses: vec!["192.0.2.2/24".into(), "fd00::2/64".into(), "fe80::fc:ff:fe00:1/64".into()],
        rx_queues: Some(1),
        tx_queues: Some(1),
        numa_node: None,
        pci_slot: some("0000:00:03.0"),
        device: None,
    };
    assert_eq!(Interface { device: None, ..interfaces[0].clone() }, expected);
    assert_eq!((interfaces[2].mtu, interfaces[2].driver.as_deref()), (Some(65_536), None));
}

#[test]
fn a_privileged_process_may_ask_for_every_congestion_control() {
    assert_eq!(recorded("vm").congestion_controls, ["reno", "bbr", "cubic"]);
    // An ordinary user took the server's record.
    assert_eq!(recorded("server").congestion_controls, ["reno", "cubic"]);
}

#[test]
fn a_server_with_a_physical_interface_is_described() {
    let facts = recorded("server");
    assert_eq!((facts.cores, facts.numa_nodes), (Some(33), Some(2)));
    assert_eq!(facts.governor, some("performance"));
    assert_eq!(facts.virtualisation, some("none"));
    let expected = Interface {
        name: "ens1f0".into(),
        mtu: Some(9000),
        state: some("up"),
        speed_mbps: Some(100_000),
        duplex: some("full"),
        driver: some("mlx5_core"),
        txqueuelen: Some(1000),
        addresses: vec!["203.0.113.7/27".into()],
        rx_queues: Some(3),
        tx_queues: Some(2),
        numa_node: Some(1),
        pci_slot: some("0000:3b:00.0"),
        device: None,
    };
    // bonding_masters, a file among the interfaces, is not one.
    let names: Vec<&str> = facts.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["bond0", "bond0.42", "ens1f0"]);
    assert_eq!(Interface { device: None, ..facts.interfaces[2].clone() }, expected);
}

/// The device of one of the server's interfaces.
fn device(name: &str) -> Device {
    let interfaces = recorded("server").interfaces;
    interfaces.into_iter().find(|interface| interface.name == name).unwrap().device.unwrap()
}

fn map<V: Copy>(entries: &[(&str, V)]) -> BTreeMap<String, V> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn a_recorded_device_answers_ethtool_requests() {
    let nic = device("ens1f0");
    assert_eq!(nic.driver_version, some("6.1.0-18-amd64"));
    assert_eq!((nic.firmware, nic.bus), (some("16.35.3006 (MT_0000000012)"), some("0000:3b:00.0")));
    assert_eq!(nic.rings, map(&[("rx", 1024), ("rx-max", 8192), ("tx", 1024), ("tx-max", 8192)]));
    assert_eq!(nic.channels, map(&[("combined", 3), ("combined-max", 63)]));
    let coalescing = [
        ("adaptive-rx", 1),
        ("adaptive-tx", 0),
        ("rx-frames", 128),
        ("rx-usecs", 8),
        ("tx-frames", 128),
        ("tx-usecs", 8),
    ];
    assert_eq!(nic.coalescing, map(&coalescing));
    assert_eq!(nic.pause, map(&[("autoneg", false), ("rx", true), ("tx", true)]));
    let offloads: Vec<String> = nic.offloads.iter().map(|(name, state)| format!("{name} {state}")).collect();
    assert_eq!(
        offloads,
        [
            "esp-hw-offload off [fixed]",
            "rx-gro on",
            "rx-lro off",
            "rx-vlan-filter on [fixed]",
            "tx-lockless on [fixed]",
            "tx-scatter-gather on",
            "tx-tcp-segmentation on",
        ]
    );
    let link = nic.link.unwrap();
    assert_eq!((link.autoneg, link.speed_mbps, link.duplex), (Some(true), Some(100_000), some("full")));
    assert_eq!(link.supported, ["Autoneg", "Pause", "100000baseSR4/Full", "100000baseCR4/Full"]);
    assert_eq!(link.advertised, ["Autoneg", "Pause", "100000baseCR4/Full"]);
    assert_eq!(link.peer, ["100000baseCR4/Full"]);
    let stamps = nic.timestamping.unwrap();
    assert_eq!(stamps.capabilities, ["hardware-transmit", "hardware-receive", "hardware-raw-clock"]);
    assert_eq!(
        (stamps.tx_types.join(" "), stamps.rx_filters.join(" "), stamps.clock),
        ("off on".into(), "none all".into(), Some(2))
    );
    let module = nic.module.unwrap();
    assert_eq!((module.kind, module.vendor), (some("QSFP28"), some("Mellanox")));
    assert_eq!((module.part, module.revision), (some("MCP1600-C003"), some("A3")));
}

#[test]
fn the_slot_and_interrupts_of_a_recorded_device_are_read() {
    let nic = device("ens1f0");
    let expected = Pci {
        id: some("15b3:1017"),
        speed_mts: Some(8_000),
        max_speed_mts: Some(8_000),
        width: Some(8),
        max_width: Some(16),
        read_request_bytes: Some(512),
        payload_bytes: Some(256),
        ..Pci::default()
    };
    assert_eq!(nic.pci, Some(expected));
    assert_eq!(nic.product, some("Mellanox Technologies MT27800 Family [ConnectX-5]"));
    assert_eq!(nic.driver_parameters, [("prof_sel".to_owned(), "2".to_owned())].into());
    // 134 has no handler, and so no line.
    let lines: Vec<String> = nic
        .irqs
        .iter()
        .map(|irq| format!("{} {} {}", irq.irq, irq.line.as_deref().unwrap(), irq.cores.as_deref().unwrap()))
        .collect();
    assert_eq!(
        lines,
        [
            "131 mlx5_async0@pci:0000:3b:00.0 0-31",
            "132 mlx5_comp0@pci:0000:3b:00.0 16",
            "133 mlx5_comp1@pci:0000:3b:00.0 1"
        ]
    );
    let steering: Vec<String> = nic.steering.iter().map(|(queue, mask)| format!("{queue} {mask}")).collect();
    assert_eq!(steering, ["rx-0 00000000,0000ffff", "tx-0 00000000,00000001"]);
    assert_eq!(nic.kernel_message, some("mlx5_core 0000:3b:00.0 ens1f0: Link up"));
    assert_eq!(nic.qdiscs, ["root mq", "fq_codel below it, 2 times", "clsact at the ingress"]);
    assert_eq!((nic.gso_max_bytes, nic.gro_max_bytes), (Some(65_536), Some(65_536)));
}

#[test]
fn the_counters_of_ifconfig_and_netstat_are_there() {
    let nic = device("ens1f0");
    assert_eq!(nic.mac, some("0c:42:a1:00:00:07"));
    assert_eq!(nic.flags, ["up", "broadcast", "slave", "multicast"]);
    assert_eq!((nic.totals["rx_packets"], nic.totals["rx_dropped"], nic.totals["collisions"]), (6_000_000, 12, 0));
    assert_eq!(nic.totals.len(), 16);
    // An interface without counters there has none, not zeros.
    assert!(device("bond0.42").totals.is_empty());
}

#[test]
fn the_neighbour_is_the_one_that_lldpd_reports() {
    let neighbour = device("ens1f0").neighbour.unwrap();
    assert_eq!((neighbour.system, neighbour.description), (some("leaf-3"), some("a test switch")));
    // The port is identified by its address there, which is not a name.
    assert_eq!((neighbour.port, neighbour.port_description), (None, some("swp7")));
    assert_eq!((neighbour.vlan, neighbour.frame_bytes), (None, None));
}

#[test]
fn bonds_and_vlans_name_their_lower_devices() {
    assert_eq!(device("ens1f0").master, some("bond0"));
    let (bond, vlan) = (device("bond0"), device("bond0.42"));
    assert_eq!((bond.kind, bond.bond_mode, bond.lower), (some("bond"), some("802.3ad"), vec!["ens1f0".to_owned()]));
    assert_eq!((vlan.kind, vlan.vlan, vlan.lower), (some("vlan"), Some(42), vec!["bond0".to_owned()]));
    // Devices without hardware have no driver that could fail to answer.
    let missing = recorded("server").missing;
    assert!(!missing.iter().any(|what| what.starts_with("bond0")), "{missing:#?}");
}

#[test]
fn a_servers_processors_kernel_and_services_are_described() {
    let facts = recorded("server");
    let processor = facts.processor.unwrap();
    assert_eq!(
        (processor.sockets, processor.cores_per_socket, processor.threads_per_core),
        (Some(2), Some(2), Some(2))
    );
    assert_eq!(
        processor.cache_bytes,
        map(&[("L1d", 32 << 10), ("L1i", 32 << 10), ("L2", 1 << 20), ("L3", 33_792 << 10)])
    );
    assert_eq!(processor.mitigations["meltdown"], "Mitigation: PTI");
    assert_eq!((processor.min_hz, processor.max_hz), (Some(1_000_000_000), Some(3_700_000_000)));
    assert_eq!((processor.governors["0"].as_str(), processor.governors["1"].as_str()), ("performance", "powersave"));
    assert_eq!((processor.isolated.as_deref(), processor.node_cores["1"].as_str()), (Some("4-7"), "2,3,6,7"));
    let kernel = facts.kernel_setup.unwrap();
    assert_eq!(kernel.parameters, ["isolcpus=4-7", "intel_idle.max_cstate=1", "mitigations=auto"]);
    assert_eq!((kernel.preemption.as_deref(), kernel.hz), (Some("voluntary"), Some(250)));
    assert_eq!(kernel.hz_source, some("/boot/config-6.1.0-18-amd64"));
    let accounting = kernel.cpu_accounting.unwrap();
    assert_eq!((accounting.option.as_str(), accounting.interrupts_timed), ("VIRT_CPU_ACCOUNTING_GEN", true));
    assert_eq!(accounting.exact_cores, some("4-7"));
    assert_eq!(kernel.clock_sources, ["tsc", "hpet", "acpi_pm"]);
    assert_eq!((facts.irqbalance, facts.tuned_profile.as_deref()), (Some(true), Some("network-latency")));
    assert_eq!((facts.hugepages["transparent"].as_str(), facts.hugepages["2048kB"].as_str()), ("madvise", "64"));
}

#[test]
fn settings_are_recorded_by_folder_and_secrets_are_not() {
    let facts = recorded("server");
    assert_eq!(facts.sysctl["net.ipv4.tcp_autocorking"], "1");
    assert_eq!(facts.sysctl["net.core.netdev_budget"], "300");
    assert!(facts.sysctl.contains_key("net.ipv4.icmp_ratelimit"), "ping depends on it");
    assert!(!facts.sysctl.keys().any(|name| name.contains("key")), "{:?}", facts.sysctl.keys());
}

#[test]
fn sampled_traffic_is_recorded_with_its_interface() {
    let root = format!("{}/testdata/server", env!("CARGO_MANIFEST_DIR"));
    let sys = FakeSys::new(root);
    let sample = TrafficSample::start(&sys);
    sys.set_now_ns(TRAFFIC_SAMPLE_NS);
    assert_eq!(sample.left_ns(&sys), 0);
    let seen = sample.finish(&sys);
    let mut facts = recorded("server");
    note_traffic(&mut facts, &seen);
    // The recorded counters do not move: that is no traffic, not unknown traffic.
    let traffic = |name: &str| {
        let interface = facts.interfaces.iter().find(|one| one.name == name).unwrap();
        interface.device.as_ref().unwrap().traffic
    };
    assert_eq!(traffic("ens1f0").unwrap().rx_packets_per_s, 0.0);
    assert_eq!(traffic("bond0"), None);
}

#[test]
fn facts_of_a_host_that_reports_nothing_are_null_and_never_zero() {
    let empty = tempfile::tempdir().unwrap();
    let facts = inventory(&FakeSys::new(empty.path()));
    assert_eq!(Inventory { missing: Vec::new(), ..facts.clone() }, Inventory::default());
    for fact in
        ["hostname", "distribution", "processor model", "physical memory", "net.ipv4.tcp_rmem", "network interfaces"]
    {
        assert!(facts.missing.iter().any(|missing| missing.starts_with(fact)), "{fact}: {:?}", facts.missing);
    }
}

#[test]
fn this_host_has_processors_memory_and_loopback() {
    let facts = inventory(&RealSys);
    assert!(facts.cores.unwrap() > 0);
    assert!(facts.memory_available_bytes.unwrap() <= facts.memory_bytes.unwrap());
    assert!(facts.hostname.is_some() && facts.kernel.is_some() && facts.arch.is_some() && facts.boot_id.is_some());
    let loopback = facts.interfaces.iter().find(|interface| interface.name == "lo").unwrap();
    assert!(loopback.addresses.contains(&"127.0.0.1/8".to_owned()), "{loopback:?}");
    let device = loopback.device.as_ref().unwrap();
    assert!(device.offloads.contains_key("tx-scatter-gather") && !device.qdiscs.is_empty(), "{device:?}");
    assert!(loopback.mtu.unwrap() > 0 && loopback.rx_queues.unwrap() > 0);
}
