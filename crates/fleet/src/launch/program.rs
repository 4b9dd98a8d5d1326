//! The files of this program that a launcher may start on a host.

use command::{Failure, setup};
use std::fs;
use std::path::{Path, PathBuf};
use text::say;

/// A build without shared libraries, where releases keep it: beside the program. It also runs where the C library is older or another.
const STATIC: &str = "thru-static";

/// A file that hosts of its machine may run.
#[derive(Debug)]
pub(super) struct Program {
    /// As `uname -m` prints it.
    pub(super) machine: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// The files to copy, in the order in which a host tries them: those that the user names; otherwise this program's own file, and
/// the static build where there is one.
pub(super) fn to_copy(named: &[PathBuf]) -> Result<Vec<Program>, Failure> {
    if !named.is_empty() {
        return named.iter().map(|file| read(file)).collect();
    }
    let own = setup::own_program()?;
    let without_libraries = own.with_file_name(STATIC);
    let mut programs = vec![read(&own)?];
    if without_libraries.is_file() {
        programs.push(read(&without_libraries)?);
    }
    Ok(programs)
}

/// The one file that all hosts share: that of the user, or this program's own.
pub(super) fn shared(named: &[PathBuf]) -> Result<PathBuf, Failure> {
    match named {
        [] => setup::own_program(),
        [file] => Ok(file.clone()),
        _ => Err(Failure::usage(say!("with this launcher, all hosts share one file: give `--program` once"))),
    }
}

fn read(file: &Path) -> Result<Program, Failure> {
    let bytes = fs::read(file)
        .map_err(|error| Failure::usage(format!("cannot read the program {}: {error}", file.display())))?;
    let machine = machine(&bytes)
        .ok_or_else(|| Failure::usage(format!("{} is not a Linux program: give a build of thru", file.display())))?;
    Ok(Program { machine, bytes })
}

/// The machine of a program in ELF (elf(5), `e_machine`), as `uname -m` names it; `None` for another file.
fn machine(program: &[u8]) -> Option<&'static str> {
    let [0x7f, b'E', b'L', b'F', _, order, ..] = program else { return None };
    let number: [u8; 2] = program.get(18..20)?.try_into().ok()?;
    let (little, number) = match order {
        1 => (true, u16::from_le_bytes(number)),
        2 => (false, u16::from_be_bytes(number)),
        _ => return None,
    };
    Some(match (number, little) {
        (3, true) => "i686",
        (21, true) => "ppc64le",
        (21, false) => "ppc64",
        (22, false) => "s390x",
        (40, true) => "armv7l",
        (62, true) => "x86_64",
        (183, true) => "aarch64",
        (243, true) => "riscv64",
        (258, true) => "loongarch64",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_a_program_is_that_of_uname() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(machine(&own), Some(std::env::consts::ARCH));
        let mut other = own;
        other[18..20].copy_from_slice(&183_u16.to_le_bytes());
        assert_eq!(machine(&other), Some("aarch64"));
        assert_eq!((machine(b"#!/bin/sh\n"), machine(&other[..19])), (None, None));
    }

    #[test]
    fn a_static_build_beside_the_program_is_not_asked_for_where_a_file_is_named() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(to_copy(std::slice::from_ref(&own)).unwrap().len(), 1);
        assert!(to_copy(&["/etc/hostname".into()]).unwrap_err().to_string().contains("is not a Linux program"));
        assert_eq!(shared(&[]).unwrap(), own);
        assert!(shared(&[own.clone(), own]).is_err());
    }
}
