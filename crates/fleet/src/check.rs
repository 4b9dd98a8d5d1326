//! A look at all hosts of a fleet at once: reached or not, versions, clocks, interfaces, load, and who measures there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use bus::Buses;
use command::signals::CaughtSignals;
use command::{Failure, setup};
use control::coordinator::{AgentEnd, Target};
use futures_util::StreamExt;
use futures_util::stream::iter;
use model::{Family, HostCheck, Interface};
use plan::FleetHost;
use protocol::coordinator::DialogueError;
use text::say;

use crate::reach::{access, data_address};

/// Hosts that are asked at the same time: each needs a file of this process.
const AT_ONCE: usize = 200;
/// Longest time for one host.
const LIMIT: Duration = Duration::from_secs(15);
/// Clocks this far apart get a remark.
const APART: Duration = Duration::from_millis(100);
/// A load above this share of the cores gets a remark.
const BUSY: f64 = 0.5;

/// Asks the hosts, and returns what they said in their order. `token_file` is for hosts without one of their own. `done` gets the number
/// of hosts that have answered, or failed, and each line that must be seen.
///
/// # Errors
/// A signal came, or a token file cannot be used.
pub fn check(
    hosts: &[&FleetHost],
    family: Family,
    token_file: Option<&Path>,
    mut done: impl FnMut(usize, Option<&str>),
) -> Result<Vec<HostCheck>, Failure> {
    let mut signals = CaughtSignals::catch()?;
    // A file that cannot be read is this user's mistake, not a host's state.
    let buses = setup::buses()?;
    for host in hosts {
        access(host, token_file, &buses)?;
    }
    let mut found: Vec<(usize, HostCheck)> = setup::runtime()?.block_on(async {
        let asked = async |(at, host): (usize, &FleetHost)| {
            let (found, note) = ask(host, family, token_file, &buses).await;
            (at, found, note)
        };
        let mut answers = iter(hosts.iter().copied().enumerate().map(asked)).buffer_unordered(AT_ONCE);
        let mut found = Vec::with_capacity(hosts.len());
        loop {
            tokio::select! {
                answer = answers.next() => {
                    let Some((at, check, note)) = answer else { return Ok(found) };
                    found.push((at, check));
                    done(found.len(), note.as_deref());
                }
                _ = signals.next() => return Err(Failure::from(DialogueError::Interrupted)),
            }
        }
    })?;
    found.sort_by_key(|(at, _)| *at);
    let mut checks: Vec<HostCheck> = found.into_iter().map(|(_, check)| check).collect();
    remark(&mut checks);
    Ok(checks)
}

/// What one host says, with the line about its key.
async fn ask(
    host: &FleetHost,
    family: Family,
    token_file: Option<&Path>,
    buses: &Buses,
) -> (HostCheck, Option<String>) {
    let mut check = HostCheck {
        name: host.name.clone(),
        control: host.control.clone(),
        data: host.data.clone(),
        labels: host.labels.clone(),
        ..HostCheck::default()
    };
    let begun = Instant::now();
    let mut note = None;
    let asked = async {
        let access = access(host, token_file, buses)?;
        // A forwarded port is at no interface of the host.
        let data = data_address(host)?.filter(|data| data.port() == 0).map(|data| data.ip());
        let mut end = AgentEnd::connect(Target::Remote { host: &host.control, access: &access, family }).await?;
        note = end.facts.note.clone();
        let told = tell(&mut end, data, &mut check).await;
        end.release().await;
        told
    };
    let failure = match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(_) => Some(Failure::other(format!("no answer within {} s", LIMIT.as_secs()))),
    };
    check.elapsed_ns = Some(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    check.code = failure.as_ref().map(Failure::code);
    check.error = failure.map(|failure| failure.text().clone());
    (check, note)
}

async fn tell(end: &mut AgentEnd, data: Option<IpAddr>, check: &mut HostCheck) -> Result<(), Failure> {
    check.version = Some(end.facts.version.clone());
    let inventory = &end.facts.inventory;
    check.kernel.clone_from(&inventory.kernel);
    check.cores = inventory.cores;
    check.load = inventory.load_average.map(|load| load[0]);
    let at = data.or(end.address().map(|address| address.ip()));
    if let Some(interface) = at.and_then(|at| inventory.interfaces.iter().find(|interface| has(interface, at))) {
        check.interface = Some(interface.name.clone());
        check.mtu = interface.mtu;
        check.speed_mbps = interface.speed_mbps;
    } else if let Some(data) = data {
        return Err(Failure::host(say!(
            "no interface there has the data address {data}: correct `--data` or the host's addresses"
        )));
    }
    if let Some(clock) = end.talk(async |end| end.clock_offset().await).await? {
        check.clock_offset_ns = Some(clock.offset_ns);
        check.clock_error_ns = Some(clock.error_ns);
        check.rtt_ns = Some(2 * clock.error_ns);
    }
    let (users, waiting) = end.talk(async |end| end.users().await).await?;
    check.users = Some(users);
    check.waiting = Some(waiting);
    Ok(())
}

