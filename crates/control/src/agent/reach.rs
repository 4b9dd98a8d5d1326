//! Where an agent may connect on behalf of a coordinator on another host: only to addresses of another agent of the same
//! measurement. That agent proves itself with a reachability token: it answers a challenge that only it can answer, and the
//! coordinator chooses no byte of the challenge. See ADR 0031.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::transport::{Cookie, FlowHello, HELLO_BYTES, REACH_PROOF_BYTES, at_port, is_link_local, scoped, transport};
use model::Role;
use text::Said;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::Shared;
use super::addresses::{Addresses, OVER_BUS};
use super::budget::Budget;
use super::data_acceptor::Registration;
use super::path_probe::Probed;
use protocol::message::{Prepare, ReachabilityToken};

/// Time limit for another agent to connect and to answer on a short path: two round trips, and a lost packet.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// The same before a path probe, which a measurement can do without.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// Most addresses, beyond the agent's own listening addresses, at which it answers for one coordinator.
const MAX_EXTRA_ADDRESSES: usize = 8;
/// Most connections to one of them that are answered at the same time.
const MAX_CHALLENGES: usize = 16;
/// Most addresses of a name that are tried.
const MOST_OF_A_NAME: usize = 4;

/// Challenges that may fail for one client: a burst of this many, then this many per second. Without a limit, a client that requests
/// random hosts and ports would learn from the time that a refusal takes what is there.
const FAILURES: u32 = 32;
const FAILURES_PER_SECOND: f64 = 0.1;

/// Hosts whose agents have proved themselves while a coordinator has the machine: each is challenged once.
#[derive(Default)]
pub(super) struct ProvenHosts {
    /// Where each host was found, by the address that the coordinator gave.
    places: HashMap<SocketAddr, SocketAddr>,
}

/// Why an agent does not connect where a coordinator on another host wants it to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub(super) enum ReachError {
    /// There are more addresses than processes that connect to one.
    #[error("{count} rendezvous addresses exceed the number of worker processes ({processes})")]
    Rendezvous { count: usize, processes: u32 },
    /// The ends of the transport meet where an agent cannot check it.
    #[error("an agent on another host cannot be the active end of {transport}: leave `--from` out")]
    ActiveEnd { transport: &'static str },
    /// No agent of the measurement is there.
    #[error(
        "no agent of this measurement proved a reachability token at {ip}: for a client on another host, this agent connects \
         only to agents that do, and to loopback and link-local addresses only if the client connected through one; run \
         `thru serve` there, leave out `--from`, or, if this host reaches that one at another address, set it as `--data` in \
         the fleet"
    )]
    NoProof { ip: IpAddr },
    /// The path is not a socket of a worker process.
    #[error(
        "the path is not the socket of a worker process: for a client on another host this agent connects {transport} only \
         to sockets of its own user or root; run `thru serve` as the same user, or leave `--from` out"
    )]
    NoSocket { transport: &'static str },
}

/// Who challenges, and how.
struct Challenger {
    coordinator: IpAddr,
    /// This agent's address for the coordinator.
    here: Option<IpAddr>,
    reach_token: Option<ReachabilityToken>,
    challenges: Challenges,
    limit: Duration,
}

impl ProvenHosts {
    /// Refuses to connect to the addresses of `prepare` where no agent proves itself. Where a host is at another address for this agent,
    /// `prepare` has that one afterwards. The text does not depend on what is at an address. A coordinator in this process is the user
    /// and is not restricted.
    pub(super) async fn locate(
        &mut self,
        prepare: &mut Prepare,
        addresses: Addresses,
        shared: &Shared,
    ) -> Result<(), ReachError> {
        let Some(coordinator) = addresses.peer else { return Ok(()) };
        if prepare.role == Role::Passive || prepare.rendezvous.is_empty() {
            return Ok(());
        }
        // An invalid spec is refused elsewhere, with a message of its own.
        let Ok(transport) = transport(prepare.spec.transport.as_str()) else { return Ok(()) };
        if transport.capabilities().single_ended {
            return Ok(());
        }
        let (count, processes) = (prepare.rendezvous.len(), prepare.spec.processes);
        if count > processes as usize {
            return Err(ReachError::Rendezvous { count, processes });
        }
        if !transport.meets_in_sight() {
            return Err(ReachError::ActiveEnd { transport: transport.name() });
        }
        let challenger = Challenger {
            coordinator,
            here: addresses.here,
            reach_token: prepare.reach_token.clone(),
            challenges: shared.challenges.clone(),
            limit: PROOF_LIMIT + Duration::from_nanos(prepare.path.patience_ns),
        };
        for target in &mut prepare.rendezvous {
            let proven = match (transport.facts().one_host, &target.path, target.address) {
                (true, Some(path), _) => is_worker_socket(path, &shared.options.directory),
                (false, _, Some(address)) => {
                    let place = self.place(address, target.name.as_deref(), &challenger).await;
                    target.address = place.or(target.address);
                    place.is_some()
                }
                _ => false,
            };
            if !proven {
                return Err(match target.address {
                    Some(address) if !transport.facts().one_host => ReachError::NoProof { ip: address.ip() },
                    _ => ReachError::NoSocket { transport: transport.name() },
                });
            }
        }
        Ok(())
    }

