//! Keeps an emulated path up until its standard input ends, then prints the path's counters.
//!
//!     path MTU FORWARD [REVERSE]
//!
//! FORWARD and REVERSE are directions as in a topology, such as 'delay = "91.5ms", rate = "2.5Gbit", queue = "56MB"';
//! REVERSE defaults to FORWARD.
#![allow(clippy::print_stdout, reason = "an example says what it does")]

use std::io::Read;

use lab::{CrossoverSpec, DirectionSpec, Lab, PathSpec};
use serde::Deserialize;

#[derive(Deserialize)]
struct Direction {
    direction: DirectionSpec,
}

fn direction(text: &str) -> Result<DirectionSpec, toml::de::Error> {
    toml::from_str(&format!("way = {{ {text} }}")).map(|direction: Direction| direction.direction)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mtu, forward, reverse) = match words.as_slice() {
        [mtu, both] => (mtu, both, both),
        [mtu, forward, reverse] => (mtu, forward, reverse),
        _ => return Err("usage: path MTU FORWARD [REVERSE]".into()),
    };
    let link = CrossoverSpec { mtu: mtu.parse()?, ..CrossoverSpec::default() };
    let lab = Lab::path(&PathSpec { link, forward: direction(forward)?, reverse: direction(reverse)?, seed: 1 })?;
    for host in lab.hosts() {
        println!("{} {} {}", host.namespace, host.v4, host.v6);
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    if let Some(path) = lab.emulator() {
        println!("real-time: {}; failure: {:?}", path.realtime(), path.failure());
        for (direction, counts) in ["forward", "reverse"].iter().zip(path.counts()) {
            println!("{direction}: {counts:#?}, {} in flight", counts.travelling());
        }
    }
    lab.close()?;
    Ok(())
}
