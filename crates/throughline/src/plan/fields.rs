//! The fields of a plan's cells are flags: what they are called, what they take, and the spec that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ValueHint};
use model::Spec;

use super::source::unknown;
use crate::flags::PER_END;
use crate::spec_args::{self, OF_THE_WHOLE, PATTERNS, Wrong};

/// The field that is no flag but the command itself.
pub const PATTERN: &str = "pattern";
/// Flags that a plan says in places of their own, beside those of the whole, with the place.
const ELSEWHERE: [(&str, &str); 15] = [
    ("target", "write it as `until` in [repeat]"),
    ("trials", "write `min` and `max` in [repeat]"),
    ("budget", "write it in [repeat]"),
    ("seed", "write it at the top"),
    ("from", "write it at the top: from = [\"HOST\", ...]"),
    ("host", "write it at the top: to = [\"HOST\", ...]"),
    ("name", "write it at the top"),
    ("speak", "a plan's hosts run `thru serve`: use thru stream for other programs"),
    ("token-file", "give it to thru run"),
    ("set", "write it in [settings], or as a factor with `setting`"),
    ("adaptive", "the cells of a plan stand before its first trial: name the sizes with `block`, or `first` and `to`"),
    ("limit", "the cells of a plan stand before its first trial: leave large sizes out with `to`"),
    ("order", "write it at the top"),
    ("no-ceiling", "a plan measures no copies in memory, unless `transport` is a factor with memcpy"),
    ("np", "give it to thru curve"),
];

/// The flags that cells of a few patterns may have.
#[derive(Debug)]
pub struct Flags {
    /// Each pattern with its flags.
    of: Vec<(&'static str, Vec<Arg>)>,
    /// Where the files lie that fields name.
    folder: PathBuf,
}

impl Flags {
    /// Those of the patterns named, with files beside those of `folder`; other patterns are an error that names them all.
    pub fn new(patterns: &BTreeSet<String>, folder: &Path) -> Result<Self, String> {
        let mut of = Vec::new();
        for wanted in patterns {
            let Some(name) = PATTERNS.iter().find(|name| *name == wanted) else {
                return Err(format!("no pattern of a plan is called '{wanted}'; there are {}", PATTERNS.join(", ")));
            };
            let flags = spec_args::command(name).map(|command| command.get_arguments().cloned().collect());
            of.push((*name, flags.unwrap_or_default()));
        }
        Ok(Self { of, folder: folder.to_owned() })
    }

    /// Checks a field's name, and its value as a flag of its own.
    pub fn check(&self, key: &str, value: &str) -> Result<(), String> {
        let (end, name) = split(key);
        if name == PATTERN {
            return if end.is_none() { Ok(()) } else { Err("both ends have one pattern".into()) };
        }
        if let Some((_, remedy)) = ELSEWHERE.iter().find(|(other, _)| *other == name) {
            return Err(format!("'{name}' is no field of a cell: {remedy}"));
        }
        let known: BTreeSet<&str> = self.of.iter().flat_map(|(_, flags)| flags.iter().filter_map(usable)).collect();
        if !known.contains(name) {
            let mut known: Vec<&str> = known.into_iter().collect();
            known.push(PATTERN);
            let patterns: Vec<&str> = self.of.iter().map(|(pattern, _)| *pattern).collect();
            return Err(unknown(name, &known, &format!("thru {}", patterns.join("/"))));
        }
        for (pattern, flags) in &self.of {
            let Some(flag) = flags.iter().find(|flag| usable(flag) == Some(name)) else { continue };
            if end.is_some() && !per_end(flag) {
                return Err(format!("'{name}' is one for both ends: leave the {}. out", end.unwrap_or_default()));
            }
            let Some(word) = self.word(flag, value)? else { continue };
            let whole = spec_args::specs(&[(*pattern).to_owned(), word]);
            // Only what is wrong with this flag by itself; what it needs beside it is checked with the cell.
            if let Err(Wrong::Value(what)) = whole {
                return Err(what);
            }
        }
        Ok(())
    }