    /// What may be probed if a coordinator asks for the host at `peer`, or for its own host if it gives none: the coordinator's host, this
    /// host, or one whose agent proves itself. A coordinator in this process is the user and may probe any host.
    pub(super) async fn probed(
        &mut self,
        peer: Option<SocketAddr>,
        name: Option<&str>,
        reach_token: Option<ReachabilityToken>,
        addresses: Addresses,
        challenges: &Challenges,
    ) -> Probed {
        let own = addresses.peer.map(|coordinator| scoped(coordinator, 0, addresses.scope));
        let Some(peer) = peer.or(own).filter(|peer| peer.ip() != OVER_BUS) else { return Probed::Nothing };
        let Some(coordinator) = addresses.peer else { return Probed::Host(peer) };
        if peer.ip().to_canonical() == coordinator.to_canonical() || host::capture::is_own(peer.ip()) {
            return Probed::Host(peer);
        }
        let (challenges, limit) = (challenges.clone(), PROBE_LIMIT);
        let challenger = Challenger { coordinator, here: addresses.here, reach_token, challenges, limit };
        self.place(peer, name, &challenger).await.map_or(Probed::Refused(peer.ip()), Probed::Host)
    }

    /// Where the host is that the coordinator knows by an address and perhaps by a name; `None` if no agent proves itself.
    async fn place(&mut self, address: SocketAddr, name: Option<&str>, challenger: &Challenger) -> Option<SocketAddr> {
        let key = at_port(address, 0);
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => *self.places.entry(key).or_insert(challenger.find(key, name).await?),
        };
        Some(at_port(place, address.port()))
    }
}

impl Challenger {
    /// Where the host proves itself: at the coordinator's address, or at one that its name has for this host. A host with several
    /// networks may be known to the coordinator by one that this host is not on.
    async fn find(&self, address: SocketAddr, name: Option<&str>) -> Option<SocketAddr> {
        if self.proves(address).await {
            return Some(address);
        }
        for other in self.addresses_of(name?, address).await {
            if self.proves(other).await {
                // The look-up was worth it. What failed before it still counts: else a name of the client's own would make it free.
                self.challenges.give_back(self.coordinator);
                return Some(other);
            }
        }
        None
    }

    /// Whether an agent of the measurement is at `host`.
    async fn proves(&self, host: SocketAddr) -> bool {
        if !may_be_named(host.ip(), self.here) {
            return false;
        }
        let Some(reach_token) = self.reach_token.clone() else { return false };
        let (challenges, coordinator, limit) = (self.challenges.clone(), self.coordinator, self.limit);
        let challenge = move || challenges.is_known(coordinator, host, &reach_token, limit);
        tokio::task::spawn_blocking(challenge).await.unwrap_or(false)
    }

    /// Further addresses of a host by its name, of the family of the one that is known. To ask for a name counts as a challenge that
    /// failed, so that a client has few names looked up.
    async fn addresses_of(&self, name: &str, known: SocketAddr) -> Vec<SocketAddr> {
        if !self.challenges.spend(self.coordinator) {
            return Vec::new();
        }
        let found = tokio::time::timeout(self.limit, tokio::net::lookup_host((name, 0))).await;
        let Ok(Ok(found)) = found else { return Vec::new() };
        let like = |other: &SocketAddr| *other != known && other.is_ipv4() == known.is_ipv4();
        found.filter(like).take(MOST_OF_A_NAME).collect()
    }
}

