//! The counters of a host: cores, interfaces, TCP.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::{CoreUse, Watched, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use crate::parts::{ViewLook, busy_ns, head, keys, spark};
use crate::screen::{DrawMoment, TerminalView};

/// Readings of an interface that are kept for its line.
const KEPT: usize = 120;
/// Most columns of that line.
const SPARK: u16 = 20;
/// Most columns of a core's bar, and the columns of what stands before and behind it.
const BAR: u16 = 40;
const AROUND_BAR: u16 = 9 + 48;
/// Narrower views leave out packets, and what a core's time was spent on.
const NARROW: u16 = 72;
/// Rows around the cores, with the heads of the interfaces and a few of them.
const OTHERS: u16 = 14;
/// Rows of the counters with the empty one below, and the least ones of the interfaces.
const COUNTERS: u16 = 6;
const LEAST: u16 = 3;

/// The counters of a host, a reading each interval.
#[derive(Debug, Clone)]
pub struct HostView {
    title: String,
    look: ViewLook,
    last: Option<Watched>,
    /// Rates of each interface, in and out together, bit/s.
    rates: BTreeMap<String, VecDeque<f64>>,
}

impl HostView {
    /// A view with this title, without a reading.
    #[must_use]
    pub fn new(title: String, look: ViewLook) -> Self {
        Self { title, look, last: None, rates: BTreeMap::new() }
    }

    fn cores(&self, seen: &Watched, rows: u16, width: u16) -> Vec<Line<'static>> {
        let is_narrow = width < NARROW;
        let bar = usize::from(width.saturating_sub(if is_narrow { 20 } else { AROUND_BAR }).clamp(8, BAR));
        let Some(cpu) = &seen.cpu else { return vec![Line::raw("CPU time cannot be read on that host.")] };
        let mut busiest: Vec<&CoreUse> = cpu.cores.iter().collect();
        busiest.sort_by_key(|core| (std::cmp::Reverse(busy_ns(core)), core.core));
        let window = cpu.window_ns.max(1) as f64;
        let line = |core: &CoreUse| {
            let share = |ns: u64| ns as f64 / window;
            let parts = [
                (share(core.user_ns), '█', Color::Green),
                (share(core.system_ns), '▓', Color::Blue),
                (share(core.irq_ns + core.softirq_ns), '▒', Color::Magenta),
                (share(core.steal_ns), '░', Color::Red),
            ];
            let (mut spans, mut sum, mut drawn) = (vec![Span::raw(format!("core {:<4}", core.core))], 0.0, 0);
            for (part, symbol, colour) in parts {
                sum += part;
                let end = (bar as f64 * f64::min(sum, 1.0)).round() as usize;
                spans
                    .push(Span::styled(symbol.to_string().repeat(end.saturating_sub(drawn)), self.look.colour(colour)));
                drawn = drawn.max(end);
            }
            spans.push(Span::raw(" ".repeat(bar - drawn)));
            let percent = parts.map(|(part, ..)| 100.0 * part);
            spans.push(Span::raw(if is_narrow {
                format!(" {:3.0} % busy", percent[..3].iter().sum::<f64>().min(100.0))
            } else {
                format!(
                    " user {:3.0} kernel {:3.0} interrupts {:3.0} steal {:3.0} %",
                    percent[0], percent[1], percent[2], percent[3]
                )
            }));
            Line::from(spans)
        };
        let room = usize::from(rows.max(1));
        let mut lines: Vec<Line<'static>> = busiest.iter().take(room).map(|core| line(core)).collect();
        if busiest.len() > room {
            lines.pop();
            lines.push(Line::styled(
                format!("and {} cores that were less busy", busiest.len() + 1 - room),
                self.look.weak(),
            ));
        }
        lines
    }

    fn interfaces(&self, seen: &Watched, width: u16) -> Table<'static> {
        let is_narrow = width < NARROW;
        // Those that carry most come first, where rows are few.
        let mut busiest: Vec<_> = seen.interfaces.iter().collect();
        busiest.sort_by(|a, b| (b.rx_bps + b.tx_bps).total_cmp(&(a.rx_bps + a.tx_bps)));
        let widths: Vec<u16> = if is_narrow { vec![9, 11, 11] } else { vec![13, 12, 10, 12, 10, 8] };
        let used: u16 = widths.iter().map(|width| width + 1).sum();
        let spark_width = width.saturating_sub(used).min(SPARK);
        let rows = busiest.into_iter().map(|of| {
            let rates: Vec<f64> = self.rates.get(&of.name).into_iter().flatten().copied().collect();
            let drops = if of.drops_per_s > 0.0 {
                self.look.colour(Color::Red).patch(self.look.strong())
            } else {
                self.look.weak()
            };
            let per_second = |count: f64| Cell::new(format!("{}/s", units::count(count)));
            let name = Cell::new(model::plain(&of.name).into_owned());
            let [rx, tx] = [of.rx_bps, of.tx_bps].map(|bps| Cell::new(self.look.rate(bps)));
            let bars = Cell::new(spark(&rates, usize::from(spark_width))).style(self.look.colour(Color::Cyan));
            let mut cells = vec![name, rx, tx];
            if !is_narrow {
                cells.insert(2, per_second(of.rx_packets_per_s));
                cells.extend([per_second(of.tx_packets_per_s), per_second(of.drops_per_s).style(drops)]);
            }
            cells.push(bars);
            Row::new(cells)
        });
        let heads: &[&str] = if is_narrow {
            &["interface", "in", "out", ""]
        } else {
            &["interface", "in", "packets", "out", "packets", "drops", "in + out"]
        };
        let widths = widths.into_iter().chain([spark_width]).map(Constraint::Length);
        let head = Row::new(heads.iter().copied()).style(self.look.weak());
        Table::new(rows, widths).header(head).column_spacing(1)
    }

    fn counters(&self, seen: &Watched) -> Vec<Line<'static>> {
        let number = |value: Option<u64>| value.map_or("-".into(), |value| value.to_string());
        let rate = |value: Option<f64>| value.map_or("-".into(), |value| format!("{}/s", units::count(value)));
        let size = |value: Option<u64>| value.map_or("-".into(), |bytes| units::amount(bytes as f64));
        let lines = [
            format!(
                "TCP       {} established, {} in, {} out, {} retransmitted",
                number(seen.tcp_established),
                rate(seen.tcp_in_per_s),
                rate(seen.tcp_out_per_s),
                rate(seen.tcp_retransmits_per_s)
            ),
            format!("UDP       {} undelivered", rate(seen.udp_errors_per_s)),
            format!(
                "queues    of the cores: {} dropped, {} stopped with work left",
                rate(seen.softnet_dropped_per_s),
                rate(seen.softnet_squeezed_per_s)
            ),
            format!(
                "threads   {} running, {} waiting for I/O; {} interrupts, {} switches",
                number(seen.running),
                number(seen.blocked),
                rate(seen.interrupts_per_s),
                rate(seen.context_switches_per_s)
            ),
            format!("memory    {} available", size(seen.memory_available_bytes)),
        ];
        lines.map(Line::raw).into()
    }
}

