//! Two hosts with the link under test, and a second cable for control, so that the link carries only data.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::Failure;
use lab::{CrossoverSpec, DirectionSpec, Lab, LabHost, PathCounts, PathSpec};
use model::Run;
use serde_json::Value;

use super::claims::{Count, ETHERNET, TCP_IP};
use crate::labs::own::{OwnAgent, failure_of, measure};

/// The control cable's addresses, from TEST-NET-1 (RFC 5737).
const CONTROL: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
/// Queue before the shaper, bytes: more than TCP has in flight with the buffers below, so that nothing is dropped.
const QUEUE_BYTES: u64 = 128 << 20;
/// Socket buffers as time at the shaper's rate, ms: the shaper stays busy while the sender waits for a core.
const BUFFER_MS: u64 = 200;

/// What limits the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shaper {
    /// Nothing but the machine: a veth pair.
    None,
    /// The kernel's token bucket before a veth pair.
    Tbf,
    /// The path emulator.
    Emulator,
}

/// A link with an agent at its far end.
pub(super) struct Link {
    // Declared first, so that the agent ends before its host is removed.
    agent: OwnAgent,
    pub(super) lab: Lab,
    shaper: Shaper,
    program: PathBuf,
}

impl Link {
    /// A link of `rate_bps` from `a` to `b`.
    pub(super) fn of_rate(program: &Path, shaper: Shaper, rate_bps: u64, mtu: u32) -> Result<Self, Failure> {
        let link = CrossoverSpec { mtu, ..CrossoverSpec::default() };
        let lab = match shaper {
            Shaper::None | Shaper::Tbf => Lab::crossover(&link)?,
            Shaper::Emulator => {
                let forward =
                    DirectionSpec { rate_bps: Some(rate_bps), queue_bytes: QUEUE_BYTES, ..DirectionSpec::default() };
                Lab::path(&PathSpec { link, forward, reverse: DirectionSpec::default(), seed: 1 })?
            }
        };
        let link = Self::finish(program, lab, shaper)?;
        let bytes = rate_bps / 8 * BUFFER_MS / 1_000;
        for host in link.lab.hosts() {
            let limits = format!(
                "cd /proc/sys/net/ipv4; echo 4096 131072 {bytes} > tcp_rmem; echo 4096 65536 {bytes} > tcp_wmem"
            );
            run(host, "sh", &["-ec", &limits])?;
        }
        if shaper == Shaper::Tbf {
            // A bucket of 4 ms compensates for a late timer and is negligible in a measurement of 5 s. It holds a GSO packet with
            // the headers of its segments, except at rates where such a bucket would add a percent: there the kernel splits them.
            let least = if rate_bps < 100_000_000 { 0 } else { 80_000 };
            let (rate, burst) = (format!("{rate_bps}bit"), (rate_bps / 8 / 250).max(least).to_string());
            let limit = QUEUE_BYTES.to_string();
            let bucket = ["tbf", "rate", &rate, "burst", &burst, "limit", &limit];
            link.on_a("tc", &[["qdisc", "add", "dev", "eth0", "root"].as_slice(), &bucket].concat())?;
        }
        Ok(link)
    }

    /// A link as fast as the machine.
    pub(super) fn unshaped(program: &Path, mtu: u32) -> Result<Self, Failure> {
        Self::finish(program, Lab::crossover(&CrossoverSpec { mtu, ..CrossoverSpec::default() })?, Shaper::None)
    }

    /// An emulated path; `forward` leads from `a` to `b`.
    pub(super) fn path(program: &Path, forward: DirectionSpec, reverse: DirectionSpec) -> Result<Self, Failure> {
        let lab = Lab::path(&PathSpec { link: CrossoverSpec::default(), forward, reverse, seed: 1 })?;
        Self::finish(program, lab, Shaper::Emulator)
    }

    fn finish(program: &Path, lab: Lab, shaper: Shaper) -> Result<Self, Failure> {
        let [a, b] = lab.hosts() else { return Err(unexpected("a lab of two hosts")) };
        let peer = ["peer", "name", "ctl0", "netns", &b.namespace];
        run(a, "ip", &[["link", "add", "ctl0", "type", "veth"].as_slice(), &peer].concat())?;
        for (host, address) in [a, b].into_iter().zip(CONTROL) {
            run(host, "ip", &["address", "add", &format!("{address}/30"), "dev", "ctl0"])?;
            run(host, "ip", &["link", "set", "dev", "ctl0", "up"])?;
            // IPv6 would send router solicitations and multicast reports.
            run(host, "sh", &["-c", "echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6"])?;
        }
        if shaper != Shaper::Emulator {
            // Permanent neighbour entries avoid ARP.
            for (host, other) in [(a, b), (b, a)] {
                let address = hardware_address(other)?;
                let entry = [&other.v4.to_string(), "lladdr", &address, "dev", "eth0", "nud", "permanent"];
                run(host, "ip", &[["neighbour", "replace"].as_slice(), &entry].concat())?;
            }
        }
        let agent = OwnAgent::start(b.command(program), CONTROL[1])?;
        Ok(Self { agent, shaper, program: program.to_owned(), lab })
    }

