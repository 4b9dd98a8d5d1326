//! The cells of a plan.

use std::collections::{BTreeMap, BTreeSet};

use model::{Design, Factor, FactorKind, HostSettings, LINK_SETTING, Plan, PlanEnd, PlanTraffic, Setting, TrafficKind};
use text::Said;
use thiserror::Error;

use super::traffic::{self, TrafficError};

/// Largest number of cells of a plan: their outcomes take about 14 kB of memory each.
pub const MAX_CELLS: usize = 100_000;

/// A mistake in the levels or the hosts of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Error, Said)]
#[non_exhaustive]
pub enum ExpandError {
    /// Too many cells.
    #[error("too many cells: {total}, but a plan can have at most {MAX_CELLS}")]
    TooManyCells {
        /// Their number, as far as it was counted.
        total: usize,
    },
    /// Too many combinations of levels.
    #[error(
        "too many cells: the factors have {total} combinations of levels, but a plan can have at most {MAX_CELLS} cells"
    )]
    TooManyCombinations {
        /// Their number.
        total: usize,
    },
    /// A design 'zip' whose factors have different numbers of levels.
    #[error("design 'zip' needs the same number of levels for each factor: {}", numbers(factors))]
    Zip {
        /// Each factor with its number of levels.
        factors: Vec<(String, usize)>,
    },
    /// Two equal combinations.
    #[error("cells {} and {} have the same levels", cells[0], cells[1])]
    SameLevels {
        /// Their numbers, from 1 on.
        cells: [usize; 2],
    },
    /// A level that names a host of traffic.
    #[error("{} uses the hosts of `--from` and `--to`: omit the fields `from` and `host`", kind.name())]
    HostOfTraffic {
        /// The traffic.
        kind: TrafficKind,
    },
    /// Hosts that send at the same time.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The near and the far hosts are one and the same host.
    #[error("`--from` and `--to` contain no pair of different hosts")]
    NoPair,
    /// A pair of hosts that the plan does not name.
    #[error("pair {near} and {far}: the first host must be in `--from`, the second in `--to`")]
    UnknownPair {
        /// Its near host.
        near: String,
        /// Its far host.
        far: String,
    },
    /// A pair that is there already, or a host with itself.
    #[error("the pair {near} and {far} is given twice or is a single host")]
    SamePair {
        /// Its near host.
        near: String,
        /// Its far host.
        far: String,
    },
    /// A level that names a host where the plan varies hosts.
    #[error("`{key}` at the top already has several hosts: give one there, or omit the field `{field}`")]
    SeveralHosts {
        /// The key of the plan's hosts.
        key: &'static str,
        /// The field that names a host.
        field: &'static str,
    },
    /// A cell between a host and itself.
    #[error("{host} is both the near and the far host of a cell")]
    SameHost {
        /// The host.
        host: String,
    },
}

/// How many levels each factor has.
fn numbers(factors: &[(String, usize)]) -> String {
    factors.iter().map(|(name, levels)| format!("{name} has {levels}")).collect::<Vec<_>>().join(", ")
}

/// One cell, before its spec is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCell {
    /// The level of each factor that is not observed, and of `from` and `to` where those vary.
    pub levels: BTreeMap<String, String>,
    /// The fields of the spec, by the names of flags; a name with `near.` or `far.` takes precedence over the bare name.
    pub fields: BTreeMap<String, String>,
    /// The host settings of both ends.
    pub settings: HostSettings,
    /// The near host; `None` for this machine.
    pub from: Option<String>,
    /// The far host; `None` for transports within one host.
    pub to: Option<String>,
    /// Number of its combination of the levels that are expensive to change.
    pub plot: usize,
    /// Number of its combination of all levels except the hosts and the groups that are measured at the same time.
    pub combination: usize,
    /// It is measured at the same time as all others of its combination.
    pub together: bool,
}

