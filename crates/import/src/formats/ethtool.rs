//! `ethtool DEV`, and its options -i, -k, -g, -c, -a and -l: settings of a network device.

use model::Device;

use super::ImportFormat;
use super::interface_list::Interfaces;
use crate::error::HostError;
use crate::listing::{Certainty, TextReading};
use crate::text::lines;

/// A network device by ethtool.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "ethtool",
    help: "ethtool DEV, -i, -k, -g, -c, -a, -l: settings of the near host's network devices",
    detect,
    read,
};

/// What the lines below a head are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Settings,
    Features,
    Rings { most: bool },
    Coalescing,
    Pause,
    Channels { most: bool },
}

/// Heads of listings with the name of their device.
const HEADS: [(&str, Part); 6] = [
    ("Settings for ", Part::Settings),
    ("Features for ", Part::Features),
    ("Ring parameters for ", Part::Rings { most: false }),
    ("Coalesce parameters for ", Part::Coalescing),
    ("Pause parameters for ", Part::Pause),
    ("Channel parameters for ", Part::Channels { most: false }),
];

fn head(line: &str) -> Option<(&str, Part)> {
    HEADS.iter().find_map(|(words, part)| {
        let name = line.trim().strip_prefix(words)?.strip_suffix(':')?;
        (!name.contains(char::is_whitespace)).then_some((name, *part))
    })
}

/// The device of `ethtool -i`, which names none: the command before it does.
fn asked(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "ethtool").skip(1);
    let name = words.find(|word| !word.starts_with('-'))?;
    words.next().is_none().then_some(name)
}

fn detect(text: &str) -> Certainty {
    let driver = |line: &str| line.starts_with("driver: ");
    let of_driver = || {
        lines(text).any(|(_, line)| driver(line)) && lines(text).any(|(_, line)| line.starts_with("firmware-version:"))
    };
    if lines(text).any(|(_, line)| head(line).is_some()) || of_driver() { Certainty::Certain } else { Certainty::No }
}

fn read(text: &str) -> TextReading {
    let mut found = Interfaces::default();
    let mut refused = Vec::new();
    let mut of: Option<(String, Part)> = None;
    let mut named: Option<String> = None;
    for (number, line) in lines(text) {
        if let Some((name, part)) = head(line) {
            of = Some((name.to_owned(), part));
            continue;
        }
        if let Some(name) = asked(line) {
            (named, of) = (Some(name.to_owned()), None);
            continue;
        }
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        if ["driver", "version", "firmware-version", "bus-info"].contains(&key)
            && !line.starts_with(char::is_whitespace)
        {
            match &named {
                Some(name) => driver(&mut found, name, key, value),
                None if key == "driver" => refused.push(number),
                None => {}
            }
            continue;
        }
        let Some((name, part)) = &mut of else { continue };
        match (&mut *part, key) {
            (Part::Rings { most } | Part::Channels { most }, "Pre-set maximums") => *most = true,
            (Part::Rings { most } | Part::Channels { most }, "Current hardware settings") => *most = false,
            _ => fact(&mut found, name, *part, key, value),
        }
    }
    let mut reading = found.reading("ethtool");
    for line in refused {
        reading.refuse(line, HostError::NoDevice);
    }
    reading
}

fn driver(found: &mut Interfaces, name: &str, key: &str, value: &str) {
    let interface = found.of(name);
    let value = Some(value.to_owned()).filter(|value| !value.is_empty());
    if key == "driver" {
        interface.driver = value;
        return;
    }
    let device = interface.device.get_or_insert_default();
    match key {
        "version" => device.driver_version = value,
        "firmware-version" => device.firmware = value,
        _ => {
            interface.pci_slot.clone_from(&value);
            device.bus = value;
        }
    }
}

fn fact(found: &mut Interfaces, name: &str, part: Part, key: &str, value: &str) {
    let interface = found.of(name);
    if part == Part::Settings {
        match key {
            "Speed" => interface.speed_mbps = value.strip_suffix("Mb/s").and_then(|speed| speed.parse().ok()),
            "Duplex" => interface.duplex = Some(value.to_lowercase()).filter(|duplex| !duplex.starts_with("unknown")),
            "Link detected" => interface.state = Some(if value == "yes" { "up" } else { "down" }.to_owned()),
            "Auto-negotiation" => {
                let link = interface.device.get_or_insert_default().link.get_or_insert_default();
                link.autoneg = Some(value == "on");
            }
            _ => {}
        }
        return;
    }
    let device: &mut Device = interface.device.get_or_insert_default();
    let count = value.parse::<u64>().ok();
    let ring = |most: bool| format!("{}{}", key.to_lowercase().replace(' ', "-"), if most { "-max" } else { "" });
    match part {
        Part::Features => {
            device.offloads.insert(key.to_owned(), value.to_owned());
        }
        Part::Rings { most } => device.rings.extend(count.map(|count| (ring(most), count))),
        Part::Channels { most } => device.channels.extend(count.map(|count| (ring(most), count))),
        Part::Coalescing => device.coalescing.extend(count.map(|count| (key.to_owned(), count))),
        Part::Pause => {
            let key = if key == "Autonegotiate" { "autoneg".to_owned() } else { key.to_lowercase() };
            device.pause.insert(key, value == "on");
        }
        Part::Settings => {}
    }
}
