//! Sequence numbers over time from a capture, as in tcptrace's time sequence graph (Ostermann; Shepard, "TCP Packet Trace
//! Analysis", MIT/LCS/TR-494, 1991).

use model::{Axis, Figure, Look, Point, Run, Scale, Series, TimeSequence};

use super::Drawn;
use super::arrange::panel_for_each;
use super::flow::shown;
use super::line::{Line, single_lines};
use super::subtitle::subtitle;

/// The most points of a line.
const MAX_POINTS: usize = 1_000;
/// The most marks of retransmissions; each is followed by a gap.
const MAX_MARKS: usize = 60;

/// The figure of all runs with a capture of TCP; `None` if there are none.
pub(crate) fn figure(runs: &[Run]) -> Option<Drawn> {
    let lines = single_lines(runs, |_| true);
    let mut kept = Vec::new();
    let (mut series, mut owners) = (Vec::new(), Vec::new());
    for line in &lines {
        let Some((sequence, end)) = line.outcomes.iter().find_map(|outcome| {
            let pass = shown(outcome)?.pass;
            captured(&runs[line.run], pass)
        }) else {
            continue;
        };
        kept.push((line, end));
        for (name, points) in lines_of(sequence) {
            series.push((line, Series { name, points, ..Series::default() }));
            owners.push(line.run);
        }
    }
    let (_, end) = kept.first()?;
    let end = *end;
    let several = kept.len() > 1;
    let of: Vec<&Line<'_>> = kept.iter().map(|(line, _)| *line).collect();
    // Of several captures, each has a plot.
    let groups: Vec<usize> =
        series.iter().map(|(line, _)| of.iter().position(|other| std::ptr::eq(*other, *line)).unwrap_or(0)).collect();
    let figure = Figure {
        id: "time-sequence".to_owned(),
        title: "Sequence numbers over time".to_owned(),
        subtitle: subtitle(runs, &of, &format!("packets captured at the {end} end"), None),
        x: Axis::elapsed("time since the first packet"),
        y: Axis::new("sequence number", "B", Scale::Linear),
        series: series.into_iter().map(|(_, series)| series).collect(),
        ..Figure::default()
    };
    let mut drawn = Drawn { figure, owners };
    if several {
        let names: Vec<String> = of.iter().map(|line| line.name.clone()).collect();
        panel_for_each(&mut drawn.figure, &groups, &names);
        for series in &mut drawn.figure.series {
            let colour = usize::from(series.name == "acknowledged") + 2 * usize::from(series.name.starts_with("retra"));
            series.look = Some(Look { colour, dash: 0 });
        }
    }
    Some(drawn)
}

/// The near end's time sequence of a pass, otherwise the far end's.
fn captured(run: &Run, pass: u32) -> Option<(&TimeSequence, &'static str)> {
    let pass = model::Pass::find(&run.passes, pass)?;
    [(&pass.near, "near"), (&pass.far, "far")]
        .into_iter()
        .find_map(|(end, name)| Some((end.capture.as_ref()?.sequence.as_ref()?, name)))
}

fn lines_of(sequence: &TimeSequence) -> Vec<(String, Vec<Point>)> {
    let mut lines = vec![
        ("sent".to_owned(), thinned(&sequence.data)),
        ("acknowledged".to_owned(), thinned(&sequence.acks)),
        retransmissions(sequence),
    ];
    lines.retain(|(_, points)| !points.is_empty());
    lines
}

fn thinned(entries: &[(u64, u64)]) -> Vec<Point> {
    let every = entries.len().div_ceil(MAX_POINTS).max(1);
    let last = entries.len().saturating_sub(1);
    let taken = entries.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    taken.map(|(_, entry)| point(*entry)).collect()
}

/// Marks without a line: after each is a point that no axis can show.
fn retransmissions(sequence: &TimeSequence) -> (String, Vec<Point>) {
    let every = sequence.retransmitted_at.len().div_ceil(MAX_MARKS).max(1);
    let shown: Vec<&(u64, u64)> = sequence.retransmitted_at.iter().step_by(every).collect();
    let name = match (shown.len() as u64, sequence.retransmitted) {
        (shown, all) if shown == all => format!("retransmitted ({all})"),
        (shown, all) => format!("retransmitted ({shown} of {all})"),
    };
    let gap = Point { x: f64::NAN, y: f64::NAN, low: None, high: None };
    (name, shown.into_iter().flat_map(|entry| [point(*entry), gap]).collect())
}

fn point((at_ns, number): (u64, u64)) -> Point {
    Point { x: at_ns as f64, y: number as f64, low: None, high: None }
}

#[cfg(test)]
mod tests {
    use model::Capture;

    use super::*;
    use crate::sample;

    #[test]
    fn a_capture_gives_sent_acknowledged_and_retransmitted() {
        let figure = figure(&[sample::captured()]).unwrap().figure;
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["sent", "acknowledged", "retransmitted (44 of 260)"]);
        assert!(figure.series[0].points.len() <= MAX_POINTS + 1 && figure.series[1].points.len() <= MAX_POINTS + 1);
        let last = figure.series[0].points.last().unwrap();
        assert_eq!((last.x, last.y), (2_999_000.0, 2_999.0 * 1_448.0));
        assert!(figure.subtitle.contains("near end"));
        // No line joins retransmissions.
        assert!(figure.series[2].points.chunks(2).all(|pair| pair[0].y.is_finite() && pair[1].y.is_nan()));
    }

    #[test]
    fn without_a_capture_of_tcp_there_is_no_figure() {
        assert!(figure(&[sample::stream(), sample::curve(), sample::rr()]).is_none());
        let mut run = sample::captured();
        run.passes.iter_mut().for_each(|pass| pass.near.capture = Some(Capture::default()));
        assert!(figure(&[run]).is_none());
    }
}
