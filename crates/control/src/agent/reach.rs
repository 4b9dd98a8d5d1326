//! Which places an agent connects to because a coordinator elsewhere names them: those where another agent of the measurement
//! stands. It proves that by a voucher, with an answer that nobody else can give to a question in which nothing was chosen by the
//! coordinator. See ADR 0031.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use engine::transport::{Cookie, FlowHello, HELLO_BYTES, REACH_PROOF_BYTES, Transport, transport};
use model::Role;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::data_acceptor::Expectation;
use super::session::Addresses;
use super::{GREETING_LIMIT, Shared};
use crate::proto::auth;
use crate::proto::message::{Prepare, ReachabilityToken};

/// How long another agent may take to be reached, and to answer: two round trips on any path, and a lost packet.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// Addresses beyond those that it listens on at which an agent vouches for one coordinator.
const MOST_PLACES: usize = 8;
/// Connections to one of them that are answered at a time.
const MOST_CALLERS: usize = 16;

/// Where agents have proved to stand, while a coordinator has the machine: each is asked once.
#[derive(Default)]
pub(super) struct Reached(HashSet<SocketAddr>);

impl Reached {
    /// Why this agent does not connect where `prepare` says, if it does not. The reason is the same whatever is there. An order
    /// from within this process is the user's own.
    pub(super) async fn refuse(&mut self, prepare: &Prepare, addresses: Addresses) -> Option<String> {
        if prepare.role == Role::Passive || addresses.peer.is_none() || prepare.meet.is_empty() {
            return None;
        }
        // A spec that is wrong is refused with its own words.
        let transport = transport(prepare.spec.transport.as_str()).ok()?;
        if transport.capabilities().single_ended {
            return None;
        }
        if prepare.meet.len() > prepare.spec.processes as usize {
            return Some(format!("{} places for {} processes", prepare.meet.len(), prepare.spec.processes));
        }
        if !transport.meets_in_sight() {
            let name = transport.name();
            return Some(format!("an agent is the active end of {name} for its own user only: leave --from out"));
        }
        for place in &prepare.meet {
            let stands = match (transport.capabilities().one_machine, &place.path, place.address) {
                (true, Some(path), _) => is_agents_socket(path),
                (false, _, Some(address)) => self.stands(address, prepare.reach_token.as_ref(), addresses).await,
                _ => false,
            };
            if !stands {
                return Some(refusal(transport, place.address));
            }
        }
        None
    }

    async fn stands(
        &mut self,
        address: SocketAddr,
        reach_token: Option<&ReachabilityToken>,
        addresses: Addresses,
    ) -> bool {
        let mut host = address;
        host.set_port(0);
        if !may_be_named(address.ip(), addresses.here) {
            return false;
        }
        if !self.0.contains(&host) {
            let Some(reach_token) = reach_token.cloned() else { return false };
            let requested = tokio::task::spawn_blocking(move || is_known(host, &reach_token, PROOF_LIMIT)).await;
            if !requested.unwrap_or(false) {
                return false;
            }
            self.0.insert(host);
        }
        true
    }
}

fn refusal(transport: &dyn Transport, address: Option<SocketAddr>) -> String {
    match address {
        Some(address) if !transport.capabilities().one_machine => format!(
            "no agent of this measurement vouches for {}: for a coordinator elsewhere this agent connects only to such, and to \
             loopback and link-local addresses only where the coordinator came by one; run `thru serve` there, or leave --from out",
            address.ip()
        ),
        _ => format!(
            "that place is no socket of a measuring process: for a coordinator elsewhere this agent opens {} to such alone, of its \
             own user or root; run `thru serve` as the same user, or leave --from out",
            transport.name()
        ),
    }
}

/// Whether a coordinator that reached this agent at `here` may name that address at all.
pub(super) fn may_be_named(address: IpAddr, here: Option<IpAddr>) -> bool {
    let (address, here) = (address.to_canonical(), here.map(|here| here.to_canonical()));
    let link_local = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let broadcast = address == IpAddr::from([255, 255, 255, 255]);
    if address.is_unspecified() || address.is_multicast() || broadcast {
        return false;
    }
    (!address.is_loopback() || here.is_some_and(|here| here.is_loopback()))
        && (!link_local(address) || here.is_some_and(link_local))
}

