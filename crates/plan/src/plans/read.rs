//! Reads a plan file.

use super::error::PlanError;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use text::{Said, say};

use analysis::plan::{MAX_CELLS, PlannedCell};
use engine::transport::{scope_of, transport};
use model::{ByteSize, Design, Factor, FactorKind, Nanos, Plan, Spec};
use options::OptionError;
use options::any;
use ring::digest::{Context, SHA256};

use super::factors::{Origins, base, check_fields, check_sets, factors, levels_of_list, list};
use super::fields::CellFields;
use super::group_tables::GroupTables;
use super::keys::{fleet, hosts, lab, labels_of, pairs, require, retests, rule, schedule, settings};
use super::parsed::{ParsedPlan, PlanCell};
use super::written::WrittenCell;
use super::{peer, traffic};
use crate::fleet::Fleet;
use crate::mistake::Mistake;
use crate::resolver::Resolver;
use crate::safe_rate;
use crate::source::{Table, TomlSource};
use crate::specs::{self, check_forwarded};

/// Keys at the top of the file.
const TOP: [&str; 26] = [
    "name",
    "title",
    "question",
    "vars",
    "base",
    "factor",
    "group",
    "design",
    "cell",
    "fleet",
    "to",
    "from",
    "cluster",
    "pairs",
    "one_per",
    "one_per_uplink",
    "light",
    "traffic",
    "settings",
    "repeat",
    "warmup",
    "require",
    "order",
    "seed",
    "schedule",
    "lab",
];

/// Reads the plan in `text`, the contents of the file `name`, with the values of variables. If `in_lab`, it is measured in its lab,
/// whose values have priority over `[vars]`.
///
/// # Errors
/// The line, the column and the key of a mistake.
pub fn read(
    name: &str,
    text: String,
    vars: &BTreeMap<String, String>,
    in_lab: bool,
    resolver: &dyn Resolver,
) -> Result<ParsedPlan, Mistake> {
    let mut source = TomlSource::new(name, "a plan", text, vars.clone());
    let of_lab = source.values(&["lab", "values"]);
    if in_lab {
        source.default_vars(of_lab?);
    } else {
        // Mistakes in the values of a lab that is not built are ignored.
        source.offer_remedy(of_lab.unwrap_or_default().into_keys(), "use --lab to measure in the plan's own lab");
    }
    source.default_vars(source.own_vars()?);
    let parsed = source.parse()?;
    let top = Table::whole(&source, &parsed);
    top.known(&TOP)?;
    if let Some(given) = vars.keys().find(|given| !source.text().contains(&format!("${{{given}}}"))) {
        return Err(Mistake::usage(format!("--var {given}: {name} has no ${{{given}}}")));
    }
    let own = |key| top.value(key, any::<String>);
    let base = base(&top)?;
    let mut factors = factors(&top, in_lab)?;
    let design = top.choice("design", &Design::NAMES)?.unwrap_or_default();
    let groups = GroupTables::read(&top, design, &mut factors)?;
    let list = list(&top, design, &factors)?;
    let cell_fields = check_fields(&top, &base, &factors, &list)?;
    let named_block = factors.iter().find(|(factor, _)| factor.name == Factor::SIZES).map(|(_, at)| at.clone());
    let fleet = fleet(&top, resolver)?;
    let mut plan = Plan {
        title: own("title")?,
        question: own("question")?,
        digest: digest(&source),
        vars: source.vars().clone(),
        base: base.iter().map(|(key, at)| (key.clone(), at.value.clone())).collect(),
        factors: factors.iter().map(|(factor, _)| factor.clone()).collect(),
        design,
        list: list
            .iter()
            .map(|cell| cell.iter().map(|(name, at)| (name.clone(), at.value.clone())).collect())
            .collect(),
        from: hosts(&top, "from", fleet.as_ref())?,
        to: hosts(&top, "to", fleet.as_ref())?,
        cluster: labels_of(&top, "cluster", fleet.as_ref())?.pop(),
        pairs: pairs(&top)?,
        one_per: labels_of(&top, "one_per", fleet.as_ref())?,
        one_per_uplink: labels_of(&top, "one_per_uplink", fleet.as_ref())?,
        labels: fleet.as_ref().map(labels).unwrap_or_default(),
        settings: settings(&top)?,
        require: require(&top)?,
        warmup_ns: top.value("warmup", any::<Nanos>)?.map(|time| time.0).filter(|ns| *ns > 0),
        retests: retests(&top)?,
        schedule: schedule(&top)?,
        lab: if in_lab { lab(&top)? } else { None },
        ..Plan::default()
    };
    levels_of_list(&mut plan);
    check_sets(&top, &plan)?;
    traffic::read(&top, &mut plan)?;
    let rule = rule(&top, plan.schedule.is_some(), resolver)?;
    let planned = analysis::plan::expand(&plan).map_err(|what| top.wrong(what))?;
    let origins = Origins { base: &base, factors: &factors, list: &list };
    let wrong_sizes = |what: &dyn Said| match &named_block {
        Some(at) => top.wrong_at(at, what),
        None => top.wrong(what),
    };
    let mut cells = with_specs(&source, &cell_fields, &origins, planned, in_lab, &wrong_sizes, resolver)?;
    if let Some(fleet) = &fleet {
        data_addresses(fleet, &mut cells, resolver)?;
    }
    groups.time(&top, &mut cells)?;
    traffic::check(&top, &plan, &cells)?;
    let cells = with_sizes(&mut plan, cells).map_err(|error| wrong_sizes(&error))?;
    Ok(ParsedPlan { name: top.value("name", options::values::name)?, fleet, plan, rule, cells })
}

