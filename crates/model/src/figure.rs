//! A figure as data, independent of the renderer.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure: axes, series and marks; or a matrix, or a map.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
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
    /// Several plots below or beside each other, which share the horizontal axis; without any, there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<Panel>,
    /// Whether each panel shows the series of the others behind its own, without colour.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
    /// Values of pairs, drawn as colours; both axes have categories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Matrix>,
    /// Nodes and links, drawn instead of axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<Map>,
}

impl Figure {
    /// The vertical axis of a panel: its own one, otherwise that of the figure.
    #[must_use]
    pub fn y_of(&self, panel: usize) -> &Axis {
        self.panels.get(panel).and_then(|panel| panel.y.as_ref()).unwrap_or(&self.y)
    }

    /// The vertical axis of a series: of one in every panel, that of the figure.
    #[must_use]
    pub fn y_axis(&self, series: &Series) -> &Axis {
        series.panel.map_or(&self.y, |panel| self.y_of(panel))
    }
}

/// One of several plots of a figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Panel {
    /// Title.
    pub title: String,
    /// Its own vertical axis; null for that of the figure. Panels with one are below each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<Axis>,
}

impl From<String> for Panel {
    fn from(title: String) -> Self {
        Self { title, y: None }
    }
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Axis {
    /// Label with its unit in words, such as `block size`.
    pub label: String,
    /// Unit of the values: `B`, `bit/s`, `ns`, `1/s`. Renderers choose prefixes.
    pub unit: String,
    /// Scale.
    pub scale: Scale,
    /// The ticks with their texts; without any, the renderer chooses them. Categories are at 0, 1, 2 and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<(f64, String)>,
    /// The lowest value to show; null for what the values need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The highest value to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Neighbouring categories that belong together, such as the hosts of a rack: the name of each group and the number of its categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<(String, usize)>,
    /// Whether its values are times since a start, over which something went on; otherwise a time is a result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elapsed: bool,
    /// Whether its values are counts, which have no fractions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counts: bool,
    /// Whether a linear axis need not begin at zero: of points, whose distances count, not of lengths.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
}

impl Axis {
    /// An axis whose ticks and range the renderer chooses.
    #[must_use]
    pub fn new(label: &str, unit: &str, scale: Scale) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), scale, ..Self::default() }
    }

    /// A linear axis of the time since a start, ns.
    #[must_use]
    pub fn elapsed(label: &str) -> Self {
        Self { elapsed: true, ..Self::new(label, "ns", Scale::Linear) }
    }

    /// An axis of categories, which have no values in between.
    #[must_use]
    pub fn names(label: &str, names: &[String]) -> Self {
        let ticks = (0..).map(f64::from).zip(names.iter().cloned()).collect();
        Self { ticks, ..Self::new(label, "", Scale::Names) }
    }
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Linear, from zero.
    #[default]
    Linear,
    /// Logarithmic; values must be positive.
    Log,
    /// Categories at equal distances.
    Names,
    /// Times, ns since 1970 (UTC); linear over the range of the values.
    Date,
}

/// One line of a figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, in drawing order.
    pub points: Vec<Point>,
    /// A reference for comparison (such as the memory ceiling), drawn thinner.
    pub reference: bool,
    /// Whether its points are segments of bars, from `low` to `high`; `y` is their length.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stacked: bool,
    /// Whether a value holds until the next one, as that of a counter does; otherwise neighbouring points are joined.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steps: bool,
    /// Its colour and dashes; null for those of its position in the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// Index of its panel; null for every panel.
    pub panel: Option<usize>,
}

impl Series {
    /// Whether it is drawn in this panel.
    #[must_use]
    pub fn is_in(&self, panel: usize) -> bool {
        self.panel.is_none_or(|own| own == panel)
    }
}

/// What a series looks like: the same level of a factor has the same colour in all figures of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Look {
    /// Number of the colour and of the marker.
    pub colour: usize,
    /// Number of the pattern of dashes; 0 is a solid line.
    pub dash: usize,
}

/// One point, with its interval if there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Point {
    /// Horizontal value in the axis' unit.
    pub x: f64,
    /// Vertical value in the axis' unit.
    pub y: f64,
    /// Low end of the interval of `y`.
    pub low: Option<f64>,
    /// High end of the interval of `y`; infinite if nothing bounds it.
    pub high: Option<f64>,
}

/// A labelled point, such as the saturation point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Mark {
    /// Horizontal value in the axis' unit.
    pub x: f64,
    /// Vertical value in the axis' unit.
    pub y: f64,
    /// Text.
    pub label: String,
}

/// The values of a matrix, such as of each pair of hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Matrix {
    /// What its values are.
    pub label: String,
    /// Unit of the values.
    pub unit: String,
    /// The range of usual values of each panel, as far as values vary anyway, and colours show the [`standing`](MatrixCell::standing) of
    /// each cell. Absent where there are too few values to know: then colours show the place between the lowest and the highest one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub usual: Vec<[f64; 2]>,
    /// The cells that have a value.
    pub cells: Vec<MatrixCell>,
}

/// A cell of a matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MatrixCell {
    /// Index of the panel.
    pub panel: usize,
    /// Index of its category on the vertical axis, the first at the top.
    pub row: usize,
    /// Index of its category on the horizontal axis.
    pub column: usize,
    /// Its value.
    pub value: f64,
    /// How it stands among the others: 0 for a usual value, down to -1 for one that is far worse, up to 1 for one far better.
    pub standing: f64,
}

/// A network as a picture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Map {
    /// Hosts, routers and switches.
    pub nodes: Vec<MapNode>,
    /// The links between them.
    pub links: Vec<MapLink>,
}

/// A node of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MapNode {
    /// Its name.
    pub name: String,
    /// Lines under the name.
    pub lines: Vec<String>,
    /// What it is.
    pub kind: MapKind,
}

/// What a node of a map is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MapKind {
    /// A host.
    #[default]
    Host,
    /// A router.
    Router,
    /// A switch.
    Switch,
}

/// A link of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MapLink {
    /// Indexes of its nodes.
    pub between: [usize; 2],
    /// Lines beside it, such as its rate, its delay and its MTU.
    pub lines: Vec<String>,
}
