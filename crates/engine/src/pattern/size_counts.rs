//! The datagrams of a mix of sizes: which size each number has, and how many there were of each.

use model::{MixStep, SizeCount};

/// One end's counts by size. A datagram's number gives its size at both ends, so that each loss has a size too.
#[derive(Debug)]
pub(super) struct SizeCounts {
    /// The size of each place of the sequence: its payload bytes, and its index in `sizes`.
    sequence: Vec<(u32, u32)>,
    sizes: Vec<SizeCount>,
}

impl SizeCounts {
    /// `None` for datagrams of one size.
    pub(super) fn new(mix: &[MixStep]) -> Option<Self> {
        let sizes = SizeCount::of(mix);
        let place = |step: &MixStep| {
            let index = sizes.iter().position(|size| size.frame_bytes == step.frame_bytes).unwrap_or(0);
            (step.payload_bytes as u32, index as u32)
        };
        let sequence: Vec<_> =
            mix.iter().flat_map(|step| std::iter::repeat_n(place(step), step.count as usize)).collect();
        (!sequence.is_empty()).then_some(Self { sequence, sizes })
    }

    #[inline]
    fn place(&self, number: u64) -> (u32, u32) {
        self.sequence[(number % self.sequence.len() as u64) as usize]
    }

    /// Payload bytes of datagram `number`.
    #[inline]
    pub(super) fn payload(&self, number: u64) -> usize {
        self.place(number).0 as usize
    }

    /// Datagram `number` was sent.
    #[inline]
    pub(super) fn sent(&mut self, number: u64) {
        let index = self.place(number).1 as usize;
        self.sizes[index].sent += 1;
    }

    /// Datagram `number` arrived for the first time.
    #[inline]
    pub(super) fn received(&mut self, number: u64) {
        let index = self.place(number).1 as usize;
        self.sizes[index].received += 1;
    }

    /// The counts so far.
    pub(super) fn counted(&self) -> Vec<SizeCount> {
        self.sizes.clone()
    }
}

#[cfg(test)]
mod tests {
    use model::Mix;

    use super::*;

    #[test]
    fn a_number_has_the_size_of_its_place_in_the_sequence() {
        let mix = "imix:594,64*2,1518".parse::<Mix>().unwrap().steps(false);
        let mut counts = SizeCounts::new(&mix).unwrap();
        let payloads: Vec<usize> = (0..5).map(|number| counts.payload(number)).collect();
        assert_eq!(payloads, [548, 18, 18, 1472, 548]);
        (0..10).for_each(|number| counts.sent(number));
        [9, 4, 3].iter().for_each(|number| counts.received(*number));
        let counted: Vec<_> =
            counts.counted().iter().map(|size| (size.frame_bytes, size.sent, size.received)).collect();
        assert_eq!(counted, [(64, 5, 1), (594, 3, 1), (1518, 2, 1)]);
        assert!(SizeCounts::new(&[]).is_none());
        assert_eq!(counts.payload(u64::MAX), counts.payload(3), "no number has no size");
    }
}
