//! The table for the terminal.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use crate::goal_record::GoalRecord;
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
            let title = if row_number == 0 { work.title } else { "" };
            table.add_row(row(title, work, shown));
        }
    }
    let mut text = format!("{}\n{}\n", head(record), table.trim_fmt());
    for work in &record.works {
        for shown in &work.tools {
            for name in shown.also.keys() {
                if let Some(median) = analysis::stats::median(&shown.also(name)) {
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
    let short = record.short();
    for row in &short {
        text += &format!("FALLS SHORT: {row}\n");
    }
    let judged = |goal: &&GoalRecord| goal.reached != Reached::Unknown;
    let count = record.works.iter().flat_map(|work| &work.goals).filter(judged).count();
    if short.is_empty() && count > 0 {
        text += &format!("none of the {count} judged goals falls short\n");
    }
    text.trim_end().to_owned()
}

fn head(record: &Record) -> String {
    let machine = &record.machine;
    let busiest = record.works.iter().filter_map(|work| work.load[0]).fold(0.0, f64::max);
    format!(
        "{}, Linux {}, {}, {} cores, {}; {} rounds{}, seed {}, client on core {}, server on core {}, load before a work up to {busiest:.2}\n\
         spread: smallest to largest; interval: 95 % bootstrap interval of the median ratio, from 5 rounds on\n\
         CPU: CPU time of all processes of an end, median, per decimal gigabyte, exchange or command; with a launcher both ends \
         are in the first column",
        record.started,
        machine.kernel,
        machine.cpu,
        machine.cores,
        machine.congestion_control.as_deref().unwrap_or("congestion control unknown"),
        record.rounds,
        if record.quick { " (quick)" } else { "" },
        record.seed,
        record.cores[0],
        record.cores[1],
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
        Cell::new(shown.tool),
        right(number(shown.median)),
        right(spread),
        right(middle),
        right(interval),
        Cell::new(standing),
        right(cost(shown.client_cost)),
        right(cost(shown.server_cost)),
    ]
}

fn interval(ratio: &Ratio) -> String {
    ratio.low.zip(ratio.high).map_or(String::new(), |(low, high)| format!("{low:.3} .. {high:.3}"))
}

fn word(ratio: &Ratio) -> &'static str {
    match ratio.standing {
        Standing::Ahead => "ahead",
        Standing::Level => "level",
        Standing::Behind => "behind",
        Standing::Unknown if ratio.low.is_none() => "(too few rounds)",
        Standing::Unknown => "",
    }
}

fn reached(reached: Reached) -> &'static str {
    match reached {
        Reached::Met => "met",
        Reached::Short => "FALLS SHORT",
        Reached::Unknown => "(too few rounds)",
    }
}
