//! iperf 2's round trips (--bounceback): `... 20=0.211/0.014/3.816/0.849 ms  0  576K/910 us  4743 rps`, since 2.2 with `RPS=4743`.

use model::{Pattern, Spec, Stop};

use super::super::iperf::Line;
use crate::listing::Row;
use crate::text::{block, ns, number};

/// Bytes of a request and of its reply in the line of a connection: `(bb w/quickack len/hold=100/0)` or `(bb w/quickack
/// req/reply/hold=1000/500/0)`; `None` for a connection of another test.
pub(super) fn sizes(connection: &str) -> Option<[u64; 2]> {
    let (names, values) = connection.split_once("(bb ")?.1.split(')').next()?.split_once('=')?;
    let mut values = values.split('/').map(|word| block(number(word)?));
    let request = values.next()??;
    let reply = if names.contains("reply") { values.next()?? } else { request };
    Some([request, reply])
}

/// The transactions per second in the words after the round trips.
fn per_second(words: &[&str]) -> Option<f64> {
    let before = words.windows(2).find(|pair| pair[1] == "rps").map(|pair| pair[0]);
    let named = || words.iter().find_map(|word| word.strip_prefix("RPS=").filter(|rate| !rate.is_empty()));
    let apart = || words.windows(2).find(|pair| pair[0] == "RPS=").map(|pair| pair[1]);
    number(before.or_else(named).or_else(apart)?)
}

/// The row of a total line with round trips; `None` for any other line.
pub(super) fn row(at: u32, text: &str, total: &Line<'_>, sizes: Option<[u64; 2]>, block: Option<u64>) -> Option<Row> {
    let [trips, "ms", ..] = total.rest.as_slice() else { return None };
    let (count, times) = trips.split_once('=')?;
    let times: Vec<f64> = times.split('/').map(number).collect::<Option<_>>()?;
    let [mean, min, max, _] = times[..] else { return None };
    let per_second = per_second(&total.rest)?;
    let mut spec = Spec { stop: Stop::TimeNs(ns(total.end_s - total.start_s).max(1)), ..Spec::new("tcp", Pattern::Rr) };
    spec.block = sizes.map(|[request, _]| request).or(block).unwrap_or(spec.block);
    spec.reply = sizes.map(|[_, reply]| reply).filter(|reply| *reply != spec.block);
    let mut row = Row::new(spec, per_second, at, text);
    row.figure("round_trips", number(count)?);
    for (name, ms) in [("mean", mean), ("min", min), ("max", max)] {
        row.figure(&format!("rtt_{name}_ns"), ms * 1e6);
    }
    row.remarks.push("round trips in bursts: the value is iperf's rate without the pauses between them".into());
    Some(row)
}
