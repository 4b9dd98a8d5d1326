//! Reads a plan from its file.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    BitRate, ByteSize, Design, Every, Factor, FactorKind, HostSettings, Inventory, Nanos, Order, Otherwise, Plan,
    PlanEnd, Ratio, Require, Setting, Spec, Stopping,
};
use sha2::{Digest, Sha256};

use super::fields::{Flags, PATTERN};
use super::source::{At, Source, Table, unknown};
use crate::failure::Failure;
use crate::flags::clock_seed;
use crate::words::PATTERNS;

/// A plan that can be measured.
#[derive(Debug)]
pub struct Read {
    /// The plan.
    pub plan: Plan,
    /// Its short name.
    pub name: Option<String>,
    /// When it is enough.
    pub rule: Stopping,
    /// Its cells.
    pub cells: Vec<analysis::plan::PlannedCell>,
    /// Their specs, settings included.
    pub specs: Vec<Spec>,
}

/// Trials of each cell unless the plan says otherwise, and with times.
const REPEAT: (u32, u32) = (6, 64);
/// How long a precondition is waited for unless the plan says otherwise.
const WAIT: Nanos = Nanos(30_000_000_000);

/// Keys of the whole file.
const TOP: [&str; 17] = [
    "name", "title", "question", "vars", "base", "factor", "design", "cell", "to", "from", "settings", "repeat",
    "warmup", "require", "order", "seed", "schedule",
];

/// Reads the plan in `text`, which stands in the file `name`, with the values that variables were given.
///
/// # Errors
/// One message that points at line, column and key.
pub fn read(name: &str, text: String, vars: &BTreeMap<String, String>) -> Result<Read, Failure> {
    let mut source = Source::new("a plan", name, text, vars.clone());
    source.default_vars(source.own_vars()?);
    let parsed = source.parse()?;
    let top = Table::whole(&source, &parsed);
    top.known(&TOP)?;
    if let Some(given) = vars.keys().find(|given| !source.text().contains(&format!("${{{given}}}"))) {
        return Err(Failure::usage(format!("--var {given}: {name} has no ${{{given}}}")));
    }
    let own = |key| Ok::<_, Failure>(top.text(key)?.map(|at| at.value));
    let base = base(&top)?;
    let factors = factors(&top)?;
    let design = top.choice("design", &Design::NAMES)?.unwrap_or_default();
    let list = list(&top, design, &factors)?;
    let flags = check_fields(&top, &base, &factors, &list)?;
    let mut plan = Plan {
        title: own("title")?,
        question: own("question")?,
        digest: digest(&source),
        vars: source.vars().clone(),
        base: base.iter().map(|(key, at)| (key.clone(), at.value.clone())).collect(),
        factors: factors.into_iter().map(|(factor, _)| factor).collect(),
        design,
        list: list
            .iter()
            .map(|cell| cell.iter().map(|(name, at)| (name.clone(), at.value.clone())).collect())
            .collect(),
        from: hosts(&top, "from")?,
        to: hosts(&top, "to")?,
        settings: settings(&top)?,
        require: require(&top)?,
        warmup_ns: top.quantity::<Nanos>("warmup")?.map(|time| time.0).filter(|ns| *ns > 0),
        schedule: schedule(&top)?,
    };
    levels_of_list(&mut plan);
    let rule = rule(&top, plan.schedule.is_some())?;
    let cells = analysis::plan::expand(&plan).map_err(|what| top.wrong(what))?;
    let specs = specs(&source, &flags, &cells)?;
    Ok(Read { name: own("name")?, plan, rule, cells, specs })
}

