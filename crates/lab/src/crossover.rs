//! Two hosts joined by one link, as by a crossover cable.

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{self, Command};

use serde::Deserialize;

use crate::available::privileged_ip;
use crate::bounds::{check_mtu, check_prefix};
use crate::emulator::{Emulator, within};
use crate::ip::{Ip, parse};
use crate::journal::{Journal, Record};
use crate::plug::{self, Plug};
use crate::scope::{Scope, reap_stale};
use crate::subnets::random;
use crate::{LabError, Subnets};

/// The interface at either end of the link. Each is in its own namespace, so the names do not clash.
const INTERFACE: &str = "eth0";
/// The options of a lab of two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossoverSpec {
    /// Start of the lab's name; a suffix makes it unique. Up to 32 lower-case letters, digits and hyphens.
    pub prefix: String,
    /// MTU of the link in bytes, 1280 to 65535.
    pub mtu: u32,
    /// Subnets of the link; `None` chooses a pair without a route on this machine or in another lab.
    pub subnets: Option<Subnets>,
}

impl Default for CrossoverSpec {
    /// `thru-...`, an MTU of 1500 bytes, chosen subnets.
    fn default() -> Self {
        Self { prefix: "thru".into(), mtu: 1_500, subnets: None }
    }
}

impl CrossoverSpec {
    fn check(&self) -> Result<(), LabError> {
        check_prefix(&self.prefix)?;
        check_mtu(self.mtu)?;
        self.subnets.map_or(Ok(()), |subnets| subnets.check())
    }
}

/// Two hosts, `a` and `b`, joined by a link. Removed when it is dropped; processes that still run on its hosts are
/// killed.
#[derive(Debug)]
pub struct Lab {
    name: String,
    pub(crate) hosts: [LabHost; 2],
    /// Before the namespaces, because its devices keep them alive.
    pub(crate) emulator: Option<Emulator>,
    pub(crate) scope: Scope,
}

/// A host of a lab.
#[derive(Debug, Clone)]
pub struct LabHost {
    /// Name within the lab: `a` or `b`.
    pub name: String,
    /// Network namespace, as `ip netns` knows it.
    pub namespace: String,
    /// Interface of the link.
    pub interface: String,
    /// IPv4 address on the link.
    pub v4: Ipv4Addr,
    /// IPv6 address on the link.
    pub v6: Ipv6Addr,
    pub(crate) ip: Ip,
}

impl Lab {
    /// Makes two namespaces and joins them by a veth pair. When this returns, loopback is up in each and the addresses
    /// are usable. Offloads, queues and settings are the kernel's defaults. First removes what dead owners left.
    ///
    /// # Errors
    /// For an invalid spec, without the means that [`available`](crate::available) checks, if the journal cannot be
    /// written, or if a command fails. Nothing is left then.
    pub fn crossover(spec: &CrossoverSpec) -> Result<Self, LabError> {
        let mut lab = Self::hosts_of(spec)?;
        lab.join(spec.mtu)?;
        lab.configure("UP")?;
        Ok(lab)
    }

    /// Two hosts without a link yet.
    pub(crate) fn hosts_of(spec: &CrossoverSpec) -> Result<Self, LabError> {
        spec.check()?;
        let ip = privileged_ip()?;
        let _ = reap_stale(); // another lab's remains are no reason to refuse this one
        let journal = Journal::open()?;
        let subnets = match spec.subnets {
            Some(subnets) => subnets,
            None => Subnets::choose(&taken(&ip, &journal)?)?,
        };
        let name = format!("{}-{:08x}", spec.prefix, random()? as u32);
        let hosts = [("a", 1), ("b", 2)].map(|(host, number)| {
            let (v4, v6) = subnets.host(number);
            let namespace = format!("{name}-{host}");
            LabHost { name: host.into(), namespace, interface: INTERFACE.into(), v4, v6, ip: ip.clone() }
        });
        let namespaces = hosts.iter().map(|host| host.namespace.clone()).collect();
        let record = Record { namespaces, subnets: Some(subnets), ..Record::of(name.clone()) };
        let scope = Scope::open(ip, &journal, record)?;
        let lab = Self { name, hosts, emulator: None, scope };
        for host in &lab.hosts {
            lab.scope.run(&["netns", "add", &host.namespace])?;
        }
        Ok(lab)
    }

