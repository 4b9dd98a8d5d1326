//! `thru ab`: is B worse than A? Both in turns, so that nothing but the difference between them tells.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use control::coordinator::{PairedPlan, Schedule};
use model::{Family, Nanos, Ratio, Spec, Stopping};

use crate::failure::Failure;
use crate::flags::{self, Output, Peer, clock_seed};
use crate::measure::{Job, measure};
use crate::plan;
use crate::spec_args::{self, Wrong};
use crate::values::{self, SetFlag, above_zero, whole};

/// Time for a whole comparison unless told otherwise.
const BUDGET: Nanos = Nanos(120_000_000_000);
/// Pairs before the first look, and at most.
const PAIRS: (u32, u32) = (16, 54);
/// Fewest pairs that an interval can be made of.
const LEAST_PAIRS: u32 = 12;

/// Flags of `thru ab`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru ab --a \"--cc cubic\" --b \"--cc bbr\" HOST            two congestion controls, by goodput
  thru ab --a \"rr --block 1\" --b \"rr --block 1 --spin\" HOST  transactions per second
  thru ab --pattern rr --a \"\" --b \"--busy-poll 50us\" HOST   flags of the pattern that serves both
  thru ab --a-file a.toml --b-file b.toml HOST             [base] and [settings] of each side, as in a plan
  thru ab --a-file a.json --b-file b.json HOST             the spec of an outcome, as in its document
  thru ab --tolerance 3% --pairs 24 --a ... --b ... HOST   exactly 24 pairs, a small loss does not matter

Exit codes: 0 B is not worse than A by more than the tolerance, 3 it is, 4 cannot tell; 1 where any other command would have
3 or 4 (host not reached, refused); the others as everywhere.")]
pub struct AbArgs {
    #[command(flatten)]
    peer: Peer,

    /// What A is: flags as one would type them after `thru stream` (rr, transfer); the command may stand in front.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, required_unless_present = "a_file")]
    a: Option<String>,

    /// What B is.
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, required_unless_present = "b_file")]
    b: Option<String>,

    /// What A is, as a file: TOML with [base] and [settings] as in a plan, or the JSON `spec` of an outcome of a run's document.
    #[arg(long, value_name = "FILE", conflicts_with = "a")]
    a_file: Option<PathBuf>,

    /// What B is, as a file.
    #[arg(long, value_name = "FILE", conflicts_with = "b")]
    b_file: Option<PathBuf>,

    /// The command that FLAGS without one belong to.
    #[arg(long, value_enum, default_value_t = Pattern::Stream)]
    pattern: Pattern,

    /// A difference that does not matter: B is worse when it is surely below A by more than this.
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = "How sure, how long")]
    tolerance: Ratio,

    /// Exactly this many pairs of trials, an even number from 12 on, and one look at the end [default: 16 to 54, with three
    /// looks].
    #[arg(long, value_name = "N", value_parser = whole(LEAST_PAIRS..=u32::MAX), help_heading = "How sure, how long")]
    pairs: Option<u32>,

    /// Time for the whole comparison [default: 120s, none with --pairs].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>, help_heading = "How sure, how long")]
    budget: Option<Nanos>,

    /// Pause between two trials.
    #[arg(long, value_name = "TIME", default_value = "50ms", help_heading = "How sure, how long")]
    gap: Nanos,

    /// Seed of the order of A and B [default: from the clock, recorded].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX), help_heading = "How sure, how long")]
    seed: Option<u64>,

    /// Set KEY on both hosts (near:KEY or far:KEY on one) for A and B alike, and put it back after the last trial. A side's own
    /// --set stands in its FLAGS, and is set before each of its trials.
    #[arg(long, value_name = "[near:|far:]KEY=VALUE", help_heading = "Settings of the hosts")]
    set: Vec<SetFlag>,

    #[command(flatten)]
    output: Output,
}

/// Commands that a comparison can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pattern {
    /// Goodput.
    Stream,
    /// Transactions per second.
    Rr,
    /// Goodput of a fixed amount.
    Transfer,
}

/// Runs it.
pub fn run(args: &AbArgs) -> Result<u8, Failure> {
    compare(args).map_err(Failure::of_comparison)
}

