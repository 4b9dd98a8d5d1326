//! The impairments of a direction besides delay and rate, each in terms of its source.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text;

/// Random differences of a segment's delay from the path's delay.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Jitter {
    /// How much it differs; the distribution defines the meaning. 0 for none.
    #[serde(with = "text::time")]
    pub spread: Duration,
    /// How the differences are distributed.
    pub distribution: Distribution,
    /// How long a drawn difference holds, by the time at which segments leave the link; 0 draws one for each segment.
    #[serde(with = "text::time")]
    pub every: Duration,
    /// Whether a segment with less delay may overtake one with more. Otherwise the path delays the later one until the
    /// earlier one has arrived.
    pub overtake: bool,
}

/// Distributions of [`Jitter`]. None makes a delay negative: a result below 0 becomes 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Distribution {
    /// Evenly from `delay - spread` to `delay + spread`.
    #[default]
    Uniform,
    /// Normal around `delay`, with the standard deviation `spread`.
    Normal,
    /// `delay` and more: exponential with the mean `spread`, as waiting in a queue of Poisson arrivals is.
    Exponential,
}

/// Delayed segments, which those behind them overtake.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reorder {
    /// Probability from 0 to 1 that a segment is delayed.
    #[serde(with = "text::share")]
    pub probability: f64,
    /// The additional delay.
    #[serde(with = "text::time")]
    pub by: Duration,
}

/// Burst loss: a channel with a good and a bad state, which changes after each segment (E. N. Gilbert, "Capacity of a
/// burst-noise channel", Bell System Technical Journal 39, 1960; E. O. Elliott, "Estimates of error rates for codes on
/// burst-noise channels", the same 42, 1963). It begins in the good state.
///
/// In the long run the fraction `p / (p + r)` of all segments meets the bad state, in bursts of `1 / r` segments on
/// average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bursts {
    /// Probability from 0 to 1 that the good state turns bad.
    #[serde(with = "text::share")]
    pub p: f64,
    /// Probability that the bad state turns good.
    #[serde(with = "text::share")]
    pub r: f64,
    /// Probability that a segment survives the bad state; Gilbert's channel without errors has 0.
    #[serde(with = "text::share")]
    pub h: f64,
    /// Probability that a segment survives the good state; with Gilbert it is 1.
    #[serde(with = "text::share")]
    pub k: f64,
}

impl Default for Bursts {
    /// Never in the bad state, and nothing is lost in the good one.
    fn default() -> Self {
        Self { p: 0.0, r: 1.0, h: 0.0, k: 1.0 }
    }
}

impl Bursts {
    /// The fraction of all segments that is lost in the long run.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let bad = if self.p > 0.0 { self.p / (self.p + self.r) } else { 0.0 };
        bad * (1.0 - self.h) + (1.0 - bad) * (1.0 - self.k)
    }
}

/// What the queue before the link does besides dropping when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Discipline {
    /// Nothing.
    #[default]
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
}

/// Random early detection (S. Floyd, V. Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM
/// Transactions on Networking 1(4), 1993): the longer the average queue, the more of the arriving segments are dropped
/// or marked, evenly spread. The average is in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Red {
    /// Average queue in bytes below which nothing happens (min_th).
    #[serde(with = "text::size")]
    pub min: u64,
    /// Average queue in bytes from which every segment is dropped (max_th), including those that could be marked, as
    /// RFC 3168, section 7, requires.
    #[serde(with = "text::size")]
    pub max: u64,
    /// Probability just below `max` (max_p).
    #[serde(with = "text::share")]
    pub probability: f64,
    /// Weight of the current queue in the average (w_q).
    #[serde(with = "text::share")]
    pub weight: f64,
    /// Whether segments that allow it are marked instead of dropped (ECN, RFC 3168).
    pub ecn: bool,
}

impl Default for Red {
    /// The weight and the probability of the paper's simulations, between 30 kB and 90 kB.
    fn default() -> Self {
        Self { min: 30_000, max: 90_000, probability: 0.02, weight: 0.002, ecn: false }
    }
}

/// Controlled delay (RFC 8289): once segments have waited longer than `target` for longer than `interval`, segments
/// are dropped or marked at an increasing rate until they wait less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Codel {
    /// The acceptable waiting time (TARGET).
    #[serde(with = "text::time")]
    pub target: Duration,
    /// How long it may be exceeded; a round trip of the flows (INTERVAL).
    #[serde(with = "text::time")]
    pub interval: Duration,
    /// Whether segments that allow it are marked instead of dropped (ECN, RFC 3168).
    pub ecn: bool,
}

impl Default for Codel {
    /// The values of RFC 8289, section 4.2 and 4.3: 5 ms and 100 ms.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}
