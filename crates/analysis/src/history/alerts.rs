//! Alerts: raised once when a condition holds, resolved once when the value is clear of the limit again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{AlertEvent, AlertState, HistoryPass, median, units};
use text::{Rate, Said, Text, Time, say};

use super::condition::{Condition, FollowedFigure, Limit};
use super::{MeshPass, PairFigure};

/// How far beyond its limit, as a share of it, a value must be to resolve an alert.
const CLEAR: f64 = 0.05;
/// Passes whose median is usual for a pair; fewest of them with which a share is judged.
const USUAL: usize = 96;
const LEAST_USUAL: usize = 3;
/// The condition of a host without any value.
const NO_VALUE: &str = "no value";

/// A condition for some pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The condition.
    pub condition: Condition,
    /// The pairs of which at least one host is one of these; `None` for all.
    pub hosts: Option<BTreeSet<String>>,
    /// The rule as it was written.
    pub text: String,
}

/// What an alert is of: the number of its rule and the pair, or a host without any value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Host(String),
    Pair(usize, PairFigure),
}

/// The alerts of a series. They follow from its passes alone, so those of stored passes give them again.
#[derive(Debug, Clone)]
pub struct Alerts {
    series: String,
    rules: Vec<Rule>,
    /// Passes in a row in which a condition holds before its alert is raised.
    after: u32,
    /// In how many passes in a row it has held.
    held: BTreeMap<Of, u32>,
    raised: BTreeMap<Of, AlertState>,
    /// The last values of each figure that a share is compared with, without those that raised an alert.
    usual: BTreeMap<(usize, PairFigure), VecDeque<f64>>,
    /// The figures of the pass under way that have been judged.
    judged: BTreeSet<PairFigure>,
}

impl Alerts {
    /// No alert of the series with this name; one is raised `after` that many passes in a row in which its condition holds.
    #[must_use]
    pub fn new(series: &str, rules: Vec<Rule>, after: u32) -> Self {
        Self {
            series: series.to_owned(),
            rules,
            after,
            held: BTreeMap::new(),
            raised: BTreeMap::new(),
            usual: BTreeMap::new(),
            judged: BTreeSet::new(),
        }
    }

    /// The alerts that are raised.
    pub fn raised(&self) -> impl Iterator<Item = &AlertState> {
        self.raised.values()
    }

    /// Takes a figure of a pass that is under way, once it is known. Returns what it raises and resolves.
    pub fn figure(&mut self, pass: &HistoryPass, key: &PairFigure, value: f64) -> Vec<AlertEvent> {
        let mut events = Vec::new();
        if !self.judged.insert(key.clone()) {
            return events;
        }
        for number in 0..self.rules.len() {
            let rule = self.rules[number].clone();
            let has = |hosts: &BTreeSet<String>| hosts.contains(&key.from) || hosts.contains(&key.to);
            if key.figure == rule.condition.figure && rule.hosts.as_ref().is_none_or(has) {
                self.compare(pass, number, &rule, key, value, &mut events);
            }
        }
        events
    }

    /// Takes a pass, of which some figures may have been taken before. Returns what it raises and resolves; a pair without a value keeps
    /// its alerts.
    pub fn pass(&mut self, pass: &MeshPass) -> Vec<AlertEvent> {
        let mut events = Vec::new();
        let silent = pass.silent();
        for host in &pass.hosts {
            let of = Of::Host(host.clone());
            let is_silent = silent.contains(host.as_str());
            let state = || AlertState {
                condition: NO_VALUE.into(),
                from: host.clone(),
                since_unix_ns: pass.pass.started_unix_ns,
                ..AlertState::default()
            };
            let text = |raised: bool| {
                let what = if raised {
                    "has no value: it did not answer, or all its tests failed"
                } else {
                    "has values again"
                };
                say!("{host} {what}")
            };
            self.turn(&pass.pass, of, Some(is_silent), state, text, &mut events);
        }
        for (key, value) in &pass.values {
            events.extend(self.figure(&pass.pass, key, *value));
        }
        self.judged.clear();
        events
    }

    /// The pass that was under way was cut off: what has been judged of it stays.
    pub fn cut_off(&mut self) {
        self.judged.clear();
    }

