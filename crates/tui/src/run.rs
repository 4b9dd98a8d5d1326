//! A measurement while it runs: a curve, a stream or round trips over time, or the cells of a plan.

mod chart;
mod flows;
mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use analysis::outcome::Headline;
use model::{CpuUse, Direction, Event, Phase, RunHeader, Shared, Spec, Trial, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::{LineGauge, Paragraph, Row, Table};
use report::{LivePoint, LivePoints};
use text::{Said, Spelling};

use crate::parts::{ViewLook, cores, head, keys, spark};
use crate::screen::{DrawMoment, TerminalView};
use chart::OverTime;

/// Rows of the head, the activity and the keys.
const HEADS: u16 = 3;
/// Least rows of what was measured, and those from which on it has plots below it.
const LEAST: u16 = 6;
const TALL: u16 = 20;
/// Columns of such a plot.
const PLOT: u16 = 48;
/// Narrower views leave out ranges.
const NARROW: u16 = 60;

/// A quantity of all flows over time, besides the rate.
struct Quantity {
    title: &'static str,
    value: fn(&LivePoint) -> Option<f64>,
    text: fn(f64) -> String,
}

const QUANTITIES: [Quantity; 5] = [
    Quantity { title: "RTT", value: |point| point.rtt_ns, text: units::seconds },
    Quantity { title: "lost", value: |point| point.lost, text: |share| format!("{:.3} %", 100.0 * share) },
    Quantity { title: "jitter", value: |point| point.jitter_ns, text: units::seconds },
    Quantity { title: "cwnd", value: |point| point.cwnd_bytes.map(|bytes| bytes as f64), text: units::amount },
    Quantity {
        title: "resent",
        value: |point| point.retransmits.map(|count| count as f64),
        text: |count| format!("{count:.0}"),
    },
];

/// Most flows that have a row each.
const FLOWS: usize = 4;
/// Points that are kept: a day of seconds.
const KEPT: usize = 86_400;

/// What happened.
#[derive(Debug)]
pub enum RunNews {
    /// An event of the run.
    Event(Box<Event>),
    /// What is done before the first trial.
    Status(String),
    /// A line that must be seen.
    Note(String),
}

/// A measurement while it runs.
#[derive(Debug, Clone)]
pub struct RunView {
    title: String,
    look: ViewLook,
    status: String,
    phase: Phase,
    /// When it began.
    phase_began: Instant,
    notes: Vec<String>,
    /// The cells, by number.
    cells: BTreeMap<u32, Cell>,
    live: LivePoints,
    points: Vec<LivePoint>,
    /// CPU time of the near and the far end in the last pass.
    cores: [Option<CpuUse>; 2],
    limits: Option<limits::Limits>,
    retransmits: Option<u64>,
}

/// A cell and the values of its trials.
#[derive(Debug, Clone)]
struct Cell {
    spec: Shared<Spec>,
    label: String,
    values: Vec<f64>,
}

impl Cell {
    fn new(cell: &model::Cell) -> Self {
        let levels = cell.levels.iter().map(|(factor, level)| format!("{factor} {level}")).collect::<Vec<_>>();
        Self { label: levels.join(", "), spec: cell.spec.clone(), values: Vec::new() }
    }

    /// Lowest, median and highest value so far.
    fn spread(&self) -> Option<[f64; 3]> {
        let values = || self.values.iter().copied();
        Some([values().reduce(f64::min)?, model::median(&self.values)?, values().reduce(f64::max)?])
    }

    /// The same as NetPIPE's rate or goodput, bit/s.
    fn rates(&self) -> Option<[f64; 3]> {
        let headline = Headline::of(&self.spec);
        let mut rates = self.spread()?.map(|value| headline.goodput(&self.spec, value).unwrap_or(0.0));
        rates.sort_by(f64::total_cmp);
        Some(rates)
    }

    fn text(&self, value: f64, look: ViewLook) -> String {
        match Headline::of(&self.spec) {
            Headline::Goodput => look.rate(value),
            Headline::Transactions => format!("{}/s", units::count(value)),
            Headline::RoundTrip => units::seconds(value),
        }
    }
}

impl RunView {
    /// A view with this title, before the run begins.
    #[must_use]
    pub fn new(title: String, look: ViewLook) -> Self {
        Self {
            title,
            look,
            status: "connecting".into(),
            phase: Phase::default(),
            phase_began: Instant::now(),
            notes: Vec::new(),
            cells: BTreeMap::new(),
            live: LivePoints::default(),
            points: Vec::new(),
            cores: [None, None],
            limits: None,
            retransmits: None,
        }
    }

    fn event(&mut self, event: &Event) {
        let new = self.live.event(event);
        self.points.extend(new);
        let over = self.points.len().saturating_sub(KEPT);
        self.points.drain(..over);
        match event {
            Event::Run(header) => self.begin(header),
            Event::Cells { cells } => self.add(cells),
            Event::Phase(phase) => (self.phase, self.phase_began) = (phase.clone(), Instant::now()),
            Event::Trial(trial) => self.trial(trial),
            Event::Reading { end, reading, .. } if reading.cpu.is_some() => {
                self.cores[usize::from(end != "near")].clone_from(&reading.cpu);
            }
            Event::Pass(pass) => self.cores = [pass.near.cpu.clone(), pass.far.cpu.clone()],
            Event::End(ending) => self.status = ending.how.clone(),
            _ => {}
        }
    }

    fn begin(&mut self, header: &RunHeader) {
        self.status = String::new();
        self.add(&header.cells);
    }

    fn add(&mut self, cells: &[model::Cell]) {
        self.cells.extend(cells.iter().map(|cell| (cell.id, Cell::new(cell))));
    }

    fn trial(&mut self, trial: &Trial) {
        if let (Some(cell), Some(value)) = (self.cells.get_mut(&trial.cell), trial.value) {
            cell.values.push(value);
        }
        self.limits = limits::of(trial).or(self.limits);
        let sum =
            |end: &model::EndTally| end.flows.iter().filter_map(|flow| flow.socket.retransmits).reduce(|a, b| a + b);
        if let Some(more) = [sum(&trial.near), sum(&trial.far)].into_iter().flatten().reduce(|a, b| a + b) {
            self.retransmits = Some(self.retransmits.unwrap_or(0) + more);
        }
    }

    /// Whether the cells are the sizes of a curve.
    fn is_curve(&self) -> bool {
        self.cells.len() > 1
            && self.cells.values().any(|cell| cell.spec.is_point())
            && self.cells.values().all(|cell| cell.label.is_empty())
    }

    /// The activity and the time left.
    fn activity(&self, frame: &mut Frame<'_>, area: Rect, elapsed: Duration) {
        let phase = self.phase.after(self.phase_began.elapsed());
        let text = match self.notes.last() {
            Some(note) => note.clone(),
            None if !self.status.is_empty() => self.status.clone(),
            None => phase.say().shown(Spelling { rates: self.look.rates, ..Spelling::default() }),
        };
        let share = phase.share(elapsed).filter(|_| phase.cells > 1);
        if let Some(share) = share.filter(|_| self.notes.is_empty() && self.status.is_empty()) {
            let gauge = LineGauge::default()
                .ratio(share.clamp(0.0, 1.0))
                .label(text)
                .filled_style(self.look.colour(Color::Cyan));
            frame.render_widget(gauge, area);
        } else {
            frame.render_widget(Paragraph::new(text), area);
        }
    }

    /// A value of all flows over the measured time, of each direction that has it.
    fn over_time(&self, value: fn(&LivePoint) -> Option<f64>) -> Vec<(Direction, Vec<(f64, f64)>)> {
        let of = |direction| {
            let points = self.points.iter().filter(|point| point.flow.is_none() && point.direction == direction);
            let values: Vec<(f64, f64)> = points.filter_map(|point| Some((point.time_s, value(point)?))).collect();
            (!values.is_empty()).then_some((direction, values))
        };
        [Direction::Send, Direction::Reverse].into_iter().filter_map(of).collect()
    }

    /// What is known over time besides the rate. What never happened is left out.
    fn quantities(&self) -> Vec<OverTime<'static>> {
        let all = QUANTITIES.iter().map(|quantity| OverTime {
            title: quantity.title,
            lines: self.over_time(quantity.value),
            text: &quantity.text,
        });
        let happened =
            |quantity: &OverTime<'_>| quantity.lines.iter().flat_map(|(_, line)| line).any(|(_, value)| *value > 0.0);
        all.filter(happened).collect()
    }

    /// The last values of a quantity as a line of bars, with the range where there is room.
    fn bars(&self, quantity: &OverTime<'_>, width: u16) -> Option<Line<'static>> {
        let all: Vec<f64> = quantity.lines.iter().flat_map(|(_, line)| line).map(|(_, value)| *value).collect();
        let (low, high) =
            all.iter().fold((f64::INFINITY, 0.0), |(low, high), value| (f64::min(low, *value), f64::max(high, *value)));
        let text = &quantity.text;
        let range = if width < NARROW { String::new() } else { format!(", {} to {}", text(low), text(high)) };
        let shown = format!("  {}{range}", text(*all.last()?));
        let bars = spark(&all, usize::from(width).saturating_sub(12 + shown.chars().count()));
        Some(Line::from(vec![
            Span::styled(format!("{:<12}", quantity.title), self.look.weak()),
            Span::styled(bars, self.look.colour(Color::Yellow)),
            Span::raw(shown),
        ]))
    }

    /// The newest point of all flows and of each; of many, of those with the lowest, the median and the highest rate.
    fn newest(&self) -> Vec<(String, &LivePoint)> {
        let mut newest: BTreeMap<(Option<u32>, bool), &LivePoint> = BTreeMap::new();
        for point in &self.points {
            newest.insert((point.flow, point.direction == Direction::Reverse), point);
        }
        let count = newest.keys().filter_map(|(flow, _)| *flow).collect::<BTreeSet<u32>>().len();
        if count <= FLOWS {
            let name = |point: &LivePoint| point.flow.map_or("all".to_owned(), |flow| flow.to_string());
            return newest.into_values().map(|point| (name(point), point)).collect();
        }
        let mut rows = Vec::new();
        for reverse in [false, true] {
            let of = newest.iter().filter(|((_, way), _)| *way == reverse).map(|(_, point)| *point);
            let (mut flows, all): (Vec<&LivePoint>, Vec<&LivePoint>) = of.partition(|point| point.flow.is_some());
            flows.sort_by(|a, b| a.bits_per_s.unwrap_or(0.0).total_cmp(&b.bits_per_s.unwrap_or(0.0)));
            let places = [("lowest", flows.first()), ("median", flows.get(flows.len() / 2)), ("highest", flows.last())];
            rows.extend(all.into_iter().map(|point| (format!("all {count}"), point)));
            rows.extend(places.into_iter().filter_map(|(name, point)| Some((name.to_owned(), *point?))));
        }
        rows
    }

    /// The cells of a plan that have values, those without at the end.
    fn table(&self, width: u16) -> Table<'static> {
        let is_narrow = width < NARROW;
        let rows = self.cells.values().map(|cell| {
            let [low, median, high] =
                cell.spread().map_or([const { String::new() }; 3], |all| all.map(|value| cell.text(value, self.look)));
            let range = if cell.values.len() > 1 { format!("{low} to {high}") } else { String::new() };
            let label = if cell.label.is_empty() { cell.spec.block_words() } else { cell.label.clone() };
            let texts = [model::plain(&label).into_owned(), cell.values.len().to_string(), median, range];
            Row::new(texts.into_iter().take(if is_narrow { 3 } else { 4 }))
        });
        let widths = [Constraint::Fill(1), Constraint::Length(6), Constraint::Length(13), Constraint::Length(28)];
        let heads = ["cell", "trials", "median", "range of the trials"];
        let shown = if is_narrow { 3 } else { 4 };
        let (widths, heads) = (widths[..shown].to_vec(), heads[..shown].to_vec());
        Table::new(rows, widths).header(Row::new(heads).style(self.look.weak())).column_spacing(1)
    }

    /// What was measured, with this many quantities below the rate.
    fn main(&self, frame: &mut Frame<'_>, area: Rect, plotted: usize) {
        if self.is_curve() {
            let points: Vec<(f64, [f64; 3])> = self
                .cells
                .values()
                .filter(|cell| cell.spec.transport != Spec::CEILING)
                .filter_map(|cell| Some((cell.spec.block as f64, cell.rates()?)))
                .collect();
            chart::curve(frame, area, self.look, points);
        } else if self.cells.len() > 1 {
            frame.render_widget(self.table(area.width), area);
        } else {
            self.rates(frame, area, plotted);
        }
    }

    /// The rate over time, and below it the first quantities beside each other.
    fn rates(&self, frame: &mut Frame<'_>, area: Rect, plotted: usize) {
        let lines = self.over_time(|point| point.bits_per_s.or(point.transactions_per_s));
        if lines.is_empty() {
            frame.render_widget(Paragraph::new("nothing has arrived yet"), area);
            return;
        }
        let trips = self.points.iter().any(|point| point.transactions_per_s.is_some());
        let rate = |value: f64| if trips { format!("{}/s", units::count(value)) } else { self.look.rate(value) };
        let title = if trips { "round trips" } else { "goodput" };
        let below: Vec<OverTime<'_>> = self.quantities().into_iter().take(plotted).collect();
        let height = if below.is_empty() { 0 } else { area.height * 2 / 5 };
        let [upper, lower] = Layout::vertical([Constraint::Min(0), Constraint::Length(height)]).areas(area);
        OverTime { title, lines, text: &rate }.draw(frame, upper, self.look);
        let places = Layout::horizontal(below.iter().map(|_| Constraint::Fill(1))).spacing(2).split(lower);
        for (quantity, place) in below.iter().zip(places.iter()) {
            quantity.draw(frame, *place, self.look);
        }
    }

    /// The quantities that are not plotted, how busy the cores are, limits of the last trial, retransmits.
    fn facts(&self, plotted: usize, width: u16) -> Vec<Line<'static>> {
        let quantities = self.quantities().into_iter().skip(plotted);
        let mut lines: Vec<Line<'static>> = quantities.filter_map(|quantity| self.bars(&quantity, width)).collect();
        for (title, cpu) in ["cores near", "cores far"].into_iter().zip(&self.cores) {
            lines.extend(cpu.as_ref().map(|cpu| cores(title, cpu, self.look, width)));
        }
        lines.extend(self.limits.map(|limits| limits.line(self.look)));
        if let Some(count) = self.retransmits {
            lines.push(Line::from(vec![
                Span::styled(format!("{:<12}", "retransmits"), self.look.weak()),
                Span::raw(format!("{count} in all trials that ended")),
            ]));
        }
        lines
    }
}

