//! Gives up rights of this process: those of root, and to files that it does not need.
//!
//! All of it acts on the calling thread and on threads and processes that it starts later. So it is refused once the process
//! has other threads.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

/// Where users are listed (passwd(5)).
const USERS: &str = "/etc/passwd";
/// The user of services that need none of their own (nobody(5) of the Linux Standard Base).
const NOBODY: (&str, u32) = ("nobody", 65_534);
/// The newest rights that are asked of Landlock; a kernel with older ones restricts what it knows.
const RIGHTS: ABI = ABI::V6;

/// A user of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// As in /etc/passwd.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

impl User {
    /// The user of that name, if there is one.
    ///
    /// # Errors
    /// The list of users cannot be read.
    pub fn find(name: &str) -> io::Result<Option<Self>> {
        Ok(Self::among(&std::fs::read_to_string(USERS)?, name))
    }

    fn among(users: &str, name: &str) -> Option<Self> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (found, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let user = || Some(Self { name: found.into(), uid: uid.parse().ok()?, gid: gid.parse().ok()? });
            (found == name).then(user).flatten()
        })
    }

    /// Whether it is root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether services of several kinds run as it: what one of them may do, all of them may.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.name == NOBODY.0 || self.uid == NOBODY.1
    }
}

/// Becomes `user`, without groups, without capabilities other than `kept`, and without ways to get them back.
///
/// # Errors
/// This process is not root, or has other threads already.
pub fn become_user(user: &User, kept: CapabilitySet) -> io::Result<()> {
    if user.is_root() {
        return Err(io::Error::other("that user is root"));
    }
    check_alone()?;
    // The bounding set can only be changed while the process has CAP_SETPCAP.
    for capability in (CapabilitySet::all() & !kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_keep_capabilities(!kept.is_empty())?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    keep_capabilities(kept)
}

/// Gives up all capabilities but those of `kept` that this process has, for good. Programs that it starts have none.
///
/// # Errors
/// The kernel refuses it, or this process has other threads already.
pub fn keep_capabilities(kept: CapabilitySet) -> io::Result<()> {
    check_alone()?;
    clear_ambient_capability_set()?;
    let now = capabilities(None)?;
    let (kept, none) = (now.permitted & kept, CapabilitySet::empty());
    let wanted = CapabilitySets { effective: kept, permitted: kept, inheritable: none };
    // A service manager's filter of system calls may refuse the call; then it has taken the capabilities as well.
    if now != wanted {
        set_capabilities(None, wanted)?;
    }
    Ok(set_no_new_privs(true)?)
}

/// Gives up what a helper does not need that has these capabilities, for good and for programs that it starts: other capabilities, and
/// system calls that change the system itself. Returns whether the kernel refuses these calls.
///
/// # Errors
/// The kernel refuses it, or this process has other threads already.
pub fn keep_for_helper(kept: CapabilitySet) -> io::Result<bool> {
    check_alone()?;
    // A process without CAP_SETPCAP cannot change the set, and has few capabilities anyway.
    for capability in (CapabilitySet::all() & !kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    keep_capabilities(kept)?;
    crate::sys::calls::refuse(kept.contains(CapabilitySet::BPF))
}

/// Whether the user and its group have numbers in the user namespace of this process (user_namespaces(7)).
#[must_use]
pub fn has_number(user: &User) -> bool {
    let mapped = |file: &str, id: u32| {
        let map = std::fs::read_to_string(file).unwrap_or_default();
        map.lines().any(|line| in_range(line, id))
    };
    mapped("/proc/self/uid_map", user.uid) && mapped("/proc/self/gid_map", user.gid)
}

/// Whether a line of such a map, which has the first number inside, the first one outside, and their count, covers `id`.
fn in_range(line: &str, id: u32) -> bool {
    let mut numbers = line.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
    match (numbers.next(), numbers.nth(1)) {
        (Some(first), Some(count)) => (first..first.saturating_add(count)).contains(&u64::from(id)),
        _ => false,
    }
}

/// The rights of the calling thread would not be those of others.
fn check_alone() -> io::Result<()> {
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        count => Err(io::Error::other(format!("the process has {count} threads"))),
    }
}

/// Files that a process needs. Folders stand for all that is below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Read, and programs and libraries executed.
    pub read: Vec<PathBuf>,
    /// Read and written, without the right to make others.
    pub devices: Vec<PathBuf>,
    /// Folders in which files and sockets are made, changed and removed.
    pub folders: Vec<PathBuf>,
}

