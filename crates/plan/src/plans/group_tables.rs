//! Groups of flows in a plan file: a factor whose levels are measured at the same time.

use super::error::PlanError;
use std::collections::BTreeMap;
use text::say;

use analysis::plan::PlannedCell;
use model::{Design, Factor, FactorKind};

use super::groups::{Given, MAX_GROUPS, possible};
use super::written::WrittenCell;
use crate::mistake::Mistake;
use crate::source::{Located, Table};

/// The groups of a plan by their names, each with its place in the file.
#[derive(Debug, Default)]
pub(super) struct GroupTables {
    groups: BTreeMap<String, (Given, Located<String>)>,
}

impl GroupTables {
    /// Reads `[[group]]`, and adds their factor to `factors`.
    pub(super) fn read(
        top: &Table<'_>,
        design: Design,
        factors: &mut Vec<(Factor, Located<String>)>,
    ) -> Result<Self, Mistake> {
        let (mut groups, mut levels, mut sets) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut first = None;
        for (number, table) in (1..).zip(top.tables("group")?) {
            let mut given = Given::default();
            let keys = table.flat()?;
            let Some((_, at)) = keys.first().cloned() else {
                return Err(table.wrong(say!("a group needs a key, such as `--flows` or `--cc`")));
            };
            for (key, at) in &keys {
                let is_setting = key.contains('.') && !["near.", "far."].iter().any(|end| key.starts_with(end));
                if is_setting || [Factor::FROM_FIELD, Factor::TO_FIELD].contains(&key.as_str()) {
                    return Err(table.wrong_at(at, format!("'{key}' is the same for all groups: write it elsewhere")));
                }
                given.take(key, &at.value).map_err(|what| table.wrong_at(at, what))?;
            }
            let name = given.name.clone().unwrap_or_else(|| number.to_string());
            if levels.contains(&name) {
                return Err(table.wrong_at(&at, format!("two groups have the name '{name}'")));
            }
            sets.insert(name.clone(), given.fields());
            levels.push(name.clone());
            first.get_or_insert(at.clone());
            groups.insert(name, (given, at));
        }
        let Some(at) = first else { return Ok(Self::default()) };
        if levels.len() > MAX_GROUPS {
            return Err(top.wrong_at(&at, format!("{} groups are too many: use at most {MAX_GROUPS}", levels.len())));
        }
        if design != Design::Factorial {
            return Err(top.wrong_at(&at, "[[group]] needs design = \"factorial\""));
        }
        if factors.iter().any(|(factor, _)| factor.name == Factor::GROUP) {
            return Err(top.wrong_at(&at, "there is already a factor 'group': change its `name`"));
        }
        let (name, key) = (Factor::GROUP.to_owned(), Factor::GROUP.to_owned());
        let factor = Factor { name, key, kind: FactorKind::Set, levels, sets, together: true, ..Factor::default() };
        factors.push((factor, at));
        Ok(Self { groups })
    }

    /// Gives the specs of each cell the start and the end of its group.
    pub(super) fn time(&self, top: &Table<'_>, cells: &mut [WrittenCell]) -> Result<(), Mistake> {
        for WrittenCell { planned: cell, specs } in cells.iter_mut() {
            let Some((name, (given, at))) =
                cell.levels.get(Factor::GROUP).and_then(|level| self.groups.get_key_value(level))
            else {
                continue;
            };
            let wrong = |error: PlanError| top.wrong_at(at, say!("group {name}: {error}"));
            let [spec] = specs.as_mut_slice() else {
                return Err(wrong(PlanError::CurveInGroup));
            };
            if spec.no_loss || spec.speak.is_some() || spec.is_point() {
                return Err(wrong(PlanError::AloneOnly));
            }
            given.time(spec).map_err(wrong)?;
            possible(spec).map_err(wrong)?;
        }
        let hosts = |host: fn(&PlannedCell) -> &Option<String>| {
            let mut all: Vec<&Option<String>> = cells.iter().map(|cell| host(&cell.planned)).collect();
            all.dedup();
            all.len()
        };
        match self.groups.values().next() {
            Some((_, at)) if hosts(|cell| &cell.from) > 1 || hosts(|cell| &cell.to) > 1 => {
                Err(top.wrong_at(at, "groups are measured between two hosts: name one near and one far host"))
            }
            _ => Ok(()),
        }
    }
}
