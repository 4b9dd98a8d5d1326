//! Properties of links that change while a lab is up, by the keys of settings.

use model::{LINK_SETTING, Setting};

use super::{Carrier, LabLink, Topology};
use crate::{LabError, LinkChange};

/// The property that belongs to the interfaces at both ends, unless a direction is named.
const MTU: &str = "mtu";
/// Names of a link's directions, as in a topology file.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];
/// The remedy for a key that is not one.
const KEYS: &str = "write link.KEY for all links, link.A.B.KEY for the one between A and B, link.forward.KEY or link.A.B.reverse.KEY \
                    for one direction, with rate, delay, loss, queue, queue-packets, corrupt, duplicate, discipline or mtu as KEY";

/// What a key stands for.
struct Property<'a> {
    /// The nodes of the link; `None` for all links.
    between: Option<[&'a str; 2]>,
    /// The index of the direction; `None` for both.
    direction: Option<usize>,
    name: &'a str,
}

fn refuse<T>(what: String, remedy: &'static str) -> Result<T, LabError> {
    Err(LabError::Spec { what, remedy })
}

impl<'a> Property<'a> {
    fn of(key: &'a str) -> Result<Self, LabError> {
        let parts: Vec<&str> = key.strip_prefix(LINK_SETTING).unwrap_or_default().split('.').collect();
        let direction = |name: &str| DIRECTIONS.iter().position(|direction| *direction == name);
        let (between, direction, name) = match parts[..] {
            [name] if !name.is_empty() => (None, None, name),
            [way, name] if direction(way).is_some() => (None, direction(way), name),
            [a, b, name] => (Some([a, b]), None, name),
            [a, b, way, name] if direction(way).is_some() => (Some([a, b]), direction(way), name),
            _ => return refuse(format!("'{key}' is not a property of a link"), KEYS),
        };
        Ok(Self { between, direction, name })
    }

    /// Whether it is the MTU of the interfaces, which needs no emulator.
    fn of_interfaces(&self) -> bool {
        self.direction.is_none() && self.name == MTU
    }

    fn matches(&self, topology: &Topology, link: &LabLink) -> bool {
        let names = link.between.map(|index| topology.nodes[index].name.as_str());
        self.between.is_none_or(|[a, b]| names == [a, b] || names == [b, a])
    }

    fn apply(&self, link: &mut LabLink, Setting { key, value }: &Setting) -> Result<(), LabError> {
        if self.of_interfaces() {
            let Ok(mtu) = value.parse() else {
                return refuse(format!("{key}: '{value}' is not an MTU"), "write bytes, such as 1500 or 9000");
            };
            link.mtu = mtu;
            return Ok(());
        }
        let change = change(self.name, value).map_err(|source| LabError::LinkValue { key: key.clone(), source })?;
        for (at, direction) in link.directions.iter_mut().enumerate() {
            if self.direction.is_none_or(|own| own == at) {
                change.apply(direction);
            }
        }
        Ok(())
    }
}

/// A property with its value as in a topology file.
fn change(name: &str, value: &str) -> Result<LinkChange, serde_json::Error> {
    let of = |value: serde_json::Value| serde_json::from_value(serde_json::json!({ "at": "0s", name: value }));
    let text = of(value.into());
    // Counts are numbers in a file.
    match value.parse::<u64>() {
        Ok(number) => of(number.into()).or(text),
        Err(_) => text,
    }
}

impl Topology {
    /// This lab with other properties of its links, given as settings.
    ///
    /// # Errors
    /// A key or value is wrong, there is no such link, or it cannot have such a property.
    pub fn adjusted(&self, settings: &[Setting]) -> Result<Self, LabError> {
        let mut adjusted = self.clone();
        for setting in settings {
            let property = Property::of(&setting.key)?;
            if property.name == "at" {
                return refuse(format!("'{}' is not a property that a plan can vary", setting.key), KEYS);
            }
            let own: Vec<usize> =
                (0..self.links.len()).filter(|index| property.matches(self, &self.links[*index])).collect();
            if own.is_empty() {
                let what = format!("{}: the lab {} has no such link", setting.key, self.name);
                return refuse(what, "name the two ends of a [[link]] in its topology");
            }
            for index in own {
                property.apply(&mut adjusted.links[index], setting)?;
                if !property.of_interfaces() {
                    adjusted.links[index].carrier = Some(Carrier::Emulator);
                }
            }
        }
        adjusted.check()?;
        Ok(adjusted)
    }

