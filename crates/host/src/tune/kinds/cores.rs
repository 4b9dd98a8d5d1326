//! Which cores do the host's work, and how fast: governor, IRQ affinity, RPS.

use std::collections::BTreeSet;
use std::io;

use super::{Control, Kind, Knob, of_device, whole};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;
use crate::tune::link::INDEX;

/// `cpu.governor`, `irq.N.affinity`, `dev.NAME.rps.rx-N`.
pub(crate) struct Cores;

const CPUS: &str = "/sys/devices/system/cpu/";
const IRQS: &str = "/proc/irq/";

impl Kind for Cores {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cpu.governor", "the frequency governor of all cores"),
            ("irq.24.affinity", "the cores that serve an interrupt, as a list"),
            ("dev.eth0.rps.rx-0", "the cores that process a receive queue (RPS), as a hex mask"),
        ]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        if key == "cpu.governor" {
            return Knob::new(key, Governor);
        }
        if let Some(number) = key.strip_prefix("irq.").and_then(|rest| rest.strip_suffix(".affinity")) {
            let number: u32 = number.parse().ok()?;
            return Knob::new(
                format!("irq.{number}.affinity"),
                Irq { path: format!("{IRQS}{number}/smp_affinity_list") },
            );
        }
        let (device, queue) = of_device(key, "rps")?;
        let number: u32 = queue.strip_prefix("rx-")?.parse().ok()?;
        let queue = format!("rx-{number}");
        Knob::new(format!("dev.{device}.rps.{queue}"), Rps { device: device.into(), queue })
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let mut keys = Vec::new();
        if !governors(backend).unwrap_or_default().is_empty() {
            keys.push("cpu.governor".to_owned());
        }
        let irqs = backend.list(IRQS).unwrap_or_default();
        let numbers = irqs.iter().filter_map(|name| name.strip_suffix('/')).filter(|name| name.parse::<u32>().is_ok());
        keys.extend(numbers.map(|number| format!("irq.{number}.affinity")));
        for device in backend.devices().unwrap_or_default() {
            let queues = backend.list(&format!("/sys/class/net/{device}/queues")).unwrap_or_default();
            let receiving =
                queues.iter().filter_map(|name| name.strip_suffix('/')).filter(|name| name.starts_with("rx-"));
            keys.extend(receiving.map(|queue| format!("dev.{device}.rps.{queue}")));
        }
        keys
    }
}

/// The frequency governor of all cores.
struct Governor;

/// Each core's governor, by its directory.
fn governors(backend: &dyn Backend) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for name in backend.list(CPUS)? {
        let Some(number) = name.strip_suffix('/').and_then(|name| name.strip_prefix("cpu")) else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        if let Ok(governor) = backend.read(&format!("{CPUS}cpu{number}/cpufreq/scaling_governor")) {
            found.push((number.to_owned(), governor));
        }
    }
    found.sort_by_key(|(number, _)| number.parse::<u32>().unwrap_or(u32::MAX));
    Ok(found)
}

impl Control for Governor {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        let all = governors(backend)?;
        match all.as_slice() {
            [] => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            [(_, first), rest @ ..] if rest.iter().all(|(_, governor)| governor == first) => Ok(first.clone()),
            _ => Ok(all.iter().map(|(core, governor)| format!("{core}:{governor}")).collect::<Vec<_>>().join(" ")),
        }
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let cores: Vec<(String, String)> = if value.contains(':') {
            let split =
                |part: &str| part.split_once(':').map(|(core, governor)| (core.to_owned(), governor.to_owned()));
            value.split_whitespace().filter_map(split).collect()
        } else {
            governors(backend)?.into_iter().map(|(core, _)| (core, value.to_owned())).collect()
        };
        cores.iter().try_for_each(|(core, governor)| {
            whole(core).map_err(io::Error::other)?;
            backend.write(&format!("{CPUS}cpu{core}/cpufreq/scaling_governor"), governor)
        })
    }

    fn host_wide(&self) -> bool {
        true
    }
}

/// The cores that serve an interrupt.
struct Irq {
    path: String,
}

/// The cores of a list such as `0-2,7`.
fn list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cores = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > 65_535 {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

impl Control for Irq {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        backend.read(&self.path)
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        backend.write(&self.path, value)
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        list(value).map(drop).ok_or(SettingValueError::Form { expected: "cores as 2, 0-3 or 0-1,4" })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        list(one) == list(other)
    }

    fn host_wide(&self) -> bool {
        true
    }
}

/// The cores that process a receive queue.
struct Rps {
    device: String,
    queue: String,
}

impl Rps {
    /// The file, if /sys shows the interface of this network namespace and not that of another with the same name.
    fn path(&self, backend: &dyn Backend) -> io::Result<String> {
        let shown = backend.read(&format!("/sys/class/net/{}/ifindex", self.device));
        let own = backend.link(&self.device)?.get(INDEX).map(ToString::to_string);
        if shown.ok() != own {
            return Err(io::Error::other(
                "/sys shows another network namespace: start thru with `ip netns exec`, which mounts the right one",
            ));
        }
        Ok(format!("/sys/class/net/{}/queues/{}/rps_cpus", self.device, self.queue))
    }
}

/// A mask in hex without commas and leading zeros.
fn mask(text: &str) -> Option<String> {
    let digits: String = text.trim().trim_start_matches("0x").chars().filter(|letter| *letter != ',').collect();
    let good = !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_hexdigit());
    good.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
}

impl Control for Rps {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        backend.read(&self.path(backend)?)
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        backend.write(&self.path(backend)?, value)
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        mask(value).map(drop).ok_or(SettingValueError::Form { expected: "a mask of cores in hex, such as f" })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        mask(one) == mask(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_have_many_forms() {
        assert_eq!(list("0-2,7"), list("0,1,2,7"));
        assert_eq!(list("3-1"), None);
        assert_eq!(list(""), None);
        assert_eq!(mask("00000000,0000000F"), mask("f"));
        assert_eq!(mask("0"), mask("00"));
        assert_eq!(mask("g"), None);
    }
}
