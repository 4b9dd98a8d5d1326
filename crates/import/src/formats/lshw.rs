//! `lshw -short -class network`, and the blocks of `lshw -class network`.

use super::ImportFormat;
use super::interface_list::Interfaces;
use crate::listing::{Certainty, TextReading};
use crate::text::lines;

/// Network devices by lshw.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "lshw",
    help: "lshw -class network, with and without -short: the near host's network devices",
    detect,
    read,
};

fn is_head(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words == ["H/W", "path", "Device", "Class", "Description"]
}

fn is_block(line: &str) -> bool {
    line.trim_start().starts_with("*-network")
}

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| is_head(line) || is_block(line)) { Certainty::Certain } else { Certainty::No }
}

/// The facts of a block, until its interface is known.
#[derive(Default)]
struct Block {
    name: Option<String>,
    facts: Vec<(String, String)>,
}

fn read(text: &str) -> TextReading {
    let mut found = Interfaces::default();
    let mut table = false;
    let mut block: Option<Block> = None;
    for (_, line) in lines(text) {
        if is_head(line) {
            table = true;
        } else if is_block(line) {
            keep(&mut found, block.replace(Block::default()));
            table = false;
        } else if table {
            // The path, the device, the class, then words. A device without an interface has no second column.
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [path, name, "network", product @ ..] if path.starts_with('/') => {
                    let device = found.begin(name).device.get_or_insert_default();
                    device.product = Some(product.join(" ")).filter(|product| !product.is_empty());
                    device.bus = Some((*path).to_owned());
                }
                [path, "network", ..] if path.starts_with('/') => {}
                [rule] if rule.chars().all(|c| c == '=') => {}
                _ => table = false,
            }
        } else if let Some(open) = &mut block {
            match line.trim().split_once(": ") {
                Some(("logical name", name)) => open.name = Some(name.trim().to_owned()),
                Some((key, value)) => open.facts.push((key.to_owned(), value.trim().to_owned())),
                None => keep(&mut found, block.take()),
            }
        }
    }
    keep(&mut found, block);
    found.reading("lshw")
}

/// The facts of a block whose device has an interface.
fn keep(found: &mut Interfaces, block: Option<Block>) {
    let Some(Block { name: Some(name), facts }) = block else { return };
    let interface = found.begin(&name);
    let fact = |key: &str| facts.iter().find(|(own, _)| own == key).map(|(_, value)| value.clone());
    let setting = |key: &str| -> Option<String> {
        let all = fact("configuration")?;
        all.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
    };
    interface.driver = setting("driver");
    interface.duplex = setting("duplex");
    interface.addresses.extend(setting("ip"));
    interface.speed_mbps = setting("speed").and_then(|speed| mbps(&speed));
    interface.pci_slot = fact("bus info").and_then(|bus| bus.strip_prefix("pci@").map(str::to_owned));
    let device = interface.device.get_or_insert_default();
    device.product = [fact("vendor"), fact("product")].into_iter().flatten().reduce(|a, b| format!("{a} {b}"));
    device.mac = fact("serial");
    device.bus = fact("bus info");
    device.firmware = setting("firmware");
    device.driver_version = setting("driverversion");
}

/// `1Gbit/s`, `100Mbit/s`.
fn mbps(speed: &str) -> Option<u32> {
    let (number, scale) = match (speed.strip_suffix("Gbit/s"), speed.strip_suffix("Mbit/s")) {
        (Some(number), _) => (number, 1_000),
        (None, Some(number)) => (number, 1),
        (None, None) => return None,
    };
    number.parse::<u32>().ok()?.checked_mul(scale)
}
