//! The control protocol spoken by hand: what a test says is written out here, not taken from the crate that it tests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

/// What a control connection begins with.
pub const MAGIC: &[u8; 8] = b"THRUCTRL";

/// A connection that carries frames: 32 bits of length, big-endian, and JSON.
#[derive(Debug)]
pub struct Wire(pub TcpStream);

impl Wire {
    /// Connects to an agent, as a coordinator does.
    ///
    /// # Panics
    /// When nobody listens.
    #[must_use]
    pub fn dial(host: &str) -> Self {
        let mut stream = TcpStream::connect(host).expect("the agent listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
        stream.write_all(MAGIC).expect("it takes the greeting");
        Self(stream)
    }

    /// Sends one message.
    ///
    /// # Panics
    /// When the other side is gone.
    pub fn say(&mut self, message: &Value) {
        self.try_say(message).expect("it takes the message");
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When the other side is gone.
    ///
    /// # Panics
    /// When it is longer than any frame.
    pub fn try_say(&mut self, message: &Value) -> std::io::Result<()> {
        let bytes = message.to_string().into_bytes();
        let length = u32::try_from(bytes.len()).expect("short");
        self.0.write_all(&[&length.to_be_bytes(), bytes.as_slice()].concat())
    }

    /// The next message that is no ping; `None` when the other side has closed.
    ///
    /// # Panics
    /// When it is no JSON.
    pub fn hear(&mut self) -> Option<Value> {
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
    /// When it is no JSON.
    pub fn next_message(&mut self) -> Option<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut bytes).ok()?;
        Some(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// Greets an agent that wants this token, and checks that it knows it first.
    ///
    /// # Panics
    /// When it does not, or says something else.
    pub fn prove(&mut self, token: &str) {
        self.say(&hello(1, 1));
        let theirs = self.hear().expect("an answer");
        let nonce = theirs["nonce"].as_str().expect("a nonce");
        assert_eq!(theirs["mac"], proof(token, "agent", NONCE, nonce), "the agent proves it in its hello");
        self.say(&json!({"say": "proof", "mac": proof(token, "coordinator", NONCE, nonce)}));
    }

    /// Greets an agent that wants no token and waits to be let in.
    ///
    /// # Panics
    /// When it does not let us in.
    pub fn enter(&mut self) {
        self.say(&hello(1, 1));
        assert_eq!(self.hear().expect("an answer")["say"], "hello");
        assert_eq!(self.hear().expect("an answer")["say"], "welcome");
    }
}

/// What [`hello`] says as its random number.
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

/// How a side that speaks these protocols introduces itself.
#[must_use]
pub fn hello(protocol: u32, oldest: u32) -> Value {
    json!({
        "say": "hello", "protocol": protocol, "oldest": oldest, "version": "9.8.7", "capabilities": [],
        "nonce": NONCE, "instance": "0011223344556677", "wants_token": false,
    })
}

/// A server that treats each connection as `serve` says, on a free port of loopback; returns `address:port`. It ends with
/// the test's process.
///
/// # Panics
/// When no port is free.
pub fn server(serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}
