//! Parquet: read back by DuckDB and pyarrow, and the questions of the manual over a year of runs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::{Command, Output};

use program::{Agent, Sandbox, binary, skip};
use serde_json::{Value, json};

/// A day, ns.
const DAY: u64 = 86_400_000_000_000;

/// Runs a script with the modules of the tests; `None`, with a line, without them.
fn python(sandbox: &Sandbox, script: &str, args: &[&str]) -> Option<Value> {
    let mut python = Command::new("python3");
    python.current_dir(sandbox.path("")).env("PYTHONPATH", binary::workspace().join("target/python"));
    python.args(["-c", script]).args(args);
    let output: Output = match python.output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError") => output,
        _ => {
            let missing = "python3 with the modules duckdb and pyarrow is not there: scripts/setup.sh long";
            skip::skip("DuckDB and pyarrow as judges", missing);
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The columns with their types as pyarrow reads them, the rows, and how each column is stored.
const READ: &str = r"
import json, sys, duckdb, pyarrow.parquet as parquet
file = parquet.ParquetFile(sys.argv[1])
table = file.read()
group = file.metadata.row_group(0)
columns = [group.column(i) for i in range(group.num_columns)]
again = duckdb.connect().execute(f'''SELECT count(*), sum(value), count(DISTINCT run), sum(bytes_received)::DOUBLE FROM '{sys.argv[1]}' ''').fetchone()
print(json.dumps({
    'types': {field.name: str(field.type) for field in table.schema},
    'rows': json.loads(json.dumps(table.to_pylist(), default=str)),
    'stored': {c.path_in_schema: [c.compression, list(c.encodings)] for c in columns},
    'duckdb': again,
}))
";

#[test]
fn two_readers_find_the_trials_of_the_store() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    sandbox.run(&["stream", "--time", "50ms", "--trials", "3", "--name", "bulk", "--quiet", agent.host()]).ok();
    sandbox.run(&["rr", "--time", "50ms", "--trials", "3", "--quiet", agent.host()]).ok();
    sandbox.run(&["export", "bulk", "last", "--format", "parquet", "-o", "lake.parquet"]).ok();
    let runs = ["bulk", "last"].map(|run| sandbox.run(&["show", run, "--json"]).ok().doc().run);
    let Some(read) = python(&sandbox, READ, &["lake.parquet"]) else { return };
    for (column, kind) in [
        ("run", "string"),
        ("started", "timestamp[us, tz=UTC]"),
        ("block_bytes", "int64"),
        ("goodput_bps", "double"),
        ("retransmits", "int64"),
        ("stalled", "bool"),
    ] {
        assert_eq!(read["types"][column], kind, "{column}");
    }
    let trials: Vec<_> = runs.iter().flat_map(|run| &run.outcomes[0].trials).collect();
    let rows = read["rows"].as_array().unwrap();
    assert_eq!(rows.len(), trials.len());
    for (row, trial) in rows.iter().zip(&trials) {
        // To the bit.
        assert_eq!(row["value"].as_f64(), trial.value);
        assert_eq!(row["bytes_received"], trial.near.bytes_received + trial.far.bytes_received);
    }
    assert_eq!((&rows[0]["rtt_p50_ns"], &rows[3]["goodput_bps"]), (&Value::Null, &Value::Null));
    assert_eq!(rows[0]["goodput_bps"], rows[0]["value"]);
    assert_eq!(rows[3]["rtt_p50_ns"].as_f64(), trials[3].near.rtt.as_ref().map(|rtt| rtt.p50_ns as f64));
    let stored = &read["stored"]["goodput_bps"];
    assert_eq!(stored[0], "ZSTD");
    assert!(stored[1].as_array().unwrap().contains(&json!("BYTE_STREAM_SPLIT")), "{stored}");
    let sum: f64 = trials.iter().filter_map(|trial| trial.value).sum();
    assert_eq!((&read["duckdb"][0], &read["duckdb"][2]), (&json!(trials.len()), &json!(2)));
    assert!((read["duckdb"][1].as_f64().unwrap() / sum - 1.0).abs() < 1e-9);
}

/// Runs the queries of standard input, an array of texts; prints the rows of each as objects.
const ASK: &str = r#"
import json, sys, duckdb
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
answers = []
for query in json.loads(sys.argv[1]):
    answer = connection.execute(query)
    names = [column[0] for column in answer.description]
    answers.append([dict(zip(names, row)) for row in answer.fetchall()])
print(json.dumps(answers, default=lambda value: value.isoformat() if hasattr(value, 'isoformat') else float(value)))
"#;

/// The questions of the manual: the indented texts from SELECT or WITH to a semicolon.
fn questions() -> Vec<String> {
    let page = std::fs::read_to_string(binary::workspace().join("docs/manual/lake.md")).unwrap();
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ") else { continue };
        if !open && (line.starts_with("SELECT") || line.starts_with("WITH")) {
            found.push(String::new());
            open = true;
        }
        if open {
            let last = found.last_mut().unwrap();
            *last += &format!("{line}\n");
            open = !line.ends_with(';');
        }
    }
    found
}

