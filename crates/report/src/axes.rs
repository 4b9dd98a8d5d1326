//! Ranges and scales of a figure's axes that the user requests.

use std::str::FromStr;

use model::{Axis, BitRate, ByteSize, Figure, Nanos, Scale};

use crate::error::{AxisError, ReportError};
use drawing::TAIL_UNIT;
use drawing::dates::midnight;

/// What is requested of the axes; what is not follows from the values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axes {
    /// The range of the horizontal axis.
    pub x: Option<AxisRange>,
    /// The range of the vertical axis.
    pub y: Option<AxisRange>,
    /// Which axes are logarithmic; the other ones with numbers are linear.
    pub log: Option<LogAxes>,
}

/// A range as typed, `A:B`; either may be left out. Its values are read when the axis, and so their unit, is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisRange {
    low: Option<String>,
    high: Option<String>,
}

impl FromStr for AxisRange {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let wrong = || AxisError::Range { text: text.into() };
        let (low, high) = text.split_once(':').ok_or_else(wrong)?;
        let end = |end: &str| Some(end.trim().to_owned()).filter(|end| !end.is_empty());
        let range = Self { low: end(low), high: end(high) };
        let ends = [&range.low, &range.high];
        // Each end is a number in some unit.
        let readable = ends.into_iter().flatten().all(|end| UNITS.iter().any(|unit| value(end, unit).is_some()));
        if readable && ends.iter().any(|end| end.is_some()) { Ok(range) } else { Err(wrong()) }
    }
}

impl AxisRange {
    fn text(&self) -> String {
        format!("{}:{}", self.low.as_deref().unwrap_or_default(), self.high.as_deref().unwrap_or_default())
    }
}

/// Which axes are logarithmic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogAxes {
    /// The horizontal one.
    pub x: bool,
    /// The vertical one.
    pub y: bool,
}

impl FromStr for LogAxes {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        match text {
            "x" => Ok(Self { x: true, y: false }),
            "y" => Ok(Self { x: false, y: true }),
            "xy" => Ok(Self { x: true, y: true }),
            "none" => Ok(Self { x: false, y: false }),
            _ => Err(AxisError::Log { text: text.into() }),
        }
    }
}

/// The units that axes have; of others only the number counts.
const UNITS: [&str; 6] = ["B", "bit/s", "ns", TAIL_UNIT, DATE, ""];
/// Stands for an axis of dates.
const DATE: &str = "date";

/// A value in the unit of an axis; a bare number is in that unit.
fn value(text: &str, unit: &str) -> Option<f64> {
    if unit == DATE {
        return midnight(text);
    }
    if let Ok(number) = text.parse::<f64>() {
        return Some(number).filter(|number| number.is_finite() && unit != TAIL_UNIT);
    }
    let (number, prefix) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%').len());
    match unit {
        "B" => Some(text.parse::<ByteSize>().ok()?.0 as f64),
        "bit/s" => Some(text.parse::<BitRate>().ok()?.0 as f64),
        "ns" => Some(text.parse::<Nanos>().ok()?.0 as f64),
        TAIL_UNIT => {
            let percent: f64 = number.parse().ok().filter(|_| prefix == "%")?;
            (0.0..100.0).contains(&percent).then(|| 1.0 / (1.0 - percent / 100.0))
        }
        _ => {
            let mut factors = [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("%", 1.0)].into_iter();
            let (_, factor) = factors.find(|(name, _)| *name == prefix)?;
            Some(number.parse::<f64>().ok()? * factor)
        }
    }
}

impl Axes {
    /// The figures with what is requested.
    ///
    /// # Errors
    /// No figure has an axis with the unit of the values, or none that can show them.
    pub(crate) fn apply<'a>(&self, figures: impl Iterator<Item = &'a mut Figure>) -> Result<(), ReportError> {
        let mut all: Vec<&mut Figure> = figures.filter(|figure| figure.map.is_none()).collect();
        if let Some(log) = self.log {
            for figure in &mut all {
                let stacked = figure.series.iter().any(|series| series.stacked);
                rescaled(&mut figure.x, log.x);
                // A stack begins at 0.
                if !stacked {
                    rescaled(&mut figure.y, log.y);
                }
            }
        }
        for (option, range) in [("x-range", &self.x), ("y-range", &self.y)] {
            let Some(range) = range else { continue };
            let set = all.iter_mut().map(|figure| {
                let axis = if option == "x-range" { &mut figure.x } else { &mut figure.y };
                limited(axis, range)
            });
            let set: Vec<Result<(), AxisError>> = set.collect();
            if set.iter().any(Result::is_ok) {
                continue;
            }
            let reason = set.into_iter().find_map(Result::err).unwrap_or(AxisError::NoAxis).into();
            let figures = all.iter().map(|figure| figure.id.clone()).collect();
            return Err(ReportError::Range { option, range: range.text(), reason, figures });
        }
        Ok(())
    }
}

