//! The MPI calls of the transport, in the library of the MPI that started this process.
//!
//! Sources: the MPI 3.1 standard for names and arguments; `mpi.h` of OpenMPI 4 and of MPICH 4 for the values of handles
//! (addresses of global objects in one, constants in the other). A handle is passed as a machine word: on the 64-bit ABIs of
//! x86-64 and AArch64 an `int` argument takes the lower half of a register and the rest of it is ignored.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use super::library::{Library, function};
use crate::core::{EngineError, now_ns};

type Handle = usize;
/// A request's handle: a pointer in OpenMPI, an int in MPICH. Only its address is passed.
type Request = u64;
/// Room for a status: 24 bytes in OpenMPI, 20 in MPICH.
type Status = [u64; 8];

/// MPI_THREAD_SERIALIZED: calls from any thread, one at a time. The same number in all MPIs.
const THREAD_SERIALIZED: c_int = 2;

/// Which MPI started this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// OpenMPI, and what is built like it.
    OpenMpi,
    /// MPICH, and what follows its ABI.
    Mpich,
}

/// Handles of one MPI.
#[derive(Debug, Clone, Copy)]
struct Handles {
    world: Handle,
    byte: Handle,
    errors_return: Handle,
}

struct Calls {
    init_thread: unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int,
    comm_rank: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    comm_size: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    set_errhandler: unsafe extern "C" fn(Handle, Handle) -> c_int,
    isend: unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    issend: unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    irecv: unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Request) -> c_int,
    recv: unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Status) -> c_int,
    iprobe: unsafe extern "C" fn(c_int, c_int, Handle, *mut c_int, *mut Status) -> c_int,
    test: unsafe extern "C" fn(*mut Request, *mut c_int, *mut Status) -> c_int,
    wait: unsafe extern "C" fn(*mut Request, *mut Status) -> c_int,
    cancel: unsafe extern "C" fn(*mut Request) -> c_int,
    test_cancelled: unsafe extern "C" fn(*const Status, *mut c_int) -> c_int,
    get_count: unsafe extern "C" fn(*const Status, Handle, *mut c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int,
    library_version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    abort: AbortCall,
}

type AbortCall = unsafe extern "C" fn(Handle, c_int) -> c_int;

/// MPI, started in this process, until [`finalize`](Self::finalize) consumes it. It is not `Sync`: only the thread that has it
/// can call it.
pub(crate) struct Mpi {
    calls: Calls,
    handles: Handles,
    one_thread: PhantomData<Cell<()>>,
    /// This process's rank.
    pub(crate) rank: u32,
    /// How many processes mpirun started.
    pub(crate) size: u32,
    /// The library's version text, its first line.
    pub(crate) version: String,
}

/// The right to end the processes of both ends, from any thread. There is one, which `finalize` consumes too.
#[derive(Debug)]
pub(crate) struct Abort {
    abort: AbortCall,
    world: Handle,
}

impl Abort {
    /// Ends the processes of both ends; does not return.
    pub(crate) fn abort(&self, code: c_int) -> ! {
        // SAFETY: MPI is started and not finalized, as long as there is `self`. Another thread may be in a call, which
        // MPI_THREAD_SERIALIZED does not foresee: neither process goes on after this in any case.
        unsafe {
            (self.abort)(self.world, code);
        }
        // MPI_Abort ends this process too. Should it not, nothing sane is left to do: MPI may own borrowed memory.
        std::process::abort()
    }
}

/// An incomplete send. It owns its bytes, so that they live as long as MPI may read them.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    request: Option<Box<Request>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.request.is_some() {
            // MPI may still read them and write to the request: both are leaked.
            std::mem::forget(std::mem::take(&mut self.bytes));
            std::mem::forget(self.request.take());
        }
    }
}