    /// The spec of a cell, or of each size of a curve; a field that the cell's pattern does not have is another pattern's.
    pub fn specs(&self, fields: &BTreeMap<String, String>) -> Result<Vec<Spec>, String> {
        let pattern = fields.get(PATTERN).map_or(PATTERNS[0], String::as_str);
        let Some((_, flags)) = self.of.iter().find(|(name, _)| *name == pattern) else {
            return Err(format!("no pattern of a plan is called '{pattern}'; there are {}", PATTERNS.join(", ")));
        };
        let mut line = vec![pattern.to_owned()];
        for flag in flags {
            let Some(name) = usable(flag) else { continue };
            let of_end = |end: &str| fields.get(&format!("{end}.{name}"));
            let value = match (fields.get(name), of_end("near"), of_end("far")) {
                (None, None, None) => continue,
                (Some(both), None, None) => both.clone(),
                (both, near, far) => {
                    let (for_near, for_far) =
                        both.map_or(("", ""), |both| both.split_once(',').unwrap_or((both, both)));
                    format!("{},{}", near.map_or(for_near, String::as_str), far.map_or(for_far, String::as_str))
                }
            };
            line.extend(self.word(flag, &value)?);
        }
        spec_args::specs(&line).map_err(|wrong| match wrong {
            Wrong::Value(what) | Wrong::Words(what) => what,
            Wrong::OfTheWhole(flag) => format!("{flag} belongs to the plan as a whole"),
            Wrong::Together(failure) => failure.to_string(),
        })
    }

