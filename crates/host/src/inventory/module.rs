//! The pluggable module of a port, from its EEPROM: SFF-8472 (SFP), SFF-8636 (QSFP) and CMIS (QSFP-DD, OSFP).

use std::io;

use model::Module;

use super::Source;
use crate::netlink::ethtool::{MODULE_EEPROM, request};
use crate::netlink::{Attributes, NetlinkFamily, NetlinkRequest, put};

const DATA: u16 = 7;
/// Half a page, which is what the kernel reads at once.
const HALF: u32 = 128;

/// Kinds by the EEPROM's first byte (SFF-8024, table 4-1).
const KINDS: &[(u8, &str)] = &[
    (0x03, "SFP/SFP+/SFP28"),
    (0x0b, "DWDM-SFP/SFP+"),
    (0x0c, "QSFP"),
    (0x0d, "QSFP+"),
    (0x11, "QSFP28"),
    (0x18, "QSFP-DD"),
    (0x19, "OSFP"),
    (0x1b, "DSFP"),
    (0x1e, "QSFP+ with CMIS"),
    (0x1f, "SFP-DD with CMIS"),
];

/// Where vendor (16 bytes), part number (16 bytes) and revision begin, and the revision's length. Offsets from 128 on lie in the
/// upper half of page 0.
const SFP: [usize; 4] = [20, 40, 56, 4];
const QSFP: [usize; 4] = [148, 168, 184, 2];
const CMIS: [usize; 4] = [129, 148, 164, 2];

/// The module of `interface`. A port without a cage reports that it has none; other failures are reported.
pub(super) fn describe(source: &mut Source<'_>, interface: &str) -> Option<Module> {
    let mut memory = match half(source, interface, 0) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return None,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return None, // older kernels' word for the same
        Err(error) => {
            source.miss(&format!("{interface}: module"), "its EEPROM", &error);
            return None;
        }
    };
    let first = *memory.first()?;
    let layout = match first {
        0x03 | 0x0b => SFP,
        0x0c | 0x0d | 0x11 => QSFP,
        _ => CMIS,
    };
    if layout[0] >= HALF as usize {
        memory.resize(HALF as usize, 0);
        match half(source, interface, HALF) {
            Ok(upper) => memory.extend(upper),
            Err(error) => source.miss(&format!("{interface}: module's vendor"), "its EEPROM", &error),
        }
    }
    let text = |start: usize, length: usize| {
        let text = String::from_utf8_lossy(memory.get(start..start + length)?).trim().to_owned();
        (!text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ')).then_some(text)
    };
    let kind = KINDS.iter().find(|(code, _)| *code == first).map(|(_, name)| (*name).to_owned());
    Some(Module {
        kind: Some(kind.unwrap_or_else(|| format!("kind {first:#04x}"))),
        vendor: text(layout[0], 16),
        part: text(layout[1], 16),
        revision: text(layout[2], layout[3]),
    })
}

/// 128 bytes of page 0 from `offset`.
fn half(source: &Source<'_>, interface: &str, offset: u32) -> io::Result<Vec<u8>> {
    let mut body = request(Some(interface));
    put(&mut body, 2, &offset.to_ne_bytes());
    put(&mut body, 3, &HALF.to_ne_bytes());
    put(&mut body, 4, &[0]); // page
    put(&mut body, 5, &[0]); // bank
    put(&mut body, 6, &[0x50]); // address on the module's bus
    let name = format!("ethtool-module-{interface}-{offset}");
    let request = NetlinkRequest { name, family: NetlinkFamily::Ethtool, kind: MODULE_EEPROM, dump: false, body };
    let answers = source.sys.netlink(&request)?;
    let data = answers.first().and_then(|answer| Attributes(answer).get(DATA)).map(<[u8]>::to_vec);
    data.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
