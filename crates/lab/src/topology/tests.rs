use proptest::prelude::*;

use super::route::steps;
use super::*;

/// A topology of nodes like `a`, `r!` (a router) and `s*` (a switch), and links like `a-r`.
pub(crate) fn topology(nodes: &str, links: &str) -> Topology {
    let nodes: Vec<Node> = nodes
        .split_whitespace()
        .map(|text| Node {
            name: text.trim_end_matches(['!', '*']).into(),
            kind: match text.chars().last() {
                Some('!') => NodeKind::Router,
                Some('*') => NodeKind::Switch,
                _ => NodeKind::Host,
            },
        })
        .collect();
    let index = |name: &str| nodes.iter().position(|node| node.name == name).unwrap();
    let links = links
        .split_whitespace()
        .map(|link| link.split_once('-').unwrap())
        .map(|(one, other)| LabLink::new([index(one), index(other)]))
        .collect();
    Topology { name: "test".into(), nodes, links, ..Topology::default() }
}

fn layout(topology: &Topology) -> Layout {
    topology.check().unwrap();
    Layout::of(topology, AddressBlock::choose(&[]).unwrap()).unwrap()
}

/// Follows a packet by the routing tables: the nodes that it passes, the target last.
fn trace(topology: &Topology, layout: &Layout, from: usize, to: usize) -> Vec<usize> {
    let (_, v4, _) = *layout.nodes[from].names.iter().find(|(other, ..)| *other == to).expect("a name for it");
    let mut passed = vec![from];
    while *passed.last().unwrap() != to {
        let here = *passed.last().unwrap();
        assert!(here == from || topology.nodes[here].kind == NodeKind::Router, "{here} does not forward");
        let node = &layout.nodes[here];
        let within = |address: &super::layout::Address| {
            let bits = 32 - u32::from(address.segment.v4_prefix);
            u32::from(v4) >> bits == u32::from(address.segment.v4) >> bits
        };
        let own: Vec<_> = node.interfaces.iter().filter_map(|interface| interface.address).collect();
        let hop = if own.iter().any(within) {
            v4
        } else {
            let route = node.routes.iter().find(|route| {
                let bits = 32 - u32::from(route.to.v4_prefix);
                u32::from(v4) >> bits == u32::from(route.to.v4) >> bits
            });
            route.expect("a route").via.0
        };
        let next = layout.nodes.iter().position(|node| {
            node.interfaces.iter().any(|interface| interface.address.is_some_and(|address| address.v4 == hop))
        });
        passed.push(next.expect("the hop is an address of a node"));
        assert!(passed.len() <= topology.nodes.len(), "a loop: {passed:?}");
    }
    passed
}

#[test]
fn neighbours_on_a_link_need_no_route() {
    let pair = topology("a b", "a-b");
    let layout = layout(&pair);
    assert_eq!(layout.nodes[0].routes, []);
    let [a, b] = [0, 1].map(|node| layout.nodes[node].interfaces[0].address.unwrap());
    assert_eq!((layout.nodes[0].names[0].1, layout.nodes[1].names[0].1), (b.v4, a.v4));
    assert_eq!(u32::from(b.v4) - u32::from(a.v4), 1);
}

#[test]
fn hosts_on_a_switch_are_neighbours_and_the_switch_has_no_address() {
    let star = topology("h1 h2 h3 s*", "h1-s s-h2 h3-s");
    let layout = layout(&star);
    assert!(layout.nodes[3].interfaces.iter().all(|interface| interface.address.is_none()));
    assert_eq!(trace(&star, &layout, 0, 2), [0, 2]);
    let mut last: Vec<u8> =
        layout.nodes[..3].iter().map(|node| node.interfaces[0].address.unwrap().v4.octets()[3]).collect();
    last.sort_unstable();
    assert_eq!(last, [1, 2, 3]);
}

#[test]
fn routers_and_switches_lead_from_end_to_end() {
    let chain = topology("a s* r! q! b", "a-s s-r r-q q-b");
    let layout = layout(&chain);
    assert_eq!(trace(&chain, &layout, 0, 4), [0, 2, 3, 4]);
    assert_eq!(trace(&chain, &layout, 4, 0), [4, 3, 2, 0]);
}

#[test]
fn a_direct_link_is_preferred_to_a_detour() {
    let triangle = topology("a b r!", "a-r r-b a-b");
    let layout = layout(&triangle);
    assert_eq!(trace(&triangle, &layout, 0, 1), [0, 1]);
    // The name leads to the address on that link, not to the one behind the router.
    assert_eq!(layout.nodes[0].names[0].1, layout.nodes[1].interfaces[1].address.unwrap().v4);
}

