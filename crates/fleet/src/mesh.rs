//! A mesh: the plan that measures between the hosts of a fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use analysis::plan::{LEAST_PARTNERS, MAX_CELLS, doubling, least_sample, sample};
use command::Failure;
use model::{ByteSize, Nanos, Plan, Ratio, TrafficKind};
use plan::{Fleet, FleetHost, ParsedPlan, Resolver};
use serde::{Serialize, Serializer};
use text::say;

use crate::sources::file::written;
use crate::sources::source::is_file;

/// What a mesh measures.
#[derive(Debug, Clone)]
pub struct Mesh {
    /// Which hosts measure with which.
    pub pairing: Pairing,
    /// Which hosts send at the same time; `None` for one test per host at a time.
    pub traffic: Option<MeshTraffic>,
    /// Most light tests of one host at the same time.
    pub light: Option<u32>,
    /// Whether each pair is measured from both ends.
    pub directions: Directions,
    /// The patterns, each a matrix: `rr`, `stream`, `curve`, `transfer`. Empty for those that fit: `rr` and `stream`, light ones `rr`,
    /// with a traffic `stream`, or `transfer` if there is a size.
    pub patterns: Vec<String>,
    /// Rounds over all pairs; by default enough for an interval.
    pub rounds: Option<u32>,
    /// How often each outlier is tested again after the rounds; `None` for never.
    pub retests: Option<u32>,
    /// Time for all rounds and what is tested again; at least one round is measured.
    pub budget: Option<Nanos>,
    /// Length of a test; that of the command by default.
    pub time: Option<Nanos>,
    /// The share of the pairs that is measured, 0 to 1; 1 for all.
    pub share: f64,
    /// Labels of which each value has one test at a time.
    pub one_per: Vec<String>,
    /// Labels of which each value has one test at a time that leaves it.
    pub one_per_uplink: Vec<String>,
    /// The label that groups hosts; the first one of place by default.
    pub cluster: Option<String>,
    /// The seed of the order and of the sample.
    pub seed: u64,
    /// Fields of all cells, as `NAME=VALUE` with the names of flags.
    pub fields: Vec<(String, String)>,
}

/// Hosts that send at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshTraffic {
    /// The pattern of the pairs.
    pub kind: TrafficKind,
    /// The hosts that are the one receiver of an incast, or the one sender of a fan-out, in turn; `None` for all.
    pub one: Option<String>,
    /// Numbers of senders or receivers; empty for 1, 2, 4 and so on up to all.
    pub numbers: Vec<u32>,
    /// Number of permutations or cuts; `None` for the plan's default.
    pub draws: Option<u32>,
    /// Each flow transfers this many bytes instead of streaming.
    pub transfer: Option<ByteSize>,
}

/// Rounds of a mesh of pairs, of a traffic of streams, and of one of transfers: a transfer has one completion time per flow.
const ROUNDS: [u32; 3] = [3, 5, 10];
/// Requests per second of a light test that is given no rate.
const LIGHT_RATE: &str = "100";

/// Which hosts measure with which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairing {
    /// All selected hosts with each other; `None` for the whole fleet.
    All(Option<String>),
    /// The first selection as the near ends with the second one as the far ends.
    Between {
        /// The near ends.
        clients: String,
        /// The far ends.
        servers: String,
    },
}

/// Whether each pair is measured from both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Directions {
    /// From both, one after the other.
    #[default]
    Both,
    /// From one.
    One,
}

