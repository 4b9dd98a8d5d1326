//! Any file below /proc/sys.

use std::io;

use super::{Control, Kind, Knob};
use crate::tune::backend::Backend;

/// `sysctl.NAME`.
pub(crate) struct Sysctl;

const ROOT: &str = "/proc/sys/";
/// What is listed: the network's settings, except those of each interface.
const LISTED: [&str; 5] = ["net/core/", "net/ipv4/", "net/ipv6/", "net/mptcp/", "net/unix/"];

/// Names below net that the kernel keeps once for all network namespaces: the tables that net/core/sysctl_net_core.c,
/// net/ipv4/sysctl_net_ipv4.c and net/ipv6/sysctl_net_ipv6.c register for the first namespace only.
const SHARED: [&str; 12] = [
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.inet_peer_threshold",
    "net.ipv4.inet_peer_minttl",
    "net.ipv4.inet_peer_maxttl",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.fib_sync_mem",
    "net.ipv4.icmp_msgs_per_sec",
    "net.ipv6.mld_max_msf",
    "net.ipv4.cipso_cache_enable",
];
/// Names below net.core that each namespace has for itself; all others there are host-wide.
const OWN_CORE: [&str; 6] = [
    "net.core.somaxconn",
    "net.core.optmem_max",
    "net.core.txrehash",
    "net.core.rps_default_mask",
    "net.core.tstamp_allow_data",
    "net.core.bypass_prot_mem",
];

/// Last parts of names whose values are secrets of the kernel (ip-sysctl.rst); only root may read them, and an agent
/// acts as root for others.
const SECRET: [&str; 2] = ["tcp_fastopen_key", "stable_secret"];

/// Another name of net.ipv4.ip_forward (linux/net/ipv4/devinet.c).
const FORWARDING: &str = "net.ipv4.conf.all.forwarding";

/// What must not be set twice at a time: a value of all interfaces is written to each (ip-sysctl.rst, conf/all), and
/// the times of a neighbour have two files, one in ms.
fn lease(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        ["net", "ipv4", "ip_forward"] => "net.ipv4.conf.*.forwarding".into(),
        ["net", version, "conf", "all", value] => format!("net.{version}.conf.*.{value}"),
        ["net", version, "neigh", interface, value] => {
            format!("net.{version}.neigh.{interface}.{}", value.trim_end_matches("_ms"))
        }
        _ => name.to_owned(),
    }
}

/// One file.
struct File {
    /// Name with dots.
    name: String,
    path: String,
}

/// The other of the two separators (sysctl(8): if a name's first separator is a slash, dots belong to names).
fn swapped(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect()
}

impl Kind for Sysctl {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[("sysctl.net.ipv4.tcp_rmem", "a file below /proc/sys")]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let name = key.strip_prefix("sysctl.")?;
        let slashes = name.find('/').is_some_and(|slash| name.find('.').is_none_or(|dot| slash < dot));
        let name = if slashes { swapped(name) } else { name.to_owned() };
        let path = swapped(&name);
        if path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return None;
        }
        if name == FORWARDING {
            // One value has one key.
            return self.setting("sysctl.net.ipv4.ip_forward");
        }
        let lease = format!("sysctl.{}", lease(&name));
        Some(Knob::new(format!("sysctl.{name}"), File { path: format!("{ROOT}{path}"), name })?.leasing(vec![lease]))
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        LISTED
            .iter()
            .flat_map(|directory| {
                let names = backend.list(&format!("{ROOT}{directory}")).unwrap_or_default();
                names.into_iter().filter(|name| !name.ends_with('/')).map(move |name| {
                    let name = swapped(&format!("{directory}{name}"));
                    format!("sysctl.{name}")
                })
            })
            .collect()
    }
}

impl Control for File {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        if SECRET.iter().any(|secret| self.name.ends_with(secret)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a secret: thru neither shows nor changes it"));
        }
        // Tabs become spaces, so that the displayed value can be typed.
        Ok(backend.read(&self.path)?.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        backend.write(&self.path, value)
    }

    fn host_wide(&self) -> bool {
        if self.name.starts_with("net.core.") {
            return !OWN_CORE.contains(&self.name.as_str());
        }
        !self.name.starts_with("net.") || SHARED.contains(&self.name.as_str())
    }

    fn cuts(&self) -> bool {
        let last = self.name.rsplit('.').next().unwrap_or_default();
        ["disable_ipv6", "rp_filter", "arp_ignore", "arp_filter", "mtu", "tcp_mem", "accept_local"].contains(&last)
    }
}