/// SHA-256 of the text with its variables.
fn digest(source: &Source) -> String {
    let mut hash = Sha256::new();
    hash.update(source.text());
    for (name, value) in source.vars() {
        hash.update(format!("\0{name}={value}"));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

type Fields = BTreeMap<String, At<String>>;

fn base(top: &Table<'_>) -> Result<Fields, Failure> {
    let Some(base) = top.table("base")? else { return Ok(Fields::new()) };
    Ok(base.flat()?.into_iter().collect())
}

/// The factors, each with where its key stands.
fn factors(top: &Table<'_>) -> Result<Vec<(Factor, At<String>)>, Failure> {
    let mut factors: Vec<(Factor, At<String>)> = Vec::new();
    for table in top.tables("factor")? {
        table.known(&["name", "field", "setting", "observed", "end", "levels", "dear"])?;
        let kinds =
            [("field", FactorKind::Field), ("setting", FactorKind::Setting), ("observed", FactorKind::Observed)];
        let mut named = Vec::new();
        for (key, kind) in kinds {
            named.extend(table.text(key)?.map(|at| (kind, at)));
        }
        let (kind, key) = match (named.pop(), named.pop()) {
            (Some(one), None) => one,
            (None, _) => {
                return Err(table.wrong("a factor is a `field`, a `setting` or something `observed`: none is named"));
            }
            (Some((_, at)), Some(_)) => {
                return Err(table.wrong_at(&at, "a factor is one of `field`, `setting` and `observed`, not two"));
            }
        };
        let levels: Vec<String> = table.texts("levels")?.into_iter().map(|at| at.value).collect();
        let (end, key) = ends(&table, kind, key)?;
        let default = match (kind, end) {
            (FactorKind::Observed | FactorKind::Field, PlanEnd::Near) => format!("near.{}", key.value),
            (FactorKind::Observed | FactorKind::Field, PlanEnd::Far) => format!("far.{}", key.value),
            _ => key.value.clone(),
        };
        let name = table.text("name")?.map_or(default, |at| at.value);
        if factors.iter().any(|(other, _)| other.name == name) || [Factor::FROM, Factor::TO].contains(&name.as_str()) {
            return Err(table.wrong_at(&key, format!("two factors are called '{name}': give one a `name` of its own")));
        }
        check_kind(&table, kind, &key, &levels)?;
        // Everything that waits for an interface to come up again.
        let interface = kind == FactorKind::Setting && ["dev.", "qdisc."].iter().any(|of| key.value.starts_with(of));
        let dear = table.switch("dear")? || interface;
        factors.push((Factor { name, kind, key: key.value.clone(), end, levels, dear }, key));
    }
    Ok(factors)
}

/// The end of a factor, which a field may also name before its key.
fn ends(table: &Table<'_>, kind: FactorKind, mut key: At<String>) -> Result<(PlanEnd, At<String>), Failure> {
    let said = table.choice("end", &PlanEnd::NAMES)?;
    if kind == FactorKind::Field
        && let Some((end, rest)) = key.value.clone().split_once('.')
        && let Some((_, end)) = PlanEnd::NAMES.iter().find(|(name, _)| *name == end)
    {
        if said.is_some_and(|said| said != *end) {
            return Err(table.wrong_at(&key, "`end` names another end than the field"));
        }
        rest.clone_into(&mut key.value);
        return Ok((*end, key));
    }
    let default = if kind == FactorKind::Observed { PlanEnd::Far } else { PlanEnd::Both };
    Ok((said.unwrap_or(default), key))
}

fn check_kind(table: &Table<'_>, kind: FactorKind, key: &At<String>, levels: &[String]) -> Result<(), Failure> {
    let mut sorted = levels.to_vec();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(table.wrong_at(key, format!("the level '{}' is there twice", twice[0])));
    }
    match kind {
        FactorKind::Observed if !levels.is_empty() => {
            Err(table.wrong_at(key, "what is observed has no `levels`: the hosts say them"))
        }
        FactorKind::Observed => observable(&key.value).map_err(|what| table.wrong_at(key, what)),
        FactorKind::Setting => {
            let setting = levels.iter().map(String::as_str).chain(["0"]).next().unwrap_or_default();
            let setting: Result<Setting, _> = format!("{}={setting}", key.value).parse();
            setting.map(drop).map_err(|error| table.wrong_at(key, error))
        }
        FactorKind::Field => Ok(()),
    }
}

/// Whether the inventory has a plain value of that name.
fn observable(key: &str) -> Result<(), String> {
    let facts = serde_json::to_value(Inventory::default()).unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    if let Some(facts) = facts.as_object() {
        names.extend(facts.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.as_str()));
    }
    if names.contains(&key) || key.starts_with("sysctl.") {
        return Ok(());
    }
    Err(format!("{}, and sysctl.NAME", unknown(key, &names, "the inventory")))
}

