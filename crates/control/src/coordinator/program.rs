//! Another program as the far end of tests.

use std::pin::Pin;

use model::{BothEnds, EventSink, Leg, Spec};

use super::Cancel;
use crate::ControlError;

/// A test with another program: both ends' results, the far one's as the program reported it, and the number of trials of each leg (empty
/// for one each).
pub type ProgramTest = Result<(Box<BothEnds>, Vec<usize>), ControlError>;

/// Makes tests with another program at the far end.
pub trait FarProgram {
    /// One trial of `spec` over fresh connections, or all sizes of a curve over one control connection, one for each of the `legs`.
    fn test<'a>(
        &'a mut self,
        number: u32,
        spec: &'a Spec,
        legs: &'a [Leg],
        sink: &'a mut dyn EventSink,
        cancel: &'a mut Cancel,
    ) -> Pin<Box<dyn Future<Output = ProgramTest> + 'a>>;
}
