//! Holds an emulated path open until its standard input ends, then says what the path did.
//!
//!     path MTU DELAY_MS RATE_MBIT QUEUE_BYTES LOSS
//!
//! The delay is that of one direction; a rate of 0 is none.
#![allow(clippy::print_stdout, reason = "an example says what it does")]

use std::io::Read;
use std::time::Duration;

use lab::{CrossoverSpec, Lab, OneWay, PathSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<f64> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let [mtu, delay_ms, rate_mbit, queue, loss] = words[..] else {
        return Err("give MTU DELAY_MS RATE_MBIT QUEUE_BYTES LOSS".into());
    };
    let way = OneWay {
        delay: Duration::from_secs_f64(delay_ms / 1e3),
        rate_bps: (rate_mbit > 0.0).then_some((rate_mbit * 1e6) as u64),
        queue_bytes: queue as u64,
        loss,
        ..OneWay::default()
    };
    let link = CrossoverSpec { mtu: mtu as u32, ..CrossoverSpec::default() };
    let lab = Lab::path(&PathSpec::both_ways(link, way))?;
    for host in lab.hosts() {
        println!("{} {} {}", host.namespace, host.v4, host.v6);
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    if let Some(path) = lab.emulator() {
        println!("real-time: {}; failure: {:?}", path.realtime(), path.failure());
        for (way, counts) in ["forward", "back"].iter().zip(path.counts()) {
            let late = &counts.late;
            println!(
                "{way}: arrived {} delivered {} queue {} loss {} ring {} refused {} travelling {}",
                counts.arrived,
                counts.delivered,
                counts.dropped_queue,
                counts.dropped_loss,
                counts.dropped_ring,
                counts.refused,
                counts.travelling()
            );
            println!(
                "  late ns: {} packets, mean {:?} p50 {:?} p99 {:?} max {:?}",
                late.count(),
                late.mean_ns(),
                late.quantile_ns(0.5),
                late.quantile_ns(0.99),
                late.max_ns()
            );
        }
    }
    lab.close()?;
    Ok(())
}
