//! Mutations of documents and texts. Most changed documents are still TOML or JSON, so that what is read behind the syntax is reached sooner
//! than by changes of single bytes; some have one fault in their syntax, between two tokens. Other texts get other words.

use std::sync::OnceLock;

use model::SplitMix64;
use serde_json::{Map, Number, Value};

/// The variable that names a dictionary of libFuzzer, whose words become keys and texts.
const WORDS: &str = "THRU_FUZZ_WORDS";

/// Numbers at which readers change their minds.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "9",
    "-1",
    "0.5",
    "100",
    "1500",
    "65536",
    "1000000000",
    "9223372036854775807",
    "1e308",
    "-0.0",
];

/// Texts that many fields take.
const TEXTS: [&str; 16] = [
    "", "a", "b", "*", "auto", "1KiB", "64KiB", "10ms", "2s", "1Gbit/s", "5%", "1,2,4", "1..8", "10.0.0.1", "h1:5201",
    "{v}",
];

/// What is between tokens, and what may be there by mistake.
const TOKENS: [&str; 28] = [
    ":",
    ",",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "=",
    ".",
    "\n",
    " ",
    "\t",
    "\r",
    "\\",
    "\\u0041",
    "\\ud800",
    "\\n",
    "\u{1}",
    "\u{e9}",
    "#",
    "-",
    "0",
    "1.5",
    "1e9",
    "99999999999999999999",
    "null",
    "true",
    "\"a\"",
];

/// Gives a fuzz target mutations of documents, beside those of bytes.
#[macro_export]
macro_rules! structured {
    () => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            match $crate::structure::mutate(&data[..size], max_size, seed) {
                Some(changed) => {
                    data[..changed.len()].copy_from_slice(&changed);
                    changed.len()
                }
                None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
            }
        });
        libfuzzer_sys::fuzz_crossover!(|one: &[u8], other: &[u8], out: &mut [u8], seed: u32| {
            match $crate::structure::cross(one, other, out.len(), seed) {
                Some(both) => {
                    out[..both.len()].copy_from_slice(&both);
                    both.len()
                }
                None => 0,
            }
        });
    };
}

/// `bytes` with one to four changes of the document in it, or of its words if there is none, of at most `most` bytes. `None`: there are no
/// words either, or bytes are to be changed.
#[must_use]
pub fn mutate(bytes: &[u8], most: usize, seed: u32) -> Option<Vec<u8>> {
    let mut random = SplitMix64::new(u64::from(seed));
    if random.below(4) == 0 {
        return None;
    }
    let changed = match Document::find(bytes, &mut random) {
        Some(document) => fields(bytes, document, &mut random),
        None => words(bytes, &mut random),
    };
    changed.filter(|changed| changed.len() <= most)
}

/// `bytes` with one to four changes of the document in it.
fn fields(bytes: &[u8], mut document: Document, random: &mut SplitMix64) -> Option<Vec<u8>> {
    for _ in 0..=random.below(4) {
        change(&mut document.tree, random);
    }
    let mut text = document.text()?;
    if random.below(3) == 0 {
        damage(&mut text, random);
    }
    document.place(bytes, &text)
}

/// A text in which one to four words, numbers or units are others, are gone, or are there twice. `None`: it has fewer than two.
fn words(bytes: &[u8], random: &mut SplitMix64) -> Option<Vec<u8>> {
    // `10ms` is a word, or a number with its unit.
    let whole = random.below(2) == 0;
    let kind = |byte: u8| match byte {
        byte if byte.is_ascii_whitespace() || b",;=:()[]\"".contains(&byte) => 0,
        byte if whole || byte.is_ascii_alphabetic() => 1,
        _ => 2,
    };
    let mut parts: Vec<Vec<u8>> = bytes.chunk_by(|one, next| kind(*one) == kind(*next)).map(<[u8]>::to_vec).collect();
    let places: Vec<usize> = (0..parts.len()).filter(|at| kind(parts[*at][0]) > 0).collect();
    if places.len() < 2 {
        return None;
    }
    for _ in 0..=random.below(4) {
        let (at, from) = (*pick(&places, random)?, *pick(&places, random)?);
        parts[at] = match random.below(8) {
            0 => Vec::new(),
            1 => [&parts[at][..], b" ", &parts[at]].concat(),
            2 | 3 => parts[from].clone(),
            4 | 5 => pick(&NUMBERS, random)?.as_bytes().to_vec(),
            _ => word(random).into_bytes(),
        };
    }
    Some(parts.concat())
}

