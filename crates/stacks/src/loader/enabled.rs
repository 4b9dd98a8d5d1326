//! Loads objects with libbpf.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Error, ErrorKind, Link, MapCore, MapType, ObjectBuilder, OpenObject, PrintLevel, set_print};

use super::registered::{Found, compare};
use super::{LoadedStack, NON_RESTRICTED};
use crate::object::{PARAMETER_BYTES, PARAMETERS, RULES, VALUE_AT};
use crate::rules::encode;
use crate::{StackError, StackRequest, missing_rights, obstacle};

/// Whether this build can load stacks.
pub const BUILT: bool = true;

/// Messages of libbpf and the verifier. libbpf has one printer per process, so one object is loaded at a time.
static WORDS: Mutex<String> = Mutex::new(String::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Registers a stack with the kernel until the result is dropped. `any_user` lets users without CAP_NET_ADMIN choose
/// it. Takes about 15 ms.
///
/// # Errors
/// [`StackError::Exists`] if the kernel has it already, and [`StackError::Taken`] if it has another one of that name;
/// [`StackError::Kernel`], [`StackError::Rights`] and [`StackError::Refused`] give other reasons.
pub fn load(request: &StackRequest, any_user: bool) -> Result<LoadedStack, StackError> {
    let name = request.kernel_name();
    let link = register(request, &name, any_user)?;
    let copy = link.as_fd().try_clone_to_owned();
    let link = copy.map_err(|source| StackError::io(format!("keep {name}"), source))?;
    Ok(LoadedStack { name, _link: link })
}

/// As [`load`], kept by a pin at a path of the BPF file system.
pub(crate) fn load_pinned(request: &StackRequest, any_user: bool, at: &Path) -> Result<(), StackError> {
    let name = request.kernel_name();
    let mut link = register(request, &name, any_user)?;
    link.pin(at)
        .map_err(|error| StackError::Refused { name, what: format!("cannot pin it at {}: {error}", at.display()) })
}

fn register(request: &StackRequest, name: &str, any_user: bool) -> Result<Link, StackError> {
    if let Some(missing) = missing_rights() {
        return Err(StackError::Rights { requested: request.requested().into(), missing });
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = set_print(Some((PrintLevel::Info, listen)));
    let mut link = attach(request, name, any_user);
    for _ in 1..TRIES {
        if !matches!(link, Err(StackError::Taken { found: false, .. })) {
            break;
        }
        link = attach(request, name, any_user);
    }
    set_print(before);
    link
}

/// A registration that is found at one moment and missing at the next has probably ended in between.
const TRIES: usize = 3;

fn attach(request: &StackRequest, name: &str, any_user: bool) -> Result<Link, StackError> {
    let failed = |error: Error| judge(name, &error);
    said(String::clear);
    let mut open = ObjectBuilder::default().open_memory(&request.object.bytes).map_err(failed)?;
    fill(&mut open, request, name, any_user)
        .ok_or_else(|| failed(Error::from(std::io::Error::other("its tables do not match stack.h"))))?;
    let mut object = open.load().map_err(failed)?;
    let link = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .ok_or_else(|| failed(Error::from(std::io::Error::other("it registers no congestion control"))))?
        .attach_struct_ops();
    match link {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(match compare(&object, name) {
            Found::Same => StackError::Exists { name: name.into() },
            found => StackError::Taken { name: name.into(), found: found == Found::Another },
        }),
        link => link.map_err(failed),
    }
}

/// Writes name, parameters and rules to the program's tables.
fn fill(open: &mut OpenObject, request: &StackRequest, name: &str, any_user: bool) -> Option<()> {
    for mut map in open.maps_mut() {
        let is = |wanted: &str| map.name().to_str() == Some(wanted);
        if is(PARAMETERS) {
            let entries = map.initial_value_mut()?.chunks_exact_mut(PARAMETER_BYTES);
            for (entry, value) in entries.zip(&request.values) {
                entry.get_mut(VALUE_AT..VALUE_AT + 4)?.copy_from_slice(&value.to_ne_bytes());
            }
        } else if is(RULES) {
            let table = map.initial_value_mut()?;
            table.copy_from_slice(&encode(&request.rules, table.len())?);
        } else if map.map_type() == MapType::StructOps {
            // stack.h has the name and then the flags at the start of the structure.
            let head = map.initial_value_mut()?.get_mut(..20)?;
            head.fill(0);
            head.get_mut(..name.len().min(15))?.copy_from_slice(name.as_bytes().get(..name.len().min(15))?);
            let flags = if any_user { NON_RESTRICTED } else { 0 };
            head.get_mut(16..)?.copy_from_slice(&flags.to_ne_bytes());
        }
    }
    Some(())
}

fn judge(name: &str, error: &Error) -> StackError {
    match obstacle() {
        Some(what) => StackError::Kernel { what },
        None => StackError::Refused { name: name.into(), what: format!("{error:#}{}", last_lines()) },
    }
}

#[allow(clippy::needless_pass_by_value, reason = "libbpf-rs wants this signature")]
fn listen(_: PrintLevel, words: String) {
    said(|text| text.push_str(&words));
}

fn said(change: impl FnOnce(&mut String)) {
    change(&mut WORDS.lock().unwrap_or_else(PoisonError::into_inner));
}

/// The end of the messages, which has the reason.
fn last_lines() -> String {
    const LINES: usize = 12;
    let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LINES);
    lines[from..].iter().map(|line| format!("\n  {line}")).collect()
}
