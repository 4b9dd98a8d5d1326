//! The kernel's TCP metrics cache, which lets a new connection begin with what an earlier one to the same host learnt (slow-start
//! threshold, round trip; ip-tcp_metrics(8)). Between trials that are compared it is off, flushed, or at least named.

use std::net::IpAddr;
use std::process::Stdio;

use model::{Inventory, RunHeader};
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
    /// What the near end may flush, while that works.
    flush: Option<IpAddr>,
}

impl Metrics {
    /// Reads the state from the inventories. The near end's cache can be flushed where the near end is this process's host.
    pub(super) fn of(header: &RunHeader, pair: &Pair) -> Self {
        let over_tcp = header.cells.iter().any(|cell| OVER_TCP.iter().any(|name| cell.spec.transport == **name));
        let Some(far) = pair.far.as_ref().filter(|_| over_tcp) else { return Self { ends: None, flush: None } };
        let ends = [state(&header.near), state(&header.far)];
        let data = header.cells.iter().find_map(|cell| cell.spec.far.data_addr);
        let address = data.or(far.address.map(|address| address.ip()));
        let here = pair.near.address.is_none() && ends[0] == State::Kept;
        Self { ends: Some(ends), flush: address.filter(|_| here) }
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
        if let Some(ends) = &mut self.ends {
            ends[0] = if done { State::Flushed } else { State::Kept };
        }
    }

    /// Whether a trial may have begun with what an earlier one learnt.
    pub(super) fn kept(&self) -> bool {
        self.ends.is_some_and(|ends| ends.contains(&State::Kept))
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
        } else {
            String::new()
        };
        Some(format!("The kernel's TCP metrics cache was {near} at the near end and {far} at the far end{advice}."))
    }
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

    #[test]
    fn only_a_cache_that_is_on_is_remarked() {
        let metrics = |ends| Metrics { ends, flush: None };
        assert_eq!(metrics(None).statement(), None);
        assert!(metrics(Some([State::Flushed, State::Kept])).kept());
        let clean = metrics(Some([State::Flushed, State::Off]));
        assert!(!clean.kept());
        let said = clean.statement().unwrap();
        assert!(said.contains("flushed before each trial at the near end and off at the far end."), "{said}");
        assert!(
            metrics(Some([State::Kept, State::Off])).statement().unwrap().contains("set net.ipv4.tcp_no_metrics_save")
        );
    }
}
