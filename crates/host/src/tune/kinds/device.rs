//! Properties of an interface that are set by routing netlink.

use std::io;

use super::{Control, Kind, Knob, address, good_name, whole};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;
use crate::tune::link::{FIELDS, INDEX, STATE};

/// `dev.NAME.PROPERTY`.
pub(crate) struct Device;

/// One property of an interface.
struct Property {
    device: String,
    field: String,
}

impl Kind for Device {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("dev.eth0.mtu", "the MTU of an interface (also txqueuelen)"),
            ("dev.eth0.state", "up or down"),
            ("dev.eth0.gso_max_size", "the largest segment within the host (also gro_, gso_ipv4_, gro_ipv4_: BIG TCP)"),
        ]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let (device, field) = key.strip_prefix("dev.")?.rsplit_once('.')?;
        let known = field == STATE || FIELDS.iter().any(|(name, _)| *name == field);
        if !known || !good_name(device) {
            return None;
        }
        Knob::new(key, Property { device: device.into(), field: field.into() })
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let devices = backend.devices().unwrap_or_default();
        let of = |device: &String| {
            let fields = backend.link(device).unwrap_or_default().into_keys();
            fields.filter(|field| *field != INDEX).map(|field| format!("dev.{device}.{field}")).collect::<Vec<_>>()
        };
        devices.iter().flat_map(of).collect()
    }
}

impl Control for Property {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        let value = backend.link(&self.device)?.get(&self.field).copied();
        let value = value.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        Ok(match (self.field.as_str(), value) {
            (STATE, 0) => "down".into(),
            (STATE, _) => "up".into(),
            (_, value) => value.to_string(),
        })
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let number = match (self.field.as_str(), value) {
            (STATE, value) => u32::from(value == "up"),
            (_, value) => whole(value).map_err(io::Error::other)?,
        };
        backend.set_link(&self.device, &self.field, number)
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        match (self.field.as_str(), value) {
            (STATE, "up" | "down") => Ok(()),
            (STATE, _) => Err(SettingValueError::Form { expected: "up or down" }),
            (_, value) => whole(value).map(|_| ()),
        }
    }

    fn cuts(&self) -> bool {
        self.field == "mtu" || self.field == STATE
    }
}

/// What an interface loses with its driver.
pub(super) struct Kept {
    name: String,
    values: Vec<(Knob, String)>,
}

impl Kept {
    /// What it has now; `None` if it is not in this network namespace.
    pub(super) fn of(backend: &dyn Backend, name: &str) -> Option<Self> {
        backend.link(name).ok()?;
        // IPv6 addresses disappear when a link goes down, so they are the last.
        let keys = ["mtu", "txqueuelen", STATE, "address"].map(|field| format!("dev.{name}.{field}"));
        let knobs = keys.iter().filter_map(|key| address::Address.setting(key).or_else(|| Device.setting(key)));
        let values = knobs.filter_map(|knob| Some((knob.control.read(backend).ok()?, knob)));
        Some(Self { name: name.into(), values: values.map(|(value, knob)| (knob, value)).collect() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Gives it what it had.
    pub(super) fn restore(&self, backend: &dyn Backend) -> io::Result<()> {
        self.values.iter().try_for_each(|(knob, value)| {
            let now = knob.control.read(backend)?;
            if knob.control.same(&now, value) { Ok(()) } else { knob.control.write(backend, value) }
        })
    }
}
