//! Groups of flows: the options of a command and what differs in each group, as a plan whose cells are the groups, measured at the
//! same time in every trial.

use std::collections::BTreeMap;

use analysis::plan::PlannedCell;
use model::{Direction, Factor, FactorKind, HostSettings, Nanos, Plan, Spec, Stop, Stopping};
use options::{TestKind, TestOptions, any, is_key, row, rows_of, split};
use text::say;

use super::error::PlanError;
use super::parsed::{ParsedPlan, PlanCell};
use crate::mistake::Mistake;
use crate::resolver::Resolver;
use crate::{safe_rate, specs};

/// Most groups: each is a measuring process at both ends, and an agent has at most so many.
pub const MAX_GROUPS: usize = 64;
/// Most characters of a name.
const MAX_NAME: usize = 32;
/// The keys of a group that are no options of a measurement.
const OWN: [&str; 4] = ["name", "direction", "start", "stop"];
/// TestOptions that all groups share, or that simultaneous tests cannot have, each with the reason or the remedy.
const COMMON: [(&str, &str); 7] = [
    ("time", "write `stop`, the end of the group"),
    ("set", "the settings of a host apply to all groups: give it to the command"),
    ("speak", "other programs do not support groups"),
    ("ipv4", "give it to the command"),
    ("ipv6", "give it to the command"),
    ("responsiveness", "its load needs the path to itself"),
    ("find-no-loss", "a search for the highest rate cannot share the path with other groups"),
];

/// What one group is given.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) name: Option<String>,
    start: Option<Nanos>,
    stop: Option<Nanos>,
    /// The options and the direction, in the order of the text.
    keys: Vec<(String, String)>,
}

impl Given {
    /// Takes a key and its value. The names of options and their values are not checked.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<(), PlanError> {
        let in_key = |error| PlanError::Value { key: key.to_owned(), error };
        match key {
            "name" => self.name = Some(name(value)?),
            "start" => self.start = Some(any::<Nanos>(value).map_err(in_key)?),
            "stop" => self.stop = Some(any::<Nanos>(value).map_err(in_key)?),
            "direction" => {
                direction(value)?;
                self.keys.push((key.to_owned(), value.to_owned()));
            }
            _ => match COMMON.iter().find(|(common, _)| *common == split(key).1) {
                Some((_, remedy)) => return Err(PlanError::NotOfGroup { key: key.to_owned(), remedy }),
                None => self.keys.push((key.to_owned(), value.to_owned())),
            },
        }
        Ok(())
    }

    /// The options as fields of a plan's cells.
    pub(super) fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = BTreeMap::new();
        for (key, value) in &self.keys {
            let on = |is: bool| is.to_string();
            match key.as_str() {
                "direction" => {
                    fields.insert("reverse".to_owned(), on(value == "reverse"));
                    fields.insert("both".to_owned(), on(value == "both"));
                }
                // In place of the short form that all cells may share.
                "transport" => {
                    fields.insert("udp".to_owned(), on(false));
                    fields.insert(key.clone(), value.clone());
                }
                _ => {
                    fields.insert(key.clone(), value.clone());
                }
            }
        }
        fields
    }

    /// Gives a spec its start and its end.
    pub(super) fn time(&self, spec: &mut Spec) -> Result<(), PlanError> {
        spec.start_ns = Some(self.start.map_or(0, |start| start.0));
        end(spec, self)
    }
}

