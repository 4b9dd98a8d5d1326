//! Modules of the kernel: loaded or not, with which parameters, and the parameters of those that are loaded.
//!
//! The state is read from /sys/module (Documentation/ABI/testing/sysfs-module); kmod's programs change it, so that a module's
//! dependencies are loaded and the parameters in /etc/modprobe.d count.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::{Control, Kind, Knob, device, is_absent};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;

/// `module.NAME`, `module.NAME.PARAMETER`.
pub(crate) struct Module;

const MODULES: &str = "/sys/module/";
/// The two words that begin the value of a module.
const LOADED: &str = "loaded";
const UNLOADED: &str = "unloaded";
/// How a string parameter without a value is displayed.
const NULL: &str = "(null)";

/// How often a reloaded driver is looked at, and how many times, until its interfaces are back.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: usize = 100;

/// Whether a text can be the name of a module or of a parameter.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

impl Kind for Module {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("module.e1000", "a module of the kernel: unloaded, loaded, or loaded PARAMETER=VALUE..."),
            ("module.e1000.debug", "a parameter of a loaded module (/sys/module/e1000/parameters)"),
        ]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        // A name has two spellings (modprobe(8)); /sys has the one with underscores.
        let rest = key.strip_prefix("module.")?;
        let (name, parameter) = rest.split_once('.').map_or((rest, None), |(name, rest)| (name, Some(rest)));
        let name = name.replace('-', "_");
        match parameter.filter(|_| plain(&name)) {
            Some(parameter) if plain(parameter) => {
                self::parameter(format!("module.{name}.{parameter}"), &name, parameter)
            }
            None if plain(&name) => {
                // Loading a module sets all of its parameters.
                let leases = vec![format!("module.{name}"), format!("module.{name}.*")];
                Some(Knob::new(format!("module.{name}"), State { name })?.leasing(leases))
            }
            _ => None,
        }
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let mut keys = Vec::new();
        for entry in backend.list(MODULES).unwrap_or_default() {
            let name = entry.trim_end_matches('/');
            if backend.read(&initial_state(name)).is_ok() {
                keys.push(format!("module.{name}"));
            }
            let parameters = backend.list(&parameters(name)).unwrap_or_default();
            keys.extend(parameters.into_iter().map(|parameter| format!("module.{name}.{parameter}")));
        }
        keys
    }
}

/// The setting `key` of a parameter of a loaded module.
pub(super) fn parameter(key: String, module: &str, parameter: &str) -> Option<Knob> {
    let lease = format!("module.{module}.{parameter}");
    let control = Parameter { path: format!("{}{parameter}", parameters(module)), module: module.into() };
    Some(Knob::new(key, control)?.leasing(vec![lease]))
}

/// The folder of the parameters that can be read.
fn parameters(module: &str) -> String {
    format!("{MODULES}{module}/parameters/")
}

/// A file that modules have, but not what is built into the kernel.
fn initial_state(module: &str) -> String {
    format!("{MODULES}{module}/initstate")
}

/// Whether two values of a parameter are equal: a switch is written as 1 or Y and read as Y.
fn equal(one: &str, other: &str) -> bool {
    let plain = |text: &str| match text.trim() {
        "Y" | "y" => "1".to_owned(),
        "N" | "n" => "0".to_owned(),
        text => text.to_owned(),
    };
    plain(one) == plain(other)
}

/// A parameter of a loaded module.
struct Parameter {
    path: String,
    module: String,
}

impl Control for Parameter {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        backend.read(&self.path)
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        backend.write(&self.path, value).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => io::Error::other(format!(
                "it is fixed when the module is loaded: set module.{}='loaded PARAMETER=VALUE' instead",
                self.module
            )),
            _ => error,
        })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        equal(one, other)
    }

    fn host_wide(&self) -> bool {
        true
    }
}

/// A module, which is loaded with its parameters or not.
struct State {
    name: String,
}

/// The parameters of a value that begins with `loaded`; `None` for `unloaded`.
type Loaded<'a> = Option<BTreeMap<&'a str, &'a str>>;

