use model::{Interface, Inventory};

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
fn what_the_virtual_machine_does_not_say_is_named() {
    let facts = recorded("vm");
    assert_eq!(facts.governor, None);
    assert_eq!(
        facts.missing,
        [
            "frequency governor: /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor does not exist here",
            "eth0: speed and duplex: the driver does not say",
            "ifb0: speed and duplex: the link is down",
        ]
    );
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
    };
    assert_eq!(interfaces[0], expected);
    assert_eq!((interfaces[2].mtu, interfaces[2].driver.as_deref()), (Some(65_536), None));
}

#[test]
fn a_privileged_process_may_ask_for_every_congestion_control() {
    assert_eq!(recorded("vm").congestion_controls, ["reno", "bbr", "cubic"]);
    // The server's record was taken by an ordinary user.
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
    };
    // bonding_masters, a file among the interfaces, is not one.
    assert_eq!(facts.interfaces, [expected]);
}

#[test]
fn a_host_that_says_nothing_is_null_throughout_and_never_zero() {
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
    assert!(loopback.mtu.unwrap() > 0 && loopback.rx_queues.unwrap() > 0);
}
