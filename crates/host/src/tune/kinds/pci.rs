//! Registers of a PCI device's configuration space, in the words of setpci(8).
//!
//! Layout of the header and of the list of capabilities: PCI Local Bus Specification 3.0, sections 6.1 and 6.7; numbers of
//! capabilities: linux/pci_regs.h. The kernel has the space as a file (Documentation/PCI/sysfs-pci.rst).

use std::io;

use super::{Control, Kind, Knob};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;

/// `pci.ADDRESS.REGISTER`.
pub(crate) struct Pci;

const DEVICES: &str = "/sys/bus/pci/devices/";

/// The registers of the header that may be set, with their offsets and widths in bytes. Its other registers identify the device or
/// belong to the kernel, which places the device's memory by them.
const HEADER: [(&str, usize, usize); 3] =
    [("COMMAND", 0x04, 2), ("CACHE_LINE_SIZE", 0x0c, 1), ("LATENCY_TIMER", 0x0d, 1)];
/// Capabilities by their names in setpci, and their numbers.
const CAPABILITIES: [(&str, u8); 5] =
    [("CAP_PM", 0x01), ("CAP_MSI", 0x05), ("CAP_PCIX", 0x07), ("CAP_EXP", 0x10), ("CAP_MSIX", 0x11)];

/// The end of the header.
const HEADER_END: usize = 0x40;
/// The end of the configuration space of PCI Express.
const SPACE_END: usize = 0x1000;
/// Offsets of the status register, of its bit that says that there are capabilities, and of the pointer to the first.
const STATUS: usize = 0x06;
const HAS_CAPABILITIES: u8 = 0x10;
const FIRST_CAPABILITY: usize = 0x34;
/// The most capabilities of four bytes that a space of 256 has: a longer list is a circle.
const MOST_CAPABILITIES: usize = 48;

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Register {
    /// The capability that its offset counts from.
    capability: Option<u8>,
    offset: usize,
    /// Bytes: 1, 2 or 4.
    width: usize,
}

impl Register {
    /// `LATENCY_TIMER`, `CAP_EXP+8.w`, `e6.b`.
    fn of(text: &str) -> Option<Self> {
        let (place, width) = match text.rsplit_once('.') {
            Some((place, width)) => {
                (place, Some([("b", 1), ("w", 2), ("l", 4)].iter().find(|(name, _)| *name == width)?.1))
            }
            None => (text, None),
        };
        let (base, added) =
            place.split_once('+').map_or((place, 0), |(base, added)| (base, hex(added).unwrap_or(SPACE_END)));
        if let Some((_, number)) = CAPABILITIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(base)) {
            let register = Self { capability: Some(*number), offset: added, width: width? };
            return (added < SPACE_END).then_some(register);
        }
        let named = HEADER.iter().find(|(name, ..)| name.eq_ignore_ascii_case(base));
        let (offset, width) = match named {
            Some((_, offset, own)) => (*offset, width.unwrap_or(*own)),
            None => (hex(base)?, width?),
        };
        let register = Self { capability: None, offset: offset + added, width };
        register.may_be_set().then_some(register)
    }

    fn may_be_set(&self) -> bool {
        let end = self.offset + self.width;
        let inside = |(_, start, width): &(&str, usize, usize)| *start <= self.offset && end <= start + width;
        self.offset.is_multiple_of(self.width)
            && end <= SPACE_END
            && (self.offset >= HEADER_END || HEADER.iter().any(inside))
    }
}

fn hex(text: &str) -> Option<usize> {
    let digits = text.len() <= 8 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    usize::from_str_radix(text, 16).ok().filter(|_| digits)
}

/// The address of a device with its domain, and the rest of the key.
fn address(text: &str) -> Option<(String, &str)> {
    // `0000:03:00.0.REGISTER`, `03:00.0.REGISTER`
    let (slot, rest) = text.split_once('.')?;
    let (function, register) = rest.split_once('.')?;
    let parts: Vec<&str> = slot.split(':').collect();
    let (domain, bus, device) = match parts.as_slice() {
        [bus, device] => (0, hex(bus)?, hex(device)?),
        [domain, bus, device] => (hex(domain)?, hex(bus)?, hex(device)?),
        _ => return None,
    };
    let function = function.parse::<u8>().ok().filter(|function| *function < 8)?;
    (bus < 256 && device < 32).then(|| (format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"), register))
}

impl Kind for Pci {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "pci.0000:03:00.0.LATENCY_TIMER",
                "a register of a PCI device's configuration space, in hex as setpci has it",
            ),
            ("pci.0000:03:00.0.CAP_EXP+8.w", "a register of a capability; value VALUE or VALUE:MASK"),
        ]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let (device, name) = address(key.strip_prefix("pci.")?)?;
        let register = Register::of(name)?;
        let key = format!("pci.{device}.{name}");
        let path = format!("{DEVICES}{device}/config");
        // A register has several names, so a device has one owner.
        Some(Knob::new(key, Space { path, register })?.leasing(vec![format!("pci.{device}")]))
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let devices = backend.list(DEVICES).unwrap_or_default();
        let of = |device: &String| {
            let device = device.trim_end_matches('/').to_owned();
            HEADER.iter().map(move |(name, ..)| format!("pci.{device}.{name}"))
        };
        devices.iter().flat_map(of).collect()
    }
}

