//! Where a host's agent is, as users write it: a name or address, with or without a port.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use model::Family;

use crate::ControlError;
use crate::proto::DEFAULT_PORT;

/// Refuses what names no host or no port, before anybody is asked.
///
/// # Errors
/// [`ControlError::Place`].
pub fn check_host(host: &str) -> Result<(), ControlError> {
    split(host).map(|_| ())
}

/// Name and port of `name`, `name:port`, `v4:port`, `[v6]:port` or a bare address.
pub(super) fn split(host: &str) -> Result<(&str, u16), ControlError> {
    let wrong = |what| ControlError::Place { host: host.to_owned(), what };
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (inside, behind) = rest.split_once(']').ok_or_else(|| wrong("its bracket is not closed"))?;
            if !is_v6(inside) {
                return Err(wrong("brackets hold an IPv6 address"));
            }
            match behind {
                "" => (inside, None),
                _ => (inside, Some(behind.strip_prefix(':').ok_or_else(|| wrong("a port stands behind a colon"))?)),
            }
        }
        None => match host.split_once(':') {
            None => (host, None),
            // More than one colon without brackets is a bare IPv6 address.
            Some(_) if is_v6(host) => (host, None),
            Some((_, rest)) if rest.contains(':') => return Err(wrong("it is no IPv6 address")),
            Some((name, port)) => (name, Some(port)),
        },
    };
    if name.is_empty() {
        return Err(wrong("its name is missing"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => {
            let number =
                port.parse().ok().filter(|number| *number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()));
            number.ok_or_else(|| wrong("a port is a number from 1 to 65535"))?
        }
    };
    Ok((name, port))
}

/// Whether it is an IPv6 address, with or without a zone.
fn is_v6(text: &str) -> bool {
    text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// What a reached host is called: an address by itself, a name with the address behind it.
pub(super) fn label(host: &str, address: SocketAddr) -> String {
    let bare = split(host).map_or(host, |(name, _)| name);
    if bare.parse::<IpAddr>().is_ok() { address.to_string() } else { format!("{bare} ({address})") }
}

/// Whether the control connection to `host` would go over IPv6: known before it is made, so that a default can depend on it.
/// A name that cannot be resolved is not; connecting says so.
#[must_use]
pub fn leads_to_ipv6(host: &str, family: Family) -> bool {
    match family {
        Family::V4 => false,
        Family::V6 => true,
        Family::Any => {
            let found = split(host).ok().and_then(|place| place.to_socket_addrs().ok());
            found.and_then(|mut found| found.next()).is_some_and(|to| to.is_ipv6())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_names_no_host_or_no_port_is_refused() {
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
            let said = split(host).unwrap_err().to_string();
            assert!(said.starts_with(&format!("'{host}' names no host: ")), "{said}");
        }
    }
}
