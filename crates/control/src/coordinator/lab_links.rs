//! Properties of a lab's links that a plan varies.

use model::Setting;
use text::{Said, say};

use crate::ControlError;

/// The links of the lab that this process runs in.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The properties that differ from those of the topology.
    changed: Vec<Setting>,
}

impl Links {
    /// Gives the links these properties, and all others that of the topology; equal ones are not changed again.
    ///
    /// # Errors
    /// [`ControlError::Links`] if there is no lab, or its holder refuses.
    pub(super) async fn apply(&mut self, wanted: &[Setting]) -> Result<(), ControlError> {
        if self.changed == wanted {
            return Ok(());
        }
        let Some(holder) = lab::Holder::of_this_host() else {
            return Err(ControlError::Links(say!("this host is not in a lab: run the plan with `--lab`")));
        };
        let settings = wanted.to_vec();
        // The holder waits until what is in flight has arrived.
        let set = tokio::task::spawn_blocking(move || holder.set_links(&settings)).await;
        match set.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            Ok(()) => {
                self.changed = wanted.to_vec();
                Ok(())
            }
            Err(error) => Err(ControlError::Links(error.say())),
        }
    }
}
