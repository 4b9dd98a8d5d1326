//! The kernel's route for a packet: `ip route get`, by RTM_GETROUTE (rtnetlink(7), linux/rtnetlink.h).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use model::Route;

use crate::netlink::{Attributes, NetlinkFamily, NetlinkRequest, put};
use crate::sys::Sys;

const GET_ROUTE: u16 = 26;
/// Size of `struct rtmsg`; the route's type is at byte 7.
const HEADER: usize = 12;
const TYPE: usize = 7;
const TYPES: [&str; 9] =
    ["unspecified", "unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit"];

const DESTINATION: u16 = 1;
const OUT: u16 = 4;
const GATEWAY: u16 = 5;
const PREFERRED_SOURCE: u16 = 7;
const METRICS: u16 = 8;
const VIA: u16 = 18;

const METRIC_MTU: u16 = 2;
const METRIC_ADVMSS: u16 = 8;
const METRIC_INITCWND: u16 = 11;
const METRIC_INITRWND: u16 = 14;
const METRIC_QUICKACK: u16 = 15;
const METRIC_CC: u16 = 16;

const NET: &str = "/sys/class/net";

/// The route to `peer`.
///
/// # Errors
/// The kernel's error, for example that the network is unreachable.
pub(super) fn to(sys: &dyn Sys, to: SocketAddr) -> io::Result<Route> {
    let peer = to.ip();
    let (family, address) = match peer {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    let mut body = vec![0; HEADER];
    body[0] = family as u8;
    body[1] = 8 * address.len() as u8;
    put(&mut body, DESTINATION, &address);
    if let SocketAddr::V6(to) = to
        && to.scope_id() > 0
    {
        put(&mut body, OUT, &to.scope_id().to_ne_bytes());
    }
    let request = NetlinkRequest {
        name: format!("route-{peer}"),
        family: NetlinkFamily::Route,
        kind: GET_ROUTE,
        dump: false,
        body,
    };
    let answers = sys.netlink(&request)?;
    let answer = answers.first().ok_or(io::ErrorKind::NotFound)?;
    Ok(route(sys, answer))
}

fn route(sys: &dyn Sys, answer: &[u8]) -> Route {
    let attributes = Attributes::after(answer, HEADER);
    let interface = attributes.number32(OUT).and_then(|index| name(sys, index));
    let mtu = interface.as_deref().and_then(|name| sys.read(&format!("{NET}/{name}/mtu")).ok()?.trim().parse().ok());
    // A gateway of the other IP version comes with its family in front (struct rtvia).
    let gateway = attributes.get(GATEWAY).or_else(|| attributes.get(VIA)?.get(2..));
    let metrics = attributes.nested(METRICS);
    let metric = |kind| metrics.and_then(|metrics| metrics.number32(kind)).filter(|value| *value != 0);
    Route {
        kind: answer.get(TYPE).and_then(|kind| TYPES.get(usize::from(*kind))).map(|kind| (*kind).to_owned()),
        source: attributes.get(PREFERRED_SOURCE).and_then(address).map(|address| address.to_string()),
        gateway: gateway.and_then(address).map(|address| address.to_string()),
        interface_mtu: mtu,
        mtu: metric(METRIC_MTU),
        initcwnd: metric(METRIC_INITCWND),
        initrwnd: metric(METRIC_INITRWND),
        advmss: metric(METRIC_ADVMSS),
        cc: metrics.and_then(|metrics| metrics.text(METRIC_CC)),
        quickack: metric(METRIC_QUICKACK).map(|value| value != 0),
        interface,
    }
}

fn name(sys: &dyn Sys, index: u32) -> Option<String> {
    let names = sys.list(NET).ok()?;
    let has =
        |name: &String| sys.read(&format!("{NET}/{name}/ifindex")).is_ok_and(|text| text.trim().parse() == Ok(index));
    names.into_iter().find(has)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::FakeSys;

    #[test]
    fn a_recorded_route_is_read_with_its_metrics() {
        let sys = FakeSys::new(format!("{}/testdata/server", env!("CARGO_MANIFEST_DIR")));
        let route = to(&sys, "198.51.100.9:0".parse().unwrap()).unwrap();
        let expected = Route {
            kind: Some("unicast".into()),
            interface: Some("ens1f0".into()),
            source: Some("203.0.113.7".into()),
            gateway: Some("203.0.113.1".into()),
            interface_mtu: Some(9_000),
            mtu: Some(1_476),
            initcwnd: Some(40),
            cc: Some("bbr".into()),
            ..Route::default()
        };
        assert_eq!(route, expected);
        assert_eq!(to(&sys, "192.0.2.1:0".parse().unwrap()).unwrap_err().raw_os_error(), Some(libc::ENETUNREACH));
    }
}
