use std::collections::BTreeMap;
use std::time::Duration;

use lab::topology::{Carrier, NodeKind};

use lab::Topology;

use super::*;
use crate::testing::topology;

fn read_text(text: &str) -> Result<Topology, String> {
    read("t.toml", text.into(), &BTreeMap::new()).map_err(|mistake| mistake.to_string())
}

const PAIR: &str = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \"b\"]\n";

#[test]
fn every_ready_topology_can_be_read_and_has_a_description() {
    for ready in &READY {
        let topology = topology(ready.name, &BTreeMap::new()).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!(topology.name, ready.name);
        assert!(topology.about.is_some(), "{}", ready.name);
    }
}

#[test]
fn nordunet_2002_has_the_round_trips_of_the_record() {
    let topology = topology("nordunet-2002", &BTreeMap::new()).unwrap();
    let rtt = |one: &str, other: &str| {
        let ends = [one, other].map(|name| topology.index_of(&format!("r-{name}")).unwrap());
        let link = topology.links.iter().find(|link| ends.iter().all(|end| link.between.contains(end))).unwrap();
        (link.directions[0].delay + link.directions[1].delay).as_micros()
    };
    let found = [
        rtt("czech", "finland"),
        rtt("czech", "norway"),
        rtt("czech", "switzerland"),
        rtt("finland", "norway"),
        rtt("finland", "switzerland"),
        rtt("norway", "switzerland"),
    ];
    assert_eq!(found, [43_200, 51_100, 31_100, 20_500, 57_400, 65_500]);
}

#[test]
fn a_number_of_hosts_and_a_star_make_a_link_for_each() {
    let vars = BTreeMap::from([("hosts".to_owned(), "12".to_owned()), ("rate".to_owned(), "100Mbit".to_owned())]);
    let topology = topology("switch", &vars).unwrap();
    assert_eq!((topology.nodes.len(), topology.links.len()), (13, 12));
    assert_eq!(topology.nodes[11].name, "h12");
    assert!(topology.links.iter().all(|link| link.directions[1].rate_bps == Some(100_000_000)));
    assert!(topology.links.iter().all(|link| link.carrier() == Carrier::Veth));
}

#[test]
fn a_direction_can_override_its_link() {
    let text = format!("{PAIR}delay = \"5ms\"\nrate = \"10Mbit\"\n[link.reverse]\nrate = \"1Mbit\"\nmtu = 1400\n");
    let topology = read_text(&text).unwrap();
    let [forward, reverse] = &topology.links[0].directions;
    assert_eq!((forward.rate_bps, forward.delay, forward.mtu), (Some(10_000_000), Duration::from_millis(5), None));
    assert_eq!(
        (reverse.rate_bps, reverse.delay, reverse.mtu),
        (Some(1_000_000), Duration::from_millis(5), Some(1_400))
    );
    assert_eq!((topology.name.as_str(), topology.links[0].mtu), ("t", 1_500));
    assert!(topology.nodes.iter().all(|node| node.kind == NodeKind::Host));
}

#[test]
fn errors_point_at_the_mistake() {
    let with = |text: &str| format!("{PAIR}{text}");
    for (text, parts) in [
        (with("delay = \"soon\"\n"), ["t.toml:7:9: link[1].delay", "such as 250ms"]),
        (with("speed = 3\n"), ["t.toml:7:1: link[1].speed", "unknown field `speed`"]),
        (with("loss = \"${p}\"\n"), ["t.toml:7:8: link[1].loss", "${p} has no value"]),
        (with("mtu = 100\n"), ["t.toml:5:", "MTU of 100"]),
        (with("carrier = \"pigeon\"\n"), ["t.toml:7:11: link[1].carrier", "not one of veth, emulator"]),
        (with("[link.reverse]\nloss = 3\n"), ["t.toml:8:8: link[1].reverse.loss", "percentage"]),
        (with("[[link]]\nbetween = [\"a\", \"bb\"]\n"), ["t.toml:8:17: link[2].between", "did you mean"]),
        (with("[[link]]\nbetween = [\"a\"]\n"), ["t.toml:7:1: link[2]", "two nodes"]),
        (with("[[hosts]]\nname = \"c\"\n"), ["t.toml:7:", "did you mean 'host'"]),
        (with("[[host]]\nname = \"c\"\n"), ["from 'a' to 'c'", "add a [[link]]"]),
        (with("[[switch]]\nname = \"a\"\n"), ["t.toml:8:8: switch[1].name", "two nodes have the name 'a'"]),
        (with("[[host]]\nname = \"h\"\ncount = 0\n"), ["t.toml:9:9: host[3]", "from 1 to 128"]),
        (with("[sysctl]\n\"kernel.panic\" = 1\n"), ["kernel.panic", "begins with net."]),
    ] {
        let message = read_text(&text).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{message} has no {part}");
        }
    }
}
