//! Where an agent keeps results until their coordinators have stored them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use command::Failure;
use control::agent::{KeepResults, KeptResultsError};
use store::{AgentResults, Store};
use text::{Text, say};

/// The file in the folder.
const FILE: &str = "results.sqlite";
/// The folder of an agent that root starts: it becomes a user without a home.
const OF_ROOT: &str = "/var/lib/throughline-agent";
/// The variable with the folder that systemd makes for a service (systemd.exec(5)).
const OF_SERVICE: &str = "STATE_DIRECTORY";

/// A folder for results.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// The user named it.
    named: bool,
}

impl Folder {
    /// The one that the user named, or the default one of an agent that joins a bus.
    pub(crate) fn of(named: Option<&Path>, on_bus: bool) -> Option<Self> {
        match named {
            Some(path) => Some(Self { path: path.to_owned(), named: true }),
            None if on_bus => Some(Self { path: default_folder()?, named: false }),
            None => None,
        }
    }

    /// Opens the file in it. A default folder that cannot be used is only reported.
    pub(crate) fn open(&self, log: impl Fn(&Text)) -> Result<Option<Arc<dyn KeepResults>>, Failure> {
        match AgentResults::open(&self.path.join(FILE)) {
            Ok(results) => Ok(Some(Arc::new(OnDisk(results)))),
            Err(error) if self.named => Err(Failure::usage(say!("`--keep-results`: {error}; use a writable folder"))),
            Err(error) => {
                log(&say!("results are not kept: {error}; give a writable folder with `--keep-results`"));
                Ok(None)
            }
        }
    }
}

fn default_folder() -> Option<PathBuf> {
    let of_service = std::env::var(OF_SERVICE).ok().filter(|folders| !folders.is_empty());
    let first = |folders: String| folders.split(':').next().map(PathBuf::from);
    of_service.and_then(first).or_else(|| {
        if rustix::process::geteuid().is_root() {
            return Some(OF_ROOT.into());
        }
        Some(Store::default_path().ok()?.parent()?.join("agent"))
    })
}

struct OnDisk(AgentResults);

impl KeepResults for OnDisk {
    fn keep(&self, run: &str, trial: u32, result: &[u8]) -> Result<(), KeptResultsError> {
        self.0.keep(run, trial, result).map_err(KeptResultsError::storage)
    }

    fn after(&self, run: &str, number: i64) -> Result<Option<(i64, Vec<u8>)>, KeptResultsError> {
        self.0.after(run, number).map_err(KeptResultsError::storage)
    }

    fn forget(&self, run: &str, below: u32) -> Result<(), KeptResultsError> {
        self.0.forget(run, below).map_err(KeptResultsError::storage)
    }
}
