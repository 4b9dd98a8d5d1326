//! A latency histogram that merges without loss and says what it could not hold.

use std::fmt;

use hdrhistogram::Histogram as Hdr;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counts of times in nanoseconds, from 1 ns to one hour, each known to three significant digits (a bucket is at most
/// 0.1 % wide). Values beyond an hour are counted in the last bucket and in [`out_of_range`](Self::out_of_range).
///
/// In documents: `{"unit":"ns","count":n,"out_of_range":n,"buckets":[[value_ns,count],...]}`, ascending, empty buckets left
/// out. Two histograms merge by adding their buckets, so a percentile over threads, trials or hosts is one of all their
/// samples, never an average of percentiles.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: Hdr<u64>,
    out_of_range: u64,
}

impl Histogram {
    /// The largest value that has a bucket of its own: one hour, in nanoseconds.
    pub const MAX_NS: u64 = 3_600_000_000_000;
    const DIGITS: u8 = 3;

    /// An empty histogram, wholly allocated.
    #[must_use]
    #[allow(clippy::expect_used, reason = "constants within hdrhistogram's documented limits; a test builds one")]
    pub fn new() -> Self {
        let counts = Hdr::new_with_bounds(1, Self::MAX_NS, Self::DIGITS).expect("constant bounds are valid");
        Self { counts, out_of_range: 0 }
    }

    /// Counts one time in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` samples of the same time.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if ns > Self::MAX_NS {
            self.out_of_range += n;
        }
        self.counts.saturating_record_n(ns.max(1), n);
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        // Same bounds by construction, so adding cannot fail.
        let _ = self.counts.add(&other.counts);
        self.out_of_range += other.out_of_range;
    }

    /// Forgets all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.reset();
        self.out_of_range = 0;
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Samples above [`MAX_NS`](Self::MAX_NS); they are in the count too.
    #[must_use]
    pub fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// The value at quantile `q` (0 to 1) in nanoseconds, `None` when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.counts.value_at_quantile(q).min(self.counts.max()))
    }

    /// The smallest sample in nanoseconds, `None` when empty.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.counts.min_nz())
    }

    /// The largest sample in nanoseconds, `None` when empty.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.counts.max())
    }

    /// The mean in nanoseconds, `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.counts.mean())
    }

    /// `(value in ns, count)` of each bucket that is not empty, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} samples, p50 {:?} ns)", self.count(), self.quantile(0.5))
    }
}

/// The document's form.
#[derive(Serialize, Deserialize)]
struct Sparse {
    unit: Unit,
    count: u64,
    out_of_range: u64,
    buckets: Vec<(u64, u64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Ns,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets = self.buckets().collect();
        Sparse { unit: Unit::Ns, count: self.count(), out_of_range: self.out_of_range, buckets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sparse = Sparse::deserialize(deserializer)?;
        let mut histogram = Self::new();
        for (value, count) in sparse.buckets {
            histogram.counts.saturating_record_n(value.max(1), count);
        }
        histogram.out_of_range = sparse.out_of_range;
        if histogram.count() != sparse.count {
            return Err(serde::de::Error::custom("the buckets do not add up to the histogram's count"));
        }
        Ok(histogram)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Counts of times; [value in ns, count] of each bucket that is not empty, ascending.",
            "type": "object",
            "properties": {
                "unit": { "const": "ns" },
                "count": { "type": "integer", "minimum": 0 },
                "out_of_range": { "type": "integer", "minimum": 0 },
                "buckets": {
                    "type": "array",
                    "items": { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 2, "maxItems": 2 }
                }
            },
            "required": ["unit", "count", "out_of_range", "buckets"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn out_of_range_is_counted_not_dropped() {
        let mut histogram = Histogram::new();
        histogram.record(Histogram::MAX_NS + 1);
        histogram.record(u64::MAX);
        assert_eq!((histogram.count(), histogram.out_of_range()), (2, 2));
    }

    #[test]
    fn a_document_with_a_wrong_count_is_refused() {
        let text = r#"{"unit":"ns","count":3,"out_of_range":0,"buckets":[[10,2]]}"#;
        assert!(serde_json::from_str::<Histogram>(text).is_err());
    }

    proptest! {
        #[test]
        fn merging_equals_recording_all(a in prop::collection::vec(1u64..10_000_000_000, 0..50), b in prop::collection::vec(1u64..10_000_000_000, 0..50)) {
            let fill = |values: &[u64]| {
                let mut histogram = Histogram::new();
                values.iter().for_each(|value| histogram.record(*value));
                histogram
            };
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            let whole = fill(&all);
            prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), whole.buckets().collect::<Vec<_>>());
        }

        #[test]
        fn a_round_trip_keeps_every_bucket_within_a_thousandth(values in prop::collection::vec(1u64..Histogram::MAX_NS, 1..60)) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            let text = serde_json::to_string(&histogram).expect("serialises");
            let back: Histogram = serde_json::from_str(&text).expect("parses");
            prop_assert_eq!(back.buckets().collect::<Vec<_>>(), histogram.buckets().collect::<Vec<_>>());
            let mut sorted = values;
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() - 1) / 2] as f64;
            let read = back.quantile(0.5).expect("not empty") as f64;
            prop_assert!((read - exact).abs() <= exact / 1000.0 + 1.0, "{} for {}", read, exact);
        }
    }
}