/// The plan of a command with groups. Each of `groups` is `KEY=VALUE,...`; what it does not give comes from `common`.
/// `from` and `to` are the hosts, `None` for this one.
///
/// # Errors
/// A mistake, with the group and the key; a measurement that cannot have groups.
pub fn of_groups(
    common: &TestOptions,
    groups: &[String],
    from: Option<&str>,
    to: Option<&str>,
    rule: Stopping,
    resolver: &dyn Resolver,
) -> Result<ParsedPlan, Mistake> {
    if groups.len() > MAX_GROUPS {
        return Err(Mistake::usage(format!("{} groups are too many: use at most {MAX_GROUPS}", groups.len())));
    }
    let (mut names, mut sets) = (Vec::new(), BTreeMap::new());
    let mut cells = Vec::new();
    for (number, text) in (1..).zip(groups) {
        let place = format!("group {number}");
        let given = read(text).map_err(|error| wrong(&place, &error))?;
        let name = given.name.clone().unwrap_or_else(|| number.to_string());
        let place = given.name.as_ref().map_or(place, |name| format!("group {number} ({name})"));
        if names.contains(&name) {
            return Err(wrong(&place, &PlanError::SameName { name }));
        }
        let spec = spec_of(common, &given, [from, to], resolver).map_err(|error| wrong(&place, &error))?;
        let levels: BTreeMap<String, String> = [(Factor::GROUP.to_owned(), name.clone())].into();
        let planned = PlannedCell {
            levels,
            fields: given.keys.iter().cloned().collect(),
            settings: spec.settings.clone(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
            plot: 0,
            combination: 0,
            together: true,
        };
        cells.push(PlanCell { planned, spec: spec.into() });
        sets.insert(name.clone(), shown(&given));
        names.push(name);
    }
    let factor = Factor {
        name: Factor::GROUP.into(),
        key: Factor::GROUP.into(),
        kind: FactorKind::Set,
        levels: names,
        sets,
        together: true,
        ..Factor::default()
    };
    let settings = cells.first().map_or_else(HostSettings::default, |cell| cell.spec.settings.clone());
    let plan = Plan {
        factors: vec![factor],
        from: from.map(str::to_owned).into_iter().collect(),
        to: to.map(str::to_owned).into_iter().collect(),
        settings,
        ..Plan::default()
    };
    Ok(ParsedPlan { plan, name: None, fleet: None, rule, cells })
}

fn wrong(place: &str, error: &PlanError) -> Mistake {
    // A group's keys are written as such, not as flags.
    Mistake::in_plan(say!("{place}: {error}"))
}

/// The keys of a group as they were written, for the run's record.
fn shown(given: &Given) -> BTreeMap<String, String> {
    let time = |key: &str, time: Option<Nanos>| Some((key.to_owned(), time?.to_string()));
    given.keys.iter().cloned().chain(time("start", given.start)).chain(time("stop", given.stop)).collect()
}

/// Reads `KEY=VALUE,...`. A key without a value is a switch; a part that is no key belongs to the value before it, because values
/// can contain commas.
fn read(text: &str) -> Result<Given, PlanError> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), parts.last_mut()) {
            // A parameter of a congestion control, as in `cc=fast:alpha=200,gamma=0.3`.
            (Some((key, _)), Some((last, value)))
                if split(last).1 == "cc" && value.contains(':') && !is_known(key.trim()) =>
            {
                value.push(',');
                value.push_str(part.trim());
            }
            (Some((key, value)), _) => parts.push((key.trim().to_owned(), value.trim().to_owned())),
            (None, _) if is_key(split(part.trim()).1) => parts.push((part.trim().to_owned(), "true".into())),
            (None, Some((_, value))) => {
                value.push(',');
                value.push_str(part.trim());
            }
            (None, None) => return Err(unknown_key(part.trim())),
        }
    }
    let mut given = Given::default();
    let mut seen: Vec<String> = Vec::new();
    for (key, value) in parts {
        if seen.contains(&key) {
            return Err(PlanError::Twice { key });
        }
        seen.push(key.clone());
        let own = OWN.contains(&key.as_str()) || COMMON.iter().any(|(common, _)| *common == split(&key).1);
        if !own && row(split(&key).1, TestKind::Stream).is_none() {
            return Err(unknown_key(&key));
        }
        given.take(&key, &value)?;
    }
    Ok(given)
}

fn is_known(key: &str) -> bool {
    OWN.contains(&key) || is_key(split(key).1)
}

fn unknown_key(key: &str) -> PlanError {
    let common = |key: &str| COMMON.iter().any(|(common, _)| *common == key);
    let rows = rows_of(TestKind::Stream).filter(|row| !common(row.key));
    let known = OWN.into_iter().chain(rows.map(|row| row.key)).collect();
    PlanError::UnknownKey { key: key.to_owned(), known }
}

fn name(text: &str) -> Result<String, PlanError> {
    let fits = !text.is_empty() && text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(PlanError::GroupName { text: text.to_owned(), most: MAX_NAME }) }
}

/// The spec of a group.
fn spec_of(
    common: &TestOptions,
    given: &Given,
    [from, to]: [Option<&str>; 2],
    resolver: &dyn Resolver,
) -> Result<Spec, PlanError> {
    let mut options = common.clone();
    for (key, value) in &given.keys {
        replace(&mut options, key);
        if key == "direction" {
            (options.reverse, options.both) = direction(value)?;
        } else {
            options.set(key, value)?;
        }
    }
    safe_rate::check(&options, from, to, resolver)?;
    let mut spec = specs::one(&options, resolver)?;
    given.time(&mut spec)?;
    possible(&spec)?;
    let transport = engine::transport::transport(spec.transport.as_str())?;
    if to.is_none() && !transport.facts().one_host {
        return Err(PlanError::NoHost { transport: spec.transport });
    }
    engine::pattern::check(&spec)?;
    Ok(spec)
}

