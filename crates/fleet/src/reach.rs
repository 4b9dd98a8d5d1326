//! How this user reaches a host of a fleet.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use bus::Buses;
use command::host_aliases::UserKeys;
use command::{Failure, setup, values};
use control::proof::fingerprint::Fingerprint;
use control::{Access, Answers, KeyError, KnownKeys, Recognized};
use plan::FleetHost;

/// The address for data of a host, with port 0 unless it is a forwarded port; `None` for that of the agent.
///
/// # Errors
/// The name has no address.
pub fn data_address(host: &FleetHost) -> Result<Option<SocketAddr>, Failure> {
    let Some(data) = &host.data else { return Ok(None) };
    if let Ok(address) = values::scoped_endpoint(data) {
        return Ok(Some(address));
    }
    let found = (data.as_str(), 0).to_socket_addrs().ok().and_then(|mut found| found.next());
    let found = found.ok_or_else(|| {
        Failure::usage(format!("{}: the data address '{data}' has no IP address: write one", host.name))
    })?;
    Ok(Some(found))
}

/// How the agent of a host and this user recognize each other. `token_file` is for hosts without one of their own; `buses` are shared by all.
///
/// # Errors
/// The token file cannot be used.
pub fn access(host: &FleetHost, token_file: Option<&Path>, buses: &Buses) -> Result<Access, Failure> {
    let token = setup::token(host.token_file.as_deref().or(token_file))?;
    let keys: Box<dyn KnownKeys> = match host.key {
        Some(key) => Box::new(Pinned { host: host.name.clone(), key }),
        None => Box::new(UserKeys::of_user()),
    };
    let own_key = setup::own_key(token.as_ref());
    Ok(Access { token, code: None, own_key, keys, buses: buses.clone(), answers: Answers::default() })
}

/// The key that a fleet names for a host.
struct Pinned {
    host: String,
    key: Fingerprint,
}

impl KnownKeys for Pinned {
    fn check(&self, _: &str, key: &Fingerprint) -> Result<Recognized, KeyError> {
        if *key == self.key {
            return Ok(Recognized::Known);
        }
        Err(KeyError::Fleet { key: *key, named: self.key, host: self.host.clone() })
    }

    fn keep(&self, agent: &str, key: &Fingerprint) -> String {
        format!("{agent} has the key {key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_the_fleet_is_the_only_one() {
        let key = Fingerprint::of(b"one");
        let host = FleetHost { key: Some(key), ..FleetHost::named("a") };
        let access = access(&host, None, &Buses::default()).unwrap();
        assert_eq!(access.keys.check("a:6280", &key), Ok(Recognized::Known));
        let refused = access.keys.check("a:6280", &Fingerprint::of(b"two")).unwrap_err().to_string();
        assert!(refused.contains("the fleet has SHA256:") && refused.contains("for a"), "{refused}");
    }
}
