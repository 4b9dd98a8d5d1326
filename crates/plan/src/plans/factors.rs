//! The parts of a plan's cells: the fields that all share, the factors, and the cells of a list.

use super::error::PlanError;
use std::collections::{BTreeMap, BTreeSet};
use text::Said;

use analysis::plan::of_set;
use model::{Design, Factor, FactorKind, Inventory, Plan, PlanEnd, Setting};

use super::fields::CellFields;
use crate::mistake::Mistake;
use crate::source::{Located, Table};
use options::{OptionError, TestKind, unknown};

/// Fields by their names.
pub(super) type Fields = BTreeMap<String, Located<String>>;

/// The fields that all cells share.
pub(super) fn base(top: &Table<'_>) -> Result<Fields, Mistake> {
    let Some(base) = top.table("base")? else { return Ok(Fields::new()) };
    Ok(base.flat()?.into_iter().collect())
}

/// The factors, each with the position of its key in the file; those of the lab only if the plan is measured there.
pub(super) fn factors(top: &Table<'_>, in_lab: bool) -> Result<Vec<(Factor, Located<String>)>, Mistake> {
    let mut factors: Vec<(Factor, Located<String>)> = Vec::new();
    let lab = top.table("lab")?.filter(|_| in_lab);
    let of_lab = lab.as_ref().map_or(Ok(Vec::new()), |lab| lab.tables("factor"))?;
    for table in top.tables("factor")?.into_iter().chain(of_lab) {
        if let Some(old) = table.text("dear")? {
            return Err(table.wrong_at(&old, "`dear` is now called `expensive`"));
        }
        table.known(&["name", "field", "setting", "observed", "end", "levels", "expensive", "sets"])?;
        let kinds =
            [("field", FactorKind::Field), ("setting", FactorKind::Setting), ("observed", FactorKind::Observed)];
        let mut named = Vec::new();
        let sets = sets(&table)?;
        if !sets.is_empty() {
            let name = table.text("name")?.ok_or_else(|| table.wrong("a factor with `sets` needs a `name`"))?;
            named.push((FactorKind::Set, name));
        }
        for (key, kind) in kinds {
            named.extend(table.text(key)?.map(|at| (kind, at)));
        }
        let (kind, key) = match (named.pop(), named.pop()) {
            (Some(one), None) => one,
            (None, _) => {
                return Err(table.wrong("a factor needs one of `field`, `setting`, `observed` and `sets`"));
            }
            (Some((_, at)), Some(_)) => {
                return Err(table.wrong_at(&at, "a factor has only one of `field`, `setting`, `observed` and `sets`"));
            }
        };
        let levels = levels(&table)?;
        let (end, key) = ends(&table, kind, key)?;
        let default = match (kind, end) {
            (FactorKind::Observed | FactorKind::Field, PlanEnd::Near) => format!("near.{}", key.value),
            (FactorKind::Observed | FactorKind::Field, PlanEnd::Far) => format!("far.{}", key.value),
            _ => key.value.clone(),
        };
        let name = table.text("name")?.map_or(default, |at| at.value);
        if factors.iter().any(|(other, _)| other.name == name) || [Factor::FROM, Factor::TO].contains(&name.as_str()) {
            return Err(table.wrong_at(&key, format!("two factors have the name '{name}': change the `name` of one")));
        }
        check_kind(&table, kind, &key, &levels)?;
        let mut factor =
            Factor { name, kind, key: key.value.clone(), end, levels, sets, expensive: false, together: false };
        factor.expensive = table.switch("expensive")? || each(&factor).iter().any(of_interface);
        factors.push((factor, key));
    }
    Ok(factors)
}

/// The levels of a factor: a list, or one string with commas, as in a variable.
fn levels(table: &Table<'_>) -> Result<Vec<String>, Mistake> {
    let listed = table.texts("levels")?.into_iter().map(|at| at.value);
    if table.is_list("levels") {
        return Ok(listed.collect());
    }
    let parts = |text: String| text.split(',').map(|level| level.trim().to_owned()).collect::<Vec<_>>();
    Ok(listed.flat_map(parts).filter(|level| !level.is_empty()).collect())
}

/// The sets of a factor: for each level, its fields and settings.
fn sets(table: &Table<'_>) -> Result<BTreeMap<String, BTreeMap<String, String>>, Mistake> {
    let Some(sets) = table.table("sets")? else { return Ok(BTreeMap::new()) };
    let of = |name: &str| {
        let Some(set) = sets.table(name)? else { return Ok::<_, Mistake>(BTreeMap::new()) };
        Ok(set.flat()?.into_iter().map(|(key, at)| (key, at.value)).collect())
    };
    sets.names().map(|name| Ok((name.to_owned(), of(name)?))).collect()
}

