//! Datagrams of several sizes in a fixed sequence: an internet mix (IMIX).

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use text::Said;
use thiserror::Error;

/// Bytes around a UDP datagram's payload in an Ethernet frame: Ethernet's header and checksum (IEEE 802.3), IP (RFC 791 and RFC
/// 8200) and UDP (RFC 768).
const ETHERNET: u64 = 14 + 4;
const IPV4: u64 = 20;
const IPV6: u64 = 40;
const UDP: u64 = 8;
/// Frames that a mix may have, bytes.
const MIN_FRAME: u64 = 64;
const MAX_FRAME: u64 = 9_018;

/// Consecutive datagrams of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MixStep {
    /// The Ethernet frame that carries it, bytes: from the first address to the checksum, without VLAN tag.
    pub frame_bytes: u64,
    /// Payload of each datagram, bytes.
    pub payload_bytes: u64,
    /// How many are sent in a row.
    pub count: u32,
}

impl MixStep {
    /// Shortest payload: that of the shortest frame, 64 bytes, over IPv4. Over IPv6 its frame has 84 bytes, because the headers
    /// alone are longer than 64.
    pub const MIN_PAYLOAD: u64 = MIN_FRAME - ETHERNET - IPV4 - UDP;
    /// Most steps of a mix.
    pub const MAX_STEPS: usize = 32;
    /// Most datagrams of a sequence.
    pub const MAX_COUNT: u32 = 1_000;
}

/// A mix as users write it: `imix`, or the frames in their order, `imix:64*7,594*4,1518`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(Vec<(u64, u32)>);

/// Why a text is not a mix.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
pub enum MixError {
    /// It does not begin like one.
    #[error("'{text}' is not a mix of sizes: {HOW}")]
    NoMix {
        /// What the user wrote.
        text: String,
    },
    /// A frame that Ethernet does not carry.
    #[error("'{part}' is not a frame of {MIN_FRAME} to {MAX_FRAME} bytes: {HOW}")]
    Frame {
        /// The frame as the user wrote it.
        part: String,
    },
    /// No number of frames, or too many.
    #[error("'{part}' is not a count of 1 to {} frames: {HOW}", MixStep::MAX_COUNT)]
    Count {
        /// The frame as the user wrote it.
        part: String,
    },
    /// Too many frames, or too many changes of size.
    #[error("a mix has at most {} frames and {} changes of size: {HOW}", MixStep::MAX_COUNT, MixStep::MAX_STEPS)]
    TooLong,
}

/// How a mix is written.
const HOW: &str = "write imix, or frames in their order, such as imix:64*7,594*4,1518";

impl Mix {
    /// What a mix begins with.
    pub const NAME: &str = "imix";
    /// Simple IMIX: 7 frames of 64 bytes, 4 of 594 and 1 of 1518. RFC 6985 specifies how a mix is named by its sequence; this is
    /// `aaaaaaaAAAAg` there, with A = 594.
    const SIMPLE: [(u64, u32); 3] = [(64, 7), (594, 4), (1_518, 1)];

    /// Whether a text is meant as a mix.
    #[must_use]
    pub fn is_named(text: &str) -> bool {
        text.trim().get(..Self::NAME.len()).is_some_and(|start| start.eq_ignore_ascii_case(Self::NAME))
    }

    /// Its steps over IPv4 or IPv6.
    #[must_use]
    pub fn steps(&self, ipv6: bool) -> Vec<MixStep> {
        let headers = ETHERNET + UDP + if ipv6 { IPV6 } else { IPV4 };
        let step = |(frame, count): &(u64, u32)| {
            let payload_bytes = frame.saturating_sub(headers).max(MixStep::MIN_PAYLOAD);
            MixStep { frame_bytes: payload_bytes + headers, payload_bytes, count: *count }
        };
        self.0.iter().map(step).collect()
    }

    /// The mix of these steps, with the shortest frame as it is over IPv4.
    #[must_use]
    pub fn of(steps: &[MixStep]) -> Self {
        let written = |step: &MixStep| match step.payload_bytes {
            MixStep::MIN_PAYLOAD => (MIN_FRAME, step.count),
            _ => (step.frame_bytes, step.count),
        };
        Self(steps.iter().map(written).collect())
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)?;
        if self.0 == Self::SIMPLE {
            return Ok(());
        }
        for (index, (frame, count)) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { ":" } else { "," })?;
            match count {
                1 => write!(f, "{frame}")?,
                _ => write!(f, "{frame}*{count}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let text = text.trim().to_ascii_lowercase();
        let list = match text.strip_prefix(Self::NAME) {
            Some("") => return Ok(Self(Self::SIMPLE.to_vec())),
            Some(rest) => rest.strip_prefix(':'),
            None => None,
        };
        let list = list.ok_or_else(|| MixError::NoMix { text: text.clone() })?;
        let mut steps: Vec<(u64, u32)> = Vec::new();
        for part in list.split(',') {
            let (frame, count) = part.split_once('*').unwrap_or((part, "1"));
            let frame = frame.trim().parse().ok().filter(|frame| (MIN_FRAME..=MAX_FRAME).contains(frame));
            let frame = frame.ok_or_else(|| MixError::Frame { part: part.to_owned() })?;
            let count = count.trim().parse().ok().filter(|count| (1..=MixStep::MAX_COUNT).contains(count));
            let count = count.ok_or_else(|| MixError::Count { part: part.to_owned() })?;
            // Frames of one size that follow each other are one step, however they are written.
            match steps.last_mut() {
                Some((last, sum)) if *last == frame => *sum += count,
                _ => steps.push((frame, count)),
            }
        }
        let all: u64 = steps.iter().map(|(_, count)| u64::from(*count)).sum();
        if steps.len() > MixStep::MAX_STEPS || all > u64::from(MixStep::MAX_COUNT) {
            return Err(MixError::TooLong);
        }
        Ok(Self(steps))
    }
}

