//! `thru host`: the inventory of this host or of others, and the differences between two.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use model::{Family, Inventory};
use session::facts::{self, HostFacts};

use crate::{console, output};

/// Flags of `thru host`.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Hosts that run `thru serve`, with :PORT if not 6280 [default: this host].
    #[arg(value_name = "HOST", value_parser = command::values::host)]
    hosts: Vec<String>,

    /// Show only the differences between two hosts: the two given, or this host and the one given.
    #[arg(long)]
    diff: bool,

    /// With --diff: print every difference and whole values, not only what fits a screen.
    #[arg(long, short, requires = "diff", conflicts_with = "json")]
    verbose: bool,

    /// Print the inventory as JSON, in the same form as in runs; several hosts give a list.
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

/// Runs it.
pub fn run(args: &HostArgs) -> Result<u8, Failure> {
    if args.diff && !(1..=2).contains(&args.hosts.len()) {
        return Err(Failure::usage("--diff compares two hosts: name two, or one to compare with this host"));
    }
    let mut reported = Vec::new();
    if args.hosts.is_empty() || (args.diff && args.hosts.len() == 1) {
        reported.push(facts::here());
    }
    reported.extend(facts::elsewhere(
        &args.hosts,
        Family::requested(args.ipv4, args.ipv6),
        args.token_file.as_deref(),
        |line| {
            errln!("thru: {line}");
        },
    )?);
    if args.diff {
        return differences(&reported[0], &reported[1], args);
    }
    if args.json {
        let inventories: Vec<&Inventory> = reported.iter().map(|reported| &reported.inventory).collect();
        match inventories.as_slice() {
            [one] => console::json(one)?,
            all => console::json(&all)?,
        }
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

fn differences(a: &HostFacts, b: &HostFacts, args: &HostArgs) -> Result<u8, Failure> {
    let found = analysis::compare::host_differences(&a.inventory, &b.inventory);
    if args.json {
        console::json(&found)?;
    } else {
        out!("{}", report::host_differences(&found, [&a.name, &b.name], output::layout(), args.verbose));
    }
    Ok(0)
}
