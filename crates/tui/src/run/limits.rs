//! How much of a trial each of TCP's own limits held its senders back.

use model::Trial;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use crate::parts::ViewLook;

/// Columns of the bar.
const BAR: f64 = 20.0;

/// Shares of the busy time of a trial's connections, from 0 to 1 (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    receiver_window: f64,
    send_buffer: f64,
}

/// The limits of a trial; `None` without TCP's times.
pub(super) fn of(trial: &Trial) -> Option<Limits> {
    let flows = trial.near.flows.iter().chain(&trial.far.flows);
    let last = flows.filter_map(|flow| flow.tcp.last());
    let (mut busy, mut window, mut buffer) = (0, 0, 0);
    for sample in last {
        busy += sample.busy_ns?;
        window += sample.rwnd_limited_ns?;
        buffer += sample.sndbuf_limited_ns?;
    }
    let share = |part: u64| part as f64 / busy as f64;
    (busy > 0).then(|| Limits { receiver_window: share(window), send_buffer: share(buffer) })
}

impl Limits {
    pub(super) fn line(self, look: ViewLook) -> Line<'static> {
        let columns = |share: f64| (BAR * share.clamp(0.0, 1.0)).round() as usize;
        let (window, buffer) = (columns(self.receiver_window), columns(self.send_buffer));
        let rest = (BAR as usize).saturating_sub(window + buffer);
        Line::from(vec![
            Span::styled(format!("{:<12}", "TCP limits"), look.weak()),
            Span::styled("█".repeat(window), look.colour(Color::Red)),
            Span::styled("▓".repeat(buffer), look.colour(Color::Yellow)),
            Span::styled("·".repeat(rest), look.weak()),
            Span::raw(format!(
                " receiver window {:.0} %, send buffer {:.0} %",
                100.0 * self.receiver_window,
                100.0 * self.send_buffer
            )),
        ])
    }
}
