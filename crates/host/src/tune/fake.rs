//! A host made of tables, for tests: it has what the devices of this machine lack.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::backend::Backend;
use super::ethtool::{DeviceNumber, Feature, Group};

/// The state of the host.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) files: BTreeMap<String, String>,
    /// Files of registers.
    pub(crate) registers: BTreeMap<String, Vec<u8>>,
    /// Modules that can be loaded, and their parameters with the values that they have then.
    pub(crate) modules: BTreeMap<String, BTreeMap<String, String>>,
    /// Numbers of interfaces, by (interface, name).
    pub(crate) links: BTreeMap<(String, String), u32>,
    /// Numbers of ethtool, by (interface, group, name).
    pub(crate) counts: BTreeMap<(String, Group, String), DeviceNumber>,
    pub(crate) features: BTreeMap<String, Vec<Feature>>,
    /// The output of programs, by their command line.
    pub(crate) answers: BTreeMap<String, String>,
    /// Command lines without a defined output.
    pub(crate) ran: Vec<String>,
    /// Every write that was made, in order.
    pub(crate) writes: Vec<String>,
    /// Ring sizes are multiples of this.
    pub(crate) ring_step: u32,
}

/// The fake host.
#[derive(Debug, Default)]
pub(crate) struct FakeBackend(Mutex<Tables>);

impl FakeBackend {
    pub(crate) fn new(tables: Tables) -> Self {
        Self(Mutex::new(tables))
    }

    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Tables {
    /// kmod's programs; `None` for another one.
    fn kmod(&mut self, program: &str, words: &[&str]) -> Option<io::Result<String>> {
        let name = *words.iter().find(|word| self.modules.contains_key(**word))?;
        let own = self.modules[name].clone();
        let folder = format!("/sys/module/{name}/");
        Some(Ok(match program {
            "modinfo" if words.contains(&"parmtype") => own.keys().map(|name| format!("{name}:int\n")).collect(),
            "modinfo" if words.contains(&"parm") => String::new(),
            "modinfo" => format!("/lib/modules/{name}.ko\n"),
            "rmmod" => {
                self.writes.push(format!("rmmod {name}"));
                self.files.retain(|path, _| !path.starts_with(&folder));
                self.links.retain(|(device, _), _| !device.ends_with(name));
                String::new()
            }
            "modprobe" => {
                self.writes.push(format!("modprobe {}", words.join(" ")));
                let given = words.iter().filter_map(|word| word.split_once('='));
                if given.clone().any(|(_, value)| value == "broken") {
                    return Some(Err(io::Error::new(io::ErrorKind::InvalidInput, "modprobe: Invalid argument")));
                }
                let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
                self.files.insert(format!("{folder}initstate"), "live".into());
                let all = own.into_iter().chain(given);
                self.files.extend(all.map(|(name, value)| (format!("{folder}parameters/{name}"), value)));
                // Its interface is there again, without what it was set to.
                let device = format!("adapter-{name}");
                self.files.insert(format!("{folder}drivers/pci:{name}/0000:3b:00.0/net/{device}/mtu"), "1500".into());
                let new = [("mtu", 1500), ("txqueuelen", 1000), ("state", 0)];
                self.links.extend(new.map(|(field, value)| ((device.clone(), field.to_owned()), value)));
                String::new()
            }
            _ => return None,
        }))
    }
}

impl Backend for FakeBackend {
    fn read(&self, path: &str) -> io::Result<String> {
        self.tables().files.get(path).cloned().ok_or_else(missing)
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut tables = self.tables();
        tables.writes.push(format!("{path}={text}"));
        *tables.files.get_mut(path).ok_or_else(missing)? = text.to_owned();
        Ok(())
    }

    fn read_bytes(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let tables = self.tables();
        let all = tables.registers.get(path).ok_or_else(missing)?;
        let found = all.get(offset as usize..offset as usize + length);
        found.map(<[u8]>::to_vec).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    fn write_bytes(&self, path: &str, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut tables = self.tables();
        tables.writes.push(format!("{path}+{offset:x}={bytes:x?}"));
        let all = tables.registers.get_mut(path).ok_or_else(missing)?;
        all[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let directory = format!("{}/", directory.trim_end_matches('/'));
        let tables = self.tables();
        let files = tables.files.keys().chain(tables.registers.keys());
        let inside = files.filter_map(|path| path.strip_prefix(&directory));
        let mut names: Vec<String> = inside
            .map(|rest| rest.split_once('/').map_or_else(|| rest.to_owned(), |(first, _)| format!("{first}/")))
            .collect();
        names.dedup();
        Ok(names)
    }

    fn run(&self, program: &str, words: &[&str]) -> io::Result<String> {
        let line = format!("{program} {}", words.join(" "));
        let mut tables = self.tables();
        if let Some(answer) = tables.answers.get(&line) {
            return Ok(answer.clone());
        }
        if let Some(answer) = tables.kmod(program, words) {
            return answer;
        }
        tables.ran.push(line);
        Ok(String::new())
    }

    fn devices(&self) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = self.tables().links.keys().map(|(device, _)| device.clone()).collect();
        names.dedup();
        Ok(names)
    }

    fn link(&self, device: &str) -> io::Result<BTreeMap<String, u32>> {
        let tables = self.tables();
        let of = tables.links.iter().filter(|((name, _), _)| name == device);
        let found: BTreeMap<String, u32> = of.map(|((_, field), value)| (field.clone(), *value)).collect();
        if found.is_empty() { Err(missing()) } else { Ok(found) }
    }

    fn set_link(&self, device: &str, field: &str, value: u32) -> io::Result<()> {
        let mut tables = self.tables();
        tables.writes.push(format!("{device}.{field}={value}"));
        *tables.links.get_mut(&(device.into(), field.into())).ok_or_else(missing)? = value;
        Ok(())
    }

    fn counts(&self, device: &str, group: Group) -> io::Result<BTreeMap<String, DeviceNumber>> {
        let tables = self.tables();
        let of = tables.counts.iter().filter(|((name, of, _), _)| name == device && *of == group);
        Ok(of.map(|((_, _, name), value)| (name.clone(), *value)).collect())
    }

    fn set_count(&self, device: &str, group: Group, name: &str, value: u32) -> io::Result<()> {
        let mut tables = self.tables();
        let value = if group == Group::Ring { value.next_multiple_of(tables.ring_step.max(1)) } else { value };
        tables.writes.push(format!("{device}.{group:?}.{name}={value}"));
        tables.counts.get_mut(&(device.into(), group, name.into())).ok_or_else(missing)?.now = value;
        Ok(())
    }

    fn features(&self, device: &str) -> io::Result<Vec<Feature>> {
        self.tables().features.get(device).cloned().ok_or_else(missing)
    }

    fn set_features(&self, device: &str, wanted: &[(String, bool)]) -> io::Result<()> {
        let mut tables = self.tables();
        let features = tables.features.get_mut(device).ok_or_else(missing)?;
        for (name, on) in wanted {
            for feature in features.iter_mut().filter(|feature| feature.name == *name && feature.changeable) {
                (feature.active, feature.wanted) = (*on, *on);
            }
        }
        Ok(())
    }
}