/// The document in `one` with a part of that in `other`, or text with lines of the other, of at most `most` bytes.
#[must_use]
pub fn cross(one: &[u8], other: &[u8], most: usize, seed: u32) -> Option<Vec<u8>> {
    let mut random = SplitMix64::new(u64::from(seed));
    let both = match (Document::find(one, &mut random), Document::find(other, &mut random)) {
        (Some(document), Some(given)) => documents(one, document, given.tree, &mut random),
        _ => lines(one, other, &mut random),
    };
    both.filter(|both| both.len() <= most)
}

/// The document in `one` with a part of `given`.
fn documents(one: &[u8], mut document: Document, mut given: Value, random: &mut SplitMix64) -> Option<Vec<u8>> {
    // The same keys on the way down in both, as far as chance goes.
    let (mut to, mut from) = (&mut document.tree, &mut given);
    loop {
        let shared: Option<String> = match (&*to, &*from) {
            (Value::Object(to), Value::Object(from)) => {
                let keys: Vec<&String> = from.keys().filter(|key| to.get(*key).is_some_and(Value::is_object)).collect();
                pick(&keys, random).map(|key| (*key).clone())
            }
            _ => None,
        };
        let Some(key) = shared.filter(|_| random.below(3) > 0) else { break };
        (to, from) = (to.get_mut(&key)?, from.get_mut(&key)?);
    }
    let (to, from) = (to.as_object_mut()?, from.as_object_mut()?);
    let keys: Vec<String> = from.keys().cloned().collect();
    let key = pick(&keys, random)?;
    to.insert(key.clone(), from.remove(key)?);
    document.place(one, &document.text()?)
}

