//! The three blocks of an OMNI test, by the offsets of 2.7.

use super::block::Block;
use super::error::NetperfError;
use super::kind;

/// Largest send or receive that a server accepts, in bytes.
const SIZE_LIMIT: i32 = 1 << 28;

/// Most buffers of a ring.
const WIDTH_LIMIT: i32 = 1 << 16;

/// netserver's mark for CPU time that was read from /proc/stat.
pub(super) const PROC_STAT: u32 = 8;

/// Calibrated CPU rate, percent; constant when CPU time is read from /proc/stat.
pub(super) const CPU_RATE: f32 = 100.0;

/// Who sends, as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendingEnd {
    /// Connections alone (TCP_CC).
    Neither,
    /// The server sends (TCP_MAERTS).
    ServerSends,
    /// The server receives (TCP_STREAM, UDP_STREAM).
    ServerReceives,
    /// Requests and responses (TCP_RR, TCP_CRR, UDP_RR).
    Both,
}

/// Bits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// TCP_NODELAY.
    pub const NODELAY: Self = Self(0x1);
    /// A connection for each transaction.
    pub const CONNECT: Self = Self(0x4);
    /// CPU time is to be measured.
    pub const CPU: Self = Self(0x8);
    /// Routers may be passed; without it the server sets SO_DONTROUTE.
    pub const ROUTED: Self = Self(0x20);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits that are set in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The message format of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The common format of all tests.
    Omni,
    /// The format of TCP_STREAM before OMNI.
    Classic,
}

/// A test that netperf requests. Sizes of `None` are the server's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmniRequest {
    /// The message format.
    pub served: Served,
    /// SO_SNDBUF in bytes.
    pub send_buffer: Option<u32>,
    /// Bytes of a send.
    pub send_size: Option<u32>,
    /// Buffers in the send ring.
    pub send_width: u32,
    /// Bytes of a request.
    pub request_size: Option<u32>,
    /// SO_RCVBUF in bytes.
    pub receive_buffer: Option<u32>,
    /// Bytes of a receive.
    pub receive_size: Option<u32>,
    /// Buffers in the receive ring.
    pub receive_width: u32,
    /// Bytes of a response.
    pub response_size: Option<u32>,
    /// Options.
    pub flags: Flags,
    /// Seconds, 0 for no limit; negative values are bytes or transactions.
    pub length: i32,
    /// The port that the server's data socket is to have; 0 for any.
    pub data_port: u16,
    /// 4 or 6; 0 for any.
    pub ip_version: u8,
    /// Datagrams over UDP instead of TCP.
    pub udp: bool,
    /// Who sends.
    pub direction: SendingEnd,
    /// The client's data port; 0 where it is not bound.
    pub client_port: u16,
    /// The IP type of service of what the server sends; the system's where absent.
    pub tos: Option<u8>,
    /// The congestion control to use; empty for the system's.
    pub congestion: String,
}

/// netserver's answer before the data: its settings and its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// SO_RCVBUF in bytes, as the socket has it.
    pub receive_buffer: u32,
    /// Bytes of a receive, where it receives.
    pub receive_size: Option<u32>,
    /// Buffers of its receiving ring.
    pub receive_width: u32,
    /// SO_SNDBUF in bytes, as the socket has it.
    pub send_buffer: u32,
    /// Bytes of a send, where it sends.
    pub send_size: Option<u32>,
    /// Buffers of its sending ring.
    pub send_width: u32,
    /// Its data port.
    pub data_port: u16,
    /// The IP type of service of its socket, if requested.
    pub tos: Option<u8>,
    /// [`Ready::FLAGS`] of the request that hold. netperf relies on them: it shows CPU time only if its flag is
    /// set here, and requests the same for later tests on the connection.
    pub flags: Flags,
}

/// CPU time of the server's host during a test. Shares are percent of all its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cpu {
    /// All but idle and iowait.
    pub percent: f32,
    /// Of programs.
    pub user: f32,
    /// Of the kernel for them.
    pub system: f32,
    /// Waiting for devices.
    pub iowait: f32,
    /// Of interrupts.
    pub irq: f32,
    /// Of soft interrupts.
    pub softirq: f32,
    /// How many CPUs there are.
    pub cpus: u32,
    /// The number of the busiest.
    pub peak: u32,
    /// Its share, percent.
    pub peak_percent: f32,
}