/// A trial that took half as long again.
fn slower(trial: &mut Value) {
    let longer = |ns: &mut Value| *ns = json!(ns.as_u64().unwrap() * 3 / 2);
    for end in ["near", "far"] {
        ["sending_ns", "receiving_ns"].iter().for_each(|time| longer(&mut trial[end][time]));
        // With these the rate is that of a window.
        for part in ["after_first", "before_last"] {
            if trial[end][part].is_object() {
                longer(&mut trial[end][part]["ns"]);
            }
        }
    }
}

/// The documents of a year of runs: some each week, in the last one with slower streams and on another kernel.
fn year(measured: &[Value]) -> Value {
    let first = 1_767_225_600_000_000_000; // 2026-01-01
    let mut all = Vec::new();
    for week in 0..52_u64 {
        for (number, run) in measured.iter().enumerate() {
            let mut run = run.clone();
            run["header"]["id"] = json!(format!("2026-{week:02}-{number}"));
            run["header"]["started_unix_ns"] = json!(first + week * 7 * DAY + number as u64);
            if week == 51 {
                run["header"]["near"]["kernel"] = json!("7.0.0");
                if run["header"]["kind"] == "stream" {
                    run["outcomes"][0]["trials"].as_array_mut().unwrap().iter_mut().for_each(slower);
                }
            }
            all.push(run);
        }
    }
    Value::Array(all)
}

#[test]
fn five_questions_over_a_year_have_answers() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    // Documents that are small, because a year has many of them.
    let short = |command: &[&str]| {
        let small = ["--time", "100ms", "--warmup", "0s", "--trials", "3", "--no-path", "--observe", "off"];
        let run = [command, &small, &["--quiet", "--json", "-", agent.host()]].concat();
        serde_json::from_str::<Value>(&sandbox.run(&run).ok().stdout).unwrap()
    };
    let measured = [short(&["stream"]), short(&["rr", "--rate", "200/s"])];
    let elsewhere = Sandbox::new();
    std::fs::write(elsewhere.path("year.json"), year(&measured).to_string()).unwrap();
    elsewhere.run(&["import", "year.json"]).ok();
    elsewhere.run(&["export", "--all", "-f", "parquet", "-o", "lake.parquet"]).ok();
    let questions = questions();
    assert_eq!(questions.len(), 5, "{questions:?}");
    let Some(answers) = python(&elsewhere, ASK, &[&json!(questions).to_string()]) else { return };
    let rows = |question: usize| answers[question].as_array().unwrap().clone();
    assert_eq!(rows(0).len(), 12, "each month: {}", answers[0]);
    assert_eq!(rows(0).iter().map(|row| row["runs"].as_u64().unwrap()).sum::<u64>(), 52);
    assert_eq!(rows(1).len(), 1, "the last day is slower: {}", answers[1]);
    assert_eq!(rows(1)[0]["day"], "2026-12-24");
    assert!((rows(1)[0]["change_percent"].as_f64().unwrap() + 33.3).abs() < 0.2, "{}", answers[1]);
    let kernels: Vec<&Value> = answers[2].as_array().unwrap().iter().map(|row| &row["near_kernel"]).collect();
    assert!(kernels.len() == 2 && kernels.contains(&&json!("7.0.0")), "{kernels:?}");
    assert!(!rows(3).is_empty() && !rows(4).is_empty(), "{answers}");
}

#[test]
fn the_runs_to_export_are_named_or_all() {
    let sandbox = Sandbox::new();
    let none = sandbox.run(&["export", "--format", "csv"]).ended_with(2);
    assert!(none.stderr.contains("<RUN>"), "{}", none.stderr);
    sandbox.run(&["export", "last", "--all", "--format", "csv"]).ended_with(2);
    let empty = sandbox.run(&["export", "--all", "--format", "parquet", "-o", "x"]).ended_with(6);
    assert!(empty.message().contains("no run"), "{}", empty.message());
}
