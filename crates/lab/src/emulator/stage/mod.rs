//! What a segment meets on its way, one stage after the other: the queue before the link, the link's length, its noise.
//!
//! A stage is told the time; it reads no clock. A new one is a file here with a type that implements [`Stage`], and a line in
//! [`stages`], which fixes the order.

mod delay;
mod loss;
mod queue;

use super::counts::Place;
use super::spec::OneWay;

/// A segment on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    /// When it reaches the next stage, ns of the emulator's clock.
    pub(crate) at_ns: u64,
    /// Its bytes on the wire, framing included.
    pub(crate) wire_bytes: u64,
}

/// A part of the path in one direction.
pub(crate) trait Stage: Send {
    /// Takes the segment through, in the order of arrival: sets when it leaves, or says where it ended.
    fn pass(&mut self, segment: &mut Passage) -> Result<(), Place>;
}

/// The stages of one direction, in order. `seed` makes its random choices repeatable.
pub(crate) fn stages(way: &OneWay, seed: u64) -> Vec<Box<dyn Stage>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if let Some(rate_bps) = way.rate_bps {
        stages.push(Box::new(queue::Queue::new(rate_bps, way.queue_bytes)));
    }
    if !way.delay.is_zero() {
        stages.push(Box::new(delay::Delay::new(way.delay)));
    }
    if way.loss > 0.0 {
        stages.push(Box::new(loss::Loss::new(way.loss, seed)));
    }
    stages
}

/// Takes a segment through all stages; `Ok` holds when it arrives.
pub(crate) fn pass(stages: &mut [Box<dyn Stage>], mut segment: Passage) -> Result<u64, Place> {
    stages.iter_mut().try_for_each(|stage| stage.pass(&mut segment))?;
    Ok(segment.at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_segment_waits_then_is_sent_then_travels() {
        // 1,000 bytes at 8 Mbit/s take 1 ms.
        let way = OneWay {
            delay: Duration::from_millis(10),
            rate_bps: Some(8_000_000),
            queue_bytes: 2_000,
            ..OneWay::default()
        };
        let mut stages = stages(&way, 1);
        let mut pass = |at_ns| pass(&mut stages, Passage { at_ns, wire_bytes: 1_000 });
        assert_eq!(pass(0), Ok(11_000_000));
        assert_eq!(pass(0), Ok(12_000_000));
        assert_eq!(pass(0), Err(Place::Queue));
        assert_eq!(pass(1_000_000), Ok(13_000_000));
    }

    #[test]
    fn a_path_of_nothing_changes_nothing() {
        assert_eq!(pass(&mut stages(&OneWay::default(), 1), Passage { at_ns: 7, wire_bytes: 1 }), Ok(7));
    }
}
