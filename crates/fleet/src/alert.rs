//! Conditions of alerts with the hosts that they are for: `goodput<500Mbit rack=r1`.

use analysis::history::{Condition, ConditionError, Rule};
use command::Failure;
use plan::Fleet;

/// A condition, and the selection of the hosts that it is for.
///
/// # Errors
/// It is not a condition.
pub fn condition(text: &str) -> Result<(Condition, Option<String>), ConditionError> {
    let limit = text.find(['<', '>']).map_or(text.len(), |at| at + 1);
    let (figure, rest) = text.split_at(limit);
    let rest = rest.trim_start();
    let (limit, hosts) = match rest.split_once(char::is_whitespace) {
        Some((limit, hosts)) => (limit, Some(hosts.trim())),
        None => (rest, None),
    };
    let condition = format!("{figure}{limit}").parse()?;
    Ok((condition, hosts.filter(|hosts| !hosts.is_empty()).map(str::to_owned)))
}

/// The rules of these texts for the hosts of a fleet.
///
/// # Errors
/// One is not a condition, or selects no host.
pub fn rules(fleet: &Fleet, texts: &[String]) -> Result<Vec<Rule>, Failure> {
    let rule = |text: &String| {
        let (condition, hosts) = condition(text).map_err(Failure::usage)?;
        let selected = hosts.map(|hosts| fleet.select(&hosts)).transpose().map_err(Failure::usage)?;
        let hosts = selected.map(|hosts| hosts.into_iter().map(|host| host.name.clone()).collect());
        Ok(Rule { condition, hosts, text: text.clone() })
    };
    texts.iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::FleetHost;

    #[test]
    fn a_rule_is_for_all_pairs_or_for_those_of_some_hosts() {
        let hosts = ["a", "b", "c"].map(FleetHost::named).into();
        let fleet = Fleet { source: "f".into(), hosts, ..Fleet::default() };
        let of = |texts: &[&str]| rules(&fleet, &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let found = of(&["goodput<500Mbit", "rtt > 2ms a,b"]).unwrap();
        assert_eq!((found[0].hosts.is_none(), found[0].condition.to_string()), (true, "goodput<500Mbit".into()));
        assert_eq!((found[1].hosts.as_ref().unwrap().len(), found[1].condition.to_string()), (2, "rtt>2ms".into()));
        assert!(of(&["rtt>2ms x"]).unwrap_err().to_string().contains("f has no host 'x'"));
        assert!(of(&["rtt"]).unwrap_err().to_string().contains("'rtt' is not a condition"));
    }
}
