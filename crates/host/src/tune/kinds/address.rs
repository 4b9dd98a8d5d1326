//! Addresses of an interface with their prefix lengths, by the program ip.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use super::{Control, Kind, Knob, good_name, whole};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;

/// `dev.NAME.address`.
pub(crate) struct Address;

/// The value of an interface without addresses.
const NONE: &str = "none";

/// The addresses of one interface, without those that the kernel gives it by itself (link-local ones of IPv6).
struct Addresses {
    device: String,
}

impl Kind for Address {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[("dev.eth0.address", "all addresses of an interface with their prefix lengths or netmasks, or none")]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let (device, field) = key.strip_prefix("dev.")?.rsplit_once('.')?;
        (field == "address" && good_name(device)).then(|| Knob::new(key, Addresses { device: device.into() })).flatten()
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        backend.devices().unwrap_or_default().iter().map(|device| format!("dev.{device}.address")).collect()
    }
}

/// An address and its prefix length: `192.0.2.1/24`, `192.0.2.1/255.255.255.0`, `2001:db8::1/64`; without a length one host.
fn prefix(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/').map_or((text, None), |(one, length)| (one, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => most,
        Some(mask) if address.is_ipv4() && mask.contains('.') => netmask(mask)?,
        Some(length) => whole(length).ok()?,
    };
    (length <= most).then_some((address, length))
}

/// The length of a netmask of IPv4; `None` if its ones are not all on the left.
fn netmask(mask: &str) -> Option<u32> {
    let bits = mask.parse::<Ipv4Addr>().ok()?.to_bits();
    (bits.leading_ones() == bits.count_ones()).then_some(bits.count_ones())
}

/// The prefixes of a value, in its order.
fn prefixes(value: &str) -> Result<Vec<(IpAddr, u32)>, SettingValueError> {
    if value.trim() == NONE {
        return Ok(Vec::new());
    }
    let read = |word: &str| prefix(word).ok_or_else(|| SettingValueError::Address { text: word.into() });
    value.split_whitespace().map(read).collect()
}

impl Addresses {
    /// The prefixes that the interface has now.
    fn present(&self, backend: &dyn Backend) -> io::Result<Vec<(IpAddr, u32)>> {
        let shown = backend.run("ip", &["-o", "addr", "show", "dev", &self.device])?;
        // 2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0\       valid_lft forever preferred_lft forever
        let of = |line: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != "inet" && *word != "inet6");
            let (_, written) = (words.next()?, words.next()?);
            let scope = words.skip_while(|word| *word != "scope").nth(1);
            prefix(written).filter(|_| scope != Some("link"))
        };
        Ok(shown.lines().filter_map(of).collect())
    }

    fn change(&self, backend: &dyn Backend, what: &str, (address, length): (IpAddr, u32)) -> io::Result<()> {
        let written = format!("{address}/{length}");
        let mut words = vec!["addr", what, written.as_str()];
        // The broadcast address that follows from the prefix.
        if what == "add" && address.is_ipv4() && length < 31 {
            words.extend(["brd", "+"]);
        }
        words.extend(["dev", &self.device]);
        backend.run("ip", &words).map(drop)
    }
}

impl Control for Addresses {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        if !backend.devices()?.contains(&self.device) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let list: Vec<String> =
            self.present(backend)?.iter().map(|(address, length)| format!("{address}/{length}")).collect();
        Ok(if list.is_empty() { NONE.to_owned() } else { list.join(" ") })
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let wanted = prefixes(value).map_err(io::Error::other)?;
        let missing = |present: &[(IpAddr, u32)]| -> Vec<(IpAddr, u32)> {
            wanted.iter().filter(|one| !present.contains(one)).copied().collect()
        };
        let before = self.present(backend)?;
        // New ones first: the interface is never without an address.
        missing(&before).into_iter().try_for_each(|one| self.change(backend, "add", one))?;
        for old in before.into_iter().filter(|one| !wanted.contains(one)) {
            // One that is gone went with the first address of its network.
            if self.present(backend)?.contains(&old) {
                self.change(backend, "del", old)?;
            }
        }
        let left = self.present(backend)?;
        missing(&left).into_iter().try_for_each(|one| self.change(backend, "add", one))
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        prefixes(value).map(drop)
    }

    fn same(&self, one: &str, other: &str) -> bool {
        let sorted = |value: &str| {
            prefixes(value).map(|mut list| {
                list.sort_unstable();
                list
            })
        };
        sorted(one).is_ok_and(|one| sorted(other).is_ok_and(|other| one == other))
    }

    fn cuts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netmasks_and_lengths_are_the_same() {
        let control = Addresses { device: "eth0".into() };
        assert!(control.same("192.0.2.1/255.255.255.0 2001:db8::1/64", "2001:db8:0::1/64 192.0.2.1/24"));
        assert!(!control.same("192.0.2.1/24", "192.0.2.1/25") && control.same("none", "none"));
        for value in ["192.0.2.1", "192.0.2.1/0", "::1/128", "none", "10.0.0.1/255.255.0.0 10.0.1.1/16"] {
            control.check(value).unwrap_or_else(|why| panic!("{value}: {why}"));
        }
        for value in
            ["192.0.2/24", "192.0.2.1/33", "192.0.2.1/255.0.255.0", "2001:db8::1/129", "-6", "eth0", "10.0.0.1/+8"]
        {
            assert!(control.check(value).is_err(), "{value}");
        }
    }

    #[test]
    fn keys_name_an_interface() {
        assert!(Address.setting("dev.eth0.address").is_some() && Address.setting("dev.eth0.5.address").is_some());
        assert!(
            ["dev..address", "dev.a/b.address", "dev.eth0.addresses"].iter().all(|key| Address.setting(key).is_none())
        );
    }
}
