//! The answer of a run.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use text::Span;

use crate::{Estimate, Run, Text, Trust};

/// A run as `--json` and `thru export --format json` write it: its answer, and all that it is drawn from.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Run"))]
pub struct RunDocument<'r> {
    /// The answer. It is not read back: it follows from the rest.
    pub summary: RunSummary,
    /// The record.
    #[serde(flatten)]
    pub run: &'r Run,
}

/// The answer of a run, as lists and documents have it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(from = "Written", into = "Written")]
pub struct RunSummary {
    /// The answer in one line.
    pub headline: Text,
    /// What limited the only outcome, in each direction if there are two.
    pub limited_by: Option<Text>,
    /// What to do next.
    pub next: Option<Text>,
    /// The number that stands for the run: the estimate of its only outcome, of a curve's peak, or of the finding that is its answer; `None`
    /// if that is not to be used.
    pub estimate: Option<Estimate>,
    /// The goodput from the near end to the far end, for a single outcome in both directions; its sum with the other is `estimate`.
    pub outbound: Option<Estimate>,
    /// The same from the far end to the near end.
    pub return_trip: Option<Estimate>,
    /// The worst trust among the outcomes; `None` if none has a value.
    pub trust: Option<Trust>,
}

/// A summary in a document.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Written {
    /// The answer in one line.
    headline: String,
    /// The same in typed parts; absent if there are only words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spans: Vec<Span>,
    /// What limited the only outcome; absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limited_by: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// The number that stands for the run; null without one, and for an outcome that is not to be used.
    estimate: Option<Estimate>,
    /// The goodput from the near end to the far end, for a single outcome in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outbound: Option<Estimate>,
    /// The same from the far end to the near end.
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    return_trip: Option<Estimate>,
    /// The worst trust among the outcomes; null if none has a value.
    trust: Option<Trust>,
}

impl From<RunSummary> for Written {
    fn from(summary: RunSummary) -> Self {
        let RunSummary { headline, limited_by, next, estimate, outbound, return_trip, trust } = summary;
        Self {
            headline: headline.plain(),
            spans: headline.typed(),
            limited_by: limited_by.as_ref().map(Text::plain),
            next: next.as_ref().map(Text::plain),
            estimate,
            outbound,
            return_trip,
            trust,
        }
    }
}

impl From<Written> for RunSummary {
    fn from(written: Written) -> Self {
        let Written { headline, spans, limited_by, next, estimate, outbound, return_trip, trust } = written;
        Self {
            headline: Text::of(headline, spans),
            limited_by: limited_by.map(Text::from),
            next: next.map(Text::from),
            estimate,
            outbound,
            return_trip,
            trust,
        }
    }
}