/// Counts of the datagrams of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SizeCount {
    /// The Ethernet frame that carries it, bytes.
    pub frame_bytes: u64,
    /// Payload of each, bytes.
    pub payload_bytes: u64,
    /// Datagrams of this size sent.
    pub sent: u64,
    /// Distinct ones received.
    pub received: u64,
}

impl SizeCount {
    /// Datagrams of this size that never arrived.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// The sizes of a mix, ascending, without counts.
    #[must_use]
    pub fn of(steps: &[MixStep]) -> Vec<Self> {
        let size = |step: &MixStep| Self {
            frame_bytes: step.frame_bytes,
            payload_bytes: step.payload_bytes,
            sent: 0,
            received: 0,
        };
        let mut sizes: Vec<Self> = steps.iter().map(size).collect();
        sizes.sort_by_key(|size| size.frame_bytes);
        sizes.dedup_by_key(|size| size.frame_bytes);
        sizes
    }

    /// Adds counts by size.
    pub fn add(sum: &mut Vec<Self>, more: &[Self]) {
        for other in more {
            match sum.iter_mut().find(|own| own.frame_bytes == other.frame_bytes) {
                Some(own) => {
                    own.sent = own.sent.saturating_add(other.sent);
                    own.received = own.received.saturating_add(other.received);
                }
                None => sum.push(*other),
            }
        }
        sum.sort_by_key(|size| size.frame_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(text: &str) -> Result<Mix, MixError> {
        text.parse()
    }

    #[test]
    fn simple_imix_has_the_payload_that_its_frames_leave() {
        let payloads = |ipv6| {
            let steps = mix("imix").unwrap().steps(ipv6);
            steps.iter().map(|step| (step.frame_bytes, step.payload_bytes, step.count)).collect::<Vec<_>>()
        };
        assert_eq!(payloads(false), [(64, 18, 7), (594, 548, 4), (1518, 1472, 1)]);
        assert_eq!(payloads(true), [(84, 18, 7), (594, 528, 4), (1518, 1452, 1)]);
    }

    #[test]
    fn a_mix_is_written_as_it_is_read() {
        for text in ["imix", "imix:64*2,594,64*2,1518", "imix:128"] {
            assert_eq!(mix(text).unwrap().to_string(), text);
            assert_eq!(Mix::of(&mix(text).unwrap().steps(true)).to_string(), text);
        }
        for (text, same) in [("IMIX:64*7,594*4,1518", "imix"), ("imix:64,64, 64*2 ,90", "imix:64*4,90")] {
            assert_eq!(mix(text).unwrap().to_string(), same);
        }
    }

    #[test]
    fn a_wrong_mix_names_its_part() {
        for (text, said) in [
            ("imixed", "'imixed' is not a mix"),
            ("imix:", "'' is not a frame of 64 to 9018 bytes"),
            ("imix:63", "'63' is not a frame"),
            ("imix:64*0", "'64*0' is not a count of 1 to 1000 frames"),
            ("imix:64*600,65*600", "a mix has at most 1000 frames"),
        ] {
            let found = mix(text).unwrap_err().to_string();
            assert!(found.starts_with(said) && found.ends_with("imix:64*7,594*4,1518"), "{found}");
        }
        let changes: Vec<String> = (0..=MixStep::MAX_STEPS as u64).map(|index| (64 + index).to_string()).collect();
        assert!(mix(&format!("imix:{}", changes.join(","))).is_err());
        assert!(Mix::is_named(" Imix:64") && !Mix::is_named("64KiB") && !Mix::is_named("é"));
    }

    #[test]
    fn counts_add_up_by_size() {
        let steps = mix("imix:594,64,594").unwrap().steps(false);
        let mut sum = SizeCount::of(&steps);
        assert_eq!(sum.iter().map(|size| size.frame_bytes).collect::<Vec<_>>(), [64, 594]);
        let more = [SizeCount { sent: 5, received: 3, ..sum[1] }];
        SizeCount::add(&mut sum, &more);
        SizeCount::add(&mut sum, &more);
        assert_eq!((sum[0].lost(), sum[1].lost(), sum[1].sent), (0, 4, 10));
    }
}
