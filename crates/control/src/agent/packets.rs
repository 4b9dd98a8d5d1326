//! Captures of a trial's packets at this agent.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use engine::transport::names;
use host::Capturing;
use host::capture::{CaptureRequest, Own, Wanted, is_own};
use model::{Capture, CaptureSpec, IpProtocol, Pattern, Role, Spec};

use super::session_captures::{SessionCaptures, Unfetched};
use crate::helper::Helper;

/// Where an agent stores captured packets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Captures {
    /// The agent captures no packets.
    #[default]
    Refused,
    /// In a folder, and of each packet its headers only unless `payload` is set.
    In {
        /// The folder.
        folder: PathBuf,
        /// As many bytes as the coordinator requests.
        payload: bool,
    },
    /// In the folder that the coordinator names, or the current one: for an agent in the coordinator's process.
    AsRequested,
}

impl Captures {
    /// The agent's own folder for them.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::In { folder, .. } => Some(folder),
            Self::Refused | Self::AsRequested => None,
        }
    }
}

/// Why the packets of a trial are not captured.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoCapture {
    /// The agent was not started with that permission.
    #[error("this agent captures no packets: start it with `thru serve --allow-capture --token-file FILE`")]
    NotAllowed,
    /// The transport sends no packets of IP.
    #[error("packets of {transport} cannot be captured: use {}", names(|transport| transport.facts().ip.is_some()))]
    Transport {
        /// Its name.
        transport: String,
    },
    /// The folder for them cannot be made.
    #[error("cannot create {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The session has too many captures.
    #[error(transparent)]
    Unfetched(#[from] Unfetched),
}

/// A trial's connections, as far as they are known when its capture starts.
pub(super) struct Connections<'a> {
    /// The role of this end.
    pub(super) role: Role,
    /// The number of the trial.
    pub(super) trial: u32,
    /// Ports that the passive end listens on.
    pub(super) ports: Vec<u16>,
    /// Active end: the address that it connects to.
    pub(super) to: Option<IpAddr>,
    /// Passive end: its own address, from the control connection or the spec.
    pub(super) here: Option<IpAddr>,
    /// The coordinator's address and port.
    pub(super) coordinator: &'a str,
}

/// Starts the capture that `spec` requests, with packets of the helper; `None` without a request. A file that will be
/// fetched is added to `session_captures`.
pub(super) fn begin(
    captures: &Captures,
    session_captures: &mut SessionCaptures,
    helper: &Helper,
    spec: &Spec,
    connections: Connections<'_>,
) -> Option<Capturing> {
    let wanted = spec.capture.as_ref()?;
    // An agent in the coordinator's process writes the file to its final folder.
    let fetched = wanted.fetch_bytes.is_some() && *captures != Captures::AsRequested;
    let ready = || -> Result<CaptureRequest, NoCapture> {
        let order = request(captures, wanted, spec, connections)?;
        if fetched {
            session_captures.add(&order.file)?;
        }
        Ok(order)
    };
    Some(match ready() {
        Ok(order) => Capturing::start(&order, |tap| helper.packets(tap)),
        Err(why) => Capturing::missing(wanted.snaplen, why),
    })
}

fn request(
    captures: &Captures,
    wanted: &CaptureSpec,
    spec: &Spec,
    path: Connections<'_>,
) -> Result<CaptureRequest, NoCapture> {
    let folder = match captures {
        Captures::Refused => return Err(NoCapture::NotAllowed),
        Captures::In { folder, .. } => folder.clone(),
        Captures::AsRequested => wanted.folder.as_deref().unwrap_or(".").into(),
    };
    let Some(protocol) = spec.transport_facts().and_then(|facts| facts.ip).map(IpProtocol::number) else {
        return Err(NoCapture::Transport { transport: spec.transport.to_string() });
    };
    let unmade = |source| NoCapture::Folder { folder: folder.clone(), source };
    std::fs::create_dir_all(&folder).map_err(unmade)?;
    let folder = std::path::absolute(&folder).map_err(unmade)?;
    // The passive end does not know where connections will come from. Only a coordinator on its own host matters here, because
    // then the packets do not leave the host.
    let coordinator = path.coordinator.parse().map(|address: SocketAddr| address.ip()).ok();
    let peer = match path.role {
        Role::Active => path.to,
        Role::Passive => coordinator.filter(|address| is_own(*address)),
    };
    // Further subflows may go to other addresses.
    let address = path.to.filter(|_| !is_multipath(spec));
    Ok(CaptureRequest {
        file: file(&folder, path.role, path.trial),
        snaplen: wanted.snaplen,
        headers_only: matches!(captures, Captures::In { payload: false, .. }),
        wanted: Wanted { protocol, ports: path.ports, address },
        peer,
        here: path.here,
    })
}

