//! The PVM calls of the transport. Source of names, arguments and numbers: `pvm3.h` and the manual pages of PVM 3.4.
//! libpvm keeps its state in globals: no two threads of a process may call it at the same time.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::library::{Library, function};
use crate::core::EngineError;

/// Items are sent from their memory, unchanged.
const DATA_IN_PLACE: c_int = 2;
/// Option: how messages travel between tasks.
const ROUTE: c_int = 1;
/// From task to task, not by way of the daemons.
const ROUTE_DIRECT: c_int = 3;
/// Option: whether libpvm prints its errors itself.
const AUTO_ERROR: c_int = 3;
/// Where a task is started: on a host that PVM chooses.
const TASK_DEFAULT: c_int = 0;
/// The event that [`Pvm::notify_exit`] requests.
const TASK_EXIT: c_int = 1;
/// "No such task".
const NO_TASK: c_int = -31;

/// A task's number in the virtual machine.
pub(crate) type Tid = c_int;

struct Calls {
    mytid: unsafe extern "C" fn() -> c_int,
    exit: unsafe extern "C" fn() -> c_int,
    parent: unsafe extern "C" fn() -> c_int,
    setopt: unsafe extern "C" fn(c_int, c_int) -> c_int,
    spawn: unsafe extern "C" fn(*mut c_char, *mut *mut c_char, c_int, *mut c_char, c_int, *mut c_int) -> c_int,
    pstat: unsafe extern "C" fn(c_int) -> c_int,
    notify: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_int) -> c_int,
    initsend: unsafe extern "C" fn(c_int) -> c_int,
    pkbyte: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    send: unsafe extern "C" fn(c_int, c_int) -> c_int,
    nrecv: unsafe extern "C" fn(c_int, c_int) -> c_int,
    trecv: unsafe extern "C" fn(c_int, c_int, *mut libc::timeval) -> c_int,
    bufinfo: unsafe extern "C" fn(c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int,
    upkbyte: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
}

/// PVM, opened in this process. It is not `Sync`: only the thread that has it can call it.
pub(crate) struct Pvm {
    calls: Calls,
    one_thread: PhantomData<Cell<()>>,
    library: &'static str,
}

/// A message that has arrived; its bytes are taken with [`Pvm::take`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) from: Tid,
    pub(crate) length: usize,
}

impl Pvm {
    /// Opens the library. An error the second time: two could be called by two threads.
    pub(crate) fn open() -> Result<Self, EngineError> {
        static OPENED: AtomicBool = AtomicBool::new(false);
        let library = Library::open(&["libpvm3.so.3"], "apt-get install pvm")?;
        let calls = calls(&library)?;
        if OPENED.swap(true, Ordering::SeqCst) {
            return Err(EngineError::Thread("PVM was opened twice".into()));
        }
        Ok(Self { calls, one_thread: PhantomData, library: library.name() })
    }

    /// Joins the virtual machine of this user as a task (pvm_mytid), unless this process is one; its number.
    pub(crate) fn join(&self) -> Result<Tid, EngineError> {
        let failed = |what: &str, remedy: &str| EngineError::Library {
            library: self.library.into(),
            what: what.into(),
            remedy: remedy.into(),
        };
        // libpvm would print a page of text and end the process.
        if rustix::process::geteuid().is_root() && std::env::var_os("PVM_ALLOW_ROOT").is_none() {
            let remedy = "use another user, or set PVM_ALLOW_ROOT=1 for the virtual machine and for thru";
            return Err(failed("does not serve root", remedy));
        }
        let absent = "found no virtual machine of this user";
        let start = "start one with `echo quit | pvm` (stop it with `echo halt | pvm`)";
        // It would print its own message.
        if !daemon_is_there() {
            return Err(failed(absent, start));
        }
        // SAFETY: all take numbers only. A PVM without direct routes keeps those of its daemons.
        let tid = unsafe {
            (self.calls.setopt)(AUTO_ERROR, 0);
            let tid = (self.calls.mytid)();
            (self.calls.setopt)(ROUTE, ROUTE_DIRECT);
            tid
        };
        if tid < 0 { Err(failed(&format!("{absent} (pvm_mytid: {tid})"), start)) } else { Ok(tid) }
    }

    /// Leaves the virtual machine; this process may join again, under another number.
    pub(crate) fn leave(&self) {
        // SAFETY: takes nothing.
        unsafe {
            (self.calls.exit)();
        }
    }

    /// The task that started this one with pvm_spawn, if one did.
    pub(crate) fn parent(&self) -> Option<Tid> {
        // SAFETY: takes nothing.
        let tid = unsafe { (self.calls.parent)() };
        (tid > 0).then_some(tid)
    }

    /// Starts `program` (by its absolute path) once, on a host that PVM chooses.
    pub(crate) fn spawn(&self, program: &Path, arguments: &[&str]) -> io::Result<Tid> {
        use std::os::unix::ffi::OsStrExt;
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let program = CString::new(program.as_os_str().as_bytes()).map_err(invalid)?;
        let texts = arguments.iter().map(|text| CString::new(*text)).collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let mut list: Vec<*mut c_char> = texts.iter().map(|text| text.as_ptr().cast_mut()).collect();
        list.push(std::ptr::null_mut());
        let mut tid = 0;
        // SAFETY: NUL-terminated texts and a NULL-terminated list that outlive the call, which does not write to them; room
        // for one number.
        let started = unsafe {
            (self.calls.spawn)(
                program.as_ptr().cast_mut(),
                list.as_mut_ptr(),
                TASK_DEFAULT,
                std::ptr::null_mut(),
                1,
                &raw mut tid,
            )
        };
        // If fewer were started than requested, the task's place holds an error number.
        if started == 1 { Ok(tid) } else { Err(failure("pvm_spawn", if tid < 0 { tid } else { started })) }
    }

