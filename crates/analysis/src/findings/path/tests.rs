use std::collections::BTreeMap;

use model::{
    CoreUse, CpuUse, Device, EndTally, FlowTally, Irq, PathMtu, Pattern, Pci, Ping, Processor, Route, RunKind,
    SocketFacts, Stopping, Tool, Traffic, Trial,
};

use super::*;

/// Two hosts with one NIC each and a route between them, without findings.
fn header() -> RunHeader {
    let host = || Inventory {
        processor: Some(Processor {
            node_cores: [("0", "0-3"), ("1", "4-7")].map(|(node, cores)| (node.to_owned(), cores.to_owned())).into(),
            ..Processor::default()
        }),
        interfaces: vec![Interface {
            name: "eth0".into(),
            mtu: Some(1_500),
            speed_mbps: Some(10_000),
            duplex: Some("full".into()),
            numa_node: Some(1),
            device: Some(Device::default()),
            ..Interface::default()
        }],
        ..Inventory::default()
    };
    let path = |peer: &str| {
        Some(Path {
            peer: peer.into(),
            route: Some(Route { interface: Some("eth0".into()), interface_mtu: Some(1_500), ..Route::default() }),
            mtu: Some(PathMtu { bytes: 1_500, method: "echo".into(), confirmed: true, reported_by: None }),
            ping: Some(Ping { min_ns: Some(65_000_000), ..Ping::default() }),
            ..Path::default()
        })
    };
    RunHeader {
        id: "r".into(),
        name: None,
        kind: RunKind::Stream,
        command: Vec::new(),
        started_unix_ns: 0,
        tool: Tool::default(),
        target: None,
        stopping: Stopping::default(),
        cells: Vec::new(),
        near: host(),
        far: host(),
        path_outbound: path("192.0.2.2"),
        path_return: path("192.0.2.1"),
        ..RunHeader::default()
    }
}

/// The statements about a header that `change` has touched.
fn said(change: impl FnOnce(&mut RunHeader)) -> Vec<String> {
    let mut header = header();
    change(&mut header);
    of_path(&header, &[], &Default::default()).into_iter().map(|finding| finding.statement.plain()).collect()
}

/// The one statement.
fn only(change: impl FnOnce(&mut RunHeader)) -> String {
    let said = said(change);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].ends_with('.'), "{}", said[0]);
    said.concat()
}

fn nic(host: &mut Inventory) -> &mut Device {
    host.interfaces[0].device.as_mut().unwrap()
}

#[test]
fn two_plain_hosts_and_runs_without_a_path_probe_have_no_findings() {
    assert_eq!(said(|_| {}), [""; 0]);
    assert_eq!(said(|header| (header.path_outbound, header.path_return) = (None, None)), [""; 0]);
}

#[test]
fn different_mtus_are_reported_with_their_interfaces() {
    let said = only(|header| {
        header.path_outbound.as_mut().unwrap().route.as_mut().unwrap().interface_mtu = Some(9_000);
        header.path_outbound.as_mut().unwrap().mtu = None;
    });
    assert!(said.contains("9000 bytes on eth0 (near) and 1500 on eth0 (far)."), "{said}");
    let remedy = "Remedy: `thru tune set dev.eth0.mtu=9000` on the far host if all devices in between carry 9000 bytes, else \
                  `thru tune set dev.eth0.mtu=1500` on the near host.";
    assert!(said.ends_with(remedy), "{said}");
}

#[test]
fn without_a_return_path_the_far_interface_is_that_of_the_data() {
    let mut header = header();
    header.path_return = None;
    header.far.interfaces.push(Interface {
        name: "eth1".into(),
        mtu: Some(9_000),
        addresses: vec!["198.51.100.7/24".into()],
        ..Interface::default()
    });
    let said = |far: &str| {
        let mut outcome = outcome(65_000_000, "192.0.2.2:1");
        let socket = SocketFacts { local: Some(far.into()), ..SocketFacts::default() };
        outcome.trials[0].far.flows = vec![FlowTally { socket, ..FlowTally::default() }];
        of_path(&header, &[outcome], &Default::default())
            .into_iter()
            .map(|one| one.statement.plain())
            .collect::<String>()
    };
    let unequal = said("198.51.100.7:5010");
    assert!(unequal.contains("1500 bytes on eth0 (near) and 9000 on eth1 (far)."), "{unequal}");
    assert_eq!(said("203.0.113.7:5010"), "", "an unknown address");
}

