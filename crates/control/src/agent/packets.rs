//! Captures of a trial's packets at this agent.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use host::Capturing;
use host::capture::{Order, Wanted, is_own};
use model::{Capture, CaptureSpec, Role, Spec};

use super::kept::Kept;
use crate::proto::auth;

/// Where an agent keeps the packets that coordinators want captured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Captures {
    /// Nowhere: it captures none.
    #[default]
    Refused,
    /// In this folder.
    In(PathBuf),
    /// In the folder that the coordinator names, or the current one: for an agent within the coordinator's process.
    AsAsked,
}

/// What is known of a trial's connections when its capture begins.
pub(super) struct Connections<'a> {
    /// Which end this is.
    pub(super) role: Role,
    /// The number of the trial.
    pub(super) trial: u32,
    /// Ports that the passive end takes connections at.
    pub(super) ports: Vec<u16>,
    /// Active end: where it connects to.
    pub(super) to: Option<IpAddr>,
    /// Passive end: its own address, as the coordinator reached it or the spec names it.
    pub(super) here: Option<IpAddr>,
    /// The coordinator's address and port.
    pub(super) coordinator: &'a str,
}

/// Begins the capture that `spec` asks for; `None` where it asks for none. A file that is to be fetched goes into `kept`.
pub(super) fn begin(
    captures: &Captures,
    kept: &mut Kept,
    spec: &Spec,
    connections: Connections<'_>,
) -> Option<Capturing> {
    let wanted = spec.capture.as_ref()?;
    // What an agent within the coordinator's process captures is where it is wanted.
    let fetched = wanted.fetch_bytes.is_some() && *captures != Captures::AsAsked;
    let ready = order(captures, wanted, spec, connections)
        .and_then(|order| if fetched { kept.add(&order.file).map(|()| order) } else { Ok(order) });
    Some(match ready {
        Ok(order) => Capturing::start(&order),
        Err(why) => Capturing::missing(wanted.snaplen, why),
    })
}

fn order(captures: &Captures, wanted: &CaptureSpec, spec: &Spec, path: Connections<'_>) -> Result<Order, String> {
    let folder = match captures {
        Captures::Refused => {
            return Err(
                "this agent captures no packets: start it with `thru serve --allow-capture --token-file FILE`".into()
            );
        }
        Captures::In(folder) => folder.clone(),
        Captures::AsAsked => wanted.folder.as_deref().unwrap_or(".").into(),
    };
    let transport = spec.transport.as_str();
    let protocol = match transport {
        "tcp" | "mptcp" | "tls" => 6,
        "udp" | "quic" => 17,
        _ => return Err(format!("{transport} has no packets of its own that could be told from others")),
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let folder = std::path::absolute(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // The passive end does not know where connections will come from; a coordinator on its own host is the case that matters,
    // for then they do not leave it.
    let coordinator = path.coordinator.parse().map(|address: SocketAddr| address.ip()).ok();
    let peer = match path.role {
        Role::Active => path.to,
        Role::Passive => coordinator.filter(|address| is_own(*address)),
    };
    // MPTCP's further subflows may go to other addresses.
    let address = path.to.filter(|_| transport != "mptcp");
    Ok(Order {
        file: file(&folder, path.role, path.trial),
        snaplen: wanted.snaplen,
        wanted: Wanted { protocol, ports: path.ports, address },
        peer,
        here: path.here,
    })
}

/// A name of its own for each capture: when, which trial, which end.
pub(crate) fn file(folder: &Path, role: Role, trial: u32) -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mark = auth::random::<3>().map(|bytes| auth::hex(&bytes)).unwrap_or_default();
    let end = match role {
        Role::Active => "near",
        Role::Passive => "far",
    };
    folder.join(format!("thru-{seconds}-{mark}-trial{}-{end}.pcapng", trial.saturating_add(1)))
}

/// Ends a capture; `None` where that went wrong within this process.
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
    fn an_agent_captures_only_where_it_was_allowed_to() {
        let folder = tempfile::tempdir().unwrap();
        let allowed = Captures::In(folder.path().join("deep/er"));
        let wanted = CaptureSpec { snaplen: 96, folder: Some("/elsewhere".into()), fetch_bytes: Some(1) };
        let spec = |transport| Spec { capture: Some(wanted.clone()), ..Spec::new(transport, "stream") };
        let tcp = spec("tcp");
        let refused = order(&Captures::Refused, &wanted, &tcp, path(Role::Passive)).unwrap_err();
        assert!(refused.contains("--allow-capture"));
        let far = order(&allowed, &wanted, &tcp, path(Role::Passive)).unwrap();
        assert!(far.file.starts_with(folder.path().join("deep/er")), "not where the coordinator says: {:?}", far.file);
        assert!(far.file.to_str().unwrap().ends_with("-trial5-far.pcapng"));
        assert_eq!((far.wanted.protocol, far.wanted.address, far.wanted.ports), (6, None, vec![6280]));
        // The coordinator's address is one of this host.
        assert_eq!(far.peer, Some(IpAddr::from([127, 0, 0, 1])));
        let near = order(&allowed, &wanted, &spec("quic"), path(Role::Active)).unwrap();
        assert_eq!((near.wanted.protocol, near.wanted.address), (17, near.peer));
        assert_eq!(order(&allowed, &wanted, &spec("mptcp"), path(Role::Active)).unwrap().wanted.address, None);
        assert!(order(&allowed, &wanted, &spec("shm"), path(Role::Active)).is_err());
        let mut kept = Kept::default();
        assert!(begin(&allowed, &mut kept, &Spec::new("tcp", "stream"), path(Role::Active)).is_none());
    }
}
