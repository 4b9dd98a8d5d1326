//! Files of users that the records have no like of: other systems, other formats, and large numbers and tables.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{ListingSource, assemble, read};
use model::{Direction, Run, Verdict};

fn only(name: &str) -> Run {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let reading = read(&std::fs::read(path).unwrap(), None).unwrap();
    assert_eq!((reading.refused.len(), reading.imported.len()), (0, 1), "{name}: {:?}", reading.refused);
    let source =
        ListingSource { id: "20261121-203758-4f1a".into(), file: "listing.txt".into(), ..ListingSource::default() };
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

/// The median round trip in ms, and the echoes that were sent and answered.
fn echoes(name: &str) -> (Option<f64>, [u32; 2], Run) {
    let run = only(name);
    let ping = run.header.path_outbound.as_ref().unwrap().ping.clone().unwrap();
    (ping.median_ns.map(|ns| ns as f64 / 1e6), [ping.sent, ping.received], run)
}

#[test]
fn pings_of_other_systems_are_read() {
    let (median, counts, run) = echoes("windows-ping.txt");
    assert_eq!((median, counts), (Some(13.0), [5, 3]), "a router's answer is no echo");
    assert_eq!(run.outcomes[0].spec.block, 32);
    let (median, counts, run) = echoes("windows-ping-short.txt");
    assert_eq!((median, counts), (None, [3, 3]), "two of three are below 1 ms");
    assert!(run.outcomes[0].estimate.is_none());
    assert!(run.outcomes[0].summary.verdicts.contains(&Verdict::ResolutionLimited));
    let (median, counts, run) = echoes("bsd-ping6.txt");
    assert_eq!((median, counts), (Some(0.256), [3, 3]));
    assert_eq!((run.outcomes[0].spec.block, run.header.target.as_deref()), (8, Some("2001:db8::2")));
    let (median, counts, run) = echoes("ping-small.txt");
    assert_eq!((median, counts), (None, [2, 2]));
    let remarks = &run.header.origin.as_ref().unwrap().rows[0].remarks;
    assert!(remarks.iter().any(|remark| remark.contains("fewer than 16 bytes")), "{remarks:?}");
}

/// The hops of a path as their addresses and round trips in ms.
fn hops(name: &str) -> Vec<(Option<String>, Option<f64>)> {
    let path = only(name).header.path_outbound.unwrap();
    path.hops.unwrap().into_iter().map(|hop| (hop.address, hop.rtt_ns.map(|ns| ns as f64 / 1e6))).collect()
}

#[test]
fn paths_of_other_systems_and_in_mtrs_other_formats_are_read() {
    let at = |address: &str, ms: Option<f64>| (Some(address.to_owned()), ms);
    let found = hops("windows-tracert.txt");
    let expected = [at("192.0.2.1", None), (None, None), at("198.51.100.3", Some(11.0)), at("203.0.113.9", Some(20.0))];
    assert_eq!(found, expected);
    assert_eq!(hops("bsd-traceroute6.txt"), [at("2001:db8::fe", Some(0.377)), at("2001:db8::9", Some(8.02))]);
    for name in ["mtr.csv", "mtr.json"] {
        assert_eq!(hops(name), [at("192.0.2.1", Some(0.36)), (None, None), at("203.0.113.9", Some(8.2))], "{name}");
    }
    assert_eq!(hops("mtr-rz.txt"), [at("192.0.2.2", Some(0.0))]);
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
    assert!(reading.refused[0].to_string().contains("2001 rows and 2 columns: at most 2000"), "{:?}", reading.refused);
}

#[test]
fn counts_that_a_program_could_not_keep_are_left_out() {
    let figures = |run: &Run| run.header.origin.as_ref().unwrap().rows[0].figures.clone();
    let remarked = |run: &Run, what: &str| {
        let remarks = &run.header.origin.as_ref().unwrap().rows[0].remarks;
        assert!(remarks.iter().any(|remark| remark.contains(what)), "{what}: {remarks:?}");
    };
    let run = only("iperf3-retransmits.txt");
    assert_eq!(figures(&run).get("retransmits"), None);
    remarked(&run, "below 0");
    let run = only("iperf3-day.txt");
    assert_eq!(figures(&run).get("lost_packets"), None);
    assert_eq!(figures(&run).get("out_of_order_packets"), Some(&1_338_478_610.0));
    remarked(&run, "at its limit");
    let run = only("iperf2-one-report.txt");
    assert_eq!(figures(&run).get("lost_packets"), None, "one of two servers' reports");
    remarked(&run, "1 of 2 server reports arrived");
    assert_eq!(run.outcomes[0].summary.goodput_bps, None, "two thirds of the other connection were lost");
}

#[test]
fn the_log_of_an_old_server_has_what_its_intervals_received() {
    let run = only("iperf3-server-3.1.txt");
    let outcome = &run.outcomes[0];
    // 175 of 1,173 datagrams of 1,200 bytes in 3.2 s.
    let bps = outcome.estimate.as_ref().unwrap().value;
    assert!((bps / (175.0 * 1_200.0 * 8.0 / 3.2) - 1.0).abs() < 0.01, "{bps}");
    let figures = &run.header.origin.as_ref().unwrap().rows[0].figures;
    assert_eq!((figures.get("lost_packets"), outcome.spec.direction), (Some(&998.0), Direction::Reverse));
}

#[test]
fn netperfs_further_tables_are_no_results() {
    let run = only("netperf-v2.txt");
    assert_eq!(run.outcomes.iter().map(|outcome| outcome.trials.len()).collect::<Vec<_>>(), [1]);
}