/// A value in its parts.
fn parts(value: &str) -> Option<Loaded<'_>> {
    let mut words = value.split_whitespace();
    match words.next()? {
        UNLOADED => words.next().is_none().then_some(None),
        LOADED => {
            let pair = |word: &'_ str| word.split_once('=').filter(|(name, _)| plain(name)).is_some();
            let all: Vec<&str> = words.collect();
            all.iter()
                .all(|word| pair(word))
                .then(|| Some(all.into_iter().filter_map(|word| word.split_once('=')).collect()))
        }
        _ => None,
    }
}

impl State {
    /// Why the host cannot load it, if it is not loaded.
    fn is_known(&self, backend: &dyn Backend) -> io::Result<()> {
        if !backend.list(&format!("{MODULES}{}", self.name)).unwrap_or_default().is_empty() {
            return Err(io::Error::other("it is built into the kernel, so it is neither loaded nor unloaded"));
        }
        match backend.run("modinfo", &["-F", "filename", &self.name]) {
            Ok(file) if !file.trim().is_empty() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(error),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Refuses parameters that the module does not have: the kernel loads it and ignores them. `shown` are those in /sys.
    fn has(
        &self,
        backend: &dyn Backend,
        wanted: &BTreeMap<&str, &str>,
        shown: &BTreeMap<&str, &str>,
    ) -> io::Result<()> {
        let mut missing: Vec<&str> = wanted.keys().copied().filter(|name| !shown.contains_key(name)).collect();
        let mut known: BTreeSet<String> = BTreeSet::new();
        // `debug:Debug level (0=none,...,16=all)`, `debug:int`: each may be there alone.
        for field in ["parm", "parmtype"].into_iter().filter(|_| !missing.is_empty()) {
            let listed = backend.run("modinfo", &["-F", field, &self.name])?;
            known.extend(listed.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())));
        }
        missing.retain(|name| !known.contains(*name));
        let Some(name) = missing.first() else { return Ok(()) };
        let others: Vec<String> = known.into_iter().collect();
        let others = if others.is_empty() { String::new() } else { format!("; it has {}", others.join(", ")) };
        Err(io::Error::other(format!("{} has no parameter {name}{others}", self.name)))
    }

