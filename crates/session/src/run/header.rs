//! How a run begins.

use command::{Failure, config};
use control::coordinator::AgentFacts;
use model::{RunHeader, Tool};

use super::request::Request;

/// The beginning of a run between two ends; its cells, its rule and its target are still to be set.
pub(super) fn header(request: &Request, near: &AgentFacts, far: &AgentFacts) -> Result<RunHeader, Failure> {
    let started_unix_ns = engine::unix_ns();
    let entropy = u16::from_be_bytes(engine::random().map_err(Failure::other)?);
    Ok(RunHeader {
        id: store::new_run_id(started_unix_ns, entropy),
        name: request.name.clone(),
        kind: request.kind,
        command: config::words(),
        started_unix_ns,
        tool: Tool {
            near_version: near.version.clone(),
            far_version: far.version.clone(),
            near_clock_ns: near.clock_ns,
            far_clock_ns: far.clock_ns,
        },
        expected: request.expected.clone(),
        near: near.inventory.clone(),
        far: far.inventory.clone(),
        ..RunHeader::default()
    })
}
