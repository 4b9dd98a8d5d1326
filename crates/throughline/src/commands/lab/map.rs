//! `thru lab map`: a picture of a topology.

use std::path::PathBuf;

use clap::Args;
use lab::topology::{Link, Node, NodeKind};
use lab::{DirectionSpec, Topology};
use model::{Map, MapKind, MapLink, MapNode, units};
use session::values::{variable, variables};
use session::{Failure, files, topology};

use crate::registries;

/// Flags of `thru lab map`.
#[derive(Debug, Args)]
pub struct MapArgs {
    /// A topology that comes with this program (listed by `thru lab list --ready`), or a TOML file.
    #[arg(value_name = "TOPOLOGY")]
    topology: String,

    /// Value of a variable, ${NAME} in the topology. May be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    vars: Vec<(String, String)>,

    /// Picture to write, .svg or .png.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: PathBuf,
}

/// Runs it.
pub fn run(args: &MapArgs) -> Result<u8, Failure> {
    let topology = topology::find(&args.topology, &variables(&args.vars)?)?;
    let ending = args.output.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let format = registries::format(&ending).ok().filter(|format| matches!(format.name, "svg" | "png"));
    let Some(format) = format else {
        return Err(Failure::usage(format!("{}: use the extension .svg or .png", args.output.display())));
    };
    let figure = report::map_figure(&topology.name, topology.about.as_deref().unwrap_or_default(), map(&topology));
    let piece = report::picture(&figure, format.name).map_err(Failure::other)?;
    for path in files::write_together(&args.output, vec![(piece.name, piece.bytes)])? {
        outln!("{}", path.display());
    }
    Ok(0)
}

fn map(topology: &Topology) -> Map {
    let node = |node: &Node| MapNode {
        name: node.name.clone(),
        lines: Vec::new(),
        kind: match node.kind {
            NodeKind::Host => MapKind::Host,
            NodeKind::Router => MapKind::Router,
            NodeKind::Switch => MapKind::Switch,
        },
    };
    let link = |link: &Link| MapLink { between: link.between, lines: lines(link) };
    Map { nodes: topology.nodes.iter().map(node).collect(), links: topology.links.iter().map(link).collect() }
}

/// Rate, delay, loss and MTU of a link; both values where its directions differ.
fn lines(link: &Link) -> Vec<String> {
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
        let mut link = Link::new([0, 1]);
        assert_eq!(lines(&link), ["MTU 1500"]);
        link.directions.iter_mut().for_each(|one| one.delay = std::time::Duration::from_millis(10));
        link.directions[0].rate_bps = Some(1_000_000_000);
        link.directions[1].loss = 0.01;
        assert_eq!(lines(&link), ["1.00 Gbit/s / -", "10.0 ms", "- / loss 1.00 %", "MTU 1500"]);
    }

    #[test]
    fn every_topology_of_the_program_has_a_map() {
        for ready in &topology::READY {
            let topology = topology::find(ready.name, &Default::default()).unwrap();
            let map = map(&topology);
            assert_eq!((map.nodes.len(), map.links.len()), (topology.nodes.len(), topology.links.len()));
            let figure = report::map_figure(ready.name, "", map);
            let svg = String::from_utf8(report::picture(&figure, "svg").unwrap().bytes).unwrap();
            assert!(topology.nodes.iter().all(|node| svg.contains(&format!(">{}<", node.name))), "{}", ready.name);
        }
    }
}
