//! The table for the terminal.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use crate::peer::OURS;
use crate::record::{Record, WorkRecord};
use crate::tool_result::ToolResult;
use crate::verdict::{Ratio, Reached, Standing};

/// One line under the header.
const LOOK: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The whole run: the machine, a row for each tool of each work, and the goals.
pub fn render(record: &Record) -> String {
    let mut table = Table::new();
    table.load_style(LOOK);
    table.set_header([
        "work",
        "tool",
        "median",
        "spread",
        "thru / tool",
        "interval",
        "thru is",
        "CPU client",
        "CPU server",
    ]);
    for work in &record.works {
        for (row_number, shown) in work.tools.iter().enumerate() {
            let title = if row_number == 0 { work.title.as_str() } else { "" };
            table.add_row(row(title, work, shown));
        }
    }
    let mut text = format!("{}\n{}\n", head(record), table.trim_fmt());
    for work in &record.works {
        for shown in &work.tools {
            for name in shown.also.keys() {
                if let Some(median) = model::median(&shown.also(name)) {
                    text +=
                        &format!("also, {}: {} {name} {}\n", work.id, shown.tool, model::units::three_digits(median));
                }
            }
            for failure in &shown.failures {
                text += &format!("failed, {}: {} in {failure}\n", work.id, shown.tool);
            }
        }
        for goal in &work.goals {
            text += &format!("goal, {}: {}: {}\n", work.id, goal.text(work.unit), reached(goal.reached));
        }
    }
    for row in record.goals(Reached::Short) {
        text += &format!("FALLS SHORT: {row}\n");
    }
    text += &count(record);
    text.trim_end().to_owned()
}

/// How many goals were met, are level and fall short.
fn count(record: &Record) -> String {
    let of = |reached| record.goals(reached).len();
    match (of(Reached::Met), of(Reached::Level), of(Reached::Short)) {
        (0, 0, 0) => String::new(),
        (met, level, short) => format!("goals: {met} met, {level} level, {short} fall short\n"),
    }
}

fn head(record: &Record) -> String {
    let machine = &record.machine;
    let busiest = record.works.iter().filter_map(|work| work.load[0]).fold(0.0, f64::max);
    format!(
        "{}, protocol {}, commit {}\n\
         Linux {}, {}, {} cores, {}; {} rounds{}, seed {}, client on core {}, server on core {}, load before a work up to {busiest:.2}\n\
         spread: smallest to largest; thru / tool: median of the rounds' ratios; interval: exact, from one of the ratios to another\n\
         {}\n\
         level: the interval holds 1, or the goal\n\
         CPU: CPU time of all processes of an end, median, per decimal gigabyte, exchange or command; with a launcher both ends \
         are in the first column",
        record.started,
        record.protocol,
        record.source.text(),
        machine.kernel,
        machine.cpu,
        machine.cores,
        machine.congestion_control.as_deref().unwrap_or("congestion control unknown"),
        record.rounds,
        if record.quick { " (quick)" } else { "" },
        record.seed,
        record.cores[0],
        record.cores[1],
        record.confidence.text(),
    )
}

fn row(title: &str, work: &WorkRecord, shown: &ToolResult) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| work.unit.text(value));
    let spread =
        shown.range.map_or(String::new(), |[low, high]| format!("{} .. {}", work.unit.text(low), work.unit.text(high)));
    let cost = |value: Option<f64>| value.map_or(String::new(), |value| work.cost_unit.text(value));
    let ratio = work.ratios.iter().find(|ratio| ratio.peer == shown.tool);
    let (middle, interval, standing) = match ratio {
        Some(ratio) => (format!("{:.3}", ratio.median), interval(ratio), word(ratio)),
        None if shown.tool == OURS => (String::new(), String::new(), ""),
        None => ("none".to_owned(), String::new(), ""),
    };
    vec![
        Cell::new(title),
        Cell::new(&shown.tool),
        right(number(shown.median)),
        right(spread),
        right(middle),
        right(interval),
        Cell::new(standing),
        right(cost(shown.client_cost)),
        right(cost(shown.server_cost)),
    ]
}

