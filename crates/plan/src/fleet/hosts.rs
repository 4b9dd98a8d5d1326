//! A fleet: its hosts, and which of them a selection names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bus::Place;
use control::ControlError;
use control::coordinator::identity;
use control::proof::fingerprint::Fingerprint;

use super::bounds::{MOST_HOSTS, MOST_MIB};
use super::error::{FleetTooLarge, HostListError, SelectionError};
use super::hostlist;
use crate::mistake::Mistake;

/// Most of the texts of a fleet, bytes.
const MOST_BYTES: usize = MOST_MIB << 20;

/// Counts the hosts and the texts of a fleet while it is read.
#[derive(Debug, Default)]
pub struct Room {
    hosts: usize,
    bytes: usize,
}

impl Room {
    /// Takes a host.
    ///
    /// # Errors
    /// It is one too many.
    pub fn host(&mut self, host: &FleetHost) -> Result<(), FleetTooLarge> {
        self.hosts += 1;
        let labels = host.labels.iter().flat_map(|(label, value)| [label, value]);
        let texts = [&host.name, &host.control].into_iter().chain(&host.data).chain(&host.ssh).chain(labels);
        let file = host.token_file.as_ref().map_or(0, |file| file.as_os_str().len());
        self.text(texts.map(String::len).sum::<usize>() + file)
    }

    /// Takes a text of this length.
    ///
    /// # Errors
    /// It is one too many.
    pub fn text(&mut self, bytes: usize) -> Result<(), FleetTooLarge> {
        self.bytes += bytes;
        if self.hosts <= MOST_HOSTS && self.bytes <= MOST_BYTES { Ok(()) } else { Err(FleetTooLarge) }
    }
}

/// Many hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fleet {
    /// Where it comes from, as the user named it.
    pub source: String,
    /// The hosts, in their order there. No two have the same name.
    pub hosts: Vec<FleetHost>,
    /// Groups by name: names of hosts.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Conditions that raise an alert while the fleet is watched, such as `goodput<500Mbit rack=r1`.
    pub alerts: Vec<String>,
}

/// A host of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetHost {
    /// Its name in tables and plans.
    pub name: String,
    /// The address of its agent: a name or an address, with a port if that is not the default.
    pub control: String,
    /// The address for data, where it is not that of the agent: a name or an address, or an address with a forwarded port of the agent.
    pub data: Option<String>,
    /// Its labels, such as `rack` and `site`.
    pub labels: BTreeMap<String, String>,
    /// The file with its agent's token.
    pub token_file: Option<PathBuf>,
    /// The key of its agent.
    pub key: Option<Fingerprint>,
    /// Where ssh reaches it: `[USER@]HOST[:PORT]` or a name of its configuration.
    pub ssh: Option<String>,
}

impl FleetHost {
    /// A host whose agent is at its own name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), control: name.to_owned(), ..Self::default() }
    }

    /// Refuses names and addresses that a program such as ssh would take for options.
    ///
    /// # Errors
    /// Which.
    pub fn no_option(&self) -> Result<(), HostListError> {
        let more = [&self.data, &self.ssh].into_iter().flatten();
        [&self.name, &self.control].into_iter().chain(more).try_for_each(|text| hostlist::no_option(text))
    }
}

impl Fleet {
    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&FleetHost> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The same hosts, reached by their names over a bus.
    ///
    /// # Errors
    /// The text is no bus.
    pub fn over_bus(mut self, bus: &str) -> Result<Self, Mistake> {
        let at = bus::place(bus).map_err(|error| Mistake::usage(ControlError::from(error)))?;
        for host in &mut self.hosts {
            host.control = at.of(&host.name);
        }
        self.checked()
    }

    /// The bus over which the first host that is on one is reached.
    #[must_use]
    pub fn bus(&self) -> Option<Place> {
        let place =
            bus::place(self.hosts.iter().map(|host| &host.control).find(|control| bus::is_bus(control))?).ok()?;
        Some(Place { name: None, ..place })
    }

