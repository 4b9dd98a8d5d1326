//! Reads a topology file.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Mistake;
use lab::topology::{Carrier, LabLink, Node, NodeKind};
use lab::{DirectionSpec, Topology};

use crate::source::{Located, Table, TomlSource};
use options::unknown;
use options::values::whole;

/// Keys at the top of the file.
const TOP: [&str; 8] = ["name", "about", "seed", "vars", "sysctl", "host", "router", "switch"];
/// Keys of a link, without those of its directions.
const LINK: [&str; 5] = ["between", "mtu", "carrier", "forward", "reverse"];
/// Default MTU of a link, bytes.
const MTU: u32 = 1_500;

/// Reads the topology in `text`, the contents of the file `name`, with the values of variables.
///
/// # Errors
/// The line, the column and the key of a mistake.
pub fn read(name: &str, text: String, vars: &BTreeMap<String, String>) -> Result<Topology, Mistake> {
    let mut source = TomlSource::new(name, "a topology", text, vars.clone());
    source.default_vars(source.own_vars()?);
    let parsed = source.parse()?;
    let top = Table::whole(&source, &parsed);
    top.known(&[TOP.as_slice(), &["link"]].concat())?;
    if let Some(given) = vars.keys().find(|given| !source.text().contains(&format!("${{{given}}}"))) {
        return Err(Mistake::usage(format!("--var {given}: {name} has no ${{{given}}}")));
    }
    let stem = Path::new(name).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut topology = Topology {
        name: top.text("name")?.map_or(stem, |at| at.value),
        about: top.text("about")?.map(|at| at.value),
        seed: top.value("seed", whole(0..=u64::MAX))?.unwrap_or(1),
        nodes: Vec::new(),
        links: Vec::new(),
        sysctls: sysctls(&top)?,
    };
    for (key, kind) in [("host", NodeKind::Host), ("router", NodeKind::Router), ("switch", NodeKind::Switch)] {
        for table in top.tables(key)? {
            nodes(&table, kind, &mut topology)?;
        }
    }
    for table in top.tables("link")? {
        links(&table, &mut topology)?;
    }
    topology.check().map_err(|error| top.wrong(error))?;
    Ok(topology)
}

fn sysctls(top: &Table<'_>) -> Result<Vec<(String, String)>, Mistake> {
    let Some(table) = top.table("sysctl")? else { return Ok(Vec::new()) };
    Ok(table.flat()?.into_iter().map(|(key, at)| (key, at.value)).collect())
}

/// One node, or `count` numbered ones.
fn nodes(table: &Table<'_>, kind: NodeKind, topology: &mut Topology) -> Result<(), Mistake> {
    table.known(&["name", "count"])?;
    let name = table.text("name")?.ok_or_else(|| table.wrong("`name` is missing"))?;
    let names = match table.text("count")? {
        None => vec![name.value.clone()],
        Some(at) => match at.value.parse() {
            Ok(count) if (1..=Topology::NODES).contains(&count) => {
                (1..=count).map(|number| format!("{}{number}", name.value)).collect()
            }
            _ => return Err(table.wrong_at(&at, "write a number from 1 to 128")),
        },
    };
    for one in names {
        Topology::check_name(&one).map_err(|error| table.wrong_at(&name, error))?;
        if topology.index_of(&one).is_some() {
            return Err(table.wrong_at(&name, format!("two nodes have the name '{one}': rename one")));
        }
        topology.nodes.push(Node { name: one, kind });
    }
    Ok(())
}

/// One link, or one for each node that a `*` stands for.
fn links(table: &Table<'_>, topology: &mut Topology) -> Result<(), Mistake> {
    let between = table.texts("between")?;
    let [first, second] = between.as_slice() else {
        return Err(table.wrong("write the two nodes of the link: between = [\"a\", \"b\"]"));
    };
    let carrier = table.choice("carrier", &[("veth", Carrier::Veth), ("emulator", Carrier::Emulator)])?;
    let mtu = match table.text("mtu")? {
        None => MTU,
        Some(at) => {
            at.value.parse().map_err(|_| table.wrong_at(&at, "write the MTU in bytes, such as 1500 or 9000"))?
        }
    };
    let direction = |key| -> Result<DirectionSpec, Mistake> {
        let own = table.table(key)?;
        table.read(&LINK, own.as_ref())
    };
    let directions = [direction("forward")?, direction("reverse")?];
    for one in matching_nodes(table, topology, first)? {
        for other in matching_nodes(table, topology, second)? {
            let link = LabLink { between: [one, other], mtu, directions: directions.clone(), carrier };
            topology.check_link(&link).map_err(|error| table.wrong(error))?;
            topology.links.push(link);
        }
    }
    Ok(())
}

/// The indices of the nodes that a name matches. A `*` at its end matches a number.
fn matching_nodes(table: &Table<'_>, topology: &Topology, at: &Located<String>) -> Result<Vec<usize>, Mistake> {
    let numbered = |name: &str| {
        let rest = name.strip_prefix(at.value.strip_suffix('*')?)?;
        (!rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())).then_some(())
    };
    let matches = |node: &Node| node.name == at.value || numbered(&node.name).is_some();
    let found: Vec<usize> = (0..topology.nodes.len()).filter(|index| matches(&topology.nodes[*index])).collect();
    if found.is_empty() {
        let names: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
        return Err(table.wrong_at(at, unknown(&at.value, &names, "the topology")));
    }
    Ok(found)
}
