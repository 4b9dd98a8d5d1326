//! `thru host`: the inventory of this host or of others, and the differences between two.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use control::coordinator::{End, Target};
use host::{RealSys, TrafficSample};
use model::{Family, Inventory};
use session::Failure;
use session::citation;
use session::setup;

use crate::console;

/// Flags of `thru host`.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Hosts that run `thru serve`, with :PORT if not 6280 [default: this host].
    #[arg(value_name = "HOST", value_parser = session::values::host)]
    hosts: Vec<String>,

    /// Show only the differences between two hosts: the two given, or this host and the one given.
    #[arg(long)]
    diff: bool,

    /// Print the inventory as JSON, as runs contain it; of several hosts, a list.
    #[arg(long)]
    json: bool,

    /// Use IPv4 only.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// Use IPv6 only.
    #[arg(short = '6', long)]
    ipv6: bool,

    /// File with the agents' token.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// The inventory of a host.
struct HostFacts {
    name: String,
    inventory: Inventory,
    clock_ns: f64,
}

/// Runs it.
pub fn run(args: &HostArgs) -> Result<u8, Failure> {
    if args.diff && !(1..=2).contains(&args.hosts.len()) {
        return Err(Failure::usage("--diff compares two hosts: name two, or one to compare it with this host"));
    }
    let mut reported = Vec::new();
    if args.hosts.is_empty() || (args.diff && args.hosts.len() == 1) {
        reported.push(this_host());
    }
    reported.extend(others(args)?);
    if args.diff {
        return differences(&reported[0], &reported[1], args.json);
    }
    if args.json {
        let inventories: Vec<&Inventory> = reported.iter().map(|reported| &reported.inventory).collect();
        let text = match inventories.as_slice() {
            [one] => serde_json::to_string_pretty(one),
            all => serde_json::to_string_pretty(all),
        };
        console::document(&(text.map_err(Failure::other)? + "\n"));
        return Ok(0);
    }
    for (index, one) in reported.iter().enumerate() {
        if reported.len() > 1 {
            outln!("{}=== {}", if index > 0 { "\n" } else { "" }, one.name);
        }
        out!("{}", report::host(&one.inventory, Some(one.clock_ns)));
    }
    Ok(0)
}

fn this_host() -> HostFacts {
    let sample = TrafficSample::start(&RealSys);
    let mut inventory = host::inventory(&RealSys);
    inventory.selftest = citation::from_store(None)(&inventory);
    let clock_ns = host::clock_read_cost_ns();
    std::thread::sleep(Duration::from_nanos(sample.left_ns(&RealSys)));
    host::note_traffic(&mut inventory, &sample.finish(&RealSys));
    HostFacts { name: "this host".into(), inventory, clock_ns }
}

/// The inventories that the agents of the named hosts report, in the order of the names.
fn others(args: &HostArgs) -> Result<Vec<HostFacts>, Failure> {
    if args.hosts.is_empty() {
        return Ok(Vec::new());
    }
    let token = setup::token(args.token_file.as_deref())?;
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let mut reported = Vec::new();
        for host in &args.hosts {
            let end = End::connect(Target::Remote { host, token: token.as_ref(), family }).await?;
            reported.push(HostFacts { name: host.clone(), inventory: end.inventory.clone(), clock_ns: end.clock_ns });
            end.release().await;
        }
        Ok(reported)
    })
}

fn differences(a: &HostFacts, b: &HostFacts, json: bool) -> Result<u8, Failure> {
    let found = analysis::compare::host_differences(&a.inventory, &b.inventory);
    if json {
        console::document(&(serde_json::to_string_pretty(&found).map_err(Failure::other)? + "\n"));
    } else {
        out!("{}", report::host_differences(&found, &a.name, &b.name));
    }
    Ok(0)
}
