//! When a stop rule looks: few times, on a geometric ladder.

/// A look this close (as a factor) below the last one is left out.
const CLOSE_TO_LAST: f64 = 1.25;

/// The looks from `first` on, each at `factor` times the one before, up to `last`, which is always one.
pub(super) fn ladder(first: usize, last: usize, factor: f64) -> Vec<usize> {
    let mut looks = Vec::new();
    let mut place = first as f64;
    while place.round() * CLOSE_TO_LAST < last as f64 {
        looks.push(place.round() as usize);
        place *= factor;
    }
    looks.push(last);
    looks
}
