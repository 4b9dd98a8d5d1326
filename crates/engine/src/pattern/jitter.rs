//! Jitter of arrivals (RFC 3550, section 6.4.1, in the integers of its appendix A.8).

/// The smoothed difference of the transit times of datagrams that follow each other. The clocks of the two ends need not agree.
#[derive(Debug, Default)]
pub(super) struct Jitter {
    /// Transit time of the last datagram, ns; a difference of two clocks.
    transit: Option<u64>,
    /// In sixteenths of a nanosecond.
    smoothed: u64,
}

impl Jitter {
    /// A datagram that was sent at `sent_ns` of its sender's clock arrived at `now_ns` of this one's.
    #[inline]
    pub(super) fn arrived(&mut self, sent_ns: u64, now_ns: u64) {
        let transit = now_ns.wrapping_sub(sent_ns);
        if let Some(before) = self.transit.replace(transit) {
            let difference = (transit.wrapping_sub(before) as i64).unsigned_abs();
            self.smoothed = self.smoothed.saturating_add(difference) - ((self.smoothed.saturating_add(8)) >> 4);
        }
    }

    /// In sixteenths of a nanosecond; `None` before the second datagram.
    #[inline]
    pub(super) fn sixteenths(&self) -> Option<u64> {
        // A sender may write any time.
        self.transit.map(|_| self.smoothed.min(u64::MAX / 2))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The formula of section 6.4.1, in floating point.
    fn formula(times: &[(u64, u64)]) -> f64 {
        let transits: Vec<f64> = times.iter().map(|(sent, arrived)| *arrived as f64 - *sent as f64).collect();
        transits.windows(2).fold(0.0, |jitter, pair| jitter + ((pair[1] - pair[0]).abs() - jitter) / 16.0)
    }

    proptest! {
        #[test]
        fn it_is_that_of_the_rfc_whatever_the_clocks_difference(
            delays in prop::collection::vec(0u64..20_000_000, 2..300), offset: u64
        ) {
            let sent = |index: usize| index as u64 * 1_000_000;
            let times: Vec<(u64, u64)> =
                delays.iter().enumerate().map(|(index, delay)| (sent(index), sent(index) + delay)).collect();
            let mut jitter = Jitter::default();
            times.iter().for_each(|(sent, arrived)| jitter.arrived(*sent, arrived.wrapping_add(offset)));
            let ours = jitter.sixteenths().unwrap() as f64 / 16.0;
            prop_assert!((ours - formula(&times)).abs() <= 1.0, "{} {}", ours, formula(&times));
        }

        #[test]
        fn any_times_are_taken(times: Vec<(u64, u64)>) {
            let mut jitter = Jitter::default();
            times.iter().for_each(|(sent, arrived)| jitter.arrived(*sent, *arrived));
            prop_assert_eq!(jitter.sixteenths().is_some(), !times.is_empty());
        }
    }

    #[test]
    fn a_constant_delay_has_none() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.sixteenths(), None);
        (0..100).for_each(|index| jitter.arrived(index * 1000, index * 1000 + 77));
        assert_eq!(jitter.sixteenths(), Some(0));
    }
}
