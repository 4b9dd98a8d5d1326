//! A latency histogram that merges without loss and counts values out of its range.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counts of times in nanoseconds, from 1 ns to one hour, with three significant digits (a bucket is at most 0.1 % wide).
/// Values above an hour are counted in the last bucket and in [`out_of_range`](Self::out_of_range).
///
/// Only buckets with samples need memory, so thousands of short trials stay small. The measuring loops count in an array of all
/// buckets, which the engine converts to this type.
///
/// In documents: `{"unit":"ns","count":n,"out_of_range":n,"buckets":[[value_ns,count],...]}`, ascending, without empty buckets.
/// Two histograms merge by adding their buckets, so a percentile over threads, trials or hosts is one of all their samples,
/// never an average of percentiles.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// Largest value of the bucket in ns, and its count; ascending, no count is 0.
    buckets: Vec<(u64, u64)>,
    count: u64,
    out_of_range: u64,
}

impl Histogram {
    /// The largest value with its own bucket: one hour, in nanoseconds.
    pub const MAX_NS: u64 = 3_600_000_000_000;
    /// Values below are counted exactly; above, each power of two has half as many buckets (the layout of HdrHistogram with
    /// three significant digits).
    pub const EXACT_NS: u64 = 2048;

    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A histogram of buckets as [`buckets`](Self::buckets) returns them, ascending.
    #[must_use]
    pub fn from_buckets(buckets: impl IntoIterator<Item = (u64, u64)>, out_of_range: u64) -> Self {
        let mut histogram = Self { out_of_range, ..Self::new() };
        for (value, n) in buckets {
            histogram.append(value, n);
        }
        histogram
    }

    /// Counts `n` samples of a time that is not below any earlier one.
    fn append(&mut self, ns: u64, n: u64) {
        self.count += n;
        match self.buckets.last_mut() {
            Some(last) if last.0 == edge(ns) => last.1 += n,
            _ if n == 0 => {}
            _ => self.buckets.push((edge(ns), n)),
        }
    }

    /// Counts one time in nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` samples of the same time.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        if ns > Self::MAX_NS {
            self.out_of_range += n;
        }
        self.count += n;
        let edge = edge(ns);
        match self.buckets.binary_search_by_key(&edge, |bucket| bucket.0) {
            Ok(at) => self.buckets[at].1 += n,
            Err(at) => self.buckets.insert(at, (edge, n)),
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        let own = std::mem::take(&mut self.buckets);
        self.buckets.reserve(own.len().max(other.buckets.len()));
        let (mut own, mut others) = (own.into_iter().peekable(), other.buckets.iter().copied().peekable());
        while let (Some(a), Some(b)) = (own.peek(), others.peek()) {
            let next = match a.0.cmp(&b.0) {
                std::cmp::Ordering::Less => own.next(),
                std::cmp::Ordering::Greater => others.next(),
                std::cmp::Ordering::Equal => own.next().zip(others.next()).map(|(a, b)| (a.0, a.1 + b.1)),
            };
            self.buckets.extend(next);
        }
        self.buckets.extend(own.chain(others));
        self.count += other.count;
        self.out_of_range += other.out_of_range;
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Samples above [`MAX_NS`](Self::MAX_NS), which are included in the count.
    #[must_use]
    pub fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// The value at quantile `q` (0 to 1) in nanoseconds: the largest value of the bucket with the sample of rank
    /// `ceil(q * count)`, the first at least. `None` when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        let holder = self.buckets.iter().find(|(_, n)| {
            below += n;
            below >= rank
        });
        holder.or(self.buckets.last()).map(|(ns, _)| *ns)
    }

    /// The smallest sample in nanoseconds, to the width of its bucket; `None` when empty.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.buckets.first().map(|(ns, _)| ns + 1 - width(*ns))
    }

    /// The largest sample in nanoseconds, to the width of its bucket; `None` when empty.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.buckets.last().map(|(ns, _)| *ns)
    }

    /// The mean in nanoseconds, each sample taken at the middle of its bucket; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let middle = |ns: u64| ns as f64 - (width(ns) - 1) as f64 / 2.0;
        let sum: f64 = self.buckets.iter().map(|(ns, n)| middle(*ns) * *n as f64).sum();
        (self.count > 0).then(|| sum / self.count as f64)
    }

    /// `(largest value in ns, count)` of each bucket that is not empty, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().copied()
    }
}

/// Width in ns of the bucket of a value.
fn width(ns: u64) -> u64 {
    ((1 << (ns | 1).ilog2()) / (Histogram::EXACT_NS / 2)).max(1)
}

/// The largest value of the bucket that counts `ns`.
fn edge(ns: u64) -> u64 {
    let ns = ns.clamp(1, Histogram::MAX_NS);
    ns | (width(ns) - 1)
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} samples, p50 {:?} ns)", self.count(), self.quantile(0.5))
    }
}

/// The document's form.
#[derive(Serialize, Deserialize)]
struct Document {
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
        let Self { buckets, count, out_of_range } = self.clone();
        Document { unit: Unit::Ns, count, out_of_range, buckets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let document = Document::deserialize(deserializer)?;
        let mut total = 0_u64;
        let mut before = 0;
        for (value, count) in &document.buckets {
            // A sum above 2^64 would wrap around and could equal the count.
            total = total.checked_add(*count).ok_or_else(|| D::Error::custom("the counts of a histogram overflow"))?;
            if *value < before {
                return Err(D::Error::custom("the buckets of a histogram do not ascend"));
            }
            before = *value;
        }
        if total != document.count {
            return Err(D::Error::custom("the buckets do not add up to the histogram's count"));
        }
        Ok(Self::from_buckets(document.buckets, document.out_of_range))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Counts of times: [largest value in ns, count] of each bucket that is not empty, ascending.",
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
