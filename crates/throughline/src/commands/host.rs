//! `thru host`: what this host is.

use clap::Args;
use model::{ByteSize, Inventory};

use crate::citation;
use crate::failure::Failure;

/// Flags of `thru host`.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// As the JSON that stands in every run.
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(args: &HostArgs) -> Result<u8, Failure> {
    let mut inventory = host::inventory(&host::RealSys);
    inventory.selftest = citation::from_store(None)(&inventory);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&inventory).map_err(Failure::other)?);
    } else {
        print(&inventory);
    }
    Ok(0)
}

fn print(inventory: &Inventory) {
    let line =
        |name: &str, value: Option<String>| println!("{name:<22} {}", value.unwrap_or_else(|| "not known".into()));
    line("host", inventory.hostname.clone());
    line("kernel", inventory.kernel.clone());
    line("system", inventory.os.clone());
    line("processor", inventory.cpu_model.clone());
    line("cores", inventory.cores.map(|cores| cores.to_string()));
    line("numa nodes", inventory.numa_nodes.map(|nodes| nodes.to_string()));
    line("memory", inventory.memory_bytes.map(|bytes| ByteSize(bytes).to_string()));
    line("memory available", inventory.memory_available_bytes.map(|bytes| ByteSize(bytes).to_string()));
    line("load", inventory.load_average.map(|[one, five, fifteen]| format!("{one:.2} {five:.2} {fifteen:.2}")));
    line("governor", inventory.governor.clone());
    line("clock source", inventory.clock_source.clone());
    line("clock read", Some(format!("{:.0} ns", host::clock_read_cost_ns())));
    line("virtualisation", inventory.virtualisation.clone());
    line("congestion controls", Some(inventory.congestion_controls.join(" ")));
    line("self-test", inventory.selftest.as_ref().map(report::citation));
    println!();
    for interface in &inventory.interfaces {
        let mut facts = vec![interface.state.clone().unwrap_or_else(|| "state not known".into())];
        facts.extend(interface.mtu.map(|mtu| format!("MTU {mtu}")));
        facts.extend(interface.speed_mbps.map(|speed| format!("{speed} Mbit/s")));
        facts.extend(interface.driver.clone());
        facts.extend(interface.txqueuelen.map(|length| format!("txqueuelen {length}")));
        facts
            .extend(interface.rx_queues.zip(interface.tx_queues).map(|(rx, tx)| format!("{rx} rx and {tx} tx queues")));
        facts.extend(interface.addresses.iter().cloned());
        println!("{:<22} {}", interface.name, facts.join(", "));
    }
    println!();
    for (name, value) in &inventory.sysctl {
        println!("{name:<42} {value}");
    }
    if !inventory.missing.is_empty() {
        println!("\nnot readable here:");
        inventory.missing.iter().for_each(|what| println!("  {what}"));
    }
}