/// The fields and settings of a factor, each as a separate factor with its levels.
fn each(factor: &Factor) -> Vec<Factor> {
    if factor.kind != FactorKind::Set {
        return vec![factor.clone()];
    }
    let of = |(key, value): (&String, &String)| Factor { levels: vec![value.clone()], ..of_set(factor, key) };
    factor.sets.values().flatten().map(of).collect()
}

/// Whether it is a setting whose change may take an interface down for a while.
fn of_interface(factor: &Factor) -> bool {
    factor.kind == FactorKind::Setting && ["dev.", "qdisc."].iter().any(|of| factor.key.starts_with(of))
}

/// The end of a factor: `end`, or the prefix of a field.
fn ends(table: &Table<'_>, kind: FactorKind, mut key: Located<String>) -> Result<(PlanEnd, Located<String>), Mistake> {
    let given = table.choice("end", &PlanEnd::NAMES)?;
    if kind == FactorKind::Field
        && let Some((end, rest)) = key.value.clone().split_once('.')
        && let Some((_, end)) = PlanEnd::NAMES.iter().find(|(name, _)| *name == end)
    {
        if given.is_some_and(|given| given != *end) {
            return Err(table.wrong_at(&key, "`end` contradicts the prefix of the field"));
        }
        rest.clone_into(&mut key.value);
        return Ok((*end, key));
    }
    let default = if kind == FactorKind::Observed { PlanEnd::Far } else { PlanEnd::Both };
    Ok((given.unwrap_or(default), key))
}

fn check_kind(table: &Table<'_>, kind: FactorKind, key: &Located<String>, levels: &[String]) -> Result<(), Mistake> {
    let mut sorted = levels.to_vec();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(table.wrong_at(key, format!("the level '{}' is given twice", twice[0])));
    }
    match kind {
        FactorKind::Observed if !levels.is_empty() => {
            Err(table.wrong_at(key, "an observed factor has no `levels`: they come from the hosts"))
        }
        FactorKind::Observed => observable(&key.value).map_err(|what| table.wrong_at(key, what)),
        FactorKind::Setting => {
            let value = levels.iter().map(String::as_str).chain(["0"]).next().unwrap_or_default();
            check_setting(&key.value, value).map_err(|what| table.wrong_at(key, what))
        }
        FactorKind::Field | FactorKind::Set | FactorKind::Sizes | FactorKind::Traffic => Ok(()),
    }
}

fn check_setting(key: &str, value: &str) -> Result<(), PlanError> {
    let _: Setting = format!("{key}={value}").parse()?;
    Ok(())
}

/// Checks that the inventory has a plain value of that name.
fn observable(key: &str) -> Result<(), PlanError> {
    let facts = serde_json::to_value(Inventory::default()).unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    if let Some(facts) = facts.as_object() {
        names.extend(facts.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.as_str()));
    }
    if names.contains(&key) || key.starts_with("sysctl.") {
        return Ok(());
    }
    Err(PlanError::Observed { key: key.to_owned(), names: names.into_iter().map(str::to_owned).collect() })
}

/// The cells of a list.
pub(super) fn list(
    top: &Table<'_>,
    design: Design,
    factors: &[(Factor, Located<String>)],
) -> Result<Vec<Fields>, Mistake> {
    let tables = top.tables("cell")?;
    match (design, tables.first()) {
        (Design::List, None) => return Err(top.wrong("design = \"list\" needs cells: write [[cell]]")),
        (Design::List, _) => {}
        (_, Some(cell)) => return Err(cell.wrong("[[cell]] needs design = \"list\"")),
        (_, None) => {
            let none =
                factors.iter().find(|(factor, _)| factor.levels.is_empty() && factor.kind != FactorKind::Observed);
            if let Some((factor, at)) = none {
                return Err(top.wrong_at(at, format!("'{}' has no `levels`", factor.name)));
            }
        }
    }
    let mut cells: Vec<Fields> = Vec::new();
    for table in &tables {
        let cell: Fields = table.flat()?.into_iter().collect();
        if let Some(first) = cells.first()
            && !cell.keys().eq(first.keys())
        {
            let keys = first.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(table.wrong(format!("every cell needs the same keys: {keys}")));
        }
        cells.push(cell);
    }
    Ok(cells)
}

/// Checks that every level of a factor with sets is the name of a set.
pub(super) fn check_sets(top: &Table<'_>, plan: &Plan) -> Result<(), Mistake> {
    for factor in plan.factors.iter().filter(|factor| factor.kind == FactorKind::Set) {
        let names: Vec<&str> = factor.sets.keys().map(String::as_str).collect();
        if let Some(level) = factor.levels.iter().find(|level| !factor.sets.contains_key(*level)) {
            return Err(top.wrong(format!("the factor '{}': {}", factor.name, unknown(level, &names, "its sets"))));
        }
    }
    Ok(())
}

