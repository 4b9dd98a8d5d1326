//! `thru ab`: whether B is worse than A. The trials alternate, so that other changes on the path affect both alike.

use std::path::PathBuf;

use clap::Args;
use command::failure::{self, Failure};
use control::coordinator::{PairedPlan, Schedule, Unfixed};
use model::{Nanos, Ratio, RunKind, Spec};
use options::TestOptions;
use options::values::{SetFlag, above_zero, whole};
use plan::{safe_rate, specs};
use session::ab::{self, LEAST_PAIRS};
use session::{ThisHost, Work};
use vec1::vec1;

use crate::flags::{self, Given, HostFlags, OfBothSides, Output};
use crate::measure::measure;
use crate::registries::one_of;
use crate::shape::{Lines, Shape};
use crate::spec_args::{self, SpecError, Worded};

/// Flags of `thru ab`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/ab.txt").trim_end())]
pub struct AbArgs {
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    shared: Given<OfBothSides>,

    /// Side A: flags of `thru stream`, `thru rr` or `thru transfer` in one string, which may begin with the command.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, required_unless_present = "a_file")]
    a: Option<String>,

    /// Side B, likewise.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, required_unless_present = "b_file")]
    b: Option<String>,

    /// Side A from a file: TOML with [base] and [settings] as in a plan, or JSON: an object with such fields, or the `spec` of
    /// an outcome.
    #[arg(long, value_name = "FILE", conflicts_with = "a")]
    a_file: Option<PathBuf>,

    /// Side B from a file, likewise.
    #[arg(long, value_name = "FILE", conflicts_with = "b")]
    b_file: Option<PathBuf>,

    /// Command to run if FLAGS do not begin with one.
    #[arg(long, value_parser = one_of(&PATTERNS), default_value = "stream")]
    pattern: String,

    /// Largest difference that does not matter. B is worse if it is significantly below A by more than this.
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = flags::PRECISION)]
    tolerance: Ratio,

    /// Run exactly this many pairs of trials, an even number of at least 12, with one analysis at the end [default: 16 to 54
    /// pairs, with three analyses].
    #[arg(long, value_name = "N", value_parser = whole(LEAST_PAIRS..=u32::MAX), help_heading = flags::PRECISION)]
    pairs: Option<u32>,

    /// Time limit for the whole comparison [default: 120s; none with --pairs].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>, help_heading = flags::PRECISION)]
    budget: Option<Nanos>,

    /// Pause between two trials.
    #[arg(long, value_name = "TIME", default_value = "50ms", help_heading = flags::PRECISION)]
    gap: Nanos,

    /// Seed for the order of A and B [default: from the clock; recorded in the run].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX), help_heading = flags::PRECISION)]
    seed: Option<u64>,

    /// Change a host setting for A and B and restore it after the last trial: KEY on both hosts, near:KEY or far:KEY on one.
    /// A --set in FLAGS applies only to that side's trials.
    #[arg(long, value_name = "[near:|far:]KEY=VALUE", help_heading = flags::SETTINGS)]
    set: Vec<SetFlag>,

    #[command(flatten)]
    output: Output,
}

/// Commands that can be compared.
const PATTERNS: [(&str, &str); 3] =
    [("stream", "Goodput"), ("rr", "Transactions per second"), ("transfer", "Goodput of a fixed amount")];

/// Runs it.
pub fn run(args: &AbArgs) -> Result<u8, Failure> {
    compare(args).map_err(Failure::of_comparison)
}

