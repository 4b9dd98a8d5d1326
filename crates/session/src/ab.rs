//! The two sides of `thru ab`: where they come from, whether they can be compared, and when the comparison ends.

use std::path::Path;

use analysis::outcome::Headline;
use command::Failure;
use command::setup::clock_seed;
use model::{Family, Nanos, Spec, Stopping};
use options::{OptionError, TestOptions};
use plan::specs;
use serde_json::{Map, Value};
use text::say;

use crate::this_host::ThisHost;

/// Default time limit of a comparison.
const BUDGET: Nanos = Nanos(120_000_000_000);
/// Pairs before the first interim analysis, and at most.
const PAIRS: (u32, u32) = (16, 54);
/// Fewest pairs that give an interval.
pub const LEAST_PAIRS: u32 = 12;

/// The sides A and B with the addresses and the settings of `common`, which apply to both.
///
/// # Errors
/// Their results cannot be compared.
pub fn sides(mut specs: [Spec; 2], common: &Spec) -> Result<[Spec; 2], Failure> {
    for spec in &mut specs {
        spec.family = if common.family == Family::Any { spec.family } else { common.family };
        spec.near.data_addr = common.near.data_addr.or(spec.near.data_addr);
        if common.far.data_addr.is_some() || common.far.data_at.is_some() {
            (spec.far.data_addr, spec.far.data_at) = (common.far.data_addr, common.far.data_at);
        }
        spec.settings.near.splice(0..0, common.settings.near.iter().cloned());
        spec.settings.far.splice(0..0, common.settings.far.iter().cloned());
    }
    if specs.iter().any(|spec| spec.delayed_reads) {
        return Err(Failure::usage(say!(
            "`--delayed-reads` cannot be compared: applications do not read this way; omit it, or use `thru stream --delayed-reads`"
        )));
    }
    comparable(&specs[0], &specs[1])?;
    Ok(specs)
}

/// The stop rule: a tolerance as a part of A's value, and exactly `pairs` pairs of trials if they are given.
///
/// # Errors
/// The tolerance is not below 100 %, or the pairs do not fill rounds.
pub fn rule(tolerance: f64, pairs: Option<u32>, budget: Option<Nanos>, seed: Option<u64>) -> Result<Stopping, Failure> {
    check_tolerance(tolerance)?;
    if let Some(pairs) = pairs.filter(|pairs| pairs % 2 == 1) {
        return Err(Failure::usage(say!(
            "`--pairs {pairs}`: pairs come two to a round (ABBA) and an interval needs six rounds; use an even number of at least {LEAST_PAIRS}"
        )));
    }
    let (min_trials, max_trials) = pairs.map_or(PAIRS, |pairs| (pairs, pairs));
    let budget = if pairs.is_some() { budget } else { budget.or(Some(BUDGET)) };
    Ok(Stopping {
        target: tolerance,
        min_trials,
        max_trials,
        budget_ns: budget.map(|time| time.0),
        seed: seed.unwrap_or_else(clock_seed),
        ..Stopping::default()
    })
}

/// Refuses a tolerance of 100 % or more.
///
/// # Errors
/// It is one.
pub fn check_tolerance(tolerance: f64) -> Result<(), Failure> {
    if (0.0..1.0).contains(&tolerance) {
        return Ok(());
    }
    Err(Failure::usage(say!("`--tolerance` is a percentage of A's value: use 0% to 99%")))
}

/// The spec of a side in a file: TOML as in a plan, or JSON.
///
/// # Errors
/// The file cannot be read, or is not one spec.
pub fn of_file(path: &Path) -> Result<Spec, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read the spec {}: {error}", path.display())))?;
    let name = path.display().to_string();
    if !text.trim_start().starts_with('{') {
        return Ok(plan::read_spec(&name, text, &ThisHost)?);
    }
    of_json(&name, &text)
}

/// The spec in a JSON file: a whole spec, or an object with the keys of a options.
fn of_json(name: &str, text: &str) -> Result<Spec, Failure> {
    let not_a_spec = |error: serde_json::Error| {
        Failure::usage(format!("{name} is not a spec: {error}; `thru show --json | jq .outcomes[0].spec` prints one"))
    };
    let object: Map<String, Value> = serde_json::from_str(text).map_err(not_a_spec)?;
    // Only a whole spec has a stop rule.
    if object.is_empty() || object.contains_key("stop") {
        return serde_json::from_str(text).map_err(not_a_spec);
    }
    let wrong = |error: OptionError| Failure::usage(format!("{name}: {error}"));
    let specs = TestOptions::from_json(&object).and_then(|options| specs::of(&options, &ThisHost)).map_err(wrong)?;
    match <[Spec; 1]>::try_from(specs) {
        Ok([spec]) if !spec.is_point() => Ok(spec),
        _ => {
            Err(Failure::usage(format!("{name}: a curve is several measurements: measure one size with rr or stream")))
        }
    }
}

/// Refuses two specs whose results cannot be compared.
fn comparable(a: &Spec, b: &Spec) -> Result<(), Failure> {
    let unit = |spec| Headline::of(spec).unit();
    if unit(a) != unit(b) {
        return Err(Failure::usage(format!(
            "A is in {} and B in {}: compare two streams, or two rr",
            unit(a),
            unit(b)
        )));
    }
    let ends = |spec: &Spec| {
        engine::transport::transport(spec.transport.as_str())
            .map(|transport| (transport.capabilities().single_ended, transport.facts().one_host))
    };
    if ends(a)? != ends(b)? {
        return Err(Failure::usage(format!(
            "{} and {} do not run between the same ends: compare two transports that need a HOST, or two that do not",
            a.transport, b.transport
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn a_json_file_is_a_whole_spec_or_has_the_names_of_flags() {
        let whole = serde_json::to_string(&Spec { flows: 3, ..Spec::new("tcp", Pattern::Rr) }).unwrap();
        let spec = of_json("a.json", &whole).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((spec.pattern, spec.flows), (Pattern::Rr, 3));
        let keys = r#"{"pattern": "rr", "flows": 3, "far": {"cc": "bbr"}}"#;
        let spec = of_json("a.json", keys).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((spec.pattern, spec.flows, spec.far.cc.as_deref()), (Pattern::Rr, 3, Some("bbr")));
        let wrong = |text: &str| of_json("a.json", text).unwrap_err().to_string();
        assert_eq!(wrong(r#"{"flows": 0}"#), "a.json: flows: '0' is not a whole number from 1 to 16384");
        assert!(wrong(r#"{"pattern": "curve", "block": "8"}"#).contains("a curve is several measurements"));
        assert!(wrong("{}").contains("outcomes[0].spec"));
    }
}
