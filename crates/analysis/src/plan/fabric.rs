//! What the clusters of a matrix, such as racks, explain: the pairs within a cluster have a level, those between two another one, and some
//! clusters differ from these ([`Term`]).
//!
//! A block is all pairs from the hosts of one cluster to those of another one, or of the same; its value is the median of theirs, which a
//! slow host or pair does not move. Of all explanations of the blocks by two levels and few terms the cheapest one is searched for:
//! the sum of what it leaves of each block, and a price for each term, which is higher for a fast one, since of two explanations the one
//! that names what is slow is meant. The search is greedy from several levels, as the slow blocks may be the majority: of three racks one
//! with a slow uplink has four of the six blocks between two. A term counts only if most of its hosts are on its side, so that one slow
//! host makes no slow rack.

use std::collections::{BTreeMap, BTreeSet};

use model::median;

use super::logs::LEAST;
use crate::stats::MeanDifference;
use crate::stats::two_way::TableValue;

/// The median absolute deviation of normal values is their standard deviation over this.
pub(super) const NORMAL: f64 = 1.4826;
/// The variance of the median of normal values is this many times that of their mean.
pub(super) const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;
/// Fewest pairs of a block that is a term by itself.
const LEAST_PAIRS: usize = 3;
/// Most terms.
const MOST_TERMS: usize = 8;
/// Price of a fast term in those of a slow one.
const FAST: f64 = 5.0;
/// Price of a term whose pairs all have one already, in those of another one: several tests share an uplink in some steps more than in
/// others, so that its blocks differ.
const NESTED: f64 = 3.0;
/// Where among the values of the blocks the search begins.
const STARTS: [f64; 5] = [0.5, 0.75, 0.25, 0.9, 0.1];
/// Price of a term at least, in standard errors of a block.
const PRICE: f64 = 3.0;
/// How often the search is repeated without the terms to whose side too few of their hosts are.
const RETRIES: usize = 12;
/// How often levels and terms are found anew when one is added.
const POLISHES: usize = 5;
/// Pairs of a term that vary this many times as much as the others are compared among themselves.
const VARIES: f64 = 2.0;

/// Which pairs a term is about. Clusters have numbers; a side is 0 for senders and 1 for receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All pairs of its hosts on a side.
    Hosts { side: usize, cluster: usize },
    /// Those of them with hosts of other clusters: an uplink in one direction.
    Uplink { side: usize, cluster: usize },
    /// The pairs from one cluster to another one, or within one.
    Block { from: usize, to: usize },
}

impl Reach {
    fn covers(self, block: [usize; 2]) -> bool {
        match self {
            Self::Hosts { side, cluster } => block[side] == cluster,
            Self::Uplink { side, cluster } => block[side] == cluster && block[0] != block[1],
            Self::Block { from, to } => block == [from, to],
        }
    }

    /// The sides on which most of its hosts must differ.
    fn sides(self) -> Vec<(usize, usize)> {
        match self {
            Self::Hosts { side, cluster } | Self::Uplink { side, cluster } => vec![(side, cluster)],
            Self::Block { from, to } => vec![(0, from), (1, to)],
        }
    }
}

/// By how much the pairs of some clusters differ from the level.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) reach: Reach,
    /// The median over its hosts, as a logarithm.
    pub(super) test: MeanDifference,
    /// The places of its pairs among the values.
    pub(super) places: Vec<usize>,
    /// What a deviation of its pairs counts beside one of other pairs: less than 1 if its pairs vary much more, as those of an uplink do
    /// that some steps share with more tests than others.
    pub(super) weight: f64,
}

/// The clusters of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fabric {
    /// The clusters' names, by their numbers.
    pub(super) names: Vec<String>,
    /// The level of the pairs within a cluster less that of the pairs between two, as a logarithm; 0 if there are none of either.
    pub(super) within: f64,
    /// The terms that may stand out.
    pub(super) terms: Vec<Term>,
    /// How many terms were compared.
    pub(super) compared: usize,
    /// The standard deviation of the pairs, hosts' effects included, robust.
    pub(super) scale: f64,
}

/// The pairs of two clusters.
struct Block {
    ends: [usize; 2],
    median: f64,
    places: Vec<usize>,
}

impl Block {
    fn is_within(&self) -> bool {
        self.ends[0] == self.ends[1]
    }
}

/// An explanation of the blocks.
#[derive(Clone)]
struct Explanation {
    /// The level of the pairs between two clusters, and that of the pairs within one.
    levels: [f64; 2],
    terms: Vec<(Reach, f64)>,
    cost: f64,
}

