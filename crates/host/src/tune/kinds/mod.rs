//! The kinds of settings, one file each, and their registry.

mod address;
mod congestion;
mod cores;
mod device;
mod ethtool;
mod module;
mod offload;
mod pci;
mod qdisc;
mod route;
mod sysctl;

use std::io;

use super::backend::Backend;
use super::error::{SettingValueError, TuneError};
use super::fits;

/// A kind of setting.
pub(crate) trait Kind: Sync {
    /// The form of its keys and a short description, for display.
    fn forms(&self) -> &'static [(&'static str, &'static str)];

    /// The setting that a key names; `None` if it is not of this kind. Whether the host has it shows when it is read.
    fn setting(&self, key: &str) -> Option<Knob>;

    /// The keys of this kind on this host.
    fn keys(&self, backend: &dyn Backend) -> Vec<String>;
}

/// The operations on one setting.
pub(crate) trait Control: Send + Sync {
    /// Its current value, in a form that can be written again.
    fn read(&self, backend: &dyn Backend) -> io::Result<String>;

    /// Sets it.
    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()>;

    /// What is wrong with a value, as far as that is known without trying.
    fn check(&self, _value: &str) -> Result<(), SettingValueError> {
        Ok(())
    }

    /// Whether two values are equal: the kernel writes other separators than people do.
    fn same(&self, one: &str, other: &str) -> bool {
        one.split_whitespace().eq(other.split_whitespace())
    }

    /// Whether a value that was read back can result from the requested one: devices round.
    fn took(&self, requested: &str, now: &str) -> bool {
        self.same(requested, now)
    }

    /// Whether it affects more than its network namespace.
    fn host_wide(&self) -> bool {
        false
    }

    /// Whether changing it could cut the connection that carries the request.
    fn cuts(&self) -> bool {
        false
    }
}

/// A setting that a key names.
pub(crate) struct Knob {
    /// The key in canonical form, as the journal records it.
    pub(crate) key: String,
    /// What no other process may set at the same time: the key, or the object that other keys also lead to (`*`: all
    /// of its kind).
    leases: Vec<String>,
    pub(crate) control: Box<dyn Control>,
}

impl Knob {
    fn new(key: impl Into<String>, control: impl Control + 'static) -> Option<Self> {
        let key = key.into();
        Some(Self { leases: vec![key.clone()], key, control: Box::new(control) })
    }

    fn leasing(self, leases: Vec<String>) -> Self {
        Self { leases, ..self }
    }

    /// Whether both lead to the same file or feature.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let meet = |one: &String, other: &String| fits(one, other) || fits(other, one);
        self.leases.iter().any(|one| other.leases.iter().any(|other| meet(one, other)))
    }

    pub(crate) fn read(&self, backend: &dyn Backend) -> Result<String, TuneError> {
        self.control.read(backend).map_err(|source| {
            if is_absent(&source) {
                return TuneError::Unknown { key: self.key.clone(), hint: near(backend, &self.key) };
            }
            TuneError::host("read", &self.key, self.control.host_wide(), source)
        })
    }

    pub(crate) fn check(&self, value: &str) -> Result<(), TuneError> {
        let wrong = |reason| TuneError::Value { key: self.key.clone(), value: value.into(), reason };
        if value.chars().any(|letter| letter.is_control() && letter != '\t') {
            return Err(wrong(SettingValueError::Control));
        }
        self.control.check(value).map_err(wrong)
    }

    pub(crate) fn write(&self, backend: &dyn Backend, value: &str, what: &'static str) -> Result<(), TuneError> {
        self.control.write(backend, value).map_err(|source| match source.raw_os_error() {
            Some(libc::EINVAL | libc::ERANGE) if what == "set" => {
                TuneError::Value { key: self.key.clone(), value: value.into(), reason: SettingValueError::Rejected }
            }
            _ => TuneError::host(what, &self.key, self.control.host_wide(), source),
        })
    }
}

/// Whether an error means that the object does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

/// Every kind. The first that recognises a key gets it.
pub(crate) const KINDS: [&dyn Kind; 11] = [
    &sysctl::Sysctl,
    &ethtool::Ethtool,
    &offload::Offload,
    &cores::Cores,
    &address::Address,
    &device::Device,
    &qdisc::Qdisc,
    &congestion::Congestion,
    &route::Route,
    &module::Module,
    &pci::Pci,
];

/// The setting that a key names.
pub(crate) fn knob(backend: &dyn Backend, key: &str) -> Result<Knob, TuneError> {
    let plain = !key.contains("..") && !key.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    KINDS
        .iter()
        .filter(|_| plain)
        .find_map(|kind| kind.setting(key))
        .ok_or_else(|| TuneError::Unknown { key: key.into(), hint: near(backend, key) })
}

/// Existing keys of this host that are similar to a missing one.
fn near(backend: &dyn Backend, key: &str) -> String {
    let mut close: Vec<(usize, String)> = KINDS
        .iter()
        .flat_map(|kind| kind.keys(backend))
        .map(|known| (strsim::damerau_levenshtein(key, &known), known))
        .filter(|(distance, _)| *distance <= 2 + key.len() / 6)
        .collect();
    close.sort();
    let close: Vec<String> = close.into_iter().take(3).map(|(_, known)| known).collect();
    if !close.is_empty() {
        return format!("did you mean {}?", close.join(" or "));
    }
    let forms: Vec<&str> = KINDS.iter().flat_map(|kind| kind.forms()).map(|(form, _)| *form).collect();
    format!("keys look like {}; `thru tune show` lists those of this host", forms.join(", "))
}

/// The parts of `dev.NAME.REST`, if REST begins with one of `groups`: a name may contain dots itself.
fn of_device<'a>(key: &'a str, group: &str) -> Option<(&'a str, &'a str)> {
    let (device, property) = key.strip_prefix("dev.")?.rsplit_once(&format!(".{group}."))?;
    (good_name(device) && !property.is_empty()).then_some((device, property))
}

/// Whether an interface can have this name (linux/net/core/dev.c, dev_valid_name).
fn good_name(device: &str) -> bool {
    !device.is_empty()
        && device.len() < 16
        && device != "."
        && device != ".."
        && !device.contains(['/', ':'])
        && !device.starts_with('-')
}

/// A whole number, for values that are one.
fn whole(value: &str) -> Result<u32, SettingValueError> {
    let value = value.trim();
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| digits).ok_or(SettingValueError::Form { expected: "a whole number" })
}
