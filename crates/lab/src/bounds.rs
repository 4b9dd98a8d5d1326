//! What every lab's name and links must keep to.

use crate::LabError;

/// The smallest MTU of IPv6 (RFC 8200, section 5) and the largest of a veth link, in bytes.
const MTU: std::ops::RangeInclusive<u32> = 1_280..=65_535;

/// Refuses an invalid start of a lab's name.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), LabError> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=32).contains(&prefix.len()) && prefix.chars().all(letters) && !prefix.starts_with('-') {
        return Ok(());
    }
    let remedy = "use 1 to 32 lower-case letters, digits and hyphens, such as thru";
    Err(LabError::Spec { what: format!("the prefix '{prefix}' is not a valid name"), remedy })
}

/// Refuses invalid properties of a link.
pub(crate) fn check_mtu(mtu: u32) -> Result<(), LabError> {
    if MTU.contains(&mtu) {
        return Ok(());
    }
    let remedy = "use 1280 (IPv6 needs that much) to 65535";
    Err(LabError::Spec { what: format!("an MTU of {mtu} bytes"), remedy })
}