/// Restricts this process to `files`, and its signals to processes that are as restricted (Landlock, landlock(7)). Returns
/// whether the kernel does all of it, some of it, or nothing. Files that do not exist are left out.
///
/// # Errors
/// The kernel refuses it, or this process has other threads already.
pub fn restrict_files(files: &Files) -> io::Result<Restricted> {
    check_alone()?;
    let all = AccessFs::from_all(RIGHTS);
    let restricted = || -> Result<RestrictionStatus, RulesetError> {
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::Signal)?
            .create()?;
        let read = allow(rules, &files.read, AccessFs::from_read(RIGHTS))?;
        let devices = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        let devices = allow(read, &files.devices, devices)?;
        let folders = allow(devices, &files.folders, all & !(AccessFs::Execute | AccessFs::IoctlDev))?;
        // Each folder itself is removed at the end.
        let above: Vec<PathBuf> = files.folders.iter().filter_map(|folder| Some(folder.parent()?.to_owned())).collect();
        allow(folders, &above, AccessFs::RemoveDir.into())?.restrict_self()
    };
    let status = restricted().map_err(io::Error::other)?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Restricted::Fully,
        RulesetStatus::PartiallyEnforced => Restricted::Partly,
        RulesetStatus::NotEnforced => Restricted::Not,
    })
}

/// What the kernel restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restricted {
    /// All that was asked for.
    Fully,
    /// What an older kernel knows.
    Partly,
    /// Nothing: the kernel has no Landlock.
    Not,
}

fn allow(rules: RulesetCreated, paths: &[PathBuf], rights: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let open = |path: &PathBuf| PathFd::new(path).ok().map(|open| (open, path.is_dir()));
    paths.iter().filter_map(open).try_fold(rules, |rules, (open, is_folder)| {
        // Rights to folders mean nothing for a file.
        let rights = if is_folder { rights } else { rights & AccessFs::from_file(RIGHTS) };
        rules.add_rule(PathBeneath::new(open, rights))
    })
}

/// Limits this process, for good, to so many bytes of memory of its own and, unless it is root, its user to so many threads.
///
/// # Errors
/// The kernel refuses it.
pub fn limit_memory_and_tasks(memory_bytes: u64, tasks: Option<u64>) -> io::Result<()> {
    let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Data, limit(memory_bytes))?;
    if let Some(tasks) = tasks {
        setrlimit(Resource::Nproc, limit(tasks))?;
    }
    Ok(())
}

/// Makes `user` the owner of a file or folder.
///
/// # Errors
/// This process is not root.
pub fn give(path: &Path, user: &User) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nthru-old:x:7:8::/:/bin/false\nthru:x:990:991::/:/bin/false\nbad:x:1";
        let found = User::among(users, "thru").unwrap();
        assert_eq!((found.uid, found.gid, found.is_root()), (990, 991, false));
        assert!(User::among(users, "root").unwrap().is_root());
        assert!(!found.is_shared() && User { uid: 65_534, ..found }.is_shared());
        assert_eq!((User::among(users, "bad"), User::among(users, "th")), (None, None));
    }

    #[test]
    fn a_user_namespace_has_some_numbers() {
        assert!(in_range("         0          0 4294967295", 65_534) && in_range("0 1000 1", 0));
        assert!(!in_range("0 1000 1", 1) && !in_range("", 0) && !in_range("100 5", 100));
    }

    #[test]
    fn a_process_with_threads_keeps_its_rights() {
        // The test runner has its own thread beside this one.
        let refused = |result: io::Result<()>| result.unwrap_err().to_string();
        assert!(refused(keep_capabilities(CapabilitySet::empty())).contains("threads"));
        let nobody = User { name: "nobody".into(), uid: 65_534, gid: 65_534 };
        assert!(refused(become_user(&nobody, CapabilitySet::empty())).contains("threads"));
        assert!(refused(restrict_files(&Files::default()).map(drop)).contains("threads"));
        let root = User { uid: 0, ..nobody };
        assert!(refused(become_user(&root, CapabilitySet::empty())).contains("root"));
    }
}