impl TerminalView for HostView {
    type Message = Watched;

    fn take(&mut self, seen: Watched) {
        for of in &seen.interfaces {
            let rates = self.rates.entry(of.name.clone()).or_default();
            rates.push_back(of.rx_bps + of.tx_bps);
            rates.drain(..rates.len().saturating_sub(KEPT));
        }
        self.rates.retain(|name, _| seen.interfaces.iter().any(|of| of.name == *name));
        self.last = Some(seen);
    }

    fn switch_unit(&mut self) {
        self.look.switch_unit();
    }

    fn draw(&self, frame: &mut Frame<'_>, elapsed: Duration, moment: DrawMoment) {
        let area = frame.area();
        let cores = self.last.as_ref().and_then(|seen| seen.cpu.as_ref()).map_or(1, |cpu| cpu.cores.len());
        let most = area.height.saturating_sub(OTHERS).max(2);
        let rows = u16::try_from(cores).unwrap_or(u16::MAX).min(most);
        // Where rows are few, the busiest interface is worth more than the last counters.
        let counters = area.height.saturating_sub(rows + 4 + LEAST).min(COUNTERS);
        let [top, _, upper, _, middle, lower, bottom] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(rows),
            Constraint::Length(1),
            Constraint::Length(counters),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        head(frame, top, self.look, &self.title, elapsed, moment);
        match &self.last {
            None => frame.render_widget(Paragraph::new("waiting for the first reading"), upper),
            Some(seen) => {
                frame.render_widget(Paragraph::new(self.cores(seen, rows, area.width)), upper);
                frame.render_widget(Paragraph::new(self.counters(seen)), middle);
                frame.render_widget(self.interfaces(seen, area.width), lower);
            }
        }
        keys(frame, bottom, self.look, moment, false);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

    use model::{CpuUse, WatchedInterface};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn core(core: u32, [user, system, soft, steal]: [u64; 4]) -> CoreUse {
        let ms = 1_000_000;
        CoreUse {
            core,
            user_ns: user * ms,
            system_ns: system * ms,
            irq_ns: 0,
            softirq_ns: soft * ms,
            steal_ns: steal * ms,
            idle_ns: (1_000 - user - system - soft - steal) * ms,
        }
    }

    fn seen(cores: u32) -> Watched {
        let interface = |name: &str, rate: f64| WatchedInterface {
            name: name.into(),
            rx_bps: rate,
            rx_packets_per_s: rate / 12_000.0,
            tx_bps: rate / 40.0,
            tx_packets_per_s: rate / 24_000.0,
            drops_per_s: if rate > 1e9 { 12.0 } else { 0.0 },
        };
        let busy = |number: u32| core(number, [100 + 10 * u64::from(number % 7), 300, 250, 50]);
        Watched {
            cpu: Some(CpuUse {
                window_ns: 1_000_000_000,
                resolution_ns: 10_000_000,
                cores: (0..cores).map(busy).collect(),
            }),
            running: Some(3),
            blocked: Some(0),
            interrupts_per_s: Some(12_345.0),
            tcp_established: Some(7),
            tcp_retransmits_per_s: Some(2.0),
            interfaces: vec![interface("lo", 0.0), interface("eth0", 9.4e9)],
            ..Watched::default()
        }
    }

    fn picture(view: &HostView, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let done = terminal.draw(|frame| view.draw(frame, Duration::from_secs(42), DrawMoment::Now)).unwrap();
        crate::screen::lines(done.buffer).join("\n")
    }

    #[test]
    fn a_host_is_shown() {
        let mut view = HostView::new("thru top b".into(), ViewLook { plain: true, rates: text::RateUnit::Bits });
        insta::assert_snapshot!("host_before", picture(&view, 80, 24));
        for _ in 0..3 {
            view.take(seen(4));
        }
        insta::assert_snapshot!("host", picture(&view, 80, 24));
        view.switch_unit();
        assert!(picture(&view, 100, 24).contains("1.18 GB/s"));
    }

    #[test]
    fn nothing_is_cut_at_80_columns_whatever_the_numbers_are_and_at_40_units_stay() {
        let mut view = HostView::new("thru top b".into(), ViewLook::default());
        let large = Some(123_456.0);
        let interface = WatchedInterface {
            name: "enp129s0f0np0".into(),
            rx_bps: 123.4e6,
            rx_packets_per_s: 123_456.0,
            tx_bps: 123.4e9,
            tx_packets_per_s: 123_456.0,
            drops_per_s: 123_456.0,
        };
        let busy = seen(4);
        view.take(Watched {
            interfaces: vec![interface],
            tcp_established: Some(12_345),
            tcp_in_per_s: large,
            tcp_out_per_s: large,
            tcp_retransmits_per_s: large,
            softnet_dropped_per_s: large,
            softnet_squeezed_per_s: large,
            context_switches_per_s: large,
            interrupts_per_s: large,
            memory_available_bytes: Some(123 << 30),
            ..busy
        });
        let shown = picture(&view, 80, 24);
        for whole in [
            "steal   5 %",
            "k/s retransmitted",
            "with work left",
            "k/s switches",
            "GB available",
            "Gbit/s",
            "123 k/s  █",
        ] {
            assert!(shown.contains(whole), "{whole}: {shown}");
        }
        let narrow = picture(&view, 40, 12);
        assert!(
            narrow.contains("123 Mbit/s") && narrow.contains("123 Gbit/s") && narrow.contains("% busy"),
            "{narrow}"
        );
    }

    #[test]
    fn many_cores_and_few_rows_are_summed_up() {
        let mut view = HostView::new("thru top b".into(), ViewLook::default());
        view.take(seen(64));
        let shown = picture(&view, 80, 20);
        assert!(shown.contains("and 59 cores that were less busy"), "{shown}");
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            picture(&view, width, height);
        }
    }
}
