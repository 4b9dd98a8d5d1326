//! The hosts of an Ansible inventory: YAML, INI, or the JSON of `ansible-inventory --list`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::hostlist;
use super::hosts::{Fleet, FleetHost};
use super::source::{Source, text_of};
use crate::failure::Failure;

pub(super) const SOURCE: Source =
    Source { name: "ansible", what: "FILE: an inventory in YAML or INI, or from `ansible-inventory --list`", read };

/// Variables of a host that become labels: where it stands.
const LABELS: [&str; 8] = ["rack", "row", "switch", "site", "zone", "region", "datacenter", "room"];

/// Groups that hold every host, or those without another one.
const GENERAL: [&str; 2] = ["all", "ungrouped"];

type Variables = BTreeMap<String, String>;

/// What the forms have in common: hosts in their order with their own variables, and the members, children and variables of groups.
#[derive(Default)]
struct Inventory {
    hosts: Vec<(String, Variables)>,
    groups: BTreeMap<String, Group>,
}

#[derive(Default)]
struct Group {
    hosts: Vec<String>,
    children: Vec<String>,
    variables: Variables,
}

fn read(path: &str) -> Result<Fleet, Failure> {
    let text = text_of(path)?;
    let wrong = |what: String| Failure::usage(format!("ansible:{path}: {what}"));
    let inventory = if is_ini(&text) {
        ini(&text).map_err(wrong)?
    } else {
        let value: Value = serde_saphyr::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let top = value.as_object().ok_or_else(|| wrong("this is no inventory: it has no groups".into()))?;
        if top.contains_key("_meta") { listed(top) } else { yaml(top).map_err(wrong)? }
    };
    Ok(inventory.fleet())
}

/// An INI inventory has sections or lines of hosts; YAML begins with a key, a comment or `---`, and JSON with a brace.
fn is_ini(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let key = |line: &str| line.split_whitespace().next().is_some_and(|word| word.ends_with(':'));
    first.is_some_and(|line| !line.starts_with('{') && !line.starts_with("---") && !key(line))
}