/// The filter for the trial's own packets: those of its connections' sockets. With a connection for each transaction, those of
/// the far end's listener.
pub(super) fn own(role: Role, spec: &Spec, sockets: &[[SocketAddr; 2]]) -> Own {
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let connections: HashSet<[SocketAddr; 2]> = sockets.iter().map(|ends| ends.map(plain)).collect();
    let listener = |[here, there]: &[SocketAddr; 2]| if role == Role::Active { *there } else { *here };
    let endpoints = connections.iter().filter(|_| spec.pattern == Pattern::Crr).map(listener).collect();
    Own { connections, endpoints, multipath: is_multipath(spec) }
}

fn is_multipath(spec: &Spec) -> bool {
    spec.transport_facts().is_some_and(|facts| facts.multipath)
}

/// A unique name for each capture: time, trial and end.
fn file(folder: &Path, role: Role, trial: u32) -> PathBuf {
    let number = engine::random().map(u64::from_ne_bytes).unwrap_or_default();
    protocol::capture_file(folder, role, trial, (engine::unix_ns(), number))
}

/// Ends a capture; `None` after an internal failure.
pub(super) async fn end(capturing: Capturing) -> Option<Capture> {
    tokio::task::spawn_blocking(move || capturing.finish()).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(role: Role) -> Connections<'static> {
        Connections {
            role,
            trial: 4,
            ports: vec![6280],
            to: (role == Role::Active).then(|| IpAddr::from([192, 0, 2, 1])),
            here: Some(IpAddr::from([192, 0, 2, 1])),
            coordinator: "127.0.0.1:40000",
        }
    }

    #[test]
    fn only_packets_of_the_opened_sockets_are_kept() {
        let sockets = [["[::ffff:10.0.0.1]:4000", "[::ffff:10.0.0.2]:6280"].map(|text| text.parse().unwrap())];
        let ends: [SocketAddr; 2] = ["10.0.0.1:4000", "10.0.0.2:6280"].map(|text| text.parse().unwrap());
        let of = |role, transport, pattern| own(role, &Spec::new(transport, pattern), &sockets);
        let stream = of(Role::Active, "tcp", Pattern::Stream);
        assert_eq!(stream, Own { connections: [ends].into(), ..Own::default() });
        assert!(of(Role::Active, "mptcp", Pattern::Stream).multipath);
        assert_eq!(of(Role::Active, "tcp", Pattern::Crr).endpoints, [ends[1]].into());
        assert_eq!(of(Role::Passive, "tcp", Pattern::Crr).endpoints, [ends[0]].into());
    }

    #[test]
    fn an_agent_captures_only_with_permission() {
        let folder = tempfile::tempdir().unwrap();
        let allowed = Captures::In { folder: folder.path().join("deep/er"), payload: false };
        let wanted = CaptureSpec { snaplen: 96, folder: Some("/elsewhere".into()), fetch_bytes: Some(1) };
        let spec = |transport| Spec { capture: Some(wanted.clone()), ..Spec::new(transport, Pattern::Stream) };
        let tcp = spec("tcp");
        let refused = request(&Captures::Refused, &wanted, &tcp, path(Role::Passive)).unwrap_err();
        assert!(refused.to_string().contains("--allow-capture"));
        let far = request(&allowed, &wanted, &tcp, path(Role::Passive)).unwrap();
        assert!(far.file.starts_with(folder.path().join("deep/er")), "not where the coordinator says: {:?}", far.file);
        assert!(far.file.to_str().unwrap().ends_with("-trial5-far.pcapng"));
        assert_eq!((far.wanted.protocol, far.wanted.address, far.wanted.ports), (6, None, vec![6280]));
        // The coordinator's address is one of this host.
        assert_eq!(far.peer, Some(IpAddr::from([127, 0, 0, 1])));
        let near = request(&allowed, &wanted, &spec("quic"), path(Role::Active)).unwrap();
        assert_eq!((near.wanted.protocol, near.wanted.address), (17, near.peer));
        assert_eq!(request(&allowed, &wanted, &spec("mptcp"), path(Role::Active)).unwrap().wanted.address, None);
        assert!(request(&allowed, &wanted, &spec("shm"), path(Role::Active)).is_err());
        let mut session_captures = SessionCaptures::default();
        let nowhere = Helper::At("/nowhere".into());
        let none =
            begin(&allowed, &mut session_captures, &nowhere, &Spec::new("tcp", Pattern::Stream), path(Role::Active));
        assert!(none.is_none());
    }
}