/// The labels of a fleet's hosts.
fn labels(fleet: &Fleet) -> BTreeMap<String, BTreeMap<String, String>> {
    let labelled = fleet.hosts.iter().filter(|host| !host.labels.is_empty());
    labelled.map(|host| (host.name.clone(), host.labels.clone())).collect()
}

/// Gives each end of a cell the data address that the fleet has for its host, unless the cell has one.
fn data_addresses(fleet: &Fleet, cells: &mut [WrittenCell], resolver: &dyn Resolver) -> Result<(), Mistake> {
    let mut known: BTreeMap<&str, Option<SocketAddr>> = BTreeMap::new();
    for host in &fleet.hosts {
        known.insert(&host.name, resolver.data_address(host).map_err(Mistake::usage)?);
    }
    for WrittenCell { planned: cell, specs } in cells {
        let of = |host: &Option<String>| host.as_deref().and_then(|host| known.get(host).copied().flatten());
        let given = [of(&cell.from), of(&cell.to)];
        for spec in specs.iter_mut().filter(|_| given.iter().any(Option::is_some)) {
            // A forwarded port is no address that the near end has.
            let from = given[0].filter(|from| from.port() == 0).map(|from| from.ip());
            spec.near.data_addr = spec.near.data_addr.or(from);
            if let Some(to) = given[1].filter(|_| spec.far.data_addr.is_none() && spec.far.data_at.is_none()) {
                spec.far.data_addr = (to.port() == 0).then_some(to.ip());
                spec.far.data_at = Some(to).filter(|to| to.port() > 0 || scope_of(to) > 0);
                check_forwarded(spec, transport(spec.transport.as_str())?)
                    .map_err(|error| Mistake::in_plan(error.what()))?;
            }
        }
    }
    Ok(())
}

/// Makes a cell for each size of a curve, with the size as a level. If a plan has a curve, all its cells have that level.
fn with_sizes(plan: &mut Plan, written: Vec<WrittenCell>) -> Result<Vec<PlanCell>, PlanError> {
    let curves = written.iter().flat_map(|cell| &cell.specs).any(|spec| spec.is_point());
    if curves && plan.factors.iter().any(|factor| factor.name == Factor::SIZES) {
        return Err(PlanError::SizesTwice);
    }
    let total = written.iter().map(|cell| cell.specs.len()).sum::<usize>();
    let (mut cells, mut sizes) = (Vec::with_capacity(total), BTreeSet::new());
    for WrittenCell { planned, specs } in written {
        for spec in specs {
            let mut planned = planned.clone();
            if curves {
                sizes.insert(spec.block);
                planned.levels.insert(Factor::SIZES.to_owned(), level_of(spec.block));
            }
            cells.push(PlanCell { planned, spec });
        }
    }
    if curves {
        let levels = sizes.into_iter().map(level_of).collect();
        let (name, key) = (Factor::SIZES.to_owned(), Factor::SIZES.to_owned());
        plan.factors.insert(0, Factor { name, key, kind: FactorKind::Sizes, levels, ..Factor::default() });
    }
    Ok(cells)
}

