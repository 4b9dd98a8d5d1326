//! What runs have measured, as a stream of JetStream.
//!
//! A record that is longer than a message may be goes as several messages. A record with a number that is there already is dropped by
//! the server, as long as it remembers it: so what is not known to have arrived is sent again.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::stream::{self, Stream};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::{Bus, SUBJECTS};
use crate::BusError;

/// The stream's name.
const STREAM: &str = "THRU_RUNS";
/// Runs that are older are forgotten.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long the server remembers the numbers of records.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Most bytes of a record in a message: a server takes 1 MiB unless it is told otherwise.
const PART: usize = 512 << 10;
/// In a message's header: whether the record goes on in the next one.
const MORE: &str = "Thru-More";
/// In a message's header: the number of its record.
const RECORD: &str = "Thru-Record";
/// Time limit for a record that is read.
const READ_LIMIT: Duration = Duration::from_secs(10);

impl Bus {
    /// Appends the record with that number to those of a run. It is on the bus when this returns.
    ///
    /// # Errors
    /// The bus does not answer, or has no room.
    pub async fn append(&self, run: &str, record: u64, bytes: &[u8]) -> Result<(), BusError> {
        let failed = |what: String| self.failed("keep a run", what);
        self.runs().await?;
        let parts: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(PART).collect() };
        for (part, bytes) in parts.iter().enumerate() {
            let mut headers = HeaderMap::new();
            headers.insert(NATS_MESSAGE_ID, format!("{run}.{record}.{part}"));
            headers.insert(RECORD, record.to_string());
            if part + 1 < parts.len() {
                headers.insert(MORE, "1");
            }
            let subject = format!("{SUBJECTS}.runs.{run}");
            let payload = Bytes::copy_from_slice(bytes);
            let sent = self.0.jetstream.publish_with_headers(subject, headers, payload).await;
            sent.map_err(|error| failed(error.to_string()))?.await.map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    /// The records of a run, by number. One whose number comes twice is the first of them.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn records(&self, run: &str) -> Result<Vec<Bytes>, BusError> {
        let failed = |what: String| self.failed("read a run", what);
        let stream = self.runs().await?;
        let config = OrderedConfig {
            filter_subject: format!("{SUBJECTS}.runs.{run}"),
            deliver_policy: DeliverPolicy::All,
            ..OrderedConfig::default()
        };
        let mut consumer = stream.create_consumer(config).await.map_err(|error| failed(error.to_string()))?;
        let mut waiting = consumer.info().await.map_err(|error| failed(error.to_string()))?.num_pending;
        let mut messages = consumer.messages().await.map_err(|error| failed(error.to_string()))?;
        let mut records = std::collections::BTreeMap::new();
        let mut begun = BytesMut::new();
        while waiting > 0 {
            let message = tokio::time::timeout(READ_LIMIT, messages.next()).await;
            let Ok(Some(message)) = message else { return Err(failed("it does not answer".into())) };
            let message = message.map_err(|error| failed(error.to_string()))?;
            waiting -= 1;
            let header = |name: &str| message.headers.as_ref()?.get(name).map(ToString::to_string);
            begun.extend_from_slice(&message.payload);
            if header(MORE).is_none() {
                let record = begun.split().freeze();
                if let Some(number) = header(RECORD).and_then(|number| number.parse::<u64>().ok()) {
                    records.entry(number).or_insert(record);
                }
            }
        }
        Ok(records.into_values().collect())
    }

    /// The stream, made if there is none.
    async fn runs(&self) -> Result<Stream, BusError> {
        let config = stream::Config {
            name: STREAM.into(),
            description: Some("what runs of throughline have measured".into()),
            subjects: vec![format!("{SUBJECTS}.runs.*")],
            max_age: KEPT,
            duplicate_window: REMEMBERED,
            ..Default::default()
        };
        let stream = self.0.jetstream.get_or_create_stream(config).await;
        stream.map_err(|error| self.failed("keep runs", error.to_string()))
    }
}
