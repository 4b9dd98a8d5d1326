//! A measurement that a subcommand requests.

use std::path::Path;
use std::sync::Arc;

use control::coordinator::Schedule;
use model::{Spec, Stopping};
use peers::Login;
use session::{Request, Work};

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
    /// How the run is shown.
    pub shape: Shape<'a>,
    /// The login to another program's server.
    pub login: Option<Arc<Login>>,
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape<'a> {
    /// Of a curve: a NetPIPE file to write, too.
    pub np: Option<&'a Path>,
    /// Of a curve: every row, not only the answer.
    pub all: bool,
    /// The lines while it runs.
    pub lines: Lines,
}

/// The lines of a run while it runs, about one each second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lines {
    /// None.
    #[default]
    Off,
    /// One for all flows.
    Sum,
    /// Also one for each flow.
    Each,
}

impl Job<'_> {
    /// The run to conduct.
    pub fn request(&self) -> Request {
        let work = Work::Measurement {
            specs: self.specs.clone(),
            rule: self.rule.clone(),
            schedule: self.schedule.clone(),
            login: self.login.clone(),
        };
        self.output.request(self.kind, self.peer.hosts(), work)
    }
}
