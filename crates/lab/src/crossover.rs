//! Two hosts joined by one link, as by a crossover cable.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::available::privileged_ip;
use crate::emulator::Emulator;
use crate::ip::Ip;
use crate::journal::{Journal, Record};
use crate::path::PathSpec;
use crate::scope::{Scope, reap_stale};
use crate::subnets::random;
use crate::{LabError, Subnets};

/// The interface at either end of the link. Each is in a namespace of its own, so the names do not meet.
const INTERFACE: &str = "eth0";
/// The smallest MTU of IPv6 (RFC 8200, section 5) and the largest of a veth link, in bytes.
const MTU: std::ops::RangeInclusive<u32> = 1_280..=65_535;
/// Packets that a device of an emulated path holds for the emulator (txqueuelen). A TUN device gives its sender no push back,
/// so what comes while the emulator is elsewhere must fit; what does not is counted by the kernel as dropped in sending.
const DEVICE_QUEUE: &str = "10000";
/// How long a link may take to come up: it takes milliseconds, but the machine may be busy.
const READY: Duration = Duration::from_secs(20);

/// What a lab of two hosts is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossoverSpec {
    /// Start of the lab's name; what follows makes it unique. Up to 32 lower-case letters, digits and hyphens.
    pub prefix: String,
    /// MTU of the link in bytes, 1280 to 65535.
    pub mtu: u32,
    /// Subnets of the link; `None` chooses a pair that has no route on this machine and no other lab.
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
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=32).contains(&self.prefix.len()) || !self.prefix.chars().all(letters) || self.prefix.starts_with('-') {
            let remedy = "use 1 to 32 lower-case letters, digits and hyphens, such as thru";
            return Err(LabError::Spec { what: format!("the prefix '{}' does not do as a name", self.prefix), remedy });
        }
        if !MTU.contains(&self.mtu) {
            let remedy = "use 1280 (IPv6 needs that much) to 65535";
            return Err(LabError::Spec { what: format!("an MTU of {} bytes", self.mtu), remedy });
        }
        self.subnets.map_or(Ok(()), |subnets| subnets.check())
    }
}

/// Two hosts, `a` and `b`, joined by a link. Removed when it is dropped; processes that still run on its hosts are killed.
#[derive(Debug)]
pub struct Lab {
    name: String,
    hosts: [LabHost; 2],
    /// Before the namespaces, which its devices keep alive.
    emulator: Option<Emulator>,
    scope: Scope,
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
    ip: Ip,
}

impl Lab {
    /// Makes two namespaces and joins them by a veth pair, with loopback up in each and the addresses in use when this
    /// returns. Offloads, queues and settings are the kernel's defaults. First removes what dead owners left.
    ///
    /// # Errors
    /// For a spec that cannot be, without the means that [`available`](crate::available) checks, when the journal cannot be
    /// written, when a command fails. Nothing is left then.
    pub fn crossover(spec: &CrossoverSpec) -> Result<Self, LabError> {
        let mut lab = Self::hosts_of(spec)?;
        lab.join(spec.mtu)?;
        lab.configure("UP")?;
        Ok(lab)
    }

