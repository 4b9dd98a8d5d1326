//! Progress of a run: a line with the time left on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use model::{Event, EventSink, Phase, SinkError};
use text::{Said, Text};

use crate::console;

/// Progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    printed: Option<Instant>,
    /// What the progress line tells, and since when.
    phase: Option<(Phase, Instant)>,
    /// Lines of the running measurement are on standard output.
    has_lines: bool,
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
        Self { bar, printed: None, phase: None, has_lines: false }
    }

    /// Shows a status text.
    pub fn status(&mut self, text: &Text) {
        self.phase = None;
        self.show(text);
    }

    fn show(&self, text: &Text) {
        match &self.bar {
            Some(bar) => bar.set_message(console::line(text)),
            None => errln!("{text}"),
        }
    }

    fn phase(&mut self, phase: &Phase) {
        if self.bar.is_none() {
            if self.has_lines || self.printed.is_some_and(|printed| printed.elapsed() < PLAIN_EVERY) {
                return;
            }
            self.printed = Some(Instant::now());
        }
        self.show(&phase.say());
        self.phase = Some((phase.clone(), Instant::now()));
    }

    /// Tells the time that is left by now.
    fn tick(&self) {
        if let (Some(_), Some((phase, began))) = (&self.bar, &self.phase) {
            self.show(&phase.after(began.elapsed()).say());
        }
    }

    /// Prints lines of the measurement to standard output, above the progress line if there is one. They tell the progress by
    /// themselves.
    pub fn print(&mut self, lines: &[String]) {
        self.has_lines = true;
        self.beside(|| lines.iter().for_each(|line| outln!("{line}")));
    }

    /// Does what may print lines to standard output, without the progress line if there is one.
    pub fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the progress line.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl EventSink for Progress {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::Phase(phase) => self.phase(phase),
            Event::Reading { .. } => self.tick(),
            Event::End(_) => {
                self.finish();
                // Between the lines and the answer.
                if self.has_lines {
                    out!("\n");
                }
            }
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
