//! The LLDP neighbour on a link, as systemd-networkd stores it: the frame, after its length in eight bytes (sd-lldp).
//!
//! The frame is that of IEEE 802.1AB: elements of a type (7 bits), a length (9 bits) and a value.

use model::Neighbour;

use super::Source;

const ETHER_TYPE: [u8; 2] = [0x88, 0xcc];
const MAX_BYTES: usize = 1 << 16;
/// Organisations of the elements of type 127: IEEE 802.1 and 802.3.
const DOT1: [u8; 3] = [0x00, 0x80, 0xc2];
const DOT3: [u8; 3] = [0x00, 0x12, 0x0f];

/// The content of the first frame that networkd stores for an interface.
pub(super) fn neighbour(source: &Source<'_>, index: &str) -> Option<Neighbour> {
    let bytes = source.sys.read_bytes(&format!("/run/systemd/netif/lldp/{index}"), MAX_BYTES).ok()?;
    let (length, frame) = bytes.split_first_chunk::<8>()?;
    parse(frame.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?)
}

fn parse(frame: &[u8]) -> Option<Neighbour> {
    // Two addresses of six bytes, and the type.
    let (header, mut rest) = frame.split_first_chunk::<14>()?;
    if header[12..] != ETHER_TYPE {
        return None;
    }
    let mut neighbour = Neighbour::default();
    while let Some((head, after)) = rest.split_first_chunk::<2>() {
        let head = u16::from_be_bytes(*head);
        let Some((value, after)) = after.split_at_checked(usize::from(head & 0x1ff)) else { break };
        rest = after;
        let text =
            |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).trim().to_owned()).filter(|text| !text.is_empty());
        match (head >> 9, value) {
            (0, _) => break,
            // A port is named by an address (subtype 3 and 4), else by a text.
            (2, [kind, name @ ..]) if !matches!(kind, 3 | 4) => neighbour.port = text(name),
            (4, name) => neighbour.port_description = text(name),
            (5, name) => neighbour.system = text(name),
            (6, name) => neighbour.description = text(name),
            (127, [a, b, c, 1, high, low]) if [*a, *b, *c] == DOT1 => {
                neighbour.vlan = Some(u16::from_be_bytes([*high, *low])).filter(|vlan| *vlan != 0);
            }
            (127, [a, b, c, 4, high, low]) if [*a, *b, *c] == DOT3 => {
                neighbour.frame_bytes = Some(u16::from_be_bytes([*high, *low]));
            }
            _ => {}
        }
    }
    Some(neighbour)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(kind: u16, value: &[u8]) -> Vec<u8> {
        [&(kind << 9 | value.len() as u16).to_be_bytes(), value].concat()
    }

    fn frame() -> Vec<u8> {
        let mut frame = vec![1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
        frame.extend(piece(1, &[4, 2, 0, 0, 0, 0, 1]));
        frame.extend(piece(2, b"\x05Ethernet1/7"));
        frame.extend(piece(3, &[0, 120]));
        frame.extend(piece(4, b"to rack 12"));
        frame.extend(piece(5, b"leaf-3"));
        frame.extend(piece(127, &[0x00, 0x80, 0xc2, 1, 0, 42]));
        frame.extend(piece(127, &[0x00, 0x12, 0x0f, 4, 0x24, 0x00]));
        frame.extend(piece(0, &[]));
        frame
    }

    #[test]
    fn a_neighbour_is_read_from_its_frame() {
        let neighbour = parse(&frame()).unwrap();
        assert_eq!(neighbour.system.as_deref(), Some("leaf-3"));
        assert_eq!(neighbour.port.as_deref(), Some("Ethernet1/7"));
        assert_eq!(neighbour.port_description.as_deref(), Some("to rack 12"));
        assert_eq!((neighbour.vlan, neighbour.frame_bytes), (Some(42), Some(9216)));
    }

    #[test]
    fn a_frame_that_was_cut_never_yields_more_than_the_whole() {
        let whole = frame();
        for cut in 0..whole.len() {
            if let Some(part) = parse(&whole[..cut]) {
                assert!(part.system.is_none_or(|name| name == "leaf-3"), "{cut}");
            }
        }
        assert_eq!(parse(&[0; 40]), None);
    }
}
