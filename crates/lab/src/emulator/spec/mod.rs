//! The properties of an emulated path: plain data that a file can hold.

mod change;
mod parts;
mod text;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use change::LinkChange;
pub use parts::{Bursts, Codel, Discipline, Distribution, Jitter, Red, Reorder};

use crate::LabError;

/// One direction of a path. The default is a wire without length, limit or noise.
///
/// A segment passes these stages in this order: the MTU, the queue and its discipline, the link, burst loss, random
/// loss, corruption, duplication, and the delay with its jitter and reordering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct DirectionSpec {
    /// Propagation delay: how long a segment travels after it was sent. Up to 10 s.
    #[serde(with = "text::time")]
    pub delay: Duration,
    /// How the delay varies.
    pub jitter: Jitter,
    /// Rate of the link in bit/s, framing included; `None` for no limit (and then no queue). From 1 kbit/s.
    #[serde(rename = "rate", with = "text::rate")]
    pub rate_bps: Option<u64>,
    /// Bytes, framing included, that may wait for the link or be in transmission; more is dropped (drop-tail).
    #[serde(rename = "queue", with = "text::size")]
    pub queue_bytes: u64,
    /// Packets of any length that may wait for the link or be in transmission; the limit in bytes does not count then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// What the queue does before it is full.
    pub discipline: Discipline,
    /// Probability from 0 to 1 that a segment is lost on the path, independent of all others.
    #[serde(with = "text::share")]
    pub loss: f64,
    /// Burst loss, in addition.
    #[serde(rename = "burst-loss")]
    pub bursts: Bursts,
    /// Probability from 0 to 1 that a bit of a segment's IP payload is flipped, which its checksum reveals.
    #[serde(with = "text::share")]
    pub corrupt: f64,
    /// Probability from 0 to 1 that a segment arrives twice.
    #[serde(with = "text::share")]
    pub duplicate: f64,
    /// Segments that are overtaken.
    pub reorder: Reorder,
    /// The longest IP packet in bytes that passes: a longer one is dropped silently, as by a switch that does not
    /// accept such frames. `None` for all that the hosts' interfaces send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Bytes that each segment takes on the wire in addition to its IP packet.
    #[serde(rename = "framing")]
    pub framing_bytes: u32,
    /// Later changes, in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LinkChange>,
}

impl Default for DirectionSpec {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Jitter::default(),
            rate_bps: None,
            queue_bytes: 1 << 20,
            queue_packets: None,
            discipline: Discipline::DropTail,
            loss: 0.0,
            bursts: Bursts::default(),
            corrupt: 0.0,
            duplicate: 0.0,
            reorder: Reorder::default(),
            mtu: None,
            framing_bytes: Self::ETHERNET,
            changes: Vec::new(),
        }
    }
}

impl DirectionSpec {
    /// Framing of Ethernet (IEEE 802.3): preamble 8, header 14, check sequence 4, gap 12 bytes.
    pub const ETHERNET: u32 = 38;

    const LONGEST: Duration = Duration::from_secs(10);
    /// The assumed rate of a path without one, for the size of the ring.
    const FAST_BPS: u64 = 20_000_000_000;

    /// The direction's properties at each time: from the start, then from each change on.
    pub(crate) fn phases(&self) -> Vec<(Duration, Self)> {
        let mut now = Self { changes: Vec::new(), ..self.clone() };
        let mut phases = vec![(Duration::ZERO, now.clone())];
        for change in &self.changes {
            change.apply(&mut now);
            phases.push((change.at, now.clone()));
        }
        phases
    }

    /// Refuses invalid paths. `mtu` is that of the hosts' interfaces, in bytes.
    ///
    /// # Errors
    /// [`LabError::Spec`] names the error and the remedy.
    pub fn check(&self, mtu: u32) -> Result<(), LabError> {
        let times = || self.changes.iter().map(|change| change.at);
        if times().zip(times().skip(1)).any(|(one, next)| next < one) {
            return refuse("changes that are not in chronological order".into(), "sort them by 'at'");
        }
        self.phases().iter().try_for_each(|(_, direction)| direction.check_phase(mtu))
    }