/// Removes options of the command that a group's key replaces under another name.
fn replace(options: &mut TestOptions, key: &str) {
    match key {
        "udp" => options.transport = None,
        "transport" => options.udp = false,
        "direction" | "reverse" | "both" => (options.reverse, options.both) = (false, false),
        "bytes" => options.count = None,
        "count" => options.bytes = None,
        "wait" => options.spin = false,
        "spin" => options.wait = None,
        _ => {}
    }
}

fn direction(text: &str) -> Result<(bool, bool), PlanError> {
    let names = [("send", Direction::Send), ("reverse", Direction::Reverse), ("both", Direction::Both)];
    let found = names.iter().find(|(name, _)| *name == text);
    let (_, found) = found.ok_or_else(|| PlanError::Direction { text: text.to_owned() })?;
    Ok((*found == Direction::Reverse, *found == Direction::Both))
}

/// The length of a group: from its start to its stop, which without `stop` is the end of the command's trial.
fn end(spec: &mut Spec, given: &Given) -> Result<(), PlanError> {
    let start = given.start.unwrap_or(Nanos(0));
    let Stop::TimeNs(time) = spec.stop else {
        return match given.stop {
            Some(_) => Err(PlanError::StopAndAmount),
            None => Ok(()),
        };
    };
    let whole = given.stop.map_or(time, |stop| stop.0);
    let length = whole.saturating_sub(start.0);
    match given.stop {
        Some(stop) if length == 0 => return Err(PlanError::StopBeforeStart { stop, start }),
        None if length == 0 => {
            return Err(PlanError::StartAfterEnd { start, end: Nanos(whole) });
        }
        _ => {}
    }
    if length <= spec.warmup_ns {
        return Err(PlanError::OnlyWarmup { length: Nanos(length), warmup: Nanos(spec.warmup_ns) });
    }
    spec.stop = Stop::TimeNs(length);
    Ok(())
}

