//! JSON for people. `serde_json` would write every type a second time for that; here the compact text gets its lines.

use serde::Serialize;

/// A value as JSON with a line for each member, as `serde_json::to_string_pretty` writes it.
///
/// # Errors
/// The value is no JSON, such as a map whose keys are no texts.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    Ok(lines(&serde_json::to_string(value)?))
}

/// Compact JSON with its lines, indented by two spaces.
fn lines(compact: &str) -> String {
    let mut text = String::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let mut rest = compact;
    let end = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(at) = rest.find(['"', '{', '[', '}', ']', ',', ':']) {
        text.push_str(&rest[..at]);
        let (mark, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = after;
        match mark {
            b'"' => {
                let close = closing(after);
                text.push('"');
                text.push_str(&after[..close]);
                rest = &after[close..];
            }
            b'{' | b'[' => {
                text.push(char::from(mark));
                match after.as_bytes().first() {
                    Some(&next @ (b'}' | b']')) => {
                        text.push(char::from(next));
                        rest = &after[1..];
                    }
                    _ => {
                        depth += 1;
                        end(&mut text, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth -= 1;
                end(&mut text, depth);
                text.push(char::from(mark));
            }
            b',' => {
                text.push(',');
                end(&mut text, depth);
            }
            _ => text.push_str(": "),
        }
    }
    text.push_str(rest);
    text
}

/// The length of a string behind its first quotation mark, with its last one.
fn closing(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![".*", r#"[\\\\"{},:\[\] \n]*"#];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_serde_json_writes(value in values()) {
            prop_assert_eq!(pretty(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
