//! Posts alerts to a URL, from a thread of its own: the measuring never waits for it.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use command::Failure;
use command::setup::runtime;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use model::AlertEvent;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Time of one attempt.
const LIMIT: Duration = Duration::from_secs(10);
/// Pauses between the attempts.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];
/// Most events that wait; the oldest ones are given up.
const MOST_WAITING: usize = 1_000;
/// How long the end waits for what is under way.
const LAST: Duration = Duration::from_secs(12);

/// Where alerts are posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    uri: Uri,
    host: String,
    port: u16,
    tls: bool,
}

/// A text that is not the URL of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' {fault}: write http://HOST/PATH or https://HOST/PATH")]
pub struct UrlError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub fault: UrlFault,
}

/// What is wrong with the URL of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlFault {
    /// It has not the form of a URL.
    #[error("is not a URL")]
    Form,
    /// Another protocol.
    #[error("is neither http nor https")]
    Scheme,
    /// No host.
    #[error("has no host")]
    NoHost,
    /// A user or a password.
    #[error("has a user and a password, which are not supported")]
    User,
}

/// Reads a URL with http or https.
///
/// # Errors
/// What is wrong with it.
pub fn endpoint(text: &str) -> Result<Endpoint, UrlError> {
    let wrong = |fault| UrlError { text: text.to_owned(), fault };
    let uri: Uri = text.parse().map_err(|_| wrong(UrlFault::Form))?;
    let tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(wrong(UrlFault::Scheme)),
    };
    let authority = uri.authority().ok_or_else(|| wrong(UrlFault::NoHost))?;
    if authority.as_str().contains('@') {
        return Err(wrong(UrlFault::User));
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
    if host.is_empty() { Err(wrong(UrlFault::NoHost)) } else { Ok(Endpoint { uri, host, port, tls }) }
}

/// The thread that posts.
pub struct Webhook {
    events: Option<Sender<AlertEvent>>,
    done: Receiver<()>,
}