    fn check_phase(&self, mtu: u32) -> Result<(), LabError> {
        for (what, time) in [("delay", self.delay), ("jitter", self.jitter.spread), ("reordering", self.reorder.by)] {
            if time > Self::LONGEST {
                return refuse(format!("a {what} of {time:?}"), "use at most 10 s");
            }
        }
        let Bursts { p, r, h, k } = self.bursts;
        let shares = [("loss", self.loss), ("corruption", self.corrupt), ("duplication", self.duplicate)];
        let bursts = [("burst-loss p", p), ("burst-loss r", r), ("burst-loss h", h), ("burst-loss k", k)];
        for (what, share) in shares.into_iter().chain([("reordering", self.reorder.probability)]).chain(bursts) {
            if !(0.0..=1.0).contains(&share) {
                return refuse(format!("a {what} of {share}"), "use a probability from 0 to 1");
            }
        }
        if self.reorder.probability > 0.0 && self.reorder.by.is_zero() {
            return refuse("reordering with a 'by' of 0".into(), "use 'by' for the extra delay of a reordered segment");
        }
        if self.framing_bytes > 1_000 {
            return refuse(format!("framing of {} bytes", self.framing_bytes), "use at most 1000, 38 for Ethernet");
        }
        if let Some(own) = self.mtu
            && !(68..=65_535).contains(&own)
        {
            return refuse(format!("an MTU of {own} bytes on the path"), "use 68 (RFC 791) to 65535");
        }
        self.check_discipline()?;
        self.check_queue(mtu)
    }

    fn check_discipline(&self) -> Result<(), LabError> {
        match self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::Red(red) if red.min >= red.max => {
                refuse(format!("RED between {} and {} bytes", red.min, red.max), "use a 'max' above 'min'")
            }
            Discipline::Red(Red { probability, weight, .. })
                if !((0.0..=1.0).contains(&probability) && weight > 0.0 && weight <= 1.0) =>
            {
                refuse(
                    format!("RED with the probability {probability} and the weight {weight}"),
                    "use probabilities from 0 to 1, and a weight above 0",
                )
            }
            Discipline::Codel(codel) if codel.target.is_zero() || codel.interval < codel.target => refuse(
                format!("CoDel with a target of {:?} within {:?}", codel.target, codel.interval),
                "use a target above 0 and an interval of at least the target",
            ),
            Discipline::Red(_) | Discipline::Codel(_) => Ok(()),
        }
    }

    fn check_queue(&self, mtu: u32) -> Result<(), LabError> {
        match self.rate_bps {
            Some(rate) if !(1_000..=1_000_000_000_000).contains(&rate) => {
                refuse(format!("a rate of {rate} bit/s"), "use 1 kbit/s to 1 Tbit/s, or none for no limit")
            }
            _ if self.queue_packets == Some(0) => refuse("a queue of 0 packets".into(), "use at least 1"),
            None if self.queue_bytes == 0 => {
                refuse("a queue of 0 bytes".into(), "use a rate as well, or leave the queue out")
            }
            Some(_) if self.queue_packets.is_none() && self.queue_bytes < u64::from(mtu + self.framing_bytes) => {
                refuse(
                    format!("a queue of {} bytes", self.queue_bytes),
                    "use at least one packet of the MTU with its framing",
                )
            }
            _ => Ok(()),
        }
    }

    /// Bytes that can be in flight at once: what the link sends within the longest delay, and the full queue, at any
    /// of the path's times. Plus 50 %, for a thread that wakes up late; at least 4 MiB and at most 1 GiB.
    pub(crate) fn ring_bytes(&self, mtu: u32) -> usize {
        let phases = self.phases();
        let most = |of: fn(&Self) -> u128| phases.iter().map(|(_, direction)| of(direction)).max().unwrap_or(0);
        let rate = most(|direction| u128::from(direction.rate_bps.unwrap_or(Self::FAST_BPS)));
        // A normal difference practically never exceeds four deviations, an exponential one eight means.
        let travel =
            most(|direction| (direction.delay + direction.jitter.spread * 8 + direction.reorder.by).as_nanos());
        let packet = u128::from(mtu) + 1_000;
        let queued = phases.iter().filter(|(_, direction)| direction.rate_bps.is_some()).map(|(_, direction)| {
            direction.queue_packets.map_or(u128::from(direction.queue_bytes), |packets| u128::from(packets) * packet)
        });
        let travelling = rate * travel / 8_000_000_000;
        ((travelling + queued.max().unwrap_or(0)) * 3 / 2 + (4 << 20)).min(1 << 30) as usize
    }
}

