//! What runs have measured, as a stream of JetStream.
//!
//! A record that is longer than a message may be goes as several messages. A record of the same writer with a number that is there
//! already is dropped by the server, as long as it remembers it: so what is not known to have arrived is sent again. A writer is a
//! connection to the bus: one that has died in the middle of a record takes nothing from those after it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::stream::{self, Stream};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::{Bus, SUBJECTS};
use crate::{BusError, BusProblem};

/// The stream's name.
const STREAM: &str = "THRU_RUNS";
/// Runs that are older are forgotten.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// How long the server remembers the numbers of records.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Most bytes of a record in a message: a server takes 1 MiB unless it is told otherwise.
const PART: usize = 128 << 10;
/// Most bytes that are sent and not acknowledged.
const UNDER_WAY: usize = 2 * PART;
/// Most messages that the server sends before it is asked for more.
const ASKED_FOR: i64 = 16;
/// Time limit for an acknowledgement, beside the loss of the connection.
const ACK_LIMIT: Duration = Duration::from_secs(10);
/// In a message's header: whether the record goes on in the next one.
const MORE: &str = "Thru-More";
/// In a message's header: the number of its record.
const RECORD: &str = "Thru-Record";
/// In a message's header: who wrote it.
const WRITER: &str = "Thru-Writer";
/// Time limit for a record that is read.
const READ_LIMIT: Duration = Duration::from_secs(10);

impl Bus {
    /// Appends records, each with its number among those of this connection, to those of a run. They are on the bus when this returns.
    /// Few bytes are under way at a time.
    ///
    /// # Errors
    /// The bus does not answer, or has no room. Some of them may be there; all may be sent again.
    pub async fn append(&self, run: &str, records: &[(u64, Vec<u8>)]) -> Result<(), BusError> {
        self.0.kept.get_or_try_init(async || self.runs().await.map(|_| ())).await?;
        let mut connections = self.0.connections.clone();
        connections.mark_unchanged();
        let append = self.append_parts(run, records);
        tokio::select! {
            appended = append => appended,
            // What was under way is lost, or its acknowledgement is.
            _ = connections.changed() => Err(self.failed("keep a run", BusProblem::Lost)),
        }
    }

    async fn append_parts(&self, run: &str, records: &[(u64, Vec<u8>)]) -> Result<(), BusError> {
        let writer = &self.0.client_number;
        let mut jetstream = self.0.jetstream.clone();
        jetstream.set_timeout(ACK_LIMIT);
        let failed = |error: jetstream::context::PublishError| self.failed("keep a run", BusProblem::refused(error));
        let (mut sent, mut under_way) = (VecDeque::<(PublishAckFuture, usize)>::new(), 0);
        for (record, bytes) in records {
            let parts: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(PART).collect() };
            for (part, bytes) in parts.iter().enumerate() {
                let mut headers = HeaderMap::new();
                headers.insert(NATS_MESSAGE_ID, format!("{run}.{writer}.{record}.{part}"));
                headers.insert(RECORD, record.to_string());
                headers.insert(WRITER, writer.as_str());
                if part + 1 < parts.len() {
                    headers.insert(MORE, "1");
                }
                while under_way + bytes.len() > UNDER_WAY
                    && let Some((acknowledged, bytes)) = sent.pop_front()
                {
                    acknowledged.await.map_err(failed)?;
                    under_way -= bytes;
                }
                let subject = format!("{SUBJECTS}.runs.{run}");
                let publish = jetstream.publish_with_headers(subject, headers, Bytes::copy_from_slice(bytes));
                sent.push_back((self.0.outbox.in_turn(publish).await.map_err(failed)?, bytes.len()));
                under_way += bytes.len();
            }
        }
        for (acknowledged, _) in sent {
            acknowledged.await.map_err(failed)?;
        }
        Ok(())
    }

    /// The records of a run: those of one connection by their numbers, and before those of connections that came later. One that was
    /// sent twice is the first of them.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn records(&self, run: &str) -> Result<Vec<Bytes>, BusError> {
        let failed = |what: BusProblem| self.failed("read a run", what);
        let stream = self.runs().await?;
        let config = OrderedConfig {
            filter_subject: format!("{SUBJECTS}.runs.{run}"),
            deliver_policy: DeliverPolicy::All,
            max_batch: ASKED_FOR,
            ..OrderedConfig::default()
        };
        let mut consumer = stream.create_consumer(config).await.map_err(|error| failed(BusProblem::refused(error)))?;
        let mut waiting = consumer.info().await.map_err(|error| failed(BusProblem::refused(error)))?.num_pending;
        let mut messages = consumer.messages().await.map_err(|error| failed(BusProblem::refused(error)))?;
        let mut records = Records::default();
        while waiting > 0 {
            let message = tokio::time::timeout(READ_LIMIT, messages.next()).await;
            let Ok(Some(message)) = message else { return Err(failed(BusProblem::Silent)) };
            let message = message.map_err(|error| failed(BusProblem::refused(error)))?;
            waiting -= 1;
            let header = |name: &str| message.headers.as_ref()?.get(name).map(ToString::to_string);
            let number = header(RECORD).and_then(|number| number.parse().ok());
            let writer = header(WRITER).unwrap_or_default();
            records.part((writer, number.unwrap_or_default()), &message.payload, header(MORE).is_some());
        }
        Ok(records.whole.into_values().collect())
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
        stream.map_err(|error| self.failed("keep runs", BusProblem::refused(error)))
    }
}

/// Records that are put together of their parts.
#[derive(Default)]
struct Records {
    /// By the writer's place among the writers, and the number.
    whole: BTreeMap<(usize, u64), Bytes>,
    /// The place of each writer, and the parts so far of the record that it is at.
    writers: HashMap<String, (usize, u64, BytesMut)>,
}

impl Records {
    /// Takes the next part of a record of a writer.
    fn part(&mut self, (writer, number): (String, u64), bytes: &[u8], more: bool) {
        let place = self.writers.len();
        let (place, at, begun) = self.writers.entry(writer).or_insert_with(|| (place, number, BytesMut::new()));
        if *at != number {
            // The one before was never completed.
            (*at, *begun) = (number, BytesMut::new());
        }
        begun.extend_from_slice(bytes);
        if !more {
            let record = begun.split().freeze();
            self.whole.entry((*place, number)).or_insert(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_not_completed_takes_nothing_from_others() {
        let mut records = Records::default();
        let mut part = |writer: &str, number, bytes: &str, more| {
            records.part((writer.into(), number), bytes.as_bytes(), more);
        };
        part("a", 0, "0", false);
        part("a", 1, "half of ", true);
        // Its writer died there; another one goes on with the same number.
        part("b", 1, "1", false);
        part("b", 2, "2", true);
        part("b", 2, "2", false);
        part("b", 2, "22", false);
        part("b", 4, "4", false);
        // Sent again after those behind it.
        part("b", 3, "3", false);
        let whole: Vec<Bytes> = records.whole.into_values().collect();
        assert_eq!(whole, ["0", "1", "22", "3", "4"].map(Bytes::from));
    }
}