#[test]
fn a_path_mtu_below_the_interfaces_names_the_router() {
    let narrow = |header: &mut RunHeader| {
        let mtu = header.path_return.as_mut().unwrap().mtu.as_mut().unwrap();
        (mtu.bytes, mtu.reported_by) = (1_400, Some("10.0.0.1".into()));
    };
    let said = only(narrow);
    assert!(said.starts_with("The path MTU from the far end is 1400 bytes (reported by 10.0.0.1), smaller"), "{said}");
    // Loopback's MTU is one more than the largest packet.
    let loopback = super::tests::said(|header| {
        for path in [&mut header.path_outbound, &mut header.path_return].into_iter().flatten() {
            path.route.as_mut().unwrap().interface_mtu = Some(65_536);
            path.mtu.as_mut().unwrap().bytes = 65_535;
        }
    });
    assert_eq!(loopback, [""; 0]);
}

fn outcome(min_rtt_ns: u64, peer: &str) -> Outcome {
    let socket = SocketFacts { min_rtt_ns: Some(min_rtt_ns), peer: Some(peer.into()), ..SocketFacts::default() };
    let near = EndTally { flows: vec![FlowTally { socket, ..FlowTally::default() }], ..EndTally::default() };
    let trial = Trial {
        cell: 0,
        pass: 0,
        position: 0,
        near: near.into(),
        far: EndTally::default().into(),
        ledger: model::Ledger::default(),
        value: None,
        verdicts: Vec::new(),
    };
    Outcome { trials: vec![trial], ..crate::curve::testing::made(Pattern::Stream, 0, 1, &[]) }
}

#[test]
fn ping_to_one_address_and_data_to_another_are_reported() {
    let statement = |rtt, peer: &str| {
        let found = of_path(&header(), &[outcome(rtt, peer)], &Default::default());
        found.into_iter().map(|finding| finding.statement.plain()).collect::<String>()
    };
    let said = statement(183_000_000, "198.51.100.7:5010");
    assert!(
        said.contains("65.0 ms by ping and 183 ms by TCP: ping went to 192.0.2.2, the data to 198.51.100.7"),
        "{said}"
    );
    assert!(statement(183_000_000, "192.0.2.2:5010").contains("the same address"));
    assert!(statement(20_000_000, "192.0.2.2:5010").contains("echo replies are delayed"));
    assert_eq!(statement(70_000_000, "192.0.2.2:5010"), "");
}

#[test]
fn rtts_that_a_busy_host_could_explain_are_not_another_path() {
    let mut header = header();
    header.path_outbound.as_mut().unwrap().ping.as_mut().unwrap().min_ns = Some(30_000);
    assert_eq!(of_path(&header, &[outcome(1_500_000, "192.0.2.2:1")], &Default::default()), []);
}

#[test]
fn half_duplex_is_found_below_a_vlan_too() {
    let said = only(|header| {
        header.near.interfaces[0].duplex = Some("half".into());
        let device = Device { lower: vec!["eth0".into()], ..Device::default() };
        let vlan = Interface { name: "eth0.42".into(), device: Some(device), ..Interface::default() };
        header.near.interfaces.push(vlan);
        header.path_outbound.as_mut().unwrap().route.as_mut().unwrap().interface = Some("eth0.42".into());
    });
    assert!(said.starts_with("eth0 at the near end runs half duplex"), "{said}");
}

#[test]
fn a_slot_narrower_than_its_nic_is_found() {
    let slot = |width| Pci {
        speed_mts: Some(8_000),
        max_speed_mts: Some(8_000),
        width: Some(width),
        max_width: Some(16),
        ..Pci::default()
    };
    let said = only(|header| nic(&mut header.far).pci = Some(slot(8)));
    assert!(said.contains("8 lanes of 8 GT/s, but the NIC supports 16 lanes of 8 GT/s"), "{said}");
    assert!(said.contains("63.0 Gbit/s of 126 Gbit/s"), "{said}");
    assert_eq!(super::tests::said(|header| nic(&mut header.far).pci = Some(slot(16))), [""; 0]);
}

