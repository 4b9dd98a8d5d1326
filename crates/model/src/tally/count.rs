//! Reported and unreported counts of a tally. This program reports all of them, a file of another tool some.

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::EndTally;

/// A count of an [`EndTally`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// [`EndTally::bytes_sent`].
    BytesSent,
    /// [`EndTally::bytes_received`].
    BytesReceived,
    /// [`EndTally::calls_sent`].
    CallsSent,
    /// [`EndTally::calls_received`].
    CallsReceived,
    /// [`EndTally::blocks_sent`].
    BlocksSent,
    /// [`EndTally::transactions`].
    Transactions,
    /// [`EndTally::sending_ns`].
    SendingNs,
    /// [`EndTally::receiving_ns`].
    ReceivingNs,
    /// [`EndTally::bytes_unsent`].
    BytesUnsent,
}

impl Count {
    /// All counts.
    pub const ALL: [Self; 9] = [
        Self::BytesSent,
        Self::BytesReceived,
        Self::CallsSent,
        Self::CallsReceived,
        Self::BlocksSent,
        Self::Transactions,
        Self::SendingNs,
        Self::ReceivingNs,
        Self::BytesUnsent,
    ];
}

impl EndTally {
    /// A tally whose counts are all unreported.
    #[must_use]
    pub fn unreported() -> Self {
        Self { unreported: Count::ALL.to_vec(), ..Self::default() }
    }

    /// Sets a count, which is then reported.
    pub fn report(&mut self, count: Count, value: u64) {
        self.unreported.retain(|other| *other != count);
        *self.place(count) = value;
    }

    /// The place of a count.
    fn place(&mut self, count: Count) -> &mut u64 {
        match count {
            Count::BytesSent => &mut self.bytes_sent,
            Count::BytesReceived => &mut self.bytes_received,
            Count::CallsSent => &mut self.calls_sent,
            Count::CallsReceived => &mut self.calls_received,
            Count::BlocksSent => &mut self.blocks_sent,
            Count::Transactions => &mut self.transactions,
            Count::SendingNs => &mut self.sending_ns,
            Count::ReceivingNs => &mut self.receiving_ns,
            Count::BytesUnsent => &mut self.bytes_unsent,
        }
    }

    /// A count; `None` if it is unreported.
    #[must_use]
    pub fn reported(&self, count: Count) -> Option<u64> {
        (!self.unreported.contains(&count)).then_some(match count {
            Count::BytesSent => self.bytes_sent,
            Count::BytesReceived => self.bytes_received,
            Count::CallsSent => self.calls_sent,
            Count::CallsReceived => self.calls_received,
            Count::BlocksSent => self.blocks_sent,
            Count::Transactions => self.transactions,
            Count::SendingNs => self.sending_ns,
            Count::ReceivingNs => self.receiving_ns,
            Count::BytesUnsent => self.bytes_unsent,
        })
    }
}

/// An unreported count, while a document is read.
pub(super) fn unreported() -> u64 {
    u64::MAX
}

/// A count of a document; null is unreported.
pub(super) fn or_unreported<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(unreported))
}

impl<'de> Deserialize<'de> for EndTally {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // The function that serde derives for `remote`, not this one.
        let mut tally = Self::deserialize(from)?;
        for count in Count::ALL {
            let place = tally.place(count);
            if *place == unreported() {
                *place = 0;
                tally.unreported.push(count);
            }
        }
        Ok(tally)
    }
}

