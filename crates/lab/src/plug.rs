//! Ends of links: creating, addressing, and waiting for them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::thread;
use std::time::{Duration, Instant};

use host::{RealSys, Sys, observe};
use serde::Deserialize;

use crate::emulator::within;
use crate::ip::parse;
use crate::scope::Scope;
use crate::{LabError, Subnets};

/// Packets that a device of an emulated path queues for the emulator (txqueuelen). A TUN device gives its sender no
/// back pressure, so what arrives while the emulator is busy must fit; the kernel counts the excess as dropped in
/// sending.
const DEVICE_QUEUE: &str = "10000";
/// How long a link may take to come up: it takes milliseconds, but the machine may be busy.
const READY: Duration = Duration::from_secs(20);

/// An interface in a namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plug<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) interface: &'a str,
}

impl Plug<'_> {
    /// Packets that its device had no room for in sending (`tx_dropped`); `None` if it cannot be read.
    pub(crate) fn dropped(&self) -> Option<u64> {
        let read = || within(self.namespace, || RealSys.read("/proc/thread-self/net/dev"));
        // In its own thread, so that no other one can end up in the namespace.
        let text = thread::scope(|scope| scope.spawn(read).join()).ok()?.ok()?;
        observe::interface_totals(&text).get(self.interface)?.get("tx_dropped").copied()
    }
}

/// Joins two interfaces by a veth pair. Created inside the namespaces, the link never appears on the machine itself,
/// and cannot outlive them.
pub(crate) fn join(scope: &Scope, [a, b]: [Plug<'_>; 2], mtu: u32) -> Result<(), LabError> {
    let mtu = mtu.to_string();
    let (near, far) = (["name", a.interface, "mtu", &mtu], ["name", b.interface, "mtu", &mtu]);
    let inside = [&["-n", a.namespace, "link", "add"], near.as_slice(), &["type", "veth"]].concat();
    scope.run(&[&inside, ["peer"].as_slice(), &far, &["netns", b.namespace]].concat())?;
    Ok(())
}

/// Brings a host's loopback up, and lets its users send echoes: agents are ordinary users, and a new namespace lets none (icmp(7)).
pub(crate) fn prepare(scope: &Scope, namespace: &str) -> Result<(), LabError> {
    scope.run(&["-n", namespace, "link", "set", "dev", "lo", "up"])?;
    let write = "echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range";
    scope.run(&["netns", "exec", namespace, "sh", "-ec", write]).map(drop)
}

impl Plug<'_> {
    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, scope: &Scope, args: &[&str]) -> Result<String, LabError> {
        scope.run(&[&["-n", self.namespace], args].concat())
    }

    /// Sets the queue length of the emulator's device.
    pub(crate) fn make_room(&self, scope: &Scope, mtu: u32) -> Result<(), LabError> {
        let mtu = mtu.to_string();
        self.ip(scope, &["link", "set", "dev", self.interface, "mtu", &mtu, "txqueuelen", DEVICE_QUEUE]).map(drop)
    }

    /// Gives the interface its addresses and brings it up.
    pub(crate) fn address(&self, scope: &Scope, v4: (Ipv4Addr, u8), v6: Ipv6Addr) -> Result<(), LabError> {
        let (v4, v6) = (format!("{}/{}", v4.0, v4.1), format!("{v6}/{}", Subnets::V6_PREFIX));
        self.ip(scope, &["address", "add", &v4, "dev", self.interface])?;
        // Duplicate address detection would keep the address unusable for a second; here no other node can have it.
        self.ip(scope, &["-6", "address", "add", &v6, "dev", self.interface, "nodad"])?;
        self.ip(scope, &["link", "set", "dev", self.interface, "up"]).map(drop)
    }

    /// The kernel informs the end of a link by a work queue that its other end is up; only then are its addresses
    /// usable.
    pub(crate) fn wait_until_ready(&self, scope: &Scope, v6: Ipv6Addr, state: &str) -> Result<(), LabError> {
        let args = ["-j", "-n", self.namespace, "address", "show", "dev", self.interface];
        let deadline = Instant::now() + READY;
        while Instant::now() < deadline {
            let shown: Vec<Shown> = parse(&args, &scope.run(&args)?)?;
            if shown.iter().any(|shown| shown.ready(v6, state)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(LabError::NotReady {
            namespace: self.namespace.into(),
            interface: self.interface.into(),
            seconds: READY.as_secs(),
        })
    }
}

/// An interface in the output of `ip -j address`.
#[derive(Debug, Deserialize)]
struct Shown {
    #[serde(default)]
    operstate: String,
    #[serde(default)]
    addr_info: Vec<ShownAddress>,
}

#[derive(Debug, Deserialize)]
struct ShownAddress {
    local: String,
    #[serde(default)]
    tentative: bool,
}

impl Shown {
    fn ready(&self, v6: Ipv6Addr, state: &str) -> bool {
        let usable = |address: &ShownAddress| address.local.parse() == Ok(v6) && !address.tentative;
        self.operstate == state && self.addr_info.iter().any(usable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_under_duplicate_detection_is_not_ready() {
        let v6: Ipv6Addr = "fd74:6872:7500::1".parse().unwrap();
        let ready = |state: &str, more: &str| {
            let text = format!(
                r#"[{{"operstate":"{state}","addr_info":[{{"family":"inet6","local":"fd74:6872:7500::1"{more}}}]}}]"#
            );
            parse::<Shown>(&[], &text).unwrap()[0].ready(v6, "UP")
        };
        assert!(ready("UP", ""));
        assert!(!ready("UP", r#","tentative":true"#));
        assert!(!ready("LOWERLAYERDOWN", ""));
    }
}
