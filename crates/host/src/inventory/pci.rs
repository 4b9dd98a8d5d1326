//! The PCI function of a network device: its link and its memory request sizes (PCI Express Base Specification, 7.5).

use model::Pci;

use super::Source;

/// Offset of the capability list, and the number of PCI Express in it.
const CAPABILITIES: usize = 0x34;
const EXPRESS: u8 = 0x10;
/// Device Control within that capability.
const CONTROL: usize = 8;
/// The part of the configuration space that every user may read; root reads all of it.
const PUBLIC: usize = 64;
const SPACE: usize = 256;
/// More capabilities than fit are a loop.
const MAX_CAPABILITIES: usize = 48;

/// The function at `folder` in /sys.
pub(super) fn describe(source: &mut Source<'_>, interface: &str, folder: &str) -> Pci {
    let part = |file: &str| source.hint(&format!("{folder}/{file}"));
    let width = |file| part(file).and_then(|text| text.parse().ok()).filter(|width| (1..=32).contains(width));
    let speed = |file| part(file).as_deref().and_then(megatransfers);
    let hex = |file| part(file).and_then(|text| text.strip_prefix("0x").map(str::to_owned));
    let mut pci = Pci {
        id: hex("vendor").zip(hex("device")).map(|(vendor, device)| format!("{vendor}:{device}")),
        speed_mts: speed("current_link_speed"),
        max_speed_mts: speed("max_link_speed"),
        width: width("current_link_width"),
        max_width: width("max_link_width"),
        ..Pci::default()
    };
    if pci.speed_mts.is_none() || pci.width.is_none() {
        source.missing.push(format!("{interface}: PCI link: {folder} has no PCI Express link"));
    }
    match source.sys.read_bytes(&format!("{folder}/config"), SPACE) {
        Ok(space) => match control(&space) {
            Some(control) => {
                let bytes = |shift: u16| Some(128 << (control >> shift & 7)).filter(|bytes| *bytes <= 4096);
                (pci.payload_bytes, pci.read_request_bytes) = (bytes(5), bytes(12));
            }
            None => {
                let why =
                    if space.len() <= PUBLIC { "needs root" } else { "the function has no PCI Express capability" };
                source.missing.push(format!("{interface}: PCI read-request size: {why}"));
            }
        },
        Err(error) => source.miss(&format!("{interface}: PCI read-request size"), &format!("{folder}/config"), &error),
    }
    pci
}

/// Millions of transfers per second in `8.0 GT/s PCIe`; `None` for `Unknown`.
fn megatransfers(text: &str) -> Option<u32> {
    let giga: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (giga > 0.0).then_some((giga * 1000.0).round() as u32)
}

/// The Device Control register, found along the list of capabilities.
fn control(space: &[u8]) -> Option<u16> {
    let mut at = usize::from(*space.get(CAPABILITIES)? & !3);
    for _ in 0..MAX_CAPABILITIES {
        if at < PUBLIC {
            return None;
        }
        if *space.get(at)? == EXPRESS {
            let register = space.get(at + CONTROL..at + CONTROL + 2)?;
            return Some(u16::from_le_bytes(register.try_into().ok()?));
        }
        at = usize::from(*space.get(at + 1)? & !3);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A space with a power management capability at 0x40 and PCI Express at 0x60.
    fn space() -> Vec<u8> {
        let mut space = vec![0; SPACE];
        space[CAPABILITIES] = 0x40;
        space[0x40..0x42].copy_from_slice(&[0x01, 0x60]);
        space[0x60..0x62].copy_from_slice(&[EXPRESS, 0x00]);
        // MaxPayload 256 bytes (1), MaxReadReq 4096 bytes (5).
        space[0x68..0x6a].copy_from_slice(&(1_u16 << 5 | 5 << 12 | 0x1f).to_le_bytes());
        space
    }

    #[test]
    fn device_control_is_found_behind_other_capabilities() {
        let control = control(&space()).unwrap();
        assert_eq!((128 << (control >> 5 & 7), 128 << (control >> 12 & 7)), (256, 4096));
    }

    #[test]
    fn a_truncated_or_circular_space_yields_nothing() {
        assert_eq!(control(&space()[..PUBLIC]), None);
        let mut circle = space();
        circle[0x60] = 0x05;
        circle[0x61] = 0x40;
        assert_eq!(control(&circle), None);
    }

    #[test]
    fn speeds_are_read_as_the_kernel_writes_them() {
        assert_eq!(megatransfers("8.0 GT/s PCIe"), Some(8_000));
        assert_eq!(megatransfers("2.5 GT/s"), Some(2_500));
        assert_eq!(megatransfers("Unknown"), None);
    }
}
