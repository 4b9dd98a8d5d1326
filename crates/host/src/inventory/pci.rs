//! The PCI function of a network device: its link and its memory request sizes (PCI Express Base Specification, 7.5).

use model::Pci;

use super::Source;

/// Status register, and its bit for a clock of 66 MHz (PCI Local Bus Specification 3.0, 6.2.3).
const STATUS: usize = 0x06;
const CLOCK_66: u16 = 1 << 5;
/// Number of PCI-X in the capability list, its status register, and that one's bits for 64 bits and 133 MHz (PCI-X Addendum 1.0a, 7.2).
const PCI_X: u8 = 0x07;
const PCI_X_STATUS: usize = 4;
const BITS_64: u32 = 1 << 16;
const CLOCK_133: u32 = 1 << 17;
/// Lists of vendors and products, where distributions have them.
const IDS: [&str; 2] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];
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
                (pci.max_clock_mhz, pci.bus_bits) = conventional(&space);
                let why =
                    if space.len() <= PUBLIC { "needs root" } else { "the function has no PCI Express capability" };
                source.missing.push(format!("{interface}: PCI read-request size: {why}"));
            }
        },
        Err(error) => source.miss(&format!("{interface}: PCI read-request size"), &format!("{folder}/config"), &error),
    }
    pci
}

/// Vendor and product of an id, by the list of this host; `None` without a list or an entry.
pub(super) fn product(source: &Source<'_>, id: &str) -> Option<String> {
    let (vendor, device) = id.split_once(':')?;
    IDS.iter().find_map(|path| named(&source.hint(path)?, vendor, device))
}

/// The names in the text of a pci.ids file: a line of the vendor, below it indented ones of its devices.
fn named(ids: &str, vendor: &str, device: &str) -> Option<String> {
    let name = |line: &str, id: &str| Some(line.strip_prefix(id)?.strip_prefix("  ")?.trim().to_owned());
    let mut lines = ids.lines().skip_while(|line| name(line, vendor).is_none());
    let maker = name(lines.next()?, vendor)?;
    let below = lines.take_while(|line| line.starts_with(['\t', '#']) || line.is_empty());
    let product = below.filter_map(|line| line.strip_prefix('\t')).find_map(|line| name(line, device));
    Some(product.map_or(maker.clone(), |product| format!("{maker} {product}")))
}

/// The highest clock, MHz, and the width, bits, of a function without PCI Express. The width is known of PCI-X only.
fn conventional(space: &[u8]) -> (Option<u32>, Option<u32>) {
    let Some(status) = space.get(STATUS..STATUS + 2).and_then(|two| two.try_into().ok()).map(u16::from_le_bytes) else {
        return (None, None);
    };
    let clock = if status & CLOCK_66 == 0 { 33 } else { 66 };
    // Beyond the public part only root sees capabilities, and a PCI Express function without its own looks like an old one.
    if space.len() <= PUBLIC {
        return (None, None);
    }
    let extended = capability(space, PCI_X).and_then(|at| space.get(at + PCI_X_STATUS..at + PCI_X_STATUS + 4));
    match extended.and_then(|four| four.try_into().ok()).map(u32::from_le_bytes) {
        Some(bits) => {
            let clock = if bits & CLOCK_133 == 0 { 66 } else { 133 };
            (Some(clock), Some(if bits & BITS_64 == 0 { 32 } else { 64 }))
        }
        None => (Some(clock), None),
    }
}

/// Millions of transfers per second in `8.0 GT/s PCIe`; `None` for `Unknown`.
fn megatransfers(text: &str) -> Option<u32> {
    let giga: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (giga > 0.0).then_some((giga * 1000.0).round() as u32)
}

/// The Device Control register of PCI Express.
fn control(space: &[u8]) -> Option<u16> {
    let at = capability(space, EXPRESS)?;
    let register = space.get(at + CONTROL..at + CONTROL + 2)?;
    Some(u16::from_le_bytes(register.try_into().ok()?))
}

/// Where a capability begins, found along their list.
fn capability(space: &[u8], number: u8) -> Option<usize> {
    let mut at = usize::from(*space.get(CAPABILITIES)? & !3);
    for _ in 0..MAX_CAPABILITIES {
        if at < PUBLIC {
            return None;
        }
        if *space.get(at)? == number {
            return Some(at);
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
    fn clock_and_width_of_functions_without_pci_express() {
        let mut space = vec![0; SPACE];
        assert_eq!(conventional(&space), (Some(33), None));
        space[STATUS] = 1 << 5;
        assert_eq!(conventional(&space), (Some(66), None));
        (space[CAPABILITIES], space[0x40]) = (0x40, PCI_X);
        space[0x44..0x48].copy_from_slice(&(BITS_64 | CLOCK_133).to_le_bytes());
        assert_eq!(conventional(&space), (Some(133), Some(64)));
        assert_eq!(conventional(&space[..PUBLIC]), (None, None), "not known without root");
    }

    #[test]
    fn products_have_the_names_of_the_list() {
        let ids = "# a comment\n15b2  Another\n\t1017  Not this one\n15b3  Mellanox Technologies\n\t0191  First\n\t\t15b3 0001  Sub\n\
                   \t1017  MT27800 Family [ConnectX-5]\n\n8086  Intel Corporation\n\t1018  Not this one\n";
        assert_eq!(named(ids, "15b3", "1017").as_deref(), Some("Mellanox Technologies MT27800 Family [ConnectX-5]"));
        assert_eq!(named(ids, "15b3", "1018").as_deref(), Some("Mellanox Technologies"));
        assert_eq!(named(ids, "1af4", "1000"), None);
    }

    #[test]
    fn speeds_are_read_as_the_kernel_writes_them() {
        assert_eq!(megatransfers("8.0 GT/s PCIe"), Some(8_000));
        assert_eq!(megatransfers("2.5 GT/s"), Some(2_500));
        assert_eq!(megatransfers("Unknown"), None);
    }
}
