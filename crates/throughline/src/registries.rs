//! Help texts and accepted values that come from the registries of transports, programs and formats.

use clap::builder::{PossibleValue, PossibleValuesParser};
use engine::transport::{TRANSPORTS, Transport, names, transport};
use model::{ByteSize, alternatives};
use peers::{PROTOCOLS, PeerProtocol};
use report::{FORMATS, Format};

/// The transports, each with its line of help.
pub fn transports() -> PossibleValuesParser {
    TRANSPORTS.iter().map(|entry| PossibleValue::new(entry.name()).help(entry.about())).collect::<Vec<_>>().into()
}

/// The formats with their file extensions, each with its line of help.
pub fn formats() -> PossibleValuesParser {
    let value = |format: &Format| {
        let others = format.extensions.iter().filter(|extension| **extension != format.name);
        PossibleValue::new(format.name).help(format.help).aliases(others)
    };
    FORMATS.iter().map(value).collect::<Vec<_>>().into()
}

/// The format called `name`, or the one with this file extension.
///
/// # Errors
/// There is none; the message lists them.
pub fn format(name: &str) -> Result<&'static Format, String> {
    report::format(name).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        format!("unknown format '{name}': use one of {}", known.join(", "))
    })
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

/// Help of --block where its default depends on the transport.
pub fn block_help() -> String {
    let usual = transport("tcp").map_or(0, |tcp| tcp.default_block(false));
    let size = |bytes| ByteSize(bytes).to_string().replace(" KiB", "KiB").replace(" B", "");
    let mut defaults = size(usual);
    for entry in TRANSPORTS {
        let [ipv4, ipv6] = [false, true].map(|ipv6| entry.default_block(ipv6));
        if ipv4 != usual {
            defaults.push_str(&format!("; {}: {}", entry.name(), size(ipv4)));
        }
        if ipv6 != ipv4 {
            defaults.push_str(&format!(", over IPv6 {}", size(ipv6)));
        }
    }
    let datagram = names(|entry| entry.capabilities().datagram);
    format!("Bytes per send, which is the datagram size on {datagram} [default: {defaults}]")
}

/// Help of --speak of a command that measures.
pub fn speak_help(command: &str) -> String {
    let program = |entry: &&&dyn PeerProtocol| entry.commands().contains(&command);
    let list: Vec<String> =
        PROTOCOLS.iter().filter(program).map(|entry| format!("{} ({})", entry.name(), entry.server())).collect();
    format!(
        "Measure with the server of another program on HOST: {}. Each trial is one test of that program; the far end's \
         figures are those that it reports",
        alternatives(&list)
    )
}

/// Help of --speak of `thru serve`.
pub fn served_help() -> String {
    let list: Vec<&str> = PROTOCOLS.iter().map(|entry| entry.name()).collect();
    format!(
        "Also serve clients of another program, with the same limits: {}, on its usual port or on PORT. NPtcp needs the \
         client's OPTIONS: 'netpipe:-2', 'netpipe=5003:-s -u 100000'",
        alternatives(&list)
    )
}

/// Help of --as.
pub fn form_help() -> String {
    let other: Vec<&str> = FORMATS.iter().filter(|format| format.program.is_some()).map(|format| format.name).collect();
    format!(
        "Print the result in another format, for example as another program prints it: {}. `thru export --help` lists all \
         formats",
        alternatives(&other)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The first table of a page of the manual, or of a section of it (`observe.md#Sources`): the other columns of each name in its
    /// first column.
    fn rows(page: &str) -> BTreeMap<String, String> {
        let (page, section) = page.split_once('#').map_or((page, ""), |(page, section)| (page, section));
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual").join(page);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = text.lines().skip_while(|line| !section.is_empty() && *line != format!("## {section}"));
        let table = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        let mut rows = BTreeMap::new();
        for row in table.skip(2) {
            let (first, others) = row[1..].split_once('|').unwrap();
            for name in first.split('`').skip(1).step_by(2) {
                rows.insert(name.to_owned(), others.to_owned());
            }
        }
        rows
    }

    /// The table of a page has a row for each of these names, and no other.
    fn assert_rows<'a>(page: &str, names: impl Iterator<Item = &'a str>) {
        let (rows, mut names) = (rows(page), names.collect::<Vec<_>>());
        names.sort_unstable();
        assert_eq!(rows.keys().collect::<Vec<_>>(), names, "docs/manual/{page}");
    }

    #[test]
    fn the_manual_has_a_row_for_each_transport() {
        assert_rows("transports.md", TRANSPORTS.iter().map(|entry| entry.name()));
        let rows = rows("transports.md");
        for entry in TRANSPORTS {
            let (facts, capabilities, row) = (entry.facts(), entry.capabilities(), &rows[entry.name()]);
            let largest = match capabilities.max_block {
                udp @ 65_507 => format!("{},{} B", udp / 1_000, udp % 1_000),
                other => ByteSize(other).to_string(),
            };
            assert!(row.contains(&format!("| {largest} |")), "{}: {largest}: {row}", entry.name());
            let one_machine = ["two processes of one machine", "one process"].iter().any(|ends| row.contains(ends));
            assert_eq!(facts.one_host, one_machine, "{}: {row}", entry.name());
            assert_eq!(facts.ip.is_some(), row.contains("two hosts, or one"), "{}: {row}", entry.name());
        }
    }

    #[test]
    fn the_manual_has_a_row_for_each_program() {
        assert_rows("speak.md", PROTOCOLS.iter().map(|entry| entry.name()));
        let rows = rows("speak.md");
        for entry in PROTOCOLS {
            assert!(rows[entry.name()].contains(&entry.port().to_string()), "{}", entry.name());
        }
    }

    #[test]
    fn the_manual_has_a_row_for_each_format() {
        // A format may have a second name there: an extension of its files.
        let names = FORMATS.iter().map(|format| format.name);
        let second =
            rows("output.md").into_keys().filter(|name| report::format(name).is_some_and(|it| it.name != name));
        let second: Vec<String> = second.collect();
        assert_rows("output.md", names.chain(second.iter().map(String::as_str)));
        assert_rows("import.md", import::FORMATS.iter().map(|format| format.name));
    }

    #[test]
    fn the_manual_has_a_row_for_each_source_of_counters() {
        assert_rows("observe.md#Sources", model::source::SOURCES.iter().map(|source| source.name));
    }

    #[test]
    fn help_names_the_entries_of_a_registry() {
        assert!(block_help().ends_with("[default: 128KiB; udp: 1472, over IPv6 1452; unix-dgram: 8KiB]"));
        assert!(host_help().contains("unix, unix-dgram, memcpy or shm"), "{}", host_help());
        assert!(speak_help("rr").contains(": netperf (netserver) or stamp ("), "{}", speak_help("rr"));
        assert!(form_help().contains("iperf3, iperf3-json, netperf, netperf-k"), "{}", form_help());
    }
}
