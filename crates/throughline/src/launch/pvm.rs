//! `thru ... --transport pvm`: the far end's agent is a task that pvm_spawn starts, wherever the virtual machine likes. Its
//! workers, and those of the near end, join the virtual machine by themselves.

use std::time::Duration;

use control::agent::Workers;
use engine::transport::pvm::Task;

use super::{Offer, far, place_of_this_process};
use crate::failure::Failure;

/// How long the task may take to start and to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Starts the far end's agent; where it listens.
pub fn start() -> Result<Offer, Failure> {
    let program = own_program()?;
    let reported =
        Task::spawn(&program, &["launched", "--pvm", &place_of_this_process()], START_LIMIT.as_nanos() as u64)?;
    Offer::parse(&reported)
        .ok_or_else(|| Failure::host(format!("the PVM task of the far end says: {}", reported.trim())))
}

/// Serves as that agent, for a parent at `place`.
pub fn serve(place: &str) -> Result<u8, Failure> {
    let parent = Task::parent()?;
    let workers = Workers::Program(own_program()?);
    let tell = move |offer: &Offer| {
        // A parent that cannot be told has ended, which is noticed by itself.
        let _ = parent.send(&offer.line());
    };
    let served = far::serve(workers, place != place_of_this_process(), tell, move || parent.has_ended());
    if let Err(failure) = &served {
        // One word too many does no harm: the parent reads the first.
        let _ = parent.send(&failure.to_string());
    }
    engine::transport::pvm::leave();
    served
}

fn own_program() -> Result<std::path::PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))
}
