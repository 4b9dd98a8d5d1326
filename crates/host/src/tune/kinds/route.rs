//! Metrics of a route, by the program ip.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Control, Kind, Knob, whole};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;

/// `route.DESTINATION.METRIC`.
pub(crate) struct Route;

/// Metrics that may be set (ip-route(8)).
const METRICS: [&str; 7] = ["initcwnd", "initrwnd", "quickack", "congctl", "mtu", "advmss", "rto_min"];
/// The value of a metric that a route does not have.
const NONE: &str = "none";
/// Words of `ip route show` that describe a state and are not accepted as input.
const STATES: [&str; 5] = ["linkdown", "dead", "offload", "trap", "rt_offload"];

/// One metric of one route.
struct Metric {
    destination: String,
    metric: &'static str,
}

impl Kind for Route {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[(
            "route.10.0.0.0/24.initcwnd",
            "a metric of the route to a network, or of route.default (also initrwnd, quickack, congctl, mtu, advmss, rto_min)",
        )]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let (destination, metric) = key.strip_prefix("route.")?.rsplit_once('.')?;
        let metric = METRICS.into_iter().find(|known| *known == metric)?;
        let destination = network(destination)?;
        Knob::new(format!("route.{destination}.{metric}"), Metric { destination, metric })
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let mut keys = Vec::new();
        for (version, default) in [("-4", "default"), ("-6", "default6")] {
            let shown = backend.run("ip", &[version, "route", "show"]).unwrap_or_default();
            let mut destinations: Vec<&str> = shown
                .lines()
                .filter_map(|line| line.split_whitespace().next())
                .map(|first| if first == "default" { default } else { first })
                .filter(|first| first.starts_with(|letter: char| letter.is_ascii_hexdigit()))
                .collect();
            destinations.dedup();
            for destination in destinations {
                keys.extend(METRICS.iter().map(|metric| format!("route.{destination}.{metric}")));
            }
        }
        keys
    }
}

