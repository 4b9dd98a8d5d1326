//! Documents of schema version 1 as those of version 2: the same figures under the field's names.

use serde_json::{Map, Value};

/// Keys that have a new name, with the key of the object that holds them. The items of a list count as children of the list's
/// own key, and a row's outermost object as a child of the row's kind, so that names that users chose (of variables, of
/// levels) are left alone.
const KEYS: &[(&str, &str, &str)] = &[
    ("header", "path_out", "path_outbound"),
    ("header", "path_back", "path_return"),
    ("mtu", "told_by", "reported_by"),
    ("factors", "dear", "expensive"),
    ("trial", "place", "position"),
    ("trials", "place", "position"),
    ("near", "untold", "unreported"),
    ("far", "untold", "unreported"),
    ("socket", "rests", "delayed_reads"),
    ("one_way", "there", "outbound"),
    ("one_way", "back", "return"),
    ("one_way", "lost_there", "lost_outbound"),
    ("one_way", "lost_back", "lost_return"),
    ("pass", "block", "round"),
    ("lab", "ways", "directions"),
    ("settings", "asked", "requested"),
    ("near", "asked", "requested"),
    ("far", "asked", "requested"),
    ("sequence", "again", "retransmitted_at"),
    ("sequence", "again_kept", "retransmitted_kept"),
    ("summary", "within", "within_pass"),
    ("shares", "least", "min"),
    ("shares", "greatest", "max"),
    ("losses", "places", "locations"),
    ("places", "place", "location"),
    ("comparison", "judged_low", "adjusted_low"),
    ("comparison", "judged_high", "adjusted_high"),
    ("advice", "same", "unchanged"),
    ("advice", "least_effect", "min_effect"),
    ("same", "stays", "kept"),
    ("same", "whole", "complete"),
];

/// Words that have a new name, with the key of the list or field that holds them.
const WORDS: &[(&str, &str, &str)] = &[
    ("verdicts", "ledger-open", "byte-count-mismatch"),
    ("verdicts", "emulator-untold", "emulator-unreported"),
    ("on", "first look", "pilot trials"),
];

/// The body of a row of this kind, as version 2 has it; `None` where it is the same, or is no JSON.
pub(crate) fn upgraded(kind: &str, body: &str) -> Option<String> {
    let kind = if kind == "whole-outcome" { "outcome" } else { kind };
    let before: Value = serde_json::from_str(body).ok()?;
    let mut after = before.clone();
    upgrade(kind, &mut after);
    (after != before).then(|| after.to_string())
}

fn upgrade(parent: &str, value: &mut Value) {
    match value {
        Value::Object(object) => {
            let fields = std::mem::take(object);
            *object = fields.into_iter().map(|(key, value)| field(parent, key, value)).collect::<Map<_, _>>();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| upgrade(parent, item)),
        Value::String(word) => {
            if let Some((.., new)) = WORDS.iter().find(|(of, old, _)| *of == parent && old == word) {
                *word = (*new).to_owned();
            }
        }
        _ => {}
    }
}

fn field(parent: &str, key: String, mut value: Value) -> (String, Value) {
    upgrade(&key, &mut value);
    let new = KEYS.iter().find(|(of, old, _)| *of == parent && *old == key).map(|(.., new)| (*new).to_owned());
    (new.unwrap_or(key), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_renamed_where_they_belong_and_nowhere_else() {
        let before =
            r#"{"place":2,"near":{"bytes_sent":null,"untold":["bytes_sent"]},"verdicts":["ledger-open","loss"]}"#;
        let after = upgraded("trial", before).unwrap();
        let expected = json!({
            "position": 2,
            "near": {"bytes_sent": null, "unreported": ["bytes_sent"]},
            "verdicts": ["byte-count-mismatch", "loss"],
        });
        assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), expected);
        // A variable of a plan may have any name.
        assert_eq!(upgraded("header", r#"{"plan":{"vars":{"place":"a","dear":"b"}}}"#), None);
        assert_eq!(upgraded("trial", &after), None, "once is enough");
        assert_eq!(upgraded("trial", "no json"), None);
    }
}
