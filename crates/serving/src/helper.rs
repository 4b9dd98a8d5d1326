//! The helper of an agent as a process: `thru helper`. One that an agent has started is two processes: one serves, and one starts it
//! again if it is killed, so that what it had changed is put back while the agent lives.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use command::Failure;
use command::setup::{self, own_program};
use command::signals::CaughtSignals;
use control::helper::{HelperOptions, Lifeline, Listening, PacketRights, Powers, serve};
use host::confine::{self, User};
use rustix::thread::CapabilitySet;
use text::{Text, say};

use crate::agent::allowance;
use crate::listening::{private_listener, refuse_shared};

/// Time before a helper that was killed starts again: one that is killed at once each time takes little of the host.
const PAUSE: Duration = Duration::from_millis(200);

/// What a helper does, and for whom.
pub struct HelperServer<'a> {
    /// The socket that it makes; `None` for a helper that an agent has started, which is at the other end of standard input.
    pub listen: Option<&'a Path>,
    /// The user whose agent may connect.
    pub user: &'a str,
    /// As in [`ServeOptions`](crate::ServeOptions).
    pub tuning: &'a [String],
    /// Folder of the journal of changed settings.
    pub journal: Option<PathBuf>,
    /// Whether it loads TCP stacks.
    pub stacks: bool,
    /// The packets that it captures.
    pub packets: PacketRights,
    /// Whether it sets congestion controls that are not open to every user.
    pub congestion: bool,
    /// Whether it sets socket buffers beyond the host's limits.
    pub buffers: bool,
    /// Gets each line of the log.
    pub log: fn(&Text),
}

/// Serves until the agent that has started it ends, or a signal comes. Then all settings are restored.
///
/// # Errors
/// The socket or the journal cannot be used, or the user is one that other services share.
pub fn help(server: HelperServer<'_>) -> Result<(), Failure> {
    let powers = Powers {
        tuning: !server.tuning.is_empty(),
        allowance: allowance(server.tuning)?,
        journal: server.journal,
        stacks: server.stacks,
        stacks_for_any_user: true,
        packets: server.packets,
        congestion: server.congestion,
        buffers: server.buffers,
    };
    let listening = match server.listen {
        Some(path) => {
            let user = user(server.user, &powers)?;
            Listening::For(user.uid, listen(path, &user)?)
        }
        None => {
            let agent = inherited()?;
            let Some(listener) = inherited_listener() else {
                lower(&powers, server.log)?;
                return keep_alive(&agent, server.log);
            };
            Listening::With(agent, listener)
        }
    };
    lower(&powers, server.log)?;
    let mut signals = CaughtSignals::catch()?;
    let log = server.log;
    let options = HelperOptions { powers, log: Box::new(move |line| log(&line.into())) };
    setup::runtime()?.block_on(async {
        tokio::select! {
            served = serve(options, listening) => served.map_err(Failure::host),
            _ = signals.next() => Ok(()),
        }
    })
}

/// The user whose agent may connect.
fn user(name: &str, powers: &Powers) -> Result<User, Failure> {
    let failed = |error: io::Error| Failure::host(format!("cannot read the users: {error}"));
    let user = User::find(name)
        .map_err(failed)?
        .ok_or_else(|| Failure::usage(say!("`--user {name}`: this host has no such user; create it")))?;
    refuse_shared(&user, powers)?;
    Ok(user)
}

/// Gives up all rights but those that these powers need.
fn lower(powers: &Powers, log: fn(&Text)) -> Result<(), Failure> {
    let kept = confine::keep_for_helper(capabilities(powers));
    if !kept.map_err(|error| Failure::host(format!("cannot drop privileges: {error}")))? {
        log(&"this kernel cannot filter system calls".into());
    }
    Ok(())
}

/// The capabilities that these powers need (capabilities(7)).
fn capabilities(powers: &Powers) -> CapabilitySet {
    let network = powers.tuning || powers.stacks || powers.congestion || powers.buffers;
    let stacks = CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
    [
        (network, CapabilitySet::NET_ADMIN),
        (powers.stacks, stacks),
        (powers.packets != PacketRights::None, CapabilitySet::NET_RAW),
    ]
    .into_iter()
    .filter_map(|(needed, set)| needed.then_some(set))
    .collect()
}

/// A new socket at `path`, to which only `user` can connect.
fn listen(path: &Path, user: &User) -> Result<UnixListener, Failure> {
    let failed = |error: io::Error| Failure::host(format!("cannot listen on {}: {error}", path.display()));
    // A socket that an earlier helper left; what is no socket stays, and the address is then in use.
    if std::fs::symlink_metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()))
    {
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = private_listener(path).map_err(failed)?;
    confine::give(path, user).map_err(failed)?;
    Ok(listener)
}

/// Runs the helper of the agent at the other end of `agent`, and starts it again when it is killed: the next one restores what it has
/// left. Returns when the agent has ended, and its helper after it.
fn keep_alive(agent: &UnixStream, log: fn(&Text)) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::host(format!("cannot start the helper: {error}"));
    let Some(listener) = Lifeline::passed(agent).map_err(failed)? else { return Ok(()) };
    loop {
        let mut command = Command::new(own_program()?);
        command.args(std::env::args_os().skip(1));
        // A child inherits these two; it writes nothing to its standard output.
        command.stdin(Stdio::from(OwnedFd::from(agent.try_clone().map_err(failed)?)));
        command.stdout(Stdio::from(OwnedFd::from(listener.try_clone().map_err(failed)?)));
        let ended = command.status().map_err(failed)?;
        match (ended.signal(), ended.success()) {
            (Some(signal), _) => log(&say!("killed by signal {signal}; it restarts and restores the settings it left")),
            (None, true) => return Ok(()),
            // It has said why.
            (None, false) => return Err(Failure::host("the helper has ended")),
        }
        std::thread::sleep(PAUSE);
    }
}

/// The listening socket that [`keep_alive`] gives its child.
fn inherited_listener() -> Option<UnixListener> {
    let output = io::stdout();
    let listens = rustix::net::sockopt::socket_acceptconn(&output).unwrap_or_default();
    listens.then(|| Some(UnixListener::from(output.as_fd().try_clone_to_owned().ok()?))).flatten()
}

/// The connection to the agent that has started this process.
fn inherited() -> Result<UnixStream, Failure> {
    let not_started =
        |_| Failure::usage(say!("`thru serve` starts its own helper; for another agent use `--listen SOCKET`"));
    let agent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(not_started)?);
    agent.local_addr().map_err(not_started)?;
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_keeps_the_capabilities_that_its_flags_need() {
        let none = Powers::none();
        assert_eq!(capabilities(&none), CapabilitySet::empty());
        let buffers = Powers { buffers: true, ..none.clone() };
        assert_eq!(capabilities(&buffers), CapabilitySet::NET_ADMIN);
        let captures = Powers { packets: PacketRights::Headers, ..none.clone() };
        assert_eq!(capabilities(&captures), CapabilitySet::NET_RAW);
        let stacks = capabilities(&Powers { stacks: true, ..none });
        assert!(stacks.contains(CapabilitySet::BPF) && !stacks.contains(CapabilitySet::DAC_OVERRIDE));
    }
}
