//! The coordinator's side of the connections to agents: greeting, sockets, files, labs and other programs. What it says to them, and
//! when, is [`protocol::coordinator`]'s; [`schedule`] decides the steps of a run.

mod address;
mod agent_end;
mod dial;
mod disk;
mod fleet;
mod greeting;
mod invited;
mod lines;
mod not_greeted;
mod path_probe;
mod program;
mod reached;

use std::time::Duration;

use engine::transport::{Transport, transport, transports};
use model::RunHeader;
use protocol::coordinator::RunOrder;
use schedule::{Methods, ScheduledRun};
use tokio::sync::watch;

pub use address::{check_host, identity, leads_to_ipv6, leads_to_loopback, with_port};
pub use agent_end::AgentEnd;
pub use dial::first_open_port;
pub use fleet::{ConnectedFleet, Member};
pub use greeting::{AgentFacts, Target};
pub use path_probe::note_path;
pub use program::{FarProgram, ProgramTest};
pub use schedule::{
    AdvisePlan, CurvePlan, PairedPlan, PlanSchedule, Schedule, Unfixed, anatomy_of, check_stream_of, fit_to_path,
};

/// Whether the user wants to stop.
pub type Cancel = watch::Receiver<bool>;

/// A run of `header`'s cells.
#[must_use]
pub fn scheduled(header: RunHeader, schedule: &Schedule) -> RunOrder {
    let schedule = ScheduledRun::new(&header, schedule, methods_of_run(&header));
    RunOrder { header, schedule, spent: Duration::ZERO }
}

/// A run of a plan, whose cells may be between any two hosts of a fleet.
#[must_use]
pub fn planned(header: RunHeader, plan: PlanSchedule) -> RunOrder {
    let single_ended = transports().filter(|one| one.capabilities().single_ended);
    let single_ended = single_ended.map(|one| one.name().to_owned()).collect();
    let spent = Duration::from_nanos(plan.spent_ns());
    let schedule = ScheduledRun::plan(&header, plan, single_ended, engine::unix_ns());
    RunOrder { header, schedule, spent }
}

/// How the transport of a run can send and receive.
fn methods_of_run(header: &RunHeader) -> Methods {
    let transport = header.cells.first().and_then(|cell| transport(cell.spec.transport.as_str()).ok());
    transport.map_or_else(Methods::default, methods)
}

/// How a transport can send and receive.
fn methods(transport: &dyn Transport) -> Methods {
    Methods { sends: transport.sends().to_vec(), receives: transport.receives().to_vec() }
}