/// The cells of `plan` in the order of the file: the first factor varies slowest, hosts fastest.
///
/// # Errors
/// [`ExpandError`]: levels that do not match, two equal cells, too many cells, or no pair of hosts.
pub fn expand(plan: &Plan) -> Result<Vec<PlannedCell>, ExpandError> {
    let pairs = if plan.traffic.is_some() { Vec::new() } else { pairs(plan)? };
    let combinations = combinations(plan)?;
    let total = combinations.len().saturating_mul(pairs.len());
    if total > MAX_CELLS {
        return Err(ExpandError::TooManyCells { total });
    }
    let mut plots: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    // Levels of all factors but the groups, and the number of the set of hosts.
    let mut apart: BTreeMap<(Levels, usize), usize> = BTreeMap::new();
    let mut cells = Vec::new();
    for levels in &combinations {
        let mut apart_of = levels.clone();
        apart_of.retain(|name, _| !plan.factors.iter().any(|factor| factor.together && factor.name == *name));
        let expensive: Vec<&str> = plan
            .factors
            .iter()
            .filter(|factor| factor.expensive)
            .filter_map(|factor| levels.get(&factor.name).map(String::as_str))
            .collect();
        let next = plots.len();
        let plot = *plots.entry(expensive).or_insert(next);
        let (mut fields, settings) = apply(plan, levels);
        let own = [fields.remove(Factor::FROM_FIELD), fields.remove(Factor::TO_FIELD)];
        let sets = match plan.traffic {
            Some(traffic) => traffic_pairs(plan, traffic, &own, levels)?,
            None => vec![own_pairs(plan, own, &pairs)?],
        };
        for (set, pairs) in sets.iter().enumerate() {
            let next = apart.len();
            let combination = *apart.entry((apart_of.clone(), set)).or_insert(next);
            for (from, to) in pairs {
                let mut levels = levels.clone();
                for (name, host, list) in [(Factor::FROM, from, &plan.from), (Factor::TO, to, &plan.to)] {
                    if let Some(host) = host.as_ref().filter(|_| list.len() > 1) {
                        levels.insert(name.to_owned(), host.clone());
                    }
                }
                cells.push(PlannedCell {
                    levels,
                    fields: fields.clone(),
                    settings: settings.clone(),
                    from: from.clone(),
                    to: to.clone(),
                    plot,
                    combination,
                    together: plan.groups().is_some() || plan.traffic.is_some(),
                });
            }
        }
        if cells.len() > MAX_CELLS {
            return Err(ExpandError::TooManyCells { total: cells.len() });
        }
    }
    Ok(cells)
}

/// The pairs of each set of hosts that send at the same time, at these levels.
fn traffic_pairs(
    plan: &Plan,
    traffic: PlanTraffic,
    own: &[Option<String>; 2],
    levels: &Levels,
) -> Result<Vec<Vec<Ends>>, ExpandError> {
    if own.iter().any(Option::is_some) {
        return Err(ExpandError::HostOfTraffic { kind: traffic.kind });
    }
    let level = traffic.kind.factor().and_then(|name| levels.get(name)).map(String::as_str);
    let sets = traffic::sets(plan, traffic, level)?;
    let named = |[near, far]: [String; 2]| (Some(near), Some(far));
    Ok(sets.into_iter().map(|pairs| pairs.into_iter().map(named).collect()).collect())
}

type Levels = BTreeMap<String, String>;

fn combinations(plan: &Plan) -> Result<Vec<Levels>, ExpandError> {
    let factors: Vec<&Factor> = plan.factors.iter().filter(|factor| factor.kind.makes_cells()).collect();
    let made = match plan.design {
        Design::List => plan.list.clone(),
        Design::Zip => {
            let lengths: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
            if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
                let names = factors.iter().map(|factor| factor.name.clone());
                return Err(ExpandError::Zip { factors: names.zip(lengths).collect() });
            }
            let at = |index: usize| factors.iter().map(|f| (f.name.clone(), f.levels[index].clone())).collect();
            (0..lengths.first().copied().unwrap_or(1)).map(at).collect()
        }
        Design::Factorial => {
            let total = factors.iter().fold(1usize, |total, factor| total.saturating_mul(factor.levels.len().max(1)));
            if total > MAX_CELLS {
                return Err(ExpandError::TooManyCombinations { total });
            }
            factors.iter().fold(vec![Levels::new()], |combinations, factor| {
                let with = |levels: &Levels| {
                    let levels = levels.clone();
                    factor.levels.iter().map(move |level| {
                        let mut levels = levels.clone();
                        levels.insert(factor.name.clone(), level.clone());
                        levels
                    })
                };
                combinations.iter().flat_map(with).collect()
            })
        }
    };
    let mut seen: BTreeMap<&Levels, usize> = BTreeMap::new();
    for (at, levels) in made.iter().enumerate() {
        if let Some(before) = seen.insert(levels, at) {
            return Err(ExpandError::SameLevels { cells: [before + 1, at + 1] });
        }
    }
    Ok(made)
}

/// The near and the far host by name, where the plan names any.
type Ends = (Option<String>, Option<String>);