    /// The fleet of these hosts only.
    #[must_use]
    pub fn of(&self, hosts: &[&FleetHost]) -> Self {
        let names: BTreeSet<&String> = hosts.iter().map(|host| &host.name).collect();
        let groups = self.groups.iter().map(|(group, members)| {
            (group.clone(), members.iter().filter(|name| names.contains(name)).cloned().collect::<Vec<_>>())
        });
        Self {
            source: self.source.clone(),
            hosts: hosts.iter().map(|host| (*host).clone()).collect(),
            groups: groups.filter(|(_, members)| !members.is_empty()).collect(),
            alerts: self.alerts.clone(),
        }
    }

    /// The hosts that a selection names, in the fleet's order: a list with commas of names (`node[01-04]`), groups (`@web`), labels
    /// (`rack=r1`), and `!` before what to leave out. A list of exclusions only begins with all hosts.
    ///
    /// # Errors
    /// A name, a group or a label that the fleet does not have; nothing is left.
    pub fn select(&self, selection: &str) -> Result<Vec<&FleetHost>, SelectionError> {
        let mut chosen: BTreeSet<&str> = BTreeSet::new();
        let mut begun = false;
        for term in hostlist::split(selection)? {
            let (leave_out, term) = term.strip_prefix('!').map_or((false, term), |term| (true, term));
            let named = self.term(term)?;
            if leave_out && !begun {
                chosen = self.hosts.iter().map(|host| host.name.as_str()).collect();
            }
            begun = true;
            if leave_out {
                chosen.retain(|name| !named.contains(name));
            } else {
                chosen.extend(named);
            }
        }
        let hosts: Vec<&FleetHost> = self.hosts.iter().filter(|host| chosen.contains(host.name.as_str())).collect();
        if hosts.is_empty() {
            return Err(SelectionError::Nothing { selection: selection.to_owned(), fleet: self.source.clone() });
        }
        Ok(hosts)
    }