/// What netserver counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Bytes received.
    pub bytes_received: u64,
    /// Calls to receive.
    pub receives: u32,
    /// SO_RCVBUF in bytes at the end.
    pub receive_buffer: u32,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Calls to send.
    pub sends: u32,
    /// SO_SNDBUF in bytes at the end.
    pub send_buffer: u32,
    /// Sends that failed.
    pub failed_sends: u32,
    /// Transactions received.
    pub transactions: u32,
    /// Seconds, by the server's clock.
    pub elapsed_s: f32,
    /// CPU time of the whole host, if requested.
    pub cpu: Option<Cpu>,
    /// Retransmitted segments; `None` if unknown.
    pub retransmits: Option<u32>,
    /// The congestion control; empty if unknown.
    pub congestion: String,
}

fn chosen(size: Option<u32>) -> i32 {
    size.map_or(-1, |size| i32::try_from(size).unwrap_or(i32::MAX))
}

pub(super) fn size(block: &Block, at: usize, what: &'static str) -> Result<Option<u32>, NetperfError> {
    match block.signed(at) {
        -1 => Ok(None),
        size @ 0..=SIZE_LIMIT => Ok(Some(size as u32)),
        bytes => Err(NetperfError::Size { what, bytes, limit: SIZE_LIMIT }),
    }
}

fn width(block: &Block, at: usize) -> Result<u32, NetperfError> {
    match block.signed(at) {
        width @ 0..=WIDTH_LIMIT => Ok(width as u32),
        buffers => Err(NetperfError::Ring { buffers, limit: WIDTH_LIMIT }),
    }
}

pub(super) fn port(block: &Block, at: usize) -> Result<u16, NetperfError> {
    let port = block.word(at);
    u16::try_from(port).map_err(|_| NetperfError::Port { port })
}

impl OmniRequest {
    /// The block that netperf would send.
    #[must_use]
    pub fn to_block(&self) -> Block {
        let mut block = Block::new(kind::OMNI);
        // No CPU to bind the server to; then alignments of 8 and offsets of 0, netperf's own.
        block.put_signed(4, -1);
        block.put_signed(8, chosen(self.send_buffer));
        block.put_signed(12, chosen(self.send_size));
        block.put(16, 8);
        block.put(24, self.send_width);
        block.put_signed(28, chosen(self.request_size));
        block.put_signed(32, chosen(self.receive_buffer));
        block.put_signed(36, chosen(self.receive_size));
        block.put(40, 8);
        block.put(48, self.receive_width);
        block.put_signed(52, chosen(self.response_size));
        block.put(56, self.flags.0);
        block.put_signed(64, self.length);
        for nothing_dirtied in [76, 80, 84] {
            block.put_signed(nothing_dirtied, -1);
        }
        block.put(88, self.data_port.into());
        block.put(92, self.ip_version.into());
        block.put(96, if self.udp { 2 } else { 1 });
        block.put(100, if self.udp { 17 } else { 6 });
        block.put(104, self.direction.bits());
        block.put(108, self.client_port.into());
        block.put_signed(152, -1);
        block.put_signed(156, chosen(self.tos.map(u32::from)));
        block.put_text(160, 16, &self.congestion);
        block
    }

    /// Parses a request and checks its values.
    ///
    /// # Errors
    /// The value that is not supported.
    pub fn from_block(block: &Block) -> Result<Self, NetperfError> {
        let udp = match (block.word(96), block.word(100)) {
            (1, 6) => false,
            (2, 17) => true,
            (socket, protocol) => return Err(NetperfError::Socket { socket, protocol }),
        };
        let ip_version = match block.word(92) {
            version @ (0 | 4 | 6) => version as u8,
            family => return Err(NetperfError::Family { family }),
        };
        Ok(Self {
            served: Served::Omni,
            send_buffer: size(block, 8, "a send buffer")?,
            send_size: size(block, 12, "a send")?,
            send_width: width(block, 24)?,
            request_size: size(block, 28, "a request")?,
            receive_buffer: size(block, 32, "a receive buffer")?,
            receive_size: size(block, 36, "a receive")?,
            receive_width: width(block, 48)?,
            response_size: size(block, 52, "a response")?,
            flags: Flags(block.word(56)),
            length: block.signed(64),
            data_port: port(block, 88)?,
            ip_version,
            udp,
            direction: SendingEnd::of(block.word(104))?,
            client_port: port(block, 108)?,
            tos: u8::try_from(block.signed(156)).ok(),
            congestion: block.text(160, 16),
        })
    }
}

impl SendingEnd {
    fn bits(self) -> u32 {
        match self {
            Self::Neither => 0,
            Self::ServerSends => 2,
            Self::ServerReceives => 4,
            Self::Both => 6,
        }
    }

    fn of(bits: u32) -> Result<Self, NetperfError> {
        [Self::Neither, Self::ServerSends, Self::ServerReceives, Self::Both]
            .into_iter()
            .find(|direction| direction.bits() == bits)
            .ok_or(NetperfError::Direction { bits })
    }
}

