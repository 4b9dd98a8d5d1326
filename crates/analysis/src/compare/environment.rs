//! Configuration differences of two sides.

use std::collections::{BTreeMap, BTreeSet};

use model::{Difference, Inventory, Path, Run, Spec};
use serde_json::{Value, json};

/// Facts about a host that change all the time and are not configuration.
const VOLATILE: [&str; 4] = ["memory_available_bytes", "load_average", "missing", "selftest"];
/// The same at any depth, below an interface or a path. A hardware address is an identity, like a host name.
const VOLATILE_BELOW: [&str; 5] = ["traffic", "kernel_message", "totals", "mac", "hz_source"];

/// The configuration differences of two hosts, without volatile facts. `of` of each is `host`.
#[must_use]
pub fn host_differences(a: &Inventory, b: &Inventory) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("host", &[json(a)], &[json(b)], &mut found);
    // What a process may use depends on its rights. The hosts' own lists are settings.
    if [a, b].iter().all(|host| host.sysctl.contains_key(AVAILABLE_CONTROLS)) {
        found.retain(|one| one.field != "congestion_controls");
    }
    found
}

/// The setting with the congestion controls that a host has.
const AVAILABLE_CONTROLS: &str = "net.ipv4.tcp_available_congestion_control";

/// The differences of hosts, programs and specs between two sides. `specs` are the matched cells of both sides; their blocks are not
/// compared because each figure shows them.
pub(super) fn differences(a: &[&Run], b: &[&Run], specs: &[(&Spec, &Spec)]) -> Vec<Difference> {
    let mut found = Vec::new();
    type Part = fn(&Run) -> Value;
    let parts: [(&str, Part); 5] = [
        ("near", |run| inventory(&run.header.near)),
        ("far", |run| inventory(&run.header.far)),
        ("path outbound", |run| path_facts(run.header.path_outbound.as_ref())),
        ("path return", |run| path_facts(run.header.path_return.as_ref())),
        ("tool", |run| {
            Value::from([&run.header.tool.near_version, &run.header.tool.far_version].map(String::as_str).join(" and "))
        }),
    ];
    for (of, part) in parts {
        let side = |runs: &[&Run]| runs.iter().map(|run| part(run)).collect::<Vec<_>>();
        let (one, other) = (side(a), side(b));
        if [&one, &other].iter().all(|side| side.iter().any(|value| !value.is_null())) {
            compare(of, &one, &other, &mut found);
        }
    }
    let side = |pick: fn(&(&Spec, &Spec)) -> Spec| {
        specs.iter().map(|pair| json(&Spec { block: 0, reply: None, ..pick(pair) })).collect::<Vec<_>>()
    };
    compare("spec", &side(|pair| pair.0.clone()), &side(|pair| pair.1.clone()), &mut found);
    found
}

/// A host's facts; null if nothing is known of it.
fn inventory(host: &Inventory) -> Value {
    if is_unknown(host) { Value::Null } else { json(host) }
}

/// Whether nothing is known of a host, as in imports.
pub(super) fn is_unknown(host: &Inventory) -> bool {
    *host == Inventory::default()
}

/// Every value of a spec by its path.
pub(super) fn flat(spec: &Spec) -> BTreeMap<String, String> {
    let values = fields(&[json(spec)]).into_iter();
    values.map(|(name, values)| (name, values.into_iter().collect::<Vec<_>>().join(" "))).collect()
}

/// For each of several specs what distinguishes it from the others of its kind, such as `flows 4, direction reverse`; empty without a
/// spec, and where it has nothing that another lacks.
pub fn distinguishing<'a, K: Ord>(specs: impl IntoIterator<Item = (K, Option<&'a Spec>)>) -> Vec<String> {
    let mut kinds: BTreeMap<K, Vec<(usize, &Spec)>> = BTreeMap::new();
    let mut words: Vec<String> = Vec::new();
    for (place, (kind, spec)) in specs.into_iter().enumerate() {
        words.push(String::new());
        if let Some(spec) = spec {
            kinds.entry(kind).or_default().push((place, spec));
        }
    }
    for alike in kinds.values() {
        let specs: Vec<&Spec> = alike.iter().map(|(_, spec)| *spec).collect();
        for ((place, _), own) in alike.iter().zip(among(&specs)) {
            words[*place] = own;
        }
    }
    words
}

