//! The helper of an agent as a process: `thru helper`.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use control::helper::{HelperOptions, Listening, Packets, Powers, serve};
use host::confine::{self, User};

use super::agent::allowance;
use crate::failure::Failure;
use crate::setup;
use crate::signals::Signals;

/// What a helper does, and for whom.
pub struct HelperServer<'a> {
    /// The socket that it makes; `None` for a helper that an agent has started, which is at the other end of standard input.
    pub listen: Option<&'a Path>,
    /// The user whose agent may connect.
    pub user: &'a str,
    /// As in [`ServeOptions`](super::ServeOptions).
    pub tuning: &'a [String],
    /// Folder of the journal of changed settings.
    pub journal: Option<PathBuf>,
    /// Whether it loads TCP stacks.
    pub stacks: bool,
    /// The packet sockets that it opens.
    pub packets: Packets,
    /// Whether it sets congestion controls that are not open to every user.
    pub congestion: bool,
    /// Whether it sets socket buffers beyond the host's limits.
    pub buffers: bool,
    /// Gets each line of the log.
    pub log: fn(&str),
}

/// Serves until the agent that has started it ends, or a signal comes. Then all settings are restored.
///
/// # Errors
/// The socket or the journal cannot be used.
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
        Some(path) => Listening::On(listen(path, server.user)?),
        None => Listening::With(inherited()?),
    };
    let mut signals = Signals::catch()?;
    let options = HelperOptions { powers, log: Box::new(server.log) };
    setup::runtime()?.block_on(async {
        tokio::select! {
            served = serve(options, listening) => served.map_err(Failure::host),
            _ = signals.next() => Ok(()),
        }
    })
}

/// A new socket at `path`, to which only `user` can connect.
fn listen(path: &Path, user: &str) -> Result<UnixListener, Failure> {
    let failed = |error: io::Error| Failure::host(format!("cannot listen on {}: {error}", path.display()));
    let user = User::find(user)
        .map_err(failed)?
        .ok_or_else(|| Failure::usage(format!("`user {user}`: this host has no such user; make it")))?;
    // A socket that an earlier helper left; what is no socket stays, and the address is then in use.
    if std::fs::symlink_metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()))
    {
        std::fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    confine::give(path, &user).map_err(failed)?;
    Ok(listener)
}

/// The connection to the agent that has started this process.
fn inherited() -> Result<UnixStream, Failure> {
    let not_started =
        |_| Failure::usage("`thru serve` starts its helper itself; for another agent use `listen SOCKET`");
    let agent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(not_started)?);
    agent.local_addr().map_err(not_started)?;
    Ok(agent)
}
