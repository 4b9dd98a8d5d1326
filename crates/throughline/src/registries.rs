//! Help texts and accepted values that come from the registries of transports, programs and formats, and from types.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::transport::{Transport, names, transport, transports as all};
use model::{ByteSize, alternatives};
use peers::{ProgramProtocol, protocols};
use report::{FORMATS, Format};
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A value of a type by the name that it has in documents: those of `values`, each with its line of help.
pub fn choice<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    values: &[(&'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    one_of(values).try_map(|name| serde_json::from_value(name.into()))
}

/// One of `values`, each with its line of help.
pub fn one_of(values: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    let named = |(name, help): &(&'static str, &'static str)| PossibleValue::new(*name).help(*help);
    values.iter().map(named).collect::<Vec<_>>().into()
}

/// The transports, each with its line of help.
pub fn transports() -> PossibleValuesParser {
    all().map(|entry| PossibleValue::new(entry.name()).help(entry.about())).collect::<Vec<_>>().into()
}

/// The formats with their file extensions, each with its line of help.
pub fn formats() -> PossibleValuesParser {
    let value = |format: &Format| {
        let others = format.extensions.iter().filter(|extension| **extension != format.name);
        PossibleValue::new(format.name).help(format.help).aliases(others)
    };
    FORMATS.iter().map(value).collect::<Vec<_>>().into()
}

/// There is no format of this name.
#[derive(Debug, Error)]
#[error("unknown format '{name}': use one of {}", FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", "))]
pub struct UnknownFormat {
    /// What the user wrote.
    name: String,
}

/// The format called `name`, or the one with this file extension.
///
/// # Errors
/// There is none; the message lists them.
pub fn format(name: &str) -> Result<&'static Format, UnknownFormat> {
    report::format(name).ok_or_else(|| UnknownFormat { name: name.to_owned() })
}

/// Help of HOST.
pub fn host_help() -> String {
    let here = |entry: &dyn Transport| entry.facts().one_host;
    let launched = |entry: &dyn Transport| entry.launcher().is_some();
    format!(
        "The far host, which runs `thru serve`: a name or address, with :PORT if not 6280. Omit it for {} (both ends run on \
         this host), and for {}",
        names(here),
        names(launched)
    )
}

/// The launchers of agents, each with its line of help.
pub fn launchers() -> PossibleValuesParser {
    let value = |launcher: &fleet::AgentLauncher| PossibleValue::new(launcher.name).help(launcher.about);
    fleet::LAUNCHERS.iter().map(value).collect::<Vec<_>>().into()
}

/// Help of FLEET.
pub fn fleet_help() -> String {
    let kinds: Vec<String> = fleet::SOURCES.iter().map(|source| format!("{}:{}", source.name, source.what)).collect();
    format!("The hosts: their names, a fleet.toml, or another source: {}", kinds.join("; "))
}

/// Help of --block where its default depends on the transport.
pub fn block_help() -> String {
    let usual = transport("tcp").map_or(0, |tcp| tcp.default_block(false));
    let size = |bytes| ByteSize(bytes).to_string().replace(" KiB", "KiB").replace(" B", "");
    let mut defaults = size(usual);
    for entry in all() {
        let [ipv4, ipv6] = [false, true].map(|ipv6| entry.default_block(ipv6));
        if ipv4 != usual {
            defaults.push_str(&format!("; {}: {}", entry.name(), size(ipv4)));
        }
        if ipv6 != ipv4 {
            defaults.push_str(&format!(", over IPv6 {}", size(ipv6)));
        }
    }
    let datagram = names(|entry| entry.capabilities().datagram);
    format!(
        "Bytes per send, which is the datagram size on {datagram}. udp also takes a mix of sizes: imix, or its frames in \
         order, such as imix:64*7,594*4,1518 [default: {defaults}]"
    )
}

/// Help of --speak of a command that measures.
pub fn speak_help(command: &str) -> String {
    let program = |entry: &&dyn ProgramProtocol| entry.commands().contains(&command);
    let list: Vec<String> =
        protocols().filter(program).map(|entry| format!("{} ({})", entry.name(), entry.server())).collect();
    format!(
        "Measure against another program's server on HOST: {}. Each trial is one test of that program, and the far end's \
         figures are those it reports",
        alternatives(&list)
    )
}

/// Help of --speak of `thru serve`.
pub fn served_help() -> String {
    let list: Vec<&str> = protocols().map(ProgramProtocol::name).collect();
    format!(
        "Also serve clients of another program, with the same limits: {}, on its usual port or on PORT. NPtcp needs the \
         client's OPTIONS: 'netpipe:-2', 'netpipe=5003:-s -u 100000'",
        alternatives(&list)
    )
}

/// Help of --inetd.
pub fn inetd_help() -> String {
    format!(
        "Serve one client on standard input and exit, started by inetd (stream tcp nowait) or systemd (Accept=yes). Needs \
         --speak {}",
        peers::started_by_inetd()
    )
}

/// The transports between hosts whose connections do not come through the agent's port.
pub fn own_ports() -> String {
    let between_hosts = |entry: &dyn Transport| !entry.facts().one_host && entry.launcher().is_none();
    names(|entry| between_hosts(entry) && entry.capabilities().shared_port.is_none())
}

/// The formats that `thru report` writes, by their extensions: `.html, .md, .svg or .png`.
pub fn page_extensions() -> String {
    let pages = FORMATS.iter().filter(|format| format.is_page);
    alternatives(&pages.filter_map(|format| Some(format!(".{}", format.extensions.first()?))).collect::<Vec<_>>())
}

/// Help of -o of `thru report`.
pub fn page_help() -> String {
    format!("File to write; its extension is the format: {}", page_extensions())
}

/// Help of --as.
pub fn form_help() -> String {
    let other: Vec<&str> = FORMATS.iter().filter(|format| format.program.is_some()).map(|format| format.name).collect();
    format!(
        "Print the result in another format, such as another program's output: {}. `thru export --help` lists all \
         formats",
        alternatives(&other)
    )
}

#[cfg(test)]
mod tests;