    /// A flag with its value as one word; `None` for a switch that is off.
    fn word(&self, flag: &Arg, value: &str) -> Result<Option<String>, String> {
        let name = flag.get_long().unwrap_or_default();
        match (flag.get_action(), value) {
            (ArgAction::SetTrue, "true" | "on") => Ok(Some(format!("--{name}"))),
            (ArgAction::SetTrue, "false" | "off") => Ok(None),
            (ArgAction::SetTrue, other) => Err(format!("'{other}' is neither true nor false")),
            _ if flag.get_value_hint() == ValueHint::FilePath => {
                Ok(Some(format!("--{name}={}", self.folder.join(value).display())))
            }
            _ => {
                // What TOML calls true is `on` on the command line.
                let each = |one: &str| match one.trim() {
                    "true" => "on".to_owned(),
                    "false" => "off".to_owned(),
                    other => other.to_owned(),
                };
                Ok(Some(format!("--{name}={}", value.split(',').map(each).collect::<Vec<_>>().join(","))))
            }
        }
    }
}

/// A field's end and its flag's name.
fn split(key: &str) -> (Option<&str>, &str) {
    match key.split_once('.') {
        Some((end @ ("near" | "far"), name)) => (Some(end), name),
        _ => (None, key),
    }
}

/// The long name of a flag that a cell may have.
fn usable(flag: &Arg) -> Option<&str> {
    let whole = OF_THE_WHOLE.contains(&flag.get_id().as_str());
    flag.get_long().filter(|name| !whole && !ELSEWHERE.iter().any(|(other, _)| other == name))
}

fn per_end(flag: &Arg) -> bool {
    flag.get_help_heading() == Some(PER_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(patterns: &[&str]) -> Flags {
        Flags::new(&patterns.iter().map(|pattern| (*pattern).to_owned()).collect(), Path::new("plans"))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn fields_are_flags() {
        let of = fields(&[("sndbuf", "64KiB"), ("far.sndbuf", "1MiB"), ("reverse", "true"), ("nodelay", "true")]);
        let spec = one(&flags(&["stream"]), &of).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((spec.near.sndbuf, spec.far.sndbuf), (Some(64 << 10), Some(1 << 20)));
        assert_eq!((spec.direction, spec.near.nodelay), (model::Direction::Reverse, Some(true)));
    }

    fn one(flags: &Flags, fields: &BTreeMap<String, String>) -> Result<Spec, String> {
        flags.specs(fields).map(|mut specs| specs.remove(0))
    }

    #[test]
    fn a_curve_is_a_spec_for_each_of_its_sizes() {
        let of = fields(&[("pattern", "curve"), ("block", "64KiB,1KiB,8"), ("time", "5ms"), ("far.rcvbuf", "1MiB")]);
        let specs = flags(&["curve", "stream"]).specs(&of).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(specs.iter().map(|spec| spec.block).collect::<Vec<_>>(), [8, 1 << 10, 64 << 10]);
        assert!(specs.iter().all(|spec| spec.stop == model::Stop::AboutNs(5_000_000)));
        assert!(specs.iter().all(|spec| spec.pattern == "pingpong" && spec.far.rcvbuf == Some(1 << 20)));
        let all = flags(&["curve"]).specs(&fields(&[("pattern", "curve"), ("stream", "true"), ("to", "1KiB")]));
        let all = all.unwrap_or_else(|error| panic!("{error}"));
        assert!(all.len() > 30 && all.iter().all(|spec| spec.pattern == "stream" && spec.block <= 1_027), "{all:?}");
    }

    #[test]
    fn an_option_of_one_end_leaves_the_other_alone() {
        let spec = one(&flags(&["stream"]), &fields(&[("near.cc", "cubic")])).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((spec.near.cc.as_deref(), spec.far.cc), (Some("cubic"), None));
    }

    #[test]
    fn a_file_lies_beside_the_plan() {
        let no_such = flags(&["stream"]).check("cc-rules", "labs/none.toml").unwrap_err();
        assert!(no_such.contains("plans/labs/none.toml"), "{no_such}");
    }

    #[test]
    fn what_is_wrong_names_what_would_be_right() {
        let stream = flags(&["stream"]);
        let wrong = |key: &str, value: &str| stream.check(key, value).unwrap_err();
        assert!(wrong("sndbufs", "1").contains("did you mean 'sndbuf'"), "{}", wrong("sndbufs", "1"));
        assert!(wrong("sndbuf", "x").contains("is not a size"), "{}", wrong("sndbuf", "x"));
        assert!(wrong("rate", "1GB").contains("8Gbit"), "{}", wrong("rate", "1GB"));
        assert!(wrong("flows", "-1").contains("whole number from 1 to"), "{}", wrong("flows", "-1"));
        assert!(wrong("wait", "x").contains("'x' is none of auto, blocking"), "{}", wrong("wait", "x"));
        assert!(wrong("near.block", "1").contains("leave the near. out"));
        assert!(wrong("reverse", "7").contains("neither true nor false"));
        assert!(wrong("trials", "3").contains("[repeat]"));
        assert!(wrong("reply", "3").contains("thru stream has no 'reply'"), "{}", wrong("reply", "3"));
        assert!(wrong("order", "random").contains("at the top"));
        assert!(wrong("adaptive", "true").contains("no field of a cell: the cells of a plan stand"));
    }

    #[test]
    fn a_field_of_another_pattern_is_left_to_it() {
        let both = flags(&["stream", "rr"]);
        assert_eq!(both.check("reply", "3"), Ok(()));
        let of = fields(&[("reply", "3"), ("block", "8KiB"), ("pattern", "stream")]);
        assert_eq!(one(&both, &of).map(|spec| spec.block), Ok(8 << 10));
        assert_eq!(one(&both, &fields(&[("reply", "3"), ("pattern", "rr")])).map(|spec| spec.reply), Ok(Some(3)));
        assert!(
            Flags::new(&["curves".to_owned()].into(), Path::new("")).is_err_and(|error| error.contains("transfer"))
        );
    }
}
