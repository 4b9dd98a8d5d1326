//! What people see while they wait: a line with the time left on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use model::{Event, EventSink, Phase, SinkError, units};

/// Progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    said: Option<Instant>,
}

/// Plain lines come at most this often.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

impl Progress {
    /// A bar on a terminal, else lines.
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self { bar, said: None }
    }

    /// Says something about what goes on before the run.
    pub fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(model::plain(text).into_owned()),
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
            self.say(&text);
        } else if self.said.is_none_or(|said| said.elapsed() >= PLAIN_EVERY) {
            self.said = Some(Instant::now());
            self.say(&text);
        }
    }

    /// Takes the bar away.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Whole seconds are enough for people who wait.
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
