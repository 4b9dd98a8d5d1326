//! Metrics over HTTP, for Prometheus and others that scrape: as OpenMetrics text for those that accept it, else as the text of Prometheus.
//!
//! A source makes the text for each request. Anyone who reaches the port may read it.

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::ControlError;

/// The most connections at once; further ones are closed.
const MOST_CONNECTIONS: usize = 8;
/// Largest head of a request, bytes: the least that hyper takes.
const MOST_REQUEST: usize = 8_192;
/// Time to send a request, and to take the answer.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

const OPEN_METRICS: &str = "application/openmetrics-text";

/// Makes the OpenMetrics text.
pub type MetricsSource = Arc<dyn Fn() -> String + Send + Sync>;

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
pub fn spawn(address: SocketAddr, source: MetricsSource) -> Result<SocketAddr, ControlError> {
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
pub(crate) async fn serve(source: MetricsSource, listener: TcpListener) {
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

/// Answers one request.
async fn answer(source: &MetricsSource, stream: TcpStream) {
    let service = service_fn(async |request| Ok::<_, Infallible>(response(&request, || source())));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LIMIT).max_buf_size(MOST_REQUEST).keep_alive(false);
    let _ = timeout(2 * LIMIT, http.serve_connection(TokioIo::new(stream), service)).await;
}

/// The answer to a request: the metrics, or why there are none.
fn response<B>(request: &Request<B>, metrics: impl FnOnce() -> String) -> Response<String> {
    let read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, kind, body) = match request.uri().path() {
        "/metrics" if read => {
            let accepted = request.headers().get_all(ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
            if accepted.into_iter().any(|kinds| kinds.contains(OPEN_METRICS)) {
                (StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics())
            } else {
                (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", as_prometheus(&metrics()))
            }
        }
        _ if read => (StatusCode::NOT_FOUND, "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET and HEAD are supported\n".to_owned()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// Converts OpenMetrics text to the older text format of Prometheus. There a family has the same name as its samples, the type `info` does
/// not exist, and the text has no end mark.
fn as_prometheus(text: &str) -> String {
    let kind_of = |family: &str| {
        let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        kinds.into_iter().find(|(name, _)| *name == family).map(|(_, kind)| kind)
    };
    let line = |line| -> Option<Cow<'_, str>> {
        let Some(said) = str::strip_prefix(line, "# ") else { return Some(line.into()) };
        let (what, rest) = said.split_once(' ').filter(|(what, _)| matches!(*what, "HELP" | "TYPE"))?;
        let (family, rest) = rest.split_once(' ')?;
        let suffix = match kind_of(family) {
            Some("counter") => "_total",
            Some("info") => "_info",
            _ => return Some(line.into()),
        };
        let rest = if what == "TYPE" && rest == "info" { "gauge" } else { rest };
        Some(format!("# {what} {family}{suffix} {rest}").into())
    };
    text.lines().filter_map(line).flat_map(|line| [line, "\n".into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(method: Method, path: &str, accept: &str) -> Response<String> {
        let request = Request::builder().method(method).uri(path).header(ACCEPT, accept).body(()).unwrap();
        response(&request, || "# HELP a Things.\n# TYPE a counter\na_total 1\n# EOF\n".to_owned())
    }

    #[test]
    fn only_the_metrics_are_served() {
        assert_eq!(answered(Method::GET, "/metrics?x=1", "").status(), StatusCode::OK);
        assert_eq!(answered(Method::GET, "/", "").status(), StatusCode::NOT_FOUND);
        let refused = answered(Method::POST, "/metrics", "");
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers()[ALLOW], "GET, HEAD");
    }

    #[test]
    fn the_format_is_one_that_the_client_accepts() {
        let open = answered(Method::GET, "/metrics", "text/plain;q=0.5, application/openmetrics-text;version=1.0.0");
        assert!(open.headers()[CONTENT_TYPE].to_str().unwrap().starts_with(OPEN_METRICS));
        assert!(open.body().ends_with("# EOF\n"));
        let plain = answered(Method::GET, "/metrics", "*/*");
        assert_eq!(plain.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
        assert_eq!(plain.body(), "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n");
    }

    #[test]
    fn prometheus_has_no_info_and_no_units() {
        let text = "# HELP b Version.\n# TYPE b info\nb_info{v=\"1\"} 1\n# HELP c_seconds Age.\n# TYPE c_seconds gauge\n# UNIT c_seconds seconds\nc_seconds 2.0\n# EOF\n";
        assert_eq!(
            as_prometheus(text),
            "# HELP b_info Version.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n# HELP c_seconds Age.\n# TYPE c_seconds gauge\nc_seconds 2.0\n"
        );
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
