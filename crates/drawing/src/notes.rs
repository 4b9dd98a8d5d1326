//! Labels of marked points, placed where they hide least.

use model::{Figure, Mark};

use crate::plot::{Plot, Rect, Segment};
use crate::svg::{Svg, px};
use crate::text_width::text_width;
use crate::{line, text};

/// A placed label.
struct Note {
    /// The marked point.
    point: (f64, f64),
    /// The box around the text.
    area: Rect,
    text: String,
}

const HEIGHT: f64 = 20.0;
const PAD: f64 = 6.0;

/// Draws the marked points of a figure and their labels.
pub(crate) fn marks(svg: &mut Svg<'_>, plot: &Plot, figure: &Figure, segments: &[Segment]) {
    let notes = place_labels(plot, &figure.marks, segments);
    for note in &notes {
        line(svg, "lead", note.point, anchor(&note.area, note.point));
    }
    for (_, (x, y)) in shown(plot, &figure.marks) {
        svg.leaf("circle", &[("class", "ring"), ("cx", &px(x)), ("cy", &px(y)), ("r", "4.5")]);
    }
    for note in &notes {
        let area = note.area;
        let (x, y) = (px(area.left), px(area.top));
        let (width, height) = (px(area.right - area.left), px(area.bottom - area.top));
        svg.leaf(
            "rect",
            &[("class", "note"), ("x", &x), ("y", &y), ("width", &width), ("height", &height), ("rx", "4")],
        );
        let (x, y) = (px((area.left + area.right) / 2.0), px(area.bottom - 5.5));
        text(svg, "mark", &x, &y, "middle", &note.text);
    }
}

/// Places the labels one after the other: within the frame, without overlapping earlier labels or marked points, and where they
/// cover the fewest `segments`. A label that does not fit is left out; its ring is drawn.
fn place_labels(plot: &Plot, marks: &[Mark], segments: &[Segment]) -> Vec<Note> {
    let points: Vec<(f64, f64, &str)> = shown(plot, marks).map(|(mark, (x, y))| (x, y, mark.label.as_str())).collect();
    let mut notes: Vec<Note> = Vec::new();
    for (x, y, content) in &points {
        let width = text_width(content, 12.5) * 1.12 + 2.0 * PAD;
        let best = candidates(*x, *y, width)
            .filter(|area| plot.frame.holds(&area.grown(5.0)))
            .filter(|area| !notes.iter().any(|note| note.area.overlaps(area)))
            .filter(|area| !points.iter().any(|(px, py, _)| area.overlaps(&around(*px, *py, 7.0))))
            .map(|area| (cost(&area, (*x, *y), segments), area))
            .min_by(|(a, _), (b, _)| a.total_cmp(b));
        if let Some((_, area)) = best {
            notes.push(Note { point: (*x, *y), area, text: (*content).to_owned() });
        }
    }
    notes
}

/// The marks within the plot, with their coordinates.
fn shown<'a>(plot: &'a Plot, marks: &'a [Mark]) -> impl Iterator<Item = (&'a Mark, (f64, f64))> {
    let at = |mark: &'a Mark| Some((mark, plot.at(mark.x, mark.y).filter(|at| plot.frame.has(*at))?));
    marks.iter().filter_map(at)
}

fn around(x: f64, y: f64, r: f64) -> Rect {
    Rect { left: x - r, top: y - r, right: x + r, bottom: y + r }
}

/// Boxes on rings of growing distance around the point.
fn candidates(x: f64, y: f64, width: f64) -> impl Iterator<Item = Rect> {
    let distances = [16.0, 28.0, 44.0, 64.0, 90.0, 120.0];
    let angles = (0..16).map(|n| f64::from(n) * std::f64::consts::TAU / 16.0);
    distances.into_iter().flat_map(move |distance| {
        angles.clone().map(move |angle| {
            let (sin, cos) = angle.sin_cos();
            // The nearest side of the box is on the ring.
            let (cx, cy) = (x + cos * (distance + width / 2.0), y - sin * (distance + HEIGHT / 2.0));
            Rect { left: cx - width / 2.0, right: cx + width / 2.0, top: cy - HEIGHT / 2.0, bottom: cy + HEIGHT / 2.0 }
        })
    })
}

/// Segments that the box covers or its leader line crosses, and a little for the distance.
fn cost(area: &Rect, point: (f64, f64), segments: &[Segment]) -> f64 {
    let grown = Rect { left: area.left - 4.0, top: area.top - 4.0, right: area.right + 4.0, bottom: area.bottom + 4.0 };
    let covered = segments.iter().filter(|(a, b)| crosses(&grown, *a, *b)).count() as f64;
    let end = anchor(area, point);
    let length = (end.0 - point.0).hypot(end.1 - point.1);
    // From just outside the ring, because the point's own line crosses it.
    let from = |share: f64| (point.0 + (end.0 - point.0) * share, point.1 + (end.1 - point.1) * share);
    let start = from((8.0 / length.max(8.0)).min(1.0));
    let crossed = segments.iter().filter(|segment| meet(**segment, (start, end))).count() as f64;
    covered + crossed + length / 60.0
}

/// The point of the box that is nearest to `point`, where the leader line ends.
fn anchor(area: &Rect, point: (f64, f64)) -> (f64, f64) {
    (point.0.clamp(area.left, area.right), point.1.clamp(area.top, area.bottom))
}

/// Whether two segments cross: the ends of each lie on different sides of the other.
pub(crate) fn meet(one: Segment, other: Segment) -> bool {
    let side = |(a, b): Segment, p: (f64, f64)| (b.0 - a.0) * (p.1 - a.1) - (b.1 - a.1) * (p.0 - a.0);
    side(one, other.0) * side(one, other.1) < 0.0 && side(other, one.0) * side(other, one.1) < 0.0
}

/// Whether the segment from `a` to `b` has a part within `area` (Liang and Barsky's clipping test).
fn crosses(area: &Rect, a: (f64, f64), b: (f64, f64)) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (towards, room) in
        [(-dx, a.0 - area.left), (dx, area.right - a.0), (-dy, a.1 - area.top), (dy, area.bottom - a.1)]
    {
        if towards == 0.0 {
            if room < 0.0 {
                return false;
            }
        } else if towards < 0.0 {
            enter = enter.max(room / towards);
        } else {
            leave = leave.min(room / towards);
        }
    }
    enter <= leave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_meet_or_pass() {
        assert!(meet(((0.0, 0.0), (10.0, 10.0)), ((0.0, 10.0), (10.0, 0.0))));
        assert!(!meet(((0.0, 0.0), (10.0, 10.0)), ((0.0, 1.0), (10.0, 11.0))));
        assert!(!meet(((0.0, 0.0), (1.0, 1.0)), ((0.0, 10.0), (10.0, 0.0))));
    }

    #[test]
    fn segments_cross_a_box_or_do_not() {
        let area = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        assert!(crosses(&area, (-5.0, 5.0), (15.0, 6.0)));
        assert!(crosses(&area, (2.0, 2.0), (3.0, 3.0)));
        assert!(!crosses(&area, (-5.0, 0.0), (0.0, 20.0)));
        assert!(!crosses(&area, (20.0, -5.0), (20.0, 15.0)));
    }
}
