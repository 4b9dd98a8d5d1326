//! What each direction of a test sent and received, in whichever form the version writes it.
//!
//! Since 3.10 there is a pair of sums for each direction. Before, UDP had one sum with the sender's bytes and rate, and the receiver's
//! time and losses. 3.7 to 3.9 write the sums of `--bidir` twice under one name, of which a reader of JSON keeps the last, so they are
//! added up from the streams. A server's file has nothing from its client.

use model::{Direction, Spec, TransportName};
use serde_json::Value;

use super::{count, float};
use crate::error::{Contradiction, ImportError, IperfError};
use crate::text::ns;

/// One direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Way {
    /// From this end to the other.
    pub(super) outbound: bool,
    /// What the key of its sums ends with.
    pub(super) suffix: &'static str,
    /// The sender's figures, if the file has them.
    pub(super) sent: Option<Sum>,
    /// The receiver's.
    pub(super) received: Option<Sum>,
    /// Datagrams sent and lost, as the receiver counted them.
    pub(super) datagrams: Option<(u64, u64)>,
    /// Datagrams that others had overtaken.
    pub(super) out_of_order: Option<u64>,
    pub(super) jitter_ms: Option<f64>,
    /// Why figures of the file are left out.
    pub(super) remarks: Vec<String>,
}

/// Bytes, nanoseconds and bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) bps: f64,
}

/// Rounding of a rate that follows from the bytes and the time beside it.
const ROUNDING: f64 = 0.01;
/// What the key of the second direction's sums ends with.
const SECOND: &str = "_bidir_reverse";

impl Sum {
    /// That of a key, if it is there.
    ///
    /// # Errors
    /// Figures that are none, such as negative ones, and a rate that the bytes and the time contradict.
    fn of(end: &Value, name: &'static str, suffix: &'static str) -> Result<Option<Self>, IperfError> {
        let some = |sum: &&Value| sum.as_object().is_some_and(|figures| !figures.is_empty());
        let Some(sum) = end.get(format!("{name}{suffix}")).filter(some) else { return Ok(None) };
        let printed = sum.get("bits_per_second").map(|_| float(sum, "bits_per_second"));
        let figures = count(sum, "bytes").zip(float(sum, "seconds"));
        let Some((bytes, seconds)) = figures.filter(|_| printed != Some(None)) else {
            return Err(IperfError::BadSum { name, suffix });
        };
        let derived = (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds);
        // A missing rate follows from bytes and time.
        let Some(bps) = printed.flatten().or(derived) else { return Ok(None) };
        match derived.filter(|derived| (derived - bps).abs() > ROUNDING * derived.max(bps)) {
            Some(_) => {
                let contradiction = Contradiction::Rate { bytes: bytes as f64, seconds, decimals: None, bps };
                Err(IperfError::Sum { name, suffix, contradiction })
            }
            None => Ok(Some(Self { bytes, ns: ns(seconds), bps })),
        }
    }

    /// The sum of several streams at the same time.
    fn together(self, other: Self) -> Self {
        let bytes = self.bytes.saturating_add(other.bytes);
        Self { bytes, ns: self.ns.max(other.ns), bps: self.bps + other.bps }
    }
}

/// The directions of a test, the client's own first, as the end that wrote the file saw them.
///
/// # Errors
/// Figures that contradict each other.
pub(super) fn ways(end: &Value, spec: &Spec, by_server: bool) -> Result<Vec<Way>, ImportError> {
    let both = spec.direction == Direction::Both;
    let all = match () {
        () if both && end.get("sum_received_bidir_reverse").is_none() => of_streams(end)?,
        () if both => vec![of_sums(end, "", !by_server)?, of_sums(end, SECOND, by_server)?],
        () => vec![of_sums(end, "", spec.direction == Direction::Send)?],
    };
    let mut all: Vec<Way> = all
        .into_iter()
        .map(|way| match (way.received, end.get("sum")) {
            (None, Some(sum)) if spec.transport == TransportName::Udp && !both => of_one_sum(way, sum, spec),
            _ => Ok(way),
        })
        .collect::<Result<_, _>>()?;
    for way in all.iter_mut().filter(|_| by_server) {
        // The zeros of the client's side mean that nobody reported it.
        if way.outbound { (way.received, way.datagrams) = (None, None) } else { way.sent = None }
    }
    let contradicts = |way: &&Way| way.datagrams.is_some_and(|(sent, lost)| lost > sent);
    if let Some((sent, lost)) = all.iter().find(contradicts).and_then(|way| way.datagrams) {
        return Err(Contradiction::Lost { lost, all: sent }.into());
    }
    for way in &mut all {
        way.check_streams(end, both)?;
        // An interrupted client has not fetched what its server sent.
        if way.received.is_some_and(|sum| sum.bytes > 0) && way.sent.take_if(|sum| sum.bytes == 0).is_some() {
            way.remarks.push("bytes arrived from a sender that reports none: what it sent is unknown".into());
        }
        way.check_arrivals(spec)?;
        way.leave_out(end, spec, both);
    }
    Ok(all)
}