    fn load(&self, backend: &dyn Backend, wanted: &BTreeMap<&str, &str>) -> io::Result<()> {
        let pairs: Vec<String> = wanted.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let words = [&[self.name.as_str()], pairs.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat();
        backend.run("modprobe", &words).map(drop)
    }

    /// The interfaces that the module drives: those of the devices of its drivers.
    fn interfaces(&self, backend: &dyn Backend) -> Vec<String> {
        let below = |folder: String| -> Vec<String> {
            let entries = backend.list(&folder).unwrap_or_default().into_iter();
            entries.filter(|entry| entry.ends_with('/')).map(|entry| format!("{folder}{entry}")).collect()
        };
        let drivers = format!("{MODULES}{}/drivers/", self.name);
        let devices = below(drivers).into_iter().flat_map(below);
        let mut names: Vec<String> = devices
            .flat_map(|device| backend.list(&format!("{device}net/")).unwrap_or_default())
            .map(|name| name.trim_end_matches('/').to_owned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Unloads and loads it. Its interfaces get their state, MTU, queue length and addresses again.
    fn reload(&self, backend: &dyn Backend, wanted: &BTreeMap<&str, &str>) -> io::Result<()> {
        let before = self.read(backend)?;
        let kept: Vec<device::Kept> =
            self.interfaces(backend).iter().filter_map(|name| device::Kept::of(backend, name)).collect();
        backend.run("rmmod", &[&self.name])?;
        let loaded = self.load(backend, wanted);
        if loaded.is_err() {
            // Better with its old parameters than without the module.
            let old = parts(&before).flatten().unwrap_or_default();
            self.load(backend, &old).or_else(|_| self.load(backend, &BTreeMap::new()))?;
        }
        for interface in &kept {
            for _ in 0..LOOKS {
                if backend.link(interface.name()).is_ok() {
                    break;
                }
                std::thread::sleep(LOOK);
            }
            let lost = |error| io::Error::other(format!("{} is not what it was before: {error}", interface.name()));
            interface.restore(backend).map_err(lost)?;
        }
        loaded
    }
}

impl Control for State {
    /// Parameters that cannot be read, and those whose values are no single word, are left out.
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        match backend.read(&initial_state(&self.name)) {
            Err(error) if is_absent(&error) => {
                self.is_known(backend)?;
                return Ok(UNLOADED.to_owned());
            }
            other => other?,
        };
        let folder = parameters(&self.name);
        let mut value = LOADED.to_owned();
        for name in backend.list(&folder).unwrap_or_default() {
            let Ok(text) = backend.read(&format!("{folder}{name}")) else { continue };
            if plain(&name) && !text.is_empty() && text != NULL && !text.contains(char::is_whitespace) {
                value += &format!(" {name}={text}");
            }
        }
        Ok(value)
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let now = self.read(backend)?;
        match (parts(&now).flatten(), parts(value).flatten()) {
            (None, None) => Ok(()),
            (None, Some(wanted)) => {
                self.has(backend, &wanted, &BTreeMap::new()).and_then(|()| self.load(backend, &wanted))
            }
            (Some(_), None) => {
                // They would be lost: nothing but this command knows how they were set up.
                let up = |name: &String| backend.link(name).is_ok_and(|link| link.get("state") == Some(&1));
                if let Some(name) = self.interfaces(backend).iter().find(|name| up(name)) {
                    return Err(io::Error::other(format!(
                        "it drives {name}, which is up: set dev.{name}.address=none and dev.{name}.state=down before it"
                    )));
                }
                backend.run("rmmod", &[&self.name]).map(drop)
            }
            (Some(now), Some(wanted)) => {
                self.has(backend, &wanted, &now)?;
                // One that cannot be read may have another value.
                let is_set = |(name, value): (&&str, &&str)| now.get(name).is_some_and(|now| equal(value, now));
                if wanted.iter().all(is_set) { Ok(()) } else { self.reload(backend, &wanted) }
            }
        }
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        parts(value)
            .map(drop)
            .ok_or(SettingValueError::Form { expected: "unloaded, loaded, or loaded PARAMETER=VALUE ..." })
    }

    fn same(&self, one: &str, other: &str) -> bool {
        match (parts(one), parts(other)) {
            (Some(Some(one)), Some(Some(other))) => {
                one.len() == other.len()
                    && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| equal(value, other)))
            }
            (Some(None), Some(None)) => true,
            _ => false,
        }
    }

    /// What was asked for must be there; a parameter that cannot be read counts as taken.
    fn took(&self, requested: &str, now: &str) -> bool {
        match (parts(requested).flatten(), parts(now).flatten()) {
            (Some(wanted), Some(now)) => {
                wanted.iter().all(|(name, value)| now.get(name).is_none_or(|now| equal(value, now)))
            }
            (wanted, now) => wanted.is_none() && now.is_none(),
        }
    }

    fn host_wide(&self) -> bool {
        true
    }

    fn cuts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_a_state_and_parameters() {
        let state = State { name: "tg3".into() };
        for good in ["loaded", "unloaded", "loaded tg3_debug=3 x=1,2"] {
            assert_eq!(state.check(good), Ok(()), "{good}");
        }
        for bad in ["", "up", "unloaded x=1", "loaded x", "loaded -f=1", "loaded a.b=1"] {
            assert!(state.check(bad).is_err(), "{bad}");
        }
        assert!(state.same("loaded a=Y b=2", "loaded b=2 a=1") && !state.same("loaded", "loaded a=1"));
        assert!(state.took("loaded a=1", "loaded a=Y b=2") && state.took("loaded hidden=1", "loaded a=1"));
        assert!(!state.took("loaded a=1", "loaded a=2") && !state.took("loaded", "unloaded"));
        assert!(state.took("unloaded", "unloaded") && !state.took("unloaded", "loaded"));
    }
}
