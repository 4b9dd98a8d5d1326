//! The kernel's TCP metrics cache: a new connection starts with values of an earlier one to the same host (slow-start threshold,
//! round trip; ip-tcp_metrics(8)). For compared trials it is off, or flushed before each trial, or a note names it.

use std::net::IpAddr;

use model::{Direction, Inventory, RunHeader, Spec};

use super::end::End;
use super::event::Answer;
use super::outside::Outside;
use super::work::Work;

/// The setting that turns the cache off where it is 1.
const SETTING: &str = "net.ipv4.tcp_no_metrics_save";

/// The state of the cache at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The cache is off.
    Off,
    /// The cache is on, and its entry for the other end is removed before each trial.
    Flushed,
    /// The cache is on.
    On,
    /// The host does not report it.
    Unknown,
}

/// The cache at both ends of a run.
#[derive(Debug)]
pub(super) struct Metrics {
    /// `None` if no cell uses TCP.
    ends: Option<[State; 2]>,
    /// Which ends send more than acknowledgements; the cache of an end that does not is irrelevant.
    senders: [bool; 2],
    /// Both ends are one host with one cache: a flush is for both.
    shared: bool,
    /// The address that the near end flushes, as long as that works.
    flush: Option<IpAddr>,
}

impl Metrics {
    /// Reads the state from the inventories. The near end's cache can be flushed if the near end is this process's host.
    pub(super) fn of(header: &RunHeader, near: &End, far: Option<&End>) -> Self {
        let over_tcp = header.cells.iter().any(|cell| cell.spec.is_over_tcp());
        let senders = senders(header.cells.iter().map(|cell| &*cell.spec));
        let Some(far) = far.filter(|_| over_tcp) else {
            return Self { ends: None, senders, shared: false, flush: None };
        };
        let ends = [state(&header.near), state(&header.far)];
        let data = header.cells.iter().find_map(|cell| cell.spec.far.data_addr);
        let address = data.or(far.address.map(|address| address.ip()));
        let here = near.address.is_none() && ends[0] == State::On;
        let shared = address.is_some_and(|address| one_cache(&header.near, &header.far, address));
        Self { ends: Some(ends), senders, shared, flush: address.filter(|_| here) }
    }

    /// Removes the near host's cache entry for the far one. This needs root; after one failure it is not tried again.
    pub(super) async fn flush(&mut self, outside: &Outside) {
        let Some(address) = self.flush else { return };
        let done = matches!(outside.ask(Work::ForgetPath(address)).await, Answer::Done);
        if !done {
            self.flush = None;
        }
        self.flushed(done);
    }

    fn flushed(&mut self, done: bool) {
        let state = if done { State::Flushed } else { State::On };
        if let Some([near, far]) = &mut self.ends {
            *near = state;
            if self.shared {
                *far = state;
            }
        }
    }

    /// Whether a trial may have started with values of an earlier one: the cache of an end that sends was on.
    pub(super) fn may_carry_over(&self) -> bool {
        self.ends.is_some_and(|ends| ends.into_iter().zip(self.senders).any(|(end, sends)| sends && end == State::On))
    }

    /// A sentence about both ends' caches; `None` without TCP.
    pub(super) fn statement(&self) -> Option<String> {
        let [near, far] = self.ends?.map(|state| match state {
            State::Off => "off",
            State::Flushed => "flushed before each trial",
            State::On => "on",
            State::Unknown => "unknown",
        });
        let advice = if self.may_carry_over() {
            format!(" A trial may have started with values of an earlier one. Set {SETTING} to 1 for comparisons.")
        } else if self.ends.is_some_and(|ends| ends.contains(&State::On)) {
            " It has no effect at an end that only acknowledges.".to_owned()
        } else {
            String::new()
        };
        Some(format!("The kernel's TCP metrics cache was {near} at the near end and {far} at the far end.{advice}"))
    }
}

/// The ends, near and far, that send payload in any of `specs`; with round trips both do.
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

/// Whether both ends are one host and the same network namespace and use `address`, which the near end has as well. Each
/// namespace has its own loopback addresses.
fn one_cache(near: &Inventory, far: &Inventory, address: IpAddr) -> bool {
    let has = |host: &Inventory| {
        let mut all = host.interfaces.iter().flat_map(|interface| &interface.addresses);
        all.any(|own| own.split('/').next().and_then(|ip| ip.parse().ok()) == Some(address))
    };
    near.boot_id.is_some() && near.boot_id == far.boot_id && has(near) && has(far)
}

fn state(host: &Inventory) -> State {
    match host.sysctl.get(SETTING).map(String::as_str) {
        Some("0") => State::On,
        Some(_) => State::Off,
        None => State::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Interface, Pattern};

    fn host(value: Option<&str>) -> Inventory {
        let sysctl = value.map(|value| (SETTING.to_owned(), value.to_owned())).into_iter().collect();
        Inventory { sysctl, ..Inventory::default() }
    }

    #[test]
    fn the_setting_decides_and_a_host_without_it_is_unknown() {
        assert_eq!(
            [Some("1"), Some("0"), None].map(|value| state(&host(value))),
            [State::Off, State::On, State::Unknown]
        );
    }

    fn metrics(ends: Option<[State; 2]>, senders: [bool; 2]) -> Metrics {
        Metrics { ends, senders, shared: false, flush: None }
    }

    #[test]
    fn only_a_cache_that_is_on_gets_a_remark() {
        assert_eq!(metrics(None, [true; 2]).statement(), None);
        assert!(metrics(Some([State::Flushed, State::On]), [true; 2]).may_carry_over());
        let clean = metrics(Some([State::Flushed, State::Off]), [true; 2]);
        assert!(!clean.may_carry_over());
        let statement = clean.statement().unwrap();
        assert!(
            statement.ends_with("flushed before each trial at the near end and off at the far end."),
            "{statement}"
        );
        let on = metrics(Some([State::On, State::Off]), [true; 2]).statement().unwrap();
        assert!(on.contains("Set net.ipv4.tcp_no_metrics_save"), "{on}");
    }

    #[test]
    fn the_cache_of_an_end_that_only_acknowledges_is_irrelevant() {
        let metrics = metrics(Some([State::Flushed, State::On]), [true, false]);
        assert!(!metrics.may_carry_over());
        let statement = metrics.statement().unwrap();
        let expected = "flushed before each trial at the near end and on at the far end. It has no effect at";
        assert!(statement.contains(expected), "{statement}");
    }

    #[test]
    fn only_senders_count_and_with_round_trips_both_send() {
        let spec = |pattern, direction| Spec { direction, ..Spec::new("tcp", pattern) };
        let of = |specs: &[Spec]| senders(specs.iter());
        assert_eq!(of(&[spec(Pattern::Stream, Direction::Send)]), [true, false]);
        assert_eq!(of(&[spec(Pattern::Transfer, Direction::Reverse)]), [false, true]);
        assert_eq!(of(&[spec(Pattern::Stream, Direction::Send), spec(Pattern::Stream, Direction::Reverse)]), [true; 2]);
        assert_eq!(of(&[spec(Pattern::Stream, Direction::Both)]), [true; 2]);
        assert_eq!(of(&[spec(Pattern::Rr, Direction::Send)]), [true; 2]);
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
        let mut shared = Metrics { shared: true, ..metrics(Some([State::On; 2]), [true; 2]) };
        shared.flushed(true);
        assert!(!shared.may_carry_over());
    }
}