fn among(specs: &[&Spec]) -> Vec<String> {
    let all: Vec<BTreeMap<String, String>> = specs.iter().map(|spec| flat(spec)).collect();
    let differs = |key: &String| all.iter().any(|one| one.get(key) != all.first().and_then(|first| first.get(key)));
    let own = |one: &BTreeMap<String, String>| {
        let parts = one.iter().filter(|(key, _)| differs(key)).map(|(key, value)| words(key, value));
        parts.collect::<Vec<_>>().join(", ")
    };
    all.iter().map(own).collect()
}

/// A field of a spec in words. The unit at the end of its name becomes part of the value.
fn words(key: &str, value: &str) -> String {
    let number = value.parse::<u64>().ok();
    let last = key.rsplit('.').next().unwrap_or(key);
    let text = match (last, number) {
        (name, Some(ns)) if name.ends_with("_ns") || name.ends_with("-ns") => model::Nanos(ns).to_string(),
        (name, Some(bps)) if name.ends_with("_bps") => model::BitRate(bps).to_string(),
        ("block" | "reply" | "sndbuf" | "rcvbuf" | "bytes", Some(bytes)) => model::ByteSize(bytes).to_string(),
        _ => value.to_owned(),
    };
    let name = key.trim_end_matches("_ns").trim_end_matches("-ns").trim_end_matches("_bps").trim_start_matches("stop.");
    if text == "true" { name.to_owned() } else { format!("{name} {text}") }
}

