//! The hosts of a plan, their settings, its preconditions and its stop rule.

use std::collections::BTreeSet;

use control::coordinator::check_host;
use model::{
    BitRate, ByteSize, Every, HostSettings, Nanos, Order, Otherwise, PlanEnd, PlanLab, Ratio, Require, Setting,
    Stopping,
};

use crate::fleet::Fleet;
use crate::mistake::Mistake;
use crate::resolver::Resolver;
use crate::source::{Located, Table};
use options::any;
use options::values::{above_zero, not_negative, whole};

/// Default numbers of trials per cell: minimum and maximum.
const REPEAT: (u32, u32) = (6, 64);
/// Default time to wait for a precondition.
const WAIT: Nanos = Nanos(30_000_000_000);

/// The fleet that the plan names: a file relative to the plan's folder, or another source.
pub(super) fn fleet(top: &Table<'_>, resolver: &dyn Resolver) -> Result<Option<Fleet>, Mistake> {
    let Some(at) = top.text("fleet")? else { return Ok(None) };
    resolver.fleet(top.folder(), &at.value).map(Some).map_err(|what| top.wrong_at(&at, what))
}

/// The hosts of `from` or `to`: of a fleet those that are selected.
pub(super) fn hosts(top: &Table<'_>, key: &str, fleet: Option<&Fleet>) -> Result<Vec<String>, Mistake> {
    let mut hosts: Vec<String> = Vec::new();
    // A mesh lists each of its hosts by name: a selection of one looks at all of them.
    let names = fleet.map(|fleet| fleet.hosts.iter().map(|host| host.name.as_str()).collect::<BTreeSet<&str>>());
    let mut chosen = BTreeSet::new();
    for at in top.texts(key)? {
        if let (Some(fleet), Some(names)) = (fleet, &names) {
            let selected: Vec<&str> = match names.get(at.value.as_str()) {
                Some(name) => vec![*name],
                None => {
                    let selected = fleet.select(&at.value).map_err(|what| top.wrong_at(&at, what))?;
                    selected.into_iter().map(|host| host.name.as_str()).collect()
                }
            };
            hosts.extend(selected.into_iter().filter(|name| chosen.insert(*name)).map(str::to_owned));
            continue;
        }
        // One variable may hold several hosts.
        for host in at.value.split(',').map(str::trim).filter(|host| !host.is_empty()) {
            if hosts.iter().any(|other| other == host) {
                return Err(top.wrong_at(&at, format!("'{host}' is given twice")));
            }
            check_host(host).map_err(|what| top.wrong_at(&at, what))?;
            hosts.push(host.to_owned());
        }
    }
    Ok(hosts)
}

/// The pairs of hosts in `pairs`, each as `near far`.
pub(super) fn pairs(top: &Table<'_>) -> Result<Vec<[String; 2]>, Mistake> {
    let pair =
        |at: Located<String>| match at.value.split_whitespace().collect::<Vec<_>>()[..] {
            [near, far] => Ok([near.to_owned(), far.to_owned()]),
            _ => Err(top
                .wrong_at(&at, format!("'{}' is not a pair: write the near host, a space and the far host", at.value))),
        };
    top.texts("pairs")?.into_iter().map(pair).collect()
}

/// Labels of the fleet's hosts.
pub(super) fn labels_of(top: &Table<'_>, key: &str, fleet: Option<&Fleet>) -> Result<Vec<String>, Mistake> {
    let label = |at: Located<String>| match fleet {
        Some(fleet) if fleet.hosts.iter().any(|host| host.labels.contains_key(&at.value)) => Ok(at.value),
        Some(fleet) => Err(top.wrong_at(&at, format!("no host of {} has the label '{}'", fleet.source, at.value))),
        None => Err(top.wrong_at(&at, "only the hosts of a fleet have labels: add fleet = \"FILE\"")),
    };
    top.texts(key)?.into_iter().map(label).collect()
}

