//! `thru mesh`: every pair of a fleet's hosts.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use command::setup::clock_seed;
use fleet::{Directions, Mesh, MeshTraffic, Pairing};
use model::{ByteSize, Nanos, Ratio, RunKind, TrafficKind};
use options::values::{above_zero, variable, whole};
use session::run::on_bus;
use session::{Hosts, ThisHost, Work, stored};
use text::say;

use super::run::preview;
use crate::console;
use crate::flags::{FleetHosts, Output, OverBus};
use crate::measure::conduct;
use crate::shape::Shape;

/// How often each outlier is tested again.
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

    /// File with the agents' token, for hosts that have no token of their own.
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

    /// Near ends, if not all hosts measure to each other; HOSTS as for --hosts.
    #[arg(long, value_name = "HOSTS", requires = "servers", conflicts_with = "hosts")]
    clients: Option<String>,

    /// Far ends for --clients.
    #[arg(long, value_name = "HOSTS", requires = "clients")]
    servers: Option<String>,

    /// Which hosts send at the same time. incast: many to one; fan-out: one to many; ring: each to the next; bisection: between two
    /// halves, in both directions; permutation: each to one other at random [default: one test per host at a time].
    #[arg(long, value_name = "KIND", value_parser = TrafficKind::NAMES.map(|(name, _)| name),
          conflicts_with_all = ["clients", "directions", "sample", "one_per", "one_per_uplink", "light"])]
    pub traffic: Option<String>,

    /// The receiver of an incast; if several, each in turn [default: every host in turn].
    #[arg(long, value_name = "HOSTS", requires = "traffic")]
    to: Option<String>,

    /// The sender of a fan-out; if several, each in turn [default: every host in turn].
    #[arg(long, value_name = "HOSTS", requires = "traffic")]
    from: Option<String>,

    /// Numbers of senders of an incast, one step each [default: 1,2,4,... and all].
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "traffic", value_parser = whole(1..=u32::MAX))]
    senders: Vec<u32>,

    /// Numbers of receivers of a fan-out, one step each [default: 1,2,4,... and all].
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "traffic", value_parser = whole(1..=u32::MAX))]
    receivers: Vec<u32>,

    /// Number of permutations, or of cuts of a bisection, to draw; one step each [default: 3].
    #[arg(long, value_name = "N", requires = "traffic", value_parser = whole(1..=1_000_u32))]
    draws: Option<u32>,

    /// With --traffic: each flow transfers this many bytes instead of streaming, which gives completion times.
    #[arg(long, value_name = "SIZE", requires = "traffic", conflicts_with_all = ["pattern", "time"],
          value_parser = above_zero::<ByteSize>)]
    transfer: Option<ByteSize>,

    /// Run up to this many rate-limited tests per host at once (4 without N): rr at 100 requests per second, or the rate of --set rate=...
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "4", value_parser = whole(2..=64_u32))]
    light: Option<u32>,

    /// What to measure between the hosts of a pair: rr, stream, curve, transfer. Each gives a matrix [default: rr,stream; stream with
    /// --traffic; transfer with --transfer; rr with --light].
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pattern: Vec<String>,

    /// Measure each pair from both hosts, or from one of them.
    #[arg(long, default_value = "both", value_parser = Directions::NAMES.map(|(name, _)| name))]
    directions: String,

    /// Rounds over all pairs [default: 3; 5 with --traffic; 10 with --transfer].
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    rounds: Option<u32>,

    /// Do not retest outliers after the rounds; report them unconfirmed.
    #[arg(long)]
    no_retest: bool,

    /// Time limit for all rounds and retests. The first round is always measured.
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    budget: Option<Nanos>,

    /// Length of a test [default: that of `thru rr`, `thru stream` ...].
    #[arg(long, short = 't', value_name = "TIME", value_parser = above_zero::<Nanos>)]
    time: Option<Nanos>,

    /// Measure this share of the pairs, such as 10%, with some of each host and each pair of racks.
    #[arg(long, value_name = "SHARE", value_parser = above_zero::<Ratio>)]
    sample: Option<Ratio>,

    /// Label to group the hosts by [default: the first of rack, switch, row, room, zone, site, region, datacenter, type that a host has].
    #[arg(long, value_name = "LABEL")]
    cluster: Option<String>,

    /// Run one test at a time for each value of this label, such as rack. May be repeated.
    #[arg(long, value_name = "LABEL")]
    one_per: Vec<String>,

    /// Run one test at a time over the uplink of each value of this label, such as rack. May be repeated.
    #[arg(long, value_name = "LABEL")]
    one_per_uplink: Vec<String>,

    /// Set an option of the measurement, named like its flag, such as cc=bbr or far.rcvbuf=1MiB. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    fields: Vec<(String, String)>,

    /// Seed for the order and the sample [default: from the clock].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub seed: Option<u64>,
}

