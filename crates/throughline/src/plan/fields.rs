//! The fields of a plan's cells are flags: their names, their values, and the spec that they give.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ValueHint};
use model::Spec;

use crate::flags::PER_END;
use crate::spec_args::{self, PATTERNS, RUN_WIDE, SpecError};
use session::source::unknown;

/// The field for the command itself.
pub const PATTERN: &str = "pattern";
/// Flags that are not fields of a cell, each with the remedy.
const ELSEWHERE: [(&str, &str); 16] = [
    ("target", "write it as `until` in [repeat]"),
    ("trials", "write `min` and `max` in [repeat]"),
    ("budget", "write it in [repeat]"),
    ("seed", "write it at the top"),
    ("from", "write it at the top: from = [\"HOST\", ...]"),
    ("host", "write it at the top: to = [\"HOST\", ...]"),
    ("name", "write it at the top"),
    ("speak", "the hosts of a plan run `thru serve`: use thru stream for other programs"),
    ("token-file", "give it to thru run"),
    ("set", "write it in [settings], or as a factor with `setting`"),
    (
        "adaptive",
        "the cells of a plan are fixed before its first trial: give the sizes as `block`, or `first` and `to`",
    ),
    ("limit", "the cells of a plan are fixed before its first trial: exclude large sizes with `to`"),
    ("order", "write it at the top"),
    ("no-ceiling", "a plan has no memory-copy curve unless `transport` is memcpy"),
    ("np", "give it to thru curve"),
    ("wad", "it is now called cc-rules"),
];

/// The flags that the cells of some patterns may have.
#[derive(Debug)]
pub struct Flags {
    /// Each pattern with its flags.
    of: Vec<(&'static str, Vec<Arg>)>,
    /// The folder of the files that fields name.
    folder: PathBuf,
}

impl Flags {
    /// The flags of `patterns`, with files relative to `folder`. An unknown pattern is an error that lists all.
    pub fn new(patterns: &BTreeSet<String>, folder: &Path) -> Result<Self, String> {
        let mut of = Vec::new();
        for pattern in patterns {
            let Some(name) = PATTERNS.iter().find(|name| *name == pattern) else {
                return Err(format!("unknown pattern '{pattern}': use one of {}", PATTERNS.join(", ")));
            };
            let flags = spec_args::command(name).map(|command| command.get_arguments().cloned().collect());
            of.push((*name, flags.unwrap_or_default()));
        }
        Ok(Self { of, folder: folder.to_owned() })
    }

    /// Checks the name of a field, and its value alone.
    pub fn check(&self, key: &str, value: &str) -> Result<(), String> {
        let (end, name) = split(key);
        if name == PATTERN {
            return if end.is_none() {
                Ok(())
            } else {
                Err("the pattern is the same for both ends: omit the prefix".into())
            };
        }
        if let Some((_, remedy)) = ELSEWHERE.iter().find(|(other, _)| *other == name) {
            return Err(format!("'{name}' is not a field of a cell: {remedy}"));
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
                return Err(format!("'{name}' applies to both ends: omit the {}. prefix", end.unwrap_or_default()));
            }
            let Some(word) = self.word(flag, value)? else { continue };
            let whole = spec_args::specs(&[(*pattern).to_owned(), word]);
            // Only errors of this flag alone; combinations are checked with the cell.
            if let Err(SpecError::Value(what)) = whole {
                return Err(what);
            }
        }
        Ok(())
    }

    /// The spec of a cell, or of each size of a curve. A field that the cell's pattern does not have is ignored: it is another pattern's.
    pub fn specs(&self, fields: &BTreeMap<String, String>) -> Result<Vec<Spec>, String> {
        let pattern = fields.get(PATTERN).map_or(PATTERNS[0], String::as_str);
        let Some((_, flags)) = self.of.iter().find(|(name, _)| *name == pattern) else {
            return Err(format!("unknown pattern '{pattern}': use one of {}", PATTERNS.join(", ")));
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
            SpecError::Value(what) | SpecError::Usage(what) => what,
            SpecError::RunWide(flag) => format!("{flag} applies to the whole plan, not to a cell"),
            SpecError::Conflict(failure) => failure.to_string(),
        })
    }

    /// A flag with its value as one argument; `None` for a switch that is off.
    fn word(&self, flag: &Arg, value: &str) -> Result<Option<String>, String> {
        let name = flag.get_long().unwrap_or_default();
        match (flag.get_action(), value) {
            (ArgAction::SetTrue, "true" | "on") => Ok(Some(format!("--{name}"))),
            (ArgAction::SetTrue, "false" | "off") => Ok(None),
            (ArgAction::SetTrue, other) => Err(format!("'{other}' is not true or false")),
            _ if flag.get_value_hint() == ValueHint::FilePath => {
                Ok(Some(format!("--{name}={}", self.folder.join(value).display())))
            }
            _ => {
                // `true` of TOML is `on` on the command line.
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
    let whole = RUN_WIDE.contains(&flag.get_id().as_str());
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
    fn a_file_is_relative_to_the_plan() {
        let no_such = flags(&["stream"]).check("cc-rules", "labs/none.toml").unwrap_err();
        assert!(no_such.contains("plans/labs/none.toml"), "{no_such}");
    }

    #[test]
    fn errors_name_the_remedy() {
        let stream = flags(&["stream"]);
        let wrong = |key: &str, value: &str| stream.check(key, value).unwrap_err();
        assert!(wrong("sndbufs", "1").contains("did you mean 'sndbuf'"), "{}", wrong("sndbufs", "1"));
        assert!(wrong("sndbuf", "x").contains("is not a size"), "{}", wrong("sndbuf", "x"));
        assert!(wrong("rate", "1GB").contains("8Gbit"), "{}", wrong("rate", "1GB"));
        assert!(wrong("flows", "-1").contains("whole number from 1 to"), "{}", wrong("flows", "-1"));
        assert!(wrong("wait", "x").contains("'x' is not one of auto, blocking"), "{}", wrong("wait", "x"));
        assert!(wrong("near.block", "1").contains("omit the near. prefix"));
        assert!(wrong("reverse", "7").contains("not true or false"));
        assert!(wrong("trials", "3").contains("[repeat]"));
        assert!(wrong("reply", "3").contains("thru stream has no 'reply'"), "{}", wrong("reply", "3"));
        assert!(wrong("order", "random").contains("at the top"));
        assert!(wrong("wad", "a.toml").contains("now called cc-rules"));
        assert!(wrong("adaptive", "true").contains("not a field of a cell: the cells of a plan are fixed"));
    }

    #[test]
    fn a_field_of_another_pattern_is_ignored() {
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
