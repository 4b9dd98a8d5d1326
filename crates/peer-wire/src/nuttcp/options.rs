//! The client's line of options.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::VERSION;
use super::error::NuttcpError;

/// The value for no rate limit, kbit/s.
pub const NO_RATE: u64 = 4_294_967_295;

/// Bits of the report format: the client's default, and key-value pairs.
const FORMAT: u64 = 0x800;
const FORMAT_PARSE: u64 = 0x40;
/// Most connections (`MAXSTREAM`).
const MOST_STREAMS: u64 = 128;
/// Largest accepted buffer in bytes.
const MOST_BYTES: u64 = 1 << 26;
/// Largest socket buffer in bytes: nuttcp has it in 31 bits.
pub const MOST_WINDOW: u64 = i32::MAX as u64;
/// Longest accepted time, seconds.
const MOST_SECONDS: f64 = 86_400.0;

/// The options of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Bytes of a buffer or a datagram.
    pub bytes: u64,
    /// Number of buffers; 0 for a timed test.
    pub count: u64,
    /// Socket buffers in bytes (nuttcp's -w counts KiB, its line bytes); 0 for the system's.
    pub window_bytes: u64,
    /// Connections.
    pub streams: u32,
    /// kbit/s, or [`NO_RATE`].
    pub rate_kbps: u64,
    /// The first data port of the listening side.
    pub port: u16,
    /// The client transmits.
    pub client_transmits: bool,
    /// Duration in seconds; 0 for a fixed count.
    pub seconds: f64,
    /// Datagrams.
    pub udp: bool,
    /// Seconds between interim reports; 0 for none.
    pub interval_s: f64,
    /// The receiver connects to the transmitter.
    pub reverse: bool,
    /// Type of service.
    pub tos: u8,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Reports are pairs of keys and values (-fparse).
    pub parse: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bytes: 65_536,
            count: 0,
            window_bytes: 0,
            streams: 1,
            rate_kbps: NO_RATE,
            port: 5001,
            client_transmits: true,
            seconds: 10.0,
            udp: false,
            interval_s: 0.0,
            reverse: false,
            tos: 0,
            nodelay: false,
            parse: false,
        }
    }
}

impl Options {
    /// Whether the server sends interim reports: only a receiver does.
    #[must_use]
    pub fn reports_interim(&self) -> bool {
        self.client_transmits && self.interval_s > 0.0
    }

    /// The line as 6.1.2 writes it, with its LF.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let flag = |holds: bool| u8::from(holds);
        let mut line = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            line,
            "buflen = {}, nbuf = {}, win = {}, nstream = {}, rate = {}, port = {}, trans = {}, braindead = 0, timeout = {:.6}, \
             udp = {}, vers = {VERSION}, interval = {:.6}, reverse = {}, format = {}, traceroute = 0, irate = 0, \
             thirdparty = _NULL_ , multicast = 0 , datamss = 0 , tos = {} , nbuf_bytes = 0 , rate_pps = 0 , nodelay = {}",
            self.bytes,
            self.count,
            self.window_bytes,
            self.streams,
            self.rate_kbps,
            self.port,
            flag(self.client_transmits),
            self.seconds,
            flag(self.udp),
            self.interval_s,
            flag(self.reverse),
            FORMAT | if self.parse { FORMAT_PARSE } else { 0 },
            self.tos,
            flag(self.nodelay),
        );
        line.into_bytes()
    }

    /// Parses a line without its LF. Missing fields of older versions get their defaults; unknown ones are
    /// ignored.
    ///
    /// # Errors
    /// The missing, invalid or unsupported field.
    pub fn from_line(line: &str) -> Result<Self, NuttcpError> {
        let fields: BTreeMap<&str, &str> = line
            .split(',')
            .filter_map(|field| field.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let fields = Fields(fields);
        let (bytes, count) = (fields.whole("buflen", None, 1, MOST_BYTES)?, fields.whole("nbuf", None, 0, u64::MAX)?);
        let options = Self {
            bytes,
            count,
            window_bytes: fields.whole("win", Some(0), 0, MOST_WINDOW)?,
            streams: fields.whole("nstream", Some(1), 1, MOST_STREAMS)? as u32,
            rate_kbps: fields.whole("rate", Some(NO_RATE), 1, u64::MAX)?,
            port: fields.whole("port", None, 1, 65_535)? as u16,
            client_transmits: fields.flag("trans", None)?,
            seconds: fields.seconds("timeout")?,
            udp: fields.flag("udp", Some(false))?,
            interval_s: fields.seconds("interval")?,
            reverse: fields.flag("reverse", Some(false))?,
            tos: fields.whole("tos", Some(0), 0, 255)? as u8,
            nodelay: fields.flag("nodelay", Some(false))?,
            parse: fields.whole("format", Some(0), 0, u64::MAX)? & FORMAT_PARSE > 0,
        };
        if options.count == 0 && options.seconds <= 0.0 {
            return Err(NuttcpError::Endless);
        }
        for (key, off) in [("traceroute", "0"), ("thirdparty", "_NULL_"), ("multicast", "0"), ("rate_pps", "0")] {
            if let Some(value) = fields.0.get(key).filter(|value| **value != off) {
                return Err(NuttcpError::Unsupported { key, text: (*value).into() });
            }
        }
        Ok(options)
    }
}

struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl Fields<'_> {
    fn whole(&self, key: &'static str, default: Option<u64>, least: u64, most: u64) -> Result<u64, NuttcpError> {
        let Some(text) = self.0.get(key) else { return default.ok_or(NuttcpError::Missing { key }) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| NuttcpError::Number { key, text: (*text).into(), least, most })
    }

    fn flag(&self, key: &'static str, default: Option<bool>) -> Result<bool, NuttcpError> {
        Ok(self.whole(key, default.map(u64::from), 0, 1)? == 1)
    }

    fn seconds(&self, key: &'static str) -> Result<f64, NuttcpError> {
        let Some(text) = self.0.get(key) else { return Ok(0.0) };
        let seconds = text.parse().ok().filter(|seconds: &f64| (0.0..=MOST_SECONDS).contains(seconds));
        seconds.ok_or_else(|| NuttcpError::Time { key, text: (*text).into() })
    }
}
