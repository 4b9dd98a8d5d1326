//! The names of a lab's nodes, as each host sees them.
//!
//! `ip netns exec NAME` mounts the files of /etc/netns/NAME over those of /etc (ip-netns(8)), so that every program
//! finds the names, also one that a user starts that way. The reaper removes the files with their namespace.

use std::fmt::Write;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::LabError;

/// A node as a host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPeer {
    /// Its name in the topology.
    pub name: String,
    /// IPv4 address of the interface that it is reached at.
    pub v4: Ipv4Addr,
    /// The IPv6 address.
    pub v6: Ipv6Addr,
}

/// Where iproute2 looks for the files of a namespace.
const DIRECTORY: &str = "/etc/netns";
/// Marks a directory that a lab made.
const MARK: &str = ".throughline";

/// Writes the hosts file of each namespace.
pub(crate) fn write<'a>(hosts: impl Iterator<Item = (&'a str, &'a [NetworkPeer])>) -> Result<(), LabError> {
    let directory = Path::new(DIRECTORY);
    let fail = |source: io::Error| LabError::Names { path: directory.to_owned(), source };
    let mark = directory.join(MARK);
    let ours = !directory.exists() || mark.exists();
    // The machine's own names stay, after those of the lab.
    let own = fs::read_to_string("/etc/hosts").unwrap_or_default();
    for (namespace, peers) in hosts {
        let place = directory.join(namespace);
        fs::create_dir_all(&place).map_err(fail)?;
        if ours {
            // Not before: while it was empty another lab's reaper may have removed the directory.
            fs::write(&mark, "").map_err(fail)?;
        }
        fs::write(place.join("hosts"), text(peers, &own)).map_err(fail)?;
    }
    Ok(())
}

/// A hosts file (hosts(5)): a plain name is the IPv4 address, with the suffix `-v6` the IPv6 one, so that it is clear
/// which is used.
fn text(peers: &[NetworkPeer], own: &str) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for NetworkPeer { name, v4, v6 } in peers {
        let _ = writeln!(text, "{v4} {name}\n{v6} {name}-v6");
    }
    text + own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_address_and_precedes_the_machines_own() {
        let (v4, v6) = ("198.18.0.2".parse().unwrap(), "fd74:6872:7500::2".parse().unwrap());
        let text = text(&[NetworkPeer { name: "b".into(), v4, v6 }], "10.0.0.1 b machine\n");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2..], ["198.18.0.2 b", "fd74:6872:7500::2 b-v6", "10.0.0.1 b machine"]);
    }
}
