//! Who may use the page.
//!
//! Other users of the machine can connect to a port of loopback, and any site that the reader visits can make the browser send
//! requests there. So every request for data has the token, which is in the address that the program printed, behind `#`, and which
//! the script keeps in the storage of its origin: no cookie, which a browser would also send to other ports. The Host must be the
//! address that is listened on, so that a name that an attacker lets point to it (DNS rebinding) is refused. What changes something
//! must come from a page of this origin.

use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use crate::App;
use crate::answer::Refusal;
use crate::connections::Connection;

/// The secret of this process's page: 192 random bits.
#[derive(Debug)]
pub struct PageToken(String);

impl PageToken {
    /// A new one.
    ///
    /// # Errors
    /// The kernel gives no random bits.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether the request has it.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(self.0.as_bytes())))
    }
}

/// Refuses requests to another name than that of this address, and tells the browser what the answers are for.
pub(crate) async fn at_home(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    // A program in between may have read the second one (RFC 9112, 3.2).
    if hosts.next().is_some() {
        return Refusal::bad("the request has two Host headers").into_response();
    }
    if !is_own(&app, host) {
        let error = format!("this page is at http://{}: open it by that address", app.address);
        return Refusal::new(StatusCode::MISDIRECTED_REQUEST, error).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, axum::http::HeaderValue::from_static(value));
    }
    response
}

/// Refuses requests without the token, and changes from pages of others.
pub(crate) async fn checked(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if !app.token.is_in(request.headers()) {
        return Refusal::new(
            StatusCode::UNAUTHORIZED,
            "this page needs the token: open the address that `thru web` printed",
        )
        .into_response();
    }
    if let Some(connection) = request.extensions().get::<ConnectInfo<Connection>>() {
        connection.0.has_token();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let origin =
            request.headers().get(header::ORIGIN).and_then(|origin| origin.to_str().ok()?.strip_prefix("http://"));
        if !origin.is_some_and(|origin| is_own(&app, origin)) {
            return Refusal::new(StatusCode::FORBIDDEN, "only the page itself may make changes").into_response();
        }
    }
    next.run(request).await
}

/// Whether it names the address that is listened on: as it is, as localhost, or with any address where it listens on all.
fn is_own(app: &App, host: &str) -> bool {
    let address = app.address;
    if address.ip().is_unspecified() {
        return host.parse().is_ok_and(|host: std::net::SocketAddr| host.port() == address.port());
    }
    // A browser leaves out the port of http.
    let is = |name: String| host == name || (address.port() == 80 && name.strip_suffix(":80") == Some(host));
    is(address.to_string()) || (address.ip().is_loopback() && is(format!("localhost:{}", address.port())))
}
