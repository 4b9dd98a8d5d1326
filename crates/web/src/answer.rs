//! What a request that fails is answered with: JSON with one text, `error`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use command::Failure;
use serde::Serialize;
use text::{Said, Text};

use crate::App;

/// Why a request fails, for the reader of the page.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Text,
}

/// The answer to a request, or why there is none.
pub(crate) type Answer<T> = Result<T, Refusal>;

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<Text>) -> Self {
        Self { status, error: error.into() }
    }

    pub(crate) fn bad(error: impl Into<Text>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }
}

impl IntoResponse for Refusal {
    /// An answer without a body: [`spelled`] gives it one.
    fn into_response(self) -> Response {
        (self.status, Extension(self)).into_response()
    }
}

/// Puts the text of a refusal into the answer, with options and rates spelled for the reader.
pub(crate) async fn spelled(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match response.extensions().get::<Refusal>() {
        None => response,
        Some(refusal) => {
            let error = &refusal.error.shown(app.options.spelling);
            let mut spelled = (refusal.status, Json(Body { error })).into_response();
            response.headers().iter().for_each(|(name, value)| drop(spelled.headers_mut().insert(name, value.clone())));
            spelled
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::bad(failure.text().clone())
    }
}

impl From<store::StoreError> for Refusal {
    fn from(error: store::StoreError) -> Self {
        let status = match error {
            store::StoreError::Unknown { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.say())
    }
}

pub(crate) async fn nothing_there() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this address")
}

/// Does what waits for files or hosts on a thread of its own.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> Answer<T> + Send + 'static) -> Answer<T> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())))
}
