//! The range of addresses that a lab of many links divides among them.

use std::net::{Ipv4Addr, Ipv6Addr};

use model::SplitMix64;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::subnets::{Subnets, meets, prefix, random};

/// A /22 of 198.18.0.0/15 (RFC 2544, section C.2.2) and the /56 of the unique local prefix that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressBlock(u8);

impl AddressBlock {
    const V4_PREFIX: u8 = 22;
    const V6_PREFIX: u8 = 56;
    /// The /22s of a /15.
    const COUNT: u64 = 1 << 7;
    /// Pairs of a /30 and a /64 in it.
    pub(crate) const PAIRS: u16 = 1 << 8;
    const TRIES: usize = 1_000;

    /// A block that overlaps no destination in `routes`, such as `10.0.0.0/8`.
    pub(crate) fn choose(routes: &[String]) -> Result<Self, LabError> {
        let routes: Vec<_> = routes.iter().filter_map(|route| prefix(route)).collect();
        let free = |block: &Self| !routes.iter().any(|(network, length)| block.meets(*network, *length));
        let mut random = SplitMix64::new(random()?);
        let drawn = std::iter::repeat_with(|| Self((random.next_u64() % Self::COUNT) as u8));
        drawn.take(Self::TRIES).find(free).ok_or(LabError::NoSubnet)
    }

    /// The pair of subnets of that number, below [`Self::PAIRS`].
    pub(crate) fn pair(self, number: u16) -> Subnets {
        Subnets::numbered(u16::from(self.0) * Self::PAIRS + number % Self::PAIRS)
    }

    /// Its destinations, as a routing table writes them.
    pub(crate) fn destinations(self) -> [String; 2] {
        let Subnets { v4, v6 } = self.pair(0);
        [format!("{v4}/{}", Self::V4_PREFIX), format!("{v6}/{}", Self::V6_PREFIX)]
    }

    fn meets(self, network: std::net::IpAddr, length: u8) -> bool {
        let Subnets { v4, v6 } = self.pair(0);
        meets((v4, Self::V4_PREFIX), (v6, Self::V6_PREFIX), network, length)
    }
}

/// The network of a link or of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v4_prefix: u8,
    pub(crate) v6: Ipv6Addr,
}

impl Segment {
    /// A switch's share of a block: a /24.
    pub(crate) const SWITCH_PAIRS: u16 = 64;
    const SWITCH_PREFIX: u8 = 24;

    /// The network of one link.
    pub(crate) fn of_link(block: AddressBlock, number: u16) -> Self {
        let Subnets { v4, v6 } = block.pair(number);
        Self { v4, v4_prefix: Subnets::V4_PREFIX, v6 }
    }

    /// The network of a switch, from a number that is a multiple of [`Self::SWITCH_PAIRS`].
    pub(crate) fn of_switch(block: AddressBlock, number: u16) -> Self {
        Self { v4_prefix: Self::SWITCH_PREFIX, ..Self::of_link(block, number) }
    }

    /// The addresses of member `number`, from 1.
    pub(crate) fn member(&self, number: u32) -> (Ipv4Addr, Ipv6Addr) {
        ((u32::from(self.v4) + number).into(), (u128::from(self.v6) + u128::from(number)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_the_benchmarking_range() {
        assert_eq!(AddressBlock(0).destinations(), ["198.18.0.0/22", "fd74:6872:7500::/56"]);
        assert_eq!(AddressBlock(127).destinations(), ["198.19.252.0/22", "fd74:6872:7500:7f00::/56"]);
        assert_eq!(AddressBlock(1).pair(255).v4.to_string(), "198.18.7.252");
    }

    #[test]
    fn a_block_avoids_routes_and_other_labs() {
        let taken = AddressBlock(3).destinations();
        let half = ["198.18.0.0/16".to_owned(), taken[0].clone()];
        for _ in 0..50 {
            assert!(AddressBlock::choose(&half).unwrap().0 >= 64);
        }
        assert!(AddressBlock(3).meets("198.18.12.4".parse().unwrap(), 30), "a link of another lab within it");
        assert!(AddressBlock(3).meets("fd74:6872:7500:3ff::".parse().unwrap(), 64));
        assert!(!AddressBlock(3).meets("198.18.16.0".parse().unwrap(), 30));
        assert!(matches!(AddressBlock::choose(&["198.18.0.0/15".into()]), Err(LabError::NoSubnet)));
    }

    #[test]
    fn members_count_from_one() {
        let segment = Segment::of_switch(AddressBlock(0), 64);
        assert_eq!((segment.v4.to_string().as_str(), segment.v4_prefix), ("198.18.1.0", 24));
        assert_eq!(segment.member(5), ("198.18.1.5".parse().unwrap(), "fd74:6872:7500:40::5".parse().unwrap()));
    }
}
