//! Results of other tools as runs: shown, compared with a run of our own, reported and written out again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::process::Command;

use program::{Agent, Sandbox, binary};
use serde_json::Value;

/// A desk with recorded outputs in its folder.
fn sandbox(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in names {
        let recorded = binary::workspace().join("crates/import/tests/data").join(name);
        fs::copy(&recorded, sandbox.path(name)).unwrap_or_else(|error| panic!("{}: {error}", recorded.display()));
    }
    sandbox
}

#[test]
fn packed_files_are_unpacked() {
    let sandbox = sandbox(&["netpipe372_np.out"]);
    let packed = Command::new("gzip").arg(sandbox.path("netpipe372_np.out")).status().unwrap();
    assert!(packed.success());
    let imported = sandbox.run(&["import", "netpipe372_np.out.gz"]).ok();
    assert!(imported.stdout.contains("124 measurements in 124 cells"), "{}", imported.stdout);
    let bytes = fs::read(sandbox.path("netpipe372_np.out.gz")).unwrap();
    fs::write(sandbox.path("half.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let refused = sandbox.run(&["import", "half.gz"]).ended_with(1);
    assert!(refused.stderr.contains("half.gz: is a damaged gzip file: "), "{}", refused.stderr);
}

#[test]
fn an_imported_curve_stands_beside_one_of_our_own() {
    let (agent, sandbox) = (Agent::start(), sandbox(&["netpipe372_np.out"]));
    let text = fs::read_to_string(sandbox.path("netpipe372_np.out")).unwrap();
    let broken = text.replacen("0.766073", "7.766073", 1);
    fs::write(sandbox.path("broken.out"), &broken).unwrap();
    sandbox.run(&["import", "netpipe372_np.out", "--name", "old"]).ok();
    // A broken line is refused with its number while the rest is kept.
    let partly = sandbox.run(&["import", "broken.out"]).ended_with(1);
    assert!(partly.stderr.contains("broken.out:1: not a line of np.out"), "{}", partly.stderr);
    assert!(partly.stdout.contains("123 measurements in 123 cells"), "{}", partly.stdout);

    let document: Value = serde_json::from_str(&sandbox.run(&["show", "old", "--json"]).ok().stdout).unwrap();
    let schema = fs::read_to_string(binary::workspace().join("docs/schema/run.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let objections: Vec<String> = schema.iter_errors(&document).map(|error| error.to_string()).collect();
    assert_eq!(objections, [""; 0]);
    let first = &document["outcomes"][0];
    assert!(first["summary"]["bytes_sent"].is_null() && first["trials"][0]["near"]["calls_sent"].is_null(), "{first}");
    assert_eq!(document["header"]["origin"]["rows"][0]["text"], text.lines().next().unwrap().trim_end());

    // What it is written out as again is what was read, to the digits of the file.
    sandbox.run(&["export", "old", "--format", "np", "-o", "again.out"]).ok();
    let again = fs::read_to_string(sandbox.path("again.out")).unwrap();
    let numbers = |text: &str| -> Vec<Vec<f64>> {
        text.lines().map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect()
    };
    for (read, written) in numbers(&text).iter().zip(numbers(&again)) {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
        assert!(read[0] == written[0] && near(written[1], read[1]), "{read:?} became {written:?}");
    }
    assert_eq!(again.lines().count(), 124);

    sandbox
        .run(&["curve", "--to", "64", "--trials", "3", "--no-ceiling", "--name", "new", "--quiet", agent.host()])
        .ok();
    let compared = sandbox.run(&["compare", "old", "new", "--json"]);
    assert!([Some(0), Some(4)].contains(&compared.code), "{:?} {}", compared.code, compared.stderr);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    let blocks: Vec<u64> =
        compared["cells"].as_array().unwrap().iter().filter_map(|cell| cell["block"].as_u64()).collect();
    assert!(blocks.len() >= 15 && blocks.contains(&1) && blocks.contains(&64), "{blocks:?}");
    sandbox.run(&["report", "old", "new", "-o", "both.html"]).ok();
    let page = program::page::texts(&fs::read_to_string(sandbox.path("both.html")).unwrap());
    for part in ["netpipe372_np.out", "NetPIPE 3.x", "\"title\":\"old\"", "\"title\":\"new\"", "measured by"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn pages_of_several_tools_hosts_and_matrices_are_runs_too() {
    let sandbox = sandbox(&["2003-rapid-ping-traceroute.txt", "2002-throughput.tsv", "vmstat.txt", "1998-netperf.txt"]);
    let page = sandbox.run(&["import", "2003-rapid-ping-traceroute.txt", "vmstat.txt"]).ok();
    assert_eq!(page.stdout.lines().count(), 6, "{}", page.stdout);
    sandbox.run(&["import", "2002-throughput.tsv", "--name", "day"]).ok();
    let shown = sandbox.run(&["show", "day"]).ok().stdout;
    let finland =
        shown.lines().find(|line| line.trim_start().starts_with("Finland  ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(finland.contains("219 Mbit/s") && finland.contains("48.0 Mbit/s"), "{shown}");
    let tables = sandbox.run(&["import", "1998-netperf.txt"]).ended_with(1);
    assert!(tables.stderr.contains("no response received"), "{}", tables.stderr);
    let shown = sandbox.run(&["show", "last"]).ok().stdout;
    assert!(shown.contains("stalled") && shown.contains("304.48 s"), "{shown}");
    // Nothing is taken of what no tool wrote, and the message says what could be.
    fs::write(sandbox.path("letter.txt"), "Dear all,\nit was fast.\n").unwrap();
    let letter = sandbox.run(&["import", "letter.txt"]).ended_with(1);
    assert!(letter.stderr.contains("netpipe"), "{}", letter.stderr);
    sandbox.run(&["import", "letter.txt", "--format", "np"]).ended_with(2);
}

/// A document without what it may leave out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[test]
fn a_run_of_this_program_is_imported_and_a_newer_document_is_refused() {
    let sandbox = sandbox(&["throughline_run.json"]);
    let imported = sandbox.run(&["import", "throughline_run.json", "--name", "moved"]).ok().stdout;
    assert!(
        imported.contains("moved: rr by thru 0.1.0") && imported.contains("3 measurements in 1 cell\n"),
        "{imported}"
    );
    let document = |text: &str| without_nulls(serde_json::from_str::<Value>(text).unwrap());
    let kept = document(&sandbox.run(&["show", "moved", "--json"]).ok().stdout);
    let file = document(&fs::read_to_string(sandbox.path("throughline_run.json")).unwrap());
    assert_eq!((&kept["outcomes"], &kept["passes"]), (&file["outcomes"], &file["passes"]));
    let newer = fs::read_to_string(sandbox.path("throughline_run.json"))
        .unwrap()
        .replace("throughline-run/1", "throughline-run/2");
    fs::write(sandbox.path("newer.json"), newer).unwrap();
    let refused = sandbox.run(&["import", "newer.json"]).ended_with(1);
    assert!(
        refused.stderr.contains("newer.json:1: a Throughline document of schema version 2; "),
        "{}",
        refused.stderr
    );
}

/// The last digits of an id are 16 bits: of 800 drawn at random, two would be equal in 99 of 100 imports.
#[test]
fn hundreds_of_files_have_ids_of_their_own() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..800).map(|number| format!("{number}.out")).collect();
    for (number, name) in names.iter().enumerate() {
        let seconds = |bytes: f64| 1e-5 + 1e-8 * (number as f64 + bytes);
        let line =
            |bytes: f64| format!("{bytes:8} {:.6} {:.9}\n", bytes * 8.0 / seconds(bytes) / 1048576.0, seconds(bytes));
        fs::write(sandbox.path(name), [1.0, 2.0, 3.0].map(line).concat()).unwrap();
    }
    let words: Vec<&str> = ["import"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let imported = sandbox.run(&words).ok();
    assert_eq!(imported.stdout.lines().count(), 800, "{}", imported.stderr);
}
