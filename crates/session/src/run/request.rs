//! What to measure, between which hosts, and where the run is kept.

use std::path::PathBuf;
use std::sync::Arc;

use control::coordinator::Schedule;
use control::proof::code::Code;
use model::{Expectation, Family, Pass, Retest, RunHeader, RunKind, Spec, Stopping, Trial};
use peers::Login;
use plan::ParsedPlan;
use vec1::Vec1;

/// A run to conduct.
pub struct Request {
    /// What the run is.
    pub kind: RunKind,
    /// The run's name, if it has one.
    pub name: Option<String>,
    /// The hosts of a measurement, and the token of all agents.
    pub hosts: Hosts,
    /// What the user of a check expects of the path.
    pub expected: Vec<Expectation>,
    /// Do not store the run.
    pub unstored: bool,
    /// The database of runs; `None` is the default one.
    pub store: Option<PathBuf>,
    /// Ends the process at once, at the second signal that requests the end.
    pub exit: fn() -> !,
    /// What to measure.
    pub work: Work,
}

/// The hosts of a measurement.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// The far end; a plan names its own.
    pub host: Option<String>,
    /// The near end, where it is not this process.
    pub from: Option<String>,
    /// The address family of control connections.
    pub family: Family,
    /// File with the agents' token.
    pub token_file: Option<PathBuf>,
    /// The code of the far agent's invitation, in place of a token.
    pub code: Option<Code>,
    /// Do not probe the path before the first trial.
    pub no_path: bool,
}

/// What a run measures.
pub enum Work {
    /// Cells of one transport between two ends.
    Measurement {
        /// The cells; all of one transport.
        specs: Vec1<Spec>,
        /// The stop rule.
        rule: Stopping,
        /// The schedule of the cells.
        schedule: Schedule,
        /// The login to another program's server.
        login: Option<Arc<Login>>,
    },
    /// The path to a host that has nothing to measure with.
    Path,
    /// A plan, or the rest of a run of it.
    Plan {
        /// The plan.
        parsed: Box<ParsedPlan>,
        /// The earlier part of a run that is continued.
        resumed: Option<Box<Resumed>>,
    },
}

/// The earlier part of a continued run.
#[derive(Debug)]
pub struct Resumed {
    /// Its header, which does not change.
    pub header: RunHeader,
    /// All its trials.
    pub trials: Vec<Trial>,
    /// Its passes.
    pub passes: Vec<Pass>,
    /// Its trials that test again what stands out.
    pub retests: Vec<Retest>,
}
