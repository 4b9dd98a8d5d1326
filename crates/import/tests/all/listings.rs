//! Listings of interfaces, recorded and as their programs print them.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use import::{TextReading, format, read};
use model::{Device, Interface, RunKind};

const OF_2005: &str = include_str!("../data/2005-ifconfig.txt");
const OF_2012: &str = include_str!("../data/2012-listings.txt");

fn listing(text: &str, name: &str) -> Vec<Interface> {
    let reading: TextReading = (format(name).unwrap().read)(text);
    assert!(reading.refused.is_empty(), "{:?}", reading.refused);
    assert_eq!(reading.imported.len(), 1, "{name}");
    let imported = reading.imported.into_iter().next().unwrap();
    assert_eq!(imported.kind, RunKind::Environment);
    imported.near.interfaces
}

fn of<'a>(interfaces: &'a [Interface], name: &str) -> (&'a Interface, &'a Device) {
    let interface = interfaces.iter().find(|interface| interface.name == name).unwrap();
    (interface, interface.device.as_ref().unwrap())
}

#[test]
fn a_page_with_several_listings_gives_each() {
    let reading = read(OF_2012.as_bytes(), None).unwrap();
    let tools: Vec<&str> = reading.imported.iter().map(|imported| imported.tool.as_str()).collect();
    // Two hosts, each with its own interfaces of the same names.
    assert_eq!(tools, ["lshw", "lshw", "ifconfig", "ifconfig", "netstat", "netstat"]);
    let eth0 = |at: usize| &of(&reading.imported[at].near.interfaces, "eth0").0.addresses[0];
    assert_eq!([eth0(2), eth0(3)], ["132.206.178.150/24", "132.206.178.8/24"]);
    assert_eq!(reading.imported[4].near.interfaces.len(), 6);
    assert_eq!(reading.refused, []);
    assert_eq!(read(OF_2005.as_bytes(), None).unwrap().imported[0].tool, "ifconfig");
}

#[test]
fn ifconfig_of_2005_and_2012() {
    let interfaces = listing(OF_2005, "ifconfig");
    let (eth1, device) = of(&interfaces, "eth1");
    assert_eq!((eth1.mtu, eth1.txqueuelen, eth1.state.as_deref()), (Some(1500), Some(100), Some("up")));
    assert_eq!(
        (eth1.addresses.as_slice(), device.mac.as_deref()),
        (&["192.168.1.2/24".to_owned()][..], Some("00:09:5b:60:18:e5"))
    );
    assert_eq!((device.totals["rx_frame_errors"], device.totals["rx_bytes"]), (869, 0));
    assert_eq!(device.flags, ["up", "broadcast", "running", "multicast"]);

    let interfaces = listing(OF_2012.split("wart:").next().unwrap(), "ifconfig");
    let (eth0, device) = of(&interfaces, "eth0");
    assert_eq!(eth0.addresses, ["132.206.178.150/24", "fe80::225:90ff:fe39:e673/64"]);
    assert_eq!((device.totals["rx_dropped"], device.totals["tx_bytes"]), (179_714, 589_736_966_818));
}

#[test]
fn ifconfig_of_net_tools_2() {
    let text = "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9000\n\
                \x20       inet 192.0.2.1  netmask 255.255.255.0  broadcast 192.0.2.255\n\
                \x20       inet6 2001:db8::1  prefixlen 64  scopeid 0x0<global>\n\
                \x20       ether 02:00:5e:10:00:01  txqueuelen 1000  (Ethernet)\n\
                \x20       RX packets 12  bytes 960 (960.0 B)\n\
                \x20       RX errors 1  dropped 2  overruns 3  frame 4\n\
                \x20       TX packets 13  bytes 970 (970.0 B)\n\
                \x20       TX errors 5  dropped 6 overruns 7  carrier 8  collisions 9\n";
    let interfaces = listing(text, "ifconfig");
    let (eth0, device) = of(&interfaces, "eth0");
    assert_eq!((eth0.mtu, eth0.txqueuelen), (Some(9000), Some(1000)));
    assert_eq!(eth0.addresses, ["192.0.2.1/24", "2001:db8::1/64"]);
    let totals =
        ["rx_packets", "rx_dropped", "tx_bytes", "tx_carrier_errors", "collisions"].map(|key| device.totals[key]);
    assert_eq!(totals, [12, 2, 970, 8, 9]);
    assert_eq!(device.flags, ["up", "broadcast", "running", "multicast"]);
}

#[test]
fn netstat_of_2012() {
    let interfaces = listing(OF_2012.split("wart:").next().unwrap(), "netstat");
    let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["eth0", "eth1", "eth1:0", "eth2", "eth3", "lo"]);
    let (eth1, device) = of(&interfaces, "eth1");
    assert_eq!((eth1.mtu, device.totals["rx_errors"], device.totals["rx_dropped"]), (Some(1500), 1, 179_750));
    assert_eq!(device.flags, ["broadcast", "multicast", "running", "up"]);
    assert_eq!(of(&interfaces, "lo").0.mtu, Some(16_436));
}

