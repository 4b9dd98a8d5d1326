//! The agents that were started for a fleet: a file of this user, so that later commands reach them and `thru fleet down` stops them.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use command::files::private_folder;
use command::{Failure, setup};
use plan::{Fleet, FleetHost};
use ring::digest::{self, SHA256};
use serde::{Deserialize, Serialize};
use store::Store;

use super::request::{HostResult, UpRequest};
use crate::sources::source::is_file;

/// The state of one fleet's agents.
pub(super) struct State {
    folder: PathBuf,
    content: Content,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Content {
    /// The fleet as the user named it.
    fleet: String,
    /// The configuration of ssh, by its absolute path.
    ssh_config: Option<PathBuf>,
    /// The process of a launcher that started all of them.
    process: Option<u32>,
    hosts: Vec<Started>,
}

/// An agent that was started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) name: String,
    /// Where ssh reaches the host.
    pub(super) ssh: String,
    /// Its folder there; only the name of it until the program has been copied.
    pub(super) folder: String,
    /// Its key, as people compare it.
    pub(super) key: Option<String>,
}

const STATE: &str = "state.json";
const TOKEN: &str = "token";

impl State {
    /// The folder of a fleet's state: by its path, or by its text.
    fn folder(named: &str) -> Result<PathBuf, Failure> {
        let path = if is_file(named) { fs::canonicalize(named).ok() } else { None };
        let text = path.map_or_else(|| named.to_owned(), |path| path.display().to_string());
        let digest = hex::encode(&digest::digest(&SHA256, text.as_bytes()).as_ref()[..8]);
        let base = Store::default_path()?;
        Ok(base.parent().unwrap_or(Path::new(".")).join("fleets").join(digest))
    }

    /// The state of a fleet whose agents are to be started, with a new token.
    pub(super) fn create(named: &str, request: &UpRequest) -> Result<Self, Failure> {
        let folder = Self::folder(named)?;
        let failed = |error: std::io::Error| {
            Failure::output(format!("cannot write the state of the fleet in {}: {error}", folder.display()))
        };
        private_folder(&folder).map_err(failed)?;
        let token = folder.join(TOKEN);
        let _ = fs::remove_file(&token);
        setup::write_token(&token).map_err(failed)?;
        let mut state = Self { folder, content: Content { fleet: named.to_owned(), ..Content::default() } };
        state.configure(request)?;
        Ok(state)
    }

    /// Takes what a request says about the way to the hosts; what it leaves out stays.
    pub(super) fn configure(&mut self, request: &UpRequest) -> Result<(), Failure> {
        if let Some(config) = &request.ssh_config {
            // Commands in other folders stop the agents.
            let found = std::path::absolute(config);
            let config = found.map_err(|error| Failure::usage(format!("{}: {error}", config.display())))?;
            self.content.ssh_config = Some(config);
        }
        self.write()
    }

    /// The state of a fleet, if agents were started for it.
    pub(super) fn open(named: &str) -> Result<Option<Self>, Failure> {
        let Ok(folder) = Self::folder(named) else { return Ok(None) };
        let file = folder.join(STATE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => return Ok(None),
            Err(error) => return Err(Failure::output(format!("cannot read {}: {error}", file.display()))),
        };
        let content = serde_json::from_str(&text)
            .map_err(|error| Failure::output(format!("{} is damaged: {error}; remove it", file.display())))?;
        Ok(Some(Self { folder, content }))
    }

    fn write(&self) -> Result<(), Failure> {
        let file = self.folder.join(STATE);
        let write = || -> std::io::Result<()> {
            let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
            new.write_all(serde_json::to_string_pretty(&self.content)?.as_bytes())?;
            new.persist(&file).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| Failure::output(format!("cannot write {}: {error}", file.display())))
    }

    /// The file with the token of all agents.
    pub(super) fn token_file(&self) -> PathBuf {
        self.folder.join(TOKEN)
    }

    pub(super) fn ssh_config(&self) -> Option<&Path> {
        self.content.ssh_config.as_deref()
    }

    /// The process of the launcher that started all agents.
    pub(super) fn batch_process(&self) -> Option<u32> {
        self.content.process
    }

    pub(super) fn set_batch_process(&mut self, process: u32) -> Result<(), Failure> {
        self.content.process = Some(process);
        self.write()
    }

    /// Adds a host, or replaces what is known of it.
    pub(super) fn add(&mut self, started: Started) -> Result<(), Failure> {
        self.content.hosts.retain(|known| known.name != started.name);
        self.content.hosts.push(started);
        self.write()
    }

    /// Forgets a host on which nothing is left.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.content.hosts.retain(|known| known.name != name);
        self.write()
    }

    pub(super) fn hosts(&self) -> &[Started] {
        &self.content.hosts
    }

    /// Forgets the agents that are gone, and the fleet when all are.
    pub(super) fn forget(&mut self, results: &[HostResult]) -> Result<(), Failure> {
        let gone = |host: &Started| results.iter().any(|result| result.name == host.name && result.error.is_none());
        self.content.hosts.retain(|host| !gone(host));
        if !self.content.hosts.is_empty() {
            return self.write();
        }
        let gone = fs::remove_dir_all(&self.folder);
        gone.map_err(|error| Failure::output(format!("cannot remove {}: {error}", self.folder.display())))
    }

    /// The fleet with the tokens and keys of its agents that run.
    pub(super) fn over(&self, mut fleet: Fleet) -> Fleet {
        for host in &mut fleet.hosts {
            if let Some(started) = self.content.hosts.iter().find(|started| started.name == host.name) {
                self.apply(host, started);
            }
        }
        fleet
    }

    fn apply(&self, host: &mut FleetHost, started: &Started) {
        host.token_file = Some(self.token_file());
        host.key = started.key.as_ref().and_then(|key| key.parse().ok()).or(host.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use text::Text;

    fn state(folder: &Path) -> State {
        let hosts = ["a", "b", "c"].map(|name| Started { name: name.into(), ..Started::default() }).into();
        State { folder: folder.to_owned(), content: Content { hosts, ..Content::default() } }
    }

    #[test]
    fn a_configuration_of_ssh_is_found_from_every_folder_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = state(folder.path());
        state.configure(&UpRequest { ssh_config: Some("ssh.cfg".into()), ..UpRequest::default() }).unwrap();
        let expected = std::env::current_dir().unwrap().join("ssh.cfg");
        assert_eq!(state.ssh_config(), Some(expected.as_path()));
        state.configure(&UpRequest::default()).unwrap();
        assert_eq!(state.ssh_config(), Some(expected.as_path()));
    }

    #[test]
    fn only_agents_that_are_gone_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = state(folder.path());
        let result = |name: &str, error: Option<&str>| HostResult { name: name.into(), error: error.map(Text::from) };
        state.forget(&[result("a", None), result("b", Some("not reached"))]).unwrap();
        let left: Vec<&str> = state.hosts().iter().map(|host| host.name.as_str()).collect();
        assert_eq!(left, ["b", "c"]);
        state.forget(&[result("b", None), result("c", None)]).unwrap();
        assert!(!folder.path().exists());
        std::fs::create_dir(folder.path()).unwrap();
    }
}
