//! `thru mesh`: every pair of a fleet's hosts.

use std::path::PathBuf;

use clap::Args;
use model::{Nanos, Ratio};
use session::fleet::{self, Directions, Mesh, Pairing};
use session::setup::clock_seed;
use session::values::{above_zero, variable, whole};
use session::{Failure, Hosts, Work, bus_runs, stored};

use super::run::preview;
use crate::console;
use crate::flags::{FleetHosts, Output, OverBus};
use crate::job::Shape;
use crate::measure::conduct;

/// How often what stands out is tested again.
const RETESTS: u32 = 5;

/// Flags of `thru mesh`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/mesh.txt").trim_end())]
pub struct MeshArgs {
    #[command(flatten)]
    what: What,

    /// Continue this run of the same mesh; its finished trials are kept.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["dry_run", "plan", "no_store", "seed"])]
    resume: Option<String>,

    /// Print the plan for `thru run`; do not measure.
    #[arg(long, conflicts_with = "dry_run")]
    plan: bool,

    /// Print the cells, the order of the first round and the duration; do not measure.
    #[arg(long)]
    dry_run: bool,

    /// File with the agents' token, for hosts without one of their own.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// What a mesh measures.
#[derive(Debug, Args)]
pub struct What {
    #[command(flatten)]
    pub hosts: FleetHosts,

    #[command(flatten)]
    pub bus: OverBus,

    /// The near ends, in place of all hosts with each other; HOSTS as for --hosts.
    #[arg(long, value_name = "HOSTS", requires = "servers", conflicts_with = "hosts")]
    clients: Option<String>,

    /// The far ends of --clients.
    #[arg(long, value_name = "HOSTS", requires = "clients")]
    servers: Option<String>,

    /// What is measured between the hosts of a pair: rr, stream, curve, transfer. Each one gives a matrix.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', default_value = "rr,stream")]
    pattern: Vec<String>,

    /// Measure each pair from both hosts, or from one of them.
    #[arg(long, default_value = "both", value_parser = Directions::NAMES.map(|(name, _)| name))]
    directions: String,

    /// Rounds over all pairs.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole(1..=u32::MAX))]
    rounds: u32,

    /// Do not test again, after the rounds, what stands out: it is then named without confirmation.
    #[arg(long)]
    no_retest: bool,

    /// Time for all rounds and what is tested again. One round is measured in any case.
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    budget: Option<Nanos>,

    /// Length of a test [default: of the command].
    #[arg(long, short = 't', value_name = "TIME", value_parser = above_zero::<Nanos>)]
    time: Option<Nanos>,

    /// Measure this share of the pairs, such as 10%: each host and each pair of racks has some.
    #[arg(long, value_name = "SHARE", value_parser = above_zero::<Ratio>)]
    sample: Option<Ratio>,

    /// Label that groups the hosts [default: rack, or the first one that says where a host stands].
    #[arg(long, value_name = "LABEL")]
    cluster: Option<String>,

    /// One test at a time for each value of this label, such as rack. May be repeated.
    #[arg(long, value_name = "LABEL")]
    one_per: Vec<String>,

    /// One test at a time that leaves the hosts of a value of this label, so over the uplink of a rack. May be repeated.
    #[arg(long, value_name = "LABEL")]
    one_per_uplink: Vec<String>,

    /// An option of the measurement, by the name of its flag, such as cc=bbr or far.rcvbuf=1MiB. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    fields: Vec<(String, String)>,

    /// Seed of the order and of the sample [default: from the clock].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub seed: Option<u64>,
}

/// Runs it.
pub fn run(args: &MeshArgs) -> Result<u8, Failure> {
    let named = &args.what.hosts.fleet;
    let fleet = fleet::open_over(named, args.what.bus.bus.as_deref())?;
    let store = args.output.store.as_deref();
    let resumed = args.resume.as_deref();
    if let Some((run, bus)) = resumed.zip(fleet.bus()) {
        bus_runs::bring(run, &bus, store)?;
    }
    let mesh = args.what.mesh(resumed.map(|run| stored::seed(run, store)).transpose()?);
    if args.plan {
        console::document(&mesh.text(named, &fleet)?);
        return Ok(0);
    }
    let mut parsed = mesh.plan(named, &fleet)?;
    if args.dry_run {
        return preview(&parsed, None);
    }
    args.output.check("mesh", &[])?;
    let hosts = Hosts { token_file: args.token_file.clone(), ..Hosts::default() };
    let resumed = resumed.map(|run| stored::resume(run, store, &mut parsed)).transpose()?;
    let work = Work::Plan { parsed: Box::new(parsed), resumed: resumed.map(Box::new) };
    Ok(conduct(&args.output.request("mesh", hosts, work), &args.output, Shape::default())?.1)
}

impl What {
    /// The mesh of these flags; with the `seed` of a run that is continued.
    pub fn mesh(&self, seed: Option<u64>) -> Mesh {
        let pairing = match self.clients.clone().zip(self.servers.clone()) {
            Some((clients, servers)) => Pairing::Between { clients, servers },
            None => Pairing::All(self.hosts.hosts.clone()),
        };
        let of_name = |(name, _): &&(&str, Directions)| *name == self.directions;
        Mesh {
            pairing,
            directions: Directions::NAMES.iter().find(of_name).map_or(Directions::Both, |(_, chosen)| *chosen),
            patterns: self.pattern.clone(),
            rounds: self.rounds,
            retests: (!self.no_retest).then_some(RETESTS),
            budget: self.budget,
            time: self.time,
            share: self.sample.map_or(1.0, |share| share.0),
            one_per: self.one_per.clone(),
            one_per_uplink: self.one_per_uplink.clone(),
            cluster: self.cluster.clone(),
            seed: seed.or(self.seed).unwrap_or_else(clock_seed),
            fields: self.fields.clone(),
        }
    }
}
