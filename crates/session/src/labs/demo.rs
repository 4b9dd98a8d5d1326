//! `thru demo`: curves between two emulated hosts on this machine, or over loopback.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use command::failure::{Failure, INTERRUPTED, UNTRUSTED};
use command::setup;
use lab::{CrossoverSpec, Lab};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::labs::own::{OwnAgent, curve};

/// Enough to learn of a signal that has arrived.
const BRIEFLY: Duration = Duration::from_millis(10);

/// Where a demo measures.
pub struct Demo {
    /// Two hosts; `None` for loopback.
    lab: Option<Lab>,
}

impl Demo {
    /// Builds two hosts, unless `loopback` or the rights of this user forbid it. `tell` gets a sentence about it.
    ///
    /// # Errors
    /// The hosts cannot be made.
    pub fn build(loopback: Option<&str>, tell: impl Fn(&str)) -> Result<Self, Failure> {
        let available = match loopback {
            Some(why) => Err(why.to_owned()),
            None => lab::available().map_err(|error| error.to_string()),
        };
        if let Err(why) = available {
            tell(&format!("Measuring over loopback: {why}."));
            return Ok(Self { lab: None });
        }
        let lab = Lab::crossover(&CrossoverSpec::default()).map_err(|error| Failure::host(error.to_string()))?;
        tell(&format!("Two hosts in network namespaces, joined by a veth pair: {}.", lab.name()));
        Ok(Self { lab: Some(lab) })
    }

    /// Measures one curve for each name with its flags into the database `store`. Returns the exit code of each; there are no more
    /// after one that ended early.
    ///
    /// # Errors
    /// A process cannot be started.
    pub fn measure(&self, store: &Path, curves: &[(&str, Vec<String>)]) -> Result<Vec<u8>, Failure> {
        let address = match &self.lab {
            Some(lab) => lab.host("b").map_err(|error| Failure::host(error.to_string()))?.v4.to_string(),
            None => "127.0.0.1".into(),
        };
        // Ctrl-C reaches the curve too, which stores its results and ends. This process then writes the report and cleans up.
        let runtime = setup::runtime()?;
        let mut interrupts = runtime
            .block_on(async { signal(SignalKind::interrupt()) })
            .map_err(|error| Failure::other(format!("cannot catch signals: {error}")))?;
        if let Some(folder) = store.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::output(format!("cannot make {}: {error}", folder.display())))?;
        }
        let agent = OwnAgent::start(self.command("b")?, &address)?;
        let mut codes = Vec::new();
        for (name, flags) in curves {
            // One that came while no curve ran.
            if runtime.block_on(async { timeout(BRIEFLY, interrupts.recv()).await }).is_ok() {
                codes.push(INTERRUPTED);
                break;
            }
            codes.push(curve(self.command("a")?, &agent.target, store, name, flags)?);
            if !codes.last().is_some_and(|code| is_whole(*code)) {
                break;
            }
        }
        Ok(codes)
    }

    /// A command of this program on a host.
    fn command(&self, host: &str) -> Result<Command, Failure> {
        let thru = setup::own_program()?;
        match &self.lab {
            Some(lab) => Ok(lab.host(host).map_err(|error| Failure::host(error.to_string()))?.command(&thru)),
            None => Ok(Command::new(&thru)),
        }
    }
}

/// Whether the exit code is that of a run that has all its results.
fn is_whole(code: u8) -> bool {
    [0, UNTRUSTED].contains(&code)
}
