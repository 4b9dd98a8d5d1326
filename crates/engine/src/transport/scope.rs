//! The scope of an IPv6 link-local address: the interface on whose link it is (RFC 4007). Without it the kernel takes no such address.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The IPv6 addresses of this host's interfaces, a line each: address, number, prefix, scope and flags in hexadecimal, and the name.
const ADDRESSES: &str = "/proc/net/if_inet6";

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    ip: Ipv6Addr,
    interface: u32,
    name: String,
}

/// Whether it is an IPv6 address that is valid on one link only.
#[must_use]
pub fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Whether it is a link-local address that does not say on which link.
#[must_use]
pub fn lacks_scope(address: &SocketAddr) -> bool {
    is_link_local(address.ip()) && scope_of(address) == 0
}

/// The number of the interface; 0 for an address without one.
#[must_use]
pub fn scope_of(address: &SocketAddr) -> u32 {
    match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    }
}

/// `ip` with a port. A link-local one gets the scope `scope`, or, if that is 0, the scope of this host's interface with that address.
#[must_use]
pub fn scoped(ip: IpAddr, port: u16, scope: u32) -> SocketAddr {
    let mut address = SocketAddr::new(ip, port);
    if let SocketAddr::V6(inner) = &mut address
        && inner.ip().is_unicast_link_local()
    {
        let own = || own().into_iter().find(|own| own.ip == *inner.ip()).map_or(0, |own| own.interface);
        let scope = if scope == 0 { own() } else { scope };
        inner.set_scope_id(scope);
    }
    address
}

/// Another port at the host of `address`; a link-local address keeps its scope.
#[must_use]
pub fn at_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// What a link-local address without a scope needs: the form with the interfaces of this host that have such addresses.
#[must_use]
pub fn scope_hint(ip: IpAddr) -> String {
    hint(ip, &own())
}

fn hint(ip: IpAddr, own: &[Own]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for own in own.iter().filter(|own| own.ip.is_unicast_link_local()) {
        if !names.contains(&own.name.as_str()) {
            names.push(&own.name);
        }
    }
    match names.as_slice() {
        [] => format!("it is a link-local address, and no interface of this host has one: write {ip}%INTERFACE"),
        [only] => format!("it is a link-local address: write {ip}%{only} (the interface of this host on that link)"),
        [first, ..] => format!(
            "it is a link-local address: write {ip}%{first}, or another interface of this host on that link ({})",
            names.join(", ")
        ),
    }
}

fn own() -> Vec<Own> {
    std::fs::read_to_string(ADDRESSES).map(|text| read(&text)).unwrap_or_default()
}

fn read(text: &str) -> Vec<Own> {
    let one = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let ip = Ipv6Addr::from(u128::from_str_radix(words.next()?, 16).ok()?);
        let interface = u32::from_str_radix(words.next()?, 16).ok()?;
        Some(Own { ip, interface, name: words.nth(3)?.to_owned() })
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00000000000000000000000000000001 01 80 10 80       lo
fe8000000000000000163efffe000001 0b 40 20 80     eth0
fe8000000000000000163efffe000001 0c 40 20 80  eth0.7
20010db8000000000000000000000001 0b 40 00 80     eth0
garbage
";

    #[test]
    fn the_kernels_table_is_read() {
        let own = read(TEXT);
        let short: Vec<(String, u32, &str)> =
            own.iter().map(|own| (own.ip.to_string(), own.interface, own.name.as_str())).collect();
        assert_eq!(
            short,
            [
                ("::1".into(), 1, "lo"),
                ("fe80::16:3eff:fe00:1".into(), 11, "eth0"),
                ("fe80::16:3eff:fe00:1".into(), 12, "eth0.7"),
                ("2001:db8::1".into(), 11, "eth0"),
            ]
        );
    }

    #[test]
    fn only_link_local_addresses_get_a_scope() {
        let with = |text: &str| scoped(text.parse().unwrap(), 7, 3).to_string();
        assert_eq!(
            ["fe80::1", "2001:db8::1", "192.0.2.1"].map(with),
            ["[fe80::1%3]:7", "[2001:db8::1]:7", "192.0.2.1:7"]
        );
        assert!(lacks_scope(&"[fe80::1]:7".parse().unwrap()) && !lacks_scope(&"[fe80::1%3]:7".parse().unwrap()));
        assert!(!lacks_scope(&"[2001:db8::1]:7".parse().unwrap()) && !is_link_local("169.254.0.1".parse().unwrap()));
    }

    #[test]
    fn a_missing_scope_is_explained_by_the_interfaces_of_this_host() {
        let ip: IpAddr = "fe80::1".parse().unwrap();
        let one = hint(ip, &read(TEXT)[..2]);
        assert!(one.contains("write fe80::1%eth0 ("), "{one}");
        let two = hint(ip, &read(TEXT));
        assert!(two.contains("fe80::1%eth0,") && two.contains("(eth0, eth0.7)"), "{two}");
        assert!(hint(ip, &[]).contains("no interface of this host"));
    }
}
