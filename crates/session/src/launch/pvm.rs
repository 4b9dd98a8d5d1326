//! `thru ... --transport pvm`: the far end's agent is a task that pvm_spawn starts on a host that PVM chooses. The workers of both
//! ends join the virtual machine themselves.

use std::time::Duration;

use command::Failure;
use command::setup::own_program;
use control::agent::Workers;
use engine::transport::pvm::Task;

use super::{Offer, far, network_identity};

/// Time that the task has to start and to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Starts the far end's agent and returns its offer.
pub fn start() -> Result<Offer, Failure> {
    let program = own_program()?;
    let answer = Task::spawn(&program, &["launched", "--pvm", &network_identity()], START_LIMIT.as_nanos() as u64)?;
    Offer::parse(&answer).ok_or_else(|| Failure::host(format!("the PVM task of the far end failed: {}", answer.trim())))
}

/// Serves as that agent, for a parent with the network identity `identity`.
pub fn serve(identity: &str) -> Result<u8, Failure> {
    let parent = Task::parent()?;
    let workers = Workers::Program { path: own_program()?, limits: None };
    let publish = move |offer: &Offer| {
        // If the message cannot be sent, the parent has ended, which is noticed elsewhere.
        let _ = parent.send(&offer.line());
    };
    let served = far::serve(workers, identity != network_identity(), publish, move || parent.has_ended());
    if let Err(failure) = &served {
        // A second message does no harm: the parent reads only the first.
        let _ = parent.send(&failure.to_string());
    }
    engine::transport::pvm::leave();
    served
}
