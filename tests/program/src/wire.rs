//! The control protocol by hand. The messages are written out here, not taken from the crate under test.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

pub use crate::tls::fresh_key;
use crate::tls::{KEY, Tls};

/// The first bytes of a control connection; TLS follows.
pub const MAGIC: &[u8; 8] = b"THRUCTLS";
/// The protocol of this version.
pub const PROTOCOL: u32 = 1;

/// A connection with frames: a length of 32 bits, big-endian, then JSON. One thread may read while others send.
#[derive(Debug, Clone)]
pub struct Wire(Arc<Tls>);

/// A message: JSON text with its name, or an object whose only key is its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its name.
    pub name: String,
    /// What the name has; null for a message without content.
    pub content: Value,
}

impl Message {
    /// Reads a message.
    ///
    /// # Panics
    /// It is another JSON value.
    #[must_use]
    pub fn of(value: Value) -> Self {
        match value {
            Value::String(name) => Self { name, content: Value::Null },
            Value::Object(object) if object.len() == 1 => {
                let (name, content) = object.into_iter().next().expect("one member");
                Self { name, content }
            }
            other => panic!("not a message: {other}"),
        }
    }

    /// Its JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        if self.content.is_null() { json!(self.name) } else { json!({ &self.name: self.content }) }
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

impl std::ops::Index<&str> for Message {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        &self.content[key]
    }
}

impl Wire {
    /// Connects to an agent, as a coordinator does.
    ///
    /// # Panics
    /// No agent listens.
    #[must_use]
    pub fn dial(host: &str) -> Self {
        Self::dial_as(host, None)
    }

    /// The same with a key of its own: the text of a PEM file, from [`fresh_key`].
    ///
    /// # Panics
    /// No agent listens.
    #[must_use]
    pub fn dial_as(host: &str, key: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(host).expect("the agent listens");
        stream.write_all(MAGIC).expect("the agent reads the magic");
        Self(Arc::new(Tls::connect(stream, key).expect("a handshake")))
    }

    /// The agent's side of a connection that was just accepted; `None` for anything but a coordinator.
    #[must_use]
    pub fn accept(stream: TcpStream) -> Option<Self> {
        Self::accept_as(stream, &KEY)
    }

    /// The same with a key of its own: the text of a PEM file, from [`fresh_key`].
    #[must_use]
    pub fn accept_as(mut stream: TcpStream, key: &str) -> Option<Self> {
        let mut magic = [0; 8];
        stream.read_exact(&mut magic).ok()?;
        (&magic == MAGIC).then_some(())?;
        Some(Self(Arc::new(Tls::accept(stream, key)?)))
    }

    /// Passes all messages on between a client, on this connection, and an agent, until one of them has closed.
    pub fn relay(self, agent: Self) {
        for (from, to) in [(self.clone(), agent.clone()), (agent, self)] {
            std::thread::spawn(move || {
                while let Some(message) = from.next_message() {
                    if to.try_send(&message.value()).is_err() {
                        break;
                    }
                }
                to.close();
            });
        }
    }

    /// Ends the connection in both directions.
    pub fn close(&self) {
        let _ = self.0.socket().shutdown(Shutdown::Both);
    }

    /// Sends one message.
    ///
    /// # Panics
    /// The other side has closed.
    pub fn send(&self, message: &Value) {
        self.try_send(message).expect("the message is sent");
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The other side has closed.
    ///
    /// # Panics
    /// It is longer than a frame can be.
    pub fn try_send(&self, message: &Value) -> std::io::Result<()> {
        let bytes = message.to_string().into_bytes();
        let length = u32::try_from(bytes.len()).expect("short");
        let frame = [&length.to_be_bytes(), bytes.as_slice()].concat();
        self.0.write_all(&frame)
    }

    /// The next message that is not a ping; `None` when the other side has closed.
    ///
    /// # Panics
    /// It is not JSON.
    pub fn receive(&self) -> Option<Message> {
        loop {
            let message = self.next_message()?;
            if message.name != "ping" {
                return Some(message);
            }
        }
    }

    /// The next message; `None` when the other side has closed.
    ///
    /// # Panics
    /// It is not JSON.
    pub fn next_message(&self) -> Option<Message> {
        let mut length = [0; 4];
        self.read_exact(&mut length)?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.read_exact(&mut bytes)?;
        Some(Message::of(serde_json::from_slice(&bytes).expect("JSON")))
    }

    fn read_exact(&self, bytes: &mut [u8]) -> Option<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.0.read(&mut bytes[filled..]) {
                Ok(0) | Err(_) => return None,
                Ok(count) => filled += count,
            }
        }
        Some(())
    }

    /// The proof that `side` knows a token, for this connection.
    #[must_use]
    pub fn proof(&self, token: &str, side: &str, coordinator: &str, agent: &str) -> String {
        let (key, exporter) = self.0.binding();
        let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("any key");
        let text = format!("throughline/1 {side} {coordinator} {agent} {} {}", hex::encode(key), hex::encode(exporter));
        mac.update(text.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    /// SHA-256 of the agent's and the client's public keys, and the secret of this connection.
    #[must_use]
    pub fn binding(&self) -> ([u8; 32], Option<[u8; 32]>, [u8; 32]) {
        let (key, exporter) = self.0.binding();
        (key, self.0.client(), exporter)
    }

    /// Logs in to an agent that has this token, and checks that the agent proves it first.
    ///
    /// # Panics
    /// It does not, or answers otherwise.
    pub fn authenticate(&self, token: &str) {
        self.send(&hello(PROTOCOL));
        let theirs = self.receive().expect("an answer");
        let nonce = theirs["nonce"].as_str().expect("a nonce");
        assert_eq!(theirs["mac"], self.proof(token, "agent", NONCE, nonce), "the agent proves it in its hello");
        self.send(&json!({"proof": {"mac": self.proof(token, "coordinator", NONCE, nonce)}}));
    }

    /// Logs in to an agent without a token and waits for its welcome.
    ///
    /// # Panics
    /// The agent refuses.
    pub fn greet(&self) {
        self.send(&hello(PROTOCOL));
        assert_eq!(self.receive().expect("an answer").name, "hello");
        assert_eq!(self.receive().expect("an answer").name, "welcome");
    }
}

/// The nonce of [`hello`].
pub const NONCE: &str = "00112233445566778899aabbccddeeff";

/// The hello of a side with this protocol version.
#[must_use]
pub fn hello(protocol: u32) -> Value {
    json!({ "hello": {
        "protocol": protocol, "version": "9.8.7", "nonce": NONCE, "instance": "0011223344556677", "wants_token": false,
    }})
}

/// An agent of this test on a free port of loopback: `serve` gets each coordinator. Returns `address:port`.
///
/// # Panics
/// No port is free.
pub fn agent(serve: impl Fn(Wire) + Send + 'static) -> String {
    server(move |stream| Wire::accept(stream).into_iter().for_each(&serve))
}

/// A server that calls `serve` for each connection, on a free port of loopback; returns `address:port`. It ends with the process of
/// the test.
///
/// # Panics
/// No port is free.
pub fn server(serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}
