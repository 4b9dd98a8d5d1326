//! A host for tests: files as they are, addresses as they are written, and no fleet.

#![allow(clippy::disallowed_methods, reason = "tests have files")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use lab::Topology;
use model::{Payload, StackRule};
use options::values::Address;
use text::{Said, Text};

use crate::fleet::{Fleet, FleetHost};
use crate::mistake::Mistake;
use crate::plans::ParsedPlan;
use crate::resolver::Resolver;
use crate::topology::{READY, read};

/// The host.
pub(crate) struct TestHost;

impl Resolver for TestHost {
    fn fleet(&self, _: &Path, named: &str) -> Result<Fleet, Text> {
        Err(format!("there is no fleet {named} here").into())
    }

    fn data_address(&self, host: &FleetHost) -> Result<Option<SocketAddr>, Text> {
        Ok(host.data.as_ref().and_then(|data| data.parse().ok()))
    }

    fn on_interface(&self, address: &Address) -> Result<SocketAddr, Text> {
        Ok(SocketAddr::new(address.ip, address.port))
    }

    fn payload(&self, path: &Path) -> Result<Payload, Text> {
        let bytes = std::fs::read(path).map_err(|error| Text::from(error.to_string()))?;
        Ok(Payload::of_file(&path.display().to_string(), &bytes))
    }

    fn stack_rules(&self, path: &Path) -> Result<Vec<StackRule>, Text> {
        stacks::read_rules(path).map_err(|error| error.say())
    }

    fn stays_here(&self, from: Option<&str>, to: Option<&str>) -> bool {
        from.is_none() && to.is_none_or(|to| to.starts_with("127."))
    }

    fn seed(&self) -> u64 {
        1
    }
}

/// The topology of the program with that name, or the one in that file.
pub(crate) fn topology(name: &str, vars: &BTreeMap<String, String>) -> Result<Topology, Mistake> {
    match READY.iter().find(|ready| ready.name == name) {
        Some(ready) => read(&format!("topologies/{name}.toml"), ready.text.into(), vars),
        None => read(name, std::fs::read_to_string(name).map_err(|error| Mistake::usage(error.to_string()))?, vars),
    }
}

/// The topology of the lab of a plan, as its cells change its links.
pub(crate) fn lab_of(parsed: &ParsedPlan) -> Result<Topology, Mistake> {
    let lab = parsed.plan.lab.as_ref().ok_or_else(|| Mistake::usage("the plan has no lab"))?;
    let links = parsed.specs().map(|spec| spec.settings.links.as_slice());
    topology(&lab.topology, &lab.vars)?.adjustable(links).map_err(Mistake::usage)
}