/// Runs it.
pub fn run(args: &MeshArgs) -> Result<u8, Failure> {
    let named = &args.what.hosts.fleet.named()?;
    let fleet = fleet::open_over(named, args.what.bus.bus.as_deref())?;
    let store = args.output.store.as_deref();
    let resumed = args.resume.as_deref();
    if let Some((run, bus)) = resumed.zip(fleet.bus()) {
        on_bus::bring(run, &bus, store)?;
    }
    let mesh = args.what.mesh(resumed.map(|run| stored::seed(run, store)).transpose()?)?;
    if args.plan {
        console::document(&mesh.text(named, &fleet)?);
        return Ok(0);
    }
    let mut parsed = mesh.plan(named, &fleet, &ThisHost)?;
    if args.dry_run {
        return preview(&parsed, None, store);
    }
    args.output.check(RunKind::Mesh, &[])?;
    let hosts = Hosts { token_file: args.token_file.clone(), ..Hosts::default() };
    let resumed = resumed.map(|run| stored::resume(run, store, &mut parsed)).transpose()?;
    let work = Work::Plan { parsed: Box::new(parsed), resumed: resumed.map(Box::new) };
    Ok(conduct(&args.output.request(RunKind::Mesh, hosts, work), &args.output, Shape::default())?.1)
}

impl What {
    /// The mesh of these flags; with the `seed` of a run that is continued.
    ///
    /// # Errors
    /// The flags contradict each other.
    pub fn mesh(&self, seed: Option<u64>) -> Result<Mesh, Failure> {
        let pairing = match self.clients.clone().zip(self.servers.clone()) {
            Some((clients, servers)) => Pairing::Between { clients, servers },
            None => Pairing::All(self.hosts.hosts.clone()),
        };
        let of_name = |(name, _): &&(&str, Directions)| *name == self.directions;
        Ok(Mesh {
            pairing,
            traffic: self.traffic()?,
            light: self.light,
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
        })
    }

    /// The hosts that send at the same time.
    fn traffic(&self) -> Result<Option<MeshTraffic>, Failure> {
        let of_name = |(name, _): &&(&str, TrafficKind)| Some(*name) == self.traffic.as_deref();
        let Some((name, kind)) = TrafficKind::NAMES.iter().find(of_name) else { return Ok(None) };
        let (incast, fan_out) = (*kind == TrafficKind::Incast, *kind == TrafficKind::FanOut);
        for (given, fits, flag) in [
            (self.to.is_some(), incast, "to"),
            (self.from.is_some(), fan_out, "from"),
            (!self.senders.is_empty(), incast, "senders"),
            (!self.receivers.is_empty(), fan_out, "receivers"),
            (self.draws.is_some(), !incast && !fan_out && *kind != TrafficKind::Ring, "draws"),
        ] {
            if given && !fits {
                return Err(Failure::usage(say!("`--{flag}` does not apply to {name}: omit it")));
            }
        }
        Ok(Some(MeshTraffic {
            kind: *kind,
            one: self.to.clone().or_else(|| self.from.clone()),
            numbers: [&self.senders[..], &self.receivers].concat(),
            draws: self.draws,
            transfer: self.transfer,
        }))
    }
}
