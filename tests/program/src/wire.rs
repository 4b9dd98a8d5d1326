//! The control protocol by hand. The messages are written out here, not taken from the crate under test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

/// The first bytes of a control connection.
pub const MAGIC: &[u8; 8] = b"THRUCTRL";

/// A connection with frames: a length of 32 bits, big-endian, then JSON.
#[derive(Debug)]
pub struct Wire(pub TcpStream);

impl Wire {
    /// Connects to an agent, as a coordinator does.
    ///
    /// # Panics
    /// No agent listens.
    #[must_use]
    pub fn dial(host: &str) -> Self {
        let mut stream = TcpStream::connect(host).expect("the agent listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        stream.write_all(MAGIC).expect("the agent reads the magic");
        Self(stream)
    }

    /// Sends one message.
    ///
    /// # Panics
    /// The other side has closed.
    pub fn send(&mut self, message: &Value) {
        self.try_send(message).expect("the message is sent");
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The other side has closed.
    ///
    /// # Panics
    /// It is longer than a frame can be.
    pub fn try_send(&mut self, message: &Value) -> std::io::Result<()> {
        let bytes = message.to_string().into_bytes();
        let length = u32::try_from(bytes.len()).expect("short");
        self.0.write_all(&[&length.to_be_bytes(), bytes.as_slice()].concat())
    }

    /// The next message that is not a ping; `None` when the other side has closed.
    ///
    /// # Panics
    /// It is not JSON.
    pub fn receive(&mut self) -> Option<Value> {
        loop {
            let message = self.next_message()?;
            if message["say"] != "ping" {
                return Some(message);
            }
        }
    }

    /// The next message; `None` when the other side has closed.
    ///
    /// # Panics
    /// It is not JSON.
    pub fn next_message(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut bytes).ok()?;
        Some(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// Logs in to an agent that has this token, and checks that the agent proves it first.
    ///
    /// # Panics
    /// It does not, or answers otherwise.
    pub fn authenticate(&mut self, token: &str) {
        self.send(&hello(2, 2));
        let theirs = self.receive().expect("an answer");
        let nonce = theirs["nonce"].as_str().expect("a nonce");
        assert_eq!(theirs["mac"], proof(token, "agent", NONCE, nonce), "the agent proves it in its hello");
        self.send(&json!({"say": "proof", "mac": proof(token, "coordinator", NONCE, nonce)}));
    }

    /// Logs in to an agent without a token and waits for its welcome.
    ///
    /// # Panics
    /// The agent refuses.
    pub fn greet(&mut self) {
        self.send(&hello(2, 2));
        assert_eq!(self.receive().expect("an answer")["say"], "hello");
        assert_eq!(self.receive().expect("an answer")["say"], "welcome");
    }
}

/// The nonce of [`hello`].
pub const NONCE: &str = "00112233445566778899aabbccddeeff";

/// The proof that a side knows a token.
///
/// # Panics
/// Never: HMAC takes keys of any length.
#[must_use]
pub fn proof(token: &str, side: &str, coordinator: &str, agent: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("any key");
    mac.update(format!("throughline/1 {side} {coordinator} {agent}").as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hello of a side with this protocol version and the oldest one that it supports.
#[must_use]
pub fn hello(protocol: u32, oldest: u32) -> Value {
    json!({
        "say": "hello", "protocol": protocol, "oldest": oldest, "version": "9.8.7", "capabilities": [],
        "nonce": NONCE, "instance": "0011223344556677", "wants_token": false,
    })
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
