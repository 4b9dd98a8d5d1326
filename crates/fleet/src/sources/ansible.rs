//! The hosts of an Ansible inventory: YAML, INI, or the JSON of `ansible-inventory --list`.

use std::collections::{BTreeMap, BTreeSet};

use command::Failure;
use plan::fleet::Room;
use plan::fleet::hostlist::{self, no_option};
use plan::fleet::{FleetTooLarge, HostListError};
use plan::{Fleet, FleetHost};
use serde_json::{Map, Value};
use text::{Said, say};
use thiserror::Error;

use super::source::{FleetSource, text_of};

pub(super) const SOURCE: FleetSource = FleetSource {
    name: "ansible",
    what: "FILE: an inventory in YAML or INI, or from `ansible-inventory --list`",
    read,
};

/// Variables of a host that become labels: where it stands.
const LABELS: [&str; 8] = ["rack", "row", "switch", "site", "zone", "region", "datacenter", "room"];
/// Variables that say where its agent and its data are.
const ADDRESSES: [&str; 4] = ["ansible_host", "ansible_user", "thru_control", "thru_data"];
/// The others that count.
const OTHERS: [&str; 2] = ["ansible_port", "thru_token_file"];

/// Groups that hold every host, or those without another one.
const GENERAL: [&str; 2] = ["all", "ungrouped"];

/// Most steps from groups to their hosts and children.
const MOST_STEPS: usize = 2_000_000;

type Variables = BTreeMap<String, String>;

impl InventoryError {
    /// The same in a line of the file.
    fn at(self, line: u32) -> Self {
        Self::Line { line, error: self.into() }
    }
}

/// What the forms have in common: hosts in their order with their own variables, and the members, children and variables of groups.
#[derive(Default)]
struct Inventory {
    hosts: Vec<(String, Variables)>,
    /// The place of each host in that list.
    places: BTreeMap<String, usize>,
    groups: BTreeMap<String, Group>,
    room: Room,
}

#[derive(Default)]
struct Group {
    /// Its line, if the form has lines.
    line: Option<u32>,
    hosts: Vec<String>,
    children: Vec<String>,
    variables: Variables,
}

