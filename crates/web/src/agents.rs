//! The agents that this user measures with: whether they answer, and what they are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Query, State};
use command::agent_keys::KnownAgents;
use command::setup::open_store;
use model::Family;
use serde::{Deserialize, Serialize};
use session::facts::{self, HostFacts};

use crate::App;
use crate::answer::{Answer, Refusal, aside};

/// How many runs are looked through for hosts.
const LATEST: usize = 500;

/// The names of hosts.
#[derive(Debug, Serialize)]
pub(crate) struct Names {
    hosts: BTreeSet<String>,
}

pub(crate) async fn list(State(app): State<Arc<App>>) -> Answer<Json<Names>> {
    aside(move || {
        let mut hosts = open_store(app.options.store.as_deref())?.hosts(LATEST)?;
        hosts.extend(KnownAgents::of_user().list().unwrap_or_default().into_iter().map(|agent| agent.name));
        Ok(Json(Names { hosts }))
    })
    .await
}

/// Two hosts; without a name it is this one.
#[derive(Debug, Deserialize)]
pub(crate) struct Pair {
    a: Option<String>,
    b: Option<String>,
}

/// What two hosts are.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    names: [String; 2],
    /// How long it took to reach each and to get its inventory, ms; null for this host.
    took_ms: [Option<u64>; 2],
    facts: Vec<report::Fact>,
}

pub(crate) async fn facts(State(app): State<Arc<App>>, Query(pair): Query<Pair>) -> Answer<Json<Facts>> {
    aside(move || {
        let (a, a_ms) = reached(&app, pair.a.as_deref())?;
        let (b, b_ms) = reached(&app, pair.b.as_deref())?;
        let facts = report::facts_of(&a.inventory, &b.inventory);
        Ok(Json(Facts { names: [a.name, b.name], took_ms: [a_ms, b_ms], facts }))
    })
    .await
}

fn reached(app: &App, host: Option<&str>) -> Answer<(HostFacts, Option<u64>)> {
    let Some(host) = host.filter(|host| !host.is_empty()) else { return Ok((facts::here(), None)) };
    let host = command::values::host(host).map_err(|error| Refusal::bad(error.to_string()))?;
    let began = Instant::now();
    let mut reported = facts::elsewhere(&[host], Family::Any, app.options.token_file.as_deref(), |_| {})?;
    let took = u64::try_from(began.elapsed().as_millis()).ok();
    reported.pop().map(|facts| (facts, took)).ok_or_else(|| Refusal::bad("the host did not answer"))
}