impl Mpi {
    /// Opens the library and starts MPI (MPI_Init_thread). An error the second time: a process starts MPI once.
    pub(crate) fn start(flavour: Flavour) -> Result<(Self, Abort), EngineError> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(EngineError::Thread("MPI was started twice".into()));
        }
        let library = match flavour {
            Flavour::OpenMpi => Library::open(&["libmpi.so.40"], "apt-get install openmpi-bin")?,
            Flavour::Mpich => Library::open(&["libmpich.so.12", "libmpi.so.12"], "apt-get install mpich")?,
        };
        let handles = match flavour {
            Flavour::OpenMpi => {
                let address = |name| library.symbol(name).map(|symbol| symbol.as_ptr() as Handle);
                Handles {
                    world: address(c"ompi_mpi_comm_world")?,
                    byte: address(c"ompi_mpi_byte")?,
                    errors_return: address(c"ompi_mpi_errors_return")?,
                }
            }
            Flavour::Mpich => Handles { world: 0x4400_0000, byte: 0x4c00_010d, errors_return: 0x5400_0001 },
        };
        let (calls, version) = (calls(&library)?, library.name().to_owned());
        let mut mpi = Self { calls, handles, one_thread: PhantomData, rank: 0, size: 0, version };
        let mut provided = 0;
        // SAFETY: MPI_Init_thread takes NULL for the command line (MPI 2 and later) and writes one int.
        let code = unsafe {
            (mpi.calls.init_thread)(std::ptr::null_mut(), std::ptr::null_mut(), THREAD_SERIALIZED, &raw mut provided)
        };
        let failed = |what: String| EngineError::Library {
            library: library.name().into(),
            what,
            remedy: "start both ends with the same mpirun, of the same MPI".into(),
        };
        if code != 0 {
            return Err(failed("did not start".into()));
        }
        if provided < THREAD_SERIALIZED {
            return Err(failed("cannot be called from a measuring thread (MPI_THREAD_SERIALIZED)".into()));
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is started; the communicator is its own, the two ints live.
        let codes = unsafe {
            (mpi.calls.set_errhandler)(handles.world, handles.errors_return);
            [(mpi.calls.comm_rank)(handles.world, &raw mut rank), (mpi.calls.comm_size)(handles.world, &raw mut size)]
        };
        codes.into_iter().try_for_each(|code| mpi.checked(code)).map_err(|error| failed(error.to_string()))?;
        (mpi.rank, mpi.size) = (rank.unsigned_abs(), size.unsigned_abs());
        mpi.version = mpi.version();
        let abort = Abort { abort: mpi.calls.abort, world: handles.world };
        Ok((mpi, abort))
    }

    /// Sends `bytes` and returns when the memory may be used again. `between_polls` is called between two polls. A
    /// send cannot be cancelled: one that the other end does not receive within `limit_ns` aborts the whole job
    /// (MPI_Abort).
    #[inline]
    pub(crate) fn send(
        &self,
        to: u32,
        tag: c_int,
        bytes: &[u8],
        limit_ns: u64,
        between_polls: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut request: Request = 0;
        // SAFETY: the bytes and the request live until the loop below has seen the request complete; the ways out before
        // that end the process.
        let code = unsafe {
            (self.calls.isend)(
                bytes.as_ptr().cast(),
                length(bytes.len())?,
                self.handles.byte,
                to as c_int,
                tag,
                self.handles.world,
                &raw mut request,
            )
        };
        self.checked(code)?;
        let mut polls = 0u32;
        let mut trouble = None;
        let mut limit = Limit::new(limit_ns);
        loop {
            match self.complete(&mut request, None) {
                Ok(true) => return trouble.map_or(Ok(()), Err),
                Ok(false) => {}
                // A request whose send failed no longer exists (MPI 3.1, 3.7.3).
                Err(error) => return Err(error),
            }
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(POLLS_PER_CHECK) {
                if trouble.is_none() {
                    trouble = between_polls().err();
                }
                if limit.passed() {
                    self.abort(1);
                }
            }
        }
    }

    /// Begins to send a copy of `bytes`, in synchronous mode: `pending` completes once the other end has begun to
    /// receive it.
    pub(crate) fn send_marked(&self, to: u32, tag: c_int, bytes: &[u8], pending: &mut Pending) -> io::Result<()> {
        debug_assert!(pending.request.is_none(), "one at a time");
        pending.bytes.clear();
        pending.bytes.extend_from_slice(bytes);
        let mut request: Box<Request> = Box::new(0);
        // SAFETY: the bytes and the request belong to `pending`, which gives neither away before the request is complete.
        let code = unsafe {
            (self.calls.issend)(
                pending.bytes.as_ptr().cast(),
                length(bytes.len())?,
                self.handles.byte,
                to as c_int,
                tag,
                self.handles.world,
                &raw mut *request,
            )
        };
        self.checked(code)?;
        pending.request = Some(request);
        Ok(())
    }

    /// Whether `pending` has been received (or nothing is pending).
    #[inline]
    pub(crate) fn taken(&self, pending: &mut Pending) -> io::Result<bool> {
        let Some(request) = pending.request.as_mut() else { return Ok(true) };
        let done = self.complete(request, None);
        if !matches!(done, Ok(false)) {
            pending.request = None;
        }
        done
    }

    /// Receives a message of at most `into.len()` bytes; `None` when none has come within `limit_ns`. A longer one is an
    /// error.
    #[inline]
    pub(crate) fn receive_within(
        &self,
        limit_ns: u64,
        from: u32,
        tag: c_int,
        into: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut request: Request = 0;
        // SAFETY: the buffer and the request live until the request is complete or cancelled, below in all cases.
        let code = unsafe {
            (self.calls.irecv)(
                into.as_mut_ptr().cast(),
                length(into.len())?,
                self.handles.byte,
                from as c_int,
                tag,
                self.handles.world,
                &raw mut request,
            )
        };
        self.checked(code)?;
        let mut status = Status::default();
        let mut polls = 0u32;
        let mut limit = Limit::new(limit_ns);
        loop {
            if self.complete(&mut request, Some(&mut status))? {
                return self.count(&status).map(Some);
            }
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(POLLS_PER_CHECK) && limit.passed() {
                return self.take_back(&mut request);
            }
        }
    }

    /// Cancels a receive; if a message has begun to arrive after all, waits for it.
    fn take_back(&self, request: &mut Request) -> io::Result<Option<usize>> {
        let mut status = Status::default();
        let mut cancelled = 0;
        // SAFETY: an open request and a status with room; the wait ends either way (MPI 3.1, 3.8.4).
        unsafe {
            self.checked((self.calls.cancel)(request))?;
            self.checked((self.calls.wait)(request, &raw mut status))?;
            self.checked((self.calls.test_cancelled)(&raw const status, &raw mut cancelled))?;
        }
        if cancelled != 0 { Ok(None) } else { self.count(&status).map(Some) }
    }

    /// Length of the next message, if one has come.
    #[inline]
    pub(crate) fn probe(&self, from: u32, tag: c_int) -> io::Result<Option<usize>> {
        let mut status = Status::default();
        let mut there = 0;
        // SAFETY: the flag and the status live and have room.
        let code =
            unsafe { (self.calls.iprobe)(from as c_int, tag, self.handles.world, &raw mut there, &raw mut status) };
        self.checked(code)?;
        if there == 0 { Ok(None) } else { self.count(&status).map(Some) }
    }

    /// Receives a message that [`probe`](Self::probe) has seen and that fits.
    #[inline]
    pub(crate) fn receive(&self, from: u32, tag: c_int, into: &mut [u8]) -> io::Result<usize> {
        let mut status = Status::default();
        // SAFETY: the buffer lives for the call, which ends because the message is there.
        let code = unsafe {
            (self.calls.recv)(
                into.as_mut_ptr().cast(),
                length(into.len())?,
                self.handles.byte,
                from as c_int,
                tag,
                self.handles.world,
                &raw mut status,
            )
        };
        self.checked(code)?;
        self.count(&status)
    }

    /// Ends MPI in this process: nothing is left to call it with.
    pub(crate) fn finalize(self, _: Abort) {
        // SAFETY: MPI is started. No call follows: they need an `Mpi` or an `Abort`, of which `start` made one each.
        unsafe {
            (self.calls.finalize)();
        }
    }

    /// As [`Abort::abort`].
    fn abort(&self, code: c_int) -> ! {
        Abort { abort: self.calls.abort, world: self.handles.world }.abort(code)
    }

    #[inline]
    fn complete(&self, request: &mut Request, status: Option<&mut Status>) -> io::Result<bool> {
        let mut unused = Status::default();
        let mut done = 0;
        let status = status.unwrap_or(&mut unused);
        // SAFETY: an open request; flag and status live and have room.
        let code = unsafe { (self.calls.test)(request, &raw mut done, status) };
        self.checked(code)?;
        Ok(done != 0)
    }

    fn count(&self, status: &Status) -> io::Result<usize> {
        let mut count = 0;
        // SAFETY: a status that MPI has filled, and a live int.
        self.checked(unsafe { (self.calls.get_count)(status, self.handles.byte, &raw mut count) })?;
        usize::try_from(count).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    #[inline]
    fn checked(&self, code: c_int) -> io::Result<()> {
        if code == 0 { Ok(()) } else { Err(self.error(code)) }
    }

    #[cold]
    fn error(&self, code: c_int) -> io::Error {
        let mut text = [0; TEXT];
        let mut length = 0;
        // SAFETY: MPI writes a NUL-terminated text of at most MPI_MAX_ERROR_STRING (512 at most) bytes.
        unsafe {
            (self.calls.error_string)(code, text.as_mut_ptr(), &raw mut length);
        }
        io::Error::other(format!("MPI: {}", first_line(&text)))
    }

    fn version(&self) -> String {
        let mut text = [0; TEXT];
        let mut length = 0;
        // SAFETY: MPI writes at most MPI_MAX_LIBRARY_VERSION_STRING (8192 in MPICH, 256 in OpenMPI) bytes.
        unsafe {
            (self.calls.library_version)(text.as_mut_ptr(), &raw mut length);
        }
        first_line(&text)
    }
}

