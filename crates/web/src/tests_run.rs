//! Tests that the page starts: processes of this program with the options of a form.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use command::config::UNTIL_INPUT_ENDS;
use command::setup::own_program;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};

use crate::App;
use crate::answer::{Answer, Refusal};
use crate::forms::{self, Filled};

/// How long the page waits until a test that was started has a run or has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lines of a test's messages that are kept.
const LINES: usize = 8;

/// The test that this page started, while its process lives.
#[derive(Debug, Default)]
pub(crate) struct Tests(Arc<Mutex<Option<u32>>>);

/// What became of a test in its first seconds.
#[derive(Debug, Serialize)]
pub(crate) struct Started {
    /// The run, once it has begun.
    run: Option<String>,
}

pub(crate) async fn start(State(app): State<Arc<App>>, Json(filled): Json<Filled>) -> Answer<Json<Started>> {
    let words = forms::words(&app.options.forms, &filled).map_err(|error| Refusal::bad(error.to_string()))?;
    let mut child = app.tests.spawn(&app, &words)?;
    let process = child.id();
    let messages = child.stderr.take().map(last_lines);
    let of_page = app.tests.0.clone();
    // Its end would end the process.
    let input = child.stdin.take();
    let mut ended = tokio::spawn(async move {
        let ended = child.wait().await;
        drop(input);
        *of_page.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let lines = match messages {
            Some(lines) => lines.await.unwrap_or_default(),
            None => String::new(),
        };
        (ended.ok().and_then(|status| status.code()), lines)
    });
    let started = |run| Ok(Json(Started { run }));
    tokio::select! {
        run = app.hub.run_of(process) => started(Some(run)),
        ended = &mut ended => match ended {
            // It was over before this task looked.
            Ok((Some(0 | 8), _)) => started(app.hub.last_run_of(process)),
            Ok((_, lines)) if !lines.is_empty() => Err(Refusal::bad(lines)),
            _ => Err(Refusal::bad("the test ended without a message")),
        },
        () = tokio::time::sleep(PATIENCE) => started(None),
    }
}

impl Tests {
    /// Starts one, if none runs: two at once would measure each other.
    fn spawn(&self, app: &App, words: &[String]) -> Answer<Child> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Err(Refusal::new(StatusCode::CONFLICT, "a test of this page runs: stop it first, or wait"));
        }
        let mut command = Command::new(own_program()?);
        // It ends with this process, whose end closes its standard input.
        command.arg0("thru").arg(UNTIL_INPUT_ENDS).args(words);
        if let Some(store) = &app.options.store {
            command.env("THRU_STORE", store);
        }
        if let Some(token) = &app.options.token_file {
            command.env("THRU_TOKEN_FILE", token);
        }
        // Ctrl-C in the terminal of the page is for the page, which ends it in order.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(|error| Refusal::bad(format!("cannot start a test: {error}")))?;
        *running = child.id();
        Ok(child)
    }
}

/// Reads messages all the time, so that the process does not block on a full pipe; its end gives the last ones.
fn last_lines(errors: ChildStderr) -> tokio::task::JoinHandle<String> {
    tokio::spawn(async move {
        let (mut lines, mut kept) = (BufReader::new(errors).lines(), VecDeque::new());
        while let Ok(Some(line)) = lines.next_line().await {
            // The others are about its progress.
            let Some(line) = line.strip_prefix("thru: ") else { continue };
            if kept.len() == LINES {
                kept.pop_front();
            }
            kept.push_back(line.to_owned());
        }
        Vec::from(kept).join("\n")
    })
}
