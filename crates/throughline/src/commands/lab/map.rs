//! `thru lab map`: a picture of a topology.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use command::values::variables;
use options::values::variable;
use session::labs::topology;

use crate::output;

/// Flags of `thru lab map`.
#[derive(Debug, Args)]
pub struct MapArgs {
    /// A built-in topology (see `thru lab list --ready`), or a TOML file.
    #[arg(value_name = "TOPOLOGY")]
    topology: String,

    /// Set a variable, ${NAME} in the topology. May be repeated.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    vars: Vec<(String, String)>,

    /// Picture to write, .svg or .png.
    #[arg(short, long, value_name = "FILE", required = true, value_parser = output::picture)]
    output: PathBuf,
}

/// Runs it.
pub fn run(args: &MapArgs) -> Result<u8, Failure> {
    let topology = topology::find(&args.topology, &variables(&args.vars)?)?;
    let figure = report::map_figure(&topology.name, topology.about.as_deref().unwrap_or_default(), topology.map());
    for path in output::draw(&[figure], &args.output)? {
        outln!("{}", path.display());
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_of_the_program_has_a_map() {
        for ready in &plan::topology::READY {
            let topology = topology::find(ready.name, &Default::default()).unwrap();
            let map = topology.map();
            assert_eq!((map.nodes.len(), map.links.len()), (topology.nodes.len(), topology.links.len()));
            let figure = report::map_figure(ready.name, "", map);
            let svg = String::from_utf8(report::picture(&figure, "svg").unwrap().bytes).unwrap();
            assert!(topology.nodes.iter().all(|node| svg.contains(&format!(">{}<", node.name))), "{}", ready.name);
        }
    }
}
