//! Progress of a run: a line with the time left on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use model::{Event, EventSink, Phase, SinkError, units};

use crate::spelling;

/// Progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    printed: Option<Instant>,
}

/// Shortest time between two plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

impl Progress {
    /// A progress line on a terminal, else plain lines.
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self { bar, printed: None }
    }

    /// Shows a status text.
    pub fn status(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(model::plain(&spelling::flags(text)).into_owned()),
            None => errln!("{text}"),
        }
    }

    fn phase(&mut self, phase: &Phase) {
        let mut text = phase.activity.clone();
        if phase.cells > 1 {
            text += &format!(", {} of {} done", phase.cells_done, phase.cells);
        }
        if let Some(left) = phase.remaining_ns {
            text += &format!(", about {} left", coarse(left));
        }
        if self.bar.is_some() {
            self.status(&text);
        } else if self.printed.is_none_or(|printed| printed.elapsed() >= PLAIN_EVERY) {
            self.printed = Some(Instant::now());
            self.status(&text);
        }
    }

    /// Removes the progress line.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A time in whole seconds, or minutes from two minutes on.
fn coarse(ns: u64) -> String {
    match ns.div_ceil(1_000_000_000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

impl EventSink for Progress {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Phase(phase) => self.phase(phase),
            Event::Trial(trial) if self.bar.is_some() => {
                if let (Some(bar), Some(value)) = (&self.bar, trial.value)
                    && trial.position == 0
                    && !trial.near.flows.is_empty()
                {
                    bar.set_message(format!("trial {}: {}", trial.pass + 1, units::count(value)));
                }
            }
            Event::End(_) => self.finish(),
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
