//! The announcement of a leg, as the two ends exchange it.

/// The active end's announcement of the next leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LegHeader {
    /// Number of the leg within the trial.
    pub(crate) leg: u32,
    /// Bytes of a block or request.
    pub(crate) block: u64,
    /// Bytes of a response.
    pub(crate) reply: u64,
    /// Payload bytes (streams) or round trips after which it ends; 0 for "until one end says so".
    pub(crate) quota: u64,
}

const MAGIC: &[u8; 4] = b"LEG1";

impl LegHeader {
    /// Its 32 bytes on the wire; numbers are big-endian.
    pub(crate) fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&self.leg.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.block.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.reply.to_be_bytes());
        bytes[24..].copy_from_slice(&self.quota.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..at + 8].iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        (&bytes[..4] == MAGIC).then(|| Self {
            leg: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            block: number(8),
            reply: number(16),
            quota: number(24),
        })
    }
}