fn compare(args: &AbArgs) -> Result<u8, Failure> {
    let side = |name, words: Option<&String>, file: Option<&PathBuf>| match (words, file) {
        (Some(words), _) => of_words(name, words, args.pattern),
        (None, Some(file)) => of_file(file),
        (None, None) => Err(Failure::usage(format!("--{name} is missing"))),
    };
    let mut specs =
        [side("a", args.a.as_ref(), args.a_file.as_ref())?, side("b", args.b.as_ref(), args.b_file.as_ref())?];
    for spec in &mut specs {
        spec.family = if args.peer.family() == Family::Any { spec.family } else { args.peer.family() };
        spec.near.data_addr = args.peer.data_from.or(spec.near.data_addr);
        spec.far.data_addr = args.peer.data.or(spec.far.data_addr);
        let common = flags::settings(&args.set);
        spec.settings.near.splice(0..0, common.near);
        spec.settings.far.splice(0..0, common.far);
    }
    if specs.iter().any(|spec| spec.delayed_reads) {
        return Err(Failure::usage(
            "--delayed-reads has no place in a comparison: no application's receiver sleeps between its reads; leave it out, or use `thru stream --delayed-reads`",
        ));
    }
    comparable(&specs[0], &specs[1])?;
    measure(&Job {
        kind: "ab",
        specs: specs.into(),
        rule: args.rule()?,
        schedule: Schedule::Paired(PairedPlan { gap_ns: args.gap.0 }),
        peer: &args.peer,
        output: &args.output,
        np: None,
        login: None,
    })
}

impl AbArgs {
    fn rule(&self) -> Result<Stopping, Failure> {
        if !(0.0..1.0).contains(&self.tolerance.0) {
            return Err(Failure::usage("--tolerance is a part of A's value: use 0% to 99%"));
        }
        if let Some(pairs) = self.pairs.filter(|pairs| pairs % 2 == 1) {
            return Err(Failure::usage(format!(
                "--pairs {pairs}: pairs come two to a block (ABBA) and an interval needs six blocks; use an even number from {LEAST_PAIRS} on"
            )));
        }
        let (min_trials, max_trials) = self.pairs.map_or(PAIRS, |pairs| (pairs, pairs));
        let budget = if self.pairs.is_some() { self.budget } else { self.budget.or(Some(BUDGET)) };
        Ok(Stopping {
            target: self.tolerance.0,
            min_trials,
            max_trials,
            budget_ns: budget.map(|time| time.0),
            seed: self.seed.unwrap_or_else(clock_seed),
            ..Stopping::default()
        })
    }
}

/// The spec that words describe, as the command line of a measuring command would.
fn of_words(name: &str, words: &str, pattern: Pattern) -> Result<Spec, Failure> {
    let split = values::words(words);
    let mut words: Vec<&str> = split.iter().map(String::as_str).collect();
    let default = pattern.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    if words.first().is_none_or(|word| word.starts_with('-')) {
        words.insert(0, &default);
    }
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    spec_args::spec(&words).map_err(|wrong| match wrong {
        Wrong::Value(what) | Wrong::Words(what) => {
            Failure::usage(format!("--{name} \"{}\": {what}; see `thru {} --help`", words.join(" "), words[0]))
        }
        Wrong::OfTheWhole(flag) => Failure::usage(format!(
            "--{name}: {flag} belongs to the comparison as a whole: write it outside of the quotes, or leave it out"
        )),
        Wrong::Together(failure) => failure,
    })
}

fn of_file(path: &Path) -> Result<Spec, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the spec {}: {error}", path.display())))?;
    let name = path.display().to_string();
    if !text.trim_start().starts_with('{') {
        return plan::read_spec(&name, text);
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{name} is no spec: {error}; `thru show --json | jq .outcomes[0].spec` prints one"))
    })
}

/// Refuses two specs whose figures cannot be set against each other.
fn comparable(a: &Spec, b: &Spec) -> Result<(), Failure> {
    let unit = |spec| analysis::outcome::Headline::of(spec).unit();
    if unit(a) != unit(b) {
        return Err(Failure::usage(format!(
            "A is measured in {} and B in {}: compare patterns of one kind",
            unit(a),
            unit(b)
        )));
    }
    let of = |spec: &Spec| {
        engine::transport::transport(spec.transport.as_str()).map(engine::transport::Transport::capabilities)
    };
    let (one, other) = (of(a)?, of(b)?);
    if (one.single_ended, one.one_machine) != (other.single_ended, other.one_machine) {
        return Err(Failure::usage(format!(
            "{} and {} do not run between the same ends: compare transports that both need a HOST, or both none",
            a.transport, b.transport
        )));
    }
    Ok(())
}