impl TerminalView for RunView {
    type Message = RunNews;

    fn take(&mut self, told: RunNews) {
        match told {
            RunNews::Event(event) => self.event(&event),
            RunNews::Status(text) => self.status = model::plain(&text).into_owned(),
            RunNews::Note(text) => self.notes.push(model::plain(&text).into_owned()),
        }
    }

    fn switch_unit(&mut self) {
        self.look.switch_unit();
    }

    fn draw(&self, frame: &mut Frame<'_>, elapsed: Duration, moment: DrawMoment) {
        let area = frame.area();
        let flows = flows::table(&self.newest(), self.look, area.width);
        let flows_rows = flows.as_ref().map_or(0, |(_, rows)| *rows);
        let rows = |facts: &[Line<'_>]| u16::try_from(facts.len()).unwrap_or(u16::MAX);
        let rest = |facts: u16| area.height.saturating_sub(HEADS + flows_rows).saturating_sub(facts);
        let most = usize::from(area.width / PLOT);
        let is_tall = self.cells.len() <= 1 && rest(rows(&self.facts(usize::MAX, area.width))) >= TALL;
        let plotted = if is_tall { most.min(self.quantities().len()) } else { 0 };
        let mut facts = self.facts(plotted, area.width);
        // On few rows the measurement comes first.
        facts.truncate(usize::from(rest(LEAST)));
        let [top, second, middle, table, lower, bottom] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(LEAST),
            Constraint::Length(flows_rows),
            Constraint::Length(rows(&facts)),
            Constraint::Length(1),
        ])
        .areas(area);
        head(frame, top, self.look, &self.title, elapsed, moment);
        self.activity(frame, second, elapsed);
        self.main(frame, middle, plotted);
        if let Some((flows, _)) = flows {
            frame.render_widget(flows, table);
        }
        frame.render_widget(Paragraph::new(facts), lower);
        keys(frame, bottom, self.look, moment, true);
    }
}

#[cfg(test)]
mod tests;
