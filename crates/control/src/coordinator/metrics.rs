//! The kernel's TCP metrics cache, which lets a new connection begin with what an earlier one to the same host learnt (slow-start
//! threshold, round trip; ip-tcp_metrics(8)). Between trials that are compared it is off, flushed, or at least named.

use std::net::IpAddr;
use std::process::Stdio;

use model::{Direction, Inventory, RunHeader, Spec};
use tokio::process::Command;

use super::Pair;

/// Transports that run over TCP.
const OVER_TCP: [&str; 3] = ["tcp", "mptcp", "tls"];
/// The setting that turns the cache off where it is 1.
const SETTING: &str = "net.ipv4.tcp_no_metrics_save";

/// What the cache is at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is kept.
    Off,
    /// It is on, and what it holds of the other end is thrown away before each trial.
    Flushed,
    /// It is on.
    Kept,
    /// The host does not say.
    Unknown,
}

/// The cache at both ends of a run.
#[derive(Debug)]
pub(super) struct Metrics {
    /// `None` where no cell runs over TCP.
    ends: Option<[State; 2]>,
    /// Which ends send more than acknowledgements; the other one's cache does not matter.
    senders: [bool; 2],
    /// Both ends are one host, with one cache: what is flushed for the one is flushed for the other.
    shared: bool,
    /// What the near end may flush, while that works.
    flush: Option<IpAddr>,
}

impl Metrics {
    /// Reads the state from the inventories. The near end's cache can be flushed where the near end is this process's host.
    pub(super) fn of(header: &RunHeader, pair: &Pair) -> Self {
        let over_tcp = header.cells.iter().any(|cell| OVER_TCP.iter().any(|name| cell.spec.transport == **name));
        let senders = senders(header.cells.iter().map(|cell| &cell.spec));
        let Some(far) = pair.far.as_ref().filter(|_| over_tcp) else {
            return Self { ends: None, senders, shared: false, flush: None };
        };
        let ends = [state(&header.near), state(&header.far)];
        let data = header.cells.iter().find_map(|cell| cell.spec.far.data_addr);
        let address = data.or(far.address.map(|address| address.ip()));
        let here = pair.near.address.is_none() && ends[0] == State::Kept;
        let shared = address.is_some_and(|address| one_cache(&header.near, &header.far, address));
        Self { ends: Some(ends), senders, shared, flush: address.filter(|_| here) }
    }

    /// Throws away what the near host has learnt of the far one. Only root may; the first refusal is the last attempt.
    pub(super) async fn flush(&mut self) {
        let Some(address) = self.flush else { return };
        let mut command = Command::new("ip");
        command.args(["tcp_metrics", "flush", &address.to_string()]);
        command.env("LC_ALL", "C").stdin(Stdio::null()).kill_on_drop(true);
        // With nothing to throw away it fails with ESRCH.
        let nothing = |said: &[u8]| String::from_utf8_lossy(said).contains("No such process");
        let done = command.output().await.is_ok_and(|output| output.status.success() || nothing(&output.stderr));
        if !done {
            self.flush = None;
        }
        self.flushed(done);
    }

    fn flushed(&mut self, done: bool) {
        let state = if done { State::Flushed } else { State::Kept };
        if let Some([near, far]) = &mut self.ends {
            *near = state;
            if self.shared {
                *far = state;
            }
        }
    }

    /// Whether a trial may have begun with what an earlier one learnt: the cache of an end that sends was on.
    pub(super) fn kept(&self) -> bool {
        self.ends.is_some_and(|ends| ends.into_iter().zip(self.senders).any(|(end, sends)| sends && end == State::Kept))
    }

    /// A sentence about both ends; `None` without TCP.
    pub(super) fn statement(&self) -> Option<String> {
        let [near, far] = self.ends?.map(|state| match state {
            State::Off => "off",
            State::Flushed => "flushed before each trial",
            State::Kept => "on",
            State::Unknown => "not known",
        });
        let advice = if self.kept() {
            format!(
                ", so that a trial may begin with what an earlier one learnt: set {SETTING} to 1 for the comparison"
            )
        } else if self.ends.is_some_and(|ends| ends.contains(&State::Kept)) {
            ", which does not matter at an end that only acknowledges".to_owned()
        } else {
            String::new()
        };
        Some(format!("The kernel's TCP metrics cache was {near} at the near end and {far} at the far end{advice}."))
    }
}