impl Way {
    /// The streams of this direction. Before 3.7 a stream does not say which one that is.
    fn streams<'a>(&self, end: &'a Value, both: bool) -> impl Iterator<Item = &'a Value> {
        let outbound = Value::Bool(self.outbound);
        let all = end.get("streams").and_then(Value::as_array).into_iter().flatten();
        all.filter(move |stream| !both || ["sender", "udp"].iter().any(|side| stream[*side]["sender"] == outbound))
    }

    /// Refuses bytes that those of the streams contradict.
    fn check_streams(&self, end: &Value, both: bool) -> Result<(), IperfError> {
        for (side, name, sum) in [("sender", "sum_sent", self.sent), ("receiver", "sum_received", self.received)] {
            let each: Option<Vec<u64>> =
                self.streams(end, both).map(|stream| count(stream.get(side)?, "bytes")).collect();
            let (Some(sum), Some(each)) = (sum, each.filter(|each| !each.is_empty())) else { continue };
            let total = each.into_iter().fold(0, u64::saturating_add);
            if total.abs_diff(sum.bytes) as f64 > ROUNDING * total.max(sum.bytes) as f64 {
                let contradiction = Contradiction::Streams { sum: sum.bytes, streams: total };
                return Err(IperfError::Sum { name, suffix: self.suffix, contradiction });
            }
        }
        Ok(())
    }

    /// Refuses more bytes received than were sent. The ends of a warm-up may differ, and UDP may double a datagram.
    fn check_arrivals(&self, spec: &Spec) -> Result<(), Contradiction> {
        let bytes =
            self.sent.zip(self.received).filter(|_| spec.transport == TransportName::Tcp && spec.warmup_ns == 0);
        match bytes.map(|(sent, received)| (sent.bytes, received.bytes)) {
            Some((sent, received)) if received as f64 > sent as f64 * (1.0 + ROUNDING) => {
                Err(Contradiction::ReceivedBytes { received: received as f64, sent: sent as f64 })
            }
            _ => Ok(()),
        }
    }

    /// Leaves out figures that cannot be: datagrams of no test, a jitter longer than the test, and a negative count of losses.
    fn leave_out(&mut self, end: &Value, spec: &Spec, both: bool) {
        if spec.transport != TransportName::Udp {
            return;
        }
        let seconds = self.received.or(self.sent).map_or(0.0, |sum| sum.ns as f64 / 1e9);
        if let Some(jitter) = self.jitter_ms.filter(|jitter| jitter / 1e3 > seconds) {
            self.jitter_ms = None;
            self.remarks.push(format!("a jitter of {jitter} ms is longer than the test: not imported"));
        }
        let some = |sum: Option<Sum>| sum.is_some_and(|sum| sum.bytes > 0);
        if self.datagrams == Some((0, 0)) && (some(self.sent) || some(self.received)) {
            self.datagrams = None;
            if some(self.received) {
                self.remarks.push("bytes arrived in 0 datagrams: the loss is unknown".into());
            }
        }
        let names = [format!("sum_received{}", self.suffix), "sum".to_owned()];
        let printed = names
            .iter()
            .filter(|name| !both || name.as_str() != "sum")
            .find_map(|name| end[name.as_str()]["lost_packets"].as_f64());
        if let Some(lost) = printed.filter(|lost| *lost < 0.0) {
            self.remarks.push(format!("{lost} lost datagrams is not a count: the loss is unknown"));
        }
        let each = self.streams(end, both).map(|stream| count(stream.get("udp")?, "out_of_order"));
        let sum = each.collect::<Option<Vec<u64>>>().filter(|each| !each.is_empty());
        self.out_of_order = sum.map(|each| each.into_iter().fold(0, u64::saturating_add));
    }
}

