//! The terminal: raw and on its second screen while a view is shown, and as before afterwards.

use std::io::{self, IsTerminal as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};

/// Time between two looks for keys and events, and so between two pictures.
const PACE: Duration = Duration::from_millis(100);
/// After this the picture is drawn again although nothing came: its clock goes on.
const CLOCK: Duration = Duration::from_millis(500);

/// Whether the terminal is ours.
static OURS: AtomicBool = AtomicBool::new(false);

/// When a picture is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrawMoment {
    /// While things happen.
    Now,
    /// The picture stands still, and things go on.
    Paused,
    /// It is the last one, which stays on the terminal.
    Last,
}

/// What is shown.
pub trait TerminalView: Clone + Send + 'static {
    /// What it takes.
    type Message: Send + 'static;

    /// Takes what happened.
    fn take(&mut self, message: Self::Message);

    /// Switches between bits and bytes.
    fn switch_unit(&mut self);

    /// Draws itself, `elapsed` after the screen was opened.
    fn draw(&self, frame: &mut Frame<'_>, elapsed: Duration, moment: DrawMoment);
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// To end: as Ctrl-C.
    Quit,
    /// To start again.
    Restart,
}

/// A view on the terminal. Dropping it puts the terminal back.
#[derive(Debug)]
pub struct TerminalScreen<V: TerminalView> {
    sender: Option<Sender<V::Message>>,
    thread: Option<JoinHandle<Vec<String>>>,
    wish: Arc<Mutex<Option<Wish>>>,
}

/// What remains of a screen that was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The last picture, a line of text each.
    pub picture: Vec<String>,
    /// What the user wanted, if anything.
    pub wish: Option<Wish>,
}

impl<V: TerminalView> TerminalScreen<V> {
    /// Takes the terminal over. `on_wish` is called on the screen's thread when the user wants something.
    ///
    /// # Errors
    /// Standard input or output is no terminal, or the terminal refuses.
    pub fn open(view: V, on_wish: impl Fn(Wish) + Send + 'static) -> io::Result<Self> {
        if !stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(io::Error::other("standard input and output are not a terminal"));
        }
        restore_on_panic();
        enable_raw_mode()?;
        OURS.store(true, Ordering::SeqCst);
        let opened = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())))
            .inspect_err(|_| restore())?;
        let (sender, receiver) = channel();
        let wish = Arc::new(Mutex::new(None));
        let noted = wish.clone();
        let said = move |wish: Wish| {
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(wish);
            on_wish(wish);
        };
        let thread = std::thread::Builder::new().name("screen".into()).spawn(move || {
            let picture = show(opened, view, &receiver, said);
            restore();
            picture
        });
        let thread = thread.inspect_err(|_| restore())?;
        Ok(Self { sender: Some(sender), thread: Some(thread), wish })
    }

    /// Shows what happened.
    pub fn tell(&self, message: V::Message) {
        if let Some(sender) = &self.sender {
            // Without a reader the screen has failed; the measurement goes on.
            let _ = sender.send(message);
        }
    }

    /// Whether the user wants anything.
    #[must_use]
    pub fn wish(&self) -> Option<Wish> {
        *self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the terminal back.
    pub fn close(mut self) -> Closed {
        Closed { picture: self.end(), wish: self.wish() }
    }

    fn end(&mut self) -> Vec<String> {
        drop(self.sender.take());
        let picture = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        restore();
        picture
    }
}

impl<V: TerminalView> Drop for TerminalScreen<V> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Puts the terminal back as it was, if a screen has it. Also for a process that ends at once.
pub fn restore() {
    if OURS.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// A panic on any thread is told on the terminal as it was.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            told(panic);
        }));
    });
}

/// Draws until nobody tells anything any more; returns the last picture.
fn show<V: TerminalView>(
    mut terminal: Terminal<CrosstermBackend<io::Stdout>>,
    mut view: V,
    messages: &Receiver<V::Message>,
    on_wish: impl Fn(Wish),
) -> Vec<String> {
    let opened = Instant::now();
    // What is shown while it is paused.
    let mut still: Option<V> = None;
    let mut picture = Vec::new();
    let mut drawn: Option<Instant> = None;
    loop {
        let mut changed = drawn.is_none_or(|drawn| drawn.elapsed() >= CLOCK);
        let ended = loop {
            match messages.recv_timeout(if changed { Duration::ZERO } else { PACE / 2 }) {
                Ok(message) => {
                    view.take(message);
                    changed = true;
                }
                Err(RecvTimeoutError::Timeout) => break false,
                Err(RecvTimeoutError::Disconnected) => break true,
            }
        };
        while !is_gone() && event::poll(Duration::ZERO).unwrap_or(false) {
            changed = true;
            match event::read() {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => match action(key) {
                    Some(Action::Pause) => still = if still.is_some() { None } else { Some(view.clone()) },
                    Some(Action::Unit) => {
                        view.switch_unit();
                        still.iter_mut().for_each(TerminalView::switch_unit);
                    }
                    Some(Action::Wish(wish)) => on_wish(wish),
                    None => {}
                },
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if changed || ended {
            let shown = still.as_ref().filter(|_| !ended).unwrap_or(&view);
            let moment = match &still {
                _ if ended => DrawMoment::Last,
                Some(_) => DrawMoment::Paused,
                None => DrawMoment::Now,
            };
            match terminal.draw(|frame| shown.draw(frame, opened.elapsed(), moment)) {
                Ok(done) => picture = lines(done.buffer),
                // The terminal is gone; the measurement is not.
                Err(_) if ended => return picture,
                Err(_) => {}
            }
            drawn = Some(Instant::now());
            if !ended {
                std::thread::sleep(PACE / 2);
            }
        }
        if ended {
            return picture;
        }
    }
}

/// Whether the terminal was closed: it is none any more. Crossterm would read it for ever, as it takes the end of its input for a reason
/// to read again.
fn is_gone() -> bool {
    !io::stdin().is_terminal()
}

/// What a key does.
enum Action {
    Pause,
    Unit,
    Wish(Wish),
}

fn action(key: KeyEvent) -> Option<Action> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Action::Wish(Wish::Quit)),
        KeyCode::Char('q') | KeyCode::Esc => Some(Action::Wish(Wish::Quit)),
        KeyCode::Char('r') => Some(Action::Wish(Wish::Restart)),
        KeyCode::Char('p' | ' ') => Some(Action::Pause),
        KeyCode::Char('u') => Some(Action::Unit),
        _ => None,
    }
}

/// A picture as text, without the blanks at the ends of its lines and below the last one.
pub(crate) fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    let mut lines: Vec<String> = (0..area.height).map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