fn refuse(what: String, remedy: &'static str) -> Result<(), LabError> {
    Err(LabError::Spec { what, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> DirectionSpec {
        DirectionSpec { rate_bps: Some(1_000_000), ..DirectionSpec::default() }
    }

    #[test]
    fn impossible_paths_name_the_remedy() {
        assert!(good().check(9_000).is_ok());
        let at = |ms| LinkChange { at: Duration::from_millis(ms), ..LinkChange::default() };
        let red = |min, max, weight| Discipline::Red(Red { min, max, weight, ..Red::default() });
        for bad in [
            DirectionSpec { delay: Duration::from_secs(11), ..good() },
            DirectionSpec { jitter: Jitter { spread: Duration::from_secs(11), ..Jitter::default() }, ..good() },
            DirectionSpec { loss: 1.1, ..good() },
            DirectionSpec { loss: f64::NAN, ..good() },
            DirectionSpec { corrupt: -0.1, ..good() },
            DirectionSpec { bursts: Bursts { r: 2.0, ..Bursts::default() }, ..good() },
            DirectionSpec { reorder: Reorder { probability: 0.1, by: Duration::ZERO }, ..good() },
            DirectionSpec { rate_bps: Some(999), ..good() },
            DirectionSpec { queue_bytes: 9_037, ..good() },
            DirectionSpec { queue_packets: Some(0), ..good() },
            DirectionSpec { queue_bytes: 0, rate_bps: None, ..good() },
            DirectionSpec { framing_bytes: 1_001, ..good() },
            DirectionSpec { mtu: Some(67), ..good() },
            DirectionSpec { discipline: red(90, 90, 0.1), ..good() },
            DirectionSpec { discipline: red(30, 90, 0.0), ..good() },
            DirectionSpec {
                discipline: Discipline::Codel(Codel { target: Duration::ZERO, ..Codel::default() }),
                ..good()
            },
            DirectionSpec { changes: vec![at(2), at(1)], ..good() },
            DirectionSpec { changes: vec![LinkChange { loss: Some(2.0), ..at(1) }], ..good() },
        ] {
            let message = bad.check(9_000).unwrap_err().to_string();
            assert!(message.contains("use ") || message.contains("sort "), "{message}");
        }
    }

    #[test]
    fn the_ring_holds_the_path_and_its_queue() {
        let long = DirectionSpec {
            delay: Duration::from_millis(90),
            rate_bps: Some(2_500_000_000),
            queue_bytes: 56_000_000,
            ..DirectionSpec::default()
        };
        assert!(long.ring_bytes(9_000) > 28_125_000 + 56_000_000);
        let later = LinkChange { delay: Some(Duration::from_millis(180)), ..LinkChange::default() };
        assert!(DirectionSpec { changes: vec![later], ..long }.ring_bytes(9_000) > 56_250_000 + 56_000_000);
        assert_eq!(
            DirectionSpec { delay: Duration::from_secs(10), ..DirectionSpec::default() }.ring_bytes(1_500),
            1 << 30
        );
    }

    #[test]
    fn a_direction_reads_from_a_file_and_back() {
        let text = r#"
            delay = "91.5ms"
            rate = "2.5Gbit"
            queue = "56MB"
            loss = "0.001%"
            jitter = { spread = "2ms", distribution = "normal" }
            burst-loss = { p = "1%", r = 0.3 }
            discipline = { codel = { ecn = true } }
            reorder = { probability = 0.01, by = "1ms" }
            changes = [{ at = "5s", rate = "unlimited" }, { at = 6, queue-packets = 100, discipline = "drop-tail" }]
        "#;
        let direction: DirectionSpec = toml::from_str(text).unwrap();
        assert_eq!((direction.delay, direction.rate_bps), (Duration::from_micros(91_500), Some(2_500_000_000)));
        assert_eq!((direction.queue_bytes, direction.loss), (56_000_000, 1e-5));
        assert_eq!(direction.discipline, Discipline::Codel(Codel { ecn: true, ..Codel::default() }));
        assert_eq!(direction.bursts, Bursts { p: 0.01, r: 0.3, ..Bursts::default() });
        let phases = direction.phases();
        assert_eq!((phases[1].0, phases[1].1.rate_bps, phases[1].1.loss), (Duration::from_secs(5), None, 1e-5));
        assert_eq!((phases[2].1.queue_packets, phases[2].1.discipline), (Some(100), Discipline::DropTail));
        let written = serde_json::to_string(&direction).unwrap();
        assert_eq!(serde_json::from_str::<DirectionSpec>(&written).unwrap(), direction);
        for bad in ["delay = \"soon\"", "loss = 2", "rate = -1", "speed = 3", "changes = [{ delay = 3 }]"] {
            assert!(toml::from_str::<DirectionSpec>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn burst_loss_follows_its_states() {
        let bursts = Bursts { p: 0.01, r: 0.24, h: 0.5, k: 1.0 };
        assert!((bursts.mean_loss() - 0.04 * 0.5).abs() < 1e-12);
        assert!(Bursts::default().mean_loss().abs() < 1e-12);
    }
}