#[test]
fn lshw_of_2012_and_in_blocks() {
    let interfaces = listing(OF_2012.split("wart:").next().unwrap(), "lshw");
    let (_, device) = of(&interfaces, "eth2");
    assert_eq!(device.product.as_deref(), Some("82598EB 10-Gigabit AF Dual Port Net"));
    assert_eq!(device.bus.as_deref(), Some("/0/100/1/0"));
    let text = "  *-network\n       description: Ethernet interface\n       product: NetXtreme BCM5720\n       vendor: Broadcom\n\
                \x20      bus info: pci@0000:01:00.0\n       logical name: eno1\n       serial: 02:00:5e:10:00:02\n\
                \x20      configuration: driver=tg3 driverversion=3.137 duplex=full firmware=FFV20 ip=192.0.2.9 speed=1Gbit/s\n\
                \x20 *-network:1 DISABLED\n       logical name: eno2\n";
    let interfaces = listing(text, "lshw");
    let (eno1, device) = of(&interfaces, "eno1");
    assert_eq!(
        (eno1.speed_mbps, eno1.driver.as_deref(), eno1.pci_slot.as_deref()),
        (Some(1000), Some("tg3"), Some("0000:01:00.0"))
    );
    assert_eq!(device.product.as_deref(), Some("Broadcom NetXtreme BCM5720"));
    assert_eq!(interfaces[1].name, "eno2");
}

#[test]
fn ethtool_and_its_options() {
    let text = "# ethtool eth0\nSettings for eth0:\n\tSpeed: 10000Mb/s\n\tDuplex: Full\n\tAuto-negotiation: off\n\tLink detected: yes\n\
                # ethtool -i eth0\ndriver: ixgbe\nversion: 5.1.0-k\nfirmware-version: 0x800006d1\nbus-info: 0000:03:00.0\n\
                # ethtool -g eth0\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\t0\nTX:\t\t4096\n\
                Current hardware settings:\nRX:\t\t512\nTX:\t\t512\n\
                Features for eth0:\ntcp-segmentation-offload: on\nlarge-receive-offload: off [fixed]\n\
                Coalesce parameters for eth0:\nAdaptive RX: off  TX: off\nrx-usecs: 3\n\
                Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n";
    let interfaces = listing(text, "ethtool");
    let (eth0, device) = of(&interfaces, "eth0");
    assert_eq!(
        (eth0.speed_mbps, eth0.duplex.as_deref(), eth0.driver.as_deref()),
        (Some(10_000), Some("full"), Some("ixgbe"))
    );
    assert_eq!((device.rings["rx-max"], device.rings["rx"], device.coalescing["rx-usecs"]), (4096, 512, 3));
    assert_eq!((device.offloads["large-receive-offload"].as_str(), device.pause["tx"]), ("off [fixed]", false));
    assert_eq!(device.firmware.as_deref(), Some("0x800006d1"));
    let lonely = (format("ethtool").unwrap().read)("driver: ixgbe\nversion: 1\nfirmware-version: 2\n");
    assert!(lonely.imported.is_empty() && lonely.refused[0].to_string().contains("does not print its device"));
}

#[test]
fn ip_with_counters() {
    let text = "2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP mode DEFAULT group default qlen 1000\n\
                \x20   link/ether 02:00:5e:10:00:03 brd ff:ff:ff:ff:ff:ff\n\
                \x20   inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n\
                \x20   RX:  bytes packets errors dropped  missed   mcast\n\
                \x20      1000      10      1       2       3       4\n\
                \x20   TX:  bytes packets errors dropped carrier collsns\n\
                \x20      2000      20      5       6       7       8\n";
    let interfaces = listing(text, "ip-link");
    let (eth0, device) = of(&interfaces, "eth0");
    assert_eq!((eth0.mtu, eth0.txqueuelen, eth0.state.as_deref()), (Some(1500), Some(1000), Some("up")));
    let totals = ["rx_bytes", "rx_missed_errors", "multicast", "tx_dropped", "tx_carrier_errors", "collisions"]
        .map(|key| device.totals[key]);
    assert_eq!(totals, [1000, 3, 4, 6, 7, 8]);
    assert_eq!(
        (eth0.addresses.as_slice(), device.qdiscs.as_slice()),
        (&["192.0.2.7/24".to_owned()][..], &["root fq_codel".to_owned()][..])
    );
}

#[test]
fn prose_is_no_listing() {
    for name in ["ifconfig", "netstat", "lshw", "ethtool", "ip-link"] {
        let reading = (format(name).unwrap().read)("The driver: is up. Iface eth0 has mtu 1500.\n2: two <words> mtu\n");
        assert!(reading.imported.is_empty(), "{name}");
    }
}
