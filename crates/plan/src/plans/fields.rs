//! The fields of a plan's cells: their names, their values, and the spec that they give.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use control::coordinator::check_host;
use model::{Factor, Spec};
use options::{OptionError, OptionRow, TestKind, TestOptions, ValueError, row, rows_of, split, unknown};
use text::{Said, Text, say};
use vec1::Vec1;

use crate::resolver::Resolver;
use crate::specs;

/// Fields that name a cell's hosts, in place of those at the top.
const HOSTS: [&str; 2] = [Factor::FROM_FIELD, Factor::TO_FIELD];
/// The field of the far end's program, and its value for an agent.
const SPEAK: &str = "speak";
const AGENT: &str = "thru";

/// What to do with a name that is not a field of a cell: a plan has it elsewhere, or it is a flag that no cell has. `None` for others.
fn elsewhere(name: &str) -> Option<Text> {
    Some(match name {
        "target" => say!("write it as `until` in [repeat]"),
        "trials" => say!("write `min` and `max` in [repeat]"),
        "budget" => say!("write it in [repeat]"),
        "seed" | "name" | "order" => say!("write it at the top"),
        "token-file" => say!("give it to thru run"),
        "no-path" => say!("the path of a plan is not probed: omit it"),
        "set" => say!("write it in [settings], or as a factor with `setting`"),
        "adaptive" => say!(
            "the cells of a plan are fixed before its first trial: give the sizes as `--block`, or `--first` and `--to`"
        ),
        "limit" => say!("the cells of a plan are fixed before its first trial: exclude large sizes with `--to`"),
        "no-ceiling" => say!("a plan has no memory-copy curve unless `--transport` is memcpy"),
        "np" => say!("give it to thru curve"),
        "wad" => say!("it is now called cc-rules"),
        _ => return None,
    })
}

/// The fields that the cells of some patterns may have.
#[derive(Debug)]
pub(super) struct CellFields {
    patterns: Vec<TestKind>,
    /// The folder of the files that fields name.
    folder: PathBuf,
}

impl CellFields {
    /// The fields of `patterns`, with files relative to `folder`. An unknown pattern is an error that lists all.
    pub(super) fn new(patterns: &BTreeSet<String>, folder: &Path) -> Result<Self, ValueError> {
        let patterns = patterns.iter().map(|pattern| TestKind::read(pattern)).collect::<Result<_, _>>()?;
        Ok(Self { patterns, folder: folder.to_owned() })
    }

    /// Checks the name of a field, and its value alone; combinations are checked with the cell.
    pub(super) fn check(&self, key: &str, value: &str) -> Result<(), OptionError> {
        let (end, name) = split(key);
        let wrong = |what: Text| Err(OptionError::of_key(key, what));
        if name == TestKind::KEY {
            return match end {
                None => Ok(()),
                Some(_) => wrong(say!("the pattern is the same for both ends: omit the prefix")),
            };
        }
        if HOSTS.contains(&name) {
            return match end {
                None => check_host(value).map_err(|error| OptionError::of_key(key, error.say())),
                Some(_) => wrong(say!("'{name}' is a host of the cell: omit the prefix")),
            };
        }
        if let Some(remedy) = elsewhere(name) {
            return wrong(say!("'{name}' is not a field of a cell: {remedy}"));
        }
        let rows = self.patterns.iter().flat_map(|pattern| rows_of(*pattern));
        let known: BTreeSet<&str> = rows.filter(|row| !is_elsewhere(row)).map(|row| row.key).collect();
        if !known.contains(name) {
            let known: Vec<&str> = known.into_iter().chain([TestKind::KEY]).chain(HOSTS).collect();
            let patterns: Vec<&str> = self.patterns.iter().map(|pattern| pattern.name()).collect();
            return wrong(unknown(name, &known, &format!("thru {}", patterns.join("/"))).into());
        }
        for pattern in &self.patterns {
            self.set(&mut TestOptions::new(*pattern), key, value)?;
        }
        Ok(())
    }

