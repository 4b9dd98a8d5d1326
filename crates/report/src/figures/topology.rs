//! The path of a run as a map: both hosts and what answered between them.

use model::{Figure, Inventory, Map, MapKind, MapLink, MapNode, Path, Run, units};

use crate::labels;

/// The map of a run's path before the test; `None` if it was not probed, as within one host.
#[must_use]
pub fn topology(run: &Run) -> Option<Figure> {
    let header = &run.header;
    let out = header.path_outbound.as_ref()?;
    let back = header.path_return.as_ref();
    let routed = |path: &Path| path.route.as_ref().and_then(|route| route.source.clone());
    let name = |host: &Inventory, other: &str| host.hostname.clone().unwrap_or_else(|| other.to_owned());
    let near =
        MapNode { name: name(&header.near, "near end"), lines: routed(out).into_iter().collect(), kind: MapKind::Host };
    // The hosts of a lab have the name of their machine.
    let target = header.target.as_deref();
    let shared = header.near.hostname == header.far.hostname;
    let far = MapNode {
        name: match target.filter(|_| shared) {
            Some(target) => target.to_owned(),
            None => name(&header.far, target.unwrap_or("far end")),
        },
        lines: [Some(out.peer.clone()), out.hops.iter().flatten().last().and_then(|hop| time(hop.rtt_ns))]
            .into_iter()
            .flatten()
            .filter(|line| !line.is_empty())
            .collect(),
        kind: MapKind::Host,
    };
    let gateway = out.route.as_ref().and_then(|route| route.gateway.clone());
    let routers: Vec<MapNode> = match &out.hops {
        // The last hop is the far host itself.
        Some(hops) => hops
            .iter()
            .filter(|hop| hop.address.as_deref() != Some(out.peer.as_str()))
            .map(|hop| MapNode {
                name: hop.address.clone().unwrap_or_else(|| format!("hop {}: no reply", hop.hop)),
                lines: time(hop.rtt_ns).into_iter().collect(),
                kind: MapKind::Router,
            })
            .collect(),
        // Without a trace, only the first router is known.
        None => {
            let router = |address| MapNode { name: address, lines: Vec::new(), kind: MapKind::Router };
            gateway.map(router).into_iter().collect()
        }
    };
    let traced = out.hops.is_some();
    let nodes: Vec<MapNode> = [near].into_iter().chain(routers).chain([far]).collect();
    let last = nodes.len() - 2;
    let links = (0..nodes.len() - 1).map(|at| {
        let mut lines = if at == 0 { interface(&header.near, out) } else { Vec::new() };
        if at == last {
            let far = back.map(|back| interface(&header.far, back)).unwrap_or_default();
            lines.extend(far.into_iter().filter(|line| !lines.contains(line)).collect::<Vec<_>>());
        }
        if last == 0 {
            // Of a link without routers, the round trip is its own.
            let ping = out.ping.as_ref().and_then(|ping| ping.median_ns);
            lines.extend(time(ping).map(|time| format!("{time} round trip")));
        }
        if at == last && at > 0 && !traced {
            lines.insert(0, "not traced".to_owned());
        }
        MapLink { between: [at, at + 1], lines }
    });
    let mut parts = vec![format!("{}, {}", labels::hosts(run), labels::begun(run))];
    parts.extend(out.mtu.as_ref().map(|mtu| format!("path MTU {} B", mtu.bytes)));
    parts.extend(
        out.ping.as_ref().and_then(|ping| ping.median_ns).map(|ns| format!("ping {}", units::seconds(ns as f64))),
    );
    if traced {
        parts.push("times are round trips from the near host".to_owned());
    }
    let links = links.collect();
    Some(map_figure("The path between the hosts", &parts.join("; "), Map { nodes, links }))
}

/// A map as a figure.
#[must_use]
pub fn map_figure(title: &str, subtitle: &str, map: Map) -> Figure {
    Figure {
        id: "topology".to_owned(),
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        map: Some(map),
        ..Figure::default()
    }
}

fn time(ns: Option<u64>) -> Option<String> {
    ns.map(|ns| units::seconds(ns as f64))
}

/// The interface by which a host sends to the other one: name, rate and MTU.
fn interface(host: &Inventory, path: &Path) -> Vec<String> {
    let Some(route) = &path.route else { return Vec::new() };
    let known = host.interfaces.iter().find(|one| Some(&one.name) == route.interface.as_ref());
    let speed = known.and_then(|one| one.speed_mbps).map(|mbps| units::bits_per_second(f64::from(mbps) * 1e6));
    let mtu = route.interface_mtu.or(known.and_then(|one| one.mtu)).map(|mtu| format!("MTU {mtu}"));
    [route.interface.clone(), speed, mtu].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn hops_are_routers_between_the_hosts() {
        let map = topology(&sample::routed()).unwrap().map.unwrap();
        let names: Vec<&str> = map.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["alpha", "192.0.2.1", "hop 2: no reply", "beta"]);
        assert!(map.nodes[1..3].iter().all(|node| node.kind == MapKind::Router));
        assert_eq!(map.nodes[1].lines, ["1.20 ms"]);
        assert_eq!(map.links[0].lines, ["eth0", "10.0 Gbit/s", "MTU 9000"]);
        assert_eq!(map.links[2].lines, ["eth1", "MTU 1500"]);
        assert!(map.links.iter().enumerate().all(|(at, link)| link.between == [at, at + 1]));
    }

    #[test]
    fn neighbours_are_joined_and_an_unprobed_path_has_no_map() {
        let mut run = sample::routed();
        let mut nodes = |change: fn(&mut Path)| {
            change(run.header.path_outbound.as_mut().unwrap());
            topology(&run).unwrap().map.unwrap()
        };
        let untraced = nodes(|path| path.hops = None);
        assert_eq!((untraced.nodes.len(), untraced.links[1].lines[0].as_str()), (3, "not traced"));
        let neighbours = nodes(|path| path.route.as_mut().unwrap().gateway = None);
        assert_eq!(neighbours.nodes.len(), 2);
        let lines = ["eth0", "10.0 Gbit/s", "MTU 9000", "eth1", "MTU 1500", "20.5 ms round trip"];
        assert_eq!(neighbours.links[0].lines, lines);
        assert!(topology(&sample::stream()).is_none());
        run.header.far.hostname = run.header.near.hostname.clone();
        let names = |map: Map| map.nodes.into_iter().map(|node| node.name).collect::<Vec<String>>();
        assert_eq!(names(topology(&run).unwrap().map.unwrap()), ["alpha", "beta"], "the target's name");
        // By its name, it is drawn as the others are.
        let runs = [sample::routed()];
        let view = crate::View { figure: Some("topology"), ..crate::View::new(&runs) };
        assert_eq!(view.figures("svg").unwrap()[0].id, "topology");
    }
}
