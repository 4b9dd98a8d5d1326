//! The address of a bus, and of a host on it, as users write it: `nats://SERVER[:PORT][,SERVER...][/NAME]`, with `tls://` where
//! TLS is required. Passwords have no place in it, because hosts are named in documents.

use crate::BusError;

/// A bus, and perhaps a host on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The servers of the bus, as one URL.
    pub bus: String,
    /// The host's name.
    pub name: Option<String>,
}

const SCHEMES: [&str; 2] = ["nats://", "tls://"];
/// Longest name of a host on a bus (RFC 1035).
const MAX_NAME: usize = 253;

/// Whether the text names a bus, or a host on one.
#[must_use]
pub fn is_bus(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// The bus that a text names.
///
/// # Errors
/// [`BusError::Address`] with the reason.
pub fn place(text: &str) -> Result<Place, BusError> {
    let wrong = |what| BusError::Address { text: text.rsplit('@').next().unwrap_or_default().into(), what };
    let scheme = SCHEMES.into_iter().find(|scheme| text.starts_with(scheme));
    let scheme = scheme.ok_or_else(|| wrong("it must begin with nats:// or tls://"))?;
    let (servers, name) = match text[scheme.len()..].split_once('/') {
        Some((servers, "")) => (servers, None),
        Some((servers, name)) => (servers, Some(name)),
        None => (&text[scheme.len()..], None),
    };
    if text.contains('@') {
        return Err(wrong("write USER:PASSWORD into a file, and set THRU_BUS_CREDS to its path"));
    }
    if servers.split(',').any(str::is_empty) {
        return Err(wrong("the name of a server is missing"));
    }
    let is_whole = |name: &str| !name.starts_with('.') && !name.ends_with('.') && !name.contains("..");
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_some_and(|name| !name.chars().all(plain) || !is_whole(name) || name.len() > MAX_NAME) {
        return Err(wrong("the name of a host can have only letters, digits, '-', '_' and single dots"));
    }
    Ok(Place { bus: format!("{scheme}{servers}"), name: name.map(str::to_ascii_lowercase) })
}

impl Place {
    /// The host `name` on this bus.
    #[must_use]
    pub fn of(&self, name: &str) -> String {
        format!("{}/{name}", self.bus)
    }

    /// The servers, each as a URL.
    #[cfg(feature = "nats")]
    pub(crate) fn servers(&self) -> Vec<String> {
        let (scheme, servers) = self.bus.split_once("://").unwrap_or(("nats", &self.bus));
        servers.split(',').map(|server| format!("{scheme}://{server}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_servers_and_perhaps_a_name() {
        let found = place("nats://bus.example/N1.example").unwrap();
        assert_eq!((found.bus.as_str(), found.name.as_deref()), ("nats://bus.example", Some("n1.example")));
        assert_eq!(found.of("b"), "nats://bus.example/b");
        let found = place("tls://a:4222,b/").unwrap();
        assert_eq!((found.bus.as_str(), found.name), ("tls://a:4222,b", None));
        assert!(is_bus("nats://x") && !is_bus("x") && !is_bus("nats:x"));
    }

    #[test]
    fn what_is_no_bus_is_refused_without_its_password() {
        for text in ["nats://", "nats:///n1", "nats://a,,b/n1", "nats://u:secret@a/n1", "http://a/n1", "bus"] {
            let error = place(text).unwrap_err().to_string();
            assert!(error.contains("is not a valid bus") && !error.contains("secret"), "{error}");
        }
        for name in ["a b", "a*", ".a", "a.", "a..b", "a/b", "é", &"x".repeat(254)] {
            assert!(place(&format!("nats://a/{name}")).is_err(), "{name}");
        }
    }
}
