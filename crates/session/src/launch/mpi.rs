//! `mpirun -n 2 thru ... --transport mpi`. MPI works only in the processes that mpirun started. Each of the two becomes a worker
//! and starts its supervisor as a child, without MPI's environment. The child of rank 0 is the same command, with the near end in
//! this process. The child of rank 1 is an agent, with the far end in this process. Rank 1 sends the agent's address to rank 0 over
//! MPI.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use command::Failure;
use command::setup::own_program;
use command::signals::CaughtSignals;
use engine::transport::mpi::{self, Rank};

use super::{Offer, SUPERVISES, far, network_identity, read_line, waiting_worker};

/// Time that the other process has to start.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Interval at which rank 1 checks whether rank 0 has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Serves this process's supervisor as its worker until the command has ended. Returns the exit code of the command.
///
/// # Errors
/// The supervisor cannot be started, or the other process is lost. `show` has shown the error.
pub fn run(show: impl Fn(&Failure)) -> Result<u8, Failure> {
    let rank = Rank::join()?;
    let ended = if rank.number() == 0 { near(&rank) } else { far(&rank) };
    match ended {
        Ok(code) => {
            rank.finish();
            Ok(code)
        }
        Err(failure) => {
            // Printed first: MPI_Abort ends this process, too.
            show(&failure);
            rank.abort(failure.code());
            Err(failure)
        }
    }
}

/// Serves as the agent of rank 1. Its worker is at the other end of standard input, to which it first writes its offer.
///
/// # Errors
/// Standard input is no socket, or the agent cannot listen.
pub fn serve(anywhere: bool) -> Result<u8, Failure> {
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| Failure::other(format!("cannot connect to the measuring process: {error}")))?;
    let socket = UnixStream::from(socket);
    let publish = move |offer: &Offer| {
        // If the write fails, the process has ended, which is noticed elsewhere.
        let _ = (&socket).write_all(offer.line().as_bytes());
    };
    far::serve(waiting_worker()?, anywhere, publish, || false)
}

/// Rank 0: the command itself.
fn near(rank: &Rank) -> Result<u8, Failure> {
    rank.send(&network_identity())?;
    let offer = rank.receive(START_LIMIT.as_nanos() as u64)?;
    if Offer::parse(&offer).is_none() {
        return Err(Failure::host(format!("the other MPI process started no agent: {}", offer.trim())));
    }
    let mut command = Command::new(own_program()?);
    command.args(std::env::args_os().skip(1)).env(SUPERVISES, offer);
    let (mut child, socket) = supervise(command)?;
    pass_on_interrupts(Some(child.id()))?;
    // Returns when the supervisor ends, which holds the other end.
    let _ = control::worker::serve_one(socket);
    let status =
        child.wait().map_err(|error| Failure::other(format!("cannot wait for the process of the command: {error}")))?;
    rank.end()?;
    match status.code() {
        Some(code) => Ok(u8::try_from(code).unwrap_or(1)),
        None => Err(Failure::other(format!("the process of the command was killed ({status})"))),
    }
}

/// Rank 1: an agent for rank 0.
fn far(rank: &Rank) -> Result<u8, Failure> {
    let elsewhere = rank.receive(START_LIMIT.as_nanos() as u64)? != network_identity();
    let started = own_program().map(Command::new).and_then(|mut command| {
        command.arg("launched").args(elsewhere.then_some("--anywhere"));
        supervise(command)
    });
    let (mut child, socket) = match started {
        Ok(started) => started,
        Err(failure) => {
            rank.send(&failure.to_string())?;
            return Err(failure);
        }
    };
    match offered(&socket) {
        Ok(offer) => rank.send(&offer)?,
        Err(error) => {
            rank.send("")?;
            return Err(Failure::host(format!("the agent of MPI process 1 did not start: {error}")));
        }
    }
    // mpirun ends both processes together; this one waits until the other has the results.
    pass_on_interrupts(None)?;
    std::thread::scope(|scope| {
        scope.spawn(|| control::worker::serve_one(socket));
        while !rank.has_ended() {
            std::thread::sleep(POLL_INTERVAL);
        }
        // Rank 0 has ended, perhaps without connecting.
        let _ = child.kill();
        let _ = child.wait();
    });
    Ok(0)
}

fn offered(socket: &UnixStream) -> io::Result<String> {
    socket.set_read_timeout(Some(START_LIMIT))?;
    let offer = read_line(socket)?;
    socket.set_read_timeout(None)?;
    Ok(offer)
}

/// Starts a supervisor whose standard input is a socket to this process.
fn supervise(mut command: Command) -> Result<(Child, UnixStream), Failure> {
    let failed = |error: io::Error| Failure::other(format!("cannot start a supervisor: {error}"));
    let (mine, theirs) = UnixStream::pair().map_err(failed)?;
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(mpi::is_launchers) {
            command.env_remove(name);
        }
    }
    // In its own process group, it outlives this process long enough to print its error.
    let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).process_group(0).spawn().map_err(failed)?;
    Ok((child, mine))
}

/// From now on, signals that end a process are passed on to the supervisor as SIGTERM, which ends the measurement in an orderly
/// way.
fn pass_on_interrupts(supervisor: Option<u32>) -> Result<(), Failure> {
    let mut signals = CaughtSignals::catch()?;
    std::thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            loop {
                signals.next().await;
                let number = supervisor.and_then(|number| rustix::process::Pid::from_raw(number.cast_signed()));
                if let Some(number) = number {
                    let _ = rustix::process::kill_process(number, rustix::process::Signal::TERM);
                }
            }
        });
    });
    Ok(())
}