/// One to eight successive lines of `other` in `one`, between its lines or in place of as many.
fn lines(one: &[u8], other: &[u8], random: &mut SplitMix64) -> Option<Vec<u8>> {
    let [mut lines, given] = [one, other].map(|bytes| bytes.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
    if lines.len() < 2 || given.len() < 2 {
        return None;
    }
    let (from, to) = (random.below(given.len()), random.below(lines.len() + 1));
    let count = (1 + random.below(8)).min(given.len() - from);
    let replaced = if random.below(2) == 0 { 0 } else { count.min(lines.len() - to) };
    lines.splice(to..to + replaced, given[from..from + count].iter().copied());
    Some(lines.concat())
}

/// Where in an input a document is.
enum Place {
    /// The whole input is TOML.
    Toml,
    /// From a byte to another the input is an object of JSON. With `framed` its length is in the four bytes before it.
    Json { from: usize, to: usize, framed: bool },
}

/// A document in an input.
struct Document {
    place: Place,
    tree: Value,
}

impl Document {
    /// The document that `bytes` are, or one of those in it.
    fn find(bytes: &[u8], random: &mut SplitMix64) -> Option<Self> {
        if let Ok(text) = str::from_utf8(bytes)
            && let Ok(tree) = toml::from_str::<Map<String, Value>>(text)
            && !tree.is_empty()
        {
            return Some(Self { place: Place::Toml, tree: tree.into() });
        }
        let starts: Vec<usize> = bytes.iter().zip(0..).filter(|(byte, _)| **byte == b'{').map(|(_, at)| at).collect();
        let from = *pick(&starts[..starts.len().min(64)], random)?;
        // The outermost object is chosen as often as all that are in it.
        let from = if random.below(2) == 0 { starts[0] } else { from };
        let mut objects = serde_json::Deserializer::from_slice(&bytes[from..]).into_iter::<Map<String, Value>>();
        let tree = objects.next()?.ok()?.into();
        let to = from + objects.byte_offset();
        let framed = from >= 4 && u32::from_be_bytes(bytes[from - 4..from].try_into().ok()?) as usize == to - from;
        Some(Self { place: Place::Json { from, to, framed }, tree })
    }

    /// The document as it is now.
    fn text(&self) -> Option<Vec<u8>> {
        match self.place {
            Place::Toml => Some(toml::to_string(&self.tree).ok()?.into_bytes()),
            Place::Json { .. } => serde_json::to_vec(&self.tree).ok(),
        }
    }

    /// The input again, with `text` for the document.
    fn place(&self, bytes: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        match self.place {
            Place::Toml => Some(text.to_vec()),
            Place::Json { from, to, framed } => {
                let mut head = bytes[..from].to_vec();
                if framed {
                    head[from - 4..].copy_from_slice(&u32::try_from(text.len()).ok()?.to_be_bytes());
                }
                Some([&head, text, &bytes[to..]].concat())
            }
        }
    }
}

/// Changes one place in `at`: a value becomes another one, comes, goes, or is there twice.
fn change(at: &mut Value, random: &mut SplitMix64) {
    // Downwards, as far as chance goes.
    if random.below(4) > 0 {
        let inner = match at {
            Value::Object(fields) => {
                let index = random.below(fields.len().max(1));
                fields.values_mut().nth(index)
            }
            Value::Array(items) => {
                let index = random.below(items.len().max(1));
                items.get_mut(index)
            }
            _ => None,
        };
        if let Some(inner) = inner.filter(|inner| inner.is_object() || inner.is_array()) {
            return change(inner, random);
        }
    }
    match at {
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            match (random.below(6), pick(&keys, random)) {
                (0, Some(key)) => drop(fields.remove(key)),
                (1, Some(key)) => drop(fields.insert(word(random), fields[key].clone())),
                (2 | 3, Some(key)) => drop(fields.insert(key.clone(), value(random, 2))),
                _ => drop(fields.insert(word(random), value(random, 2))),
            }
        }
        Value::Array(items) => {
            let index = random.below(items.len() + 1);
            match (random.below(4), items.get(index).cloned()) {
                (0, Some(_)) => drop(items.remove(index)),
                (1, Some(item)) => items.push(item),
                (2, Some(_)) => items[index] = value(random, 1),
                _ => items.push(value(random, 1)),
            }
        }
        other => *other = value(random, 1),
    }
}

/// Makes one fault at the border of a token: one more, one less, another one, or an end.
fn damage(text: &mut Vec<u8>, random: &mut SplitMix64) {
    let is_border = |byte: &u8| b":,{}[]\"=.\n".contains(byte);
    let borders: Vec<usize> = (0..text.len()).filter(|at| is_border(&text[*at])).collect();
    let (Some(at), Some(token)) = (pick(&borders, random).copied(), pick(&TOKENS, random)) else { return };
    match random.below(6) {
        0 => drop(text.remove(at)),
        1 => text.truncate(at + random.below(2)),
        2 | 3 => drop(text.splice(at..=at, token.bytes())),
        _ => drop(text.splice(at + 1..at + 1, token.bytes())),
    }
}

/// A value of any type, with others in it to the depth `depth`.
fn value(random: &mut SplitMix64, depth: u32) -> Value {
    match random.below(if depth == 0 { 8 } else { 12 }) {
        0 => Value::Bool(random.below(2) == 0),
        1 | 2 => pick(&NUMBERS, random).and_then(|text| serde_json::from_str::<Number>(text).ok()).into(),
        3 | 4 => pick(&TEXTS, random).copied().into(),
        5..=7 => word(random).into(),
        8 | 9 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect::<Vec<_>>().into(),
        _ => Value::Object((0..random.below(4)).map(|_| (word(random), value(random, depth - 1))).collect()),
    }
}