    /// Two hosts that no link joins yet.
    pub(crate) fn hosts_of(spec: &CrossoverSpec) -> Result<Self, LabError> {
        spec.check()?;
        let ip = privileged_ip()?;
        let _ = reap_stale(); // another lab's remains are no reason to refuse this one
        let journal = Journal::open()?;
        let subnets = match spec.subnets {
            Some(subnets) => subnets,
            None => Subnets::choose(&routes(&ip)?, &used(&journal)?)?,
        };
        let name = format!("{}-{:08x}", spec.prefix, random() as u32);
        let hosts = [("a", 1), ("b", 2)].map(|(host, number)| {
            let (v4, v6) = subnets.host(number);
            let namespace = format!("{name}-{host}");
            LabHost { name: host.into(), namespace, interface: INTERFACE.into(), v4, v6, ip: ip.clone() }
        });
        let namespaces = hosts.iter().map(|host| host.namespace.clone()).collect();
        let record = Record { lab: name.clone(), owner_pid: process::id(), namespaces, subnets: Some(subnets) };
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

    /// What carries the packets between the hosts of [`Lab::path`]; `None` with a veth pair.
    #[must_use]
    pub fn emulator(&self) -> Option<&Emulator> {
        self.emulator.as_ref()
    }

    /// Removes the lab, as dropping it does, and says whether everything is gone.
    ///
    /// # Errors
    /// [`LabError::LeftBehind`] names what could not be removed.
    pub fn close(self) -> Result<(), LabError> {
        drop(self.emulator);
        self.scope.close()
    }

    /// Joins the hosts by an emulated path.
    pub(crate) fn emulate(&mut self, spec: &PathSpec) -> Result<(), LabError> {
        let namespaces = self.hosts.each_ref().map(|host| host.namespace.clone());
        let ways = [spec.forward.clone(), spec.back.clone()];
        let emulator = Emulator::start(namespaces, INTERFACE, &ways, spec.link.mtu, spec.seed);
        self.emulator = Some(emulator.map_err(|source| LabError::Emulator { source })?);
        let mtu = spec.link.mtu.to_string();
        for host in &self.hosts {
            let device = ["-n", &host.namespace, "link", "set", "dev", &host.interface];
            self.scope.run(&[device.as_slice(), &["mtu", &mtu, "txqueuelen", DEVICE_QUEUE]].concat())?;
        }
        self.configure("UNKNOWN")?;
        // What changes on the path changes so long after it can be used.
        self.emulator.iter().for_each(Emulator::restart);
        Ok(())
    }

    /// Joins the hosts by a veth pair.
    fn join(&mut self, mtu: u32) -> Result<(), LabError> {
        let [a, b] = &self.hosts;
        let mtu = mtu.to_string();
        // Made inside the namespaces, the link never shows on the machine itself, and cannot outlive them.
        let (near, far) = (["name", &a.interface, "mtu", &mtu], ["name", &b.interface, "mtu", &mtu]);
        let inside = [&["-n", &a.namespace, "link", "add"], near.as_slice(), &["type", "veth"]].concat();
        self.scope.run(&[&inside, ["peer"].as_slice(), &far, &["netns", &b.namespace]].concat())?;
        Ok(())
    }

    /// Gives the hosts their addresses and waits until they can be used, which is when the kernel gives the links this state.
    fn configure(&self, state: &str) -> Result<(), LabError> {
        self.hosts.iter().try_for_each(|host| self.address(host))?;
        self.hosts.iter().try_for_each(|host| self.wait_until_ready(host, state))
    }

    fn address(&self, host: &LabHost) -> Result<(), LabError> {
        let run = |args: &[&str]| self.scope.run(&[&["-n", &host.namespace], args].concat());
        let v4 = format!("{}/{}", host.v4, Subnets::V4_PREFIX);
        let v6 = format!("{}/{}", host.v6, Subnets::V6_PREFIX);
        run(&["link", "set", "dev", "lo", "up"])?;
        run(&["address", "add", &v4, "dev", &host.interface])?;
        // Duplicate address detection would keep the address unusable for a second; here nobody else can have it.
        run(&["-6", "address", "add", &v6, "dev", &host.interface, "nodad"])?;
        run(&["link", "set", "dev", &host.interface, "up"])?;
        Ok(())
    }

    /// The kernel tells the end of a link by a work queue that its other end is up; only then are its addresses in use.
    fn wait_until_ready(&self, host: &LabHost, state: &str) -> Result<(), LabError> {
        let args = ["-j", "-n", &host.namespace, "address", "show", "dev", &host.interface];
        let deadline = Instant::now() + READY;
        while Instant::now() < deadline {
            let links: Vec<Link> = parse(&args, &self.scope.run(&args)?)?;
            if links.iter().any(|link| link.ready(host, state)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(LabError::NotReady {
            namespace: host.namespace.clone(),
            interface: host.interface.clone(),
            seconds: READY.as_secs(),
        })
    }
}

impl LabHost {
    /// A command that will run `program` on this host: in its network namespace, with a /sys that shows it. Files,
    /// processes, name and user are those of the machine. The child's process number is the program's own.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.ip.exec(&self.namespace, program.as_ref())
    }
}

/// An interface in the output of `ip -j address`.
#[derive(Debug, Deserialize)]
struct Link {
    #[serde(default)]
    operstate: String,
    #[serde(default)]
    addr_info: Vec<LinkAddress>,
}

#[derive(Debug, Deserialize)]
struct LinkAddress {
    local: String,
    #[serde(default)]
    tentative: bool,
}

impl Link {
    fn ready(&self, host: &LabHost, state: &str) -> bool {
        let usable = |address: &LinkAddress| address.local.parse() == Ok(host.v6) && !address.tentative;
        self.operstate == state && self.addr_info.iter().any(usable)
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

/// Subnets of the labs that exist.
fn used(journal: &Journal) -> Result<Vec<Subnets>, LabError> {
    Ok(journal.records()?.into_iter().filter_map(|record| record.subnets).collect())
}

/// The list that an `ip -j` command printed; it prints nothing at all for an empty one.
fn parse<T: serde::de::DeserializeOwned>(args: &[&str], text: &str) -> Result<Vec<T>, LabError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(text)
        .map_err(|error| LabError::Run { command: format!("ip {}", args.join(" ")), source: error.into() })
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

    #[test]
    fn an_address_under_duplicate_detection_is_not_ready() {
        let (v4, v6) = ("198.18.0.1".parse().unwrap(), "fd74:6872:7500::1".parse().unwrap());
        let ip = Ip { program: "/sbin/ip".into() };
        let host = LabHost { name: "a".into(), namespace: "n".into(), interface: "eth0".into(), v4, v6, ip };
        let ready = |state: &str, more: &str| {
            let text = format!(
                r#"[{{"operstate":"{state}","addr_info":[{{"family":"inet6","local":"fd74:6872:7500::1"{more}}}]}}]"#
            );
            parse::<Link>(&[], &text).unwrap()[0].ready(&host, "UP")
        };
        assert!(ready("UP", ""));
        assert!(!ready("UP", r#","tentative":true"#));
        assert!(!ready("LOWERLAYERDOWN", ""));
    }
}