/// A destination in canonical form, as ip prints it: no bits beyond the prefix, none for a single host, a name for the
/// whole Internet.
fn network(destination: &str) -> Option<String> {
    if ["default", "default6"].contains(&destination) {
        return Some(destination.into());
    }
    let (address, bits) = destination.split_once('/').map_or((destination, None), |(one, bits)| (one, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most: u32 = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| whole(bits).ok()).filter(|bits| *bits <= most)?;
    let cut = |value: u128| value.checked_shr(most - bits).unwrap_or(0).checked_shl(most - bits).unwrap_or(0);
    let start = match address {
        IpAddr::V4(v4) => IpAddr::from(Ipv4Addr::from_bits(cut(u128::from(v4.to_bits())) as u32)),
        IpAddr::V6(v6) => IpAddr::from(Ipv6Addr::from_bits(cut(v6.to_bits()))),
    };
    Some(match bits {
        0 if address.is_ipv4() => "default".into(),
        0 => "default6".into(),
        bits if bits == most => start.to_string(),
        bits => format!("{start}/{bits}"),
    })
}

/// Whether a value is one word that ip accepts as a name of a congestion control.
fn is_name(value: &str) -> bool {
    (1..16).contains(&value.len())
        && value.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && value.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}

/// Whether a value is one word that ip accepts as a time.
fn is_time(value: &str) -> bool {
    let number = value.strip_suffix("ms").or(value.strip_suffix("us")).or(value.strip_suffix('s')).unwrap_or(value);
    let (before, after) = number.split_once('.').unwrap_or((number, "0"));
    [before, after].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Metric {
    fn version(&self) -> &'static str {
        if self.destination.contains(':') || self.destination == "default6" { "-6" } else { "-4" }
    }

    /// The words of the one route to the destination.
    fn words(&self, backend: &dyn Backend) -> io::Result<Vec<String>> {
        let destination = self.destination.trim_end_matches('6');
        let destination = if self.destination == "default6" { destination } else { &self.destination };
        let shown = backend.run("ip", &[self.version(), "route", "show", "exact", destination])?;
        let mut routes = shown.lines().filter(|line| !line.trim().is_empty());
        let route = routes.next().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if routes.next().is_some() {
            return Err(io::Error::other(format!(
                "there are several routes to {destination} (ip route show exact {destination}), and a key cannot \
                    select one"
            )));
        }
        Ok(route.split_whitespace().filter(|word| !STATES.contains(word)).map(str::to_owned).collect())
    }
}

/// Removes a metric from a route's words; returns its value, or `none`.
fn take(words: &mut Vec<String>, metric: &str) -> String {
    let Some(at) = words.iter().position(|word| word == metric) else { return NONE.into() };
    let lock = words.get(at + 1).is_some_and(|word| word == "lock");
    let end = (at + 2 + usize::from(lock)).min(words.len());
    words.drain(at..end).skip(1).collect::<Vec<_>>().join(" ")
}

impl Control for Metric {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        Ok(take(&mut self.words(backend)?, self.metric))
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let mut words = self.words(backend)?;
        take(&mut words, self.metric);
        if value != NONE {
            words.push(self.metric.into());
            words.extend(value.split_whitespace().map(str::to_owned));
        }
        let mut command = vec![self.version(), "route", "change"];
        command.extend(words.iter().map(String::as_str));
        backend.run("ip", &command).map(|_| ())
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        let (fits, expected) = match self.metric {
            "congctl" => (is_name(value), "the name of a congestion control, or none"),
            "rto_min" => (is_time(value), "a time such as 5ms, or none"),
            _ => {
                let number = value.strip_prefix("lock ").unwrap_or(value);
                (whole(number).is_ok(), "a whole number (`lock N` is possible), or none")
            }
        };
        if fits || value == NONE { Ok(()) } else { Err(SettingValueError::Form { expected }) }
    }

    fn cuts(&self) -> bool {
        true
    }

    /// ip prints times in other units than they were given in.
    fn took(&self, requested: &str, now: &str) -> bool {
        self.same(requested, now) || (self.metric == "rto_min" && requested != NONE && now != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_taken_out_with_its_lock() {
        // iproute2 6.1.
        let route = "10.9.0.0/24 dev v0 proto kernel scope link src 10.9.0.1 mtu lock 1400 initcwnd 20 congctl reno";
        let mut words: Vec<String> = route.split(' ').map(str::to_owned).collect();
        assert_eq!(take(&mut words, "mtu"), "lock 1400");
        assert_eq!(take(&mut words, "initcwnd"), "20");
        assert_eq!(take(&mut words, "quickack"), "none");
        assert_eq!(words.join(" "), "10.9.0.0/24 dev v0 proto kernel scope link src 10.9.0.1 congctl reno");
    }

    #[test]
    fn destinations_are_networks() {
        assert!(Route.setting("route.10.0.0.0/24.initcwnd").is_some());
        assert!(Route.setting("route.fd00::/64.mtu").is_some());
        assert!(Route.setting("route.default.quickack").is_some());
        for wrong in [
            "route.eth0.mtu",
            "route.10.0.0.0/x.mtu",
            "route.10.0.0.0/33.mtu",
            "route.10.0.0.0/24/1.mtu",
            "route.10.0.0.0/24.metric",
            "route.10.0.0.1",
        ] {
            assert!(Route.setting(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_destination_has_one_form() {
        for (written, form) in [
            ("10.0.0.5/24", "10.0.0.0/24"),
            ("10.0.0.5/+24", ""),
            ("10.0.0.5/32", "10.0.0.5"),
            ("0.0.0.0/0", "default"),
            ("FD00:0::1/64", "fd00::/64"),
            ("::/0", "default6"),
            ("fd00::1/128", "fd00::1"),
        ] {
            assert_eq!(network(written).unwrap_or_default(), form, "{written}");
        }
    }

    #[test]
    fn values_are_one_word() {
        for good in ["5ms", "0.2s", "200", "300us"] {
            assert!(is_time(good), "{good}");
        }
        for bad in ["", "ms", "-5ms", "5 ms", "5ms scope global", "1.s", "1.2.3s", "5m"] {
            assert!(!is_time(bad), "{bad}");
        }
        assert!(is_name("bbr") && is_name("dctcp-reno"));
        assert!(!is_name("") && !is_name("-x") && !is_name("reno via") && !is_name("a/b"));
    }
}
