//! What an emulated path is like.

use std::time::Duration;

use crate::LabError;

/// One direction of a path. The default is a wire of no length, without a limit and without noise.
#[derive(Debug, Clone, PartialEq)]
pub struct OneWay {
    /// Propagation: how long a segment travels after it was sent. Up to 10 s.
    pub delay: Duration,
    /// Rate of the link in bit/s, framing included; `None` for no limit (and then no queue). From 1 kbit/s.
    pub rate_bps: Option<u64>,
    /// Bytes, framing included, that may wait for the link or be in sending; what would go beyond is dropped (drop-tail).
    pub queue_bytes: u64,
    /// Probability from 0 to 1 that a segment is lost on its way, independent of all others.
    pub loss: f64,
    /// Bytes that each segment takes on the wire beside its IP packet.
    pub framing_bytes: u32,
}

impl Default for OneWay {
    fn default() -> Self {
        Self { delay: Duration::ZERO, rate_bps: None, queue_bytes: 1 << 20, loss: 0.0, framing_bytes: Self::ETHERNET }
    }
}

impl OneWay {
    /// Framing of Ethernet (IEEE 802.3): preamble 8, header 14, check sequence 4, gap 12 bytes.
    pub const ETHERNET: u32 = 38;

    const LONGEST: Duration = Duration::from_secs(10);
    /// What a path without a rate is taken to carry, for the size of the ring.
    const FAST_BPS: u64 = 20_000_000_000;

    /// Refuses what no path can be. `mtu` in bytes.
    pub(crate) fn check(&self, mtu: u32) -> Result<(), LabError> {
        let refuse = |what: String, remedy| Err(LabError::Spec { what, remedy });
        if self.delay > Self::LONGEST {
            return refuse(format!("a delay of {:?}", self.delay), "use at most 10 s");
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return refuse(format!("a loss of {}", self.loss), "use a probability from 0 to 1");
        }
        if self.framing_bytes > 1_000 {
            return refuse(format!("framing of {} bytes", self.framing_bytes), "use at most 1000, 38 for Ethernet");
        }
        match self.rate_bps {
            Some(rate) if !(1_000..=1_000_000_000_000).contains(&rate) => {
                refuse(format!("a rate of {rate} bit/s"), "use 1 kbit/s to 1 Tbit/s, or none for no limit")
            }
            Some(_) if self.queue_bytes < u64::from(mtu + self.framing_bytes) => refuse(
                format!("a queue of {} bytes", self.queue_bytes),
                "use at least one packet of the MTU with its framing",
            ),
            _ => Ok(()),
        }
    }

    /// Bytes that can be on their way at once: what the link sends within the delay, and the full queue. Half as much again
    /// and at least 4 MiB, for a thread that wakes up late; at most 1 GiB.
    pub(crate) fn ring_bytes(&self) -> usize {
        let rate = self.rate_bps.unwrap_or(Self::FAST_BPS);
        let travelling = u128::from(rate) * self.delay.as_nanos() / 8_000_000_000;
        let queued = self.rate_bps.map_or(0, |_| u128::from(self.queue_bytes));
        ((travelling + queued) * 3 / 2 + (4 << 20)).min(1 << 30) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_paths_name_the_remedy() {
        let good = OneWay { rate_bps: Some(1_000_000), ..OneWay::default() };
        assert!(good.check(9_000).is_ok());
        for bad in [
            OneWay { delay: Duration::from_secs(11), ..good.clone() },
            OneWay { loss: 1.1, ..good.clone() },
            OneWay { loss: f64::NAN, ..good.clone() },
            OneWay { rate_bps: Some(999), ..good.clone() },
            OneWay { queue_bytes: 9_037, ..good.clone() },
            OneWay { framing_bytes: 1_001, ..good.clone() },
        ] {
            let message = bad.check(9_000).unwrap_err().to_string();
            assert!(message.contains("use "), "{message}");
        }
    }

    #[test]
    fn the_ring_holds_the_path_and_its_queue() {
        let long = OneWay {
            delay: Duration::from_millis(90),
            rate_bps: Some(2_500_000_000),
            queue_bytes: 56_000_000,
            ..OneWay::default()
        };
        assert!(long.ring_bytes() > 28_125_000 + 56_000_000);
        assert_eq!(OneWay { delay: Duration::from_secs(10), ..OneWay::default() }.ring_bytes(), 1 << 30);
    }
}