/// Whether an interface has this address.
fn has(interface: &Interface, address: IpAddr) -> bool {
    let of = |text: &String| text.split('/').next().and_then(|text| text.parse::<IpAddr>().ok());
    interface.addresses.iter().filter_map(of).any(|own| own == address)
}

/// Adds what differs from most of the other hosts, and what would disturb a measurement.
fn remark(checks: &mut [HostCheck]) {
    let version = most(checks, |check| check.version.clone());
    let mtu = most(checks, |check| check.mtu);
    let speed = most(checks, |check| check.speed_mbps);
    for check in checks.iter_mut().filter(|check| check.error.is_none()) {
        let mut remarks = Vec::new();
        if let (Some(own), Some(most)) = (&check.version, &version)
            && own != most
        {
            remarks.push(format!("runs thru {}, most hosts {}", model::plain(own), model::plain(most)));
        }
        if let (Some(own), Some(most)) = (check.mtu, mtu)
            && own != most
        {
            remarks.push(format!("MTU {own}, most hosts {most}"));
        }
        if let (Some(own), Some(most)) = (check.speed_mbps, speed)
            && own != most
        {
            remarks.push(format!("interface of {own} Mbit/s, most hosts {most}"));
        }
        if let (Some(offset), Some(error)) = (check.clock_offset_ns, check.clock_error_ns) {
            let sure = offset.unsigned_abs().saturating_sub(error);
            if u128::from(sure) >= APART.as_nanos() {
                let side = if offset > 0 { "ahead of" } else { "behind" };
                let by = model::units::seconds(offset.unsigned_abs() as f64);
                remarks.push(format!("its clock is {by} {side} this host's"));
            }
        }
        if let (Some(cores), Some(load)) = (check.cores, check.load)
            && load > f64::from(cores) * BUSY
        {
            remarks.push(format!("load {load:.1} on {cores} cores"));
        }
        check.remarks = remarks;
    }
}

/// The value that most hosts have.
fn most<T: Ord>(checks: &[HostCheck], of: impl Fn(&HostCheck) -> Option<T>) -> Option<T> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    checks.iter().filter_map(of).for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_remarked() {
        let host = |name: &str| HostCheck {
            name: name.into(),
            version: Some("1.0".into()),
            mtu: Some(9000),
            cores: Some(4),
            load: Some(0.5),
            clock_offset_ns: Some(1_000_000),
            clock_error_ns: Some(50_000),
            ..HostCheck::default()
        };
        let mut checks = vec![
            host("a"),
            host("b"),
            HostCheck { mtu: Some(1500), load: Some(3.5), ..host("c") },
            HostCheck { version: Some("0.9".into()), clock_offset_ns: Some(-2_000_000_000), ..host("d") },
            // A slow control path: the clock may be right.
            HostCheck { clock_offset_ns: Some(150_000_000), clock_error_ns: Some(90_000_000), ..host("e") },
            HostCheck { error: Some("down".into()), mtu: Some(576), ..host("f") },
        ];
        remark(&mut checks);
        let said: Vec<String> = checks.iter().map(|check| check.remarks.join("; ")).collect();
        assert_eq!(
            said,
            [
                "",
                "",
                "MTU 1500, most hosts 9000; load 3.5 on 4 cores",
                "runs thru 0.9, most hosts 1.0; its clock is 2.00 s behind this host's",
                "",
                ""
            ]
        );
    }

    #[test]
    fn an_interface_has_its_addresses_without_their_prefix() {
        let interface =
            Interface { addresses: vec!["10.0.0.1/24".into(), "fd00::1/64".into()], ..Interface::default() };
        assert!(has(&interface, "10.0.0.1".parse().unwrap()) && has(&interface, "fd00::1".parse().unwrap()));
        assert!(!has(&interface, "10.0.0.2".parse().unwrap()));
    }
}
