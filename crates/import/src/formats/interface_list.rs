//! The interfaces of listings: each listing becomes the near host's inventory in a run of the kind `environment`. Counters have the
//! names of the kernel, as in this program's own inventory.

use std::net::Ipv4Addr;

use model::{Interface, RunKind};

use crate::error::ImportError;
use crate::listing::{Imported, TextReading};

/// The interfaces of listings, in their order; the last listing is open.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    listings: Vec<Vec<Interface>>,
    /// One that a listing has no place for.
    beyond: Option<Interface>,
}

/// Most interfaces of a listing.
const MOST: usize = 10_000;

impl Interfaces {
    /// An interface that a listing shows once: one that is there begins another listing, of another host or time.
    pub(super) fn begin(&mut self, name: &str) -> &mut Interface {
        if self.listings.last().is_some_and(|listing| listing.iter().any(|known| known.name == name)) {
            self.listings.push(Vec::new());
        }
        self.of(name)
    }

    /// The interface of that name in the open listing, a new one if there is none.
    pub(super) fn of(&mut self, name: &str) -> &mut Interface {
        if self.listings.is_empty() {
            self.listings.push(Vec::new());
        }
        let last = self.listings.len() - 1;
        let listing = &mut self.listings[last];
        let at = match listing.iter().position(|known| known.name == name) {
            Some(at) => at,
            None if listing.len() == MOST => return self.beyond.get_or_insert_default(),
            None => {
                listing.push(Interface { name: name.to_owned(), ..Interface::default() });
                listing.len() - 1
            }
        };
        &mut listing[at]
    }

    /// The listings of `tool`; nothing without interfaces.
    pub(super) fn reading(self, tool: &str) -> TextReading {
        let beyond = self.beyond.is_some();
        let imported = self.listings.into_iter().map(|listing| {
            let mut imported = Imported { tool: tool.into(), kind: RunKind::Environment, ..Imported::default() };
            imported.near.interfaces = listing;
            imported
        });
        let mut reading = TextReading { imported: imported.collect(), ..TextReading::default() };
        if beyond {
            reading.refuse(0, ImportError::TooMany { most: MOST, what: "interfaces" });
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