/// Whether a path is that of a socket as measuring processes of this program make them, of this user or root. Its shape is judged
/// before the file system is asked, so that nothing is learnt of other files.
fn is_agents_socket(path: &Path) -> bool {
    let plain = path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.to_str().is_some();
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    let shaped = || -> Option<bool> {
        let folder = name(path.parent())?;
        let socket = name(Some(path))?;
        let (tag, process) = socket.strip_prefix("thru-")?.strip_suffix(".sock")?.split_once('-')?;
        let tagged = tag.len() == 12 && tag.bytes().all(|digit| digit.is_ascii_hexdigit());
        let numbered = !process.is_empty() && process.bytes().all(|digit| digit.is_ascii_digit());
        Some(folder.starts_with("thru-") && tagged && numbered)
    };
    let ours = |path: &Path| -> Option<std::fs::Metadata> {
        let found = std::fs::symlink_metadata(path).ok()?;
        let own = rustix::process::geteuid().as_raw();
        (found.uid() == own || found.uid() == 0).then_some(found)
    };
    plain
        && shaped() == Some(true)
        && path.parent().and_then(ours).is_some_and(|folder| folder.is_dir())
        && ours(path).is_some_and(|socket| socket.file_type().is_socket())
}

/// Whether an agent at that host knows the voucher. What is sent to its port looks random to whoever has no voucher, and is
/// nothing that the coordinator chose.
pub(super) fn is_known(mut host: SocketAddr, reach_token: &ReachabilityToken, limit: Duration) -> bool {
    let mut ask = || -> Option<bool> {
        let cookie: Cookie = auth::unhex(&reach_token.cookie)?.try_into().ok()?;
        host.set_port(reach_token.port?);
        let question = FlowHello::new(cookie, u32::MAX, u32::MAX).ok()?;
        let mut stream = TcpStream::connect_timeout(&host, limit).ok()?;
        stream.set_read_timeout(Some(limit)).ok()?;
        stream.write_all(&question.encode()).ok()?;
        let mut answer = [0; REACH_PROOF_BYTES];
        stream.read_exact(&mut answer).ok()?;
        Some(answer == question.reach_proof())
    };
    ask().unwrap_or(false)
}

/// How this agent vouches for itself while a coordinator has the machine.
#[derive(Default)]
pub(super) struct Vouching {
    known: Option<(Cookie, Expectation)>,
    /// Ports at addresses that the agent's own port does not cover.
    places: HashMap<IpAddr, (u16, JoinHandle<()>)>,
}

impl Vouching {
    /// A voucher for this agent, at `at` where that is named. Without a port, where it cannot stand there.
    pub(super) async fn reach_token(
        &mut self,
        shared: &Arc<Shared>,
        at: Option<IpAddr>,
    ) -> Result<ReachabilityToken, String> {
        let cookie = match &self.known {
            Some((cookie, _)) => *cookie,
            None => {
                let cookie: Cookie = auth::random().map_err(|error| error.to_string())?;
                self.known = Some((cookie, shared.data_acceptor.vouch(cookie)));
                cookie
            }
        };
        let port = match at {
            Some(at) if !shared.covers(at) => self.port_at(shared, at).await,
            _ => shared.port,
        };
        Ok(ReachabilityToken { port, cookie: auth::hex(&cookie) })
    }

    async fn port_at(&mut self, shared: &Arc<Shared>, at: IpAddr) -> Option<u16> {
        if let Some((port, _)) = self.places.get(&at) {
            return Some(*port);
        }
        if self.places.len() >= MOST_PLACES {
            return None;
        }
        let listener = TcpListener::bind((at, 0)).await.ok()?;
        let port = listener.local_addr().ok()?.port();
        self.places.insert(at, (port, tokio::spawn(answer(shared.clone(), listener))));
        Some(port)
    }
}

impl Drop for Vouching {
    fn drop(&mut self) {
        self.places.values().for_each(|(_, task)| task.abort());
    }
}

