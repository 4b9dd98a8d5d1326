//! `fleet.toml`: the fleet's own form.

use std::collections::BTreeMap;

use command::{Failure, values};
use control::proof::fingerprint::Fingerprint;
use plan::fleet::Room;
use plan::fleet::hostlist;
use plan::source::{Located, Table, TomlSource};
use plan::{Fleet, FleetHost};
use serde::Serialize;

use crate::alert;

/// The place of a host's name in the texts of its table.
const NAME: &str = "{name}";
/// Keys of a host that `[defaults]` may have as well.
const DEFAULTS: [&str; 6] = ["control", "data", "port", "token_file", "ssh", "labels"];

/// The fleet in `text`, the contents of the file `name`.
///
/// # Errors
/// The line, the column and the key of a mistake.
pub(crate) fn read(name: &str, text: String) -> Result<Fleet, Failure> {
    let source = TomlSource::new(name, "a fleet", text, BTreeMap::new());
    let parsed = source.parse()?;
    let top = Table::whole(&source, &parsed);
    top.known(&["defaults", "host", "groups", "alerts"])?;
    let defaults = top.table("defaults")?;
    if let Some(defaults) = &defaults {
        defaults.known(&DEFAULTS)?;
    }
    let (mut hosts, mut room) = (Vec::new(), Room::default());
    for table in top.tables("host")? {
        let known: Vec<&str> = ["name", "key"].into_iter().chain(DEFAULTS).collect();
        table.known(&known)?;
        let names = table.text("name")?.ok_or_else(|| table.wrong("`name` is missing: write one, or node[01-16]"))?;
        for name in hostlist::expand(&names.value).map_err(|what| table.wrong_at(&names, what))? {
            let host = host(&name, &table, defaults.as_ref())?;
            host.no_option().map_err(|what| table.wrong_at(&names, what))?;
            room.host(&host).map_err(|what| table.wrong_at(&names, what))?;
            hosts.push(host);
        }
    }
    let mut groups = BTreeMap::new();
    if let Some(table) = top.table("groups")? {
        for group in table.names() {
            let mut members = Vec::new();
            for at in table.texts(group)? {
                let more = hostlist::expand(&at.value).map_err(|what| table.wrong_at(&at, what))?;
                room.text(more.iter().map(String::len).sum()).map_err(|what| table.wrong_at(&at, what))?;
                members.extend(more);
            }
            groups.insert(group.to_owned(), members);
        }
    }
    let mut alerts = Vec::new();
    for at in top.texts("alerts")? {
        alert::condition(&at.value).map_err(|what| top.wrong_at(&at, what))?;
        alerts.push(at.value);
    }
    Ok(Fleet { source: name.to_owned(), hosts, groups, alerts })
}

/// One host of a table.
fn host(name: &str, table: &Table<'_>, defaults: Option<&Table<'_>>) -> Result<FleetHost, Failure> {
    // A host's own key, or the default one; each knows its place in the file.
    let find = |key: &str| -> Result<Option<(Located<String>, String)>, Failure> {
        let own = table.text(key)?;
        let found = own.or(defaults.map(|defaults| defaults.text(key)).transpose()?.flatten());
        Ok(found.map(|at| (at.clone(), at.value.replace(NAME, name))))
    };
    let mut control = find("control")?.map_or_else(|| name.to_owned(), |(_, control)| control);
    if let Some((at, port)) = find("port")? {
        let port: u16 = port.parse().map_err(|_| table.wrong_at(&at, format!("'{port}' is not a port, 1 to 65535")))?;
        control = control::coordinator::with_port(&control, port);
    }
    values::host(&control).map_err(|what| table.wrong(what))?;
    let mut labels = BTreeMap::new();
    for of in defaults.into_iter().chain([table]) {
        let own = of.table("labels")?.map_or_else(|| Ok(Vec::new()), |labels| labels.flat())?;
        labels.extend(own.into_iter().map(|(label, at)| (label, at.value.replace(NAME, name))));
    }
    let key = table.text("key")?.map(|at| {
        let wrong =
            |_| table.wrong_at(&at, "this is not a fingerprint: write what `thru agent fingerprint` prints there");
        at.value.parse::<Fingerprint>().map_err(wrong)
    });
    let beside = |file: String| table.folder().join(file);
    Ok(FleetHost {
        name: name.to_owned(),
        control,
        data: find("data")?.map(|(_, data)| data),
        labels,
        token_file: find("token_file")?.map(|(_, file)| beside(file)),
        key: key.transpose()?,
        ssh: find("ssh")?.map(|(_, ssh)| ssh),
    })
}

/// A `fleet.toml`.
#[derive(Serialize)]
struct FleetFile<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    alerts: &'a [String],
    host: Vec<HostTable<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    groups: &'a BTreeMap<String, Vec<String>>,
}

/// One of its hosts.
#[derive(Serialize)]
struct HostTable<'a> {
    name: &'a str,
    control: Option<&'a str>,
    data: Option<&'a str>,
    ssh: Option<&'a str>,
    token_file: Option<String>,
    key: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
}