/// Every ordered pair of hosts; a host is not paired with itself.
fn pairs(plan: &Plan) -> Result<Vec<Ends>, ExpandError> {
    let or_none = |list: &[String]| -> Vec<Option<String>> {
        if list.is_empty() { vec![None] } else { list.iter().cloned().map(Some).collect() }
    };
    if !plan.pairs.is_empty() {
        return listed(plan);
    }
    let mut pairs = Vec::new();
    for from in or_none(&plan.from) {
        for to in or_none(&plan.to) {
            if from.is_none() || from != to {
                pairs.push((from.clone(), to));
            }
        }
    }
    if pairs.is_empty() {
        return Err(ExpandError::NoPair);
    }
    Ok(pairs)
}

/// The pairs that the plan lists.
fn listed(plan: &Plan) -> Result<Vec<Ends>, ExpandError> {
    let (from, to): (BTreeSet<&String>, BTreeSet<&String>) = (plan.from.iter().collect(), plan.to.iter().collect());
    let mut seen = BTreeSet::new();
    for [near, far] in &plan.pairs {
        if !from.contains(near) || !to.contains(far) {
            return Err(ExpandError::UnknownPair { near: near.clone(), far: far.clone() });
        }
        if near == far || !seen.insert((near, far)) {
            return Err(ExpandError::SamePair { near: near.clone(), far: far.clone() });
        }
    }
    Ok(plan.pairs.iter().map(|[near, far]| (Some(near.clone()), Some(far.clone()))).collect())
}

/// The pairs of hosts of a combination whose levels name a near or a far host, else all of the plan's.
fn own_pairs(plan: &Plan, [from, to]: [Option<String>; 2], pairs: &[Ends]) -> Result<Vec<Ends>, ExpandError> {
    for (own, key, field, list) in
        [(&from, Factor::FROM, Factor::FROM_FIELD, &plan.from), (&to, Factor::TO, Factor::TO_FIELD, &plan.to)]
    {
        if own.is_some() && list.len() > 1 {
            return Err(ExpandError::SeveralHosts { key, field });
        }
    }
    let mut own: Vec<Ends> = Vec::new();
    for (near, far) in pairs {
        let pair = (from.clone().or(near.clone()), to.clone().or(far.clone()));
        if let (Some(near), Some(far)) = &pair
            && near == far
        {
            return Err(ExpandError::SameHost { host: near.clone() });
        }
        own.push(pair);
    }
    Ok(own)
}

/// The fields and settings of a combination of levels.
fn apply(plan: &Plan, levels: &Levels) -> (Levels, HostSettings) {
    let mut fields = plan.base.clone();
    let mut settings = plan.settings.clone();
    for factor in &plan.factors {
        let Some(level) = levels.get(&factor.name) else { continue };
        match factor.kind {
            FactorKind::Field => set_field(&mut fields, factor, level),
            FactorKind::Setting => set_setting(&mut settings, factor, level),
            FactorKind::Set => {
                for (key, value) in factor.sets.get(level).into_iter().flatten() {
                    let one = of_set(factor, key);
                    match one.kind {
                        FactorKind::Setting => set_setting(&mut settings, &one, value),
                        _ => set_field(&mut fields, &one, value),
                    }
                }
            }
            FactorKind::Observed | FactorKind::Sizes | FactorKind::Traffic => {}
        }
    }
    (fields, settings)
}

/// A key of a set as a factor of its own. A setting's key contains a dot, a field's does not, apart from `near.` or `far.`, which
/// takes precedence over the set's end.
#[must_use]
pub fn of_set(factor: &Factor, key: &str) -> Factor {
    let (end, key) = match key.split_once('.') {
        Some(("near", key)) => (PlanEnd::Near, key),
        Some(("far", key)) => (PlanEnd::Far, key),
        _ => (factor.end, key),
    };
    let kind = if key.contains('.') { FactorKind::Setting } else { FactorKind::Field };
    Factor { name: factor.name.clone(), kind, key: key.to_owned(), end, ..Factor::default() }
}

fn set_setting(settings: &mut HostSettings, factor: &Factor, value: &str) {
    let HostSettings { near, far, links } = settings;
    let [to_near, to_far] = if factor.key.starts_with(LINK_SETTING) { [false, false] } else { factor.end.ends() };
    let lists = [(near, to_near), (far, to_far), (links, factor.key.starts_with(LINK_SETTING))];
    for (list, _) in lists.into_iter().filter(|(_, applies)| *applies) {
        list.retain(|setting| setting.key != factor.key);
        list.push(Setting { key: factor.key.clone(), value: value.to_owned() });
    }
}

