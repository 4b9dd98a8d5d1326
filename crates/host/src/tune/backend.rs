//! The one interface through which settings are read and written; tests put a fake host behind it.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use super::ethtool::{self, Feature, Group, Value};
use super::link;

/// What the kinds of settings may ask of a host. All of it happens in the network namespace of the calling thread.
pub trait Backend: Send + Sync {
    /// The trimmed text of a file.
    ///
    /// # Errors
    /// What the kernel says.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Writes a file of /proc or /sys with one call.
    ///
    /// # Errors
    /// What the kernel says.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;

    /// The names in a directory, sorted; directories end with a slash.
    ///
    /// # Errors
    /// What the kernel says.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// The standard output of a program (tc, ip).
    ///
    /// # Errors
    /// `NotFound` where there is no such program; else what it printed on standard error.
    fn run(&self, program: &str, words: &[&str]) -> io::Result<String>;

    /// The interfaces.
    ///
    /// # Errors
    /// What the kernel says.
    fn devices(&self) -> io::Result<Vec<String>>;

    /// Numbers of an interface by name (`mtu`, ...; `state` is 1 when it is up).
    ///
    /// # Errors
    /// What the kernel says.
    fn link(&self, device: &str) -> io::Result<BTreeMap<String, u32>>;

    /// Sets one of them.
    ///
    /// # Errors
    /// What the kernel says.
    fn set_link(&self, device: &str, field: &str, value: u32) -> io::Result<()>;

    /// Numbers that ethtool shows.
    ///
    /// # Errors
    /// What the kernel says; `Unsupported` where the device has none.
    fn counts(&self, device: &str, group: Group) -> io::Result<BTreeMap<String, Value>>;

    /// Sets one of them; the device may round it.
    ///
    /// # Errors
    /// What the kernel says.
    fn set_count(&self, device: &str, group: Group, name: &str, value: u32) -> io::Result<()>;

    /// Offloads.
    ///
    /// # Errors
    /// What the kernel says.
    fn features(&self, device: &str) -> io::Result<Vec<Feature>>;

    /// Asks for offloads to be on or off.
    ///
    /// # Errors
    /// What the kernel says; a feature that stays as it is is no error.
    fn set_features(&self, device: &str, wanted: &[(String, bool)]) -> io::Result<()>;
}

/// This host.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealBackend;

impl Backend for RealBackend {
    fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(path)?).trim().to_owned())
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let file = std::fs::OpenOptions::new().write(true).open(path)?;
        // A line end makes an empty value a write at all.
        let line = format!("{text}\n");
        let count = rustix::io::write(&file, line.as_bytes())?;
        // Some files take the value and not the line end.
        if count < text.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names = std::fs::read_dir(directory)?
            .map(|entry| {
                let entry = entry?;
                let slash = if entry.path().is_dir() { "/" } else { "" };
                Ok(format!("{}{slash}", entry.file_name().to_string_lossy()))
            })
            .collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn run(&self, program: &str, words: &[&str]) -> io::Result<String> {
        let output = Command::new(program).args(words).env("LC_ALL", "C").stdin(Stdio::null()).output();
        let output = output.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(io::ErrorKind::Unsupported, format!("there is no program '{program}': install iproute2"))
            }
            _ => error,
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        let kind = if message.contains("not permitted") {
            io::ErrorKind::PermissionDenied
        } else if message.contains("Cannot find device") {
            io::ErrorKind::NotFound
        } else {
            io::ErrorKind::InvalidInput
        };
        Err(io::Error::new(kind, format!("{program}: {message}")))
    }

    fn devices(&self) -> io::Result<Vec<String>> {
        link::names()
    }

    fn link(&self, device: &str) -> io::Result<BTreeMap<String, u32>> {
        link::read(device)
    }

    fn set_link(&self, device: &str, field: &str, value: u32) -> io::Result<()> {
        link::write(device, field, value)
    }

    fn counts(&self, device: &str, group: Group) -> io::Result<BTreeMap<String, Value>> {
        ethtool::read(device, group)
    }

    fn set_count(&self, device: &str, group: Group, name: &str, value: u32) -> io::Result<()> {
        ethtool::write(device, group, name, value)
    }

    fn features(&self, device: &str) -> io::Result<Vec<Feature>> {
        ethtool::features(device)
    }

    fn set_features(&self, device: &str, wanted: &[(String, bool)]) -> io::Result<()> {
        ethtool::set_features(device, wanted)
    }
}
