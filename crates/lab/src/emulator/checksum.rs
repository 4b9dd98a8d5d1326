//! The Internet checksum (RFC 1071) and the pseudo-headers that TCP and UDP start it with (RFC 9293, RFC 8200).

/// Adds bytes as big-endian 16-bit words to a running sum, an odd one padded with zero. The sum is folded to 16 bits.
///
/// An odd-sized call misaligns later calls, so only the last call of a chain may be odd.
pub(crate) fn add(sum: u32, data: &[u8]) -> u32 {
    let (pairs, odd) = data.as_chunks::<2>();
    let words: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    let last = odd.first().map_or(0, |byte| u64::from(*byte) << 8);
    fold(u64::from(sum) + words + last)
}

/// The folded sum of a pseudo-header: both addresses of the IP header, the protocol, and the length in bytes of the
/// transport's header and payload. Not complemented: this is what a stack leaves in the checksum field of a packet
/// whose checksum the device completes.
pub(crate) fn pseudo_header(addresses: &[u8], protocol: u8, length: usize) -> u16 {
    add(fold(u64::from(protocol) + length as u64), addresses) as u16
}

fn fold(mut sum: u64) -> u32 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One's complement addition byte by byte, with the carry brought round at once.
    fn reference(data: &[u8]) -> u16 {
        let (mut high, mut low) = (0_u16, 0_u16);
        for (index, byte) in data.iter().enumerate() {
            *(if index % 2 == 0 { &mut high } else { &mut low }) += u16::from(*byte);
            while high > 0xff || low > 0xff {
                let (carry_high, carry_low) = (high >> 8, low >> 8);
                high = (high & 0xff) + carry_low;
                low = (low & 0xff) + carry_high;
            }
        }
        high << 8 | low
    }

    #[test]
    fn the_example_of_rfc_1071_is_reproduced() {
        assert_eq!(add(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    proptest! {
        #[test]
        fn any_bytes_sum_to_the_reference(data in prop::collection::vec(any::<u8>(), 0..3_000)) {
            prop_assert_eq!(add(0, &data), u32::from(reference(&data)));
        }

        #[test]
        fn a_pseudo_header_is_its_bytes(addresses in prop::collection::vec(any::<u8>(), 32), protocol: u8, length in 0_usize..65_536) {
            let mut bytes = addresses.clone();
            bytes.extend([0, protocol]);
            bytes.extend((length as u32).to_be_bytes());
            prop_assert_eq!(pseudo_header(&addresses, protocol, length), reference(&bytes));
        }
    }
}
