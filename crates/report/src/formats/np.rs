//! NetPIPE 3.7.2's `np.out`, for the scripts that read it.
//!
//! Each line is `%8d %lf %12.8lf`: bytes, rate, seconds. The rate is in NetPIPE's "Mbps" of 2^20 bit/s, and the seconds are
//! half of a round trip (for streams the time of a block). With both directions at once, NetPIPE counts the bytes of both.
//! NetPIPE takes the fastest of its trials; this is the outcome's value, the one with the interval.
//! Source: NetPIPE 3.7.2, `src/netpipe.c`.

use model::{Direction, Outcome, Run, RunKind, Spec};

use crate::figures::{Measure, curve_lines, curve_points};
use crate::view::Piece;
use crate::{NoForm, ReportError, View};

/// NetPIPE's "Mbps".
pub(super) const NETPIPE_MEGABIT: f64 = 1_048_576.0;

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    only_curves(view, "np")?;
    each_line(view, "np.out", |_, points| {
        points.iter().map(|point| np_line(point.bytes, point.mbps, point.seconds)).collect()
    })
}

/// The file of NetPIPE 2, whose scripts plot columns 4:2 and 1:2. Each line is seconds, 2^20 bit/s, bits, bytes and the variance of
/// the time over the trials, in s².
/// Source: NetPIPE 2.4, `netpipe.c`.
pub(super) fn render_2(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    only_curves(view, "np2")?;
    each_line(view, "np2", |outcomes, points| {
        let variances = outcomes.iter().filter(|outcome| np_point(outcome).is_some()).map(|outcome| variance(outcome));
        let line = |(point, variance): (&NpPoint, f64)| {
            let NpPoint { bytes, mbps, seconds, .. } = point;
            format!("{seconds:.9} {mbps:.6} {} {bytes} {variance:.9e}\n", u128::from(*bytes) * 8)
        };
        points.iter().zip(variances).map(line).collect()
    })
}

/// The variance of a block's time over the trials, s².
fn variance(outcome: &Outcome) -> f64 {
    let bits = outcome.spec.block as f64 * 8.0;
    let seconds = |value: f64| match outcome.estimate.as_ref().map(|estimate| estimate.unit.as_str()) {
        Some("ns") => value / 2e9,
        _ => bits / value,
    };
    let times: Vec<f64> =
        outcome.trials.iter().filter_map(|trial| trial.value).filter(|value| *value > 0.0).map(seconds).collect();
    let count = times.len().max(1) as f64;
    let mean = times.iter().sum::<f64>() / count;
    // The sum of nothing is -0.
    times.iter().map(|time| (time - mean).powi(2)).sum::<f64>().abs() / count
}

/// Accepts only curves, also those of a plan.
pub(super) fn takes(kind: RunKind, spec: &Spec) -> Result<(), NoForm> {
    if kind == RunKind::Curve || spec.is_point() { Ok(()) } else { Err(NoForm::Kind(kind)) }
}

/// One point in NetPIPE's terms.
pub(super) struct NpPoint {
    pub(super) bytes: u64,
    /// In 2^20 bit/s.
    pub(super) mbps: f64,
    pub(super) seconds: f64,
    /// Blocks sent in a trial, on average.
    pub(super) repeats: u64,
}

/// A piece for each line of each curve, usually one per run; those of a plan are named by their levels.
pub(super) fn each_line(
    view: &View<'_>,
    extension: &str,
    text: impl Fn(&[&Outcome], &[NpPoint]) -> String,
) -> Result<Vec<Piece>, ReportError> {
    // NetPIPE's file has no ceiling.
    let lines: Vec<_> = curve_lines(view.runs).into_iter().filter(|line| !line.reference).collect();
    Ok(lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let id = &view.runs[line.run].header.id;
            let several = lines.iter().filter(|other| other.run == line.run).count() > 1;
            let stem = match (several, &view.runs[line.run].header.plan) {
                (false, _) => id.clone(),
                (true, None) => format!("{id}-{}", index + 1),
                (true, Some(_)) => format!("{id}-{}", line.name.replace(", ", "-")),
            };
            let points: Vec<NpPoint> = line.outcomes.iter().filter_map(|outcome| np_point(outcome)).collect();
            Piece::new(&stem, extension, text(&line.outcomes, &points).into_bytes())
        })
        .collect())
}

pub(super) fn only_curves(view: &View<'_>, format: &'static str) -> Result<(), ReportError> {
    view.some_run(format)?;
    let points = |run: &Run| run.outcomes.iter().any(|outcome| np_point(outcome).is_some());
    let has_curves =
        |run: &Run| run.header.kind == RunKind::Curve || run.outcomes.iter().any(|outcome| outcome.spec.is_point());
    match view.runs.iter().find(|run| !has_curves(run)) {
        Some(Run { header, .. }) => Err(ReportError::NotACurve { format, run: header.id.clone(), kind: header.kind }),
        None if view.runs.iter().any(points) => Ok(()),
        None => Err(ReportError::NothingToDraw { format }),
    }
}

