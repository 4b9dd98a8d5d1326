//! A client's parameters, as JSON.

use serde_json::{Map, Value};

use super::error::Iperf3Error;
use super::fault::ServerFault;
use super::json::{Writer, flag, text, whole};

/// The longest accepted parameters, in bytes: the limit of 3.18 and newer.
pub const PARAMETERS_LIMIT: usize = 8192;

/// What carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Blocks over TCP connections.
    Tcp,
    /// A block a datagram.
    Udp,
}

/// Hints about UDP offloads, which 3.21 and newer always send with UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offloads {
    /// Whether to send with UDP segmentation.
    pub gso: bool,
    /// Bytes of one datagram of a segmented send.
    pub gso_datagram_bytes: u32,
    /// Bytes of a segmented send.
    pub gso_buffer_bytes: u32,
    /// Whether to receive with UDP coalescing.
    pub gro: bool,
    /// Bytes of a coalesced receive.
    pub gro_buffer_bytes: u32,
}

/// A test as its client describes it. Absent options are the receiver's defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// What carries the data.
    pub protocol: Protocol,
    /// Seconds at the start that do not count.
    pub omit_s: u32,
    /// The CPU that the server is to run on.
    pub server_affinity: Option<u32>,
    /// Seconds that count; 0 where bytes or blocks end the test.
    pub time_s: u32,
    /// Bytes after which the test ends, over all streams; 0 for none.
    pub bytes: u64,
    /// Blocks after which the test ends, over all streams; 0 for none.
    pub blocks: u64,
    /// Maximum segment size in bytes.
    pub mss_bytes: Option<u32>,
    /// TCP_NODELAY on the streams.
    pub nodelay: bool,
    /// Streams in each direction.
    pub parallel: u32,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidirectional: bool,
    /// Socket buffers in bytes.
    pub window_bytes: Option<u32>,
    /// Bytes of a block; the protocol's default where absent.
    pub block_bytes: Option<u32>,
    /// Bit/s of each stream; unlimited for TCP and 1 Mbit/s for UDP where absent.
    pub rate_bps: Option<u64>,
    /// SO_MAX_PACING_RATE in bit/s.
    pub fq_rate_bps: Option<u64>,
    /// Microseconds between checks of the rate.
    pub pacing_timer_us: Option<u32>,
    /// Blocks of a burst.
    pub burst: Option<u32>,
    /// The IP type of service.
    pub tos: Option<u8>,
    /// The IPv6 flow label.
    pub flow_label: Option<u32>,
    /// A label for the output.
    pub title: Option<String>,
    /// The user's additional data for the output.
    pub extra_data: Option<String>,
    /// The congestion control to use.
    pub congestion: Option<String>,
    /// The client requests the server's output with its results.
    pub get_server_output: bool,
    /// Packet numbers of 64 bits.
    pub wide_counters: bool,
    /// Text instead of random bytes.
    pub repeating_payload: bool,
    /// Send with sendfile.
    pub zerocopy: bool,
    /// Set the don't-fragment bit.
    pub dont_fragment: bool,
    /// UDP offloads.
    pub offloads: Option<Offloads>,
    /// The encrypted login, base64.
    pub token: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
}

impl Parameters {
    /// A test of `time_s` seconds over one stream, with all else at the defaults.
    #[must_use]
    pub fn new(protocol: Protocol, time_s: u32) -> Self {
        Self {
            protocol,
            omit_s: 0,
            server_affinity: None,
            time_s,
            bytes: 0,
            blocks: 0,
            mss_bytes: None,
            nodelay: false,
            parallel: 1,
            reverse: false,
            bidirectional: false,
            window_bytes: None,
            block_bytes: None,
            rate_bps: None,
            fq_rate_bps: None,
            pacing_timer_us: None,
            burst: None,
            tos: None,
            flow_label: None,
            title: None,
            extra_data: None,
            congestion: None,
            get_server_output: false,
            wide_counters: false,
            repeating_payload: false,
            zerocopy: false,
            dont_fragment: false,
            offloads: None,
            token: None,
            client_version: None,
        }
    }

    /// Streams that the client opens, in both directions together.
    #[must_use]
    pub fn streams(&self) -> u32 {
        self.parallel * if self.bidirectional { 2 } else { 1 }
    }

    /// Bytes of a block, with the protocol's default.
    #[must_use]
    pub fn block(&self) -> u32 {
        self.block_bytes.unwrap_or(match self.protocol {
            Protocol::Tcp => 131_072,
            Protocol::Udp => 1_460,
        })
    }

