//! Properties of an interface that are set by routing netlink.

use std::io;

use super::{Control, Kind, Knob, good_name, whole};
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