/// The settings in `[settings]`.
pub(super) fn settings(top: &Table<'_>) -> Result<HostSettings, Mistake> {
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

/// The preconditions in `[require]`.
pub(super) fn require(top: &Table<'_>) -> Result<Option<Require>, Mistake> {
    let Some(table) = top.table("require")? else { return Ok(None) };
    table.known(&["free_memory", "load", "foreign", "wait", "otherwise"])?;
    Ok(Some(Require {
        free_memory_bytes: table.value("free_memory", any::<ByteSize>)?.map(|size| size.0),
        load: table.value("load", not_negative)?,
        foreign_bps: table.value("foreign", any::<BitRate>)?.map(|rate| rate.0),
        wait_ns: table.value("wait", any::<Nanos>)?.unwrap_or(WAIT).0,
        otherwise: table.choice("otherwise", &Otherwise::NAMES)?.unwrap_or_default(),
    }))
}

/// The lab in `[lab]`.
pub(super) fn lab(top: &Table<'_>) -> Result<Option<PlanLab>, Mistake> {
    let Some(table) = top.table("lab")? else { return Ok(None) };
    table.known(&["topology", "vars", "values", "host_wide", "factor"])?;
    let topology = table.text("topology")?.ok_or_else(|| {
        table.wrong("`topology` is missing: write a name of `thru lab list --ready`, or a file relative to the plan")
    })?;
    let pairs = |key| table.table(key)?.map_or(Ok(Vec::new()), |pairs| pairs.flat());
    Ok(Some(PlanLab {
        topology: topology.value,
        vars: pairs("vars")?.into_iter().map(|(name, at)| (name, at.value)).collect(),
        host_wide: pairs("host_wide")?.into_iter().map(|(key, at)| Setting { key, value: at.value }).collect(),
    }))
}

/// The schedule in `[schedule]`.
pub(super) fn schedule(top: &Table<'_>) -> Result<Option<Every>, Mistake> {
    let Some(table) = top.table("schedule")? else { return Ok(None) };
    table.known(&["every", "for"])?;
    let of = |key| {
        table
            .value(key, above_zero::<Nanos>)?
            .ok_or_else(|| table.wrong(format!("`{key}` is missing: write a time such as 15m")))
    };
    Ok(Some(Every { every_ns: of("every")?.0, for_ns: of("for")?.0 }))
}

/// How often each outlier is tested again, from `[repeat]`; null for never.
pub(super) fn retests(top: &Table<'_>) -> Result<Option<u32>, Mistake> {
    let Some(table) = top.table("repeat")? else { return Ok(None) };
    let retests = table.value("retests", whole(3..=100))?;
    if retests.is_some() && top.has("schedule") {
        return Err(table.wrong("`retests` follow the last round of a plan, so omit them with [schedule]"));
    }
    Ok(retests)
}

/// The stop rule, from `[repeat]`, `order` and `seed`.
pub(super) fn rule(top: &Table<'_>, scheduled: bool, resolver: &dyn Resolver) -> Result<Stopping, Mistake> {
    let orders = [("random", Order::Random), ("as-written", Order::AsWritten)];
    let mut rule = Stopping {
        order: top.choice("order", &orders)?.unwrap_or_default(),
        seed: top.value("seed", whole(0..=u64::MAX))?.unwrap_or_else(|| resolver.seed()),
        min_trials: if scheduled { 1 } else { REPEAT.0 },
        max_trials: REPEAT.1,
        ..Stopping::default()
    };
    if let Some(repeat) = top.table("repeat")? {
        repeat.known(&["min", "until", "max", "budget", "retests"])?;
        if let Some(min) = repeat.value("min", whole(1..=u32::MAX))? {
            rule.min_trials = min;
        }
        match repeat.value("max", whole(1..=u32::MAX))? {
            Some(max) if max < rule.min_trials => {
                return Err(repeat.wrong("`max` is below `min` (default 6)"));
            }
            Some(max) => rule.max_trials = max,
            None => rule.max_trials = rule.max_trials.max(rule.min_trials),
        }
        if let Some(until) = repeat.value("until", above_zero::<Ratio>)? {
            rule.target = until.0;
        }
        rule.budget_ns = repeat.value("budget", above_zero::<Nanos>)?.map(|time| time.0);
        if scheduled && (repeat.has("until") || repeat.has("max")) {
            return Err(repeat.wrong("with [schedule], each pass runs `min` trials per cell: omit `until` and `max`"));
        }
    }
    if scheduled {
        rule.max_trials = u32::MAX;
    }
    Ok(rule)
}
