//! Series' points as columns of numbers, in one block of bytes that compresses well.
//!
//! A column is a list of planes: first the lowest byte of every number, then the second, and so on (little endian). Neighbouring
//! numbers have mostly equal high bytes, which then are beside each other. Whole numbers whose steps fit 32 bits, such as times in ns,
//! are kept as their steps.

use serde::Serialize;

/// Longer columns of numbers that are not whole keep [`KEPT_BITS`] bits of each.
const EXACT: usize = 65_536;
/// Bits of a number's fraction in a long column: a relative error of at most 3e-8.
const KEPT_BITS: u32 = 24;
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
/// Whole numbers up to here are exact.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// The place of a column in the block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Column {
    /// Its first byte, counted from the end of the JSON.
    at: usize,
    /// Numbers.
    count: usize,
    /// How they are written.
    code: Code,
    /// The first number of steps.
    first: f64,
}

/// How the numbers of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Code {
    /// Eight planes of doubles.
    Doubles,
    /// Four planes of signed steps from each number to the next; the first step is 0.
    Steps,
}

/// The block.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) bytes: Vec<u8>,
}

impl Columns {
    /// Adds a column; `None` without a number. NaN stands for a value that is not there.
    pub(super) fn add(&mut self, values: &[f64]) -> Option<Column> {
        if values.iter().all(|value| value.is_nan()) {
            return None;
        }
        let (at, count) = (self.bytes.len(), values.len());
        if let Some(steps) = steps(values) {
            self.planes(&steps.iter().map(|step| step.to_le_bytes()).collect::<Vec<_>>());
            return Some(Column { at, count, code: Code::Steps, first: values[0] });
        }
        let kept = |value: &f64| if count > EXACT { rounded(*value) } else { *value }.to_le_bytes();
        self.planes(&values.iter().map(kept).collect::<Vec<_>>());
        Some(Column { at, count, code: Code::Doubles, first: 0.0 })
    }

    fn planes<const WIDTH: usize>(&mut self, numbers: &[[u8; WIDTH]]) {
        for plane in 0..WIDTH {
            self.bytes.extend(numbers.iter().map(|number| number[plane]));
        }
    }
}

/// The steps between whole numbers, if they fit.
fn steps(values: &[f64]) -> Option<Vec<i32>> {
    let whole = |value: f64| value.fract() == 0.0 && value.abs() < WHOLE && !(value == 0.0 && value.is_sign_negative());
    let mut last = *values.first()?;
    let mut steps = Vec::with_capacity(values.len());
    for value in values {
        let step = value - last;
        // The difference of two such numbers may be rounded, but then it does not fit.
        if !whole(*value) || step.abs() >= f64::from(i32::MAX) {
            return None;
        }
        steps.push(step as i32);
        last = *value;
    }
    Some(steps)
}

/// The nearest number with fewer bits.
fn rounded(value: f64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    let dropped = FRACTION_BITS - KEPT_BITS;
    // A carry goes into the exponent, as it should.
    f64::from_bits((value.to_bits() + (1 << (dropped - 1))) & !((1 << dropped) - 1))
}

#[cfg(test)]
pub(super) fn read(bytes: &[u8], column: &Column) -> Vec<f64> {
    let plane = |plane: usize, index: usize| bytes[column.at + plane * column.count + index];
    let mut sum = column.first;
    let number = |index: usize| match column.code {
        Code::Doubles => f64::from_le_bytes(std::array::from_fn(|at| plane(at, index))),
        Code::Steps => {
            sum += f64::from(i32::from_le_bytes(std::array::from_fn(|at| plane(at, index))));
            sum
        }
    };
    (0..column.count).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(values: &[f64]) -> Vec<f64> {
        let mut columns = Columns { bytes: vec![9; 3] };
        let column = columns.add(values).unwrap();
        read(&columns.bytes, &column)
    }

    #[test]
    fn times_are_steps_and_all_else_is_doubles() {
        let mut columns = Columns::default();
        let of = |columns: &mut Columns, values: &[f64]| columns.add(values).map(|column| column.code);
        assert_eq!(of(&mut columns, &[1e18, 1e18 + 256.0]), Some(Code::Doubles), "not exact");
        assert_eq!(of(&mut columns, &[1e15, 1e15 + 1e9, 1e15 - 1e9]), Some(Code::Steps));
        assert_eq!(of(&mut columns, &[0.0, 5e9]), Some(Code::Doubles), "a long step");
        assert_eq!(of(&mut columns, &[1.0, f64::NAN]), Some(Code::Doubles));
        assert_eq!(of(&mut columns, &[f64::NAN; 4]), None);
        assert_eq!(of(&mut columns, &[]), None);
    }

    #[test]
    fn long_columns_lose_less_than_anyone_sees() {
        let values: Vec<f64> = (0..EXACT + 1).map(|n| 1e9 / (n as f64 + 0.7)).collect();
        for (kept, value) in kept(&values).iter().zip(&values) {
            assert!((kept / value - 1.0).abs() <= 3e-8, "{kept} {value}");
        }
        assert_eq!(rounded(f64::INFINITY), f64::INFINITY);
        assert!(rounded(f64::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(values in prop::collection::vec(prop_oneof![any::<f64>(), (-1e9..1e9f64).prop_map(f64::round)], 1..40)) {
            prop_assume!(values.iter().any(|value| !value.is_nan()));
            let same = kept(&values).iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()));
            prop_assert!(same);
        }
    }
}