impl Directions {
    /// Every choice with its name.
    pub const NAMES: [(&'static str, Self); 2] = [("both", Self::Both), ("one", Self::One)];
}

impl Mesh {
    /// The mesh of `fleet`, which `named` names, as a plan.
    ///
    /// # Errors
    /// A selection, a label or a field is wrong; there is no pair.
    pub fn plan(&self, named: &str, fleet: &Fleet, resolver: &dyn Resolver) -> Result<ParsedPlan, Failure> {
        Ok(plan::read("the plan of this mesh", self.text(named, fleet)?, &BTreeMap::new(), false, resolver)?)
    }

    /// The text of that plan, for `thru run`.
    ///
    /// # Errors
    /// As [`plan`](Self::plan), without the fields.
    pub fn text(&self, named: &str, fleet: &Fleet) -> Result<String, Failure> {
        let select = |selection: &str| fleet.select(selection).map_err(Failure::usage);
        let (from, to): (Vec<&FleetHost>, Vec<&FleetHost>) = match &self.pairing {
            Pairing::All(None) => (fleet.hosts.iter().collect(), fleet.hosts.iter().collect()),
            Pairing::All(Some(selection)) => (select(selection)?, select(selection)?),
            Pairing::Between { clients, servers } => (select(clients)?, select(servers)?),
        };
        let (mut from, mut to) = (self.by_cluster(fleet, from)?, self.by_cluster(fleet, to)?);
        if let Some(MeshTraffic { kind, one: Some(one), .. }) = &self.traffic {
            let end = if *kind == TrafficKind::FanOut { &mut from } else { &mut to };
            *end = self.by_cluster(fleet, select(one)?)?;
        }
        let listed = if self.traffic.is_some() { None } else { self.pairs(fleet, &from, &to)? };
        let every = from.iter().chain(&to).map(|host| &host.name).collect::<BTreeSet<_>>().len();
        if from.len().max(to.len()) < 2 && every < 2 {
            return Err(Failure::usage(format!("a mesh needs at least two hosts, but {named} has one")));
        }
        let patterns = self.patterns();
        match &self.traffic {
            Some(traffic) => fits_traffic(traffic, patterns.len(), &from, &to)?,
            None => self.fits(fleet, listed.as_ref().map(Vec::len), &from, &to)?,
        }
        let path = if is_file(named) { std::path::absolute(named).ok() } else { None };
        let source = path.as_deref().map(Path::display).map_or_else(|| named.to_owned(), |path| path.to_string());
        let what = self.traffic.as_ref().map_or_else(|| "Mesh".to_owned(), |traffic| titled(traffic.kind));
        let pair = |(near, far): (&FleetHost, &FleetHost)| format!("{} {}", near.name, far.name);
        let only = if let [pattern] = &patterns[..] { Some(pattern.as_str()) } else { None };
        written(&MeshPlan {
            title: format!("{what} of {every} hosts"),
            fleet: source,
            from: from.iter().map(|host| host.name.as_str()).collect(),
            to: to.iter().map(|host| host.name.as_str()).collect(),
            cluster: self.cluster.as_deref(),
            one_per: &self.one_per,
            one_per_uplink: &self.one_per_uplink,
            pairs: listed.map(|pairs| pairs.into_iter().map(pair).collect()),
            light: self.light,
            seed: self.seed,
            traffic: self.traffic.as_ref().map(MeshTraffic::table),
            base: Fields(self.base(only)),
            factor: if only.is_some() { Vec::new() } else { vec![FactorTable { field: "pattern", levels: &patterns }] },
            repeat: RepeatTable {
                min: self.rounds(),
                max: self.rounds(),
                retests: self.retests.filter(|_| self.traffic.is_none()),
                budget: self.budget.map(exactly),
            },
        })
    }

    /// The fields of all cells; the pattern among them if there is one only.
    fn base(&self, pattern: Option<&str>) -> Vec<(&str, String)> {
        let mut fields = Vec::new();
        fields.extend(pattern.map(|pattern| ("pattern", pattern.to_owned())));
        fields.extend(self.time.map(|length| ("time", exactly(length))));
        let size = self.traffic.as_ref().and_then(|traffic| traffic.transfer);
        fields.extend(size.map(|size| ("bytes", size.0.to_string())));
        let has_rate = self.fields.iter().any(|(name, _)| name == "rate");
        if self.light.is_some() && pattern == Some("rr") && !has_rate {
            fields.push(("rate", LIGHT_RATE.to_owned()));
        }
        fields.extend(self.fields.iter().map(|(name, value)| (name.as_str(), value.clone())));
        fields
    }

    fn patterns(&self) -> Vec<String> {
        let fitting: &[&str] = match &self.traffic {
            _ if !self.patterns.is_empty() => return self.patterns.clone(),
            Some(MeshTraffic { transfer: Some(_), .. }) => &["transfer"],
            Some(_) => &["stream"],
            None if self.light.is_some() => &["rr"],
            None => &["rr", "stream"],
        };
        fitting.iter().map(ToString::to_string).collect()
    }

    fn rounds(&self) -> u32 {
        let [pairs, streams, transfers] = ROUNDS;
        self.rounds.unwrap_or(match &self.traffic {
            None => pairs,
            Some(MeshTraffic { transfer: None, .. }) => streams,
            Some(_) => transfers,
        })
    }

    /// The pairs, where they are not every pair of `from` and `to`.
    fn pairs<'a>(
        &self,
        fleet: &Fleet,
        from: &[&'a FleetHost],
        to: &[&'a FleetHost],
    ) -> Result<Option<Vec<(&'a FleetHost, &'a FleetHost)>>, Failure> {
        let whole = self.share >= 1.0;
        if whole && self.directions == Directions::Both {
            return Ok(None);
        }
        if let Pairing::Between { .. } = self.pairing {
            if !whole {
                return Err(Failure::usage(say!(
                    "`--sample` is for a mesh of all hosts: omit it, or omit `--clients` and `--servers`"
                )));
            }
            // The direction of a pair of client and server is from the client.
            return Ok(None);
        }
        let mut pairs: Vec<(usize, usize)> = if whole {
            (0..from.len()).flat_map(|near| (0..to.len()).map(move |far| (near, far))).filter(|(a, b)| a != b).collect()
        } else {
            sample(&self.clusters(fleet, from)?, self.share, self.seed)
        };
        if self.directions == Directions::One {
            // Which end is the near one alternates, so that each host is near and far in half of its pairs.
            let kept = |(near, far): &(usize, usize)| {
                let (low, high) = (near.min(far), near.max(far));
                let near_is_low = (low + high) % 2 == 0;
                if near_is_low { (*low, *high) } else { (*high, *low) }
            };
            let one: BTreeSet<(usize, usize)> = pairs.iter().map(kept).collect();
            pairs = one.into_iter().collect();
        }
        Ok(Some(pairs.into_iter().map(|(near, far)| (from[near], to[far])).collect()))
    }

    /// Refuses more cells than a plan has, with the share of the pairs that would fit.
    fn fits(
        &self,
        fleet: &Fleet,
        listed: Option<usize>,
        from: &[&FleetHost],
        to: &[&FleetHost],
    ) -> Result<(), Failure> {
        let ends: BTreeSet<&String> = to.iter().map(|host| &host.name).collect();
        let both = from.iter().filter(|host| ends.contains(&host.name)).count();
        let all = from.len().saturating_mul(to.len()) - both;
        let cells = listed.unwrap_or(all).saturating_mul(self.patterns().len());
        if cells <= MAX_CELLS {
            return Ok(());
        }
        let most = MAX_CELLS / self.patterns().len();
        // A sample has more pairs than its share, to cover each pair of clusters.
        let clusters = self.clusters(fleet, from)?;
        let largest = (least_sample(&clusters) <= most).then_some(most as f64 / all as f64);
        let shares = std::iter::successors(largest, |share| Some(share * 0.9));
        let fits = shares
            .take_while(|share| share * from.len() as f64 >= LEAST_PARTNERS as f64)
            .map(|share| (share * 1e4).floor() / 1e4)
            .find(|share| sample(&clusters, *share, self.seed).len() <= most);
        let remedy = match fits.filter(|_| !matches!(self.pairing, Pairing::Between { .. })) {
            Some(share) => say!("measure some of the pairs with `--sample {}`, or fewer hosts", Ratio(share)),
            None => say!("measure fewer hosts or patterns at once"),
        };
        Err(Failure::usage(say!(
            "the mesh has {cells} pairs and patterns, more than the limit of {MAX_CELLS}: {remedy}"
        )))
    }

    /// The hosts of a cluster together, in the order in which the fleet names the clusters.
    fn by_cluster<'a>(&self, fleet: &Fleet, hosts: Vec<&'a FleetHost>) -> Result<Vec<&'a FleetHost>, Failure> {
        let clusters = self.clusters(fleet, &hosts)?;
        let mut numbered: Vec<(usize, &FleetHost)> = clusters.into_iter().zip(hosts).collect();
        numbered.sort_by_key(|(cluster, _)| *cluster);
        Ok(numbered.into_iter().map(|(_, host)| host).collect())
    }

    /// The number of each host's cluster.
    fn clusters(&self, fleet: &Fleet, hosts: &[&FleetHost]) -> Result<Vec<usize>, Failure> {
        let has = |label: &str| hosts.iter().any(|host| host.labels.contains_key(label));
        let label = match &self.cluster {
            Some(label) if has(label) => Some(label.as_str()),
            Some(label) => {
                return Err(Failure::usage(format!("no host of {} has the label '{label}'", fleet.source)));
            }
            None => Plan::PLACES.into_iter().find(|label| has(label)),
        };
        let mut known: Vec<Option<&String>> = Vec::new();
        Ok(hosts
            .iter()
            .map(|host| {
                let value = label.and_then(|label| host.labels.get(label));
                known.iter().position(|other| *other == value).unwrap_or_else(|| {
                    known.push(value);
                    known.len() - 1
                })
            })
            .collect())
    }
}

impl MeshTraffic {
    /// Its table in the plan.
    fn table(&self) -> TrafficTable<'_> {
        let numbers = Some(&self.numbers[..]).filter(|numbers| !numbers.is_empty());
        TrafficTable {
            kind: self.kind.name(),
            senders: numbers.filter(|_| self.kind == TrafficKind::Incast),
            receivers: numbers.filter(|_| self.kind == TrafficKind::FanOut),
            cuts: self.draws.filter(|_| self.kind == TrafficKind::Bisection),
            permutations: self.draws.filter(|_| self.kind != TrafficKind::Bisection),
        }
    }
}

