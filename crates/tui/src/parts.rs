//! Pieces that views share: the head, the line of keys, cores, quantities.

use std::time::Duration;

use model::{CoreUse, CpuUse};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use text::RateUnit;

use crate::screen::DrawMoment;

/// The shares of a cell from empty to full.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of the line of keys.
const KEYS: u16 = 48;

/// How a view looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewLook {
    /// Without colours, after the environment's `NO_COLOR` (no-color.org).
    pub plain: bool,
    /// The unit of rates.
    pub rates: RateUnit,
}

impl ViewLook {
    /// A colour of the terminal's own sixteen, so that it suits its background.
    pub(crate) fn colour(self, colour: Color) -> Style {
        if self.plain { Style::new() } else { Style::new().fg(colour) }
    }

    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn weak(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Shows rates in the other unit.
    pub(crate) fn switch_unit(&mut self) {
        self.rates = if self.rates == RateUnit::Bits { RateUnit::Bytes } else { RateUnit::Bits };
    }

    /// A rate as text.
    pub(crate) fn rate(self, bits_per_s: f64) -> String {
        self.rates.rate(bits_per_s)
    }
}

/// Title and time.
pub(crate) fn head(
    frame: &mut Frame<'_>,
    area: Rect,
    look: ViewLook,
    title: &str,
    elapsed: Duration,
    moment: DrawMoment,
) {
    let clock = format!("{}{:>6} s", if moment == DrawMoment::Paused { "paused  " } else { "" }, elapsed.as_secs());
    let width = usize::from(area.width).saturating_sub(clock.chars().count() + 1);
    let title: String = title.chars().take(width).collect();
    let gap = " ".repeat(width.saturating_sub(title.chars().count()) + 1);
    let line = Line::from(vec![Span::styled(title, look.strong()), Span::raw(gap), Span::raw(clock)]);
    frame.render_widget(Paragraph::new(line), area);
}

/// The keys, as long as they do anything.
pub(crate) fn keys(frame: &mut Frame<'_>, area: Rect, look: ViewLook, moment: DrawMoment, restart: bool) {
    if moment == DrawMoment::Last {
        return;
    }
    let unit = if area.width < KEYS { "unit" } else { "bits or bytes" };
    let mut words = vec![("q", "quit"), ("p", "pause"), ("u", unit)];
    if restart {
        words.insert(1, ("r", "restart"));
    }
    let spans: Vec<Span<'_>> = words
        .iter()
        .flat_map(|(key, what)| {
            [Span::styled(format!(" {key} "), look.strong()), Span::styled(format!("{what}  "), look.weak())]
        })
        .collect();
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// How busy each core was, a character each, and the busiest in percent.
pub(crate) fn cores(title: &str, cpu: &CpuUse, look: ViewLook, width: u16) -> Line<'static> {
    let window = cpu.window_ns.max(1) as f64;
    let busy: Vec<f64> = cpu.cores.iter().map(|core| busy_ns(core) as f64 / window).collect();
    let [most, softirq] = cpu.busiest();
    let room = usize::from(width).saturating_sub(44).max(8);
    let bars: String = busy.iter().take(room).map(|share| level(*share)).collect();
    let more = if busy.len() > room { "…" } else { "" };
    Line::from(vec![
        Span::styled(format!("{title:<12}"), look.weak()),
        Span::styled(bars, look.colour(Color::Green)),
        Span::raw(format!("{more}  busiest {:.0} %, softirq {:.0} %", 100.0 * most, 100.0 * softirq)),
    ])
}

/// Time in which a core did something, ns; time taken by the hypervisor is not included.
pub(crate) fn busy_ns(core: &CoreUse) -> u64 {
    core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns
}

/// A character for a share from 0 to 1.
pub(crate) fn level(share: f64) -> char {
    let top = LEVELS.len() - 1;
    let at = (share.clamp(0.0, 1.0) * top as f64).round() as usize;
    LEVELS[at.min(top)]
}

/// The last values as a line of bars between 0 and their highest.
pub(crate) fn spark(values: &[f64], width: usize) -> String {
    let last = &values[values.len().saturating_sub(width)..];
    let most = last.iter().copied().fold(0.0, f64::max);
    last.iter().map(|value| if most > 0.0 { level(value / most) } else { LEVELS[0] }).collect()
}
