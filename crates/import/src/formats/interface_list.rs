//! The interfaces of listings: each listing becomes the near host's inventory in a run of the kind `environment`.

use std::net::Ipv4Addr;

use model::Interface;

use crate::listing::{Imported, Reading};

/// The interfaces of one listing, in its order.
#[derive(Debug, Default)]
pub(super) struct Interfaces(Vec<Interface>);

/// Most interfaces of a listing.
const MOST: usize = 10_000;

impl Interfaces {
    /// The interface of that name, a new one if there is none.
    pub(super) fn of(&mut self, name: &str) -> &mut Interface {
        let at = match self.0.iter().position(|known| known.name == name) {
            Some(at) => at,
            None if self.0.len() == MOST => MOST - 1,
            None => {
                self.0.push(Interface { name: name.to_owned(), ..Interface::default() });
                self.0.len() - 1
            }
        };
        &mut self.0[at]
    }

    /// The listing of `tool`; nothing without interfaces.
    pub(super) fn reading(self, tool: &str) -> Reading {
        let mut reading = Reading::default();
        if !self.0.is_empty() {
            let mut imported = Imported { tool: tool.into(), kind: "environment".into(), ..Imported::default() };
            imported.near.interfaces = self.0;
            reading.imported.push(imported);
        }
        reading
    }
}

/// The length of a netmask, as `255.255.255.0` or `0xffffff00`.
pub(super) fn prefix_length(mask: &str) -> Option<u32> {
    let bits = match mask.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => mask.parse::<Ipv4Addr>().ok()?.to_bits(),
    };
    (bits.leading_ones() == bits.count_ones()).then_some(bits.count_ones())
}
