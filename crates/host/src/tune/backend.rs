//! The one interface for reading and writing settings; tests replace it by a fake host.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use super::ethtool::{self, DeviceNumber, Feature, Group};
use super::link;

/// What the kinds of settings need from a host. All of it happens in the network namespace of the calling thread.
pub trait Backend: Send + Sync {
    /// The trimmed text of a file.
    ///
    /// # Errors
    /// The kernel's error.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Writes a file of /proc or /sys with one call.
    ///
    /// # Errors
    /// The kernel's error.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;

    /// `length` bytes of a file of registers, from `offset` on.
    ///
    /// # Errors
    /// The kernel's error; `PermissionDenied` if the kernel shows only the bytes before them.
    fn read_bytes(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Writes bytes of a file of registers with one call.
    ///
    /// # Errors
    /// The kernel's error.
    fn write_bytes(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// The names in a directory, sorted; directories end with a slash.
    ///
    /// # Errors
    /// The kernel's error.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// The standard output of a program (tc, ip, modprobe).
    ///
    /// # Errors
    /// `NotFound` if there is no such program; else its standard error.
    fn run(&self, program: &str, words: &[&str]) -> io::Result<String>;

    /// The interfaces.
    ///
    /// # Errors
    /// The kernel's error.
    fn devices(&self) -> io::Result<Vec<String>>;

    /// Numbers of an interface by name (`mtu`, ...; `state` is 1 when it is up).
    ///
    /// # Errors
    /// The kernel's error.
    fn link(&self, device: &str) -> io::Result<BTreeMap<String, u32>>;

    /// Sets one of them.
    ///
    /// # Errors
    /// The kernel's error.
    fn set_link(&self, device: &str, field: &str, value: u32) -> io::Result<()>;

    /// Numbers that ethtool reads.
    ///
    /// # Errors
    /// The kernel's error; `Unsupported` if the device has none.
    fn counts(&self, device: &str, group: Group) -> io::Result<BTreeMap<String, DeviceNumber>>;

    /// Sets one of them; the device may round it.
    ///
    /// # Errors
    /// The kernel's error.
    fn set_count(&self, device: &str, group: Group, name: &str, value: u32) -> io::Result<()>;

    /// Offloads.
    ///
    /// # Errors
    /// The kernel's error.
    fn features(&self, device: &str) -> io::Result<Vec<Feature>>;

    /// Requests offloads to be on or off.
    ///
    /// # Errors
    /// The kernel's error; a feature that does not change is not an error.
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
        // A line end turns an empty value into a write.
        let line = format!("{text}\n");
        let count = rustix::io::write(&file, line.as_bytes())?;
        // Some files accept the value but not the line end.
        if count < text.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }

    fn read_bytes(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let found = std::fs::File::open(path)?.read_at(&mut bytes, offset)?;
        // Without CAP_SYS_ADMIN, configuration spaces end after their header (linux/drivers/pci/pci-sysfs.c).
        if found < length { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(bytes) }
    }

    fn write_bytes(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let written = std::fs::OpenOptions::new().write(true).open(path)?.write_at(bytes, offset)?;
        if written < bytes.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
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
                let package = if ["ip", "tc"].contains(&program) { "iproute2" } else { "kmod" };
                io::Error::new(
                    io::ErrorKind::Unsupported,
                    format!("there is no program '{program}': install {package}"),
                )
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

    fn counts(&self, device: &str, group: Group) -> io::Result<BTreeMap<String, DeviceNumber>> {
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
