//! The document with the script, and the data of runs that it shows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use report::{Layout, View};
use session::stored;

use crate::App;
use crate::answer::{Answer, Refusal, aside};

/// The most runs beside each other.
const MOST: usize = 12;
/// A running run is drawn again at most once in this time, and so seldom that drawing takes at most one part in [`SHARE`] of it:
/// the page must not disturb the measurement that it shows.
const AGAIN: Duration = Duration::from_secs(1);
const SHARE: u32 = 50;

/// The last data of running runs.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<String, Drawn>>);

#[derive(Debug, Clone)]
struct Drawn {
    bytes: Arc<[u8]>,
    at: Instant,
    cost: Duration,
}

impl Cache {
    fn of(&self, id: &str) -> Option<Arc<[u8]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = known.get(id)?;
        (drawn.at.elapsed() < AGAIN.max(drawn.cost * SHARE)).then(|| drawn.bytes.clone())
    }

    fn keep(&self, id: &str, drawn: Drawn) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is old belongs to runs that nobody looks at now.
        known.retain(|_, other| other.at.elapsed() < 60 * AGAIN);
        known.insert(id.to_owned(), drawn);
    }
}

pub(crate) async fn shell() -> Response {
    let (document, policy) = report::page_shell("Throughline");
    let policy = format!("{policy}; frame-ancestors 'none'");
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(document)).into_response()
}

/// The colours of figures that the script makes itself.
pub(crate) async fn look() -> Response {
    Json(report::page_look()).into_response()
}

/// The data of `run=ID&run=ID...`.
pub(crate) async fn page(State(app): State<Arc<App>>, Query(wanted): Query<Vec<(String, String)>>) -> Answer<Response> {
    let ids: Vec<String> = wanted.into_iter().filter(|(key, _)| key == "run").map(|(_, id)| id).collect();
    if ids.is_empty() || ids.len() > MOST {
        return Err(Refusal::bad(format!("a page shows one to {MOST} runs")));
    }
    let running = app.hub.store_of(&ids[0]).filter(|_| ids.len() == 1);
    let bytes = match running.is_some().then(|| app.pages.of(&ids[0])).flatten() {
        Some(bytes) => bytes,
        None => {
            aside(move || {
                let began = Instant::now();
                let store = running.as_deref().or(app.options.store.as_deref());
                let load = |id: &String| stored::load(id, store, |_| {});
                let runs = ids.iter().map(load).collect::<Result<Vec<_>, _>>()?;
                let layout = Layout { spelling: app.options.spelling, ..Layout::default() };
                let view = View { layout, ..View::new(&runs) };
                let bytes = report::page_data(&view).map_err(|error| Refusal::bad(error.to_string()))?;
                let drawn = Drawn { bytes: bytes.into(), at: Instant::now(), cost: began.elapsed() };
                let bytes = drawn.bytes.clone();
                if running.is_some() {
                    app.pages.keep(&ids[0], drawn);
                }
                Ok(bytes)
            })
            .await?
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes.to_vec()).into_response())
}
