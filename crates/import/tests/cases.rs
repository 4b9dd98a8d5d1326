//! Files of users that the records have no like of: other systems, other formats, and large numbers and tables.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{Source, assemble, read};
use model::{Direction, Run};

fn only(name: &str) -> Run {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let reading = read(&std::fs::read(path).unwrap(), None).unwrap();
    assert_eq!((reading.refused.len(), reading.imported.len()), (0, 1), "{name}: {:?}", reading.refused);
    let source = Source { id: "20261121-203758-4f1a".into(), file: "listing.txt".into(), ..Source::default() };
    assemble(reading.imported[0].clone(), &source, &[])
}

#[test]
fn connections_of_iperf_2s_csv_without_a_time_that_ran_together_are_one_measurement() {
    let run = only("iperf2-parallel.csv");
    let outcome = &run.outcomes[0];
    assert_eq!(outcome.spec.flows, 3);
    assert_eq!(outcome.estimate.as_ref().map(|estimate| estimate.value), Some(19_763_900.0));
}

#[test]
fn both_directions_of_a_connection_in_iperf_2s_csv_are_one_measurement() {
    for (name, [there, back]) in [
        ("iperf2-full-duplex.csv", [922_837_735.0, 941_558_069.0]),
        ("iperf2-full-duplex-2.1.8.csv", [23_408_007.0, 4_519_463.0]),
    ] {
        let run = only(name);
        let outcome = &run.outcomes[0];
        assert_eq!((outcome.spec.direction, outcome.spec.flows), (Direction::Both, 1), "{name}");
        let figures = &run.header.origin.as_ref().unwrap().rows[0].figures;
        assert_eq!(figures.get("outbound_sender_rate_bps"), Some(&there));
        assert_eq!(figures.get("reverse_receiver_rate_bps"), Some(&back));
    }
}

#[test]
fn a_connection_that_has_carried_hundreds_of_terabytes_is_read() {
    let run = only("ss-petabytes.txt");
    assert_eq!(run.outcomes[0].trials[0].near.flows[0].tcp[0].bytes_acked, Some(204_800_000_000_000));
}

#[test]
fn a_table_of_many_hosts_is_read_whole_and_a_larger_one_refused() {
    let table = |count: usize| {
        let names: Vec<String> = (0..count).map(|host| format!("h{host}")).collect();
        let row = |name: &String| format!("{name}{}\n", ",9.4".repeat(count));
        format!("Gbit/s,{}\n{}", names.join(","), names.iter().map(row).collect::<String>())
    };
    let reading = read(table(300).as_bytes(), None).unwrap();
    assert_eq!((reading.refused.len(), reading.imported[0].rows.len()), (0, 90_000));
    let reading = read(format!("Gbit/s,a,b\n{}", "h,1,2\n".repeat(2_001)).as_bytes(), None).unwrap();
    assert!(reading.refused[0].reason.contains("2001 rows and 2 columns: at most 2000"), "{:?}", reading.refused);
}
