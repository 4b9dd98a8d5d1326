//! The hosts that the user's file names, wherever a command takes a host: where their agents are, and which keys these have.

use std::sync::OnceLock;

use control::proof::fingerprint::Fingerprint;
use control::{KeyError, KnownKeys, Recognized};

use crate::agent_keys::KnownAgents;
use crate::config_file::HostAlias;

/// Those of this process.
static HOSTS: OnceLock<Vec<HostAlias>> = OnceLock::new();

/// Makes them known to this process.
pub fn set(hosts: Vec<HostAlias>) {
    let _ = HOSTS.set(hosts);
}

/// The host that a text names, perhaps with a port.
#[must_use]
pub fn of(text: &str) -> Option<&'static HostAlias> {
    named(HOSTS.get()?, text).map(|(host, _)| host)
}

/// The address that a text stands for, with its port; the text itself if it is the name of no such host.
#[must_use]
pub fn address(text: &str) -> String {
    HOSTS.get().and_then(|hosts| named(hosts, text)).map_or_else(|| text.to_owned(), |(host, port)| at(host, port))
}

/// The host of a text, and the port in the text.
pub fn named<'a>(hosts: &'a [HostAlias], text: &str) -> Option<(&'a HostAlias, Option<u16>)> {
    let find = |name: &str| hosts.iter().find(|host| host.name == name);
    let with_port = || {
        let (name, port) = text.rsplit_once(':')?;
        Some((find(name)?, Some(port.parse().ok()?)))
    };
    find(text).map(|host| (host, None)).or_else(with_port)
}

fn at(host: &HostAlias, port: Option<u16>) -> String {
    match port.or(host.port) {
        Some(port) => control::coordinator::with_port(&host.address, port),
        None => host.address.clone(),
    }
}

/// The keys of this user: those of the file, and of the agents that were reached before.
#[derive(Debug)]
pub struct UserKeys {
    known: KnownAgents,
    /// The identity of an agent, its name in the file, and its key there.
    pinned: Vec<(String, String, Fingerprint)>,
}

impl UserKeys {
    /// Those of this process.
    #[must_use]
    pub fn of_user() -> Self {
        Self::of(HOSTS.get().map(Vec::as_slice).unwrap_or_default(), KnownAgents::of_user())
    }

    fn of(hosts: &[HostAlias], known: KnownAgents) -> Self {
        let pin = |host: &HostAlias| {
            let identity = control::coordinator::identity(&at(host, None)).ok()?;
            Some((identity, host.name.clone(), host.key?))
        };
        Self { known, pinned: hosts.iter().filter_map(pin).collect() }
    }
}

impl KnownKeys for UserKeys {
    fn check(&self, agent: &str, key: &Fingerprint) -> Result<Recognized, KeyError> {
        match self.pinned.iter().find(|(identity, _, _)| identity == agent) {
            None => self.known.check(agent, key),
            Some((_, _, pinned)) if pinned == key => Ok(Recognized::Known),
            Some((_, host, pinned)) => Err(KeyError::Config { key: *key, named: *pinned, host: host.clone() }),
        }
    }

    fn keep(&self, agent: &str, key: &Fingerprint) -> String {
        self.known.keep(agent, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str, port: Option<u16>, key: Option<Fingerprint>) -> HostAlias {
        HostAlias { name: "lab1".into(), address: address.into(), port, token_file: None, key, line: 1 }
    }

    #[test]
    fn a_name_stands_for_an_address_and_a_port() {
        let meant = |address: &str, port, text: &str| {
            let hosts = [host(address, port, None)];
            named(&hosts, text).map(|(host, port)| at(host, port))
        };
        assert_eq!(meant("10.0.0.2", None, "lab1").unwrap(), "10.0.0.2");
        assert_eq!(meant("10.0.0.2", Some(7000), "lab1").unwrap(), "10.0.0.2:7000");
        assert_eq!(meant("fd00::1", Some(7000), "lab1:7001").unwrap(), "[fd00::1]:7001");
        assert_eq!(meant("10.0.0.2", None, "lab2"), None);
        assert_eq!(meant("10.0.0.2", None, "10.0.0.2"), None);
    }

    #[test]
    fn the_key_of_a_host_in_the_file_is_the_only_one() {
        let key = Fingerprint::of(b"one");
        let keys = UserKeys::of(&[host("10.0.0.2", Some(7000), Some(key))], KnownAgents::of_user());
        assert_eq!(keys.check("10.0.0.2:7000", &key), Ok(Recognized::Known));
        let refused = keys.check("10.0.0.2:7000", &Fingerprint::of(b"two")).unwrap_err().to_string();
        assert!(refused.contains("[hosts.lab1]") && refused.contains(&key.to_string()), "{refused}");
    }
}