    /// Name of the lab, the start of its namespaces' names.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Both hosts, `a` first.
    #[must_use]
    pub fn hosts(&self) -> &[LabHost] {
        &self.hosts
    }

    /// The host called `a` or `b`.
    ///
    /// # Errors
    /// For any other name.
    pub fn host(&self, name: &str) -> Result<&LabHost, LabError> {
        self.hosts.iter().find(|host| host.name == name).ok_or_else(|| LabError::NoHost {
            name: name.into(),
            hosts: self.hosts.each_ref().map(|host| host.name.as_str()).join(" and "),
        })
    }

    /// The emulator between the hosts of [`Lab::path`]; `None` with a veth pair.
    #[must_use]
    pub fn emulator(&self) -> Option<&Emulator> {
        self.emulator.as_ref()
    }

    /// Removes the lab, as dropping it does, and reports whether everything was removed.
    ///
    /// # Errors
    /// [`LabError::LeftBehind`] names what could not be removed.
    pub fn close(self) -> Result<(), LabError> {
        drop(self.emulator);
        self.scope.close()
    }

    /// The ends of the link.
    pub(crate) fn plugs(&self) -> [Plug<'_>; 2] {
        self.hosts.each_ref().map(|host| Plug { namespace: &host.namespace, interface: &host.interface })
    }

    /// Joins the hosts by a veth pair.
    fn join(&mut self, mtu: u32) -> Result<(), LabError> {
        plug::join(&self.scope, self.plugs(), mtu)
    }

    /// Gives the hosts their addresses and waits until they are usable, which is when the kernel gives the links this
    /// state.
    pub(crate) fn configure(&self, state: &str) -> Result<(), LabError> {
        for (host, plug) in self.hosts.iter().zip(self.plugs()) {
            plug::prepare(&self.scope, &host.namespace)?;
            plug.address(&self.scope, (host.v4, Subnets::V4_PREFIX), host.v6)?;
        }
        let each = self.hosts.iter().zip(self.plugs());
        each.into_iter().try_for_each(|(host, plug)| plug.wait_until_ready(&self.scope, host.v6, state))
    }
}

impl LabHost {
    /// A command that will run `program` on this host: in its network namespace, with a /sys that shows it. Files,
    /// processes, name and user are those of the machine. The child's process number is the program's own.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.ip.exec(&self.namespace, program.as_ref())
    }

    /// Calls `work` with this thread in the host's network namespace, and returns to the old one. Its sockets and
    /// `/proc/thread-self/net` are those of the host; /sys is not.
    ///
    /// # Errors
    /// The thread cannot move, or `work` fails.
    pub fn within<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        within(&self.namespace, work)
    }
}

/// A route in the output of `ip -j route`.
#[derive(Debug, Deserialize)]
struct Route {
    dst: Option<String>,
}

/// Destinations of all routes of this machine, of both IP versions.
fn routes(ip: &Ip) -> Result<Vec<String>, LabError> {
    let mut destinations = Vec::new();
    for version in ["-4", "-6"] {
        let args = ["-j", version, "route", "show", "table", "all"];
        let routes: Vec<Route> = parse(&args, &ip.run(&args, process::Stdio::null())?)?;
        destinations.extend(routes.into_iter().filter_map(|route| route.dst));
    }
    Ok(destinations)
}

/// Destinations that a new lab must avoid: those of this machine, and the networks of other labs.
pub(crate) fn taken(ip: &Ip, journal: &Journal) -> Result<Vec<String>, LabError> {
    let mut taken = routes(ip)?;
    taken.extend(journal.records()?.iter().flat_map(Record::destinations));
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_specs_name_the_remedy() {
        let good = CrossoverSpec::default();
        assert!(good.check().is_ok());
        let subnets = Some(Subnets { v4: [10, 0, 0, 1].into(), v6: Ipv6Addr::UNSPECIFIED });
        for bad in [
            CrossoverSpec { mtu: 1_279, ..good.clone() },
            CrossoverSpec { mtu: 65_536, ..good.clone() },
            CrossoverSpec { prefix: String::new(), ..good.clone() },
            CrossoverSpec { prefix: "../etc".into(), ..good.clone() },
            CrossoverSpec { prefix: "-n".into(), ..good.clone() },
            CrossoverSpec { subnets, ..good.clone() },
        ] {
            let message = bad.check().unwrap_err().to_string();
            assert!(message.contains("use "), "{message}");
        }
    }
}