/// The plan of a mesh, with the keys of a plan's file.
#[derive(Serialize)]
struct MeshPlan<'a> {
    title: String,
    fleet: String,
    from: Vec<&'a str>,
    to: Vec<&'a str>,
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    one_per: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    one_per_uplink: &'a [String],
    pairs: Option<Vec<String>>,
    light: Option<u32>,
    seed: u64,
    traffic: Option<TrafficTable<'a>>,
    base: Fields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    factor: Vec<FactorTable<'a>>,
    repeat: RepeatTable,
}

#[derive(Serialize)]
struct TrafficTable<'a> {
    kind: &'a str,
    senders: Option<&'a [u32]>,
    receivers: Option<&'a [u32]>,
    cuts: Option<u32>,
    permutations: Option<u32>,
}

/// Names and values of fields. A name that is given twice is written twice, so that the reader of the plan refuses it.
struct Fields<'a>(Vec<(&'a str, String)>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Serialize)]
struct FactorTable<'a> {
    field: &'a str,
    levels: &'a [String],
}

#[derive(Serialize)]
struct RepeatTable {
    min: u32,
    max: u32,
    retests: Option<u32>,
    budget: Option<String>,
}

/// A kind of traffic as the first word of a title.
fn titled(kind: TrafficKind) -> String {
    let name = kind.name();
    name[..1].to_uppercase() + &name[1..]
}