    /// Measures from `a` with `thru`; `args` are its subcommand and flags.
    pub(super) fn measure(&self, args: &[&str]) -> Result<Run, Failure> {
        let data = self.far_address()?;
        self.measure_at(&[args, &[self.agent.target.as_str(), "--data", &data]].concat())
    }

    /// Measures one trial from `a` with the flags of a whole command.
    pub(super) fn measure_at(&self, args: &[&str]) -> Result<Run, Failure> {
        measure(self.command_on_a(&self.program)?, &[args, &["--trials", "1"]].concat())
    }

    /// An agent on `b` that also serves the clients of another program.
    pub(super) fn speaking(&self, program: &str) -> Result<OwnAgent, Failure> {
        let b = self.lab.host("b")?;
        let listen = format!("{}:0", b.v4);
        let flags = ["--open", "--listen", &listen, "--speak", program].map(Into::into);
        OwnAgent::serving(b.command(&self.program), &flags, &listen)
    }

    /// A command on `a`.
    pub(super) fn command_on_a(&self, program: impl AsRef<OsStr>) -> Result<Command, Failure> {
        Ok(self.lab.host("a")?.command(program))
    }

    /// Address of `b` on the link.
    pub(super) fn far_address(&self) -> Result<String, Failure> {
        Ok(self.lab.host("b")?.v4.to_string())
    }

    /// The counters of `a` (sent), `b` (received) and the shaper (passed).
    pub(super) fn counts(&self) -> Result<Vec<Count>, Failure> {
        let [a, b] = self.lab.hosts() else { return Err(unexpected("a lab of two hosts")) };
        let of = |host, direction: &str| -> Result<Count, Failure> {
            let shown = json(host, "ip", &["-j", "-s", "link", "show", "dev", "eth0"])?;
            let number = |what| number(&shown, &format!("/0/stats64/{direction}/{what}"));
            Ok(Count { bytes: number("bytes")?, packets: number("packets")?, header: self.header(TCP_IP) })
        };
        let mut counts = vec![of(a, "tx")?, of(b, "rx")?];
        counts.extend(self.shaped()?);
        Ok(counts)
    }

    /// What an interface counts of a packet beyond the payload, with a network and transport header of `beyond` bytes.
    pub(super) fn header(&self, beyond: u64) -> u64 {
        if self.shaper == Shaper::Emulator { beyond } else { ETHERNET + beyond }
    }

    fn shaped(&self) -> Result<Option<Count>, Failure> {
        let header = ETHERNET + TCP_IP;
        match (self.shaper, self.emulator()) {
            (_, Some([forward, _])) => {
                let header = TCP_IP + u64::from(DirectionSpec::ETHERNET);
                Ok(Some(Count { bytes: forward.delivered_bytes, packets: forward.delivered, header }))
            }
            (Shaper::Tbf, None) => {
                let shown = json(self.lab.host("a")?, "tc", &["-j", "-s", "qdisc", "show", "dev", "eth0"])?;
                let number = |what| number(&shown, what);
                Ok(Some(Count { bytes: number("/0/bytes")?, packets: number("/0/packets")?, header }))
            }
            _ => Ok(None),
        }
    }

    /// The emulator's counts in both directions, if there is one.
    pub(super) fn emulator(&self) -> Option<[PathCounts; 2]> {
        self.lab.emulator().map(lab::Emulator::counts)
    }

    fn on_a(&self, program: &str, args: &[&str]) -> Result<(), Failure> {
        run(self.lab.host("a")?, program, args).map(drop)
    }
}

fn unexpected(what: &str) -> Failure {
    failure_of(format!("expect {what}"), std::io::Error::other("the output is different"))
}

fn run(host: &LabHost, program: &str, args: &[&str]) -> Result<Vec<u8>, Failure> {
    let operation = || format!("run `{program} {}` on host {} of the self-test", args.join(" "), host.name);
    let output = host.command(program).args(args).output().map_err(|source| failure_of(operation(), source))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(failure_of(operation(), std::io::Error::other(errors)))
}

fn json(host: &LabHost, program: &str, args: &[&str]) -> Result<Value, Failure> {
    let text = run(host, program, args)?;
    serde_json::from_str(&String::from_utf8_lossy(&text))
        .map_err(|error| failure_of(format!("read the output of `{program} {}`", args.join(" ")), error))
}

fn number(shown: &Value, pointer: &str) -> Result<u64, Failure> {
    shown
        .pointer(pointer)
        .and_then(Value::as_u64)
        .ok_or_else(|| unexpected(&format!("a number at {pointer} in {shown}")))
}

fn hardware_address(host: &LabHost) -> Result<String, Failure> {
    let shown = json(host, "ip", &["-j", "link", "show", "dev", "eth0"])?;
    let address = shown.pointer("/0/address").and_then(Value::as_str);
    address.map(str::to_owned).ok_or_else(|| unexpected("the address of an interface"))
}
