//! What a measurement needs on this host before it begins: the store, the token, the signals, and the options of an agent
//! within this process.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bus::{BusAccess, Buses};
use control::agent::{AgentOptions, Captures, Limits, Machine, Tuning, Workers};
use control::helper::{Helper, PacketRights, Powers};
use control::proof::auth::Token;
use control::proof::code::Code;
use control::{Access, AgentKey, Answers, ControlError};
use host::tune::Allowance;
use store::Store;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::agent_keys;
use crate::failure::Failure;
use crate::files::read_secret;
use crate::host_aliases::UserKeys;
use crate::scratch::Scratch;
use crate::signals::{CaughtSignals, StopRequest};
use crate::{citation, config};

/// The recorder of a run, in the store at `path`, or the default one.
pub fn recorder(path: Option<&Path>) -> Result<store::Recorder, Failure> {
    Ok(open_store(path)?.recorder()?)
}

/// The store at `path`, or the default one.
pub fn open_store(path: Option<&Path>) -> Result<Store, Failure> {
    Ok(Store::open(&store_path(path)?)?)
}

/// The same to read from it: a file that does not exist is not made.
pub fn read_store(path: Option<&Path>) -> Result<Store, Failure> {
    let path = store_path(path)?;
    if !path.exists() {
        return Err(Failure::output(format!("there is no store {}: no run has been stored there", path.display())));
    }
    Ok(Store::open(&path)?)
}

/// `path`, or that of the default store. Nothing is made.
pub fn store_path(path: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(match path {
        Some(path) => path.to_owned(),
        None => Store::default_path()?,
    })
}

/// The runtime of a command: one thread for its connections and its clock.
///
/// # Errors
/// The kernel refuses its files.
pub fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(|error| Failure::other(format!("cannot start: {error}")))
}

/// The file of this program, which starts itself for its workers and agents.
///
/// # Errors
/// The kernel does not name it.
pub fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::other(format!("cannot find the file of this program: {error}")))
}

/// The command line of this process, as a user types it.
#[must_use]
pub fn command_line() -> Vec<String> {
    std::iter::once("thru".to_owned()).chain(config::words().into_iter().skip(1)).collect()
}

/// Becomes true at the first signal that requests the end. The second one calls `exit`. SIGHUP does not count as a second
/// one: several arrive when a terminal closes, and the settings must still be restored.
pub fn watch_for_interrupts(exit: fn() -> !) -> Result<watch::Receiver<bool>, Failure> {
    let mut signals = CaughtSignals::catch()?;
    let (stop, cancel) = watch::channel(false);
    tokio::spawn(async move {
        let mut urgent = 0;
        loop {
            urgent += u32::from(signals.next().await != StopRequest::Hangup);
            if urgent > 1 {
                exit();
            }
            let _ = stop.send(true);
        }
    });
    Ok(cancel)
}

/// The folder of the journal of settings, if THRU_JOURNAL names one.
pub fn journal() -> Option<PathBuf> {
    std::env::var_os("THRU_JOURNAL").map(PathBuf::from)
}

/// A folder for sockets between processes of this machine; it is removed when dropped.
pub fn socket_directory() -> Result<Scratch, Failure> {
    Scratch::new().map_err(|error| no_socket_directory(&error))
}

/// The failure to make such a folder.
pub fn no_socket_directory(error: &io::Error) -> Failure {
    Failure::host(format!("cannot make a folder for sockets: {error}; set TMPDIR to a writable folder"))
}

/// Options of an agent within this process.
pub fn local_options(directory: &Path) -> Result<AgentOptions, Failure> {
    Ok(AgentOptions {
        version: crate::VERSION.into(),
        workers: Workers::Program { path: own_program()?, limits: None },
        token: None,
        guests: None,
        machine: Machine::new(1),
        limits: Limits { hold_ns: u64::MAX / 2, ..Limits::default() },
        allow_stacks: true,
        results: None,
        bus: None,
        metrics: None,
        tuning: Tuning { allowed: true, grace: Duration::ZERO },
        helper: Helper::Here(Arc::new(Powers {
            tuning: true,
            allowance: Allowance::All,
            journal: journal(),
            stacks: true,
            stacks_for_any_user: false,
            packets: PacketRights::Whole,
            congestion: false,
            buffers: false,
        })),
        directory: directory.to_owned(),
        once: false,
        captures: Captures::Refused,
        vanished_after: Duration::from_secs(2),
        selftest: citation::from_store(None),
        log: Box::new(|_| {}),
        listening: Box::new(|_| {}),
    })
}

/// Reads a token file.
pub fn token(path: Option<&Path>) -> Result<Option<Token>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = read_secret(path)
        .map_err(|error| Failure::usage(format!("cannot read the token file {}: {error}", path.display())))?;
    Token::new(&text)
        .map(Some)
        .ok_or_else(|| {
            Failure::usage(format!(
                "the token file {} has no token of at least 128 random bits: make one with `thru token new -o FILE` and copy it to both hosts",
                path.display()
            ))
        })
}

/// How this command and the agents that it connects to recognize each other.
///
/// # Errors
/// The token file cannot be used.
pub fn access(token_file: Option<&Path>) -> Result<Access, Failure> {
    let token = token(token_file)?;
    Ok(Access {
        own_key: own_key(token.as_ref()),
        token,
        code: None,
        keys: Box::new(UserKeys::of_user()),
        buses: buses()?,
        answers: Answers::default(),
    })
}

/// The key that agents may know this user by. With a token none is needed.
#[must_use]
pub fn own_key(token: Option<&Token>) -> Option<AgentKey> {
    if token.is_some() { None } else { agent_keys::own() }
}

/// The same with the code of an agent's invitation, by which the agent gets to know this user's key.
///
/// # Errors
/// This user has no key, and none can be made.
pub fn access_with_code(code: &Code) -> Result<Access, Failure> {
    let file = agent_keys::key_file(None).ok_or_else(agent_keys::no_home)?;
    let own_key = Some(agent_keys::load_or_make(&file)?);
    Ok(Access { code: Some(code.clone()), own_key, ..access(None)? })
}

/// How this user proves itself to buses: `THRU_BUS_CREDS` and `THRU_BUS_CA` name the files.
///
/// # Errors
/// A file cannot be used.
pub fn bus_access() -> Result<BusAccess, Failure> {
    let file = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let access = BusAccess::read(file("THRU_BUS_CREDS").as_deref(), file("THRU_BUS_CA").as_deref());
    access.map_err(|error| ControlError::from(error).into())
}

/// The buses by which agents are reached, none of which is connected yet.
///
/// # Errors
/// As [`bus_access`].
pub fn buses() -> Result<Buses, Failure> {
    Ok(Buses::new(bus_access()?))
}

/// Writes a new token into a new file with mode 0600.
///
/// # Errors
/// When the file exists already, or cannot be written.
pub fn write_token(path: &Path) -> io::Result<()> {
    let line = fresh_token()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(line.as_bytes())
}

/// A new token as a line of text.
///
/// # Errors
/// The kernel gives no random bits.
pub fn fresh_token() -> io::Result<String> {
    Ok(Token::fresh()? + "\n")
}

/// A seed from the clock.
pub fn clock_seed() -> u64 {
    engine::unix_ns() % 1_000_000_000
}