impl Explanation {
    fn of(&self, block: [usize; 2]) -> f64 {
        let terms = self.terms.iter().filter(|(reach, _)| reach.covers(block)).map(|(_, value)| value);
        self.levels[usize::from(block[0] == block[1])] + terms.sum::<f64>()
    }
}

impl Fabric {
    /// The clusters of these values; `slow` is the sign of a slow value's difference. `None` with fewer than two clusters.
    pub(super) fn of(values: &[TableValue], clusters: &[Vec<Option<String>>; 2], slow: f64) -> Option<Self> {
        let names: BTreeSet<&String> = clusters.iter().flatten().flatten().collect();
        let number = |name: &Option<String>| names.iter().position(|known| Some(*known) == name.as_ref());
        let of: [Vec<Option<usize>>; 2] = [0, 1].map(|side: usize| clusters[side].iter().map(number).collect());
        let blocks = blocks(values, &of);
        let ends: BTreeSet<usize> = blocks.iter().flat_map(|block| block.ends).collect();
        if ends.len() < 2 {
            return None;
        }
        let hosts = |block: &Block, host: fn(&TableValue) -> usize| {
            block.places.iter().map(|place| host(&values[*place])).collect::<BTreeSet<usize>>().len() as f64
        };
        let least = |block: &Block| hosts(block, |value| value.row).min(hosts(block, |value| value.column));
        let apart = |block: &Block| -> Vec<f64> {
            block.places.iter().map(|place| (values[*place].value - block.median).abs()).collect()
        };
        let usual_hosts = median(&blocks.iter().map(least).collect::<Vec<f64>>())?;
        let large = blocks.iter().filter(|block| block.places.len() >= LEAST_PAIRS);
        let spread = NORMAL * median(&large.flat_map(apart).collect::<Vec<f64>>()).unwrap_or(0.0);
        let price = (LEAST.ln() / 2.0).max(PRICE * spread * (OF_MEDIAN / usual_hosts).sqrt());
        let pairs = Pairs { values, of: &of, blocks: &blocks };
        let mut candidates = candidates(&blocks);
        let compared = candidates.len();
        let mut found = Search::new(&blocks, &candidates, price, slow).best()?;
        for _ in 0..RETRIES {
            let unlike: Vec<Reach> =
                found.terms.iter().filter(|term| !pairs.are_alike(&found, term)).map(|term| term.0).collect();
            if unlike.is_empty() {
                break;
            }
            candidates.retain(|reach| !unlike.contains(reach));
            found = Search::new(&blocks, &candidates, price, slow).best()?;
        }
        let alike = found.terms.iter().filter(|term| pairs.are_alike(&found, term)).copied().collect();
        let found = Explanation { terms: alike, ..found };
        let has = |within: bool| blocks.iter().any(|block| block.is_within() == within);
        let within = if has(true) && has(false) { found.levels[1] - found.levels[0] } else { 0.0 };
        let scale = pairs.scale(&found);
        let terms = found.terms.iter().filter_map(|(reach, _)| pairs.term(&found, *reach, scale)).collect();
        let names = names.into_iter().cloned().collect();
        Some(Self { names, within, terms, compared, scale })
    }
}

/// The blocks with two hosts or more on each side.
fn blocks(values: &[TableValue], of: &[Vec<Option<usize>>; 2]) -> Vec<Block> {
    let mut all: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
    for (place, value) in values.iter().enumerate() {
        if let (Some(from), Some(to)) = (of[0][value.row], of[1][value.column]) {
            all.entry([from, to]).or_default().push(place);
        }
    }
    let several = |places: &[usize], host: fn(&TableValue) -> usize| {
        places.iter().any(|place| host(&values[*place]) != host(&values[places[0]]))
    };
    all.into_iter()
        .filter(|(_, places)| several(places, |value| value.row) && several(places, |value| value.column))
        .filter_map(|(ends, places)| {
            let own: Vec<f64> = places.iter().map(|place| values[*place].value).collect();
            Some(Block { ends, median: median(&own)?, places })
        })
        .collect()
}

/// The terms that there may be.
fn candidates(blocks: &[Block]) -> Vec<Reach> {
    let known: BTreeSet<[usize; 2]> = blocks.iter().map(|block| block.ends).collect();
    let clusters: BTreeSet<usize> = known.iter().flatten().copied().collect();
    let mut all = Vec::new();
    for cluster in &clusters {
        for side in [0, 1] {
            let cluster = *cluster;
            let between = blocks.iter().filter(|block| block.ends[side] == cluster && !block.is_within()).count();
            if between >= 1 && known.contains(&[cluster, cluster]) {
                all.push(Reach::Hosts { side, cluster });
            }
            if between >= 2 {
                all.push(Reach::Uplink { side, cluster });
            }
        }
    }
    let large = |block: &&Block| block.is_within() || block.places.len() >= LEAST_PAIRS;
    all.extend(blocks.iter().filter(large).map(|block| Reach::Block { from: block.ends[0], to: block.ends[1] }));
    all
}

