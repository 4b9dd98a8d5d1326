//! Workbooks: read back by openpyxl, and opened by LibreOffice.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::Command;

use program::{Agent, Sandbox, binary, skip, thorough};
use serde_json::Value;

/// Prints what a workbook has: for each sheet the rows with the types of their cells, the frozen cell and the charts.
const JUDGE: &str = r"
import json, sys, openpyxl
book = openpyxl.load_workbook(sys.argv[1])
def cell(c):
    return [c.data_type, c.value.isoformat() if hasattr(c.value, 'isoformat') else c.value]
print(json.dumps({sheet.title: {
    'rows': [[cell(c) for c in row] for row in sheet.iter_rows()],
    'frozen': sheet.freeze_panes,
    'charts': [type(chart).__name__ for chart in sheet._charts],
    'links': {c.coordinate: [c.data_type, c.hyperlink.location] for row in sheet.iter_rows() for c in row if c.hyperlink},
    'scales': sum(len(area.rules) for area in sheet.conditional_formatting),
} for sheet in book}))
";

/// A plan and a curve; the plan's name looks like a formula.
fn measured(sandbox: &Sandbox) -> Vec<model::Run> {
    let agent = Agent::start();
    let plan = "to = [\"${host}\"]\nseed = 7\n[base]\ntime = \"50ms\"\n[[factor]]\nfield = \"block\"\n\
                levels = [\"4KiB\", \"64KiB\"]\n[[factor]]\nname = \"socket\"\nfield = \"sndbuf\"\n\
                levels = [\"64KiB\", \"256KiB\"]\n[repeat]\nmin = 3\nmax = 3\n";
    std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
    let host = format!("host={}", agent.host());
    sandbox.run(&["run", "plan.toml", "--var", &host, "--name", "=1+1", "--quiet"]).ok();
    let short =
        ["curve", "--to", "4KiB", "--trials", "3", "--time", "1ms", "--no-ceiling", "--name", "short", "--quiet"];
    sandbox.run(&[&short[..], &[agent.host()]].concat()).ok();
    ["=1+1", "short"].map(|run| sandbox.run(&["show", run, "--json"]).ok().doc().run).into()
}

#[test]
fn a_workbook_has_numbers_dates_charts_and_no_formula() {
    let sandbox = Sandbox::new();
    let runs = measured(&sandbox);
    sandbox.run(&["export", "=1+1", "short", "-f", "xlsx", "-o", "runs.xlsx"]).ok();
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", binary::workspace().join("target/python")).args(["-c", JUDGE]);
    let output = match python.arg(sandbox.path("runs.xlsx")).output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFoundError") => output,
        _ => {
            return skip::skip(
                "openpyxl as judge",
                "python3 with the module openpyxl is not there: scripts/setup.sh test",
            );
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let book: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sheets = book.as_object().unwrap();
    let cells =
        sheets.values().flat_map(|sheet| sheet["rows"].as_array().unwrap()).flat_map(|row| row.as_array().unwrap());
    assert!(cells.clone().all(|cell| cell[0] != "f"), "a formula");
    assert!(cells.clone().any(|cell| cell[1] == "=1+1" && cell[0] == "s"), "the name is a text");

    let row = |sheet: &str, number: usize| -> Vec<Value> { sheets[sheet]["rows"][number].as_array().unwrap().clone() };
    let at = |sheet: &str, title: &str| {
        let head = row(sheet, 0);
        head.iter().position(|cell| cell[1] == title).unwrap_or_else(|| panic!("{sheet}: {title} in {head:?}"))
    };
    // The second run of the summary, whose answer is its peak.
    let value = row("summary", 2)[at("summary", "value")][1].as_f64().unwrap();
    let peak = runs[1].findings.iter().find(|finding| finding.kind == model::FindingKind::Peak).unwrap();
    assert!((value / peak.estimate.as_ref().unwrap().value - 1.0).abs() < 1e-12);
    assert_eq!(row("summary", 2)[at("summary", "started (UTC)")][0], "d");

    let trials: usize = runs.iter().flat_map(|run| &run.outcomes).map(|outcome| outcome.trials.len()).sum();
    assert_eq!(sheets["trials"]["rows"].as_array().unwrap().len(), 1 + trials);
    let first = &runs[0].outcomes[0].trials[0];
    assert_eq!(
        row("trials", 1)[at("trials", "value")][1].as_f64().map(|value| value as f32),
        first.value.map(|value| value as f32)
    );
    assert_eq!(row("trials", 1)[at("trials", "block (B)")][1], runs[0].outcomes[0].spec.block);
    assert_eq!(sheets["plan cells"]["rows"].as_array().unwrap().len(), 1 + runs[0].outcomes.len());
    assert_eq!(sheets["plan tables"]["scales"], 1);
    let links = sheets["plan tables"]["links"].as_object().unwrap();
    assert_eq!(links.len(), runs[0].outcomes.len(), "each mean leads to its outcome");
    let places: std::collections::BTreeSet<&str> = links.values().map(|link| link[1].as_str().unwrap()).collect();
    assert!(places.contains("'plan cells'!A2") && places.len() == links.len(), "{places:?}");
    assert!(links.values().all(|link| link[0] == "n"), "a link is still a number");
    for (sheet, chart) in [
        ("Throughput by block size", "ScatterChart"),
        ("Saturation", "ScatterChart"),
        ("Signature", "ScatterChart"),
        ("effects", "BarChart"),
        ("host cpu", "AreaChart"),
    ] {
        assert_eq!(sheets[sheet]["charts"][0], chart, "{sheet}");
    }
    assert!(sheets.values().all(|sheet| sheet["frozen"] != Value::Null), "all heads stay in view");
}

#[test]
fn libreoffice_opens_a_workbook() {
    let test = "libreoffice_opens_a_workbook";
    if !thorough() {
        return skip::skip(test, "make test-long opens a workbook in LibreOffice");
    }
    if !skip::program(test, "soffice", "libreoffice-calc") {
        return;
    }
    let sandbox = Sandbox::new();
    measured(&sandbox);
    sandbox.run(&["export", "--all", "-f", "xlsx", "-o", "runs.xlsx"]).ok();
    for form in ["pdf", "csv"] {
        let mut office = Command::new("soffice");
        // Its settings are in a folder of the test, so that two may run at once.
        office.arg(format!("-env:UserInstallation=file://{}", sandbox.path("office").display()));
        office
            .args(["--headless", "--convert-to", form, "--outdir"])
            .arg(sandbox.path(""))
            .arg(sandbox.path("runs.xlsx"));
        let output = office.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !said.contains("Error"), "{form}: {said}");
        assert!(sandbox.path(&format!("runs.{form}")).exists(), "{form}: {said}");
    }
    // The first sheet, as it is shown: a formula would be 2.
    let shown = String::from_utf8_lossy(&std::fs::read(sandbox.path("runs.csv")).unwrap()).into_owned();
    assert!(shown.starts_with("run,result,value,low,high,unit,"), "{shown}");
    assert!(shown.contains("\n=1+1,"), "{shown}");
    let pdf = std::fs::read(sandbox.path("runs.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000, "{}", pdf.len());
}
