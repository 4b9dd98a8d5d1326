//! Rings, interrupt moderation and queues of an interface: numbers of ethtool.

use std::io;

use super::{Control, Kind, Knob, of_device, whole};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;
use crate::tune::ethtool::Group;

/// `dev.NAME.ring.rx`, `dev.NAME.coalesce.rx-usecs`, `dev.NAME.queues.combined`.
pub(crate) struct Ethtool;

/// One number.
struct Number {
    device: String,
    group: Group,
    name: String,
}

impl Kind for Ethtool {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("dev.eth0.ring.rx", "descriptors of a ring (ethtool -g)"),
            ("dev.eth0.coalesce.rx-usecs", "interrupt moderation (ethtool -c)"),
            ("dev.eth0.queues.combined", "queues (ethtool -l)"),
        ]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        Group::ALL.into_iter().find_map(|(word, group)| {
            let (device, name) = of_device(key, word).filter(|(_, name)| group.has(name))?;
            Knob::new(key, Number { device: device.into(), group, name: name.into() })
        })
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let mut keys = Vec::new();
        for device in backend.devices().unwrap_or_default() {
            for (word, group) in Group::ALL {
                let names = backend.counts(&device, group).unwrap_or_default().into_keys();
                keys.extend(names.map(|name| format!("dev.{device}.{word}.{name}")));
            }
        }
        keys
    }
}

impl Control for Number {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        let value = backend.counts(&self.device, self.group)?.get(&self.name).copied();
        let value = value.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        Ok(match (Group::is_switch(&self.name), value.now) {
            (true, 0) => "off".into(),
            (true, _) => "on".into(),
            (false, now) => now.to_string(),
        })
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let number = match value {
            "on" => 1,
            "off" => 0,
            value => whole(value).map_err(io::Error::other)?,
        };
        let most = backend.counts(&self.device, self.group)?.get(&self.name).and_then(|value| value.most);
        if let Some(most) = most.filter(|most| number > *most) {
            return Err(io::Error::other(format!("the device's maximum is {most}")));
        }
        backend.set_count(&self.device, self.group, &self.name, number)
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        match (Group::is_switch(&self.name), value) {
            (true, "on" | "off") => Ok(()),
            (true, _) => Err(SettingValueError::Form { expected: "on or off" }),
            (false, value) => whole(value).map(|_| ()),
        }
    }

    fn took(&self, requested: &str, now: &str) -> bool {
        self.same(requested, now) || (self.group != Group::Queues && whole(now).is_ok())
    }

    /// Many NICs take their link down for a moment (or for good if the driver fails) when rings or queues are
    /// recreated.
    fn cuts(&self) -> bool {
        self.group != Group::Coalesce
    }
}
