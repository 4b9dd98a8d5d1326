//! What hosts are and do, without a measurement.

use std::path::Path;
use std::time::Duration;

use command::signals::CaughtSignals;
use command::{Failure, citation, setup};
use control::agent::Agent;
use control::coordinator::{AgentEnd, Target};
use host::{RealSys, TrafficSample};
use model::{Family, Inventory, Watched};
use protocol::coordinator::End;

/// The inventory of a host.
#[derive(Debug)]
pub struct HostFacts {
    /// Its name as a user gave it.
    pub name: String,
    /// What it is.
    pub inventory: Inventory,
    /// The cost of reading its clock, ns.
    pub clock_ns: f64,
}

/// The inventory of this host.
#[must_use]
pub fn here() -> HostFacts {
    let sample = TrafficSample::start(&RealSys);
    let mut inventory = host::inventory(&RealSys);
    inventory.selftest = citation::from_store(None)(&inventory);
    let clock_ns = host::clock_read_cost_ns();
    std::thread::sleep(Duration::from_nanos(sample.left_ns(&RealSys)));
    host::note_traffic(&mut inventory, &sample.finish(&RealSys));
    HostFacts { name: "this host".into(), inventory, clock_ns }
}

/// The inventories that the agents of the named hosts report, in the order of the names. `note` gets each line that must be seen.
///
/// # Errors
/// A host is not reached.
pub fn elsewhere(
    hosts: &[String],
    family: Family,
    token_file: Option<&Path>,
    note: impl Fn(&str),
) -> Result<Vec<HostFacts>, Failure> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let access = setup::access(token_file)?;
    setup::runtime()?.block_on(async {
        let mut reported = Vec::new();
        for host in hosts {
            let end = AgentEnd::connect(Target::Remote { host, access: &access, family }).await?;
            end.facts.note.iter().for_each(|line| note(line));
            reported.push(HostFacts {
                name: host.clone(),
                inventory: end.facts.inventory.clone(),
                clock_ns: end.facts.clock_ns,
            });
            end.release().await;
        }
        Ok(reported)
    })
}

/// Shows the counters of this host or of an agent's each `interval`, until a signal comes or `show` returns false. `show` gets their
/// number, from 0, too. `note` gets each line that must be seen.
///
/// # Errors
/// The host is not reached or lost, or `show` fails.
pub fn watch(
    host: Option<&str>,
    token_file: Option<&Path>,
    interval: Duration,
    note: impl Fn(&str),
    mut show: impl FnMut(&Watched, u64) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let access = setup::access(token_file)?;
    let mut signals = CaughtSignals::catch()?;
    setup::runtime()?.block_on(async {
        let directory = setup::socket_directory()?;
        let here = Agent::local(setup::local_options(directory.path())?);
        let target = match host {
            Some(host) => Target::Remote { host, access: &access, family: Family::Any },
            None => Target::Local(&here),
        };
        let watched = async {
            let mut end = AgentEnd::connect(target).await?;
            end.facts.note.iter().for_each(|line| note(line));
            let shown = show_each(&mut end, interval, &mut show).await;
            end.release().await;
            shown
        };
        // Ctrl-C is the usual end, not a failure.
        tokio::select! {
            watched = watched => watched,
            _ = signals.next() => Ok(()),
        }
    })
}

async fn show_each(
    end: &mut AgentEnd,
    interval: Duration,
    show: &mut impl FnMut(&Watched, u64) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let watch = async |end: &mut End| {
        end.watch(interval);
        Ok(())
    };
    end.talk(watch).await?;
    for shown in 0.. {
        let seen = end.talk(async |end| end.watched().await).await?;
        if !show(&seen, shown)? {
            break;
        }
    }
    Ok(())
}
