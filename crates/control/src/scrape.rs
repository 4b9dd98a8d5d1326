//! OpenMetrics text over HTTP, for Prometheus and others that scrape.
//!
//! A source makes the text for each request. Anyone who reaches the port may read it.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::ControlError;

/// The most connections at once; further ones are closed.
const MOST_CONNECTIONS: usize = 8;
/// Largest head of a request, bytes.
const MOST_REQUEST: usize = 4_096;
/// Time to send a request, and to take the answer.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes the text.
pub type Source = Arc<dyn Fn() -> String + Send + Sync>;

/// Gauges of one name, each with its labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    /// The name, with its unit at the end.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// The values with their labels.
    pub values: Vec<(Vec<(&'static str, String)>, f64)>,
}

/// The text of gauges; empty in a build without the feature `metrics`.
#[must_use]
pub fn text(gauges: Vec<Gauges>) -> String {
    #[cfg(feature = "metrics")]
    return encoded(gauges);
    #[cfg(not(feature = "metrics"))]
    {
        drop(gauges);
        String::new()
    }
}

#[cfg(feature = "metrics")]
fn encoded(gauges: Vec<Gauges>) -> String {
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(All(gauges)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

#[cfg(feature = "metrics")]
#[derive(Debug)]
struct All(Vec<Gauges>);

#[cfg(feature = "metrics")]
impl prometheus_client::collector::Collector for All {
    fn encode(&self, mut to: prometheus_client::encoding::DescriptorEncoder<'_>) -> std::fmt::Result {
        use prometheus_client::encoding::EncodeMetric;
        use prometheus_client::metrics::{MetricType, gauge::ConstGauge};
        for Gauges { name, help, values } in &self.0 {
            let mut of = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
            if let [(labels, value)] = &values[..]
                && labels.is_empty()
            {
                ConstGauge::new(*value).encode(of)?;
                continue;
            }
            for (labels, value) in values {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                ConstGauge::new(*value).encode(of.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Answers requests at an address from a thread of its own, until the process ends. Returns the address with its port.
///
/// # Errors
/// The address cannot be listened on.
pub fn spawn(address: SocketAddr, source: Source) -> Result<SocketAddr, ControlError> {
    let failed = |source| ControlError::io(format!("listen for metrics on {address}"), source);
    let listener = StdListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let listener = {
        let _within = runtime.enter();
        TcpListener::from_std(listener).map_err(failed)?
    };
    let serve = move || runtime.block_on(serve(source, listener));
    std::thread::Builder::new().name("metrics".into()).spawn(serve).map_err(failed)?;
    Ok(bound)
}

/// Answers requests until the caller drops the future.
pub(crate) async fn serve(source: Source, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely out of file descriptors: wait until some are closed.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Ok(place) = places.clone().try_acquire_owned() {
            let source = source.clone();
            tokio::spawn(async move {
                answer(&source, stream).await;
                drop(place);
            });
        }
    }
}

/// Reads one request and answers it.
async fn answer(source: &Source, mut stream: TcpStream) {
    let response = match timeout(LIMIT, request(&mut stream)).await {
        Ok(Some(head)) => response(&head, || source()),
        _ => return,
    };
    let _ = timeout(LIMIT, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

/// The head of a request; `None` if it is too long or ends early.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1_024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&buffer[..read]);
        if head.len() > MOST_REQUEST {
            return None;
        }
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// The answer to a request: the metrics, or why there are none.
fn response(head: &str, metrics: impl FnOnce() -> String) -> String {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics())
        }
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", "text/plain", "only GET and HEAD\n".to_owned()),
    };
    let length = body.len();
    let shown = if method == "HEAD" { "" } else { &body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n{shown}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_metrics_are_served() {
        let of = |head: &str| response(head, || "a 1\n".to_owned());
        let got = of("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\na 1\n"), "{got}");
        let head = of("HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(of("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(of("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(of("\u{0}").starts_with("HTTP/1.1 405 "));
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn gauges_have_their_labels_and_each_family_once() {
        let labels = |from: &str| vec![("from", from.to_owned())];
        let text = text(vec![
            Gauges { name: "a_seconds", help: "An age", values: vec![(Vec::new(), 1.5)] },
            Gauges { name: "b", help: "Pairs", values: vec![(labels("x\"y"), 2.0), (labels("z"), 3.0)] },
        ]);
        assert!(text.contains("a_seconds 1.5\n") && text.contains("b{from=\"x\\\"y\"} 2.0\n"), "{text}");
        assert_eq!(text.matches("# TYPE b gauge").count(), 1);
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
