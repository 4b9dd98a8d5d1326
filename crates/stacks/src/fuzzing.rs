//! Entry points for coverage-guided tests: what reads a user's files, for bytes of any kind. Only for `fuzz/`.

use crate::object::Object;
use crate::rules;

/// A compiled stack: an ELF file with a description.
///
/// # Panics
/// If the description has more than the file.
pub fn object(bytes: &[u8]) {
    if let Ok(object) = Object::read("a file", bytes.to_vec()) {
        assert!(object.name.len() < 16 && object.parameters.len() <= bytes.len());
        for parameter in &object.parameters {
            let _ = parameter.read(&object.name, "0.5");
        }
    }
}

/// A file of rules for destinations.
///
/// # Panics
/// If a value is beyond what a stack takes.
pub fn rules(bytes: &[u8]) {
    let Ok(rules) = rules::parse(&String::from_utf8_lossy(bytes)) else { return };
    assert!(rules.len() <= rules::MOST);
    for rule in rules {
        assert!((1..=1_000_000_000).contains(&rule.increase_permille) && (1..=999).contains(&rule.decrease_permille));
    }
}

#[cfg(test)]
mod tests {
    type Entry = fn(&[u8]);

    #[test]
    fn every_input_of_the_corpus_is_survived() {
        let entries: [(&str, Entry); 2] = [("object", super::object), ("rules", super::rules)];
        for (target, entry) in entries {
            corpus::inputs(target).unwrap().iter().for_each(|input| entry(input));
        }
    }
}
