//! The keys of clients that this user's agents have invited (`known_clients`): one line each, `FINGERPRINT ADDRESS`.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use control::agent::KnownClients;
use control::proof::fingerprint::Fingerprint;

use crate::agent_keys::{folder_of, place};
use crate::failure::Failure;

/// The variable with the file.
const VARIABLE: &str = "THRU_KNOWN_CLIENTS";

/// The open file. An agent that root starts could no longer open it once it serves as another user.
#[derive(Debug)]
pub struct InvitedClients(File);

/// A client and where it was when it accepted the invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitedClient {
    /// Its key.
    pub key: Fingerprint,
    /// Its address, or `-`.
    pub from: String,
}

impl InvitedClients {
    /// Those of this user.
    ///
    /// # Errors
    /// The file cannot be opened, or made if there is none.
    pub fn of_user() -> Result<Self, Failure> {
        let file = place(VARIABLE, "known_clients").ok_or_else(|| {
            Failure::host(format!(
                "neither XDG_DATA_HOME nor HOME is an absolute path, so the keys of clients have no folder: set {VARIABLE} to a file"
            ))
        })?;
        Self::open(&file).map_err(|error| Failure::host(format!("cannot open {}: {error}", file.display())))
    }

    fn open(file: &Path) -> io::Result<Self> {
        folder_of(file)?;
        OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(file).map(Self)
    }

    /// All of them, in the order in which they came.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> io::Result<Vec<InvitedClient>> {
        Ok(self.text()?.lines().filter_map(entry).collect())
    }

    /// Removes a client. Agents that run do not recognize it from then on.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn dismiss(&mut self, key: &Fingerprint) -> io::Result<bool> {
        // In place: agents have the file open.
        self.0.lock()?;
        let text = self.text()?;
        let is_other = |line: &&str| entry(line).is_none_or(|client| client.key != *key);
        let left: String = text.lines().filter(is_other).flat_map(|line| [line, "\n"]).collect();
        let found = text.lines().any(|line| !is_other(&line));
        if found {
            self.0.set_len(0)?;
            self.0.rewind()?;
            self.0.write_all(left.as_bytes())?;
        }
        self.0.unlock()?;
        Ok(found)
    }

    fn text(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let at = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            match self.0.read_at(&mut piece, at)? {
                0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                count => bytes.extend_from_slice(&piece[..count]),
            }
        }
    }
}

impl KnownClients for InvitedClients {
    fn knows(&self, key: &Fingerprint) -> bool {
        // A file that cannot be read knows nobody.
        self.list().is_ok_and(|known| known.iter().any(|client| client.key == *key))
    }

    fn keep(&self, key: &Fingerprint, from: Option<IpAddr>) -> io::Result<()> {
        let from = from.map_or_else(|| "-".to_owned(), |from| from.to_string());
        self.0.lock()?;
        let written = match self.knows(key) {
            true => Ok(()),
            false => (&self.0).write_all(format!("{key} {from}\n").as_bytes()),
        };
        self.0.unlock()?;
        written
    }
}

/// The client of a line. `None` for a comment, or a line without a key.
fn entry(line: &str) -> Option<InvitedClient> {
    let mut words = line.split_whitespace();
    let key = words.next()?.parse().ok()?;
    Some(InvitedClient { key, from: words.next().unwrap_or("-").to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_client_is_known_until_it_is_dismissed_also_by_agents_that_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/known_clients");
        let [one, other] = [b"one".as_slice(), b"other"].map(Fingerprint::of);
        let agent = InvitedClients::open(&path).unwrap();
        assert!(!agent.knows(&one));
        agent.keep(&one, Some(IpAddr::from([192, 0, 2, 7]))).unwrap();
        agent.keep(&other, None).unwrap();
        agent.keep(&one, Some(IpAddr::from([192, 0, 2, 8]))).unwrap();
        assert!(agent.knows(&one) && agent.knows(&other));
        let mut user = InvitedClients::open(&path).unwrap();
        let from = |key, from: &str| InvitedClient { key, from: from.into() };
        assert_eq!(user.list().unwrap(), [from(one, "192.0.2.7"), from(other, "-")]);
        assert!(user.dismiss(&one).unwrap());
        assert!(!user.dismiss(&one).unwrap());
        assert!(!agent.knows(&one) && agent.knows(&other));
        agent.keep(&one, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{other} -\n{one} -\n"));
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