    /// The JSON that iperf3 would send for the same test, byte for byte.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = Writer::new();
        json.truth("tcp", self.protocol == Protocol::Tcp);
        json.truth("udp", self.protocol == Protocol::Udp);
        json.value("omit", self.omit_s);
        json.option("server_affinity", self.server_affinity);
        json.value("time", self.time_s);
        json.value("num", self.bytes);
        json.value("blockcount", self.blocks);
        json.option("MSS", self.mss_bytes);
        json.truth("nodelay", self.nodelay);
        json.value("parallel", self.parallel);
        json.truth("reverse", self.reverse);
        json.truth("bidirectional", self.bidirectional);
        json.option("window", self.window_bytes);
        json.option("len", self.block_bytes);
        json.option("bandwidth", self.rate_bps);
        json.option("fqrate", self.fq_rate_bps);
        json.option("pacing_timer", self.pacing_timer_us);
        json.option("burst", self.burst);
        json.option("TOS", self.tos);
        json.option("flowlabel", self.flow_label);
        json.option("title", self.title.as_deref());
        json.option("extra_data", self.extra_data.as_deref());
        json.option("congestion", self.congestion.as_deref());
        json.one("get_server_output", self.get_server_output);
        json.one("udp_counters_64bit", self.wide_counters);
        json.one("repeating_payload", self.repeating_payload);
        json.one("zerocopy", self.zerocopy);
        json.one("dont_fragment", self.dont_fragment);
        if let Some(offloads) = self.offloads {
            json.value("gso", u8::from(offloads.gso));
            json.value("gso_dg_size", offloads.gso_datagram_bytes);
            json.value("gso_bf_size", offloads.gso_buffer_bytes);
            json.value("gro", u8::from(offloads.gro));
            json.value("gro_bf_size", offloads.gro_buffer_bytes);
        }
        json.option("authtoken", self.token.as_deref());
        json.option("client_version", self.client_version.as_deref());
        json.end()
    }

    /// Parses a client's JSON and checks every value against the limits of iperf3 3.21 (3.18 and newer refuse
    /// the same).
    ///
    /// # Errors
    /// The invalid value.
    pub fn from_json(json: &[u8]) -> Result<Self, Iperf3Error> {
        let map: Map<String, Value> =
            serde_json::from_slice(json).map_err(|source| Iperf3Error::NotParameters { source })?;
        let protocol = match (flag(&map, "tcp"), flag(&map, "udp"), flag(&map, "sctp")) {
            (true, false, false) => Protocol::Tcp,
            (false, true, false) => Protocol::Udp,
            _ => return Err(Iperf3Error::Protocol),
        };
        let values = Values(&map);
        let mut read = Self::new(protocol, 0);
        read.omit_s = values.within("omit", 0, 600, ServerFault::Omit)?.unwrap_or(0);
        read.server_affinity = values.within("server_affinity", 0, 1024, ServerFault::Parameters)?;
        read.time_s = values.within("time", 0, 86_400, ServerFault::Duration)?.unwrap_or(0);
        read.bytes = values.count("num")?.unwrap_or(0);
        read.blocks = values.count("blockcount")?.unwrap_or(0);
        read.mss_bytes = values.within("MSS", 0, 32_767, ServerFault::Mss)?.filter(|mss| *mss > 0);
        read.nodelay = flag(&map, "nodelay");
        read.parallel = values.within("parallel", 1, 128, ServerFault::Streams)?.unwrap_or(1);
        read.reverse = flag(&map, "reverse");
        read.bidirectional = flag(&map, "bidirectional");
        read.window_bytes = values.within("window", 0, 512 << 20, ServerFault::Buffer)?.filter(|window| *window > 0);
        read.block_bytes = match protocol {
            Protocol::Tcp => values.within("len", 1, 1 << 20, ServerFault::BlockSize)?,
            Protocol::Udp => values.within("len", 16, 65_507, ServerFault::UdpBlockSize)?,
        };
        read.rate_bps = values.count("bandwidth")?.filter(|rate| *rate > 0);
        read.fq_rate_bps = values.count("fqrate")?.filter(|rate| *rate > 0);
        read.pacing_timer_us =
            values.within("pacing_timer", 0, 1_000_000, ServerFault::Parameters)?.filter(|us| *us > 0);
        read.burst = values.within("burst", 0, 1000, ServerFault::Burst)?.filter(|burst| *burst > 0);
        read.tos = values.within("TOS", 0, 255, ServerFault::Parameters)?.and_then(|tos| u8::try_from(tos).ok());
        read.flow_label = values.within("flowlabel", 1, 0xf_ffff, ServerFault::Parameters)?;
        read.title = text(&map, "title");
        read.extra_data = text(&map, "extra_data");
        read.congestion = text(&map, "congestion");
        read.get_server_output = flag(&map, "get_server_output");
        read.wide_counters = flag(&map, "udp_counters_64bit");
        read.repeating_payload = flag(&map, "repeating_payload");
        read.zerocopy = flag(&map, "zerocopy");
        read.dont_fragment = flag(&map, "dont_fragment");
        if map.contains_key("gso") || map.contains_key("gro") {
            let bytes = |key| Ok(values.within(key, 0, 65_507, ServerFault::UdpBlockSize)?.unwrap_or(0));
            read.offloads = Some(Offloads {
                gso: flag(&map, "gso"),
                gso_datagram_bytes: bytes("gso_dg_size")?,
                gso_buffer_bytes: bytes("gso_bf_size")?,
                gro: flag(&map, "gro"),
                gro_buffer_bytes: bytes("gro_bf_size")?,
            });
        }
        read.token = text(&map, "authtoken");
        read.client_version = text(&map, "client_version");
        Ok(read)
    }
}

struct Values<'a>(&'a Map<String, Value>);

impl Values<'_> {
    fn within(&self, key: &'static str, least: u32, most: u32, fault: ServerFault) -> Result<Option<u32>, Iperf3Error> {
        let Some(value) = whole(self.0, key) else { return Ok(None) };
        match u32::try_from(value) {
            Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
            _ => Err(Iperf3Error::Limits { key, value, least, most, fault }),
        }
    }

    fn count(&self, key: &'static str) -> Result<Option<u64>, Iperf3Error> {
        let Some(value) = whole(self.0, key) else { return Ok(None) };
        u64::try_from(value).map(Some).map_err(|_| Iperf3Error::Negative { key, value })
    }
}
