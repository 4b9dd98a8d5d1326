//! The registries have what the manual lists, and help names their entries.

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
    assert_rows("transports.md", all().map(Transport::name));
    let rows = rows("transports.md");
    for entry in all() {
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
    assert_rows("speak.md", protocols().map(ProgramProtocol::name));
    let rows = rows("speak.md");
    for entry in protocols() {
        assert!(rows[entry.name()].contains(&entry.port().to_string()), "{}", entry.name());
    }
}

#[test]
fn the_manual_has_a_row_for_each_format() {
    // A format may have a second name there: an extension of its files.
    let names = FORMATS.iter().map(|format| format.name);
    let second = rows("output.md").into_keys().filter(|name| report::format(name).is_some_and(|it| it.name != name));
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
    assert!(inetd_help().ends_with("Needs --speak netperf, nttcp or nuttcp"), "{}", inetd_help());
    assert_eq!(
        (own_ports().as_str(), page_extensions().as_str()),
        ("mptcp, tls, quic or vsock", ".html, .md, .svg or .png")
    );
    assert!(form_help().contains("iperf3, iperf3-json, netperf, netperf-k"), "{}", form_help());
}
