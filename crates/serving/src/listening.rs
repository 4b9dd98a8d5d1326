//! Who can reach an agent's helper: only the agent's user, which is one of its own.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

use command::Failure;
use control::helper::Powers;
use host::confine::User;
use rustix::fs::Mode;
use text::say;

/// Refuses to let a user change the host that other services share: each of them could do it.
pub(crate) fn refuse_shared(user: &User, powers: &Powers) -> Result<(), Failure> {
    if user.is_shared() && powers.change_host() {
        return Err(Failure::usage(say!(
            "other services may run as user {}, and could change settings, load TCP stacks or capture packets as the agent does: create a user for it (`useradd -r thru`), or name another one with `--user`",
            user.name
        )));
    }
    Ok(())
}

/// A socket to which only this user can connect, from its first moment. The process has no other threads yet, which would make files
/// with the same mask.
pub(crate) fn private_listener(path: &Path) -> io::Result<UnixListener> {
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    listener
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use control::helper::PacketRights;

    use super::*;

    #[test]
    fn only_its_user_can_connect_to_a_helpers_socket_whatever_the_mask() {
        let folder = tempfile::tempdir().unwrap();
        let before = rustix::process::umask(Mode::empty());
        let path = folder.path().join("helper.sock");
        drop(private_listener(&path).unwrap());
        assert_eq!(rustix::process::umask(before), Mode::empty(), "the mask is as before");
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_user_that_services_share_gets_nothing_that_changes_the_host() {
        let nobody = User { name: "nobody".into(), uid: 65_534, gid: 65_534 };
        let own = User { name: "thru".into(), uid: 990, gid: 990 };
        let harmless = Powers { buffers: true, congestion: true, ..Powers::none() };
        refuse_shared(&nobody, &harmless).unwrap();
        for powers in [
            Powers { tuning: true, ..harmless.clone() },
            Powers { stacks: true, ..harmless.clone() },
            Powers { packets: PacketRights::Headers, ..harmless },
        ] {
            refuse_shared(&own, &powers).unwrap();
            let refused = refuse_shared(&nobody, &powers).unwrap_err().to_string();
            assert!(refused.contains("useradd") && refused.contains("`--user`"), "{refused}");
        }
    }
}
