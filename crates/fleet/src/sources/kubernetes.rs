//! The nodes of a Kubernetes cluster on which a pod of the agent runs, from `kubectl get pods,nodes -o json`.

use std::collections::BTreeMap;

use command::Failure;
use plan::{Fleet, FleetHost};
use serde_json::Value;
use thiserror::Error;

use super::source::{FleetSource, is_file, output_of, text_of};

pub(super) const SOURCE: FleetSource = FleetSource {
    name: "kubernetes",
    what: "LABEL=VALUE of the agents' pods, or the JSON of `kubectl get pods,nodes`",
    read,
};

/// Labels of nodes that say where they stand (kubernetes.io/docs/reference/labels-annotations-taints), and their names here.
const LABELS: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "zone"),
    ("topology.kubernetes.io/region", "region"),
    ("topology.kubernetes.io/rack", "rack"),
    ("node.kubernetes.io/instance-type", "type"),
];

/// Why no pods are found in what `kubectl` prints.
#[derive(Debug, Error)]
pub(crate) enum PodsError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("none of its pods is running")]
    NoneRuns,
}

fn read(named: &str) -> Result<Fleet, Failure> {
    let wrong = |error: PodsError| Failure::usage(format!("kubernetes:{named}: {error}"));
    if is_file(named) {
        return parse(&[text_of(named)?]).map_err(wrong);
    }
    if !named.contains('=') {
        return Err(Failure::usage(format!(
            "kubernetes:{named}: this is not a file or a pod label: write kubernetes:app=throughline"
        )));
    }
    let pods = output_of("kubectl", &["get", "pods", "--selector", named, "--output", "json"])?;
    let nodes = output_of("kubectl", &["get", "nodes", "--output", "json"])?;
    parse(&[pods, nodes]).map_err(wrong)
}

/// The fleet of running pods, each by the name of its node.
///
/// # Errors
/// It is no JSON, or no pod runs.
pub(crate) fn parse(texts: &[String]) -> Result<Fleet, PodsError> {
    let mut items: Vec<Value> = Vec::new();
    for text in texts {
        let mut value: Value = serde_json::from_str(text)?;
        match value.get_mut("items").map(Value::take) {
            Some(Value::Array(list)) => items.extend(list),
            _ => items.push(value),
        }
    }
    let of = |kind: &'static str| items.iter().filter(move |item| item["kind"] == kind);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let labels: BTreeMap<String, BTreeMap<String, String>> = of("Node")
        .filter_map(|node| {
            let own = &node["metadata"]["labels"];
            let known = LABELS.iter().filter_map(|(key, name)| Some(((*name).to_owned(), text(&own[*key])?)));
            Some((text(&node["metadata"]["name"])?, known.collect()))
        })
        .collect();
    let pod = |pod: &Value| {
        let running = pod["status"]["phase"] == "Running";
        let node = text(&pod["spec"]["nodeName"]).filter(|_| running)?;
        // IPv6 has no brackets here; an address without a port needs none.
        let control = text(&pod["status"]["podIP"])?;
        let labels = labels.get(&node).cloned().unwrap_or_default();
        Some(FleetHost { control, labels, ..FleetHost::named(&node) })
    };
    let hosts: Vec<FleetHost> = of("Pod").filter_map(pod).collect();
    if hosts.is_empty() { Err(PodsError::NoneRuns) } else { Ok(Fleet { hosts, ..Fleet::default() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_pods_are_hosts_by_their_nodes() {
        let text = r#"{"kind": "List", "items": [
            {"kind": "Pod", "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIP": "10.1.0.1"}},
            {"kind": "Pod", "spec": {"nodeName": "n2"}, "status": {"phase": "Running", "podIP": "fd00::2"}},
            {"kind": "Pod", "spec": {"nodeName": "n3"}, "status": {"phase": "Pending"}},
            {"kind": "Node", "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1", "other": "x"}}}]}"#;
        let fleet = parse(&[text.to_owned()]).unwrap();
        let shown: Vec<(&str, &str)> = fleet.hosts.iter().map(|host| (&*host.name, &*host.control)).collect();
        assert_eq!(shown, [("n1", "10.1.0.1"), ("n2", "fd00::2")]);
        assert_eq!(fleet.hosts[0].labels, BTreeMap::from([("zone".to_owned(), "z1".to_owned())]));
        assert_eq!(parse(&[r#"{"items": []}"#.to_owned()]).unwrap_err().to_string(), "none of its pods is running");
        assert!(read("app").unwrap_err().to_string().contains("write kubernetes:app=throughline"));
    }
}