/// The ends, near and far, that send payload in any of `specs`; of round trips both do.
fn senders<'a>(specs: impl Iterator<Item = &'a Spec>) -> [bool; 2] {
    let mut senders = [false; 2];
    for spec in specs {
        let one_way = analysis::outcome::Headline::of(spec) == analysis::outcome::Headline::Goodput;
        match spec.direction {
            Direction::Send if one_way => senders[0] = true,
            Direction::Reverse if one_way => senders[1] = true,
            _ => senders = [true; 2],
        }
    }
    senders
}

/// Whether both ends are one host and the same network namespace, and talk over `address`: the near end has it too. Loopback
/// addresses are every namespace's own.
fn one_cache(near: &Inventory, far: &Inventory, address: IpAddr) -> bool {
    let has = |host: &Inventory| {
        let mut all = host.interfaces.iter().flat_map(|interface| &interface.addresses);
        all.any(|own| own.split('/').next().and_then(|ip| ip.parse().ok()) == Some(address))
    };
    near.boot_id.is_some() && near.boot_id == far.boot_id && has(near) && has(far)
}

fn state(host: &Inventory) -> State {
    match host.sysctl.get(SETTING).map(String::as_str) {
        Some("0") => State::Kept,
        Some(_) => State::Off,
        None => State::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Interface;

    fn host(value: Option<&str>) -> Inventory {
        let sysctl = value.map(|value| (SETTING.to_owned(), value.to_owned())).into_iter().collect();
        Inventory { sysctl, ..Inventory::default() }
    }

    #[test]
    fn the_setting_decides_and_a_silent_host_is_not_known() {
        assert_eq!(
            [Some("1"), Some("0"), None].map(|value| state(&host(value))),
            [State::Off, State::Kept, State::Unknown]
        );
    }

    fn metrics(ends: Option<[State; 2]>, senders: [bool; 2]) -> Metrics {
        Metrics { ends, senders, shared: false, flush: None }
    }

    #[test]
    fn only_a_cache_that_is_on_is_remarked() {
        assert_eq!(metrics(None, [true; 2]).statement(), None);
        assert!(metrics(Some([State::Flushed, State::Kept]), [true; 2]).kept());
        let clean = metrics(Some([State::Flushed, State::Off]), [true; 2]);
        assert!(!clean.kept());
        let said = clean.statement().unwrap();
        assert!(said.contains("flushed before each trial at the near end and off at the far end."), "{said}");
        let on = metrics(Some([State::Kept, State::Off]), [true; 2]).statement().unwrap();
        assert!(on.contains("set net.ipv4.tcp_no_metrics_save"), "{on}");
    }

    #[test]
    fn the_cache_of_an_end_that_only_acknowledges_does_not_matter() {
        let metrics = metrics(Some([State::Flushed, State::Kept]), [true, false]);
        assert!(!metrics.kept());
        let said = metrics.statement().unwrap();
        assert!(
            said.contains("flushed before each trial at the near end and on at the far end, which does not matter"),
            "{said}"
        );
    }

    #[test]
    fn whoever_sends_counts_and_round_trips_are_sent_by_both() {
        let spec = |pattern, direction| Spec { direction, ..Spec::new("tcp", pattern) };
        let of = |specs: &[Spec]| senders(specs.iter());
        assert_eq!(of(&[spec("stream", Direction::Send)]), [true, false]);
        assert_eq!(of(&[spec("transfer", Direction::Reverse)]), [false, true]);
        assert_eq!(of(&[spec("stream", Direction::Send), spec("stream", Direction::Reverse)]), [true; 2]);
        assert_eq!(of(&[spec("stream", Direction::Both)]), [true; 2]);
        assert_eq!(of(&[spec("rr", Direction::Send)]), [true; 2]);
    }

    #[test]
    fn one_host_has_one_cache_unless_its_ends_are_in_two_namespaces() {
        let host = |boot: &str, address: &str| {
            let interface = Interface { addresses: vec![format!("{address}/24")], ..Interface::default() };
            Inventory { boot_id: Some(boot.into()), interfaces: vec![interface], ..Inventory::default() }
        };
        let to = "10.0.0.2".parse().unwrap();
        assert!(one_cache(&host("a", "10.0.0.2"), &host("a", "10.0.0.2"), to));
        assert!(!one_cache(&host("a", "10.0.0.1"), &host("a", "10.0.0.2"), to), "two namespaces");
        assert!(!one_cache(&host("a", "10.0.0.2"), &host("b", "10.0.0.2"), to), "two hosts");
        let mut shared = Metrics { shared: true, ..metrics(Some([State::Kept; 2]), [true; 2]) };
        shared.flushed(true);
        assert!(!shared.kept());
    }
}