    /// This lab with the emulator on each link that any of these settings needs, so that they can be applied while it is up.
    ///
    /// # Errors
    /// As [`adjusted`](Self::adjusted).
    pub fn adjustable<'a>(&self, all: impl IntoIterator<Item = &'a [Setting]>) -> Result<Self, LabError> {
        let mut adjustable = self.clone();
        for settings in all {
            let adjusted = self.adjusted(settings)?;
            for (link, adjusted) in adjustable.links.iter_mut().zip(adjusted.links) {
                link.carrier = link.carrier.or(adjusted.carrier);
            }
        }
        Ok(adjustable)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, NodeKind};
    use super::*;

    fn lab() -> Topology {
        let node = |name: &str| Node { name: name.into(), kind: NodeKind::Host };
        let router = Node { name: "r".into(), kind: NodeKind::Router };
        let links = vec![LabLink::new([0, 1]), LabLink::new([1, 2])];
        Topology { name: "t".into(), nodes: vec![node("a"), router, node("b")], links, ..Topology::default() }
    }

    fn settings(text: &str) -> Vec<Setting> {
        text.split_whitespace().map(|one| one.parse().unwrap()).collect()
    }

    #[test]
    fn a_key_names_all_links_one_link_or_one_direction() {
        let rates = |text: &str| {
            let adjusted = lab().adjusted(&settings(text)).unwrap();
            adjusted
                .links
                .iter()
                .flat_map(|link| link.directions.each_ref().map(|way| way.rate_bps))
                .collect::<Vec<_>>()
        };
        let (slow, fast) = (Some(1_000_000), Some(2_000_000));
        assert_eq!(rates("link.rate=1Mbit"), [slow; 4]);
        assert_eq!(rates("link.rate=1Mbit link.b.r.rate=2Mbit"), [slow, slow, fast, fast]);
        assert_eq!(rates("link.a.r.reverse.rate=1Mbit"), [None, slow, None, None]);
        assert_eq!(rates("link.forward.rate=1Mbit"), [slow, None, slow, None]);
        let other =
            lab().adjusted(&settings("link.delay=10ms link.loss=1% link.queue-packets=50 link.mtu=9000")).unwrap();
        let direction = &other.links[1].directions[1];
        assert_eq!((direction.loss, direction.queue_packets, other.links[0].mtu), (0.01, Some(50), 9_000));
        assert_eq!(direction.delay.as_millis(), 10);
    }

    #[test]
    fn only_links_that_need_it_are_emulated() {
        let carriers = |text: &str| {
            let adjustable = lab().adjustable([settings(text).as_slice()]).unwrap();
            adjustable.links.iter().map(LabLink::carrier).collect::<Vec<_>>()
        };
        assert_eq!(carriers("link.mtu=9000"), [Carrier::Veth; 2]);
        assert_eq!(carriers("link.a.r.rate=1Gbit"), [Carrier::Emulator, Carrier::Veth]);
    }

    #[test]
    fn wrong_keys_and_values_are_named() {
        for (text, part) in [
            ("link.a.x.rate=1Mbit", "link.a.x.rate: the lab t has no such link"),
            ("link.speed=1Mbit", "link.speed: unknown field `speed`"),
            ("link.rate=fast", "link.rate: "),
            ("link.loss=2", "link.loss: '2' is not a percentage"),
            ("link.mtu=9", "9"),
            ("link.a.rate=1", "'link.a.rate' is not a property of a link"),
            ("link.at=1s", "not a property that a plan can vary"),
        ] {
            let error = lab().adjusted(&settings(text)).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
