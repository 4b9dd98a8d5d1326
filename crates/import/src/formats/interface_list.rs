//! The interfaces of listings: each listing becomes the near host's inventory in a run of the kind `environment`. Counters have the
//! names of the kernel, as in this program's own inventory.

use std::net::Ipv4Addr;

use model::Interface;

use crate::listing::{Imported, Reading};

/// The interfaces of listings, in their order; the last listing is open.
#[derive(Debug, Default)]
pub(super) struct Interfaces(Vec<Vec<Interface>>);

/// Most interfaces of a listing.
const MOST: usize = 10_000;

impl Interfaces {
    /// An interface that a listing shows once: one that is there begins another listing, of another host or time.
    pub(super) fn begin(&mut self, name: &str) -> &mut Interface {
        if self.0.last().is_some_and(|listing| listing.iter().any(|known| known.name == name)) {
            self.0.push(Vec::new());
        }
        self.of(name)
    }

    /// The interface of that name in the open listing, a new one if there is none.
    pub(super) fn of(&mut self, name: &str) -> &mut Interface {
        if self.0.is_empty() {
            self.0.push(Vec::new());
        }
        let last = self.0.len() - 1;
        let listing = &mut self.0[last];
        let at = match listing.iter().position(|known| known.name == name) {
            Some(at) => at,
            None if listing.len() == MOST => MOST - 1,
            None => {
                listing.push(Interface { name: name.to_owned(), ..Interface::default() });
                listing.len() - 1
            }
        };
        &mut listing[at]
    }

    /// The listings of `tool`; nothing without interfaces.
    pub(super) fn reading(self, tool: &str) -> Reading {
        let imported = self.0.into_iter().map(|listing| {
            let mut imported = Imported { tool: tool.into(), kind: "environment".into(), ..Imported::default() };
            imported.near.interfaces = listing;
            imported
        });
        Reading { imported: imported.collect(), ..Reading::default() }
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