/// The configuration of a path: no times, and no addresses of the ends, which are the hosts'.
fn path_facts(path: Option<&Path>) -> Value {
    let Some(path) = path else { return Value::Null };
    let routers = path.hops.as_ref().map(|hops| {
        let router = |hop: &model::Hop| hop.address.clone().unwrap_or_else(|| "no reply".into());
        hops.iter().map(router).collect::<Vec<_>>()
    });
    json!({ "route": path.route, "mtu_bytes": path.mtu.as_ref().map(|mtu| mtu.bytes), "hops": routers })
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn compare(of: &str, a: &[Value], b: &[Value], into: &mut Vec<Difference>) {
    let (a, b) = (fields(a), fields(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for field in names {
        let values = |side: &BTreeMap<String, BTreeSet<String>>| side.get(field).cloned().unwrap_or_default();
        let (a, b) = (values(&a), values(&b));
        if a != b && !is_volatile(field) {
            let text = |side: BTreeSet<String>| {
                if side.is_empty() { "-".to_owned() } else { side.into_iter().collect::<Vec<_>>().join(" | ") }
            };
            into.push(Difference { of: of.to_owned(), field: field.clone(), a: text(a), b: text(b) });
        }
    }
}

fn is_volatile(field: &str) -> bool {
    let first = field.split('.').next().unwrap_or_default();
    VOLATILE.contains(&first) || field.split('.').any(|part| VOLATILE_BELOW.contains(&part))
}

/// The key of an entry of a list.
fn label(entry: &Value) -> Option<&str> {
    entry["name"].as_str().or_else(|| entry["line"].as_str())
}

/// Every value of a field in any of `values`, by its path. The key of a list's entry is its `name` or, for interrupts, its `line`.
fn fields(values: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for value in values {
        flatten("", value, &mut all);
    }
    all
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, BTreeSet<String>>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Null => {}
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(&below(key), value, into)),
        Value::Array(list) if list.iter().any(|entry| label(entry).is_some()) => {
            for entry in list {
                flatten(&below(label(entry).unwrap_or("?")), entry, into);
            }
        }
        Value::Array(list) => {
            let words: Vec<String> = list.iter().map(plain).collect();
            if !words.is_empty() {
                into.entry(path.to_owned()).or_default().insert(words.join(" "));
            }
        }
        one => {
            into.entry(path.to_owned()).or_default().insert(plain(one));
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use model::Pattern;
    use serde_json::json;

    use super::*;

    #[test]
    fn specs_are_distinguished_by_what_differs() {
        let plain = Spec::new("tcp", Pattern::Stream);
        let reverse = Spec { flows: 4, direction: model::Direction::Reverse, ..plain.clone() };
        let mut bbr = Spec { rate_bps: Some(10_000_000), ..plain.clone() };
        bbr.far.cc = Some("bbr".into());
        let rows = [(0, Some(&plain)), (0, Some(&reverse)), (0, Some(&bbr)), (1, Some(&reverse)), (1, None)];
        let of = distinguishing(rows);
        assert_eq!(of[0], "direction send, flows 1");
        assert_eq!(of[1], "direction reverse, flows 4");
        assert_eq!(of[2], "direction send, far.cc bbr, flows 1, rate 10.0 Mbit/s");
        assert_eq!(of[3..], ["", ""], "alone of its kind, and without a spec");
    }

    #[test]
    fn only_differences_are_listed() {
        let a = json!({"kernel": "6.1", "load_average": [1.0, 2.0, 3.0], "sysctl": {"net.core.rmem_max": "1", "x": "2"},
            "interfaces": [{"name": "eth0", "mtu": 1500}]});
        let b = json!({"kernel": "6.1", "load_average": [0.0, 0.0, 0.0], "sysctl": {"net.core.rmem_max": "9", "x": "2"},
            "interfaces": [{"name": "lo", "mtu": 65536}, {"name": "eth0", "mtu": 9000}]});
        let mut found = Vec::new();
        compare("near", &[a], &[b], &mut found);
        let named: Vec<String> = found.iter().map(|one| format!("{}: {} {}", one.field, one.a, one.b)).collect();
        assert_eq!(
            named,
            [
                "interfaces.eth0.mtu: 1500 9000",
                "interfaces.lo.mtu: - 65536",
                "interfaces.lo.name: - lo",
                "sysctl.net.core.rmem_max: 1 9"
            ]
        );
    }

    #[test]
    fn devices_differ_by_their_configuration_only() {
        use model::{Device, Interface, Irq, Traffic};
        let host = |rx: u64, cores: &str, packets| {
            let device = Device {
                rings: [("rx".to_owned(), rx)].into(),
                irqs: vec![Irq { irq: packets as u32, line: Some("eth0-rx-0".into()), cores: Some(cores.into()) }],
                traffic: Some(Traffic { rx_packets_per_s: packets, ..Traffic::default() }),
                ..Device::default()
            };
            let interface = Interface { name: "eth0".into(), device: Some(device), ..Interface::default() };
            Inventory { interfaces: vec![interface], ..Inventory::default() }
        };
        let found = host_differences(&host(512, "0", 5.0), &host(4096, "0", 5.0));
        assert_eq!((found.len(), found[0].field.as_str()), (1, "interfaces.eth0.device.rings.rx"));
        assert_eq!((found[0].of.as_str(), found[0].a.as_str(), found[0].b.as_str()), ("host", "512", "4096"));
        let found = host_differences(&host(512, "0", 5.0), &host(512, "3", 5.0));
        assert_eq!(found[0].field, "interfaces.eth0.device.irqs.eth0-rx-0.cores");
        assert_eq!(host_differences(&host(512, "0", 5.0), &Inventory { ..host(512, "0", 5.0) }), []);
        let busier = Traffic { rx_packets_per_s: 9.0, ..Traffic::default() };
        let mut other = host(512, "0", 5.0);
        other.interfaces[0].device.as_mut().unwrap().traffic = Some(busier);
        assert_eq!(host_differences(&host(512, "0", 5.0), &other), []);
    }

    #[test]
    fn what_a_process_may_use_is_no_difference_of_hosts() {
        let host = |allowed: &[&str]| Inventory {
            congestion_controls: allowed.iter().map(|name| (*name).to_owned()).collect(),
            sysctl: [(AVAILABLE_CONTROLS.to_owned(), "reno cubic bbr".to_owned())].into(),
            ..Inventory::default()
        };
        assert_eq!(host_differences(&host(&["reno", "cubic", "bbr"]), &host(&["reno"])), []);
    }

    #[test]
    fn the_times_of_a_path_are_not_a_difference_and_its_routers_are() {
        use model::{Hop, Ping};
        let path = |router: &str, ns| {
            let hop = Hop { hop: 1, address: Some(router.into()), rtt_ns: Some(ns), ..Hop::default() };
            let ping = Some(Ping { min_ns: Some(ns), ..Ping::default() });
            path_facts(Some(&Path { hops: Some(vec![hop]), ping, ..Path::default() }))
        };
        let mut found = Vec::new();
        compare("path outbound", &[path("10.0.0.1", 5)], &[path("10.0.0.1", 900)], &mut found);
        assert_eq!(found, []);
        compare("path outbound", &[path("10.0.0.1", 5)], &[path("10.0.0.7", 5)], &mut found);
        assert_eq!((found.len(), found[0].field.as_str(), found[0].b.as_str()), (1, "hops", "10.0.0.7"));
    }

    #[test]
    fn several_runs_per_side_show_all_their_values() {
        let mut found = Vec::new();
        compare("far", &[json!({"os": "x"}), json!({"os": "y"})], &[json!({"os": "x"})], &mut found);
        assert_eq!((found[0].a.as_str(), found[0].b.as_str()), ("x | y", "x"));
    }
}