impl Serialize for EndTally {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self {
            began_ns,
            bytes_sent: _,
            bytes_received: _,
            calls_sent: _,
            calls_received: _,
            blocks_sent: _,
            transactions: _,
            sending_ns: _,
            receiving_ns: _,
            after_first,
            before_last,
            measured,
            steady_from_ns,
            rtt,
            probe,
            probes,
            pacing,
            datagrams,
            sizes,
            one_way,
            stamps,
            anatomy,
            bytes_unsent: _,
            intervals,
            flows,
            spent,
            stalled,
            cut_short,
            unreported,
        } = self;
        let present = [measured.is_some(), rtt.is_some(), probe.is_some(), pacing.is_some(), datagrams.is_some()];
        let more = [one_way.is_some(), !intervals.is_empty(), !flows.is_empty(), spent.is_some()];
        let windows = [after_first.is_some(), before_last.is_some(), stamps.is_some(), anatomy.is_some()];
        let lists = [!sizes.is_empty(), !probes.is_empty(), began_ns.is_some(), steady_from_ns.is_some()];
        let optional = present.iter().chain(&more).chain(&windows).chain(&lists).filter(|present| **present).count();
        let counts = Count::ALL.len() - unreported.len();
        let mut document = to.serialize_struct("EndTally", 2 + counts + optional)?;
        let count = |count| self.reported(count);
        began_ns.iter().try_for_each(|ns| document.serialize_field("began_ns", ns))?;
        count(Count::BytesSent).iter().try_for_each(|count| document.serialize_field("bytes_sent", count))?;
        count(Count::BytesReceived).iter().try_for_each(|count| document.serialize_field("bytes_received", count))?;
        count(Count::CallsSent).iter().try_for_each(|count| document.serialize_field("calls_sent", count))?;
        count(Count::CallsReceived).iter().try_for_each(|count| document.serialize_field("calls_received", count))?;
        count(Count::BlocksSent).iter().try_for_each(|count| document.serialize_field("blocks_sent", count))?;
        count(Count::Transactions).iter().try_for_each(|count| document.serialize_field("transactions", count))?;
        count(Count::SendingNs).iter().try_for_each(|count| document.serialize_field("sending_ns", count))?;
        count(Count::ReceivingNs).iter().try_for_each(|count| document.serialize_field("receiving_ns", count))?;
        after_first.iter().try_for_each(|window| document.serialize_field("after_first", window))?;
        before_last.iter().try_for_each(|window| document.serialize_field("before_last", window))?;
        measured.iter().try_for_each(|measured| document.serialize_field("measured", measured))?;
        steady_from_ns.iter().try_for_each(|ns| document.serialize_field("steady_from_ns", ns))?;
        rtt.iter().try_for_each(|rtt| document.serialize_field("rtt", rtt))?;
        probe.iter().try_for_each(|probe| document.serialize_field("probe", probe))?;
        if !probes.is_empty() {
            document.serialize_field("probes", probes)?;
        }
        pacing.iter().try_for_each(|pacing| document.serialize_field("pacing", pacing))?;
        datagrams.iter().try_for_each(|datagrams| document.serialize_field("datagrams", datagrams))?;
        if !sizes.is_empty() {
            document.serialize_field("sizes", sizes)?;
        }
        one_way.iter().try_for_each(|one_way| document.serialize_field("one_way", one_way))?;
        stamps.iter().try_for_each(|stamps| document.serialize_field("stamps", stamps))?;
        anatomy.iter().try_for_each(|anatomy| document.serialize_field("anatomy", anatomy))?;
        count(Count::BytesUnsent).iter().try_for_each(|count| document.serialize_field("bytes_unsent", count))?;
        if !intervals.is_empty() {
            document.serialize_field("intervals", intervals)?;
        }
        if !flows.is_empty() {
            document.serialize_field("flows", flows)?;
        }
        spent.iter().try_for_each(|spent| document.serialize_field("spent", spent))?;
        document.serialize_field("stalled", stalled)?;
        document.serialize_field("cut_short", cut_short)?;
        document.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Window;
    use crate::{DatagramTally, Interval};

    #[test]
    fn an_unreported_count_is_absent_and_stays_so() {
        let mut tally = EndTally::unreported();
        tally.report(Count::BytesReceived, 0);
        tally.report(Count::ReceivingNs, 7);
        let mut document = serde_json::to_value(&tally).unwrap();
        assert_eq!(document["bytes_received"], 0);
        assert_eq!(document["receiving_ns"], 7);
        assert!(document.get("bytes_sent").is_none() && document.get("transactions").is_none(), "{document}");
        // Null says the same.
        document["calls_sent"] = serde_json::Value::Null;
        assert_eq!(serde_json::from_value::<EndTally>(document).unwrap(), tally);
        assert_eq!((tally.reported(Count::BytesReceived), tally.reported(Count::BytesSent)), (Some(0), None));
        let nothing = serde_json::to_string(&EndTally::unreported()).unwrap();
        assert_eq!(nothing, r#"{"stalled":false,"cut_short":false}"#);
    }

    #[test]
    fn a_measured_tally_reports_all_its_counts() {
        let tally = EndTally {
            bytes_sent: 3,
            after_first: Some(Window { bytes: 2, ns: 2 }),
            before_last: Some(Window { bytes: 1, ns: 2 }),
            measured: Some(Window { bytes: 2, ns: 1 }),
            datagrams: Some(DatagramTally::default()),
            intervals: vec![Interval::default()],
            ..EndTally::default()
        };
        let document = serde_json::to_value(&tally).unwrap();
        assert_eq!((&document["calls_sent"], &document["bytes_sent"]), (&0.into(), &3.into()));
        assert!(document.get("flows").is_none(), "{document}");
        assert_eq!(serde_json::from_value::<EndTally>(document).unwrap(), tally);
    }
}