/// A search for the cheapest explanation.
struct Search<'a> {
    blocks: &'a [Block],
    /// The terms that there may be, with the numbers of their blocks.
    candidates: Vec<(Reach, Vec<usize>)>,
    price: f64,
    slow: f64,
}

impl<'a> Search<'a> {
    fn new(blocks: &'a [Block], candidates: &[Reach], price: f64, slow: f64) -> Self {
        let numbers: BTreeMap<[usize; 2], usize> = blocks.iter().map(|block| block.ends).zip(0..).collect();
        let own = |reach: &Reach| {
            let own: Vec<usize> = match reach {
                Reach::Block { from, to } => numbers.get(&[*from, *to]).into_iter().copied().collect(),
                _ => (0..blocks.len()).filter(|at| reach.covers(blocks[*at].ends)).collect(),
            };
            (*reach, own)
        };
        Self { blocks, candidates: candidates.iter().map(own).collect(), price, slow }
    }

    fn best(&self) -> Option<Explanation> {
        let starts = |within: bool| -> Vec<f64> {
            let own = self.blocks.iter().filter(|block| block.is_within() == within);
            let mut values: Vec<f64> = own.map(|block| block.median).collect();
            values.sort_by(f64::total_cmp);
            let Some(last) = values.len().checked_sub(1) else { return vec![0.0] };
            let mut starts: Vec<f64> = Vec::new();
            for share in STARTS {
                let value = values[(share * last as f64).round() as usize];
                if !starts.contains(&value) {
                    starts.push(value);
                }
            }
            starts
        };
        let (between, within) = (starts(false), starts(true));
        let all = between.iter().flat_map(|one| within.iter().map(move |other| self.greedy([*one, *other])));
        all.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    fn price(&self, value: f64) -> f64 {
        self.price * if value * self.slow > 0.0 { 1.0 } else { FAST }
    }

    /// The explanation from these levels: the term that saves most is added as long as one saves more than its price.
    fn greedy(&self, levels: [f64; 2]) -> Explanation {
        let mut found = Explanation { levels, terms: Vec::new(), cost: 0.0 };
        while found.terms.len() < MOST_TERMS {
            let left = self.left(&found);
            let has_term = |block: &Block| found.terms.iter().any(|(reach, _)| reach.covers(block.ends));
            let explained: Vec<bool> = self.blocks.iter().map(has_term).collect();
            let saving = |(reach, own): &(Reach, Vec<usize>)| {
                let nested = if own.iter().all(|at| explained[*at]) { NESTED } else { 1.0 };
                let value = median(&own.iter().map(|at| left[*at]).collect::<Vec<f64>>())?;
                let saving = |at: &usize| left[*at].abs() - (left[*at] - value).abs();
                let saved: f64 = own.iter().map(saving).sum();
                Some((saved - nested * self.price(value), *reach, value))
            };
            let is_new = |(reach, _): &&(Reach, Vec<usize>)| !found.terms.iter().any(|(known, _)| known == reach);
            let best = self.candidates.iter().filter(is_new).filter_map(saving).max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, reach, value)) = best.filter(|(saved, ..)| *saved > 0.0) else { break };
            found.terms.push((reach, value));
            self.polish(&mut found);
        }
        let left: f64 = self.left(&found).iter().map(|left| left.abs()).sum();
        found.cost = left + found.terms.iter().map(|(_, value)| self.price(*value)).sum::<f64>();
        found
    }

    /// What an explanation leaves of each block.
    fn left(&self, found: &Explanation) -> Vec<f64> {
        self.blocks.iter().map(|block| block.median - found.of(block.ends)).collect()
    }

    /// Finds levels, from the blocks without a term, and terms anew.
    fn polish(&self, found: &mut Explanation) {
        let of = |found: &Explanation, has: &dyn Fn(&Block) -> bool| {
            let own = self.blocks.iter().filter(|block| has(block));
            median(&own.map(|block| block.median - found.of(block.ends)).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        let is_free: Vec<[usize; 2]> = self
            .blocks
            .iter()
            .map(|block| block.ends)
            .filter(|ends| !found.terms.iter().any(|(reach, _)| reach.covers(*ends)))
            .collect();
        for _ in 0..POLISHES {
            for within in [false, true] {
                let has = |block: &Block| block.is_within() == within && is_free.binary_search(&block.ends).is_ok();
                found.levels[usize::from(within)] += of(found, &has);
            }
            for at in 0..found.terms.len() {
                let reach = found.terms[at].0;
                found.terms[at].1 += of(found, &|block: &Block| reach.covers(block.ends));
            }
        }
    }
}

/// The values of a matrix with their clusters.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    values: &'a [TableValue],
    of: &'a [Vec<Option<usize>>; 2],
    blocks: &'a [Block],
}

