//! The rights with which an agent serves. Started by root it becomes an ordinary user, and a helper process keeps the rights that
//! its flags need.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use command::Failure;
use command::files::private_folder;
use command::scratch::Scratch;
use command::setup::{self, own_program};
use control::agent::{Captures, WorkerLimits, Workers};
use control::helper::{Helper, Lifeline, PacketRights, Powers};
use host::confine::{self, Files, Restricted, User};
use rustix::fs::{Access, access};
use rustix::thread::{CapabilitySet, capabilities};
use text::{Text, say};

use crate::listening::{private_listener, refuse_shared};

/// Users that an agent of root becomes, the first that exists.
const USERS: [&str; 2] = ["thru", "nobody"];
/// Mode of the agent's folder, whatever the mask is with which it was started.
const PRIVATE: u32 = 0o700;
/// Name of the helper's socket in the agent's folder.
const SOCKET: &str = "helper.sock";
/// How long an agent that ends waits until its helper has restored the settings.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Time between two looks at whether it has.
const POLL: Duration = Duration::from_millis(2);
/// Memory of a worker beside the buffers of its measurement and the stacks of its threads, bytes.
const WORKER_BYTES: u64 = 512 << 20;
/// Memory of a thread, for its stack, bytes.
const THREAD_BYTES: u64 = 3 << 20;

/// The program of this process, also where its folder is closed to the process's user (proc_pid_exe(5)).
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What programs and libraries of any system need.
const READ: [&str; 14] = [
    "/bin",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/proc",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/extrausers",
];
const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/urandom", "/dev/vsock", "/dev/zero"];

/// What an agent's flags say about its rights.
pub(crate) struct Wanted<'a> {
    /// The user that it becomes if it is root.
    pub(crate) user: Option<&'a str>,
    /// A helper that runs already.
    pub(crate) helper: Option<&'a Path>,
    /// What its helper does.
    pub(crate) powers: Powers,
    /// The patterns of settings of these.
    pub(crate) tuning: &'a [String],
    /// Whether it listens on ports below 1024.
    pub(crate) low_ports: bool,
    /// Where it stores captures.
    pub(crate) captures: &'a Captures,
    /// Where it keeps results.
    pub(crate) results: Option<&'a Path>,
}

/// An agent's rights, lowered.
pub(crate) struct Lowered {
    /// Does what needs more rights.
    pub(crate) helper: Helper,
    /// Its folder for sockets.
    pub(crate) folder: Scratch,
    /// Whether the agent has become a user of its own.
    own_user: bool,
    /// Waits for the helper's end when dropped.
    _started: Option<Started>,
}

/// A helper that this agent has started.
struct Started {
    process: Child,
    lifeline: Option<Lifeline>,
}

impl Lowered {
    /// Its workers, with limits for an agent with these.
    ///
    /// # Errors
    /// The kernel does not name this program's file.
    pub(crate) fn workers(&self, limits: &control::agent::Limits) -> Result<Workers, Failure> {
        let own = own_program()?;
        // The folder of the program may be closed to the user that this process became.
        let path = if access(&own, Access::EXEC_OK).is_ok() { own } else { PathBuf::from(OWN_PROGRAM) };
        let threads = u64::from(limits.flows) * 2 + 64;
        let limits = WorkerLimits {
            memory_bytes: limits.memory_bytes + threads * THREAD_BYTES + WORKER_BYTES,
            tasks: self.own_user.then(|| threads * 2),
        };
        Ok(Workers::Program { path, limits: Some(limits) })
    }
}

impl Drop for Started {
    /// Waits until the helper has restored the settings.
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let deadline = Instant::now() + END_LIMIT;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
    }
}