impl Ready {
    /// The flags of a request that are answered.
    pub const FLAGS: Flags = Flags(Flags::NODELAY.0 | Flags::CPU.0);

    /// The block that netserver would answer with.
    #[must_use]
    pub fn to_block(&self) -> Block {
        let mut block = Block::new(kind::OMNI_DONE);
        block.put(8, self.receive_buffer);
        block.put_signed(12, chosen(self.receive_size));
        block.put(16, self.receive_width);
        block.put(20, self.send_buffer);
        block.put_signed(24, chosen(self.send_size));
        block.put(28, self.send_width);
        block.put(32, self.flags.and(Self::FLAGS).0);
        if self.flags.has(Flags::CPU) {
            block.put(36, CPU_RATE.to_bits());
        }
        block.put(52, self.data_port.into());
        block.put_signed(72, -1);
        block.put_signed(76, chosen(self.tos.map(u32::from)));
        block
    }

    /// Parses an answer.
    ///
    /// # Errors
    /// The invalid value.
    pub fn from_block(block: &Block) -> Result<Self, NetperfError> {
        Ok(Self {
            receive_buffer: block.word(8),
            receive_size: size(block, 12, "a receive")?,
            receive_width: block.word(16),
            send_buffer: block.word(20),
            send_size: size(block, 24, "a send")?,
            send_width: block.word(28),
            data_port: port(block, 52)?,
            tos: u8::try_from(block.signed(76)).ok(),
            flags: Flags(block.word(32)).and(Self::FLAGS),
        })
    }
}

impl Cpu {
    /// Offsets of its shares in a block.
    const AT: [usize; 7] = [52, 56, 60, 64, 68, 72, 92];

    fn put(&self, block: &mut Block) {
        let Self { percent, user, system, iowait, irq, softirq, peak_percent, .. } = *self;
        for (at, share) in Self::AT.into_iter().zip([percent, user, system, iowait, irq, softirq, peak_percent]) {
            block.put(at, share.to_bits());
        }
        block.put(80, PROC_STAT);
        block.put(84, self.cpus);
        block.put(88, self.peak);
    }

    fn from_block(block: &Block) -> Result<Self, NetperfError> {
        let mut shares = [0.0; 7];
        for (at, share) in Self::AT.into_iter().zip(&mut shares) {
            *share = positive(block, at)?;
        }
        let [percent, user, system, iowait, irq, softirq, peak_percent] = shares;
        let (cpus, peak) = (block.word(84), block.word(88));
        Ok(Self { percent, user, system, iowait, irq, softirq, cpus, peak, peak_percent })
    }
}

/// A float that is a time or a share.
fn positive(block: &Block, at: usize) -> Result<f32, NetperfError> {
    let number = block.float(at);
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(NetperfError::Number { number }) }
}

impl Counted {
    /// The block that netserver would send after the data.
    #[must_use]
    pub fn to_block(&self) -> Block {
        // On little-endian hosts netserver sends this type byte-swapped; netperf ignores it.
        let mut block = Block::new(kind::OMNI_DONE.swap_bytes());
        block.put_wide(8, self.bytes_received);
        block.put(16, self.receives);
        block.put(20, self.receive_buffer);
        block.put_wide(24, self.bytes_sent);
        block.put(32, self.sends);
        block.put(36, self.send_buffer);
        block.put(40, self.failed_sends);
        block.put(44, self.transactions);
        block.put(48, self.elapsed_s.to_bits());
        if let Some(cpu) = &self.cpu {
            cpu.put(&mut block);
        }
        block.put(112, self.retransmits.unwrap_or(u32::MAX));
        block.put_text(276, 16, &self.congestion);
        block
    }

    /// Parses the counts of a test with these flags: without [`Flags::CPU`] the CPU words are stale.
    ///
    /// # Errors
    /// The invalid value.
    pub fn from_block(block: &Block, flags: Flags) -> Result<Self, NetperfError> {
        Ok(Self {
            bytes_received: block.wide(8),
            receives: block.word(16),
            receive_buffer: block.word(20),
            bytes_sent: block.wide(24),
            sends: block.word(32),
            send_buffer: block.word(36),
            failed_sends: block.word(40),
            transactions: block.word(44),
            elapsed_s: positive(block, 48)?,
            cpu: if flags.has(Flags::CPU) { Some(Cpu::from_block(block)?) } else { None },
            retransmits: Some(block.word(112)).filter(|again| *again != u32::MAX),
            congestion: block.text(276, 16),
        })
    }
}
