//! The kernel's time stamps of round trips: those of each end, and the parts that both ends' stamps give.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Histogram;

/// A part of a round trip. Each but [`Network`](Self::Network) is a difference of times by one host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From the near program's send call to the stamp of its departure.
    NearSend,
    /// Between the two hosts' stamps, there and back.
    Network,
    /// From the stamp of the arrival at the far host to the far program having the request.
    FarWakeup,
    /// From then to the far program's send call.
    FarTurnaround,
    /// From the far program's send call to the stamp of its departure.
    FarSend,
    /// From the stamp of the arrival at the near host to the near program having the reply.
    NearWakeup,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 6] =
        [Self::NearSend, Self::Network, Self::FarWakeup, Self::FarTurnaround, Self::FarSend, Self::NearWakeup];
}

/// A value for each part of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Parts<T> {
    /// From the near program's send call to the stamp of its departure.
    pub near_send: T,
    /// Between the two hosts' stamps, there and back.
    pub network: T,
    /// From the stamp of the arrival at the far host to the far program having the request.
    pub far_wakeup: T,
    /// From then to the far program's send call.
    pub far_turnaround: T,
    /// From the far program's send call to the stamp of its departure.
    pub far_send: T,
    /// From the stamp of the arrival at the near host to the near program having the reply.
    pub near_wakeup: T,
}

impl<T> Parts<T> {
    /// The value that `of` gives each part.
    #[must_use]
    pub fn of(mut of: impl FnMut(Part) -> T) -> Self {
        Self {
            near_send: of(Part::NearSend),
            network: of(Part::Network),
            far_wakeup: of(Part::FarWakeup),
            far_turnaround: of(Part::FarTurnaround),
            far_send: of(Part::FarSend),
            near_wakeup: of(Part::NearWakeup),
        }
    }

    /// The value of one part.
    #[must_use]
    pub fn get(&self, part: Part) -> &T {
        match part {
            Part::NearSend => &self.near_send,
            Part::Network => &self.network,
            Part::FarWakeup => &self.far_wakeup,
            Part::FarTurnaround => &self.far_turnaround,
            Part::FarSend => &self.far_send,
            Part::NearWakeup => &self.near_wakeup,
        }
    }

    /// As [`get`](Self::get), mutable.
    pub fn get_mut(&mut self, part: Part) -> &mut T {
        match part {
            Part::NearSend => &mut self.near_send,
            Part::Network => &mut self.network,
            Part::FarWakeup => &mut self.far_wakeup,
            Part::FarTurnaround => &mut self.far_turnaround,
            Part::FarSend => &mut self.far_send,
            Part::NearWakeup => &mut self.near_wakeup,
        }
    }
}

/// One end's stamps of a trial, exchange by exchange. Workers send them; the trials of documents have what was made of both ends'
/// stamps instead ([`EndTally::anatomy`](crate::EndTally::anatomy)).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Stamps {
    /// Of the exchanges from each multiple of this number on, the first [`BLOCK`](Self::BLOCK) may be stamped.
    pub every: u64,
    /// The exchanges with all their stamps, in ascending order.
    pub exchanges: Vec<StampedExchange>,
    /// Numbers of the exchanges without one of their stamps.
    pub missing: Vec<u64>,
    /// Numbers of the exchanges during which the host's wall clock was set.
    pub stepped: Vec<u64>,
    /// The kernel's reason for giving no stamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Stamps {
    /// Exchanges of a block; some of a block are stamped.
    pub const BLOCK: u64 = 16;
}

/// One end's part of an exchange, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(from = "ExchangeTuple", into = "ExchangeTuple")]
#[cfg_attr(feature = "schema", schemars(with = "ExchangeTuple"))]
pub struct StampedExchange {
    /// Its number, from 0.
    pub number: u64,
    /// Times in ns, in their order. Of the requesting end: send call to departure, departure to the reply's arrival, arrival to
    /// the program having it. Of the answering end: arrival to the program having it, to its send call, to the departure.
    pub parts_ns: [u64; 3],
    /// Time between departure and arrival (at the answering end between arrival and departure) by the NIC's clock, ns.
    pub hardware_ns: Option<u64>,
}

/// In documents: number, the three times, the NIC's time.
type ExchangeTuple = (u64, u64, u64, u64, Option<u64>);

impl From<ExchangeTuple> for StampedExchange {
    fn from((number, first, second, third, hardware_ns): ExchangeTuple) -> Self {
        Self { number, parts_ns: [first, second, third], hardware_ns }
    }
}

impl From<StampedExchange> for ExchangeTuple {
    fn from(of: StampedExchange) -> Self {
        let [first, second, third] = of.parts_ns;
        (of.number, first, second, third, of.hardware_ns)
    }
}

/// The parts of the stamped round trips of one trial, from both ends' stamps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AnatomyTally {
    /// Exchanges with all stamps of both ends.
    pub stamped: u64,
    /// Exchanges that were to be stamped and lack a stamp.
    pub missing: u64,
    /// Exchanges during which a host's wall clock was set; they are left out.
    pub stepped: u64,
    /// Of the stamped exchanges, those whose network part is by the clocks of both NICs.
    pub hardware: u64,
    /// Why there are no stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The whole round trips.
    pub round_trip: PartTally,
    /// Their parts. For each exchange they add up to its round trip.
    pub parts: Parts<PartTally>,
}

/// Times of one part.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PartTally {
    /// Sum, ns.
    pub sum_ns: u64,
    /// All times.
    pub histogram: Histogram,
}

impl PartTally {
    /// Counts one time.
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.histogram.record(ns);
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.histogram.merge(&other.histogram);
    }
}

impl AnatomyTally {
    /// Adds another trial.
    pub fn merge(&mut self, other: &Self) {
        self.stamped += other.stamped;
        self.missing += other.missing;
        self.stepped += other.stepped;
        self.hardware += other.hardware;
        self.refused = self.refused.take().or_else(|| other.refused.clone());
        self.round_trip.merge(&other.round_trip);
        for part in Part::ALL {
            self.parts.get_mut(part).merge(other.parts.get(part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_a_short_list_in_documents() {
        let exchange = StampedExchange { number: 8, parts_ns: [1, 2, 3], hardware_ns: None };
        let text = serde_json::to_string(&exchange).unwrap();
        assert_eq!(text, "[8,1,2,3,null]");
        assert_eq!(serde_json::from_str::<StampedExchange>(&text).unwrap(), exchange);
    }
}
