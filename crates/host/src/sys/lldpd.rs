//! lldpd, queried through its own client: the protocol of its socket changes with its version.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Where distributions place its socket.
const SOCKETS: [&str; 3] = ["/run/lldpd.socket", "/run/lldpd/lldpd.socket", "/var/run/lldpd.socket"];
/// Time limit: an inventory must not wait for a daemon that hangs.
const LIMIT: Duration = Duration::from_secs(1);

/// The output of `lldpcli -f json show neighbors`.
pub(super) fn neighbours() -> io::Result<String> {
    if !SOCKETS.iter().any(|socket| Path::new(socket).exists()) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "lldpd is not running"));
    }
    if elsewhere() {
        // Interfaces of the same name are different ones there.
        return Err(io::Error::other("lldpd runs in another network namespace"));
    }
    let requested = ["-f", "json", "show", "neighbors"];
    let silent = || Stdio::null();
    let mut child =
        Command::new("lldpcli").args(requested).stdin(silent()).stdout(Stdio::piped()).stderr(silent()).spawn()?;
    let (sender, receiver) = mpsc::channel();
    if let Some(mut output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = output.read_to_string(&mut text).map(|_| text);
            // Nothing receives it after the time limit.
            let _ = sender.send(read);
        });
    }
    let answer = receiver.recv_timeout(LIMIT);
    let _ = child.kill();
    let status = child.wait()?;
    match answer {
        Ok(text) if status.success() => text,
        Ok(_) => Err(io::Error::other(
            "lldpcli has no permission to query lldpd (run as root or as a member of \
            lldpd's group)",
        )),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "lldpd did not answer within a second")),
    }
}

/// Whether this process is in another network namespace than the host's services. A process that may not find out is
/// usually in theirs.
fn elsewhere() -> bool {
    let namespace = |process: &str| std::fs::metadata(format!("/proc/{process}/ns/net")).map(|found| found.ino()).ok();
    namespace("self").zip(namespace("1")).is_some_and(|(own, first)| own != first)
}
