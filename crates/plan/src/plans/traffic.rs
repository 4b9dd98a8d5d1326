//! Simultaneous tests of many hosts: `[traffic]`, which hosts send at the same time, and `light`, how many tests share a host.

use analysis::plan::{PlannedCell, doubling};
use model::{Design, Direction, Factor, FactorKind, Plan, PlanTraffic, TrafficKind};
use text::{Said, say};

use super::groups::{MAX_GROUPS, possible};
use super::written::WrittenCell;
use crate::mistake::Mistake;
use crate::source::Table;
use options::values::whole;

/// Permutations or cuts of a plan that gives no number.
const DRAWS: u32 = 3;
/// Most of them.
const MAX_DRAWS: u32 = 1_000;
/// Most light tests that share a host.
const MAX_LIGHT: u32 = 64;

/// Reads `[traffic]` and `light` into a plan whose hosts and factors are known.
pub(super) fn read(top: &Table<'_>, plan: &mut Plan) -> Result<(), Mistake> {
    plan.light = top.value("light", whole(1..=MAX_LIGHT))?.filter(|tests| *tests > 1);
    if plan.light.is_some() && !(plan.one_per.is_empty() && plan.one_per_uplink.is_empty()) {
        return Err(top.wrong("`light` and one test at a time (`one_per`, `one_per_uplink`) cannot be used together"));
    }
    let Some(table) = top.table("traffic")? else { return Ok(()) };
    table.known(&["kind", "senders", "receivers", "permutations", "cuts"])?;
    let kind = table.choice("kind", &TrafficKind::NAMES)?.ok_or_else(|| {
        let names: Vec<&str> = TrafficKind::NAMES.iter().map(|(name, _)| *name).collect();
        table.wrong(format!("`kind` is missing: write one of {}", names.join(", ")))
    })?;
    if plan.design != Design::Factorial {
        return Err(table.wrong("[traffic] needs design = \"factorial\""));
    }
    if plan.groups().is_some() {
        return Err(
            table.wrong(say!("[traffic] and [[group]] cannot be used together: give the flows of a pair as `--flows`"))
        );
    }
    if plan.light.is_some() || !plan.pairs.is_empty() || !plan.one_per.is_empty() || !plan.one_per_uplink.is_empty() {
        return Err(
            table.wrong("[traffic] decides which hosts send at the same time: omit `light`, `pairs` and `one_per`")
        );
    }
    let own = match kind {
        TrafficKind::Incast => Some("senders"),
        TrafficKind::FanOut => Some("receivers"),
        TrafficKind::Permutation => Some("permutations"),
        TrafficKind::Bisection => Some("cuts"),
        TrafficKind::Ring => None,
    };
    for key in ["senders", "receivers", "permutations", "cuts"] {
        if table.has(key) && own != Some(key) {
            return Err(table.wrong(format!("`{key}` does not apply to {}", kind.name())));
        }
    }
    let levels: Vec<String> = match own {
        None => Vec::new(),
        Some(key) if kind.has_hub() => numbers(&table, key, plan, kind)?.iter().map(ToString::to_string).collect(),
        Some(key) => {
            let draws = table.value(key, whole(1..=MAX_DRAWS))?.unwrap_or(DRAWS);
            (1..=draws).map(|number| number.to_string()).collect()
        }
    };
    // Without a seed always the same ones are drawn, so that an interrupted plan can be resumed.
    let seed = top.value("seed", whole(0..=u64::MAX))?.unwrap_or(1);
    plan.traffic = Some(PlanTraffic { kind, seed });
    if let Some(name) = kind.factor() {
        if plan.factors.iter().any(|factor| factor.name == name) {
            return Err(table.wrong(format!("there is already a factor '{name}': change its `name`")));
        }
        let name = name.to_owned();
        let key = name.clone();
        plan.factors.push(Factor { name, key, kind: FactorKind::Traffic, levels, ..Factor::default() });
    }
    Ok(())
}

/// The numbers of senders or receivers, ascending: those of `key`, or 1, 2, 4 and so on up to all, or as many as an agent has
/// measuring processes for.
fn numbers(table: &Table<'_>, key: &str, plan: &Plan, kind: TrafficKind) -> Result<Vec<usize>, Mistake> {
    let (hubs, others) = if kind == TrafficKind::Incast { (&plan.to, &plan.from) } else { (&plan.from, &plan.to) };
    let around = |hub: &String| others.iter().filter(|other| *other != hub).count();
    let most = hubs.iter().map(around).min().unwrap_or(0);
    if most == 0 {
        return Err(table.wrong(format!("{} needs at least two hosts in `from` and `to`", kind.name())));
    }
    let mut numbers = Vec::new();
    for at in table.texts(key)? {
        for text in at.value.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let number: u32 = whole(1..=u32::MAX)(text).map_err(|what| table.wrong_at(&at, what))?;
            if number as usize > most {
                let what = format!("{number} {key} are too many: there are {most} other hosts");
                return Err(table.wrong_at(&at, what));
            }
            if number as usize > MAX_GROUPS {
                let what = format!("{number} {key} are too many: an agent has processes for {MAX_GROUPS} at once");
                return Err(table.wrong_at(&at, what));
            }
            if numbers.contains(&(number as usize)) {
                return Err(table.wrong_at(&at, format!("{number} is given twice")));
            }
            numbers.push(number as usize);
        }
    }
    numbers.sort_unstable();
    Ok(if numbers.is_empty() { doubling(most.min(MAX_GROUPS)) } else { numbers })
}

/// Checks that the cells can be measured at the same time as others of their hosts.
pub(super) fn check(top: &Table<'_>, plan: &Plan, cells: &[WrittenCell]) -> Result<(), Mistake> {
    let wrong = |cell: &PlannedCell, what: &dyn Said| {
        let ends = [&cell.from, &cell.to].map(|host| host.as_deref().unwrap_or("this host"));
        top.wrong(say!("{} to {}: {}", ends[0], ends[1], what.say()))
    };
    for WrittenCell { planned: cell, specs } in cells {
        for spec in specs {
            if plan.light.is_some() {
                if spec.rate_bps.is_none() {
                    let what = say!("light tests share hosts, so each needs a bounded rate: give `--rate`");
                    return Err(wrong(cell, &what));
                }
                possible(spec).map_err(|error| wrong(cell, &error))?;
            }
            if let Some(traffic) = plan.traffic {
                if spec.no_loss || spec.speak.is_some() || spec.is_point() {
                    let what =
                        say!("a curve, `--speak` and `--find-no-loss` cannot be part of {}", traffic.kind.name());
                    return Err(wrong(cell, &what));
                }
                if spec.direction != Direction::Send {
                    return Err(wrong(
                        cell,
                        &say!("[traffic] decides which hosts send: omit `--reverse` and `--both`"),
                    ));
                }
                possible(spec).map_err(|error| wrong(cell, &error))?;
            }
        }
    }
    Ok(())
}