    /// Whether a task has ended.
    pub(crate) fn has_ended(&self, task: Tid) -> bool {
        // SAFETY: takes a number.
        unsafe { (self.calls.pstat)(task) == NO_TASK }
    }

    /// Requests a message with `tag` once `task` has ended.
    pub(crate) fn notify_exit(&self, task: Tid, tag: c_int) -> io::Result<()> {
        let mut task = task;
        // SAFETY: one number, which the call reads.
        checked("pvm_notify", unsafe { (self.calls.notify)(TASK_EXIT, tag, 1, &raw mut task) }).map(|_| ())
    }

    /// Sends a message; returns when its bytes are on their way.
    #[inline]
    pub(crate) fn send(&self, to: Tid, tag: c_int, bytes: &[u8]) -> io::Result<()> {
        let length = c_int::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: the bytes are only read, and only until pvm_send returns: it hands them to the system before.
        unsafe {
            checked("pvm_initsend", (self.calls.initsend)(DATA_IN_PLACE))?;
            if length > 0 {
                checked("pvm_pkbyte", (self.calls.pkbyte)(bytes.as_ptr().cast_mut().cast(), length, 1))?;
            }
            checked("pvm_send", (self.calls.send)(to, tag)).map(|_| ())
        }
    }

    /// The next message with `tag` from `from` (-1 for any sender), if one has arrived or arrives within `wait_us`. It
    /// replaces the previous one, whether taken or not.
    #[inline]
    pub(crate) fn next(&self, from: Tid, tag: c_int, wait_us: u32) -> io::Result<Option<Message>> {
        // SAFETY: the time lives for the call.
        let buffer = unsafe {
            if wait_us == 0 {
                (self.calls.nrecv)(from, tag)
            } else {
                let mut limit = libc::timeval { tv_sec: 0, tv_usec: wait_us.into() };
                (self.calls.trecv)(from, tag, &raw mut limit)
            }
        };
        if checked("pvm_trecv", buffer)? == 0 {
            return Ok(None);
        }
        let (mut length, mut tag, mut from) = (0, 0, 0);
        // SAFETY: three live ints.
        let code = unsafe { (self.calls.bufinfo)(buffer, &raw mut length, &raw mut tag, &raw mut from) };
        checked("pvm_bufinfo", code)?;
        Ok(Some(Message { from, length: usize::try_from(length).unwrap_or(0) }))
    }

    /// Takes the next `into.len()` bytes of the last message, which has at least as many left.
    #[inline]
    pub(crate) fn take(&self, into: &mut [u8]) -> io::Result<()> {
        let length = c_int::try_from(into.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if length == 0 {
            return Ok(());
        }
        // SAFETY: room for exactly as many bytes as are requested; a message with fewer is an error, not a short read.
        checked("pvm_upkbyte", unsafe { (self.calls.upkbyte)(into.as_mut_ptr().cast(), length, 1) }).map(|_| ())
    }
}

/// Whether the file exists in which this user's daemon publishes its address (pvmd(1): `pvmd.UID` in PVM_TMP). If a
/// variable gives another address, the daemon is assumed to run.
fn daemon_is_there() -> bool {
    if ["PVMSOCK", "PVM_VMID"].iter().any(|name| std::env::var_os(name).is_some()) {
        return true;
    }
    let folder = std::env::var_os("PVM_TMP").unwrap_or_else(|| "/tmp".into());
    let user = rustix::process::getuid().as_raw();
    Path::new(&folder).join(format!("pvmd.{user}")).exists()
}

#[inline]
fn checked(call: &'static str, code: c_int) -> io::Result<c_int> {
    if code < 0 { Err(failure(call, code)) } else { Ok(code) }
}

#[cold]
fn failure(call: &'static str, code: c_int) -> io::Error {
    let meaning = match code {
        -7 => "no such file: is thru installed at the same path on every host of the virtual machine?",
        -10 => "out of memory",
        -14 => "the daemon does not answer",
        -22 => "the host has failed",
        -27 | -28 => "a resource is used up",
        NO_TASK => "the task has ended",
        _ => "see pvm3.h",
    };
    io::Error::other(format!("{call} answered {code} ({meaning})"))
}

fn calls(library: &Library) -> Result<Calls, EngineError> {
    Ok(Calls {
        mytid: function!(library, c"pvm_mytid"),
        exit: function!(library, c"pvm_exit"),
        parent: function!(library, c"pvm_parent"),
        setopt: function!(library, c"pvm_setopt"),
        spawn: function!(library, c"pvm_spawn"),
        pstat: function!(library, c"pvm_pstat"),
        notify: function!(library, c"pvm_notify"),
        initsend: function!(library, c"pvm_initsend"),
        pkbyte: function!(library, c"pvm_pkbyte"),
        send: function!(library, c"pvm_send"),
        nrecv: function!(library, c"pvm_nrecv"),
        trecv: function!(library, c"pvm_trecv"),
        bufinfo: function!(library, c"pvm_bufinfo"),
        upkbyte: function!(library, c"pvm_upkbyte"),
    })
}
