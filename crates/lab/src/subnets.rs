//! Addresses for a lab that are not in use on this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::SplitMix64;
use serde::{Deserialize, Serialize};

use crate::LabError;

/// The two subnets of a link between two hosts. The first host gets address 1 of each, the second address 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnets {
    /// Network address of the IPv4 subnet, a /30.
    pub v4: Ipv4Addr,
    /// Network address of the IPv6 subnet, a /64.
    pub v6: Ipv6Addr,
}

impl Subnets {
    /// Length of the IPv4 prefix in bits.
    pub const V4_PREFIX: u8 = 30;
    /// Length of the IPv6 prefix in bits.
    pub const V6_PREFIX: u8 = 64;

    /// How many [`numbered`](Self::numbered) subnets there are: the /30s of a /15.
    const COUNT: u64 = 1 << 15;
    /// Subnets tried before giving up.
    const TRIES: usize = 1_000;

    /// A subnet pair by number: IPv4 from 198.18.0.0/15, which RFC 2544 (section C.2.2) reserves for measuring network
    /// devices, IPv6 from a unique local prefix (RFC 4193) that spells "thru" in ASCII.
    pub(crate) fn numbered(number: u16) -> Self {
        let v4 = u32::from(Ipv4Addr::new(198, 18, 0, 0)) + (u32::from(number) << 2);
        Self { v4: v4.into(), v6: Ipv6Addr::new(0xfd74, 0x6872, 0x7500, number, 0, 0, 0, 0) }
    }

    /// A random pair that overlaps no destination in `routes`, such as `10.0.0.0/8`.
    pub(crate) fn choose(routes: &[String]) -> Result<Self, LabError> {
        let routes: Vec<(IpAddr, u8)> = routes.iter().filter_map(|route| prefix(route)).collect();
        let free = |pair: &Self| !routes.iter().any(|(network, length)| pair.meets(*network, *length));
        let mut random = SplitMix64::new(random()?);
        let drawn = std::iter::repeat_with(|| Self::numbered((random.next_u64() % Self::COUNT) as u16));
        drawn.take(Self::TRIES).find(free).ok_or(LabError::NoSubnet)
    }

    /// Address of host `number` (1 or 2) in each subnet.
    pub(crate) fn host(&self, number: u8) -> (Ipv4Addr, Ipv6Addr) {
        let v4 = u32::from(self.v4) + u32::from(number);
        let v6 = u128::from(self.v6) + u128::from(number);
        (v4.into(), v6.into())
    }

    /// Refuses addresses that are not the first of their subnet.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        if u32::from(self.v4) & 3 != 0 {
            let remedy = "use an address whose last number is a multiple of 4, such as 198.18.0.4";
            return Err(LabError::Spec { what: format!("{} is not the network address of a /30", self.v4), remedy });
        }
        if u128::from(self.v6) << Self::V6_PREFIX != 0 {
            let remedy = "use an address whose last four groups are zero, such as fd00:0:0:1::";
            return Err(LabError::Spec { what: format!("{} is not the network address of a /64", self.v6), remedy });
        }
        Ok(())
    }

    fn meets(&self, network: IpAddr, length: u8) -> bool {
        meets((self.v4, Self::V4_PREFIX), (self.v6, Self::V6_PREFIX), network, length)
    }

    /// Both, as a routing table writes them.
    pub(crate) fn destinations(&self) -> [String; 2] {
        [format!("{}/{}", self.v4, Self::V4_PREFIX), format!("{}/{}", self.v6, Self::V6_PREFIX)]
    }
}

/// Whether a route's destination overlaps with the network of its IP version. Destinations wider than a /8 are default
/// routes in effect (some VPNs split theirs in two), and do not mean that a subnet is in use.
pub(crate) fn meets(v4: (Ipv4Addr, u8), v6: (Ipv6Addr, u8), network: IpAddr, length: u8) -> bool {
    if length < 8 {
        return false;
    }
    match network {
        IpAddr::V4(network) => {
            let apart = u32::from(network) ^ u32::from(v4.0);
            apart.checked_shr(32 - u32::from(length.min(v4.1))).unwrap_or(0) == 0
        }
        IpAddr::V6(network) => {
            let apart = u128::from(network) ^ u128::from(v6.0);
            apart.checked_shr(128 - u32::from(length.min(v6.1))).unwrap_or(0) == 0
        }
    }
}

/// Address and length of a destination such as `10.0.0.0/8` or `10.0.0.1`; `None` for `default` and other words.
pub(crate) fn prefix(destination: &str) -> Option<(IpAddr, u8)> {
    let (network, length) = match destination.split_once('/') {
        Some((network, length)) => (network.parse().ok()?, length.parse().ok()?),
        None => (destination.parse().ok()?, 128),
    };
    Some((network, length))
}

/// A random number of the kernel: labs of one host need different names and addresses.
pub(crate) fn random() -> Result<u64, LabError> {
    getrandom::u64().map_err(|error| LabError::Random { source: std::io::Error::other(error.to_string()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(v4: &str, v6: &str) -> Subnets {
        Subnets { v4: v4.parse().unwrap(), v6: v6.parse().unwrap() }
    }

    #[test]
    fn numbers_fill_the_benchmarking_range_and_no_more() {
        assert_eq!(Subnets::numbered(0), pair("198.18.0.0", "fd74:6872:7500::"));
        assert_eq!(Subnets::numbered(0x7fff), pair("198.19.255.252", "fd74:6872:7500:7fff::"));
        assert_eq!(
            Subnets::numbered(1).host(2),
            ("198.18.0.6".parse().unwrap(), "fd74:6872:7500:1::2".parse().unwrap())
        );
    }

    #[test]
    fn overlap_counts_in_either_direction() {
        let lab = pair("198.18.4.8", "fd74:6872:7500:9::");
        for (route, meets) in [
            ("198.18.0.0/15", true),
            ("198.18.4.8/30", true),
            ("198.18.4.9", true),
            ("198.18.4.12/30", false),
            ("198.18.4.7", false),
            ("10.0.0.0/8", false),
            ("0.0.0.0/1", false),
            ("128.0.0.0/1", false),
            ("fd74:6872:7500:9::2", true),
            ("fd74::/16", true),
            ("fd00::/64", false),
            ("fd74:6872:7500:a::/64", false),
        ] {
            let (network, length) = prefix(route).unwrap();
            assert_eq!(lab.meets(network, length), meets, "{route}");
        }
        assert_eq!(prefix("default"), None);
    }

    #[test]
    fn a_taken_range_is_avoided_or_refused() {
        let half = ["default".to_owned(), "198.18.0.0/16".to_owned()];
        for _ in 0..50 {
            assert_eq!(Subnets::choose(&half).unwrap().v4.octets()[..2], [198, 19]);
        }
        let all = ["198.18.0.0/15".to_owned()];
        assert!(matches!(Subnets::choose(&all), Err(LabError::NoSubnet)));
    }

    #[test]
    fn host_addresses_in_place_of_networks_are_refused() {
        assert!(pair("10.1.2.4", "fd00::").check().is_ok());
        assert!(pair("10.1.2.5", "fd00::").check().is_err());
        assert!(pair("10.1.2.4", "fd00::1").check().is_err());
    }
}
