//! The address of an agent as users write it: a name or address, with or without a port, or a name on a bus.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use bus::is_bus;
use model::Family;

use crate::ControlError;
use protocol::DEFAULT_PORT;

/// Refuses an invalid host or port before anything is resolved.
///
/// # Errors
/// [`ControlError::InvalidHost`] with the reason.
pub fn check_host(host: &str) -> Result<(), ControlError> {
    identity(host).map(|_| ())
}

/// Name and port of `name`, `name:port`, `v4:port`, `[v6]:port` or a bare address.
pub(super) fn split(host: &str) -> Result<(&str, u16), ControlError> {
    let wrong = |what| ControlError::InvalidHost { host: host.to_owned(), what };
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (inside, behind) = rest.split_once(']').ok_or_else(|| wrong("the closing bracket is missing"))?;
            if !is_v6(inside) {
                return Err(wrong("only an IPv6 address may be in brackets"));
            }
            match behind {
                "" => (inside, None),
                _ => (inside, Some(behind.strip_prefix(':').ok_or_else(|| wrong("a port must follow a colon"))?)),
            }
        }
        None => match host.split_once(':') {
            None => (host, None),
            // More than one colon without brackets is a bare IPv6 address.
            Some(_) if is_v6(host) => (host, None),
            Some((_, rest)) if rest.contains(':') => return Err(wrong("it is not an IPv6 address")),
            Some((name, port)) => (name, Some(port)),
        },
    };
    if name.is_empty() {
        return Err(wrong("the name is missing"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => {
            let number =
                port.parse().ok().filter(|number| *number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()));
            number.ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?
        }
    };
    Ok((name, port))
}

/// Whether it is an IPv6 address, with or without a zone.
fn is_v6(text: &str) -> bool {
    text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// The name of a connected host in messages: an address alone, or a name with its address.
pub(super) fn label(host: &str, address: SocketAddr) -> String {
    let bare = split(host).map_or(host, |(name, _)| name);
    if bare.parse::<IpAddr>().is_ok() { address.to_string() } else { format!("{bare} ({address})") }
}

/// The name under which the key of the agent at `host` is known: `name:port`, as the user wrote the name, or its place on a bus.
///
/// # Errors
/// [`ControlError::InvalidHost`] with the reason.
pub fn identity(host: &str) -> Result<String, ControlError> {
    if is_bus(host) {
        let place = bus::place(host)?;
        let missing = || ControlError::InvalidHost {
            host: host.to_owned(),
            what: "the name of an agent is missing: nats://SERVER/NAME",
        };
        return Ok(place.of(place.name.as_ref().ok_or_else(missing)?));
    }
    let (name, port) = split(host)?;
    let name = name.to_ascii_lowercase();
    Ok(if is_v6(&name) { format!("[{name}]:{port}") } else { format!("{name}:{port}") })
}

/// `host` with a port, unless it has one.
#[must_use]
pub fn with_port(host: &str, port: u16) -> String {
    let has_port = match host.rsplit_once(']') {
        Some((_, behind)) => !behind.is_empty(),
        None => host.contains(':') && !is_v6(host),
    };
    match host {
        host if has_port || is_bus(host) => host.to_owned(),
        host if is_v6(host) => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

/// Whether the control connection to `host` would use IPv6, so that a default can depend on it before connecting. False for a
/// name that does not resolve; connecting reports that error.
#[must_use]
pub fn leads_to_ipv6(host: &str, family: Family) -> bool {
    match family {
        Family::V4 => false,
        Family::V6 => true,
        Family::Any if is_bus(host) => false,
        Family::Any => {
            let found = split(host).ok().and_then(|name_and_port| name_and_port.to_socket_addrs().ok());
            found.and_then(|mut found| found.next()).is_some_and(|to| to.is_ipv6())
        }
    }
}

/// Whether `host` is this one, by a loopback address.
#[must_use]
pub fn leads_to_loopback(host: &str) -> bool {
    let found =
        split(host).ok().filter(|_| !is_bus(host)).and_then(|name_and_port| name_and_port.to_socket_addrs().ok());
    found.is_some_and(|mut found| found.len() > 0 && found.all(|to| to.ip().to_canonical().is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_name_and_port() {
        for (host, name) in [
            ("b", "b:6280"),
            ("B.example:7000", "b.example:7000"),
            ("192.0.2.1", "192.0.2.1:6280"),
            ("2001:db8::1", "[2001:db8::1]:6280"),
            ("[2001:DB8::1]:7000", "[2001:db8::1]:7000"),
            ("nats://bus.example/N1", "nats://bus.example/n1"),
        ] {
            assert_eq!(identity(host).unwrap(), name);
        }
        assert!(identity("nats://bus.example").unwrap_err().to_string().contains("nats://SERVER/NAME"));
    }

    #[test]
    fn a_port_is_added_where_there_is_none() {
        for (host, wanted) in [
            ("b", "b:7"),
            ("b:8", "b:8"),
            ("192.0.2.1", "192.0.2.1:7"),
            ("2001:db8::1", "[2001:db8::1]:7"),
            ("[2001:db8::1]", "[2001:db8::1]:7"),
            ("[2001:db8::1]:8", "[2001:db8::1]:8"),
            ("nats://bus/n1", "nats://bus/n1"),
        ] {
            assert_eq!(with_port(host, 7), wanted);
        }
    }

    #[test]
    fn hosts_come_with_and_without_ports() {
        for (host, wanted) in [
            ("b", ("b", 6280)),
            ("b:7000", ("b", 7000)),
            ("192.0.2.1:65535", ("192.0.2.1", 65_535)),
            ("2001:db8::1", ("2001:db8::1", 6280)),
            ("fe80::1%eth0", ("fe80::1%eth0", 6280)),
            ("[::1]", ("::1", 6280)),
            ("[fe80::1%2]:7", ("fe80::1%2", 7)),
        ] {
            assert_eq!(split(host).unwrap(), wanted);
        }
    }

    #[test]
    fn invalid_hosts_and_ports_are_refused() {
        for host in [
            "",
            ":7000",
            "b:",
            "b:0",
            "b:+7",
            "b:99999",
            "b:http",
            "127.0.0.1:6280:7",
            "a:b:c",
            "[::1",
            "[::1]7",
            "[::1]:",
            "[::1]:6280:7",
            "[b]:7",
            "[]:7",
        ] {
            let message = split(host).unwrap_err().to_string();
            assert!(message.starts_with(&format!("'{host}' is not a valid host: ")), "{message}");
        }
    }
}