impl Wanted<'_> {
    /// The flags of a helper that does all of it.
    fn flags(&self) -> Vec<OsString> {
        let Powers { stacks, packets, journal, congestion, buffers, .. } = &self.powers;
        let tuning = self.tuning.iter().map(|pattern| format!("--allow-tuning={pattern}").into());
        let mut flags: Vec<OsString> = tuning.collect();
        flags.extend(stacks.then(|| "--allow-stacks".into()));
        flags.extend(congestion.then(|| "--allow-cc".into()));
        flags.extend(buffers.then(|| "--allow-buffers".into()));
        flags.extend(match packets {
            PacketRights::None => None,
            PacketRights::Headers => Some("--allow-capture".into()),
            PacketRights::Whole => Some("--allow-capture=payload".into()),
        });
        if let Some(journal) = journal.as_ref().filter(|_| !flags.is_empty()) {
            flags.extend(["--journal".into(), journal.into()]);
        }
        flags
    }

    /// Makes the folders that it writes to, for `user` if it is another one.
    fn make_folders(&self, user: Option<&User>) -> Result<(), Failure> {
        if let Some(folder) = self.captures.folder() {
            make_folder(folder, user).map_err(|error| unwritable(folder, &error, user))?;
        }
        // Whoever opens the file of results says why there is none.
        self.results.map(|folder| make_folder(folder, user));
        Ok(())
    }

    fn helper_here(&self) -> Helper {
        match self.helper {
            Some(path) => Helper::At(path.to_owned()),
            None => Helper::Here(Arc::new(self.powers.clone())),
        }
    }
}

/// Gives up what the agent does not need, before the process has threads: root, capabilities, and files of others. `user root`
/// keeps everything.
///
/// # Errors
/// There is no such user, the helper does not start, or captures cannot be stored.
pub(crate) fn lower(wanted: &Wanted<'_>, log: impl Fn(&Text)) -> Result<Lowered, Failure> {
    let root = rustix::process::geteuid().is_root();
    let user = if root { Some(user(wanted.user)?) } else { None };
    if let Some(user) = &user {
        refuse_shared(user, &wanted.powers)?;
    }
    if user.as_ref().is_some_and(User::is_root) {
        wanted.make_folders(None)?;
        let (helper, folder) = (wanted.helper_here(), setup::socket_directory()?);
        return Ok(Lowered { helper, folder, own_user: false, _started: None });
    }
    let flags = wanted.flags();
    let kept = if wanted.low_ports { CapabilitySet::NET_BIND_SERVICE } else { CapabilitySet::empty() };
    let privileged = root || capabilities(None).is_ok_and(|sets| !sets.permitted.is_empty());
    let start = privileged && wanted.helper.is_none() && !flags.is_empty();
    let started = if start { Some(start_helper(&flags)?) } else { None };
    let own_user = match &user {
        Some(user) => become_user(user, kept, wanted, &log)?,
        None => wanted.make_folders(None).map(|()| false)?,
    };
    if !own_user {
        confine::keep_capabilities(kept).map_err(|error| Failure::host(format!("cannot drop privileges: {error}")))?;
    }
    let folder = if own_user { Scratch::anywhere() } else { Scratch::new() };
    let folder = folder
        .and_then(|folder| fs::set_permissions(folder.path(), Permissions::from_mode(PRIVATE)).map(|()| folder))
        .map_err(|error| setup::no_socket_directory(&error))?;
    let helper = match &started {
        Some(started) => started.listen(folder.path().join(SOCKET))?,
        None => wanted.helper_here(),
    };
    // Without a helper process, what the flags allow happens here, with all files of this user.
    if matches!(helper, Helper::At(_)) || !wanted.powers.change_host() {
        restrict(folder.path(), wanted, &log)?;
    }
    check_captures(wanted.captures, user.as_ref().filter(|_| own_user))?;
    Ok(Lowered { helper, folder, own_user, _started: started })
}

/// Gives up what serving one client of another program does not need.
///
/// # Errors
/// As [`lower`].
pub(crate) fn lower_for_client(log: impl Fn(&Text)) -> Result<(), Failure> {
    let (powers, captures) = (Powers::none(), &Captures::Refused);
    lower(&Wanted { user: None, helper: None, powers, tuning: &[], low_ports: false, captures, results: None }, log)
        .map(drop)
}

/// The user that an agent of root becomes.
fn user(named: Option<&str>) -> Result<User, Failure> {
    let find = |name: &str| User::find(name).map_err(|error| Failure::host(format!("cannot read the users: {error}")));
    match named {
        Some(name) => find(name)?.ok_or_else(|| {
            Failure::usage(say!("`--user {name}`: this host has no such user; create it, or use nobody"))
        }),
        None => {
            let found: Vec<User> = USERS.iter().filter_map(|name| find(name).transpose()).collect::<Result<_, _>>()?;
            found.into_iter().next().ok_or_else(|| {
                Failure::host(say!(
                    "an agent started by root runs as another user, but this host has neither {}: create one, or name another with `--user`",
                    USERS.join(" nor ")
                ))
            })
        }
    }
}