/// A register of a device's configuration space.
struct Space {
    path: String,
    register: Register,
}

impl Space {
    /// Where the register is.
    fn place(&self, backend: &dyn Backend) -> io::Result<u64> {
        let Some(number) = self.register.capability else { return Ok(self.register.offset as u64) };
        let byte = |at: usize| Ok::<u8, io::Error>(backend.read_bytes(&self.path, at as u64, 1)?[0]);
        let absent = || io::Error::other("the device has no such capability: `lspci -vv` lists those that it has");
        if byte(STATUS)? & HAS_CAPABILITIES == 0 {
            return Err(absent());
        }
        // The two low bits are reserved.
        let mut at = usize::from(byte(FIRST_CAPABILITY)? & !3);
        for _ in 0..MOST_CAPABILITIES {
            if at < HEADER_END {
                break;
            }
            if byte(at)? == number {
                let found = Register { capability: None, offset: at + self.register.offset, ..self.register };
                return if found.may_be_set() {
                    Ok(found.offset as u64)
                } else {
                    Err(io::ErrorKind::InvalidInput.into())
                };
            }
            at = usize::from(byte(at + 1)? & !3);
        }
        Err(absent())
    }

    fn bits(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.register.width)
    }
}

/// A value and the mask of the bits that count, within `bits`: `2e`, `0x2e`, `5000:7000`.
fn masked(text: &str, bits: u32) -> Option<(u32, u32)> {
    let number = |text: &str| {
        let digits = text.trim().trim_start_matches("0x");
        u32::try_from(hex(digits)?).ok().filter(|number| *number <= bits)
    };
    match text.split_once(':') {
        Some((value, mask)) => Some((number(value)?, number(mask)?)),
        None => Some((number(text)?, bits)),
    }
}

impl Control for Space {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        let width = self.register.width;
        let bytes = backend.read_bytes(&self.path, self.place(backend)?, width)?;
        let number = bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        Ok(format!("{number:0digits$x}", digits = 2 * width))
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let now = self.read(backend)?;
        let (Some((value, mask)), Some((now, _))) = (masked(value, self.bits()), masked(&now, self.bits())) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let number = (now & !mask) | (value & mask);
        backend.write_bytes(&self.path, self.place(backend)?, &number.to_le_bytes()[..self.register.width])
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        let expected = match self.register.width {
            1 => "a number in hex of at most two digits, or VALUE:MASK",
            2 => "a number in hex of at most four digits, or VALUE:MASK",
            _ => "a number in hex of at most eight digits, or VALUE:MASK",
        };
        masked(value, self.bits()).map(drop).ok_or(SettingValueError::Form { expected })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        self.took(one, other) && self.took(other, one)
    }

    fn took(&self, requested: &str, now: &str) -> bool {
        match (masked(requested, self.bits()), masked(now, self.bits())) {
            (Some((value, mask)), Some((now, _))) => value & mask == now & mask,
            _ => false,
        }
    }

    fn host_wide(&self) -> bool {
        true
    }

    fn cuts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_names_of_setpci() {
        let register = |capability, offset, width| Some(Register { capability, offset, width });
        for (text, expected) in [
            ("LATENCY_TIMER", register(None, 0x0d, 1)),
            ("latency_timer.b", register(None, 0x0d, 1)),
            ("COMMAND", register(None, 0x04, 2)),
            ("e6.b", register(None, 0xe6, 1)),
            ("100.l", register(None, 0x100, 4)),
            ("CAP_EXP+8.w", register(Some(0x10), 8, 2)),
            ("CAP_PCIX+2.w", register(Some(0x07), 2, 2)),
        ] {
            assert_eq!(Register::of(text), expected, "{text}");
        }
        // Unknown names, a missing width, an address register, half a register, the end of the space.
        for text in
            ["SPEED", "e6", "CAP_EXP+8", "CAP_XYZ+8.w", "10.l", "0c.w", "e7.w", "1000.b", "ffd.l", "CAP_EXP+g.w", ""]
        {
            assert_eq!(Register::of(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_have_a_domain_or_none() {
        assert_eq!(address("0000:03:00.0.e6.b"), Some(("0000:03:00.0".into(), "e6.b")));
        assert_eq!(address("3:1f.7.COMMAND"), Some(("0000:03:1f.7".into(), "COMMAND")));
        for text in ["03:00.8.e6.b", "03:20.0.e6.b", "eth0.e6.b", "../03:00.0.e6.b", "03:00.e6.b"] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_hex_with_a_mask() {
        assert_eq!(masked("2e", 0xff), Some((0x2e, 0xff)));
        assert_eq!(masked("0x5000:7000", 0xffff), Some((0x5000, 0x7000)));
        for text in ["", "100", "g", "-1", "5:", "1:100"] {
            assert_eq!(masked(text, 0xff), None, "{text}");
        }
    }
}