/// The ends of a row's interval; empty without one.
pub fn interval(ratio: &Ratio) -> String {
    ratio.low.zip(ratio.high).map_or(String::new(), |(low, high)| format!("{low:.3} .. {high:.3}"))
}

/// The conclusion of a row.
pub fn word(ratio: &Ratio) -> &'static str {
    match ratio.standing {
        Standing::Ahead => "ahead",
        Standing::Level => "level",
        Standing::Behind => "behind",
        Standing::Unknown if ratio.low.is_none() => "(too few rounds)",
        Standing::Unknown => "",
    }
}

/// The conclusion of a goal.
pub fn reached(reached: Reached) -> &'static str {
    match reached {
        Reached::Met => "met",
        Reached::Level => "level",
        Reached::Short => "FALLS SHORT",
        Reached::Unknown => "(too few rounds)",
    }
}

#[cfg(test)]
pub mod tests {
    use model::Inventory;

    use super::*;
    use crate::archive::Archived;
    use crate::confidence::Confidence;
    use crate::judge::{Ran, compare};
    use crate::machine::Machine;
    use crate::provenance::Source;
    use crate::record::{PROTOCOL, SCHEMA};
    use crate::tool_result::tests::shown;
    use crate::work::WORKS;

    /// Seven rounds of `stream` beside bare and iperf3.
    pub fn record() -> Record {
        let work = WORKS.iter().find(|work| work.id == "stream").unwrap();
        let confidence = Confidence::of(2);
        let ours = shown(OURS, &[2.2e9; 7]);
        let bare = shown("bare", &[2.0e9; 7]);
        let tools = vec![ours, bare, shown("iperf3", &[1e9, 3e9, 2e9, 3e9, 2e9, 3e9, 2e9])];
        let ran = Ran { tools, order: vec![vec!["bare".into(), OURS.into()]], load: [Some(0.5), None] };
        Record {
            schema: SCHEMA,
            protocol: PROTOCOL,
            started: "2026-01-02T03:04:05Z".into(),
            source: Source { commit: Some("0123abcd".into()), changed: Some(true) },
            machine: Machine::of(&Inventory::default()),
            tools: Vec::new(),
            confidence,
            rounds: 7,
            seconds: 1,
            quick: false,
            cores: [1, 0],
            seed: 5,
            note: Some("a note".into()),
            raw: Some(Archived { file: "a.raw.jsonl.gz".into(), sha256: "00".into() }),
            works: vec![compare(work, ran, confidence.each, false)],
            inventory: Inventory { cores: Some(2), ..Inventory::default() },
        }
    }

    #[test]
    fn the_table_of_a_stored_record_is_that_of_its_run_and_no_run_replaces_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        record().write(&file).unwrap();
        let stored = Record::read(&file).unwrap();
        assert_eq!(stored, record());
        assert_eq!(render(&stored), render(&record()));
        let other = Record { seed: 6, ..record() };
        assert!(other.write(&file).unwrap_err().to_string().contains("cannot write"));
        assert_eq!(Record::read(&file).unwrap().seed, 5);
    }

    #[test]
    fn the_head_says_how_sure_the_rows_are_and_what_was_measured() {
        let text = render(&record());
        for part in
            ["protocol 1, commit 0123abcd, changed", "2 of them with 97.500 % each (Bonferroni), which takes 7 rounds"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let row = |tool: &str| text.lines().find(|line| line.trim_start().starts_with(tool)).unwrap().to_owned();
        assert!(row("bare").contains("1.100 .. 1.100") && row("bare").contains("ahead"), "{text}");
        assert!(row("iperf3").contains("0.733 .. 2.200") && row("iperf3").contains("level"), "{text}");
        assert!(text.contains("goals: 1 met, 2 level, 0 fall short"), "{text}");
    }

    #[test]
    fn too_few_rounds_are_no_result() {
        let mut record = record();
        record.works[0].ratios[0].low = None;
        record.works[0].ratios[0].standing = Standing::Unknown;
        assert!(render(&record).contains("(too few rounds)"));
    }
}