/// Gives the factors of a list their levels. A field that is not a factor yet becomes one.
pub(super) fn levels_of_list(plan: &mut Plan) {
    let names: Vec<String> = plan.list.first().map(|cell| cell.keys().cloned().collect()).unwrap_or_default();
    for name in names {
        let levels = plan.list.iter().filter_map(|cell| cell.get(&name).cloned()).fold(Vec::new(), |mut all, level| {
            if !all.contains(&level) {
                all.push(level);
            }
            all
        });
        if let Some(factor) = plan.factors.iter_mut().find(|factor| factor.name == name) {
            factor.levels = levels;
            continue;
        }
        let (end, key) = match name.split_once('.') {
            Some(("near", key)) => (PlanEnd::Near, key.to_owned()),
            Some(("far", key)) => (PlanEnd::Far, key.to_owned()),
            _ => (PlanEnd::Both, name.clone()),
        };
        plan.factors.push(Factor { name, key, end, levels, ..Factor::default() });
    }
}

/// Checks every field and every level separately, so that an error points at it.
pub(super) fn check_fields(
    top: &Table<'_>,
    base: &Fields,
    factors: &[(Factor, Located<String>)],
    list: &[Fields],
) -> Result<CellFields, Mistake> {
    let factor = factors.iter().find(|(factor, _)| factor.kind == FactorKind::Field && factor.key == TestKind::KEY);
    let listed = list.iter().filter_map(|cell| cell.get(TestKind::KEY));
    let at = factor.map(|(_, at)| at).or(base.get(TestKind::KEY)).or(listed.clone().next()).cloned();
    let mut patterns: BTreeSet<String> = listed.map(|at| at.value.clone()).collect();
    patterns.extend(factor.map(|(factor, _)| factor.levels.clone()).unwrap_or_default());
    if patterns.is_empty() {
        patterns.extend(base.get(TestKind::KEY).map(|at| at.value.clone()));
    }
    if patterns.is_empty() {
        patterns.insert(TestKind::default().name().to_owned());
    }
    let cells = CellFields::new(&patterns, top.folder()).map_err(|what| match &at {
        Some(at) => top.wrong_at(at, what),
        None => top.wrong(what),
    })?;
    for (key, at) in base {
        cells.check(key, &at.value).map_err(|wrong| top.wrong_at(at, wrong.what()))?;
    }
    for (factor, at) in factors {
        for one in each(factor) {
            for level in &one.levels {
                let checked = match one.kind {
                    FactorKind::Field => cells.check(&prefixed(&one), level).map_err(Into::into),
                    FactorKind::Setting => check_setting(&one.key, level),
                    _ => Ok(()),
                };
                checked.map_err(|what| top.wrong_at(at, what))?;
            }
        }
    }
    for (name, at) in list.iter().flatten() {
        let factor = factors.iter().find(|(factor, _)| factor.name == *name).map(|(factor, _)| factor);
        let checked = match factor {
            Some(factor) if factor.kind != FactorKind::Field => continue,
            Some(factor) => cells.check(&prefixed(factor), &at.value).map_err(|wrong| wrong.say()),
            None => cells.check(name, &at.value).map_err(|wrong| wrong.what()),
        };
        checked.map_err(|what| top.wrong_at(at, what))?;
    }
    Ok(cells)
}

/// The key of a factor that is a field.
fn prefixed(factor: &Factor) -> String {
    match factor.end {
        PlanEnd::Near => format!("near.{}", factor.key),
        PlanEnd::Far => format!("far.{}", factor.key),
        PlanEnd::Both => factor.key.clone(),
    }
}

/// Where the fields of the cells are written.
pub(super) struct Origins<'a> {
    /// The fields that all cells share.
    pub base: &'a Fields,
    /// The factors.
    pub factors: &'a [(Factor, Located<String>)],
    /// The cells of a list.
    pub list: &'a [Fields],
}

impl<'a> Origins<'a> {
    /// The place of the field that `wrong` is about, in a cell with these fields; `None` if the cell does not have it.
    pub(super) fn place(&self, wrong: &OptionError, cell: &BTreeMap<String, String>) -> Option<&'a Located<String>> {
        let keys = [wrong.key().to_owned(), format!("near.{}", wrong.key()), format!("far.{}", wrong.key())];
        let (key, value) = keys.iter().find_map(|key| cell.get_key_value(key))?;
        let is_factor = |factor: &Factor| match factor.kind {
            FactorKind::Field => prefixed(factor) == *key,
            _ => factor.sets.values().any(|set| set.contains_key(key)),
        };
        let factor = self.factors.iter().find(|(factor, _)| is_factor(factor));
        let name = factor.map_or(key, |(factor, _)| &factor.name);
        let listed = self.list.iter().filter_map(|cell| cell.get(name)).find(|at| at.value == *value);
        listed.or(factor.map(|(_, at)| at)).or_else(|| self.base.get(key))
    }
}
