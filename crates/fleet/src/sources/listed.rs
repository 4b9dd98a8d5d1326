//! A fleet of hosts that are named one by one: no file has to be written for three hosts.

use super::source::FleetSource;
use command::Failure;
use plan::fleet::hostlist;
use plan::{Fleet, FleetHost};

pub(super) const SOURCE: FleetSource =
    FleetSource { name: "hosts", what: "HOST,... (or the hosts as several words)", read };

fn read(named: &str) -> Result<Fleet, Failure> {
    let names = hostlist::expand(named).map_err(Failure::usage)?;
    Ok(Fleet { hosts: names.iter().map(|name| FleetHost::named(name)).collect(), ..Fleet::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_a_host_with_its_agent() {
        let fleet = read("a,b:7000,n[1-2]").unwrap();
        let controls: Vec<&str> = fleet.hosts.iter().map(|host| host.control.as_str()).collect();
        assert_eq!(controls, ["a", "b:7000", "n1", "n2"]);
        assert_eq!(fleet.select("b:7000").unwrap().len(), 1);
    }
}