#[test]
fn interrupts_served_on_another_node_are_counted() {
    let irq = |irq, cores: &str| Irq { irq, line: None, cores: Some(cores.into()) };
    let said = only(|header| nic(&mut header.near).irqs = vec![irq(1, "0-7"), irq(2, "0"), irq(3, "2-3"), irq(4, "5")]);
    assert!(said.starts_with("2 of 4 interrupts of eth0 (near end)"), "{said}");
}

#[test]
fn other_traffic_counts_by_packets_or_by_its_share_of_the_link() {
    let traffic = |packets, bps| Some(Traffic { rx_packets_per_s: packets, rx_bps: bps, ..Traffic::default() });
    let said = only(|header| nic(&mut header.near).traffic = traffic(3_000.0, 2e6));
    assert!(
        said.starts_with("eth0 at the near end was not idle before the test: it received 3.00 k packets/s"),
        "{said}"
    );
    // 5 Mbit/s is half a thousandth of 10 Gbit/s.
    assert_eq!(super::tests::said(|header| nic(&mut header.near).traffic = traffic(500.0, 5e6)), [""; 0]);
    assert_eq!(super::tests::said(|header| nic(&mut header.near).traffic = traffic(500.0, 5e7)).len(), 1);
}

#[test]
fn offloads_at_one_end_only_are_reported() {
    let offloads = |states: [&str; 3]| -> BTreeMap<String, String> {
        ["rx-gro", "tx-tcp-segmentation", "tx-nocache-copy"]
            .iter()
            .zip(states)
            .map(|(name, state)| ((*name).to_owned(), state.to_owned()))
            .collect()
    };
    let said = only(|header| {
        nic(&mut header.near).offloads = offloads(["on", "off [fixed]", "on"]);
        nic(&mut header.far).offloads = offloads(["off", "on", "off"]);
    });
    assert!(said.contains("rx-gro at the near end only; tx-tcp-segmentation at the far end only"), "{said}");
    // What one end does not report is not a difference.
    assert_eq!(super::tests::said(|header| nic(&mut header.near).offloads = offloads(["on", "on", "on"])), [""; 0]);
}

#[test]
fn steal_time_is_reported_from_five_ticks_and_one_percent() {
    let cpu = |steal_ns| CpuUse {
        window_ns: 1_000_000_000,
        resolution_ns: 10_000_000,
        cores: vec![CoreUse { steal_ns, idle_ns: 1_000_000_000 - steal_ns, ..CoreUse::default() }],
    };
    let said = |steal_ns| {
        let mut stolen = [Stolen::default(); 2];
        stolen[1].add(Some(&cpu(steal_ns)));
        stolen[1].add(None);
        of_path(&header(), &[], &stolen).into_iter().map(|finding| finding.statement.plain()).collect::<String>()
    };
    assert!(said(100_000_000).contains("The hypervisor of the far end gave 10"), "{}", said(100_000_000));
    assert_eq!(said(40_000_000), "", "four ticks");
}

#[test]
fn ping_and_data_differ_only_where_neither_was_measured_on_a_loaded_path() {
    let said = |echoes: [u64; 2], minima: &[u64]| {
        let mut header = header();
        let ms = |ms: u64| Some(ms * 1_000_000);
        header.path_outbound.as_mut().unwrap().ping =
            Some(Ping { min_ns: ms(echoes[0]), max_ns: ms(echoes[1]), ..Ping::default() });
        let mut outcome = crate::curve::testing::made(Pattern::Stream, 0, 1_024, &vec![1e9; minima.len()]);
        for (trial, least) in outcome.trials.iter_mut().zip(minima) {
            let socket =
                SocketFacts { peer: Some("192.0.2.2:5".into()), min_rtt_ns: ms(*least), ..SocketFacts::default() };
            trial.near.flows = vec![FlowTally { socket, ..FlowTally::default() }];
        }
        of_path(&header, &[outcome], &Default::default())
            .into_iter()
            .map(|one| one.statement.plain())
            .collect::<String>()
    };
    assert!(said([10, 10], &[45, 45, 46]).contains("10.0 ms by ping and 45.0 ms by TCP, although"));
    assert!(said([45, 46], &[10, 30, 20]).contains("echo replies are delayed"));
    // A flow that fills a queue delays each connection by another time, and a slow link the echoes behind each other.
    assert_eq!(said([10, 10], &[45, 60, 52]), "");
    assert_eq!(said([45, 80], &[10, 10, 10]), "");
    assert_eq!(said([10, 10], &[11, 11, 11]), "");
}