    /// The names of one term.
    fn term<'a>(&'a self, term: &str) -> Result<Vec<&'a str>, SelectionError> {
        let names = |wanted: &dyn Fn(&FleetHost) -> bool| -> Vec<&'a str> {
            self.hosts.iter().filter(|host| wanted(host)).map(|host| host.name.as_str()).collect()
        };
        if let Some(group) = term.strip_prefix('@') {
            let members = self.groups.get(group).ok_or_else(|| self.unknown("group", group, self.groups.keys()))?;
            return Ok(names(&|host| members.contains(&host.name)));
        }
        if let Some((label, value)) = term.split_once('=') {
            let values: BTreeSet<&String> = self.hosts.iter().filter_map(|host| host.labels.get(label)).collect();
            if values.is_empty() {
                let labels: BTreeSet<&String> = self.hosts.iter().flat_map(|host| host.labels.keys()).collect();
                return Err(self.unknown("label", label, labels));
            }
            if !values.iter().any(|known| *known == value) {
                return Err(self.unknown(label, value, values));
            }
            return Ok(names(&|host| host.labels.get(label).is_some_and(|own| own == value)));
        }
        let wanted: BTreeSet<String> = hostlist::expand(term)?.into_iter().collect();
        if let Some(missing) = wanted.iter().find(|name| self.host(name).is_none()) {
            return Err(self.unknown("host", missing, self.hosts.iter().map(|host| &host.name)));
        }
        Ok(names(&|host| wanted.contains(&host.name)))
    }

    fn unknown<'a>(&self, what: &str, name: &str, known: impl IntoIterator<Item = &'a String>) -> SelectionError {
        let (fleet, what, name) = (self.source.clone(), what.to_owned(), name.to_owned());
        SelectionError::Unknown { fleet, what, name, known: known.into_iter().cloned().collect() }
    }

    /// Refuses hosts with the same name or address, names that look like options, and groups with unknown hosts.
    ///
    /// # Errors
    /// Which.
    pub fn checked(self) -> Result<Self, Mistake> {
        let wrong = |what: String| Mistake::usage(format!("{}: {what}", self.source));
        if self.hosts.is_empty() {
            return Err(wrong("it has no hosts".into()));
        }
        let (mut names, mut agents) = (BTreeSet::new(), BTreeMap::new());
        for host in &self.hosts {
            host.no_option().map_err(|what| wrong(format!("{}: {what}", host.name)))?;
            if !names.insert(&host.name) {
                return Err(wrong(format!("it has '{}' twice", host.name)));
            }
            let agent = identity(&host.control).map_err(|error| wrong(format!("{}: {error}", host.name)))?;
            if let Some(other) = agents.insert(agent, &host.name) {
                return Err(wrong(format!(
                    "{other} and {} have the same agent, {}: name it once",
                    host.name, host.control
                )));
            }
        }
        for (group, members) in &self.groups {
            if let Some(missing) = members.iter().find(|member| !names.contains(member)) {
                return Err(wrong(format!("the group {group} has '{missing}', which is not a host of the fleet")));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Fleet {
        let host = |number: usize| {
            let mut host = FleetHost::named(&format!("n{number}"));
            host.labels.insert("rack".into(), if number < 4 { "r1" } else { "r2" }.into());
            host
        };
        let groups = BTreeMap::from([("odd".to_owned(), vec!["n1".to_owned(), "n3".to_owned(), "n5".to_owned()])]);
        Fleet { source: "f.toml".into(), hosts: (1..7).map(host).collect(), groups, alerts: Vec::new() }
            .checked()
            .unwrap()
    }

    fn selected(selection: &str) -> String {
        fleet().select(selection).unwrap().iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_selection_has_names_groups_labels_and_exclusions() {
        assert_eq!(selected("n[5-6],n1"), "n1 n5 n6");
        assert_eq!(selected("@odd,rack=r2"), "n1 n3 n4 n5 n6");
        assert_eq!(selected("rack=r1,!n2"), "n1 n3");
        assert_eq!(selected("!@odd"), "n2 n4 n6");
    }

    #[test]
    fn a_selection_names_what_the_fleet_does_not_have() {
        for (selection, said) in [
            ("n9", "f.toml has no host 'n9': it has n1, n2, n3, n4, n5, n6"),
            ("@even", "f.toml has no group 'even': it has odd"),
            ("row=1", "f.toml has no label 'row': it has rack"),
            ("rack=r3", "f.toml has no rack 'r3': it has r1, r2"),
            ("n1,!n1", "selects no host of f.toml"),
        ] {
            let error = fleet().select(selection).unwrap_err().to_string();
            assert!(error.contains(said), "{selection}: {error}");
        }
    }

    #[test]
    fn a_fleet_names_each_host_and_each_agent_once() {
        let refused = |hosts: Vec<FleetHost>, group: &[&str]| {
            let groups = BTreeMap::from([("g".to_owned(), group.iter().map(ToString::to_string).collect())]);
            Fleet { source: "f".into(), hosts, groups, alerts: Vec::new() }.checked().unwrap_err().to_string()
        };
        let [a, b] = ["a", "b"].map(FleetHost::named);
        assert_eq!(refused(vec![], &[]), "f: it has no hosts");
        assert_eq!(refused(vec![a.clone(), a.clone()], &[]), "f: it has 'a' twice");
        let same = FleetHost { control: "A:6280".into(), ..b.clone() };
        assert_eq!(refused(vec![a.clone(), same], &[]), "f: a and b have the same agent, A:6280: name it once");
        assert!(refused(vec![a, b], &["c"]).contains("the group g has 'c'"));
    }

    #[test]
    fn a_fleet_has_room_for_so_many_hosts_and_texts() {
        let (mut room, host) = (Room::default(), FleetHost::named("a"));
        assert!((0..MOST_HOSTS).all(|_| room.host(&host).is_ok()));
        assert!(room.host(&host).unwrap_err().to_string().starts_with("more than 65536 hosts"));
        let mut room = Room::default();
        assert!(room.text(MOST_BYTES).is_ok() && room.text(1).is_err());
    }
}
