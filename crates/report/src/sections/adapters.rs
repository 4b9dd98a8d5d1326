//! The network adapters of a plan's hosts: the model and the driver of the interface that carried each host's data.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use model::{EndTally, Factor, Interface, Inventory, Run};
use text::{Text, say};

use crate::labels;

/// Adapters, and hosts of each, that are named.
const MOST: usize = 8;

/// An adapter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Adapter {
    /// Vendor and product; `None` for one without a bus, or if the host does not know it.
    model: Option<String>,
    /// The driver, or the kind of a virtual interface.
    pub(crate) driver: String,
}

/// The adapters of a plan between hosts, by the hosts' names. Hosts without a measurement and unknown adapters are left out.
pub(crate) fn of_hosts(run: &Run) -> BTreeMap<&str, Adapter> {
    let used = addresses(run);
    let adapter = |(name, host): (&'_ String, &'_ Inventory)| adapter(host, *used.get(name.as_str())?);
    run.header.hosts.iter().filter_map(|host| Some((host.0.as_str(), adapter(host)?))).collect()
}

/// The address at which each host sent or received.
fn addresses(run: &Run) -> BTreeMap<&str, IpAddr> {
    let mut found = BTreeMap::new();
    let levels: BTreeMap<u32, &BTreeMap<String, String>> =
        run.header.cells.iter().map(|cell| (cell.id, &cell.levels)).collect();
    for outcome in &run.outcomes {
        let (Some(levels), Some(trial)) = (levels.get(&outcome.cell), outcome.trials.first()) else { continue };
        let ends: [(&str, &EndTally); 2] = [(Factor::FROM, &trial.near), (Factor::TO, &trial.far)];
        for (factor, end) in ends {
            let local = end.flows.first().and_then(|flow| flow.socket.local.as_ref()?.parse::<SocketAddr>().ok());
            if let (Some(name), Some(local)) = (levels.get(factor), local) {
                found.entry(name.as_str()).or_insert(local.ip().to_canonical());
            }
        }
    }
    found
}

fn adapter(host: &Inventory, address: IpAddr) -> Option<Adapter> {
    let is = |own: &String| own.split('/').next().and_then(|ip| ip.parse().ok()) == Some(address);
    let Interface { driver, device, .. } = host.interfaces.iter().find(|one| one.addresses.iter().any(is))?;
    let device = device.as_ref();
    let driver = driver.clone().or_else(|| device?.kind.clone())?;
    Some(Adapter { model: device.and_then(|device| device.product.clone()), driver })
}

/// Each adapter with its hosts: `AT2970 (acenic): finland and norway; 3C996 (tg3): czech`. `None` without a plan between hosts.
pub(crate) fn of_run(run: &Run) -> Option<Text> {
    let hosts = of_hosts(run);
    let mut kinds: BTreeMap<&Adapter, Vec<&str>> = BTreeMap::new();
    hosts.iter().for_each(|(host, adapter)| kinds.entry(adapter).or_default().push(host));
    let shown = |all: &[Text], between| match all.len().saturating_sub(MOST) {
        0 => Text::join(all.iter().cloned(), between),
        more => say!("{}{between}{more} more", Text::join(all[..MOST].iter().cloned(), between)),
    };
    let alone = kinds.len() == 1 && hosts.len() == run.header.hosts.len();
    let one = |(adapter, hosts): (&&Adapter, &Vec<&str>)| {
        let name = match &adapter.model {
            Some(model) => say!("{} ({})", labels::plain(model), labels::plain(&adapter.driver)),
            None => labels::plain(&adapter.driver).into(),
        };
        let hosts: Vec<Text> = hosts.iter().map(|host| labels::plain(host).into()).collect();
        if alone { say!("{name} at all hosts") } else { say!("{name}: {}", shown(&hosts, ", ")) }
    };
    let kinds: Vec<Text> = kinds.iter().map(one).collect();
    (!kinds.is_empty()).then(|| shown(&kinds, "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Device, FlowTally};

    /// A mesh whose hosts have these models and drivers.
    fn mesh(adapters: &[(Option<&str>, &str)]) -> Run {
        let mut run = sample::between_hosts_many();
        let names: Vec<String> = run.header.plan.as_ref().unwrap().from.clone();
        for (number, name) in names.iter().enumerate() {
            let (product, driver) = adapters[number.min(adapters.len() - 1)];
            let device = Some(Device { product: product.map(str::to_owned), ..Device::default() });
            let (driver, addresses) = (Some(driver.to_owned()), vec![format!("10.0.0.{number}/24")]);
            let interface = Interface { name: "eth0".into(), driver, device, addresses, ..Interface::default() };
            let host = Inventory { interfaces: vec![interface], ..Inventory::default() };
            run.header.hosts.insert(name.clone(), host);
        }
        let place = |name: Option<&String>| names.iter().position(|own| Some(own) == name);
        for outcome in &mut run.outcomes {
            let levels = &run.header.cells.iter().find(|cell| cell.id == outcome.cell).unwrap().levels;
            let end = |factor: &str| {
                let mut flow = FlowTally::default();
                flow.socket.local = place(levels.get(factor)).map(|number| format!("10.0.0.{number}:5001"));
                EndTally { flows: vec![flow], ..EndTally::default() }
            };
            for trial in &mut outcome.trials {
                (trial.near, trial.far) = (end(Factor::FROM).into(), end(Factor::TO).into());
            }
        }
        run
    }

    #[test]
    fn hosts_are_grouped_by_their_adapters() {
        let names: Vec<String> = sample::between_hosts_many().header.plan.unwrap().from;
        let text = of_run(&mesh(&[(Some("AT2970"), "acenic"), (None, "veth")])).unwrap().plain();
        assert_eq!(text, format!("veth: {}; AT2970 (acenic): {}", names[1..].join(", "), names[0]));
        let text = of_run(&mesh(&[(Some("AT2970"), "acenic")])).unwrap().plain();
        assert_eq!(text, "AT2970 (acenic) at all hosts");
        assert_eq!(of_run(&sample::stream()), None);
    }
}
