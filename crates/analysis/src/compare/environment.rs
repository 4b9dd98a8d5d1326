//! In what two sides differ beside their figures.

use std::collections::{BTreeMap, BTreeSet};

use model::{Difference, Run, Spec};
use serde_json::Value;

/// Facts about a host that differ from one minute to the next and say nothing of the path.
const PASSING: [&str; 4] = ["memory_available_bytes", "load_average", "missing", "selftest"];

/// The differences of hosts, programs and specs between two sides. `specs` are the matched cells of both sides; their blocks are
/// not compared, for they stand beside each figure.
pub(super) fn differences(a: &[&Run], b: &[&Run], specs: &[(&Spec, &Spec)]) -> Vec<Difference> {
    let mut found = Vec::new();
    type Part = fn(&Run) -> Value;
    let parts: [(&str, Part); 3] = [
        ("near", |run| json(&run.header.near)),
        ("far", |run| json(&run.header.far)),
        ("tool", |run| {
            Value::from([&run.header.tool.near_version, &run.header.tool.far_version].map(String::as_str).join(" and "))
        }),
    ];
    for (of, part) in parts {
        let side = |runs: &[&Run]| runs.iter().map(|run| part(run)).collect::<Vec<_>>();
        compare(of, &side(a), &side(b), &mut found);
    }
    let side = |pick: fn(&(&Spec, &Spec)) -> Spec| {
        specs.iter().map(|pair| json(&Spec { block: 0, reply: None, ..pick(pair) })).collect::<Vec<_>>()
    };
    compare("spec", &side(|pair| pair.0.clone()), &side(|pair| pair.1.clone()), &mut found);
    found
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
        if a != b && !PASSING.iter().any(|name| field == name || field.starts_with(&format!("{name}."))) {
            let words = |side: BTreeSet<String>| {
                if side.is_empty() { "-".to_owned() } else { side.into_iter().collect::<Vec<_>>().join(" | ") }
            };
            into.push(Difference { of: of.to_owned(), field: field.clone(), a: words(a), b: words(b) });
        }
    }
}

/// Every value that a field has in any of `values`, by its path. Entries of a list go by their `name` where they have one.
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
        Value::Array(list) if list.iter().any(|entry| entry["name"].is_string()) => {
            for entry in list {
                flatten(&below(entry["name"].as_str().unwrap_or("?")), entry, into);
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
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_named() {
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
    fn several_runs_a_side_show_all_their_values() {
        let mut found = Vec::new();
        compare("far", &[json!({"os": "x"}), json!({"os": "y"})], &[json!({"os": "x"})], &mut found);
        assert_eq!((found[0].a.as_str(), found[0].b.as_str()), ("x | y", "x"));
    }
}
