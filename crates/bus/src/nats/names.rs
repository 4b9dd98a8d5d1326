//! The names of agents: the key-value bucket `thru-agents`, as `nats kv` shows it.
//!
//! A bucket is a stream that keeps the newest message of each subject (NATS ADR-8). A key's revision is the number of its message in
//! the stream. This is the part of it that leases need; all of it would bring a library of regular expressions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, Stream};
use bytes::Bytes;
use futures_util::StreamExt;

use super::CONNECT_LIMIT;
use crate::BusProblem;

/// The bucket.
const BUCKET: &str = "thru-agents";
/// In a message's header: what became of the key, if it is not a value.
const OPERATION: &str = "KV-Operation";
/// A key that was given back.
const DELETED: &str = "DEL";

/// A message that is not answered for so long is sent again, and waits twice as long each time.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// Names that are asked for at once.
const BATCH: usize = 1000;
/// Time before a message is sent again.
pub(super) const REPEAT_AFTER: Duration = Duration::from_millis(50);

/// The names on a bus, each with a value that its holder wrote.
#[derive(Clone)]
pub(super) struct Names {
    jetstream: jetstream::Context,
    stream: Stream,
}

/// What a name has.
pub(super) struct Value {
    /// The number of its newest message.
    pub(super) revision: u64,
    /// `None` if the name was given back.
    pub(super) bytes: Option<Bytes>,
}

/// Why a value was not written.
pub(super) enum NotWritten {
    /// The name has another revision.
    Revision,
    /// The bus does not answer, or refuses.
    Failed(BusProblem),
}

impl Names {
    /// The bucket, made if there is none; a name that is not written again for `lease` is free.
    pub(super) async fn open(jetstream: &jetstream::Context, lease: Duration) -> Result<Self, BusProblem> {
        let config = stream::Config {
            name: format!("KV_{BUCKET}"),
            description: Some("names of throughline's agents".into()),
            subjects: vec![subject(">")],
            max_messages_per_subject: 1,
            max_age: lease,
            discard: stream::DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..Default::default()
        };
        let stream = jetstream.get_or_create_stream(config).await.map_err(BusProblem::refused)?;
        Ok(Self { jetstream: jetstream.clone(), stream })
    }

    /// Takes a name that nobody has, and tells its revision.
    pub(super) async fn create(&self, name: &str, bytes: Bytes) -> Result<u64, NotWritten> {
        match self.write(name, HeaderMap::new(), bytes.clone(), 0).await {
            Err(NotWritten::Revision) => {}
            done => return done,
        }
        // A name that was given back has a revision until it is forgotten.
        match self.get(name).await.map_err(NotWritten::Failed)? {
            Some(Value { revision, bytes: None }) => self.write(name, HeaderMap::new(), bytes, revision).await,
            _ => Err(NotWritten::Revision),
        }
    }

    /// Replaces the value of that revision, and tells the new one.
    pub(super) async fn update(&self, name: &str, bytes: Bytes, revision: u64) -> Result<u64, NotWritten> {
        self.write(name, HeaderMap::new(), bytes, revision).await
    }

    /// Gives a name of that revision back.
    pub(super) async fn delete(&self, name: &str, revision: u64) -> Result<u64, NotWritten> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, DELETED);
        self.write(name, headers, Bytes::new(), revision).await
    }

    /// Writes until the bus answers. It tells of a bucket before it takes messages for it, so that the first ones are refused or lost.
    async fn write(&self, name: &str, headers: HeaderMap, bytes: Bytes, replaced: u64) -> Result<u64, NotWritten> {
        let mut headers = headers;
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, replaced.to_string());
        let give_up = Instant::now() + CONNECT_LIMIT;
        let (mut is_first, mut limit) = (true, ANSWER_LIMIT);
        loop {
            let publish = self.jetstream.publish_with_headers(subject(name), headers.clone(), bytes.clone());
            let written = tokio::time::timeout(limit, async { publish.await?.await }).await;
            let failed = match written {
                Ok(Ok(written)) => return Ok(written.sequence),
                Ok(Err(error)) => match error.kind() {
                    PublishErrorKind::WrongLastSequence if is_first => return Err(NotWritten::Revision),
                    // Perhaps by the first message, whose answer was lost.
                    PublishErrorKind::WrongLastSequence => return self.written(name, &bytes).await,
                    PublishErrorKind::StreamNotFound => BusProblem::refused(error),
                    _ => return Err(NotWritten::Failed(BusProblem::refused(error))),
                },
                Err(_) => {
                    limit *= 2;
                    BusProblem::Silent
                }
            };
            if Instant::now() > give_up {
                return Err(NotWritten::Failed(failed));
            }
            is_first = false;
            tokio::time::sleep(REPEAT_AFTER).await;
        }
    }

    /// The revision of a name that has these bytes.
    async fn written(&self, name: &str, bytes: &Bytes) -> Result<u64, NotWritten> {
        match self.get(name).await.map_err(NotWritten::Failed)? {
            Some(Value { revision, bytes: Some(found) }) if found == *bytes => Ok(revision),
            _ => Err(NotWritten::Revision),
        }
    }

    /// What a name has; `None` if the bus does not know it.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Value>, BusProblem> {
        match self.stream.get_last_raw_message_by_subject(&subject(name)).await {
            Ok(message) => Ok(Some(Value {
                revision: message.sequence,
                bytes: is_value(&message.headers).then_some(message.payload),
            })),
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(BusProblem::refused(error)),
        }
    }

    /// All names with their values.
    pub(super) async fn all(&self) -> Result<BTreeMap<String, Bytes>, BusProblem> {
        let config = pull::Config {
            filter_subject: subject(">"),
            deliver_policy: DeliverPolicy::LastPerSubject,
            ack_policy: AckPolicy::None,
            ..pull::Config::default()
        };
        let consumer = self.stream.create_consumer(config).await.map_err(BusProblem::refused)?;
        let mut found = BTreeMap::new();
        let mut is_more = consumer.cached_info().num_pending > 0;
        while is_more {
            // The server tells where its messages end. Their number of those still to come does not: names are renewed meanwhile, and
            // nats-server 2.9.10 then counts one too many for ever.
            let batch = consumer.fetch().max_messages(BATCH).expires(ANSWER_LIMIT).messages().await;
            let mut batch = batch.map_err(BusProblem::refused)?;
            let mut got = 0;
            while let Some(message) =
                tokio::time::timeout(CONNECT_LIMIT, batch.next()).await.map_err(|_| BusProblem::Silent)?
            {
                let message = message.map_err(BusProblem::refused)?;
                let name = message.subject.strip_prefix(&subject("")).unwrap_or_default().to_owned();
                if message.headers.as_ref().is_none_or(is_value) {
                    found.insert(name, message.payload.clone());
                } else {
                    found.remove(&name);
                }
                got += 1;
            }
            is_more = got == BATCH;
        }
        Ok(found)
    }
}

/// The subject of a name's messages.
fn subject(name: &str) -> String {
    format!("$KV.{BUCKET}.{name}")
}

fn is_value(headers: &HeaderMap) -> bool {
    headers.get(OPERATION).is_none()
}

impl From<NotWritten> for BusProblem {
    fn from(error: NotWritten) -> Self {
        match error {
            NotWritten::Revision => Self::Overtaken,
            NotWritten::Failed(what) => what,
        }
    }
}