    /// Compares one value with the limit of a rule.
    fn compare(
        &mut self,
        pass: &HistoryPass,
        number: usize,
        rule: &Rule,
        key: &PairFigure,
        value: f64,
        events: &mut Vec<AlertEvent>,
    ) {
        let usual = self.usual.entry((number, key.clone())).or_default();
        let limit = match rule.condition.limit {
            Limit::Value(limit) => Some(limit),
            Limit::Share(share) => {
                let known: Vec<f64> = usual.iter().copied().collect();
                median(&known).filter(|_| known.len() >= LEAST_USUAL).map(|middle| middle * (1.0 + share))
            }
        };
        let above = rule.condition.above;
        let holds = limit.is_some_and(|limit| if above { value > limit } else { value < limit });
        let clear = limit.is_some_and(|limit| {
            if above { value < limit * (1.0 - CLEAR) || value == 0.0 } else { value > limit * (1.0 + CLEAR) }
        });
        let of = Of::Pair(number, key.clone());
        if !holds && !self.raised.contains_key(&of) {
            usual.push_back(value);
            if usual.len() > USUAL {
                usual.pop_front();
            }
        }
        let turn = if holds { Some(true) } else { clear.then_some(false) };
        let state = || AlertState {
            condition: rule.text.clone(),
            from: key.from.clone(),
            to: Some(key.to.clone()),
            levels: key.levels.clone(),
            value: Some(value),
            limit,
            unit: key.figure.unit().into(),
            since_unix_ns: pass.started_unix_ns,
        };
        let text = |raised: bool| {
            let levels = if key.levels.is_empty() { String::new() } else { format!(" ({})", key.levels) };
            let side = match (above, raised) {
                (true, true) | (false, false) => "above",
                _ => "below",
            };
            let limit = limit.map_or_else(Text::default, |limit| say!(", {side} {}", shown(key.figure, limit)));
            say!(
                "{} → {}{levels}: {} {}{limit} ({})",
                key.from,
                key.to,
                key.figure.name(),
                shown(key.figure, value),
                rule.text
            )
        };
        self.turn(pass, of, turn, state, text, events);
    }

    /// Raises or resolves one alert; `None` leaves it as it is.
    fn turn(
        &mut self,
        pass: &HistoryPass,
        of: Of,
        raised: Option<bool>,
        state: impl Fn() -> AlertState,
        text: impl Fn(bool) -> Text,
        events: &mut Vec<AlertEvent>,
    ) {
        let event = |name: &str, raised, alert| AlertEvent {
            event: name.to_owned(),
            series: self.series.clone(),
            run: Some(pass.run.clone()).filter(|run| !run.is_empty()),
            at_unix_ns: pass.started_unix_ns,
            alert,
            text: text(raised),
        };
        let held = match raised {
            Some(true) => {
                let held = self.held.entry(of.clone()).or_default();
                *held = held.saturating_add(1);
                *held
            }
            _ => {
                self.held.remove(&of);
                0
            }
        };
        match (raised, self.raised.get(&of)) {
            (Some(true), None) if held >= self.after => {
                events.push(event("raised", true, state()));
                self.raised.insert(of, state());
            }
            (Some(false), Some(before)) => {
                events.push(event("resolved", false, AlertState { since_unix_ns: before.since_unix_ns, ..state() }));
                self.raised.remove(&of);
            }
            _ => {}
        }
    }
}