impl Inventory {
    fn host(&mut self, name: &str) -> &mut Variables {
        let at = self.hosts.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.hosts.push((name.to_owned(), Variables::new()));
            self.hosts.len() - 1
        });
        &mut self.hosts[at].1
    }

    /// All hosts of a group and its children.
    fn members(&self, group: &str, depth: usize) -> Vec<&str> {
        let Some(own) = self.groups.get(group).filter(|_| depth < 32) else { return Vec::new() };
        let children = own.children.iter().flat_map(|child| self.members(child, depth + 1));
        let mut all: Vec<&str> = own.hosts.iter().map(String::as_str).chain(children).collect();
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|name| seen.insert(*name));
        all
    }

    fn fleet(self) -> Fleet {
        let members: BTreeMap<&String, Vec<&str>> =
            self.groups.keys().map(|name| (name, self.members(name, 0))).collect();
        let host = |(name, own): &(String, Variables)| {
            // A host's own variables come before those of its groups, and smaller groups before those that contain them.
            let mut of_groups: Vec<(&usize, &Variables)> = Vec::new();
            let sizes: BTreeMap<&String, usize> = members.iter().map(|(name, all)| (*name, all.len())).collect();
            for (group, all) in &members {
                if all.contains(&name.as_str()) || group.as_str() == GENERAL[0] {
                    of_groups.push((&sizes[group], &self.groups[*group].variables));
                }
            }
            of_groups.sort_by_key(|(size, _)| **size);
            let variable = |key: &str| {
                own.get(key).or_else(|| of_groups.iter().find_map(|(_, variables)| variables.get(key))).cloned()
            };
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
        let hosts = self.hosts.iter().map(host).collect();
        let named = members.iter().filter(|(name, all)| !GENERAL.contains(&name.as_str()) && !all.is_empty());
        let groups =
            named.map(|(name, all)| ((*name).clone(), all.iter().map(ToString::to_string).collect())).collect();
        Fleet { source: String::new(), hosts, groups, alerts: Vec::new() }
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

fn variables(value: Option<&Value>) -> Variables {
    let all = value.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

/// The JSON of `ansible-inventory --list`: hosts in `_meta.hostvars`, groups beside it.
fn listed(top: &Map<String, Value>) -> Inventory {
    let mut inventory = Inventory::default();
    let texts =
        |value: Option<&Value>| value.and_then(Value::as_array).into_iter().flatten().filter_map(text).collect();
    for (name, group) in top.iter().filter(|(name, _)| *name != "_meta") {
        let hosts: Vec<String> = texts(group.get("hosts"));
        for host in &hosts {
            inventory.host(host);
        }
        let group = Group { hosts, children: texts(group.get("children")), variables: variables(group.get("vars")) };
        inventory.groups.insert(name.clone(), group);
    }
    let own = top.get("_meta").and_then(|meta| meta.get("hostvars")).and_then(Value::as_object);
    for (name, of_host) in own.into_iter().flatten() {
        *inventory.host(name) = variables(Some(of_host));
    }
    inventory
}

/// Groups within groups.
fn yaml(top: &Map<String, Value>) -> Result<Inventory, String> {
    let mut inventory = Inventory::default();
    for (name, group) in top {
        add_group(&mut inventory, name, group, 0)?;
    }
    Ok(inventory)
}

fn add_group(inventory: &mut Inventory, name: &str, group: &Value, depth: usize) -> Result<(), String> {
    if depth > 32 {
        return Err(format!("the group {name} is nested too deep"));
    }
    let known = ["hosts", "children", "vars"];
    if let Some(key) =
        group.as_object().into_iter().flatten().map(|(key, _)| key).find(|key| !known.contains(&key.as_str()))
    {
        return Err(format!("the group {name} has '{key}': a group has hosts, children and vars"));
    }
    for (pattern, own) in group.get("hosts").and_then(Value::as_object).into_iter().flatten() {
        for host in expand(pattern)? {
            let own = variables(Some(own));
            inventory.host(&host).extend(own);
            inventory.groups.entry(name.to_owned()).or_default().hosts.push(host);
        }
    }
    for (child, of_child) in group.get("children").and_then(Value::as_object).into_iter().flatten() {
        add_group(inventory, child, of_child, depth + 1)?;
        inventory.groups.entry(name.to_owned()).or_default().children.push(child.clone());
    }
    inventory.groups.entry(name.to_owned()).or_default().variables.extend(variables(group.get("vars")));
    Ok(())
}

/// Sections of hosts, `:children` and `:vars`.
fn ini(text: &str) -> Result<Inventory, String> {
    let mut inventory = Inventory::default();
    let mut section = (GENERAL[1].to_owned(), String::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (name, kind) = head.split_once(':').unwrap_or((head, ""));
            if !["", "children", "vars"].contains(&kind) {
                return Err(format!("line {number}: '[{head}]' is neither a group, nor its children or vars"));
            }
            section = (name.to_owned(), kind.to_owned());
            inventory.groups.entry(name.to_owned()).or_default();
            continue;
        }
        let group = section.0.clone();
        match section.1.as_str() {
            "children" => inventory.groups.entry(group).or_default().children.push(line.to_owned()),
            "vars" => {
                let (key, value) =
                    line.split_once('=').ok_or_else(|| format!("line {number}: a variable needs `=`"))?;
                let value = unquoted(value.trim());
                inventory.groups.entry(group).or_default().variables.insert(key.trim().to_owned(), value);
            }
            _ => {
                let mut words = line.split_whitespace();
                let pattern = words.next().unwrap_or_default();
                let own: Variables = words
                    .filter_map(|word| word.split_once('='))
                    .map(|(key, value)| (key.to_owned(), unquoted(value)))
                    .collect();
                for host in expand(pattern).map_err(|what| format!("line {number}: {what}"))? {
                    inventory.host(&host).extend(own.clone());
                    inventory.groups.entry(group.clone()).or_default().hosts.push(host);
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
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = pattern.split_once('[') else { return Ok(vec![pattern.to_owned()]) };
    let (range, behind) = rest.split_once(']').ok_or_else(|| format!("'{pattern}': [ without ]"))?;
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
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path().to_str().unwrap()).unwrap_or_else(|failure| panic!("{failure}"))
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
        let refused = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            read(file.path().to_str().unwrap()).unwrap_err().to_string()
        };
        assert!(refused("[web:host]\na\n").contains("line 1: '[web:host]' is neither"));
        assert!(refused("[web]\na[1\n").contains("line 2: 'a[1': [ without ]"));
        assert!(refused("all:\n  host: {a: {}}\n").contains("the group all has 'host'"));
        assert!(refused("---\n- a\n").contains("it has no groups"));
        assert!(refused("all: [\n").contains("ansible:"));
    }

    #[test]
    fn letters_are_a_range_too() {
        assert_eq!(expand("db-[a:c].lan").unwrap(), ["db-a.lan", "db-b.lan", "db-c.lan"]);
    }
}