/// The cells of a list.
fn list(top: &Table<'_>, design: Design, factors: &[(Factor, At<String>)]) -> Result<Vec<Fields>, Failure> {
    let tables = top.tables("cell")?;
    match (design, tables.first()) {
        (Design::List, None) => return Err(top.wrong("design = \"list\" wants its cells: write [[cell]]")),
        (Design::List, _) => {}
        (_, Some(cell)) => return Err(cell.wrong("cells are listed with design = \"list\" only")),
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
            return Err(table.wrong(format!("every cell names the same: {keys}")));
        }
        cells.push(cell);
    }
    Ok(cells)
}

/// Gives the factors of a list their levels; a field that is no factor yet becomes one.
fn levels_of_list(plan: &mut Plan) {
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

/// Checks every field and every level by itself, so that an error points at it.
fn check_fields(
    top: &Table<'_>,
    base: &Fields,
    factors: &[(Factor, At<String>)],
    list: &[Fields],
) -> Result<Flags, Failure> {
    let factor = factors.iter().find(|(factor, _)| factor.kind == FactorKind::Field && factor.key == PATTERN);
    let listed = list.iter().filter_map(|cell| cell.get(PATTERN));
    let at = factor.map(|(_, at)| at).or(base.get(PATTERN)).or(listed.clone().next()).cloned();
    let mut patterns: BTreeSet<String> = listed.map(|at| at.value.clone()).collect();
    patterns.extend(factor.map(|(factor, _)| factor.levels.clone()).unwrap_or_default());
    if patterns.is_empty() {
        patterns.extend(base.get(PATTERN).map(|at| at.value.clone()));
    }
    if patterns.is_empty() {
        patterns.insert(PATTERNS[0].to_owned());
    }
    let flags = Flags::new(&patterns).map_err(|what| match &at {
        Some(at) => top.wrong_at(at, what),
        None => top.wrong(what),
    })?;
    for (key, at) in base {
        flags.check(key, &at.value).map_err(|what| top.wrong_at(at, what))?;
    }
    let prefixed = |factor: &Factor| match factor.end {
        PlanEnd::Near => format!("near.{}", factor.key),
        PlanEnd::Far => format!("far.{}", factor.key),
        PlanEnd::Both => factor.key.clone(),
    };
    for (factor, at) in factors.iter().filter(|(factor, _)| factor.kind == FactorKind::Field) {
        for level in &factor.levels {
            flags.check(&prefixed(factor), level).map_err(|what| top.wrong_at(at, what))?;
        }
    }
    for (name, at) in list.iter().flatten() {
        let factor = factors.iter().find(|(factor, _)| factor.name == *name).map(|(factor, _)| factor);
        let key = match factor {
            Some(factor) if factor.kind != FactorKind::Field => continue,
            Some(factor) => prefixed(factor),
            None => name.clone(),
        };
        flags.check(&key, &at.value).map_err(|what| top.wrong_at(at, what))?;
    }
    Ok(flags)
}

fn hosts(top: &Table<'_>, key: &str) -> Result<Vec<String>, Failure> {
    let mut hosts: Vec<String> = Vec::new();
    for at in top.texts(key)? {
        // One variable may hold several hosts.
        for host in at.value.split(',').map(str::trim).filter(|host| !host.is_empty()) {
            if hosts.iter().any(|other| other == host) {
                return Err(top.wrong_at(&at, format!("'{host}' is there twice")));
            }
            hosts.push(host.to_owned());
        }
    }
    Ok(hosts)
}

fn settings(top: &Table<'_>) -> Result<HostSettings, Failure> {
    let mut settings = HostSettings::default();
    let Some(table) = top.table("settings")? else { return Ok(settings) };
    table.known(&["near", "far", "both"])?;
    for (name, end) in PlanEnd::NAMES {
        let Some(of_end) = table.table(name)? else { continue };
        for (key, at) in of_end.flat()? {
            let setting = Setting { key, value: at.value };
            let lists = [&mut settings.near, &mut settings.far];
            for (list, _) in lists.into_iter().zip(end.ends()).filter(|(_, meant)| *meant) {
                list.push(setting.clone());
            }
        }
    }
    Ok(settings)
}

fn require(top: &Table<'_>) -> Result<Option<Require>, Failure> {
    let Some(table) = top.table("require")? else { return Ok(None) };
    table.known(&["free_memory", "load", "foreign", "wait", "otherwise"])?;
    Ok(Some(Require {
        free_memory_bytes: table.quantity::<ByteSize>("free_memory")?.map(|size| size.0),
        load: table.quantity::<f64>("load")?,
        foreign_bps: table.quantity::<BitRate>("foreign")?.map(|rate| rate.0),
        wait_ns: table.quantity::<Nanos>("wait")?.unwrap_or(WAIT).0,
        otherwise: table.choice("otherwise", &Otherwise::NAMES)?.unwrap_or_default(),
    }))
}

fn schedule(top: &Table<'_>) -> Result<Option<Every>, Failure> {
    let Some(table) = top.table("schedule")? else { return Ok(None) };
    table.known(&["every", "for"])?;
    let of = |key| {
        table
            .quantity::<Nanos>(key)?
            .filter(|time| time.0 > 0)
            .ok_or_else(|| table.wrong(format!("`{key}` is missing: a time such as 15m")))
    };
    Ok(Some(Every { every_ns: of("every")?.0, for_ns: of("for")?.0 }))
}

fn rule(top: &Table<'_>, scheduled: bool) -> Result<Stopping, Failure> {
    let orders = [("random", Order::Random), ("as-written", Order::AsWritten)];
    let mut rule = Stopping {
        order: top.choice("order", &orders)?.unwrap_or_default(),
        seed: top.quantity("seed")?.unwrap_or_else(clock_seed),
        min_trials: if scheduled { 1 } else { REPEAT.0 },
        max_trials: REPEAT.1,
        ..Stopping::default()
    };
    if let Some(repeat) = top.table("repeat")? {
        repeat.known(&["min", "until", "max", "budget"])?;
        if let Some(min) = repeat.quantity::<u32>("min")? {
            rule.min_trials = min;
        }
        match repeat.quantity::<u32>("max")? {
            Some(max) if max < rule.min_trials => {
                return Err(repeat.wrong("`max` is below `min` (6 unless it is given)"));
            }
            Some(max) => rule.max_trials = max,
            None => rule.max_trials = rule.max_trials.max(rule.min_trials),
        }
        if let Some(until) = repeat.quantity::<Ratio>("until")? {
            rule.target = until.0;
        }
        rule.budget_ns = repeat.quantity::<Nanos>("budget")?.map(|time| time.0);
        if rule.min_trials == 0 || rule.target <= 0.0 {
            return Err(repeat.wrong("`min` is 1 or more, and `until` a percentage above 0 such as 2%"));
        }
        if scheduled && (repeat.has("until") || repeat.has("max")) {
            return Err(
                repeat.wrong("with [schedule] every time takes `min` trials of each cell: leave `until` and `max` out")
            );
        }
    }
    if scheduled {
        rule.max_trials = u32::MAX;
    }
    Ok(rule)
}

/// The specs of the cells, checked as a command would check them.
fn specs(source: &Source, flags: &Flags, cells: &[analysis::plan::PlannedCell]) -> Result<Vec<Spec>, Failure> {
    let mut specs = Vec::with_capacity(cells.len());
    for (at, cell) in cells.iter().enumerate() {
        let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
        let wrong = |what: &str| {
            let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
            source.wrong(&(0..0), "", format!("cell {}{of}: {what}", at + 1))
        };
        let mut spec = flags.spec(&cell.fields).map_err(|what| wrong(&what))?;
        spec.settings = cell.settings.clone();
        engine::pattern::check(&spec).map_err(|error| wrong(&error.to_string()))?;
        let transport = engine::transport::transport(spec.transport.as_str())?;
        if transport.launcher().is_some() {
            return Err(wrong(&format!("{} is started by its own launcher, which a plan cannot", spec.transport)));
        }
        if spec.engine.auto {
            return Err(wrong(
                "engine = \"auto\" would settle every cell by itself: name the ways, as a factor if need be",
            ));
        }
        let capabilities = transport.capabilities();
        if cell.to.is_none() && !capabilities.single_ended && !capabilities.one_machine {
            return Err(wrong(&format!("{} needs a far host: add to = [\"HOST\"] at the top", spec.transport)));
        }
        specs.push(spec);
    }
    Ok(specs)
}