    /// The spec of a cell, or of each size of a curve. A field that the cell's pattern does not have is ignored: it is another pattern's.
    pub(super) fn specs(
        &self,
        fields: &BTreeMap<String, String>,
        resolver: &dyn Resolver,
    ) -> Result<Vec1<Spec>, OptionError> {
        specs::of(&self.options(fields)?, resolver)
    }

    /// The same before its defaults.
    pub(super) fn options(&self, fields: &BTreeMap<String, String>) -> Result<TestOptions, OptionError> {
        let pattern = fields.get(TestKind::KEY).map_or(Ok(TestKind::default()), |name| TestKind::read(name));
        let mut options = TestOptions::new(pattern.map_err(|error| OptionError::of_key(TestKind::KEY, error.say()))?);
        // The value of an end replaces the one for both.
        let (of_ends, of_both): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| split(key).0.is_some());
        for (key, value) in of_both.into_iter().chain(of_ends) {
            self.set(&mut options, key, value)?;
        }
        Ok(options)
    }

    /// Sets a field, if the test has it.
    fn set(&self, options: &mut TestOptions, key: &str, value: &str) -> Result<(), OptionError> {
        if key == SPEAK && value == AGENT {
            return Ok(());
        }
        let Some(row) = row(split(key).1, options.test) else { return Ok(()) };
        if row.is_file {
            options.set(key, &self.folder.join(value).display().to_string())
        } else {
            options.set(key, value)
        }
    }
}

fn is_elsewhere(row: &OptionRow) -> bool {
    elsewhere(row.key).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;
    use model::Pattern;

    fn flags(patterns: &[&str]) -> CellFields {
        CellFields::new(&patterns.iter().map(|pattern| (*pattern).to_owned()).collect(), Path::new("plans"))
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

    fn one(flags: &CellFields, fields: &BTreeMap<String, String>) -> Result<Spec, String> {
        flags.specs(fields, &TestHost).map(|specs| specs.split_off_first().0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_curve_is_a_spec_for_each_of_its_sizes() {
        let of = fields(&[("pattern", "curve"), ("block", "64KiB,1KiB,8"), ("time", "5ms"), ("far.rcvbuf", "1MiB")]);
        let specs = flags(&["curve", "stream"]).specs(&of, &TestHost).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(specs.iter().map(|spec| spec.block).collect::<Vec<_>>(), [8, 1 << 10, 64 << 10]);
        assert!(specs.iter().all(|spec| spec.stop == model::Stop::AboutNs(5_000_000)));
        assert!(specs.iter().all(|spec| spec.pattern == Pattern::Pingpong && spec.far.rcvbuf == Some(1 << 20)));
        let all =
            flags(&["curve"]).specs(&fields(&[("pattern", "curve"), ("stream", "true"), ("to", "1KiB")]), &TestHost);
        let all = all.unwrap_or_else(|error| panic!("{error}"));
        assert!(
            all.len() > 30 && all.iter().all(|spec| spec.pattern == Pattern::Stream && spec.block <= 1_027),
            "{all:?}"
        );
    }

    #[test]
    fn an_option_of_one_end_leaves_the_other_alone() {
        let spec = one(&flags(&["stream"]), &fields(&[("near.cc", "cubic")])).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((spec.near.cc.as_deref(), spec.far.cc), (Some("cubic"), None));
    }

    #[test]
    fn a_file_is_relative_to_the_plan() {
        let of = fields(&[("cc", "highspeed"), ("cc-rules", "labs/none.toml")]);
        let no_such = one(&flags(&["stream"]), &of).unwrap_err();
        assert!(no_such.contains("plans/labs/none.toml"), "{no_such}");
    }

    #[test]
    fn errors_name_the_remedy() {
        let stream = flags(&["stream"]);
        let wrong = |key: &str, value: &str| stream.check(key, value).unwrap_err().to_string();
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
            CellFields::new(&["curves".to_owned()].into(), Path::new(""))
                .is_err_and(|error| error.to_string().contains("transfer"))
        );
    }
}
