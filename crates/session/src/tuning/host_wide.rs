//! Settings that exist once per machine, changed while a lab is up.

use std::sync::Arc;
use std::time::Duration;

use command::{Failure, setup};
use control::helper::recover;
use host::tune::{Journal, RealBackend, TuneFault, Tuner};
use model::{Change, Setting};

use crate::tuning::settle::Guard;

/// Changed settings of the whole machine. They are restored when this is dropped, and by another process after a SIGKILL.
pub struct HostWide {
    _tuner: Tuner,
    _guard: Guard,
}

impl HostWide {
    /// Changes settings that the hosts of a lab share; `None` if there is none to change. Where the machine does not allow it, as
    /// in a container, a line for `note` says that its own values apply. `changed` gets each change.
    ///
    /// # Errors
    /// A setting is wrong, or is one of each host.
    pub fn set(
        settings: &[Setting],
        command: &str,
        changed: impl Fn(&Change),
        note: impl Fn(&str),
    ) -> Result<Option<Self>, Failure> {
        if settings.is_empty() {
            return Ok(None);
        }
        let guard = Guard::start()?;
        let journal = Journal::open(setup::journal().as_deref())?;
        recover(&journal)?.iter().for_each(|line| note(line));
        let mut tuner = Tuner::new(Arc::new(RealBackend), journal, command, Duration::ZERO);
        if let Some(own) = tuner.preview(settings)?.into_iter().find(|change| !change.host_wide) {
            let message = format!("[lab] host_wide: {} is a per-host setting: write it under [settings]", own.key);
            return Err(Failure::usage(message));
        }
        match tuner.tune(settings) {
            Ok(changes) => changes.iter().for_each(changed),
            Err(error) if error.fault() == TuneFault::Host => {
                note(&format!("warning: {error}; the lab is measured with the current value"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Some(Self { _tuner: tuner, _guard: guard }))
    }
}
