//! One plot of a figure: its frame, and where values are in it.

use serde::Serialize;

use crate::span::Span;

/// The part of a line between two neighbouring points.
pub(crate) type Segment = ((f64, f64), (f64, f64));

/// A rectangle by its edges.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rect {
    /// The left edge.
    pub left: f64,
    /// The top edge.
    pub top: f64,
    /// The right edge.
    pub right: f64,
    /// The bottom edge.
    pub bottom: f64,
}

impl Rect {
    /// The rectangle with `by` more on every side.
    pub(crate) fn grown(&self, by: f64) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    pub(crate) fn holds(&self, inner: &Self) -> bool {
        self.left <= inner.left && self.right >= inner.right && self.top <= inner.top && self.bottom >= inner.bottom
    }

    /// Whether a point is within, or on an edge.
    #[must_use]
    pub fn has(&self, (x, y): (f64, f64)) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }
}

/// The area within the axes, and the axes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Plot {
    /// The area.
    pub frame: Rect,
    /// The horizontal axis.
    pub x: Span,
    /// The vertical axis.
    pub y: Span,
}

impl Plot {
    /// Coordinates are kept within this distance: a point far out of a requested range would overflow the numbers of a renderer.
    const FAR: f64 = 1e6;

    /// The coordinates of a point in the figure, outside the frame for a point out of range; `None` if an axis cannot show it.
    #[must_use]
    pub fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let within = |value: f64| value.clamp(-Self::FAR, Self::FAR);
        Some((within(self.across(self.x.position(x)?)), within(self.down(self.y.position(y)?))))
    }

    /// The height of an interval's end, limited to the frame, and whether it was; `None` for NaN.
    pub(crate) fn edge(&self, y: f64) -> Option<(f64, bool)> {
        if y.is_nan() {
            return None;
        }
        let beyond = if y > 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
        let share = self.y.position(y).unwrap_or(beyond);
        Some((self.down(share.clamp(0.0, 1.0)), !(-1e-9..=1.0 + 1e-9).contains(&share)))
    }

    pub(crate) fn across(&self, share: f64) -> f64 {
        self.frame.left + share * (self.frame.right - self.frame.left)
    }

    pub(crate) fn down(&self, share: f64) -> f64 {
        self.frame.bottom - share * (self.frame.bottom - self.frame.top)
    }
}