fn np_point(outcome: &Outcome) -> Option<NpPoint> {
    let rate = curve_points(&[outcome], Measure::Netpipe)
        .first()
        .or(curve_points(&[outcome], Measure::Goodput).first())
        .map(|point| point.rate.value)?;
    let both = outcome.spec.direction == Direction::Both;
    let bytes = if both { outcome.spec.block.saturating_mul(2) } else { outcome.spec.block };
    let trials = outcome.trials.len().max(1) as u64;
    let sent = outcome.trials.iter().map(|trial| trial.near.blocks_sent.max(trial.near.transactions)).sum::<u64>();
    Some(NpPoint {
        bytes,
        mbps: rate / NETPIPE_MEGABIT,
        seconds: bytes as f64 * 8.0 / rate,
        repeats: (sent + trials / 2) / trials,
    })
}

/// `%8d %lf %12.8lf\n`.
fn np_line(bytes: u64, mbps: f64, seconds: f64) -> String {
    format!("{bytes:8} {mbps:.6} {seconds:12.8}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const RECORDED: &str = include_str!("../../testdata/netpipe372_np.out");

    #[test]
    fn a_recorded_file_is_reproduced_byte_for_byte() {
        for line in RECORDED.lines() {
            let mut fields = line.split_whitespace();
            let mut next = || fields.next().unwrap();
            let written = np_line(next().parse().unwrap(), next().parse().unwrap(), next().parse().unwrap());
            assert_eq!(written, format!("{line}\n"));
        }
    }

    #[test]
    fn a_run_with_the_recorded_rates_gives_the_recorded_file() {
        let run = sample::netpipe_recorded(RECORDED);
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        assert_eq!(pieces.len(), 1);
        assert_eq!(std::str::from_utf8(&pieces[0].bytes).unwrap(), RECORDED);
        assert!(pieces[0].name.ends_with(".np.out"), "{}", pieces[0].name);
    }

    #[test]
    fn scripts_for_netpipe_2_find_bytes_over_rate_in_columns_4_and_2() {
        let run = sample::curve();
        let pieces = render_2(&View::new(std::slice::from_ref(&run))).unwrap();
        let text = std::str::from_utf8(&pieces[0].bytes).unwrap();
        let rows: Vec<Vec<f64>> =
            text.lines().map(|line| line.split(' ').map(|field| field.parse().unwrap()).collect()).collect();
        assert_eq!(rows.len(), run.outcomes.len());
        for (row, outcome) in rows.iter().zip(&run.outcomes) {
            let [seconds, mbps, bits, bytes, variance] = row[..] else { panic!("{row:?}") };
            assert_eq!((bytes as u64, bits), (outcome.spec.block, bytes * 8.0));
            assert!((mbps * NETPIPE_MEGABIT / outcome.summary.netpipe_bps.unwrap() - 1.0).abs() < 1e-5);
            assert!((seconds / (bits / (mbps * NETPIPE_MEGABIT)) - 1.0).abs() < 1e-3, "{row:?}");
            // The trials of the sample differ by about 1 %.
            assert!((0.001..0.05).contains(&(variance.sqrt() / seconds)), "{row:?}");
        }
        // Our own import takes it for what it is.
        let back = import::read(text.as_bytes(), None).unwrap();
        assert_eq!(back.imported[0].rows.len(), run.outcomes.len());
    }

    #[test]
    fn each_curve_of_a_plan_has_a_file_with_its_levels_in_the_name() {
        let mut run = sample::curve();
        let mtu =
            model::Factor { name: "mtu".into(), levels: vec!["1500".into(), "9000".into()], ..Default::default() };
        run.header.plan = Some(Box::new(model::Plan { factors: vec![mtu], ..Default::default() }));
        run.header.kind = RunKind::Run;
        run.header.cells.clear();
        let points = std::mem::take(&mut run.outcomes);
        for (level, point) in
            ["1500", "9000"].into_iter().flat_map(|level| points[..9].iter().map(move |one| (level, one)))
        {
            let id = run.header.cells.len() as u32;
            let spec = Spec { stop: model::Stop::AboutNs(1), ..Spec::clone(&point.spec) };
            let levels = [("mtu".to_owned(), level.to_owned())].into();
            run.header.cells.push(model::Cell { levels, ..model::Cell::new(id, spec.clone()) });
            run.outcomes.push(Outcome { cell: id, spec: spec.into(), ..point.clone() });
        }
        let pieces = render_2(&View::new(std::slice::from_ref(&run))).unwrap();
        let names: Vec<&str> = pieces.iter().map(|piece| piece.name.as_str()).collect();
        assert_eq!(names, [format!("{}-mtu-1500.np2", run.header.id), format!("{}-mtu-9000.np2", run.header.id)]);
        assert_eq!(std::str::from_utf8(&pieces[1].bytes).unwrap().lines().count(), 9);
    }

    #[test]
    fn other_kinds_are_refused_by_name() {
        let error = render(&View::new(&[sample::stream()])).unwrap_err();
        assert!(error.to_string().contains("'stream'"), "{error}");
    }

    #[test]
    fn both_directions_count_twice_the_bytes() {
        let mut run = sample::netpipe_recorded(RECORDED);
        run.outcomes.truncate(1);
        run.outcomes[0].spec.direction = Direction::Both;
        let pieces = render(&View::new(&[run])).unwrap();
        assert!(pieces[0].bytes.starts_with(b"       2 0.766073   0.00001992"), "{:?}", pieces[0].bytes);
    }
}
