//! A topology as the data of a picture.

use model::{Map, MapKind, MapLink, MapNode, units};

use super::{LabLink, Node, NodeKind, Topology};
use crate::DirectionSpec;

impl Topology {
    /// Its nodes and links for a picture, each link with its rate, delay, loss and MTU.
    #[must_use]
    pub fn map(&self) -> Map {
        let node = |node: &Node| MapNode {
            name: node.name.clone(),
            lines: Vec::new(),
            kind: match node.kind {
                NodeKind::Host => MapKind::Host,
                NodeKind::Router => MapKind::Router,
                NodeKind::Switch => MapKind::Switch,
            },
        };
        let link = |link: &LabLink| MapLink { between: link.between, lines: lines(link) };
        Map { nodes: self.nodes.iter().map(node).collect(), links: self.links.iter().map(link).collect() }
    }
}

/// Rate, delay, loss and MTU of a link; both values where its directions differ.
fn lines(link: &LabLink) -> Vec<String> {
    let both = |text: &dyn Fn(&DirectionSpec) -> Option<String>| {
        let [there, back] = [0, 1].map(|at| text(&link.directions[at]));
        match (there, back) {
            (None, None) => None,
            (there, back) if there == back => there,
            (there, back) => Some(format!("{} / {}", there.unwrap_or("-".into()), back.unwrap_or("-".into()))),
        }
    };
    let rate = both(&|one| one.rate_bps.map(|bps| units::bits_per_second(bps as f64)));
    let delay = both(&|one| (!one.delay.is_zero()).then(|| units::seconds(one.delay.as_nanos() as f64)));
    let loss = both(&|one| (one.loss > 0.0).then(|| format!("loss {}", model::Ratio(one.loss))));
    [rate, delay, loss, Some(format!("MTU {}", link.mtu))].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_its_properties_and_both_where_directions_differ() {
        let mut link = LabLink::new([0, 1]);
        assert_eq!(lines(&link), ["MTU 1500"]);
        link.directions.iter_mut().for_each(|one| one.delay = std::time::Duration::from_millis(10));
        link.directions[0].rate_bps = Some(1_000_000_000);
        link.directions[1].loss = 0.01;
        assert_eq!(lines(&link), ["1.00 Gbit/s / -", "10.0 ms", "- / loss 1.00 %", "MTU 1500"]);
    }
}
