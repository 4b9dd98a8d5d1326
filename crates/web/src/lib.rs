//! The page of `thru web`: runs of the store, runs that this user's commands conduct now, and new tests.
//!
//! Its script is that of the HTML report (`web/`), so that both show the same figures. The server has no state of its own but what
//! runs tell it while they are conducted ([`session::run::followers`]); all else is in the store. A test that is started from the page
//! is a process of this program with the same options as on the command line.
//!
//! Who has the token may do what this user may do with `thru`. See `access.rs` for what keeps others out.

mod access;
mod agents;
mod answer;
mod connections;
mod forms;
mod live;
mod pages;
mod runs;
mod tests_run;

use std::future::IntoFuture as _;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use command::signals::CaughtSignals;
use command::{Failure, setup};
use text::Spelling;

pub use self::access::PageToken;
use self::connections::{Bounded, Connection};
pub use self::forms::{Field, Form};
use self::live::Hub;
use self::tests_run::Tests;

/// What the page needs to know of the program.
#[derive(Debug)]
pub struct PageOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The database of runs; `None` is the default one.
    pub store: Option<PathBuf>,
    /// File with the agents' token, for tests that are started from the page.
    pub token_file: Option<PathBuf>,
    /// How texts spell options and rates.
    pub spelling: Spelling,
    /// The commands that the page may start.
    pub forms: Vec<Form>,
}

/// What all requests share.
struct App {
    options: PageOptions,
    /// The address that the browser uses, as Host and Origin name it.
    address: SocketAddr,
    token: PageToken,
    pages: pages::Cache,
    hub: Arc<Hub>,
    tests: Tests,
}

/// Serves the page until a signal comes. `announce` gets its address, with the token.
///
/// # Errors
/// The address is in use, the store cannot be opened, or the kernel gives no random bits.
pub fn serve(options: PageOptions, announce: impl FnOnce(&str)) -> Result<(), Failure> {
    // Told now, not on the first page.
    drop(setup::open_store(options.store.as_deref())?);
    let listen = options.listen;
    let failed =
        |error: std::io::Error| Failure::host(format!("cannot listen on {listen}: {error}; choose another port"));
    let listener = TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let token =
        PageToken::new().map_err(|error| Failure::other(format!("cannot get random bits from the kernel: {error}")))?;
    let url = format!("http://{address}/#token={}", token.text());
    setup::runtime()?.block_on(async {
        let hub = Hub::start();
        let mut signals = CaughtSignals::catch()?;
        let app = App { address, token, pages: pages::Cache::default(), hub, tests: Tests::default(), options };
        let listener = Bounded::new(tokio::net::TcpListener::from_std(listener).map_err(failed)?);
        announce(&url);
        let service = router(Arc::new(app)).into_make_service_with_connect_info::<Connection>();
        tokio::select! {
            served = axum::serve(listener, service).into_future() => served.map_err(failed),
            // Open streams of events end with the process.
            _ = signals.next() => Ok(()),
        }
    })
}

fn router(app: Arc<App>) -> Router {
    let api = Router::new()
        .route("/runs", get(runs::list))
        .route("/runs/{id}", post(runs::change).delete(runs::delete))
        .route("/page", get(pages::page))
        .route("/look", get(pages::look))
        .route("/live", get(live::events))
        .route("/live/{id}/stop", post(live::stop))
        .route("/forms", get(forms::all))
        .route("/tests", post(tests_run::start))
        .route("/agents", get(agents::list))
        .route("/agent", get(agents::facts))
        .fallback(answer::nothing_there)
        .layer(axum::middleware::from_fn_with_state(app.clone(), access::checked));
    Router::new()
        .nest("/api", api)
        .fallback(get(pages::shell))
        .layer(axum::middleware::from_fn_with_state(app.clone(), access::at_home))
        .layer(axum::middleware::from_fn_with_state(app.clone(), answer::spelled))
        .with_state(app)
}