/// Sets the scale of an axis with numbers.
fn rescaled(axis: &mut Axis, log: bool) {
    if matches!(axis.scale, Scale::Linear | Scale::Log) && axis.unit != TAIL_UNIT {
        axis.scale = if log { Scale::Log } else { Scale::Linear };
    }
}

fn limited(axis: &mut Axis, range: &AxisRange) -> Result<(), AxisError> {
    let unit = match axis.scale {
        Scale::Names => return Err(AxisError::Names { axis: axis.label.clone() }),
        Scale::Date => DATE,
        _ => axis.unit.as_str(),
    };
    let read = |text: &String| {
        let wrong = || AxisError::Unit { text: text.clone(), axis: axis.label.clone(), unit: unit.into() };
        value(text, unit).ok_or_else(wrong)
    };
    let low = range.low.as_ref().map(read).transpose()?;
    let high = range.high.as_ref().map(read).transpose()?;
    if low.zip(high).is_some_and(|(low, high)| low >= high) {
        return Err(AxisError::Order);
    }
    if axis.scale == Scale::Log && [low, high].into_iter().flatten().any(|end| end <= 0.0) {
        return Err(AxisError::NotAboveZero { axis: axis.label.clone() });
    }
    (axis.low, axis.high) = (low, high);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure {
            id: "throughput".into(),
            x: Axis::new("block size", "B", Scale::Log),
            y: Axis::new("goodput", "bit/s", Scale::Linear),
            ..Figure::default()
        }
    }

    fn axes(x: Option<&str>, y: Option<&str>, log: Option<&str>) -> Axes {
        Axes {
            x: x.map(|text| text.parse().unwrap()),
            y: y.map(|text| text.parse().unwrap()),
            log: log.map(|text| text.parse().unwrap()),
        }
    }

    #[test]
    fn values_have_the_unit_of_the_axis() {
        let mut figure = figure();
        axes(Some("64KiB:1MiB"), Some(":2.5Gbit"), None).apply([&mut figure].into_iter()).unwrap();
        assert_eq!((figure.x.low, figure.x.high), (Some(65_536.0), Some(1_048_576.0)));
        assert_eq!((figure.y.low, figure.y.high), (None, Some(2.5e9)));
        axes(None, Some("1e6:2000000000"), None).apply([&mut figure].into_iter()).unwrap();
        assert_eq!((figure.y.low, figure.y.high), (Some(1e6), Some(2e9)));
        assert_eq!(value("20ms", "ns"), Some(2e7));
        assert_eq!(value("90%", TAIL_UNIT).map(f64::round), Some(10.0));
        assert_eq!((value("2M", ""), value("2M", "B")), (Some(2e6), Some(2_097_152.0)));
    }

    #[test]
    fn what_is_no_range_is_refused_when_it_is_typed() {
        for text in ["", ":", "5", "a:b", "1:2:3", "1 parsec:2", "nan:1", "1:inf"] {
            let error = text.parse::<AxisRange>().unwrap_err().to_string();
            assert!(error.contains("write A:B"), "{text}: {error}");
        }
        assert!("2026-11-20:2026-11-22".parse::<AxisRange>().is_ok());
        assert!("z".parse::<LogAxes>().unwrap_err().to_string().contains("x, y, xy or none"));
    }

    #[test]
    fn what_the_axis_cannot_show_is_refused_with_the_reason() {
        let refused = |x, y, log| axes(x, y, log).apply([&mut figure()].into_iter()).unwrap_err().to_string();
        assert!(refused(Some("1ms:2ms"), None, None).contains("whose unit is B"));
        assert!(refused(Some("0:64KiB"), None, None).contains("logarithmic"));
        assert!(refused(None, Some("2Gbit:1Gbit"), None).contains("below"));
        assert!(refused(None, Some("0:1Gbit"), Some("y")).contains("`--y-range 0:1Gbit`"));
        let mut named = Figure { x: Axis::names("cc", &["bbr".to_owned()]), ..figure() };
        let error = axes(Some("1:2"), None, None).apply([&mut named].into_iter()).unwrap_err();
        assert!(error.to_string().contains("'cc' has names"), "{error}");
    }

    #[test]
    fn of_several_figures_those_with_the_unit_have_the_range() {
        let mut both = [figure(), Figure { x: Axis::new("time", "ns", Scale::Linear), ..figure() }];
        axes(Some("1s:2s"), None, None).apply(both.iter_mut()).unwrap();
        assert_eq!((both[0].x.low, both[1].x.low), (None, Some(1e9)));
    }

    #[test]
    fn scales_of_numbers_change_and_categories_stay() {
        let mut all = [figure(), Figure { x: Axis::names("cc", &["bbr".to_owned()]), ..figure() }];
        axes(None, None, Some("y")).apply(all.iter_mut()).unwrap();
        assert_eq!((all[0].x.scale, all[0].y.scale, all[1].x.scale), (Scale::Linear, Scale::Log, Scale::Names));
        axes(None, None, Some("none")).apply(all.iter_mut()).unwrap();
        assert_eq!(all[0].y.scale, Scale::Linear);
    }
}