/// Answers who has a voucher, a few at a time.
async fn answer(shared: Arc<Shared>, listener: TcpListener) {
    let mut callers = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if callers.len() >= MOST_CALLERS {
            callers.join_next().await;
        }
        let shared = shared.clone();
        let exchange = async move {
            let mut hello = [0; HELLO_BYTES];
            stream.read_exact(&mut hello).await.ok()?;
            let hello =
                shared.data_acceptor.read(&hello).filter(|hello| shared.data_acceptor.vouches(&hello.cookie))?;
            stream.write_all(&hello.reach_proof()).await.ok()
        };
        callers.spawn(tokio::time::timeout(GREETING_LIMIT, exchange));
        while callers.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_voucher_is_proved_by_the_agent_that_gave_it_and_the_question_shows_nothing_of_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, cookie) = (listener.local_addr().unwrap(), *b"\r\nflush_all\r\n   ");
        let agent = std::thread::spawn(move || {
            let mut requested = Vec::new();
            for turn in 0..4 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut hello = [0; 32];
                stream.read_exact(&mut hello).unwrap();
                let answer = FlowHello::decode(&hello, [&cookie]).unwrap().reach_proof();
                // An agent; one that closes; an echo; one that repeats the first answer would be no better.
                let words: &[u8] = [&answer[..], b"", &hello[..16], b"KKKKKKKKKKKKKKKK"][turn];
                stream.write_all(words).unwrap();
                requested.push(hello);
            }
            requested
        });
        let reach_token = ReachabilityToken { port: Some(address.port()), cookie: auth::hex(&cookie) };
        let known = |reach_token: &ReachabilityToken| is_known(address, reach_token, Duration::from_secs(5));
        assert_eq!([(); 4].map(|()| known(&reach_token)), [true, false, false, false]);
        let requested = agent.join().unwrap();
        assert!(requested.iter().all(|hello| !hello.windows(4).any(|part| part == &cookie[..4])));
        assert_ne!(requested[0][8..], requested[1][8..]);
        assert!(!known(&ReachabilityToken { port: None, ..reach_token.clone() }));
        assert!(!known(&ReachabilityToken { cookie: "no hex".into(), ..reach_token }), "nobody is called");
    }

    #[test]
    fn loopback_and_the_link_are_named_by_who_came_that_way() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (address, here, may) in [
            ("192.0.2.1", "198.51.100.1", true),
            ("127.0.0.1", "198.51.100.1", false),
            ("127.0.0.2", "127.0.0.1", true),
            ("::1", "127.0.0.1", true),
            ("::ffff:127.0.0.1", "198.51.100.1", false),
            ("0.0.0.0", "127.0.0.1", false),
            ("::", "::1", false),
            ("169.254.169.254", "198.51.100.1", false),
            ("169.254.1.1", "169.254.1.2", true),
            ("fe80::1", "2001:db8::1", false),
            ("fe80::1", "fe80::2", true),
            ("224.0.0.1", "127.0.0.1", false),
            ("255.255.255.255", "127.0.0.1", false),
        ] {
            assert_eq!(may_be_named(ip(address), Some(ip(here))), may, "{address} from {here}");
        }
        assert!(!may_be_named(ip("127.0.0.1"), None));
    }

    #[test]
    fn only_sockets_of_measuring_processes_are_connected_to() {
        let folder = tempfile::Builder::new().prefix("thru-").tempdir().unwrap();
        let other = tempfile::Builder::new().prefix("else-").tempdir().unwrap();
        let name = "thru-0123456789ab-77.sock";
        let _sockets = [folder.path(), other.path()].map(|folder| UnixListener::bind(folder.join(name)).unwrap());
        assert!(is_agents_socket(&folder.path().join(name)));
        std::fs::write(folder.path().join("thru-0123456789ab-78.sock"), "").unwrap();
        let dots = folder.path().join("..").join(folder.path().file_name().unwrap()).join(name);
        for path in [
            other.path().join(name),
            folder.path().join("thru-0123456789ab-78.sock"),
            folder.path().join("thru-0123456789ab-79.sock"),
            folder.path().join("thru-0123456789xy-77.sock"),
            dots,
            "/etc/shadow".into(),
            "/nonexistent".into(),
            name.into(),
        ] {
            assert!(!is_agents_socket(&path), "{}", path.display());
        }
    }
}
