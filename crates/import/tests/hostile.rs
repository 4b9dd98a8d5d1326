//! Outputs that contradict themselves, lack what a value needs, or have a measurement twice: nothing of them becomes a wrong value.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{Imported, Reading, read};
use model::Direction;
use serde_json::{Value, json};

fn of(text: &str) -> Reading {
    read(text.as_bytes(), None).unwrap_or_else(|refused| panic!("{refused:?}: {text}"))
}

fn only(text: &str) -> Imported {
    let Reading { imported, refused } = of(text);
    assert_eq!(refused, [], "{text}");
    let [one] = <[Imported; 1]>::try_from(imported).unwrap();
    one
}

/// The only reason, of a text from which nothing is imported.
#[track_caller]
fn refused(text: &str) -> String {
    let Reading { imported, mut refused } = of(text);
    assert!(imported.is_empty() && !refused.is_empty(), "{imported:?} {refused:?}: {text}");
    refused.remove(0).reason
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The values without what the arithmetic adds to their digits.
fn values(imported: &Imported) -> Vec<Option<f64>> {
    imported.rows.iter().map(|row| row.trial.value.map(f64::round)).collect()
}

fn remarks(imported: &Imported) -> String {
    imported.rows.iter().flat_map(|row| row.remarks.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_document_of_iperf3_and_its_events_are_one_measurement() {
    let whole: Value = serde_json::from_str(&recorded("iperf321_tcp.json")).unwrap();
    let event = |name: &str, data: &Value| format!("{}\n", json!({ "event": name, "data": data }));
    let mut streamed = event("start", &whole["start"]);
    whole["intervals"].as_array().unwrap().iter().for_each(|one| streamed.push_str(&event("interval", one)));
    streamed.push_str(&event("end", &whole["end"]));
    let full = only(&format!("{streamed}{whole:#}\n"));
    assert!(full.notes.iter().any(|note| note.contains("the same test again")), "{:?}", full.notes);
    let other = recorded("iperf321_tcp_R.json");
    assert_eq!(of(&format!("{whole}\n{other}\n{whole}\n")).imported.len(), 2);
}

#[test]
fn both_ends_documents_of_a_test_are_the_clients_measurement() {
    let client: Value = serde_json::from_str(&recorded("iperf321_tcp.json")).unwrap();
    let mut server = client.clone();
    let start = server["start"].as_object_mut().unwrap();
    start.remove("connecting_to").unwrap();
    start.insert("accepted_connection".into(), json!({ "host": "192.0.2.1", "port": 40_000 }));
    for text in [format!("{client}\n{server}"), format!("{server}\n{client}")] {
        let one = only(&text);
        assert_eq!((one.rows[0].spec.direction, one.target.as_deref()), (Direction::Send, Some("127.0.0.1")));
        assert!(one.notes.iter().any(|note| note.contains("its server's document")), "{:?}", one.notes);
    }
    // The same cookie with other figures is no copy.
    let mut other = client.clone();
    for part in ["sum_sent", "sum_received"] {
        other["end"][part]["bytes"] = json!(524_288);
        other["end"][part]["bits_per_second"] =
            json!(524_288.0 * 8.0 / other["end"][part]["seconds"].as_f64().unwrap());
    }
    for side in ["sender", "receiver"] {
        other["end"]["streams"][0][side]["bytes"] = json!(524_288);
    }
    let both = of(&format!("{client}\n{other}"));
    assert!(both.imported.len() == 1 && both.refused[0].reason.contains("with other figures"), "{both:?}");
}

#[test]
fn documents_stand_among_other_lines_and_broken_ones() {
    let whole = recorded("iperf321_tcp.json");
    let cut = &whole[..whole.len() / 2];
    let error = "iperf3: error - unable to connect to server: Connection refused";
    let reading = of(&format!("host$ iperf3 -J\n{cut}\n{whole}\n{error}\n"));
    assert_eq!(reading.imported.len(), 1);
    let reasons: Vec<&str> = reading.refused.iter().map(|refused| refused.reason.as_str()).collect();
    assert!(reasons.len() == 2 && reasons[0].contains("not valid JSON"), "{reasons:?}");
    assert!(reasons[1].contains("own error"), "{reasons:?}");
}

/// A document of iperf3 with a change in its `end`.
fn ended(name: &str, change: impl Fn(&mut Value)) -> String {
    let mut document: Value = serde_json::from_str(&recorded(name)).unwrap();
    change(&mut document["end"]);
    document.to_string()
}

#[test]
fn sums_of_iperf3_that_cannot_be_are_refused() {
    let sum = |bytes: f64| {
        ended("iperf321_tcp.json", |end| {
            let seconds = end["sum_received"]["seconds"].as_f64().unwrap();
            end["sum_received"]["bytes"] = json!(bytes);
            end["sum_received"]["bits_per_second"] = json!(bytes * 8.0 / seconds);
        })
    };
    assert!(refused(&sum(524_288.0)).contains("524288 bytes contradict the 262144 of its streams"));
    assert!(refused(&sum(-1.0)).contains("end.sum_received has no valid bytes"));
    let backwards = ended("iperf321_tcp.json", |end| end["sum_received"]["seconds"] = json!(-1.0));
    assert!(refused(&backwards).contains("no valid bytes, seconds and rate"));
    let lost = ended("iperf312_udp.json", |end| end["sum_received"]["lost_packets"] = json!(1_250));
    assert!(refused(&lost).contains("1250 of 125 datagrams lost"));
}

#[test]
fn counts_of_iperf3_below_zero_are_left_out() {
    let text = ended("iperf321_tcp.json", |end| {
        end["sum_sent"]["retransmits"] = json!(4_294_967_294_u32);
        end["streams"][0]["sender"]["retransmits"] = json!(4_294_967_294_u32);
    });
    let one = only(&text);
    assert_eq!(one.rows[0].figures.get("retransmits"), None);
    assert_eq!(one.rows[0].trial.near.flows[0].socket.retransmits, None);
    assert!(remarks(&one).contains("4294967294 retransmits are no count"), "{}", remarks(&one));
    let text = ended("iperf312_udp.json", |end| {
        end["sum_received"]["lost_packets"] = json!(-3);
        end["sum_received"]["jitter_ms"] = json!(4.1e10);
    });
    let one = only(&text);
    assert_eq!((one.rows[0].figures.get("lost_packets"), one.rows[0].trial.near.datagrams), (None, None));
    assert!(remarks(&one).contains("-3 lost datagrams are no count"), "{}", remarks(&one));
    assert!(remarks(&one).contains("longer than the test"), "{}", remarks(&one));
}

#[test]
fn connections_of_iperf3_have_their_sockets_and_retransmits() {
    let one = only(&recorded("iperf316_day.json"));
    let (spec, trial) = (&one.rows[0].spec, &one.rows[0].trial);
    assert_eq!((spec.near.cc.as_deref(), spec.far.cc.as_deref()), (Some("bbr"), Some("bbr")));
    let socket = &trial.near.flows[0].socket;
    assert_eq!((socket.retransmits, socket.sndbuf, socket.rcvbuf), (Some(548), Some(16_384), Some(131_072)));
    assert_eq!((socket.cc.as_deref(), trial.far.flows[0].bytes_received), (Some("bbr"), 101_520_001_175_000));
    assert!(one.unknown.iter().all(|key| !key.contains("congestion") && !key.contains("buf")), "{:?}", one.unknown);
    let both = only(&recorded("iperf321_tcp_bidir_P2.json"));
    let flows = |end: &model::EndTally| -> Vec<(u32, Direction, [u64; 2])> {
        end.flows.iter().map(|flow| (flow.flow, flow.direction, [flow.bytes_sent, flow.bytes_received])).collect()
    };
    let (send, reverse) = (Direction::Send, Direction::Reverse);
    let expected = [(0, send, [262_144, 0]), (1, send, [0, 0]), (0, reverse, [0, 196_608]), (1, reverse, [0, 81_920])];
    assert_eq!(flows(&both.rows[0].trial.near), expected);
    // Its rate is that of each stream.
    let text = recorded("iperf312_udp.json").replace("\"num_streams\":\t1", "\"num_streams\":\t2");
    let rate = only(&text).rows[0].spec.rate_bps;
    assert_eq!(rate, Some(2_000_000));
}

#[test]
fn values_of_flent_that_cannot_be_are_refused() {
    let file = |values: &str, times: &str| {
        format!(
            "{{\"metadata\":{{\"SERIES_META\":{{\"TCP upload\":{{\"UNITS\":\"Mbits/s\"}}}}}},\"x_values\":{times},\"results\":{{\"TCP upload\":{values}}}}}\n"
        )
    };
    assert_eq!(values(&only(&format!("a line\n{}another\n", file("[1,null,3]", "[0,1,2]")))), [Some(2e6)]);
    assert!(refused(&file("[1,-2,3]", "[0,1,2]")).contains("has the value -2"));
    assert!(refused(&file("[1,\"2\",3]", "[0,1,2]")).contains("has the value \"2\""));
    assert!(refused(&file("[1,2,3]", "[0,2,1]")).contains("go back"));
    let unitless = file("[1,2,3]", "[0,1,2]").replace("TCP upload", "Ping loss").replace("\"UNITS\":\"Mbits/s\"", "");
    assert!(refused(&unitless).contains("the unit is missing"));
}

#[test]
fn runs_of_this_program_stand_among_other_lines_once() {
    let text = recorded("throughline_run2.json");
    let reading = of(&format!("host$ thru show --json\n{text}\ndone\n{text}\n"));
    assert_eq!(reading.imported.len(), 1);
    assert!(reading.refused.len() == 1 && reading.refused[0].reason.contains("it is imported once"), "{reading:?}");
}