impl Webhook {
    /// Starts it. `note` gets a line for each event that is given up.
    pub fn start(endpoint: Endpoint, note: fn(&str)) -> Result<Self, Failure> {
        let tls = if endpoint.tls { Some(authorities()?) } else { None };
        let runtime = runtime()?;
        let (events, received) = channel();
        let (ended, done) = channel();
        let post = move || {
            // The other end is dropped when this returns.
            let _ended = ended;
            while let Some(waiting) = waiting(&received, note) {
                for event in waiting {
                    if let Err(error) = runtime.block_on(deliver(&endpoint, tls.as_ref(), &event)) {
                        note(&format!("the webhook {} did not accept an alert: {error}", endpoint.uri));
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("webhook".into());
        thread.spawn(post).map_err(|error| Failure::other(format!("cannot start: {error}")))?;
        Ok(Self { events: Some(events), done })
    }

    /// Posts an event when the ones before it are posted.
    pub fn post(&self, event: AlertEvent) {
        if let Some(events) = &self.events {
            // The thread lives as long as this end.
            let _ = events.send(event);
        }
    }

    /// Waits for what is under way. Whether it was posted or given up in time.
    pub fn finish(mut self) -> bool {
        self.events = None;
        !matches!(self.done.recv_timeout(LAST), Err(RecvTimeoutError::Timeout))
    }
}

/// The events that wait, at least one; `None` at the end.
fn waiting(received: &Receiver<AlertEvent>, note: fn(&str)) -> Option<VecDeque<AlertEvent>> {
    let mut waiting = VecDeque::from([received.recv().ok()?]);
    waiting.extend(received.try_iter());
    let over = waiting.len().saturating_sub(MOST_WAITING);
    if over > 0 {
        waiting.drain(..over);
        note(&format!("the webhook is too slow: {over} alerts were not posted"));
    }
    Some(waiting)
}

/// Why a post failed.
#[derive(Debug, Error)]
enum DeliveryError {
    #[error(transparent)]
    Event(#[from] serde_json::Error),
    #[error("no answer within {} s", LIMIT.as_secs())]
    Silent,
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error(transparent)]
    Name(#[from] InvalidDnsNameError),
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    #[error("it answered {0}")]
    Refused(StatusCode),
}

impl DeliveryError {
    /// Whether another attempt may succeed.
    fn may_pass(&self) -> bool {
        match self {
            Self::Event(_) | Self::Name(_) | Self::Request(_) => false,
            Self::Silent | Self::Connect(_) | Self::Tls(_) | Self::Exchange(_) => true,
            // A server in trouble may take it later; what it refuses it refuses again.
            Self::Refused(status) => {
                let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
                status.is_server_error() || later.contains(status)
            }
        }
    }
}

async fn deliver(endpoint: &Endpoint, tls: Option<&TlsConnector>, event: &AlertEvent) -> Result<(), DeliveryError> {
    let body = serde_json::to_vec(event)?;
    let mut pauses = PAUSES.into_iter();
    loop {
        let attempt = tokio::time::timeout(LIMIT, post(endpoint, tls, Bytes::from(body.clone()))).await;
        let Err(error) = attempt.unwrap_or(Err(DeliveryError::Silent)) else { return Ok(()) };
        match pauses.next().filter(|_| error.may_pass()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(error),
        }
    }
}

/// One attempt.
async fn post(endpoint: &Endpoint, tls: Option<&TlsConnector>, body: Bytes) -> Result<(), DeliveryError> {
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
    let stream = stream.map_err(DeliveryError::Connect)?;
    match tls {
        None => exchange(endpoint, stream, body).await,
        Some(tls) => {
            let name = ServerName::try_from(endpoint.host.clone())?;
            let stream = tls.connect(name, stream).await;
            exchange(endpoint, stream.map_err(DeliveryError::Tls)?, body).await
        }
    }
}

async fn exchange<S>(endpoint: &Endpoint, stream: S, body: Bytes) -> Result<(), DeliveryError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = endpoint.uri.path_and_query().map_or("/", |path| path.as_str());
    let host = endpoint.uri.authority().map_or("", |authority| authority.as_str());
    let request = Request::post(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("thru/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(body))?;
    let status = sender.send_request(request).await?.status();
    if status.is_success() { Ok(()) } else { Err(DeliveryError::Refused(status)) }
}

/// TLS with the certificate authorities of this host.
fn authorities() -> Result<TlsConnector, Failure> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (known, _) = roots.add_parsable_certificates(found.certs);
    if known == 0 {
        return Err(Failure::host(
            "this host has no certificate authorities to verify an https webhook: install ca-certificates, or set SSL_CERT_FILE",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::other(format!("TLS: {error}")))?;
    Ok(TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn urls_have_a_scheme_a_host_and_no_password() {
        let of = |text: &str| endpoint(text).map(|one| (one.host, one.port, one.tls));
        assert_eq!(of("https://hooks.example/a?b=c"), Ok(("hooks.example".into(), 443, true)));
        assert_eq!(of("http://[::1]:8080/"), Ok(("::1".into(), 8080, false)));
        for wrong in ["hooks.example/a", "ftp://a/", "http://u:p@a/", "http:///a", ""] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_in_trouble_is_tried_again_and_a_refusal_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = ["503 Service Unavailable", "204 No Content", "404 Not Found"];
        let server = std::thread::spawn(move || {
            answers.map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 4_096];
                while !request.windows(2).any(|end| end == b"}\n" || end == b"\"}") {
                    let read = stream.read(&mut buffer).unwrap();
                    request.extend_from_slice(&buffer[..read]);
                }
                write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
                String::from_utf8(request).unwrap()
            })
        });
        let endpoint = endpoint(&format!("http://{address}/hook")).unwrap();
        let event = AlertEvent { event: "raised".into(), text: "a → b".into(), ..AlertEvent::default() };
        let runtime = runtime().unwrap_or_else(|failure| panic!("{failure}"));
        runtime.block_on(deliver(&endpoint, None, &event)).unwrap();
        let refused = runtime.block_on(deliver(&endpoint, None, &event)).unwrap_err();
        assert_eq!(refused.to_string(), "it answered 404 Not Found");
        let requests = server.join().unwrap();
        assert!(requests[0].starts_with("POST /hook HTTP/1.1\r\n"), "{}", requests[0]);
        let body = requests[1].split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(serde_json::from_str::<AlertEvent>(body).unwrap(), event);
    }
}