/// A time limit whose clock is first read at the first check: what arrives at once costs no clock read.
struct Limit {
    ns: u64,
    until_ns: Option<u64>,
}

impl Limit {
    fn new(ns: u64) -> Self {
        Self { ns, until_ns: None }
    }

    fn passed(&mut self) -> bool {
        let now = now_ns();
        now > *self.until_ns.get_or_insert(now.saturating_add(self.ns))
    }
}

/// Polls of a request between two other checks.
const POLLS_PER_CHECK: u32 = 64;
/// Room for any text of MPI.
const TEXT: usize = 8192;

fn length(bytes: usize) -> io::Result<c_int> {
    c_int::try_from(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "MPI counts bytes in an int"))
}

fn first_line(text: &[c_char; TEXT]) -> String {
    let bytes: Vec<u8> = text.iter().map(|byte| byte.cast_unsigned()).collect();
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy();
    // MPICH separates "MPICH Version:" from the number by a tab.
    text.lines().next().unwrap_or_default().replace('\t', " ").trim().trim_end_matches(',').to_owned()
}

fn calls(library: &Library) -> Result<Calls, EngineError> {
    Ok(Calls {
        init_thread: function!(library, c"MPI_Init_thread"),
        comm_rank: function!(library, c"MPI_Comm_rank"),
        comm_size: function!(library, c"MPI_Comm_size"),
        set_errhandler: function!(library, c"MPI_Comm_set_errhandler"),
        isend: function!(library, c"MPI_Isend"),
        issend: function!(library, c"MPI_Issend"),
        irecv: function!(library, c"MPI_Irecv"),
        recv: function!(library, c"MPI_Recv"),
        iprobe: function!(library, c"MPI_Iprobe"),
        test: function!(library, c"MPI_Test"),
        wait: function!(library, c"MPI_Wait"),
        cancel: function!(library, c"MPI_Cancel"),
        test_cancelled: function!(library, c"MPI_Test_cancelled"),
        get_count: function!(library, c"MPI_Get_count"),
        error_string: function!(library, c"MPI_Error_string"),
        library_version: function!(library, c"MPI_Get_library_version"),
        finalize: function!(library, c"MPI_Finalize"),
        abort: function!(library, c"MPI_Abort"),
    })
}
