//! The runs of the store: finding, starring, tagging and deleting them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use command::setup::open_store;
use model::{RunKind, Trust};
use serde::{Deserialize, Serialize};
use store::{RunOrder, RunSearch};

use crate::App;
use crate::answer::{Answer, Refusal, aside};

/// Runs of one answer.
const AT_ONCE: usize = 100;
/// The most tags of a run, and their greatest length.
const MOST_TAGS: (usize, usize) = (20, 60);
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    search: String,
    #[serde(default)]
    starred: bool,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    rising: bool,
    /// Runs before those that are wanted.
    #[serde(default)]
    skipped: usize,
}

/// The column that the list is sorted by.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Order {
    #[default]
    Begun,
    Run,
    Target,
    Result,
    Trust,
}

/// A run as the page lists it.
#[derive(Debug, Serialize)]
struct Listed {
    id: String,
    name: Option<String>,
    kind: String,
    target: Option<String>,
    transport: String,
    started_unix_ns: u64,
    /// What distinguishes it from the others of the list.
    measured: String,
    /// The result in a few words.
    result: String,
    trust: Option<Trust>,
    /// `finished`, `interrupted`, `failed`, or null.
    ending: Option<String>,
    /// Whether it is conducted now.
    running: bool,
    starred: bool,
    tags: Vec<String>,
}

/// Some of the runs that a search finds, and how many it finds.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    runs: Vec<Listed>,
    all: usize,
}

pub(crate) async fn list(State(app): State<Arc<App>>, Query(wanted): Query<Wanted>) -> Answer<Json<Found>> {
    let words = wanted.search.split_whitespace().map(str::to_owned).collect();
    let order = match wanted.order {
        Order::Begun => RunOrder::Arrival,
        Order::Run => RunOrder::Name,
        Order::Target => RunOrder::Target,
        Order::Result => RunOrder::Value,
        Order::Trust => RunOrder::Trust,
    };
    let search = RunSearch { words, starred: wanted.starred, order, rising: wanted.rising };
    aside(move || {
        let (rows, all) = open_store(app.options.store.as_deref())?.page(&search, wanted.skipped, AT_ONCE)?;
        let alike = rows.iter().map(|row| ((row.kind, row.transport.as_str()), row.spec.as_ref()));
        let measured = analysis::compare::distinguishing(alike);
        let runs = rows.into_iter().zip(measured).map(|(row, measured)| listed(&app, row, &measured)).collect();
        Ok(Json(Found { runs, all }))
    })
    .await
}

fn listed(app: &App, row: store::RunRow, measured: &str) -> Listed {
    let summary = row.summary.unwrap_or_default();
    Listed {
        result: summary.headline.shown(app.options.spelling),
        measured: measured.to_owned(),
        running: app.hub.has(&row.id),
        id: row.id,
        name: row.name,
        kind: row.kind.map_or("unknown", RunKind::name).to_owned(),
        target: row.target,
        transport: row.transport,
        started_unix_ns: row.started_unix_ns,
        trust: summary.trust,
        ending: row.ending,
        starred: row.starred,
        tags: row.tags,
    }
}

/// What to change of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    starred: Option<bool>,
    tags: Option<Vec<String>>,
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(change): Json<Change>,
) -> Answer<Json<()>> {
    let (most, longest) = MOST_TAGS;
    let tags = change.tags.map(|tags| tags.iter().map(|tag| tag.trim().to_owned()).collect::<Vec<_>>());
    let too_long = |tag: &String| tag.is_empty() || tag.chars().count() > longest;
    if tags.iter().any(|tags| tags.len() > most || tags.iter().any(too_long)) {
        return Err(Refusal::bad(format!("a run has at most {most} tags of at most {longest} characters")));
    }
    aside(move || {
        let store = open_store(app.options.store.as_deref())?;
        if let Some(starred) = change.starred {
            store.star(&id, starred)?;
        }
        if let Some(tags) = tags {
            store.tag(&id, &tags)?;
        }
        Ok(Json(()))
    })
    .await
}

pub(crate) async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>) -> Answer<Json<()>> {
    if app.hub.has(&id) {
        return Err(Refusal::bad("the run is not finished: stop it first"));
    }
    aside(move || {
        open_store(app.options.store.as_deref())?.delete(&id)?;
        Ok(Json(()))
    })
    .await
}