/// A word of the source that reads the documents.
fn word(random: &mut SplitMix64) -> String {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let text = std::env::var(WORDS).ok().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.lines().filter_map(|line| Some(line.strip_prefix('"')?.strip_suffix('"')?.to_owned())).collect()
    });
    pick(all, random).cloned().unwrap_or_else(|| "x".to_owned())
}

/// One of `all`, if there is one.
fn pick<'a, T>(all: &'a [T], random: &mut SplitMix64) -> Option<&'a T> {
    all.get(random.below(all.len().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_changed_documents_are_still_documents_and_a_frame_has_its_length() {
        let framed = [&[0, 0, 0, 9][..], br#"{"a":[1]}"#, b"rest"].concat();
        let mut documents = [[0, 0]; 2];
        for seed in 0..2_000 {
            if let Some(changed) = mutate(b"a = 1\n[b]\nc = [1, 2]\n", 4096, seed) {
                let read =
                    str::from_utf8(&changed).is_ok_and(|text| toml::from_str::<Map<String, Value>>(text).is_ok());
                documents[0][usize::from(read)] += 1;
            }
            if let Some(changed) = mutate(&framed, 4096, seed) {
                let length = u32::from_be_bytes(changed[..4].try_into().unwrap()) as usize;
                assert!(changed[4..].ends_with(b"rest") && changed.len() == 4 + length + 4, "{changed:?}");
                documents[1][usize::from(serde_json::from_slice::<Value>(&changed[4..4 + length]).is_ok())] += 1;
            }
        }
        for [damaged, read] in documents {
            assert!(damaged > 100 && read > 2 * damaged, "{documents:?}");
        }
    }

    #[test]
    fn texts_get_other_words() {
        let text = b"\xffrtt 10ms of 3 h1:5201\n";
        let changed: std::collections::BTreeSet<_> = (0..2_000).filter_map(|seed| mutate(text, 64, seed)).collect();
        for part in [&b"\xffrtt ms of"[..], b" 10ms of 10ms ", b" 0ms of ", b" of 3 3 h1", b" of 3 h1:0\n", b" of  h1"]
        {
            assert!(changed.iter().any(|text| text.windows(part.len()).any(|at| at == part)), "{part:?}");
        }
        assert!(changed.iter().all(|text| text.ends_with(b"\n")), "spaces stay as they are");
        assert!((0..100).all(|seed| mutate(b"word", 64, seed).is_none()));
    }

    #[test]
    fn a_crossing_has_a_part_of_the_other() {
        let both = cross(b"a = 1\n", b"b = 2\n", 4096, 7).unwrap();
        assert_eq!(str::from_utf8(&both).unwrap(), "a = 1\nb = 2\n");
    }

    #[test]
    fn texts_are_crossed_by_whole_lines() {
        let (mut longer, mut same) = (0, 0);
        for seed in 0..100 {
            let both = cross(b"one\ntwo\n", b"3 x\n4 y\n", 4096, seed).unwrap();
            let lines: Vec<&str> = str::from_utf8(&both).unwrap().lines().collect();
            assert!(lines.iter().all(|line| ["one", "two", "3 x", "4 y"].contains(line)), "{lines:?}");
            assert!(lines.iter().any(|line| ["3 x", "4 y"].contains(line)), "{lines:?}");
            if lines.len() > 2 { longer += 1 } else { same += 1 }
        }
        assert!(longer > 10 && same > 10, "{longer} {same}");
        assert_eq!(cross(b"one", b"3 x\n4 y\n", 4096, 1), None);
    }
}
