//! iperf 2's round trips (--bounceback): `... 20=0.211/0.014/3.816/0.849 ms  0  576K/910 us  4743 rps`.

use model::{Spec, Stop};

use super::super::iperf::Line;
use crate::listing::Row;
use crate::text::{ns, number};

/// The row of a total line with round trips; `None` for any other line.
pub(super) fn row(at: u32, text: &str, total: &Line<'_>, block: Option<u64>) -> Option<Row> {
    let [trips, "ms", ..] = total.rest.as_slice() else { return None };
    let (count, times) = trips.split_once('=')?;
    let times: Vec<f64> = times.split('/').map(number).collect::<Option<_>>()?;
    let [mean, min, max, _] = times[..] else { return None };
    let per_second = total.rest.windows(2).find(|pair| pair[1] == "rps").and_then(|pair| number(pair[0]))?;
    let mut spec = Spec { stop: Stop::TimeNs(ns(total.end_s - total.start_s).max(1)), ..Spec::new("tcp", "rr") };
    spec.block = block.unwrap_or(spec.block);
    let mut row = Row::new(spec, per_second, at, text);
    row.figure("round_trips", number(count)?);
    for (name, ms) in [("mean", mean), ("min", min), ("max", max)] {
        row.figure(&format!("rtt_{name}_ns"), ms * 1e6);
    }
    row.remarks.push("round trips in bursts: the value is iperf's rate without the pauses between them".into());
    Some(row)
}
