//! Outputs that contradict themselves, lack what a value needs, or have a measurement twice: nothing of them becomes a wrong value.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{Imported, Reading, read};

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