fn of_sums(end: &Value, suffix: &'static str, outbound: bool) -> Result<Way, IperfError> {
    let own = end.get(format!("sum_received{suffix}")).unwrap_or(&Value::Null);
    Ok(Way {
        outbound,
        suffix,
        sent: Sum::of(end, "sum_sent", suffix)?,
        received: Sum::of(end, "sum_received", suffix)?,
        datagrams: count(own, "packets").zip(count(own, "lost_packets")),
        out_of_order: None,
        jitter_ms: float(own, "jitter_ms"),
        remarks: Vec::new(),
    })
}

/// The only sum of UDP before 3.10, with the bytes of all datagrams that were sent, at the sender's rate, beside the receiver's time. Of
/// a server that receives it has the losses alone.
fn of_one_sum(way: Way, sum: &Value, spec: &Spec) -> Result<Way, IperfError> {
    let Some((packets, lost)) = count(sum, "packets").zip(count(sum, "lost_packets")) else { return Ok(way) };
    let Some(seconds) = float(sum, "seconds").filter(|seconds| *seconds > 0.0) else { return Ok(way) };
    let of = |packets: u64| packets.saturating_mul(spec.block);
    let bytes = count(sum, "bytes").filter(|bytes| *bytes > 0);
    if let Some(bytes) = bytes.filter(|bytes| bytes.abs_diff(of(packets)) as f64 > ROUNDING * *bytes as f64) {
        let contradiction = Contradiction::Datagrams { bytes, datagrams: packets, block: spec.block };
        return Err(IperfError::Sum { name: "sum", suffix: "", contradiction });
    }
    let sent = bytes.zip(float(sum, "bits_per_second").filter(|bps| *bps > 0.0));
    let sent = sent.map(|(bytes, bps)| Sum { bytes, ns: ns(bytes as f64 * 8.0 / bps), bps });
    let arrived = of(packets.saturating_sub(lost));
    let received = Sum { bytes: arrived, ns: ns(seconds), bps: arrived as f64 * 8.0 / seconds };
    let jitter_ms = float(sum, "jitter_ms");
    Ok(Way { sent, received: Some(received), datagrams: Some((packets, lost)), jitter_ms, ..way })
}

/// Both directions from the streams, each of which says whether this end sent on it.
fn of_streams(end: &Value) -> Result<Vec<Way>, IperfError> {
    let mut all = [true, false].map(|outbound| Way {
        outbound,
        suffix: if outbound { "" } else { SECOND },
        sent: None,
        received: None,
        datagrams: None,
        out_of_order: None,
        jitter_ms: None,
        remarks: Vec::new(),
    });
    for stream in end.get("streams").and_then(Value::as_array).into_iter().flatten() {
        let side = |name: &str| {
            let figures = stream.get(name)?;
            let (bytes, bps) = (count(figures, "bytes")?, float(figures, "bits_per_second")?);
            // The time beside them is the sender's, also at the receiver.
            let seconds = if bps > 0.0 { bytes as f64 * 8.0 / bps } else { float(figures, "seconds")? };
            Some(Sum { bytes, ns: ns(seconds), bps })
        };
        let outbound = stream.get("sender").and_then(|one| one.get("sender")).and_then(Value::as_bool);
        let (Some(outbound), Some(sent), Some(received)) = (outbound, side("sender"), side("receiver")) else {
            return Err(IperfError::Stream);
        };
        let way = &mut all[usize::from(!outbound)];
        way.sent = Some(way.sent.map_or(sent, |sum| sum.together(sent)));
        way.received = Some(way.received.map_or(received, |sum| sum.together(received)));
    }
    match all.iter().all(|way| way.sent.is_some()) {
        true => Ok(all.into()),
        false => Err(IperfError::NoStream),
    }
}
