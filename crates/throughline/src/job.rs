//! A measurement that a subcommand requests, and how its run begins.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use control::coordinator::{Pair, Schedule};
use model::{Cell, RunHeader, Spec, Stopping, Tool};
use peers::Login;

use crate::failure::Failure;
use crate::flags::{Output, Peer};

/// A measurement that a subcommand requests.
pub struct Job<'a> {
    /// The subcommand.
    pub kind: &'static str,
    /// The cells, at least one; all of one transport.
    pub specs: Vec<Spec>,
    /// The stop rule.
    pub rule: Stopping,
    /// The schedule of the cells.
    pub schedule: Schedule,
    /// The hosts and addresses.
    pub peer: &'a Peer,
    /// The outputs.
    pub output: &'a Output,
    /// A NetPIPE file to write, too.
    pub np: Option<&'a Path>,
    /// The login to another program's server.
    pub login: Option<Arc<Login>>,
}

/// The beginning of a run.
pub fn header(job: &Job<'_>, specs: Vec<Spec>, pair: &Pair) -> Result<RunHeader, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started_unix_ns = now.as_nanos() as u64;
    let entropy = u16::from_be_bytes(engine::random().map_err(Failure::other)?);
    let far = pair.far.as_ref().unwrap_or(&pair.near);
    Ok(RunHeader {
        id: store::new_run_id(started_unix_ns, entropy),
        name: job.output.name.clone(),
        kind: job.kind.into(),
        command: std::env::args().collect(),
        started_unix_ns,
        tool: Tool {
            near_version: pair.near.version.clone(),
            far_version: far.version.clone(),
            near_clock_ns: pair.near.clock_ns,
            far_clock_ns: far.clock_ns,
        },
        target: job.peer.host.clone().filter(|_| pair.far.is_some()),
        stopping: job.rule.clone(),
        cells: specs.into_iter().zip(0..).map(|(spec, id)| Cell::new(id, spec)).collect(),
        near: pair.near.inventory.clone(),
        far: far.inventory.clone(),
        ..RunHeader::default()
    })
}
