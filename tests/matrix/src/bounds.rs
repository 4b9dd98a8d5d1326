//! Exact confidence bounds of a proportion.

use statrs::distribution::{Beta, ContinuousCDF};

/// Two-sided 95 %.
const TAIL: f64 = 0.025;

/// The interval of Clopper and Pearson (1934) for `hits` of `of`, as shares; 0 to 1 for nothing.
pub fn exact(hits: usize, of: usize) -> [f64; 2] {
    let (k, n) = (hits as f64, of as f64);
    let quantile = |a, b, p| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    let low = if hits == 0 { 0.0 } else { quantile(k, n - k + 1.0, TAIL) };
    let high = if hits == of { 1.0 } else { quantile(k + 1.0, n - k, 1.0 - TAIL) };
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_match_published_ones() {
        // Without a hit: 1 - 0.025^(1/n). 5 of 10 and 190 of 200: from sums of the binomial distribution.
        let near = |found: [f64; 2], wanted: [f64; 2]| {
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4), "{found:?} instead of {wanted:?}");
        };
        near(exact(0, 150), [0.0, 1.0 - 0.025_f64.powf(1.0 / 150.0)]);
        near(exact(150, 150), [0.025_f64.powf(1.0 / 150.0), 1.0]);
        near(exact(5, 10), [0.187_086, 0.812_914]);
        near(exact(190, 200), [0.909_972, 0.975_766]);
        assert_eq!(exact(0, 0), [0.0, 1.0]);
    }
}