impl Pairs<'_> {
    fn host(self, place: usize, side: usize) -> usize {
        [self.values[place].row, self.values[place].column][side]
    }

    /// What an explanation leaves of each host's pairs in the blocks of `reach`, at the median; without the term itself if `apart`.
    fn of_hosts(self, found: &Explanation, reach: Option<Reach>, side: usize) -> BTreeMap<usize, f64> {
        let mut own: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for block in self.blocks.iter().filter(|block| reach.is_none_or(|reach| reach.covers(block.ends))) {
            let apart = found.terms.iter().find(|(known, _)| Some(*known) == reach).map_or(0.0, |(_, value)| *value);
            let explained = found.of(block.ends) - apart;
            for place in &block.places {
                own.entry(self.host(*place, side)).or_default().push(self.values[*place].value - explained);
            }
        }
        own.into_iter().filter_map(|(host, left)| Some((host, median(&left)?))).collect()
    }

    /// Whether most hosts of a term differ to its side.
    fn are_alike(self, found: &Explanation, (reach, value): &(Reach, f64)) -> bool {
        reach.sides().into_iter().all(|(side, _)| {
            let own = self.of_hosts(found, Some(*reach), side);
            let alike = own.values().filter(|left| **left * value.signum() >= LEAST.ln() / 2.0).count();
            3 * alike >= 2 * own.len()
        })
    }

    /// What an explanation leaves of the pairs of which `has` is true, at the median, without sign, as a standard deviation.
    fn spread(self, found: &Explanation, has: impl Fn([usize; 2]) -> bool) -> Option<f64> {
        let blocks = self.blocks.iter().filter(|block| has(block.ends));
        let left: Vec<f64> = blocks
            .flat_map(|block| {
                let explained = found.of(block.ends);
                block.places.iter().map(move |place| (self.values[*place].value - explained).abs())
            })
            .collect();
        Some(NORMAL * median(&left)?)
    }

    fn scale(self, found: &Explanation) -> f64 {
        let free = |ends: [usize; 2]| !found.terms.iter().any(|(reach, _)| reach.covers(ends));
        self.spread(found, free).or_else(|| self.spread(found, |_| true)).unwrap_or(0.0)
    }

    /// A term with the error of its value: hosts are compared with the spread of the hosts of their own cluster, on that side.
    fn term(self, found: &Explanation, reach: Reach, scale: f64) -> Option<Term> {
        let (side, cluster) = *reach.sides().first()?;
        let own = self.of_hosts(found, Some(reach), side);
        let value = median(&own.values().copied().collect::<Vec<f64>>())?;
        let all = self.of_hosts(found, None, side);
        let mut clusters: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (host, left) in &all {
            if let Some(number) = self.of[side][*host].filter(|number| *number != cluster) {
                clusters.entry(number).or_default().push(*left);
            }
        }
        let others: usize = clusters.values().map(Vec::len).sum();
        let apart = |own: &[f64]| -> Vec<f64> {
            let centre = median(own).unwrap_or(0.0);
            own.iter().map(|left| (left - centre).abs()).filter(|apart| *apart > 0.0).collect()
        };
        let of_others: Vec<f64> = clusters.values().flat_map(|own| apart(own)).collect();
        let of_own = apart(&own.values().copied().collect::<Vec<f64>>());
        let places: Vec<usize> = self
            .blocks
            .iter()
            .filter(|block| reach.covers(block.ends))
            .flat_map(|block| block.places.iter().copied())
            .collect();
        let partners = places.len() as f64 / own.len() as f64;
        let spread = [median(&of_others), median(&of_own)].into_iter().flatten().map(|apart| NORMAL * apart);
        let spread = spread.fold(scale * (OF_MEDIAN / partners).sqrt(), f64::max);
        let df = (own.len() + others).saturating_sub(1 + clusters.len()).max(1) as f64;
        let variance = OF_MEDIAN * (1.0 / own.len() as f64 + 1.0 / others.max(1) as f64);
        let varies = self.spread(found, |ends| reach.covers(ends))?;
        let weight = if scale > 0.0 && varies > VARIES * scale { scale / varies } else { 1.0 };
        let test = MeanDifference { value, standard_error: spread * variance.sqrt(), df };
        Some(Term { reach, test, places, weight })
    }
}