/// A size as a plan writes it.
fn level_of(block: u64) -> String {
    ByteSize(block).to_string().replace(' ', "")
}

/// SHA-256 of the text and its variables.
fn digest(source: &TomlSource) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(source.text().as_bytes());
    for (name, value) in source.vars() {
        hash.update(format!("\0{name}={value}").as_bytes());
    }
    hex::encode(hash.finish())
}

/// The cells with their specs, several for a curve, checked as a command checks them.
fn with_specs(
    source: &TomlSource,
    fields: &CellFields,
    origins: &Origins<'_>,
    planned: Vec<PlannedCell>,
    in_lab: bool,
    wrong_sizes: &impl Fn(&dyn Said) -> Mistake,
    resolver: &dyn Resolver,
) -> Result<Vec<WrittenCell>, Mistake> {
    let mut all: Vec<WrittenCell> = Vec::with_capacity(planned.len());
    let mut total = 0;
    for (at, cell) in planned.into_iter().enumerate() {
        let levels: Vec<String> = cell.levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
        let of = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
        let name = format!("cell {}{of}", at + 1);
        let wrong = |what: &dyn Said| source.wrong(&(0..0), "", say!("{name}: {}", what.say()));
        let of_field = |error: OptionError| match origins.place(&error, &cell.fields) {
            Some(at) => source.wrong(&at.span, &at.key, say!("{name}: {error}")),
            None => wrong(&error),
        };
        // The cells of two pairs of hosts often have the same specs.
        let known = all
            .last()
            .filter(|before| (&before.planned.fields, &before.planned.settings) == (&cell.fields, &cell.settings));
        let specs = match known {
            Some(before) => before.specs.clone(),
            None => {
                let options = fields.options(&cell.fields).map_err(of_field)?;
                let specs = specs::of(&options, resolver).map_err(of_field)?;
                if !in_lab {
                    safe_rate::check(&options, cell.from.as_deref(), cell.to.as_deref(), resolver).map_err(of_field)?;
                }
                match specs.first().speak {
                    Some(program) => peer::check(program, &specs),
                    None => specs.iter().try_for_each(engine::pattern::check).map_err(Into::into),
                }
                .map_err(|error: PlanError| wrong(&error))?;
                let with_settings = |spec: Spec| Spec { settings: cell.settings.clone(), ..spec }.into();
                specs.mapped(with_settings)
            }
        };
        if let Some(program) = specs.first().speak {
            peer::check_hosts(program, &cell).map_err(|error| wrong(&error))?;
        }
        if !cell.settings.links.is_empty() && !in_lab {
            let key = &cell.settings.links[0].key;
            return Err(wrong(&say!(
                "{key} is a property of a lab's links: use --lab, or write the factor as [[lab.factor]] to omit it elsewhere"
            )));
        }
        let spec = specs.first();
        let transport = engine::transport::transport(spec.transport.as_str())?;
        if transport.launcher().is_some() {
            return Err(wrong(&say!("a plan cannot measure {}: its launcher starts both ends", spec.transport)));
        }
        let capabilities = transport.capabilities();
        if cell.to.is_none() && !capabilities.single_ended && !transport.facts().one_host {
            return Err(wrong(&say!("{} needs a far host: add to = [\"HOST\"] at the top", spec.transport)));
        }
        // Before those of all curves take memory.
        total += specs.len();
        if total > MAX_CELLS {
            return Err(wrong_sizes(&say!("the plan has more than {MAX_CELLS} cells with the sizes of its curves")));
        }
        all.push(WrittenCell { planned: cell, specs });
    }
    Ok(all)
}