#[test]
fn hosts_forward_nothing() {
    let chain = topology("a b c", "a-b b-c");
    assert!(chain.check().unwrap_err().to_string().contains("from 'a' to 'c'"));
    assert_eq!(steps(&chain, 0)[2], None);
}

#[test]
fn impossible_topologies_name_the_node_and_the_remedy() {
    let far = DirectionSpec { delay: std::time::Duration::from_millis(1), ..DirectionSpec::default() };
    let with = |change: &dyn Fn(&mut Topology)| {
        let mut topology = topology("a b s*", "a-s s-b");
        topology.check().unwrap();
        change(&mut topology);
        topology.check().unwrap_err().to_string()
    };
    for (message, part) in [
        (with(&|t| t.links[0].directions[1] = far.clone()), "link a-s: a link to a switch can only have a rate"),
        (with(&|t| t.links[0].mtu = 9_000), "switch 's' have different MTUs"),
        (with(&|t| t.links[1].between = [1, 1]), "link b-b: both ends"),
        (with(&|t| t.links.iter_mut().for_each(|link| link.mtu = 100)), "MTU of 100"),
        (with(&|t| t.nodes[1].name = "a".into()), "two nodes are called 'a'"),
        (with(&|t| t.nodes[1].name = "../b".into()), "'../b' is not a valid name"),
        (with(&|t| t.nodes[1].name = "localhost".into()), "'localhost' is not a valid name"),
        (with(&|t| t.name = "Lab".into()), "the prefix 'Lab'"),
        (with(&|t| t.sysctls.push(("kernel.panic".into(), "1".into()))), "'kernel.panic' is not a network setting"),
        (with(&|t| t.sysctls.push(("net.../../kernel/panic".into(), "1".into()))), "is not a network setting"),
        (with(&|t| t.nodes.iter_mut().for_each(|n| n.kind = NodeKind::Router)), "the lab has no hosts"),
    ] {
        assert!(message.contains(part), "{message} has no {part}");
    }
    let pair = topology("a b", "a-b");
    let forced =
        LabLink { carrier: Some(Carrier::Veth), directions: [far, DirectionSpec::default()], ..pair.links[0].clone() };
    assert!(pair.check_link(&forced).unwrap_err().to_string().contains("a veth pair can only have"));
}

#[test]
fn the_kernel_carries_what_it_can() {
    let mut link = LabLink::new([0, 1]);
    assert_eq!(link.carrier(), Carrier::Veth);
    link.directions[0].rate_bps = Some(1_000_000);
    assert_eq!(link.carrier(), Carrier::Veth);
    link.directions[1].loss = 0.1;
    assert_eq!(link.carrier(), Carrier::Emulator);
    link.directions[1].loss = 0.0;
    link.carrier = Some(Carrier::Emulator);
    assert_eq!(link.carrier(), Carrier::Emulator);
}

proptest! {
    /// With any links, a node that has a name for another one reaches it, over the fewest links.
    #[test]
    fn every_named_host_is_reached(kinds in prop::collection::vec(0_u8..3, 2..8), ends in prop::collection::vec((0_usize..8, 0_usize..8), 1..14)) {
        let kind = |k: &u8| [NodeKind::Host, NodeKind::Router, NodeKind::Switch][*k as usize];
        // A lab's addresses are enough for three switches and links beside them.
        prop_assume!(kinds.iter().filter(|k| kind(k) == NodeKind::Switch).count() <= 3);
        let nodes: Vec<Node> = kinds.iter().enumerate().map(|(i, k)| Node { name: format!("n{i}"), kind: kind(k) }).collect();
        let links = ends
            .iter()
            .map(|(a, b)| [a % nodes.len(), b % nodes.len()])
            .filter(|[a, b]| a != b && !(nodes[*a].kind == NodeKind::Switch && nodes[*b].kind == NodeKind::Switch))
            .map(LabLink::new)
            .collect();
        let topology = Topology { name: "any".into(), nodes, links, ..Topology::default() };
        let layout = Layout::of(&topology, AddressBlock::choose(&[]).unwrap()).unwrap();
        for from in 0..topology.nodes.len() {
            if topology.nodes[from].kind == NodeKind::Switch { continue; }
            let steps = steps(&topology, from);
            for (to, step) in steps.iter().enumerate() {
                let named = layout.nodes[from].names.iter().any(|(other, ..)| *other == to);
                let reached = to != from && topology.nodes[to].kind != NodeKind::Switch && step.is_some();
                prop_assert_eq!(named, reached, "{} to {}", from, to);
                if named {
                    prop_assert!(trace(&topology, &layout, from, to).len() <= step.unwrap().distance + 1);
                }
            }
        }
    }
}
