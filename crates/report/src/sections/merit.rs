//! Rate times distance, the figure of merit of the Internet2 Land Speed Record (2000 to 2009): bit-metres per second.

use std::fmt;
use std::str::FromStr;

use model::{Outcome, Run, Trust};
use text::{Rate, Text, say, units};

use crate::labels;

/// The length of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    metres: f64,
}

/// A text that is no distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a distance with its unit, such as 10037km or 850m")]
pub struct DistanceError;

impl FromStr for Distance {
    type Err = DistanceError;

    fn from_str(text: &str) -> Result<Self, DistanceError> {
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).ok_or(DistanceError)?);
        let metre = [("km", 1e3), ("m", 1.0)].into_iter().find(|(name, _)| *name == unit).ok_or(DistanceError)?.1;
        let metres = number.trim().parse::<f64>().map_err(|_| DistanceError)? * metre;
        if metres.is_finite() && metres > 0.0 { Ok(Self { metres }) } else { Err(DistanceError) }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.metres {
            metres if metres < 1e3 => write!(f, "{} m", units::three_digits(metres)),
            metres => write!(f, "{} km", units::grouped((metres / 1e3).round() as u64)),
        }
    }
}

impl Distance {
    /// The product for the highest goodput, `2.38 Gbit/s × 10,037 km = 23.9 Pbit·m/s`, or why there is none.
    pub(crate) fn sentence(self, run: &Run) -> Text {
        let trusted = |outcome: &&Outcome| outcome.summary.trust != Some(Trust::None);
        let goodput = |outcome: &Outcome| outcome.summary.goodput_bps.filter(|bps| *bps > 0.0);
        let rates = run.outcomes.iter().filter(trusted).filter_map(|outcome| Some((goodput(outcome)?, outcome)));
        let Some((bps, best)) = rates.max_by(|(one, _), (other, _)| one.total_cmp(other)) else {
            return "no goodput, so there is no rate × distance".into();
        };
        let levels = run.header.cells.iter().find(|cell| cell.id == best.cell).map(|cell| &cell.levels);
        let levels: Vec<String> = levels.into_iter().flatten().map(|(name, level)| format!("{name} {level}")).collect();
        let cell = match levels.as_slice() {
            [] if run.outcomes.len() > 1 => {
                say!(" (the highest goodput, with blocks of {})", model::ByteSize(best.spec.block))
            }
            [] => Text::default(),
            levels => say!(" (the highest goodput: {})", labels::plain(&levels.join(", "))),
        };
        let distance = self.to_string();
        say!("{} × {distance} = {}{cell}", Rate(bps), bit_metres(bps * self.metres))
    }
}

/// With three digits and a decimal prefix.
fn bit_metres(value: f64) -> String {
    let prefixes = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let (size, prefix) = prefixes.into_iter().find(|(size, _)| value >= size * 0.9995).unwrap_or((1.0, ""));
    format!("{} {prefix}bit·m/s", units::three_digits(value / size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_record_of_2003_has_its_figure() {
        let distance: Distance = "10037km".parse().unwrap();
        let mut run = sample::stream_at(2.38e9, 1);
        run.outcomes[0].summary.goodput_bps = Some(2.38e9);
        assert_eq!(distance.sentence(&run).plain(), "2.38 Gbit/s × 10,037 km = 23.9 Pbit·m/s");
        run.outcomes[0].summary.trust = Some(Trust::None);
        assert_eq!(distance.sentence(&run).plain(), "no goodput, so there is no rate × distance");
    }

    #[test]
    fn of_a_plan_the_best_cell_counts() {
        let run = sample::planned();
        let text = "850 m".parse::<Distance>().unwrap().sentence(&run).plain();
        assert!(text.contains(" × 850 m = ") && text.contains(" (the highest goodput: "), "{text}");
    }

    #[test]
    fn a_distance_has_a_unit() {
        for text in ["", "10037", "km", "-1km", "0km", "10037 miles", "1e999km", "nanm"] {
            assert_eq!(text.parse::<Distance>(), Err(DistanceError), "{text}");
        }
        assert_eq!("0.5km".parse::<Distance>().unwrap().to_string(), "500 m");
    }
}