fn set_field(fields: &mut Levels, factor: &Factor, level: &str) {
    let key = &factor.key;
    match factor.end.ends() {
        [true, true] => {
            // The bare name applies to both ends and replaces the base's values of single ends.
            for end in ["near", "far"] {
                fields.remove(&format!("{end}.{key}"));
            }
            fields.insert(key.clone(), level.to_owned());
        }
        [near, _] => {
            fields.insert(format!("{}.{key}", if near { "near" } else { "far" }), level.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn factor(name: &str, levels: &[&str]) -> Factor {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        Factor { name: name.into(), key: name.into(), levels, ..Factor::default() }
    }

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_first_factor_varies_slowest() {
        let plan = Plan { factors: vec![factor("a", &["1", "2"]), factor("b", &["x", "y", "z"])], ..Plan::default() };
        let cells = expand(&plan).unwrap();
        let said: Vec<String> = cells.iter().map(|cell| format!("{}{}", cell.levels["a"], cell.levels["b"])).collect();
        assert_eq!(said, ["1x", "1y", "1z", "2x", "2y", "2z"]);
        assert!(cells.iter().all(|cell| cell.plot == 0 && cell.from.is_none()));
        assert_eq!(expand(&Plan::default()).unwrap().len(), 1, "no factor is one cell");
    }

    #[test]
    fn a_zip_needs_the_same_number_of_levels() {
        let mut plan = Plan {
            factors: vec![factor("a", &["1", "2"]), factor("b", &["x", "y"])],
            design: Design::Zip,
            ..Plan::default()
        };
        assert_eq!(expand(&plan).unwrap().len(), 2);
        plan.factors[1].levels.pop();
        assert_eq!(
            expand(&plan).unwrap_err().to_string(),
            "design 'zip' needs the same number of levels for each factor: a has 2, b has 1"
        );
    }

    #[test]
    fn a_list_is_used_as_written_and_has_no_duplicates() {
        let cell = |level: &str| Levels::from([("a".to_owned(), level.to_owned())]);
        let mut plan = Plan {
            factors: vec![factor("a", &["1", "2"])],
            design: Design::List,
            list: vec![cell("2"), cell("1")],
            ..Plan::default()
        };
        assert_eq!(expand(&plan).unwrap()[0].fields["a"], "2");
        plan.list.push(cell("2"));
        assert_eq!(expand(&plan).unwrap_err().to_string(), "cells 1 and 3 have the same levels");
    }

    #[test]
    fn a_factor_of_one_end_keeps_the_base_of_the_other_and_one_of_both_replaces_it() {
        let near = Factor { end: PlanEnd::Near, ..factor("sndbuf", &["1"]) };
        let base = Levels::from([("far.sndbuf".to_owned(), "7".to_owned())]);
        let plan = Plan { base, factors: vec![near], ..Plan::default() };
        let fields = &expand(&plan).unwrap()[0].fields;
        assert_eq!((fields["near.sndbuf"].as_str(), fields["far.sndbuf"].as_str()), ("1", "7"));
        let plan = Plan { factors: vec![factor("sndbuf", &["1"])], ..plan };
        let fields = &expand(&plan).unwrap()[0].fields;
        assert_eq!(fields.clone(), Levels::from([("sndbuf".to_owned(), "1".to_owned())]));
    }

    #[test]
    fn a_varied_setting_replaces_the_fixed_one_of_its_end() {
        let setting = |value: &str| Setting { key: "dev.eth0.mtu".into(), value: value.into() };
        let mtu = Factor {
            kind: FactorKind::Setting,
            key: "dev.eth0.mtu".into(),
            end: PlanEnd::Far,
            expensive: true,
            ..factor("mtu", &["1500", "9000"])
        };
        let settings =
            HostSettings { near: vec![setting("1400")], far: vec![setting("1400")], ..HostSettings::default() };
        let plan = Plan { factors: vec![mtu, factor("block", &["1", "2"])], settings, ..Plan::default() };
        let cells = expand(&plan).unwrap();
        assert_eq!(
            (&cells[3].settings.near[..], &cells[3].settings.far[..]),
            (&[setting("1400")][..], &[setting("9000")][..])
        );
        assert_eq!(cells.iter().map(|cell| cell.plot).collect::<Vec<_>>(), [0, 0, 1, 1]);
    }

    #[test]
    fn a_set_applies_all_of_its_fields_and_settings() {
        let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let small = of(&[("sndbuf", "1"), ("far.rcvbuf", "2"), ("near.sysctl.net.ipv4.tcp_sack", "0")]);
        let sets = BTreeMap::from([("small".to_owned(), small), ("none".to_owned(), Levels::new())]);
        let factor = Factor { kind: FactorKind::Set, sets, ..factor("size", &["small", "none"]) };
        let plan = Plan { base: of(&[("near.sndbuf", "9")]), factors: vec![factor], ..Plan::default() };
        let cells = expand(&plan).unwrap();
        assert_eq!(cells[0].fields, of(&[("sndbuf", "1"), ("far.rcvbuf", "2")]));
        assert_eq!(cells[0].settings.near[0].to_string(), "sysctl.net.ipv4.tcp_sack=0");
        assert!(cells[0].settings.far.is_empty());
        assert_eq!((&cells[1].fields, cells[1].settings.is_empty()), (&plan.base, true));
    }

    #[test]
    fn a_level_may_name_the_hosts_of_its_cells() {
        let of = |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let other = of(&[("host", "c:5201"), ("speak", "iperf3")]);
        let sets = BTreeMap::from([("ours".to_owned(), Levels::new()), ("theirs".to_owned(), other)]);
        let factor = Factor { kind: FactorKind::Set, sets, ..factor("system", &["ours", "theirs"]) };
        let plan = Plan { to: hosts(&["b"]), factors: vec![factor], ..Plan::default() };
        let cells = expand(&plan).unwrap();
        assert_eq!(cells[0].to.as_deref(), Some("b"));
        assert_eq!((cells[1].to.as_deref(), cells[1].fields.len()), (Some("c:5201"), 1));
        let twice = Plan { to: hosts(&["b", "d"]), ..plan.clone() };
        assert!(expand(&twice).unwrap_err().to_string().contains("already has several hosts"));
        let itself = Plan { from: hosts(&["c:5201"]), ..plan };
        assert!(expand(&itself).unwrap_err().to_string().contains("both the near and the far host"));
    }

    #[test]
    fn a_property_of_a_link_is_of_neither_end() {
        let rate = Factor { kind: FactorKind::Setting, key: "link.rate".into(), ..factor("rate", &["1Mbit", "2Mbit"]) };
        let cells = expand(&Plan { factors: vec![rate], ..Plan::default() }).unwrap();
        let HostSettings { near, far, links } = &cells[1].settings;
        assert_eq!((near.len(), far.len(), links[0].to_string().as_str()), (0, 0, "link.rate=2Mbit"));
    }

    #[test]
    fn a_host_is_not_paired_with_itself() {
        let plan = Plan { from: hosts(&["a"]), to: hosts(&["a"]), ..Plan::default() };
        assert!(expand(&plan).is_err());
        let plan = Plan { from: hosts(&["a", "b", "c"]), to: hosts(&["a", "b", "c"]), ..Plan::default() };
        let cells = expand(&plan).unwrap();
        assert_eq!(cells.len(), 6);
        assert!(cells.iter().all(|cell| cell.levels["from"] != cell.levels["to"]));
        let star = Plan { to: hosts(&["a", "b"]), ..Plan::default() };
        let cells = expand(&star).unwrap();
        assert!(cells.iter().all(|cell| cell.from.is_none() && !cell.levels.contains_key("from")));
    }

    proptest! {
        #[test]
        fn a_factorial_has_every_combination_once(counts in prop::collection::vec(1usize..5, 0..5), hosts in 0usize..5) {
            let factors: Vec<Factor> = counts.iter().enumerate().map(|(at, count)| {
                let levels: Vec<String> = (0..*count).map(|level| level.to_string()).collect();
                Factor { name: format!("f{at}"), key: format!("f{at}"), levels, expensive: at % 2 == 1, ..Factor::default() }
            }).collect();
            let names: Vec<String> = (0..hosts).map(|host| format!("h{host}")).collect();
            let plan = Plan { factors, from: names.clone(), to: names, ..Plan::default() };
            let pairs = if hosts == 0 { 1 } else { hosts * (hosts - 1) };
            match expand(&plan) {
                Ok(cells) => {
                    prop_assert_eq!(cells.len(), counts.iter().product::<usize>() * pairs);
                    let distinct: std::collections::BTreeSet<_> = cells.iter().map(|cell| &cell.levels).collect();
                    prop_assert_eq!(distinct.len(), cells.len());
                    let plots: std::collections::BTreeSet<_> = cells.iter().map(|cell| cell.plot).collect();
                    let expensive = counts.iter().skip(1).step_by(2).product::<usize>();
                    prop_assert_eq!(plots.len(), expensive);
                }
                Err(_) => prop_assert_eq!(pairs, 0),
            }
        }
    }
}
