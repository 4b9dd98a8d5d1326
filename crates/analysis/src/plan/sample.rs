//! Pairs for fleets that are too large for all of them.

use std::collections::{BTreeMap, BTreeSet};

use model::SplitMix64;

/// Fewest partners of a host in each role: with fewer, a slow host cannot be told from a slow pair.
pub const LEAST_PARTNERS: usize = 3;

/// A sample of the ordered pairs of `clusters.len()` hosts, by their numbers, the near one first. `clusters` has the number of each host's
/// cluster, such as its rack. Each host has about `share` (0 to 1) of the others as its far ends and as many as its near ends, never fewer
/// than [`LEAST_PARTNERS`] if there are so many; each ordered pair of clusters has a pair of hosts, also each cluster of two or more with
/// itself. All hosts are connected by pairs. The same seed gives the same sample.
///
/// The hosts stand on a circle in random order, and each is paired with those at the same random distances: every host then has as many
/// pairs as every other (a circulant design).
#[must_use]
pub fn sample(clusters: &[usize], share: f64, seed: u64) -> Vec<(usize, usize)> {
    let count = clusters.len();
    if count < 2 {
        return Vec::new();
    }
    let mut random = SplitMix64::new(seed);
    let mut circle: Vec<usize> = (0..count).collect();
    random.shuffle(&mut circle);
    let wanted = ((count - 1) as f64 * share).round() as usize;
    // The distance of 1 connects all hosts.
    let mut distances: Vec<usize> = (2..count).collect();
    random.shuffle(&mut distances);
    distances.truncate(wanted.max(LEAST_PARTNERS).saturating_sub(1));
    distances.insert(0, 1);
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    for distance in distances {
        pairs.extend((0..count).map(|at| (circle[at], circle[(at + distance) % count])));
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    circle.iter().for_each(|host| members.entry(clusters[*host]).or_default().push(*host));
    let mut covered: BTreeSet<(usize, usize)> =
        pairs.iter().map(|(near, far)| (clusters[*near], clusters[*far])).collect();
    let mut turn = 0;
    for (one, near) in &members {
        for (other, far) in &members {
            if (one == other && near.len() < 2) || !covered.insert((*one, *other)) {
                continue;
            }
            // Each addition takes other hosts of its clusters than the last one.
            turn += 1;
            let from = near[turn % near.len()];
            let to = far.iter().cycle().skip(turn % far.len()).find(|to| **to != from);
            pairs.extend(to.map(|to| (from, *to)));
        }
    }
    pairs.into_iter().collect()
}

/// The fewest pairs of a sample, whatever its share: one of each ordered pair of clusters.
#[must_use]
pub fn least_sample(clusters: &[usize]) -> usize {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    clusters.iter().for_each(|cluster| *sizes.entry(*cluster).or_default() += 1);
    sizes.len().pow(2) - sizes.values().filter(|size| **size < 2).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_host_and_every_pair_of_clusters_is_covered(
            clusters in prop::collection::vec(0usize..6, 4..40), percent in 1u32..100, seed: u64,
        ) {
            let pairs = sample(&clusters, f64::from(percent) / 100.0, seed);
            let unique: BTreeSet<_> = pairs.iter().collect();
            prop_assert_eq!(unique.len(), pairs.len());
            prop_assert!(pairs.len() >= least_sample(&clusters));
            for host in 0..clusters.len() {
                let least = LEAST_PARTNERS.min(clusters.len() - 1);
                prop_assert!(pairs.iter().filter(|(near, _)| *near == host).count() >= least);
                prop_assert!(pairs.iter().filter(|(_, far)| *far == host).count() >= least);
            }
            let covered: BTreeSet<_> = pairs.iter().map(|(near, far)| (clusters[*near], clusters[*far])).collect();
            for one in &clusters {
                for other in &clusters {
                    let alone = one == other && clusters.iter().filter(|cluster| *cluster == one).count() < 2;
                    prop_assert!(alone || covered.contains(&(*one, *other)), "{} to {}", one, other);
                }
            }
            prop_assert_eq!(&pairs, &sample(&clusters, f64::from(percent) / 100.0, seed));
        }
    }

    #[test]
    fn a_tenth_of_a_hundred_hosts_is_ten_partners_each() {
        let clusters: Vec<usize> = (0..100).map(|host| host / 20).collect();
        let pairs = sample(&clusters, 0.1, 7);
        assert!((1_000..1_010).contains(&pairs.len()), "{}", pairs.len());
        assert!(sample(&[0], 0.5, 1).is_empty());
        assert_eq!(sample(&[0, 0], 0.5, 1), [(0, 1), (1, 0)]);
    }
}
