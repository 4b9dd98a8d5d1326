//! A figure as data, independent of the renderer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure: axes, series and marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Short identifier, usable as a file name, such as `throughput`.
    pub id: String,
    /// Title.
    pub title: String,
    /// A line under the title: what was measured, and how.
    pub subtitle: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// Points with a label.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Label with its unit in words, such as `block size`.
    pub label: String,
    /// Unit of the values: `B`, `bit/s`, `ns`, `1/s`. Renderers choose prefixes.
    pub unit: String,
    /// Scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic; values must be positive.
    Log,
}

/// One line of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, in drawing order.
    pub points: Vec<Point>,
    /// A reference for comparison (such as the memory ceiling), drawn thinner.
    #[serde(default)]
    pub reference: bool,
    /// Whether its points are segments of bars, from `low` to `high`; `y` is their length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stacked: bool,
}

/// One point, with its interval if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Horizontal value in the axis' unit.
    pub x: f64,
    /// Vertical value in the axis' unit.
    pub y: f64,
    /// Low end of the interval of `y`.
    pub low: Option<f64>,
    /// High end of the interval of `y`.
    pub high: Option<f64>,
}

/// A labelled point, such as the saturation point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// Horizontal value in the axis' unit.
    pub x: f64,
    /// Vertical value in the axis' unit.
    pub y: f64,
    /// Text.
    pub label: String,
}