/// Refuses what cannot be measured at the same time as other groups.
pub(super) fn possible(spec: &Spec) -> Result<(), PlanError> {
    let transport = engine::transport::transport(spec.transport.as_str())?;
    if transport.launcher().is_some() {
        return Err(PlanError::Launched { transport: spec.transport.clone() });
    }
    if transport.capabilities().single_ended {
        return Err(PlanError::OneEnd { transport: spec.transport.clone() });
    }
    if spec.engine.auto {
        return Err(PlanError::EngineOfGroup);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use text::RateUnit;

    use super::*;
    use crate::testing::TestHost;

    fn common() -> TestOptions {
        TestOptions { time: Some(Nanos(10_000_000_000)), flows: Some(1), ..TestOptions::new(TestKind::Stream) }
    }

    fn of(common: &TestOptions, groups: &[&str]) -> Result<ParsedPlan, String> {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        of_groups(common, &groups, None, Some("127.0.0.1"), Stopping::default(), &TestHost)
            .map_err(|mistake| mistake.shown(RateUnit::Bits))
    }

    #[test]
    fn a_group_has_its_keys_and_the_commands_options_otherwise() {
        let common = TestOptions { warmup: Some(Nanos(500_000_000)), ..common() };
        let text = "flows=4, rate=100M,dscp=ef,block=1KiB,cc=bbr,start=2s,stop=8s,direction=reverse,sndbuf=1MiB,2MiB";
        let parsed = of(&common, &[text, "name=bulk,cc=cubic"]).unwrap_or_else(|error| panic!("{error}"));
        let specs: Vec<_> = parsed.specs().collect();
        let [first, second] = specs[..] else { panic!("{specs:?}") };
        assert_eq!((first.flows, first.rate_bps, first.block), (4, Some(100_000_000), 1024));
        assert_eq!((first.near.cc.as_deref(), first.far.dscp), (Some("bbr"), Some(46)));
        assert_eq!((first.near.sndbuf, first.far.sndbuf), (Some(1 << 20), Some(2 << 20)));
        assert_eq!((first.direction, first.start_ns), (Direction::Reverse, Some(2_000_000_000)));
        assert_eq!(first.stop, Stop::TimeNs(6_000_000_000), "the warm-up is a part of it");
        assert_eq!((second.flows, second.stop, second.start_ns), (1, Stop::TimeNs(10_000_000_000), Some(0)));
        let levels: Vec<&str> = parsed.cells.iter().map(|cell| cell.planned.levels[Factor::GROUP].as_str()).collect();
        assert_eq!(levels, ["1", "bulk"]);
        assert!(
            parsed
                .cells
                .iter()
                .all(|cell| cell.planned.combination == 0 && cell.planned.to.as_deref() == Some("127.0.0.1"))
        );
        assert!(parsed.plan.groups().is_some_and(|factor| factor.sets["1"]["start"] == "2.00 s"));
    }

    #[test]
    fn values_may_contain_commas() {
        let parsed =
            of(&common(), &["cc=fast:alpha=200,gamma=0.3,flows=2", "near.cc=cubic,far.cc=reno", "cc=cubic,reno"]);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}"));
        let specs: Vec<_> = parsed.specs().collect();
        let of_ends = |spec: &Spec| [&spec.near, &spec.far].map(|end| end.cc.clone().unwrap_or_default());
        assert_eq!((specs[0].flows, of_ends(specs[0])), (2, ["fast:alpha=200,gamma=0.3"; 2].map(str::to_owned)));
        assert_eq!(of_ends(specs[1]), ["cubic", "reno"]);
        assert_eq!(of_ends(specs[2]), ["cubic", "reno"]);
    }

    #[test]
    fn a_group_may_have_a_mix_of_sizes_or_one_size_in_its_place() {
        let mut common = TestOptions { udp: true, ..common() };
        common.set("block", "imix").unwrap();
        let parsed = of(&common, &["block=imix:64*2,594,flows=2", "block=1KiB", "rate=1M"]);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}"));
        let specs: Vec<_> = parsed.specs().collect();
        let words: Vec<String> = specs.iter().map(|spec| spec.block_words()).collect();
        assert_eq!((specs[0].flows, words), (2, vec!["imix:64*2,594".into(), "1 KiB".into(), "imix".into()]));
    }

    #[test]
    fn a_key_replaces_the_commands_option_of_another_name() {
        let common = TestOptions { udp: true, reverse: true, ..common() };
        let parsed = of(&common, &["transport=tcp,direction=send", "both", "unpaced"]);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}"));
        let specs: Vec<_> = parsed.specs().collect();
        assert_eq!((specs[0].transport.as_str(), specs[0].direction), ("tcp", Direction::Send));
        assert_eq!((specs[1].transport.as_str(), specs[1].direction), ("udp", Direction::Both));
        assert!(specs[1].paced_to_receiver && !specs[2].paced_to_receiver);
    }

    #[test]
    fn errors_name_the_group_and_the_key() {
        let wrong = |groups: &[&str]| of(&common(), groups).unwrap_err();
        for (groups, expected) in [
            (&["flow=1"] as &[&str], "group 1: a group has no 'flow'; did you mean 'flows'?"),
            (&["cc=cubic", "name=web,flows=x"], "group 2 (web): flows: 'x' is not a whole number"),
            (&["start=4s,stop=2s"], "group 1: `stop` (2.00 s) is not after `start` (4.00 s)"),
            (&["start=10s"], "group 1: `start` (10.0 s) is not before the end of the trial (10.0 s)"),
            (&["time=2s"], "group 1: `time` is not a key of a group: write `stop`"),
            (&["set=near:cc.default=reno"], "group 1: `set` is not a key of a group: the settings of a host"),
            (&["flows=1,flows=2"], "group 1: `flows` is given twice"),
            (&["name=a", "name=a"], "group 2 (a): two groups have the name 'a'"),
            (&["name="], "group 1: name: '' is not a name of 1 to 32 characters"),
            (&["direction=up"], "group 1: direction: 'up' is not one of send, reverse, both"),
            (&["bytes=1MiB,stop=2s"], "group 1: `stop` and an amount"),
            (&["transport=memcpy"], "group 1: memcpy cannot have groups: it has one end only"),
            (&["reply=3"], "group 1: a group has no 'reply'"),
            (&["find-no-loss=true"], "group 1: `find-no-loss` is not a key of a group"),
            (&[""], "group 1: a group has no ''"),
        ] {
            let found = wrong(groups);
            assert!(found.starts_with(expected), "{groups:?}: {found}");
        }
        let many: Vec<String> = (0..=MAX_GROUPS).map(|_| "flows=1".to_owned()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(wrong(&many).contains("use at most 64"));
        let alone =
            of_groups(&common(), &["flows=1".to_owned()], None, None, Stopping::default(), &TestHost).unwrap_err();
        assert!(alone.to_string().contains("tcp needs a far host"));
    }
}
