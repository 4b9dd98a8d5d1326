//! The classic TCP_STREAM test, which netperf 2.7 uses for TCP_SENDFILE and older versions for every stream.
//! Only the server's side, with the offsets of 2.7.

use super::block::Block;
use super::error::NetperfError;
use super::kind;
use super::omni::{CPU_RATE, Counted, Flags, OmniRequest, PROC_STAT, Ready, SendingEnd, Served, port, size};

/// Parses a request and checks its values.
///
/// # Errors
/// The value that is not supported.
pub(super) fn request(block: &Block) -> Result<OmniRequest, NetperfError> {
    let ip_version = match block.word(64) {
        version @ (0 | 4 | 6) => version as u8,
        family => return Err(NetperfError::Family { family }),
    };
    let mut flags = Flags::ROUTED.0;
    for (at, flag) in [(28, Flags::NODELAY), (32, Flags::CPU)] {
        if block.word(at) != 0 {
            flags |= flag.0;
        }
    }
    Ok(OmniRequest {
        served: Served::Classic,
        send_buffer: size(block, 8, "a send buffer")?,
        send_size: None,
        send_width: 0,
        request_size: None,
        receive_buffer: size(block, 12, "a receive buffer")?,
        receive_size: size(block, 16, "a receive")?.filter(|size| *size > 0),
        receive_width: 0,
        response_size: None,
        flags: Flags(flags),
        length: block.signed(40),
        data_port: port(block, 60)?,
        ip_version,
        udp: false,
        direction: SendingEnd::ServerReceives,
        client_port: 0,
        tos: None,
        congestion: String::new(),
    })
}

/// The block before the data.
pub(super) fn ready(ready: &Ready) -> Block {
    let mut block = Block::new(kind::TCP_STREAM_DONE);
    block.put(8, ready.receive_buffer);
    block.put(12, ready.receive_size.unwrap_or(0));
    block.put(16, ready.flags.has(Flags::NODELAY).into());
    if ready.flags.has(Flags::CPU) {
        block.put(20, 1);
        block.put(36, CPU_RATE.to_bits());
    }
    block.put(28, ready.send_buffer);
    block.put(32, ready.data_port.into());
    block
}

/// The block after the data.
pub(super) fn counted(counted: &Counted) -> Block {
    let mut block = Block::new(kind::TCP_STREAM_DONE.swap_bytes());
    block.put_wide(8, (counted.bytes_received as f64).to_bits());
    block.put(16, counted.receives);
    block.put(20, counted.elapsed_s.to_bits());
    if let Some(cpu) = &counted.cpu {
        block.put(24, cpu.percent.to_bits());
        block.put(32, PROC_STAT);
        block.put(36, cpu.cpus);
    }
    block.put(40, counted.receive_buffer);
    block.put(44, counted.send_buffer);
    block
}