fn compare(args: &AbArgs) -> Result<u8, Failure> {
    let (from, host) = (args.hosts.from.as_deref(), args.hosts.host().map(String::as_str));
    // A file is taken as it is.
    let side = |name, words: Option<&String>, file: Option<&PathBuf>| match (words, file) {
        (Some(words), _) => {
            let Worded { options, own_time } = of_words(name, words, &args.pattern)?;
            safe_rate::check(&options, from, host, &ThisHost)?;
            Ok((specs::one(&options, &ThisHost)?, own_time))
        }
        (None, Some(file)) => Ok((ab::of_file(file)?, false)),
        (None, None) => Err(Failure::usage(format!("--{name} is missing"))),
    };
    let a = side("a", args.a.as_ref(), args.a_file.as_ref())?;
    let b = side("b", args.b.as_ref(), args.b_file.as_ref())?;
    let [a_spec, b_spec] = ab::sides([a.0, b.0], &args.common()?)?;
    let work = Work::Measurement {
        specs: vec1![a_spec, b_spec],
        rule: ab::rule(args.tolerance.0, args.pairs, args.budget, args.seed)?,
        schedule: Schedule::Paired(PairedPlan {
            gap_ns: args.gap.0,
            unfixed: Unfixed { own_time: a.1 && b.1, own_budget: args.budget.is_none() && args.pairs.is_none() },
        }),
        login: None,
    };
    let request = args.output.request(RunKind::Ab, args.hosts.of_run(&args.shared.options), work);
    let code = measure(&request, &args.output, Shape { lines: Lines::Sum, ..Shape::default() })?;
    if args.output.is_text() {
        outln!("Exit code {code}: {}", meaning(code));
    }
    Ok(code)
}

impl AbArgs {
    /// A spec with the addresses and the settings of both sides.
    fn common(&self) -> Result<Spec, Failure> {
        Ok(specs::one(&TestOptions { set: self.set.clone(), ..self.shared.options.clone() }, &ThisHost)?)
    }
}

/// What the exit code of a comparison means.
fn meaning(code: u8) -> &'static str {
    match code {
        0 => "B is not worse",
        failure::WORSE => "B is worse",
        failure::CANNOT_TELL => "cannot tell",
        failure::INTERRUPTED => "interrupted",
        _ => "a side is not to be used",
    }
}

/// A side that is given as a command line.
fn of_words(name: &str, words: &str, pattern: &str) -> Result<Worded, Failure> {
    let split = shlex::split(words).ok_or_else(|| {
        Failure::usage(format!(
            "--{name} '{words}': a quote is not closed, or the last character is a backslash: close the quote, or write \\\\ \
             for a backslash"
        ))
    })?;
    let mut words: Vec<&str> = split.iter().map(String::as_str).collect();
    if words.first().is_none_or(|word| word.starts_with('-')) {
        words.insert(0, pattern);
    }
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    spec_args::worded(&words).map_err(|wrong| match wrong {
        SpecError::Usage(what) => {
            Failure::usage(format!("--{name} \"{}\": {what}; see `thru {} --help`", words.join(" "), words[0]))
        }
        SpecError::RunWide(flag) => Failure::usage(format!(
            "--{name}: {flag} applies to the whole comparison: write it outside the quotes, or omit it"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_is_one_measurement_with_its_own_flags() {
        let side = |words: &str| {
            let spec = of_words("b", words, "stream").and_then(|side| Ok(specs::one(&side.options, &ThisHost)?));
            spec.map_err(|failure| failure.to_string())
        };
        assert_eq!(
            side("rr --block 64 --spin").map(|spec| (spec.block, spec.strategy)),
            Ok((64, model::Strategy::Spin))
        );
        for (words, said) in [
            ("--reverse --both", "`--reverse` and `--both` cannot be used together: omit one of them"),
            ("--rate '1M", "--b '--rate '1M': a quote is not closed"),
            ("curve", "--b \"curve\": 'curve' is several measurements"),
            ("--flows 0", "--b \"stream --flows 0\": --flows: '0' is not a whole number"),
            ("--no-path", "--b: --no-path applies to the whole comparison"),
            ("rr otherhost", "--b: HOST applies to the whole comparison"),
            ("rr -H otherhost", "--b: -H applies to the whole comparison"),
            ("-J", "--b: -J applies to the whole comparison"),
        ] {
            let is = side(words).unwrap_err();
            assert!(is.contains(said), "is:       {is}\nexpected: {said}");
        }
    }
}