/// How often challenges for a client may fail.
#[derive(Clone)]
pub(super) struct Challenges(Arc<Mutex<Budget>>);

impl Default for Challenges {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Budget::new(FAILURES, FAILURES_PER_SECOND))))
    }
}

impl Challenges {
    /// Whether `coordinator` may have something tried that may fail; it counts as failed.
    fn spend(&self, coordinator: IpAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spend(coordinator, Instant::now())
    }

    /// What was tried last for `coordinator` does not count.
    fn give_back(&self, coordinator: IpAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).give_back(coordinator);
    }

    /// Whether an agent at `host` knows the token. Without a connection it is false if too many challenges for `coordinator` failed.
    pub(super) fn is_known(
        &self,
        coordinator: IpAddr,
        host: SocketAddr,
        reach_token: &ReachabilityToken,
        limit: Duration,
    ) -> bool {
        if !self.spend(coordinator) {
            return false;
        }
        let known = is_known(host, reach_token, limit);
        if known {
            self.give_back(coordinator);
        }
        known
    }
}

/// Whether a coordinator that connected to this agent at `here` may use that address at all.
fn may_be_named(address: IpAddr, here: Option<IpAddr>) -> bool {
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

/// Whether a path is the socket of a worker process of this user or root, in a folder beside `own`, where all agents of a host make
/// theirs. The name is checked before the file system is read, so that nothing about other files is disclosed.
fn is_worker_socket(path: &Path, own: &Path) -> bool {
    let plain = path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        && path.to_str().is_some();
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    let well_named = || -> Option<bool> {
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
        && well_named() == Some(true)
        && path.parent().and_then(Path::parent) == own.parent()
        && path.parent().and_then(ours).is_some_and(|folder| folder.is_dir())
        && ours(path).is_some_and(|socket| socket.file_type().is_socket())
}

/// Whether an agent at that host knows the token. The challenge looks random without the token, and the coordinator chooses no
/// byte of it.
fn is_known(mut host: SocketAddr, reach_token: &ReachabilityToken, limit: Duration) -> bool {
    let mut challenge = || -> Option<bool> {
        let cookie: Cookie = hex::decode(&reach_token.cookie).ok()?.try_into().ok()?;
        host.set_port(reach_token.port?);
        let hello = FlowHello::new(cookie, u32::MAX, u32::MAX).ok()?;
        let mut stream = TcpStream::connect_timeout(&host, limit).ok()?;
        stream.set_read_timeout(Some(limit)).ok()?;
        stream.write_all(&hello.encode()).ok()?;
        let mut answer = [0; REACH_PROOF_BYTES];
        stream.read_exact(&mut answer).ok()?;
        Some(answer == hello.reach_proof())
    };
    challenge().unwrap_or(false)
}

/// The reachability token of this agent while a coordinator has the machine.
#[derive(Default)]
pub(super) struct IssuedTokens {
    cookie: Option<(Cookie, Registration)>,
    /// Ports at addresses that the agent's own port does not cover.
    extra_ports: HashMap<IpAddr, (u16, JoinHandle<()>)>,
}

impl IssuedTokens {
    /// Where workers listen that need a listener of their own: at the address `here` of the control connection, or like the agent's port at
    /// all addresses if the near end is on another host, which may reach this one at another address than the coordinator does.
    pub(super) fn listen_on(&self, here: Option<IpAddr>, shared: &Shared) -> Option<IpAddr> {
        let here = here?;
        let any = if here.to_canonical().is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        let anywhere = self.cookie.is_some() && !is_link_local(here) && shared.covers(any);
        Some(if anywhere { any } else { here })
    }

    /// A reachability token for this agent, at the address `at` if given. Without a port if the agent cannot listen there.
    pub(super) async fn reach_token(
        &mut self,
        shared: &Arc<Shared>,
        at: Option<IpAddr>,
    ) -> io::Result<ReachabilityToken> {
        let cookie = match &self.cookie {
            Some((cookie, _)) => *cookie,
            None => {
                let cookie: Cookie = engine::random()?;
                self.cookie = Some((cookie, shared.data_acceptor.register_token(cookie)));
                cookie
            }
        };
        let port = match at {
            Some(at) if !shared.covers(at) => self.port_at(shared, at).await,
            _ => shared.port,
        };
        Ok(ReachabilityToken { port, cookie: hex::encode(cookie) })
    }

    async fn port_at(&mut self, shared: &Arc<Shared>, at: IpAddr) -> Option<u16> {
        if let Some((port, _)) = self.extra_ports.get(&at) {
            return Some(*port);
        }
        if self.extra_ports.len() >= MAX_EXTRA_ADDRESSES {
            return None;
        }
        let listener = TcpListener::bind((at, 0)).await.ok()?;
        let port = listener.local_addr().ok()?.port();
        self.extra_ports.insert(at, (port, tokio::spawn(answer(shared.clone(), listener))));
        Some(port)
    }
}

impl Drop for IssuedTokens {
    fn drop(&mut self) {
        self.extra_ports.values().for_each(|(_, task)| task.abort());
    }
}

/// Answers holders of the token, a few at the same time.
async fn answer(shared: Arc<Shared>, listener: TcpListener) {
    let mut challenges = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if challenges.len() >= MAX_CHALLENGES {
            challenges.join_next().await;
        }
        let shared = shared.clone();
        let exchange = async move {
            let mut hello = [0; HELLO_BYTES];
            stream.read_exact(&mut hello).await.ok()?;
            let hello =
                shared.data_acceptor.read(&hello).filter(|hello| shared.data_acceptor.is_token(&hello.cookie))?;
            stream.write_all(&hello.reach_proof()).await.ok()
        };
        challenges.spawn(tokio::time::timeout(PROOF_LIMIT, exchange));
        while challenges.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn only_hosts_of_the_session_are_probed() {
        let (elsewhere, coordinator) = (IpAddr::from([192, 0, 2, 7]), IpAddr::from([198, 51, 100, 3]));
        let mapped: IpAddr = "::ffff:198.51.100.3".parse().unwrap();
        for (peer, from, may) in [
            (elsewhere, None, true),
            (elsewhere, Some(coordinator), false),
            (coordinator, Some(mapped), true),
            (IpAddr::from([127, 0, 0, 1]), Some(coordinator), true),
        ] {
            let (addresses, to) = (Addresses { peer: from, ..Addresses::default() }, SocketAddr::new(peer, 0));
            let found = ProvenHosts::default().probed(Some(to), None, None, addresses, &Challenges::default()).await;
            assert_eq!(found, if may { Probed::Host(to) } else { Probed::Refused(peer) }, "{peer} for {from:?}");
        }
        // A coordinator over a bus has no address, and cannot name the one that stands for that.
        let over_bus = Addresses { peer: Some(OVER_BUS), ..Addresses::default() };
        for peer in [None, Some(SocketAddr::new(OVER_BUS, 0))] {
            let found = ProvenHosts::default().probed(peer, None, None, over_bus, &Challenges::default()).await;
            assert_eq!(found, Probed::Nothing, "{peer:?}");
        }
    }

    #[test]
    fn only_the_agent_that_issued_a_token_proves_it_and_the_challenge_does_not_disclose_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, cookie) = (listener.local_addr().unwrap(), *b"\r\nflush_all\r\n   ");
        let agent = std::thread::spawn(move || {
            let mut challenges = Vec::new();
            for turn in 0..4 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut hello = [0; 32];
                stream.read_exact(&mut hello).unwrap();
                let answer = FlowHello::decode(&hello, [&cookie]).unwrap().reach_proof();
                // An agent, a service that closes, an echo service, and one that always sends the same.
                let bytes: &[u8] = [&answer[..], b"", &hello[..16], b"KKKKKKKKKKKKKKKK"][turn];
                stream.write_all(bytes).unwrap();
                challenges.push(hello);
            }
            challenges
        });
        let reach_token = ReachabilityToken { port: Some(address.port()), cookie: hex::encode(cookie) };
        let known = |reach_token: &ReachabilityToken| is_known(address, reach_token, Duration::from_secs(5));
        assert_eq!([(); 4].map(|()| known(&reach_token)), [true, false, false, false]);
        let challenges = agent.join().unwrap();
        assert!(challenges.iter().all(|hello| !hello.windows(4).any(|part| part == &cookie[..4])));
        assert_ne!(challenges[0][8..], challenges[1][8..]);
        assert!(!known(&ReachabilityToken { port: None, ..reach_token.clone() }));
        assert!(!known(&ReachabilityToken { cookie: "no hex".into(), ..reach_token }), "no connection is made");
    }

    #[tokio::test]
    async fn a_host_is_found_by_its_name_where_it_is_not_at_the_coordinators_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (here, cookie) = (listener.local_addr().unwrap(), [5; 16]);
        let agent = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; 32];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(&FlowHello::decode(&hello, [&cookie]).unwrap().reach_proof()).unwrap();
        });
        let challenges = Challenges(Arc::new(Mutex::new(Budget::new(4, 0.0))));
        let challenger = |challenges: &Challenges| Challenger {
            coordinator: "192.0.2.1".parse().unwrap(),
            here: Some(here.ip()),
            reach_token: Some(ReachabilityToken { port: Some(here.port()), cookie: hex::encode(cookie) }),
            challenges: challenges.clone(),
            limit: Duration::from_secs(5),
        };
        // Nobody listens at the address that the coordinator gave.
        let given: SocketAddr = "127.0.0.9:7000".parse().unwrap();
        let mut hosts = ProvenHosts::default();
        assert_eq!(hosts.place(given, Some("localhost"), &challenger(&challenges)).await, Some(at_port(here, 7000)));
        agent.join().unwrap();
        // It is asked once; other ports are of the same host.
        assert_eq!(hosts.place(at_port(given, 7001), None, &challenger(&challenges)).await, Some(at_port(here, 7001)));
        // The address without a proof counted, the look-up did not. Without any left no name is looked up.
        let client = "192.0.2.1".parse().unwrap();
        assert_eq!((0..9).filter(|_| challenges.spend(client)).count(), 3);
        assert!(challenger(&challenges).addresses_of("localhost", given).await.is_empty());
        assert_eq!(
            hosts.place("127.0.0.8:7000".parse().unwrap(), Some("localhost"), &challenger(&challenges)).await,
            None
        );
    }

    #[test]
    fn a_client_whose_challenges_fail_has_no_more_of_them() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let host = listener.local_addr().unwrap();
        let reach_token = ReachabilityToken { port: Some(host.port()), cookie: hex::encode([7; 16]) };
        let challenges = Challenges(Arc::new(Mutex::new(Budget::new(3, 0.0))));
        let [client, another] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        // Nobody answers.
        let limit = Duration::from_millis(10);
        let connections = |client| {
            assert!(!(0..5).any(|_| challenges.is_known(client, host, &reach_token, limit)));
            std::iter::from_fn(|| listener.accept().ok()).count()
        };
        assert_eq!([connections(client), connections(client), connections(another)], [3, 0, 3]);
        // One that succeeds costs nothing.
        let open = Challenges(Arc::new(Mutex::new(Budget::new(1, 0.0))));
        listener.set_nonblocking(false).unwrap();
        let agent = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut hello = [0; 32];
                stream.read_exact(&mut hello).unwrap();
                stream.write_all(&FlowHello::decode(&hello, [&[7; 16]]).unwrap().reach_proof()).unwrap();
            }
        });
        assert!((0..2).all(|_| open.is_known(client, host, &reach_token, PROOF_LIMIT)));
        agent.join().unwrap();
    }

    #[test]
    fn loopback_and_link_local_need_a_coordinator_on_the_same_link() {
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
    fn only_sockets_of_worker_processes_are_accepted() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = tempfile::Builder::new().prefix("thru-").tempdir_in(&temporary).unwrap();
        let other = tempfile::Builder::new().prefix("else-").tempdir_in(&temporary).unwrap();
        let own = temporary.path().join("thru-own");
        let name = "thru-0123456789ab-77.sock";
        let _sockets = [folder.path(), other.path()].map(|folder| UnixListener::bind(folder.join(name)).unwrap());
        assert!(is_worker_socket(&folder.path().join(name), &own));
        assert!(!is_worker_socket(&folder.path().join(name), Path::new("/run/thru-own")), "elsewhere");
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
            assert!(!is_worker_socket(&path, &own), "{}", path.display());
        }
    }
}
