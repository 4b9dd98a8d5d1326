//! LLDP neighbours as lldpd reports them (`lldpcli -f json show neighbors`, lldpcli(8)).
//!
//! Its JSON has an object for a single item and an array for several; names of interfaces and systems are keys.

use std::collections::BTreeMap;

use model::Neighbour;
use serde_json::Value;

use super::Source;

/// The first neighbour of each interface; none where lldpd does not run.
pub(super) fn neighbours(source: &mut Source<'_>) -> BTreeMap<String, Neighbour> {
    match source.sys.lldpd() {
        Ok(text) => parse(&text).unwrap_or_else(|| {
            source.missing.push("LLDP neighbours: lldpcli printed an unknown format".into());
            BTreeMap::new()
        }),
        // Most hosts have no lldpd.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            source.missing.push(format!("LLDP neighbours: {error}"));
            BTreeMap::new()
        }
    }
}

fn parse(text: &str) -> Option<BTreeMap<String, Neighbour>> {
    let document: Value = serde_json::from_str(text).ok()?;
    let lldp = document.get("lldp")?;
    let mut found = BTreeMap::new();
    // Without a neighbour there is no `interface`.
    for (name, interface) in each(&lldp["interface"]).filter_map(Value::as_object).flatten() {
        // lldpd also receives other protocols (CDP, EDP...), whose fields have other meanings.
        if interface["via"].as_str().is_some_and(|via| via.starts_with("LLDP")) && !found.contains_key(name) {
            found.insert(name.clone(), neighbour(interface));
        }
    }
    Some(found)
}

fn neighbour(interface: &Value) -> Neighbour {
    let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    // A system without a name is described at this level.
    let (chassis, port) = (&interface["chassis"], &interface["port"]);
    let named = chassis.as_object().filter(|fields| !fields.contains_key("id")).and_then(|fields| fields.iter().next());
    let (system, chassis) = named.map_or((None, chassis), |(name, fields)| (Some(name.clone()), fields));
    // A port identified by an address has no name.
    let addressed = matches!(port["id"]["type"].as_str(), Some("mac" | "ip"));
    let number = |value: &Value| value.as_str()?.parse::<u16>().ok();
    let untagged = each(&interface["vlan"]).find(|vlan| vlan["pvid"] == true || vlan["pvid"] == "yes");
    Neighbour {
        system,
        description: text(&chassis["descr"]),
        port: text(&port["id"]["value"]).filter(|_| !addressed),
        port_description: text(&port["descr"]),
        vlan: untagged.and_then(|vlan| number(&vlan["vlan-id"])),
        frame_bytes: number(&port["mfs"]),
    }
}

/// The entries of an array, or the single item in its place.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice).iter().filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_neighbour_needs_no_array() {
        let text = r#"{"lldp": {"interface": {"eth0": {"via": "LLDP", "rid": "1",
            "chassis": {"id": {"type": "mac", "value": "02:00:00:00:00:01"}, "descr": "a switch"},
            "port": {"id": {"type": "mac", "value": "02:00:00:00:00:02"}, "descr": "eth9", "ttl": "120"}}}}}"#;
        let expected = Neighbour {
            description: Some("a switch".into()),
            port_description: Some("eth9".into()),
            ..Neighbour::default()
        };
        assert_eq!(parse(text).unwrap(), BTreeMap::from([("eth0".to_owned(), expected)]));
    }

    #[test]
    fn several_vlans_and_neighbours_are_distinguished() {
        let port = r#""port": {"id": {"type": "ifname", "value": "Ethernet1/7"}, "mfs": "9216"}"#;
        let vlans = r#""vlan": [{"vlan-id": "7", "pvid": false, "value": "guests"}, {"vlan-id": "42", "pvid": true}]"#;
        let entry =
            |name: &str| format!(r#"{{"eth0": {{"via": "LLDP", "chassis": {{"{name}": {{}}}}, {port}, {vlans}}}}}"#);
        let text = format!(r#"{{"lldp": {{"interface": [{}, {}]}}}}"#, entry("first"), entry("second"));
        let neighbour = parse(&text).unwrap().remove("eth0").unwrap();
        assert_eq!((neighbour.system.as_deref(), neighbour.port.as_deref()), (Some("first"), Some("Ethernet1/7")));
        assert_eq!((neighbour.vlan, neighbour.frame_bytes), (Some(42), Some(9_216)));
    }

    #[test]
    fn other_protocols_and_other_texts_are_left_alone() {
        let other = r#"{"lldp": {"interface": [{"eth0": {"via": "CDPv2", "chassis": {"x": {}}, "port": {}}}]}}"#;
        assert_eq!(parse(other).unwrap(), BTreeMap::new());
        assert_eq!(parse(r#"{"lldp": {}}"#).unwrap(), BTreeMap::new());
        assert_eq!(parse("lldpd is not running"), None);
        assert_eq!(parse("{}"), None);
    }
}