/// Becomes `user`. False where this process cannot: in a user namespace in which the user has no number.
fn become_user(user: &User, kept: CapabilitySet, wanted: &Wanted<'_>, log: impl Fn(&Text)) -> Result<bool, Failure> {
    if !confine::has_number(user) {
        log(&say!("user {} is not mapped in this user namespace: the agent only drops its capabilities", user.name));
        wanted.make_folders(None)?;
        return Ok(false);
    }
    wanted.make_folders(Some(user))?;
    confine::become_user(user, kept)
        .map(|()| true)
        .map_err(|error| Failure::host(format!("cannot become user {}: {error}", user.name)))
}

/// Starts a helper for this agent alone.
fn start_helper(flags: &[OsString]) -> Result<Started, Failure> {
    let (lifeline, theirs) = Lifeline::pair().map_err(|error| no_helper(&error))?;
    let mut command = Command::new(own_program()?);
    command.arg("helper").arg("--with-agent").args(flags);
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
    // Ctrl-C is for the agent; the helper ends when the agent has ended.
    let process = command.process_group(0).spawn().map_err(|error| no_helper(&error))?;
    Ok(Started { process, lifeline: Some(lifeline) })
}

fn no_helper(error: &io::Error) -> Failure {
    Failure::host(format!("cannot start the helper of this agent: {error}"))
}

impl Started {
    /// Makes the socket on which the helper listens.
    fn listen(&self, path: PathBuf) -> Result<Helper, Failure> {
        let listener = private_listener(&path).map_err(|error| no_helper(&error))?;
        if let Some(lifeline) = &self.lifeline {
            lifeline.pass(&listener).map_err(|error| no_helper(&error))?;
        }
        Ok(Helper::At(path))
    }
}

/// Restricts this process to the files that it needs.
fn restrict(own: &Path, wanted: &Wanted<'_>, log: impl Fn(&Text)) -> Result<(), Failure> {
    let named = wanted.captures.folder().into_iter().chain(wanted.results);
    let named = named.map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()));
    let folders = std::iter::once(own.to_owned()).chain(named).collect();
    // This process may not be able to open the program by its path any more.
    let program = [PathBuf::from(OWN_PROGRAM)];
    let read = READ.iter().map(PathBuf::from).chain(program).chain(mapped_files()).collect();
    let files = Files { read, devices: DEVICES.iter().map(PathBuf::from).collect(), folders };
    match confine::restrict_files(&files) {
        Ok(Restricted::Fully | Restricted::Partly) => {}
        Ok(Restricted::Not) => log(&"this kernel has no Landlock: the agent can read all files of its user".into()),
        Err(error) => return Err(Failure::host(format!("cannot restrict the agent to its files: {error}"))),
    }
    Ok(())
}

/// The program and its libraries, wherever they are: workers load them again (proc_pid_maps(5)).
fn mapped_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<PathBuf> =
        maps.lines().filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..]))).collect();
    files.dedup();
    files
}

/// Makes a folder, for `user` if it is another one.
fn make_folder(folder: &Path, user: Option<&User>) -> io::Result<()> {
    let missing = !folder.exists();
    private_folder(folder)?;
    match user {
        Some(user) if missing => confine::give(folder, user),
        _ => Ok(()),
    }
}

/// Checks that files can be written to the folder of captures.
fn check_captures(captures: &Captures, user: Option<&User>) -> Result<(), Failure> {
    let Some(folder) = captures.folder() else { return Ok(()) };
    tempfile::tempfile_in(folder).map(drop).map_err(|error| unwritable(folder, &error, user))
}

fn unwritable(folder: &Path, error: &io::Error, user: Option<&User>) -> Failure {
    let remedy = match user {
        Some(user) => say!("use a writable folder, for user {}, or another `--user`", user.name),
        None => say!("use a writable folder"),
    };
    Failure::usage(say!("`--allow-capture={}`: {error}; {remedy}", folder.display()))
}