/// What is wrong in an inventory.
#[derive(Debug, Error, Said)]
pub(crate) enum InventoryError {
    #[cfg(feature = "yaml")]
    #[error("{}", on_one_line(error))]
    Yaml { error: Box<serde_saphyr::Error> },
    #[cfg(not(feature = "yaml"))]
    #[error("{}; this thru was built without YAML support", on_one_line(error))]
    Json { error: serde_json::Error },
    #[error("this is not an inventory: it has no groups")]
    NoGroups,
    #[error("'[{head}]' is not a group, or the children or vars of one")]
    Section { head: String },
    #[error("a variable needs `=`")]
    NoValue,
    #[error("the group {group} has '{key}': a group has hosts, children and vars")]
    Key { group: String, key: String },
    #[error("the group {group} is nested too deeply")]
    Depth { group: String },
    #[error("the group {group} has too many hosts in nested groups")]
    Steps { group: String },
    #[error(transparent)]
    Names(#[from] HostListError),
    #[error(transparent)]
    TooLarge(#[from] FleetTooLarge),
    #[error("{key}: {error}")]
    Address { key: String, error: HostListError },
    #[error("line {line}: {error}")]
    Line { line: u32, error: Box<Self> },
    #[error("the host {host}: {error}")]
    OfHost { host: String, error: Box<Self> },
    #[error("the group {group}: {error}")]
    OfGroup { group: String, error: Box<Self> },
}

fn read(path: &str) -> Result<Fleet, Failure> {
    parse(&text_of(path)?).map_err(|error| Failure::usage(say!("ansible:{path}: {error}")))
}

/// The fleet of an inventory in any form.
///
/// # Errors
/// What is wrong, with its line where the form has lines.
pub(crate) fn parse(text: &str) -> Result<Fleet, InventoryError> {
    let inventory = if is_ini(text) {
        ini(text)?
    } else {
        let value = value_of(text)?;
        let top = value.as_object().ok_or(InventoryError::NoGroups)?;
        if top.contains_key("_meta") { listed(top)? } else { yaml(top)? }
    };
    inventory.fleet()
}

/// What a text of YAML holds, or of JSON, which is YAML too.
#[cfg(feature = "yaml")]
fn value_of(text: &str) -> Result<Value, InventoryError> {
    serde_saphyr::from_str(text).map_err(|error| InventoryError::Yaml { error: error.into() })
}

/// What a text of JSON holds.
#[cfg(not(feature = "yaml"))]
fn value_of(text: &str) -> Result<Value, InventoryError> {
    serde_json::from_str(text).map_err(|error| InventoryError::Json { error })
}

/// An error that may show a part of the file.
fn on_one_line(error: &impl ToString) -> String {
    error.to_string().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// An INI inventory has sections or lines of hosts; YAML begins with a key, a comment or `---`, and JSON with a brace.
fn is_ini(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let key = |line: &str| line.split_whitespace().next().is_some_and(|word| word.ends_with(':'));
    first.is_some_and(|line| !line.starts_with('{') && !line.starts_with("---") && !key(line))
}

impl Inventory {
    /// Adds a host, or variables of one that is known.
    fn host(&mut self, name: &str, own: &Variables) -> Result<(), InventoryError> {
        no_option(name)?;
        if !self.places.contains_key(name) {
            self.room.host(&FleetHost::named(name))?;
            self.places.insert(name.to_owned(), self.hosts.len());
            self.hosts.push((name.to_owned(), Variables::new()));
        }
        self.room.text(name.len() + own.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>())?;
        self.hosts[self.places[name]].1.extend(own.clone());
        Ok(())
    }

    fn group(&mut self, name: &str) -> &mut Group {
        self.groups.entry(name.to_owned()).or_default()
    }

    /// All hosts of each group and its children, each once.
    fn members(&self) -> Result<BTreeMap<&str, Vec<&str>>, InventoryError> {
        let mut steps = 0;
        let mut members = BTreeMap::new();
        for (name, group) in &self.groups {
            let (mut hosts, mut open) = (Vec::new(), vec![name]);
            let (mut known, mut passed) = (BTreeSet::new(), BTreeSet::new());
            while let Some(next) = open.pop() {
                let Some(own) = self.groups.get(next).filter(|_| passed.insert(next)) else { continue };
                steps += own.hosts.len() + own.children.len();
                if steps > MOST_STEPS {
                    let error = InventoryError::Steps { group: name.clone() };
                    return Err(match group.line {
                        Some(line) => error.at(line),
                        None => error,
                    });
                }
                hosts.extend(own.hosts.iter().map(String::as_str).filter(|host| known.insert(*host)));
                open.extend(own.children.iter().rev());
            }
            members.insert(name.as_str(), hosts);
        }
        Ok(members)
    }

    fn fleet(self) -> Result<Fleet, InventoryError> {
        let members = self.members()?;
        // A host's own variables come before those of its groups, and smaller groups before those that contain them.
        let mut by_size: Vec<(usize, &str)> = members.iter().map(|(name, all)| (all.len(), *name)).collect();
        by_size.retain(|(_, name)| *name != GENERAL[0]);
        by_size.sort_by_key(|(size, _)| *size);
        let mut of_groups: Vec<Vec<&Variables>> = vec![Vec::new(); self.hosts.len()];
        for (_, group) in by_size {
            let variables = &self.groups[group].variables;
            members[group].iter().for_each(|host| of_groups[self.places[*host]].push(variables));
        }
        let of_all = self.groups.get(GENERAL[0]).map(|group| &group.variables);
        let host = |((name, own), groups): (&(String, Variables), Vec<&Variables>)| {
            let places = [own].into_iter().chain(groups).chain(of_all);
            let variable = |key: &str| places.clone().find_map(|variables| variables.get(key)).cloned();
            let address = variable("ansible_host").unwrap_or_else(|| name.clone());
            let user = variable("ansible_user").map_or(String::new(), |user| format!("{user}@"));
            let port = variable("ansible_port").map_or(String::new(), |port| format!(":{port}"));
            FleetHost {
                name: name.clone(),
                control: variable("thru_control").unwrap_or_else(|| address.clone()),
                data: variable("thru_data"),
                labels: LABELS.iter().filter_map(|label| Some(((*label).to_owned(), variable(label)?))).collect(),
                token_file: variable("thru_token_file").map(Into::into),
                key: None,
                ssh: Some(format!("{user}{address}{port}")),
            }
        };
        let mut room = Room::default();
        let hosts = self.hosts.iter().zip(of_groups).map(|of| {
            let host = host(of);
            room.host(&host).map(|()| host)
        });
        let hosts = hosts.collect::<Result<_, _>>()?;
        let named = members.iter().filter(|(name, all)| !GENERAL.contains(name) && !all.is_empty());
        let groups =
            named.map(|(name, all)| ((*name).to_owned(), all.iter().map(ToString::to_string).collect())).collect();
        Ok(Fleet { source: String::new(), hosts, groups, alerts: Vec::new() })
    }
}

/// A scalar as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The variables that count, of those that an object has.
fn variables(value: Option<&Value>) -> Result<Variables, InventoryError> {
    let all = value.and_then(Value::as_object).into_iter().flatten();
    counting(all.filter_map(|(key, value)| Some((key.clone(), text(value)?))))
}

/// The variables that count. An address is no option.
fn counting(all: impl Iterator<Item = (String, String)>) -> Result<Variables, InventoryError> {
    let of = |names: &[&str], key: &str| names.contains(&key);
    let kept = all.filter(|(key, _)| of(&LABELS, key) || of(&ADDRESSES, key) || of(&OTHERS, key));
    kept.map(|(key, value)| match no_option(&value) {
        Err(error) if of(&ADDRESSES, &key) => Err(InventoryError::Address { key, error }),
        _ => Ok((key, value)),
    })
    .collect()
}

/// The JSON of `ansible-inventory --list`: hosts in `_meta.hostvars`, groups beside it.
fn listed(top: &Map<String, Value>) -> Result<Inventory, InventoryError> {
    let mut inventory = Inventory::default();
    let texts =
        |value: Option<&Value>| value.and_then(Value::as_array).into_iter().flatten().filter_map(text).collect();
    for (name, group) in top.iter().filter(|(name, _)| *name != "_meta") {
        let hosts: Vec<String> = texts(group.get("hosts"));
        hosts.iter().try_for_each(|host| inventory.host(host, &Variables::new()))?;
        let (children, variables) = (texts(group.get("children")), variables(group.get("vars"))?);
        inventory.groups.insert(name.clone(), Group { line: None, hosts, children, variables });
    }
    let own = top.get("_meta").and_then(|meta| meta.get("hostvars")).and_then(Value::as_object);
    for (name, of_host) in own.into_iter().flatten() {
        inventory.host(name, &variables(Some(of_host))?)?;
    }
    Ok(inventory)
}

/// Groups within groups.
fn yaml(top: &Map<String, Value>) -> Result<Inventory, InventoryError> {
    let mut inventory = Inventory::default();
    for (name, group) in top {
        add_group(&mut inventory, name, group, 0)?;
    }
    Ok(inventory)
}

fn add_group(inventory: &mut Inventory, name: &str, group: &Value, depth: usize) -> Result<(), InventoryError> {
    if depth > 32 {
        return Err(InventoryError::Depth { group: name.to_owned() });
    }
    let known = ["hosts", "children", "vars"];
    if let Some(key) =
        group.as_object().into_iter().flatten().map(|(key, _)| key).find(|key| !known.contains(&key.as_str()))
    {
        return Err(InventoryError::Key { group: name.to_owned(), key: key.clone() });
    }
    for (pattern, own) in group.get("hosts").and_then(Value::as_object).into_iter().flatten() {
        let own = variables(Some(own))
            .map_err(|error| InventoryError::OfHost { host: pattern.clone(), error: error.into() })?;
        for host in expand(pattern)? {
            inventory.host(&host, &own)?;
            inventory.group(name).hosts.push(host);
        }
    }
    for (child, of_child) in group.get("children").and_then(Value::as_object).into_iter().flatten() {
        add_group(inventory, child, of_child, depth + 1)?;
        inventory.group(name).children.push(child.clone());
    }
    let own = variables(group.get("vars"))
        .map_err(|error| InventoryError::OfGroup { group: name.to_owned(), error: error.into() })?;
    inventory.group(name).variables.extend(own);
    Ok(())
}

/// Sections of hosts, `:children` and `:vars`.
fn ini(text: &str) -> Result<Inventory, InventoryError> {
    let mut inventory = Inventory::default();
    let mut section = (GENERAL[1].to_owned(), String::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let at = |error: InventoryError| error.at(number);
        if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (name, kind) = head.split_once(':').unwrap_or((head, ""));
            if !["", "children", "vars"].contains(&kind) {
                return Err(at(InventoryError::Section { head: head.to_owned() }));
            }
            section = (name.to_owned(), kind.to_owned());
            inventory.group(name).line.get_or_insert(number);
            continue;
        }
        let (group, kind) = (section.0.as_str(), section.1.as_str());
        match kind {
            "children" => inventory.group(group).children.push(line.to_owned()),
            "vars" => {
                let (key, value) = line.split_once('=').ok_or_else(|| at(InventoryError::NoValue))?;
                let own = std::iter::once((key.trim().to_owned(), unquoted(value.trim())));
                inventory.group(group).variables.extend(counting(own).map_err(at)?);
            }
            _ => {
                let mut words = line.split_whitespace();
                let pattern = words.next().unwrap_or_default();
                let own = words.filter_map(|word| word.split_once('='));
                let own = counting(own.map(|(key, value)| (key.to_owned(), unquoted(value)))).map_err(at)?;
                for host in expand(pattern).map_err(|error| at(error.into()))? {
                    inventory.host(&host, &own).map_err(at)?;
                    inventory.group(group).hosts.push(host);
                }
            }
        }
    }
    Ok(inventory)
}

fn unquoted(value: &str) -> String {
    value.trim_matches(['"', '\'']).to_owned()
}

/// The hosts of a pattern with a range, `db[01:16]` or `db-[a:f]`.
fn expand(pattern: &str) -> Result<Vec<String>, HostListError> {
    let Some((before, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    let (range, behind) = rest.split_once(']').ok_or_else(|| HostListError::NotClosed { text: pattern.to_owned() })?;
    let letter = |text: &str| Some(text).filter(|text| text.len() == 1).and_then(|text| text.bytes().next());
    if let Some((first, last)) = range.split_once(':')
        && let (Some(first @ b'a'..=b'z' | first @ b'A'..=b'Z'), Some(last)) = (letter(first), letter(last))
    {
        return Ok((first..=last).map(|letter| format!("{before}{}{behind}", char::from(letter))).collect());
    }
    hostlist::expand(&format!("{before}[{}]{behind}", range.replace(':', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(text: &str) -> Fleet {
        parse(text).unwrap_or_else(|what| panic!("{what}"))
    }

    fn shown(fleet: &Fleet) -> Vec<String> {
        let host = |host: &FleetHost| {
            let ssh = host.ssh.as_deref().unwrap_or_default();
            format!("{} {} {:?} {ssh} {:?}", host.name, host.control, host.data.as_deref().unwrap_or("-"), host.labels)
        };
        fleet.hosts.iter().map(host).collect()
    }

    const WANTED: [&str; 3] = [
        r#"a 192.0.2.1 "-" me@192.0.2.1 {"rack": "r1", "site": "east"}"#,
        r#"db01 db01 "10.0.0.1" me@db01:2222 {"rack": "r2", "site": "east"}"#,
        r#"db02 db02 "10.0.0.1" me@db02:2222 {"rack": "r2", "site": "east"}"#,
    ];

    #[test]
    fn the_three_forms_give_the_same_fleet() {
        let yaml = "all:\n  vars: {site: east, ansible_user: me}\n  children:\n    web:\n      hosts:\n        a: {ansible_host: 192.0.2.1, rack: r1}\n    \
                    data:\n      hosts:\n        db[01:02]:\n          ansible_port: 2222\n      vars: {rack: r2, thru_data: 10.0.0.1}\n";
        let ini = "; hosts\n[web]\na ansible_host=192.0.2.1 rack='r1' # first\n[data]\ndb[01:02] ansible_port=2222\n[data:vars]\nrack = r2\nthru_data=10.0.0.1\n\
                   [every:children]\nweb\ndata\n[all:vars]\nsite=east\nansible_user=me\n";
        let json = r#"{"_meta": {"hostvars": {"a": {"ansible_host": "192.0.2.1", "rack": "r1", "site": "east", "ansible_user": "me"},
            "db01": {"ansible_port": 2222, "rack": "r2", "thru_data": "10.0.0.1", "site": "east", "ansible_user": "me"},
            "db02": {"ansible_port": 2222, "rack": "r2", "thru_data": "10.0.0.1", "site": "east", "ansible_user": "me"}}},
            "all": {"children": ["ungrouped", "web", "data"]}, "web": {"hosts": ["a"]}, "data": {"hosts": ["db01", "db02"]}}"#;
        for (form, text) in [("yaml", yaml), ("ini", ini), ("json", json)] {
            let fleet = fleet(text);
            let mut hosts = shown(&fleet);
            hosts.sort();
            assert_eq!(hosts, WANTED, "{form}");
            assert_eq!(fleet.groups["data"], ["db01", "db02"], "{form}");
            assert!(!fleet.groups.contains_key("all"), "{form}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str| parse(text).unwrap_err().to_string();
        assert!(refused("[web:host]\na\n").contains("line 1: '[web:host]' is not a group"));
        assert!(refused("[web]\na[1\n").contains("line 2: 'a[1': [ without ]"));
        assert!(refused("all:\n  host: {a: {}}\n").contains("the group all has 'host'"));
        assert!(refused("---\n- a\n").contains("it has no groups"));
        let broken = refused("all: [\n");
        assert!(!broken.is_empty() && !broken.contains('\n'), "{broken}");
        let missing = read("/no/such").unwrap_err().to_string();
        assert!(missing.contains("cannot read the fleet /no/such"), "{missing}");
    }

    #[test]
    fn a_host_that_ssh_would_take_for_an_option_is_refused_with_its_place() {
        for (text, said) in [
            ("[web]\na\n-oProxyCommand=x\n", "line 3: '-oProxyCommand=x' begins with '-'"),
            ("[web]\na ansible_host=-V\n", "line 2: ansible_host: '-V' begins with '-'"),
            ("[web]\na\n[all:vars]\nansible_user = -F/tmp/x\n", "line 4: ansible_user: '-F/tmp/x' begins with '-'"),
            ("all:\n  hosts:\n    a: {ansible_host: -V}\n", "the host a: ansible_host: '-V' begins with '-'"),
            (r#"{"_meta": {"hostvars": {"-V": {}}}}"#, "'-V' begins with '-'"),
        ] {
            let refused = parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(said), "{text}: {refused}");
        }
    }

    #[test]
    fn groups_within_groups_are_passed_once() {
        // Twelve times the next one, 31 times: as paths, 12 to the power of 31.
        let fan = |at: usize| format!("[g{at}:children]\n{}", format!("g{}\n", at + 1).repeat(12));
        let text: String = (0..31).map(fan).chain(["[g31]\nh\n".to_owned()]).collect();
        assert_eq!(fleet(&text).groups["g0"], ["h"]);
        let circle = "[a:children]\nb\n[b:children]\na\nb\n[b]\nx\n";
        assert_eq!(fleet(circle).groups["a"], ["x"]);
        // Each of these holds all that follow.
        let chain = |at: usize| format!("[g{at}]\nh{at}\n[g{at}:children]\ng{}\n", at + 1);
        let text: String = (0..1_500).map(chain).collect();
        let refused = parse(&text).unwrap_err().to_string();
        assert!(refused.starts_with("line ") && refused.contains("has too many hosts in nested groups"), "{refused}");
    }

    #[test]
    fn patterns_are_bounded_together() {
        let many = |line: &str| parse(&format!("[web]\n{}", line.repeat(100))).unwrap_err().to_string();
        let long = format!("h[0:65535] rack={}\n", "x".repeat(60_000));
        let inherited = parse(&format!("[all:vars]\nrack={}\n[web]\nh[0:4095]\n", "x".repeat(60_000)));
        let inherited = inherited.unwrap_err().to_string();
        assert!(inherited.contains("more than 64 MiB"), "{inherited}");
        for (text, line) in [("a[0:65535]\nb\n", 3), (long.as_str(), 2)] {
            let refused = many(text);
            let said = format!("line {line}: more than 65536 hosts, or more than 64 MiB of names and variables");
            assert_eq!(refused, said);
        }
    }

    #[test]
    fn variables_of_all_hosts_come_last() {
        let fleet = fleet("[all:vars]\nrack=every\nsite=every\n[web]\na\n[web:vars]\nrack=web\n");
        assert_eq!(fleet.hosts[0].labels.values().collect::<Vec<_>>(), ["web", "every"]);
    }

    #[test]
    fn letters_are_a_range_too() {
        assert_eq!(expand("db-[a:c].lan").unwrap(), ["db-a.lan", "db-b.lan", "db-c.lan"]);
    }
}