/// A value with its unit.
fn shown(figure: FollowedFigure, value: f64) -> Text {
    match figure {
        FollowedFigure::Goodput => Rate(value).say(),
        FollowedFigure::Rtt | FollowedFigure::RttP99 => Time(value).say(),
        FollowedFigure::Transactions => say!("{}/s", units::three_digits(value)),
        FollowedFigure::Loss => say!("{} %", units::three_digits(100.0 * value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(text: &str, hosts: Option<&[&str]>) -> Rule {
        let hosts = hosts.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect());
        Rule { condition: text.parse().unwrap(), hosts, text: text.into() }
    }

    /// A pass with these values of the goodput from a to b and from a to c, in Mbit/s.
    fn pass(at: u64, values: [Option<f64>; 2]) -> MeshPass {
        let key = |to: &str| PairFigure {
            from: "a".into(),
            to: to.into(),
            levels: String::new(),
            figure: FollowedFigure::Goodput,
        };
        let known = ["b", "c"].into_iter().zip(values);
        MeshPass {
            pass: HistoryPass { run: format!("r{at}"), started_unix_ns: at },
            values: known.filter_map(|(to, value)| Some((key(to), value? * 1e6))).collect(),
            hosts: ["a", "b", "c"].map(str::to_owned).into(),
        }
    }

    fn said(alerts: &mut Alerts, at: u64, values: [Option<f64>; 2]) -> Vec<String> {
        alerts
            .pass(&pass(at, values))
            .into_iter()
            .map(|event| format!("{}: {}", event.event, event.text.plain()))
            .collect()
    }

    #[test]
    fn an_alert_is_raised_once_and_resolved_once_beyond_its_limit() {
        let mut alerts = Alerts::new("w", vec![rule("goodput<500Mbit", None)], 1);
        assert_eq!(said(&mut alerts, 0, [Some(900.0), Some(900.0)]), [""; 0]);
        let raised = said(&mut alerts, 1, [Some(400.0), Some(900.0)]);
        assert_eq!(raised, ["raised: a → b: goodput 400 Mbit/s, below 500 Mbit/s (goodput<500Mbit)"]);
        assert_eq!(said(&mut alerts, 2, [Some(300.0), Some(900.0)]), [""; 0]);
        assert_eq!(said(&mut alerts, 3, [Some(510.0), Some(900.0)]), [""; 0], "not clear of it");
        assert_eq!(
            said(&mut alerts, 4, [None, Some(900.0)]),
            ["raised: b has no value: it did not answer, or all its tests failed"]
        );
        assert_eq!(alerts.raised().count(), 2, "a pair without a value keeps its alert");
        let resolved = alerts.pass(&pass(5, [Some(900.0), Some(900.0)]));
        let texts: Vec<String> = resolved.iter().map(|event| event.text.plain()).collect();
        assert_eq!(texts, ["b has values again", "a → b: goodput 900 Mbit/s, above 500 Mbit/s (goodput<500Mbit)"]);
        assert_eq!((resolved[1].alert.since_unix_ns, resolved[1].run.as_deref()), (1, Some("r5")));
        assert_eq!(alerts.raised().count(), 0);
    }

    #[test]
    fn a_drop_is_against_the_usual_value_and_does_not_become_usual() {
        let mut alerts = Alerts::new("w", vec![rule("drop>20%", None)], 1);
        assert_eq!(said(&mut alerts, 0, [Some(100.0), Some(900.0)]), [""; 0]);
        assert_eq!(said(&mut alerts, 1, [Some(10.0), Some(900.0)]), [""; 0], "nothing is usual yet");
        for at in 2..6 {
            assert_eq!(said(&mut alerts, at, [Some(100.0), Some(900.0)]), [""; 0]);
        }
        assert_eq!(said(&mut alerts, 6, [Some(70.0), Some(890.0)]).len(), 1);
        for at in 7..500 {
            assert_eq!(said(&mut alerts, at, [Some(70.0), Some(900.0)]), [""; 0]);
        }
        assert_eq!(alerts.raised().count(), 1);
        assert_eq!(said(&mut alerts, 500, [Some(98.0), Some(900.0)]).len(), 1);
    }

    #[test]
    fn a_figure_that_is_taken_while_the_pass_is_under_way_raises_its_alert_then_and_not_again() {
        let rules = vec![rule("goodput<500Mbit", None), rule("drop>30%", None)];
        let (mut early, mut whole) = (Alerts::new("w", rules.clone(), 2), Alerts::new("w", rules, 2));
        for (at, value) in [900.0, 900.0, 900.0, 400.0, 400.0, 400.0, 900.0].into_iter().enumerate() {
            let pass = pass(at as u64, [Some(value), None]);
            let (key, value) = pass.values.first_key_value().unwrap();
            let first: Vec<String> =
                early.figure(&pass.pass, key, *value).into_iter().map(|event| event.event).collect();
            let expected: &[&str] = match at {
                4 => &["raised", "raised"],
                6 => &["resolved", "resolved"],
                _ => &[],
            };
            assert_eq!(first, expected, "{at}");
            let silent = early.pass(&pass);
            assert!(silent.iter().all(|event| event.alert.condition == NO_VALUE), "{silent:?}");
            whole.pass(&pass);
            assert_eq!(early.raised().collect::<Vec<_>>(), whole.raised().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_rule_of_some_hosts_leaves_others_alone() {
        let mut alerts = Alerts::new("w", vec![rule("goodput<500Mbit", Some(&["c"]))], 1);
        let raised = said(&mut alerts, 0, [Some(1.0), Some(1.0)]);
        assert!(raised.len() == 1 && raised[0].contains("a → c"), "{raised:?}");
    }

    #[test]
    fn a_condition_holds_for_some_passes_in_a_row_before_its_alert() {
        let mut alerts = Alerts::new("w", vec![rule("goodput<500Mbit", None)], 3);
        let raised: Vec<usize> = [400.0, 400.0, 900.0, 400.0, 400.0, 400.0, 400.0]
            .into_iter()
            .zip(0..)
            .map(|(value, at)| said(&mut alerts, at, [Some(value), Some(900.0)]).len())
            .collect();
        assert_eq!(raised, [0, 0, 0, 0, 0, 1, 0]);
    }

    proptest! {
        #[test]
        fn raised_and_resolved_alternate_and_a_replay_has_the_same_state(values in prop::collection::vec(prop::option::of(1.0..1000.0f64), 1..60)) {
            let rules = vec![rule("goodput<500Mbit", None), rule("drop>30%", None)];
            let (mut one, mut other) = (Alerts::new("w", rules.clone(), 1), Alerts::new("w", rules, 1));
            let mut last: BTreeMap<(String, Option<String>), String> = BTreeMap::new();
            for (at, value) in values.iter().enumerate() {
                for event in one.pass(&pass(at as u64, [*value, Some(900.0)])) {
                    let key = (event.alert.condition.clone() + &event.alert.from, event.alert.to.clone());
                    let before = last.insert(key, event.event.clone());
                    prop_assert_ne!(before.unwrap_or_else(|| "resolved".into()), event.event);
                }
            }
            for (at, value) in values.iter().enumerate() {
                other.pass(&pass(at as u64, [*value, Some(900.0)]));
            }
            prop_assert_eq!(one.raised().collect::<Vec<_>>(), other.raised().collect::<Vec<_>>());
            let open = last.values().filter(|event| *event == "raised").count();
            prop_assert_eq!(open, one.raised().count());
        }
    }
}