impl<'a> HostTable<'a> {
    fn of(host: &'a FleetHost) -> Self {
        Self {
            name: &host.name,
            control: Some(host.control.as_str()).filter(|control| *control != host.name),
            data: host.data.as_deref(),
            ssh: host.ssh.as_deref(),
            token_file: host.token_file.as_deref().map(|file| file.display().to_string()),
            key: host.key.map(|key| key.to_string()),
            labels: &host.labels,
        }
    }
}

/// The fleet as a `fleet.toml`.
///
/// # Errors
/// A value that TOML does not have.
pub fn to_toml(fleet: &Fleet) -> Result<String, Failure> {
    let host = fleet.hosts.iter().map(HostTable::of).collect();
    written(&FleetFile { alerts: &fleet.alerts, host, groups: &fleet.groups })
}

/// A value as a TOML document.
pub(crate) fn written(value: &impl Serialize) -> Result<String, Failure> {
    toml::to_string(value).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TEXT: &str = r#"
alerts = ["goodput<500Mbit", "rtt.p99>2ms @near"]
[defaults]
control = "{name}.mgmt"
port = 7000
token_file = "fleet.token"
labels = { site = "east" }

[[host]]
name = "n[01-02]"
data = "{name}-fast"
labels = { rack = "r1" }

[[host]]
name = "far"
control = "192.0.2.9:8000"
port = 6280
labels = { site = "west" }

[groups]
near = ["n[01-02]"]
"#;

    #[test]
    fn hosts_have_their_own_keys_and_the_defaults() {
        let fleet = read("dir/f.toml", TEXT.into()).unwrap_or_else(|failure| panic!("{failure}"));
        let shown: Vec<(&str, &str, Option<&str>)> =
            fleet.hosts.iter().map(|host| (&*host.name, &*host.control, host.data.as_deref())).collect();
        assert_eq!(
            shown,
            [
                ("n01", "n01.mgmt:7000", Some("n01-fast")),
                ("n02", "n02.mgmt:7000", Some("n02-fast")),
                ("far", "192.0.2.9:8000", None)
            ]
        );
        assert_eq!(
            fleet.hosts[0].labels.iter().map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>(),
            ["rack=r1", "site=east"]
        );
        assert_eq!(fleet.hosts[2].labels["site"], "west");
        assert_eq!(fleet.hosts[1].token_file.as_deref(), Some(Path::new("dir/fleet.token")));
        assert_eq!(fleet.groups["near"], ["n01", "n02"]);
    }

    #[test]
    fn what_is_written_reads_back() {
        let fleet = read("f.toml", TEXT.into()).unwrap();
        let text = to_toml(&fleet).unwrap();
        let again = read("f.toml", text.clone()).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
        assert_eq!(again, fleet);
    }

    #[test]
    fn mistakes_have_their_place() {
        let wrong = |text: &str| read("f.toml", text.into()).unwrap_err().to_string();
        assert_eq!(
            wrong("[[hosts]]\nname = \"a\"\n"),
            "f.toml:1:3: hosts: a fleet has no 'hosts'; did you mean 'host'?"
        );
        assert!(wrong("alerts = [\"speed<1\"]\n").starts_with("f.toml:1:11: alerts: 'speed<1' is not a condition"));
        assert!(wrong("[[host]]\ncontrol = \"a\"\n").contains("`name` is missing"));
        assert!(wrong("[[host]]\nname = \"a[\"\n").starts_with("f.toml:2:8: host[1].name: 'a[': [ without ]"));
        assert!(wrong("[[host]]\nname = \"a\"\nkey = \"x\"\n").contains("this is not a fingerprint"));
        let list = format!("\"{}[0-65535]\", ", "n".repeat(240)).repeat(200);
        let repeated = format!("name = \"a\"\n[groups]\ng = [{list}]\n");
        for (text, said) in [
            ("name = \"-V\"\n", "f.toml:2:8: host[1].name: '-V' begins with '-'"),
            (
                "name = \"a\"\nssh = \"me@-oProxyCommand=x\"\n",
                "f.toml:2:8: host[1].name: 'me@-oProxyCommand=x' begins with '-'",
            ),
            (
                "name = \"n[0-65535]m[0-1]\"\n",
                "f.toml:2:8: host[1].name: 'n[0-65535]m[0-1]' names more than 65536 hosts",
            ),
            (repeated.as_str(), "f.toml:4:"),
        ] {
            let refused = wrong(&format!("[[host]]\n{text}"));
            assert!(refused.starts_with(said), "{refused}");
        }
        let label = "{name}".repeat(20_000);
        let refused = wrong(&format!("[[host]]\nname = \"n[0-65535]\"\nlabels = {{ rack = \"{label}\" }}\n"));
        assert!(refused.contains("or more than 64 MiB of names"), "{refused}");
        assert!(wrong("[[host]]\nname = \"a\"\nport = 0.5\n").contains("'0.5' is not a port"));
        assert!(wrong("[[host]]\nname = \"a\"\ncontrol = \"a:b:c\"\n").contains("'a:b:c'"));
    }
}
