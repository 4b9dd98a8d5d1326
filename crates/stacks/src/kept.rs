//! Stacks that stay loaded after the command, as links pinned in the BPF file system.

use std::path::{Path, PathBuf};
use std::{fs, io};

use model::StackRule;
use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};
use rustix::process::getppid;

use crate::loader::load_pinned;
use crate::{StackError, StackRequest, missing_rights};

/// Where the BPF file system is mounted on hosts with systemd, and by bpftool.
const FILE_SYSTEM: &str = "/sys/fs/bpf";
const FOLDER: &str = "/sys/fs/bpf/thru";
/// Its type in statfs(2) (BPF_FS_MAGIC, linux/magic.h).
const MAGIC: i64 = 0xcafe_4a11;

/// Loads a stack that stays until [`release`], or the next boot. `any_user` lets users without CAP_NET_ADMIN choose
/// it. Mounts the BPF file system if needed. Returns its name in the kernel.
///
/// # Errors
/// As [`load`](crate::load); [`StackError::Io`] if it cannot be pinned.
pub fn keep(request: &StackRequest, any_user: bool) -> Result<String, StackError> {
    if !crate::BUILT {
        return Err(StackError::NotBuilt);
    }
    if let Some(missing) = missing_rights() {
        return Err(StackError::Rights { requested: request.requested().into(), missing });
    }
    mounted()?;
    fs::create_dir_all(FOLDER).map_err(|source| StackError::io(format!("make {FOLDER}"), source))?;
    let name = request.kernel_name();
    load_pinned(request, any_user, &pin_path(&name))?;
    Ok(name)
}

/// Names of the kept stacks, sorted; empty if they cannot be read.
#[must_use]
pub(crate) fn kept() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Ends the registration of a kept stack, by its name in the kernel or by the arguments of [`keep`]: the same text and
/// the same rules. Connections that use it keep it until they close. Returns its name in the kernel.
/// # Errors
/// [`StackError::NotKept`], those of [`StackRequest::open`] and [`StackRequest::with_rules`], and [`StackError::Io`] if it
/// cannot be removed.
pub fn release(requested: &str, rules: &[StackRule]) -> Result<String, StackError> {
    // The kernel's name first: it may be that of a stack in a user's file.
    let listed = rules.is_empty() && kept().iter().any(|name| name == requested);
    let name = if listed { requested.to_owned() } else { named(requested, rules)? };
    let path = pin_path(&name);
    match fs::remove_file(&path) {
        Ok(()) => Ok(name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StackError::NotKept { name }),
        Err(source) => Err(StackError::io(format!("remove {}", path.display()), source)),
    }
}

/// The name under which [`keep`] keeps the requested stack.
fn named(requested: &str, rules: &[StackRule]) -> Result<String, StackError> {
    match StackRequest::open(requested) {
        Ok(request) => Ok(request.with_rules(rules)?.kernel_name()),
        // A name from the list, of a stack that has been released since.
        Err(StackError::Unknown { .. }) if rules.is_empty() && !requested.contains(':') => Ok(requested.to_owned()),
        Err(error) => Err(error),
    }
}

fn pin_path(name: &str) -> PathBuf {
    // A name from an object is checked to have no slash; a typed one may have any character.
    Path::new(FOLDER).join(name.replace('/', "_"))
}

fn mounted() -> Result<(), StackError> {
    let failed = |source| StackError::io(format!("mount the BPF file system at {FILE_SYSTEM}"), source);
    let kind = statfs(FILE_SYSTEM).map_err(|error| failed(error.into()))?;
    #[allow(clippy::unnecessary_cast, reason = "the width of the field depends on the architecture")]
    if kind.f_type as i64 == MAGIC {
        return Ok(());
    }
    // A mount made within `ip netns exec` ends with it, and the stack with the mount.
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let outside = getppid().and_then(|parent| namespace(&parent.as_raw_nonzero().to_string()));
    if outside.is_some() && outside != namespace("self") {
        let what =
            "this process has its own mount namespace, for example from ip netns exec, and the stack would end with it";
        return Err(failed(io::Error::new(io::ErrorKind::Unsupported, what)));
    }
    mount("bpf", FILE_SYSTEM, "bpf", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
        .map_err(|error| failed(error.into()))
}