/// Refuses more flows than a plan has cells.
fn fits_traffic(traffic: &MeshTraffic, patterns: usize, from: &[&FleetHost], to: &[&FleetHost]) -> Result<(), Failure> {
    let (hubs, others, flag) = if traffic.kind == TrafficKind::FanOut { (from, to, "from") } else { (to, from, "to") };
    if !traffic.kind.has_hub() || others.is_empty() {
        return Ok(());
    }
    let doubled: Vec<u32> =
        doubling((others.len() - 1).min(plan::MAX_GROUPS)).into_iter().map(|number| number as u32).collect();
    let numbers = if traffic.numbers.is_empty() { &doubled } else { &traffic.numbers };
    let flows = numbers.iter().map(|number| *number as usize).sum::<usize>().saturating_mul(hubs.len() * patterns);
    if flows <= MAX_CELLS {
        return Ok(());
    }
    let numbers = traffic.kind.factor().unwrap_or_default();
    Err(Failure::usage(say!(
        "this mesh has {flows} flows, more than the limit of {MAX_CELLS}: select fewer hosts with `--{flag}`, or fewer numbers in `--{numbers}`"
    )))
}

/// A time to the ns, as a plan has it.
fn exactly(time: Nanos) -> String {
    let short = time.to_string();
    if short.parse() == Ok(time) { short } else { format!("{}ns", time.0) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use model::{Pattern, Payload, StackRule};
    use options::values::Address;
    use text::{Said, Text};

    use super::*;

    fn fleet(count: usize) -> Fleet {
        let host = |number: usize| {
            let mut host = FleetHost::named(&format!("n{number}"));
            host.labels.insert("rack".into(), format!("r{}", number / 4));
            host
        };
        let hosts = (0..count).map(host).collect();
        Fleet { source: "f".into(), hosts, groups: BTreeMap::new(), alerts: Vec::new() }
    }

    fn mesh() -> Mesh {
        Mesh {
            pairing: Pairing::All(None),
            directions: Directions::Both,
            traffic: None,
            light: None,
            patterns: Vec::new(),
            rounds: None,
            retests: None,
            budget: Some(Nanos(600_000_000_000)),
            time: None,
            share: 1.0,
            one_per: Vec::new(),
            one_per_uplink: Vec::new(),
            cluster: None,
            seed: 1,
            fields: Vec::new(),
        }
    }

    /// A host that has files of fleets.
    struct Files;

    impl Resolver for Files {
        fn fleet(&self, _: &Path, named: &str) -> Result<Fleet, Text> {
            crate::open(named).map_err(|failure| failure.say())
        }

        fn data_address(&self, _: &FleetHost) -> Result<Option<SocketAddr>, Text> {
            Ok(None)
        }

        fn on_interface(&self, address: &Address) -> Result<SocketAddr, Text> {
            Ok(SocketAddr::new(address.ip, address.port))
        }

        fn payload(&self, _: &Path) -> Result<Payload, Text> {
            Ok(Payload::default())
        }

        fn stack_rules(&self, _: &Path) -> Result<Vec<StackRule>, Text> {
            Ok(Vec::new())
        }

        fn stays_here(&self, _: Option<&str>, _: Option<&str>) -> bool {
            true
        }

        fn seed(&self) -> u64 {
            1
        }
    }

    /// The plan of a mesh of a fleet that is written into a file.
    fn planned(mesh: &Mesh, fleet: &Fleet) -> ParsedPlan {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), crate::to_toml(fleet).unwrap()).unwrap();
        mesh.plan(file.path().to_str().unwrap(), fleet, &Files).unwrap_or_else(|failure| panic!("{failure}"))
    }

    #[test]
    fn a_mesh_is_a_plan_of_all_pairs_for_each_pattern() {
        let parsed = planned(&mesh(), &fleet(6));
        assert_eq!((parsed.cells.len(), parsed.rule.min_trials, parsed.rule.max_trials), (60, 3, 3));
        assert_eq!(parsed.plan.labels["n5"]["rack"], "r1");
        assert_eq!(parsed.rule.budget_ns, Some(600_000_000_000));
    }

    #[test]
    fn one_direction_is_half_of_the_pairs_and_each_host_is_near_as_often_as_far() {
        let one = Mesh { directions: Directions::One, patterns: vec!["stream".into()], ..mesh() };
        let parsed = planned(&one, &fleet(7));
        assert_eq!(parsed.cells.len(), 21);
        let near = |name: &str| parsed.cells.iter().filter(|cell| cell.planned.from.as_deref() == Some(name)).count();
        assert!((0..7).all(|host| near(&format!("n{host}")) == 3));
    }

    #[test]
    fn clients_and_servers_are_two_groups() {
        let pairing = Pairing::Between { clients: "n[0-1]".into(), servers: "rack=r1".into() };
        let parsed = planned(&Mesh { pairing, patterns: vec!["rr".into()], ..mesh() }, &fleet(8));
        assert_eq!(parsed.cells.len(), 8);
        assert!(parsed.cells.iter().all(|cell| ["n0", "n1"].contains(&cell.planned.from.as_deref().unwrap())));
    }

    #[test]
    fn a_sample_has_each_pair_of_racks() {
        let parsed = planned(&Mesh { share: 0.2, patterns: vec!["rr".into()], ..mesh() }, &fleet(20));
        let rack = |name: &Option<String>| parsed.plan.labels[name.as_ref().unwrap()]["rack"].clone();
        let racks: BTreeSet<(String, String)> =
            parsed.cells.iter().map(|cell| (rack(&cell.planned.from), rack(&cell.planned.to))).collect();
        assert_eq!(racks.len(), 25);
        assert!(parsed.cells.len() < 100, "{}", parsed.cells.len());
    }

    fn traffic(kind: TrafficKind) -> MeshTraffic {
        MeshTraffic { kind, one: None, numbers: Vec::new(), draws: None, transfer: None }
    }

    #[test]
    fn an_incast_has_a_step_for_each_number_of_senders() {
        let incast = MeshTraffic { one: Some("n3".into()), ..traffic(TrafficKind::Incast) };
        let parsed = planned(&Mesh { traffic: Some(incast.clone()), ..mesh() }, &fleet(8));
        assert_eq!((parsed.cells.len(), parsed.rule.max_trials), (1 + 2 + 4 + 7, 5));
        assert!(parsed.cells.iter().all(|cell| cell.planned.to.as_deref() == Some("n3") && cell.planned.together));
        assert!(parsed.specs().all(|spec| spec.pattern == Pattern::Stream));
        // The senders come from both racks in turn.
        let two = parsed.cells.iter().filter(|cell| cell.planned.levels["senders"] == "2");
        assert_eq!(two.map(|cell| cell.planned.levels["from"].as_str()).collect::<Vec<_>>(), ["n0", "n4"]);
        let blocks = MeshTraffic { numbers: vec![7, 3], transfer: Some(ByteSize(1 << 18)), ..incast };
        let parsed = planned(&Mesh { traffic: Some(blocks), ..mesh() }, &fleet(8));
        assert_eq!((parsed.cells.len(), parsed.rule.max_trials), (10, 10));
        assert!(parsed.specs().all(|spec| spec.stop == model::Stop::Bytes(1 << 18)));
    }

    #[test]
    fn the_seed_draws_permutations_and_each_is_a_step() {
        let drawn = |seed| {
            let permutations = MeshTraffic { draws: Some(2), ..traffic(TrafficKind::Permutation) };
            let parsed = planned(&Mesh { traffic: Some(permutations), seed, ..mesh() }, &fleet(6));
            assert_eq!((parsed.cells.len(), parsed.cells.last().unwrap().planned.combination), (12, 1));
            assert_eq!(parsed.plan.traffic.map(|traffic| traffic.seed), Some(seed));
            parsed.cells.iter().map(|cell| cell.planned.to.clone().unwrap()).collect::<Vec<_>>()
        };
        assert!(drawn(1) == drawn(1) && drawn(1) != drawn(2));
    }

    #[test]
    fn light_tests_have_a_rate_and_share_hosts() {
        let parsed = planned(&Mesh { light: Some(3), ..mesh() }, &fleet(6));
        assert_eq!(parsed.plan.light, Some(3));
        assert!(parsed.specs().all(|spec| spec.pattern == Pattern::Rr && spec.rate_bps.is_some()));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), crate::to_toml(&fleet(6)).unwrap()).unwrap();
        let streams = Mesh { light: Some(3), patterns: vec!["stream".into()], ..mesh() };
        let refused = streams.plan(file.path().to_str().unwrap(), &fleet(6), &Files).unwrap_err().to_string();
        assert!(refused.contains("each needs a bounded rate: give `--rate`"), "{refused}");
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |mesh: Mesh| mesh.text("f", &fleet(8)).unwrap_err().to_string();
        assert!(refused(Mesh { pairing: Pairing::All(Some("x".into())), ..mesh() }).contains("f has no host 'x'"));
        assert!(refused(Mesh { cluster: Some("row".into()), share: 0.5, ..mesh() }).contains("has the label 'row'"));
        let many = mesh().text("f", &fleet(400)).unwrap_err().to_string();
        let (what, remedy) = many.split_once(": ").unwrap();
        assert_eq!(what, "the mesh has 319200 pairs and patterns, more than the limit of 100000");
        let share = remedy.split_once("`--sample ").and_then(|(_, rest)| rest.split_once('`')).unwrap().0;
        let share: Ratio = share.parse().unwrap();
        assert!((0.1..0.33).contains(&share.0), "{share}");
        assert!(Mesh { share: share.0, ..mesh() }.text("f", &fleet(400)).is_ok());
        let incast = Mesh { traffic: Some(traffic(TrafficKind::Incast)), ..mesh() };
        let flows = incast.text("f", &fleet(800)).unwrap_err().to_string();
        assert!(
            flows.starts_with("this mesh has 101600 flows") && flows.contains("fewer hosts with `--to`"),
            "{flows}"
        );
        let more = mesh().text("f", &fleet(3_000)).unwrap_err().to_string();
        assert!(more.contains("measure fewer hosts or patterns at once"), "{more}");
        let alone = mesh().text("f", &fleet(1)).unwrap_err().to_string();
        assert_eq!(alone, "a mesh needs at least two hosts, but f has one");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), crate::to_toml(&fleet(3)).unwrap()).unwrap();
        let wrong = Mesh { fields: vec![("sndbufs".into(), "1".into())], ..mesh() };
        let error = wrong.plan(file.path().to_str().unwrap(), &fleet(3), &Files).unwrap_err().to_string();
        assert!(error.contains("has no 'sndbufs'"), "{error}");
    }
}
