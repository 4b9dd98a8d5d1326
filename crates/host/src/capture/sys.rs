//! The packet socket and its ring in shared memory: TPACKET_V3 of linux/if_packet.h (the kernel's
//! Documentation/networking/packet_mmap.rst).
#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::time::{ClockId, clock_gettime};

use super::filter::Instruction;
use crate::sys::sockopt::{get, set};

const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// TPACKET_V3 of enum tpacket_versions.
const VERSION: libc::c_int = 2;
const ETH_P_ALL: u16 = 0x0003;
/// ETH_P_802_EX1: the first of the types that IEEE 802 leaves to local experiments.
const UNUSED: u16 = 0x88b5;
/// PACKET_OUTGOING of linux/if_packet.h.
const OUTGOING: u8 = 4;
/// The block is the program's until this bit is cleared (TP_STATUS_USER).
const USER: u32 = 1;

/// Bytes of a block, and how many there are: 16 MiB, which hold a hundred thousand short packets.
const BLOCK: usize = 512 << 10;
const BLOCKS: usize = 32;
/// Most bytes of a packet: those of a block.
pub(super) const MOST_KEPT: usize = BLOCK;
/// The kernel hands over a block that is not full after this time.
pub(super) const RETIRE: Duration = Duration::from_millis(20);

/// Offsets in struct tpacket_block_desc: status, packets, the first packet's offset.
const BLOCK_STATUS: usize = 8;
const BLOCK_PACKETS: usize = 12;
const BLOCK_FIRST: usize = 16;
/// Offsets in struct tpacket3_hdr, and its length, after which a struct sockaddr_ll follows.
const NEXT: usize = 0;
const SECONDS: usize = 4;
const NANOSECONDS: usize = 8;
const KEPT: usize = 12;
const LENGTH: usize = 16;
const LINK_HEADER: usize = 24;
const NETWORK_HEADER: usize = 26;
const HEADER: usize = 48;

/// One packet.
pub(super) struct Frame<'a> {
    /// Since the Unix epoch.
    pub(super) at: Duration,
    /// Its length as it passed the interface.
    pub(super) length: u32,
    /// The captured bytes, from its link header on.
    pub(super) data: &'a [u8],
    /// Length of its link header.
    pub(super) network: usize,
    /// ARPHRD_* of its interface.
    pub(super) hardware: u16,
    /// It left this host.
    pub(super) outgoing: bool,
}

/// A packet socket with its ring.
pub(super) struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    /// The block that the kernel hands over next.
    block: usize,
}

// SAFETY: the mapping belongs to this value alone, and whichever thread has the value may read it.
unsafe impl Send for Ring {}

impl Ring {
    /// Captures on the interface with that index, with a socket of [`packet_socket`].
    pub(super) fn open(socket: OwnedFd, interface: u32, skip_outgoing: bool) -> io::Result<Self> {
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &VERSION)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            // Packets lie in a block one after the other; the frame size only has to divide the block size.
            tp_frame_size: 2_048,
            tp_frame_nr: (BLOCK / 2_048 * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE.as_millis() as u32,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        if skip_outgoing {
            // Kernels before 4.20 do not have it: then outgoing packets are recognised by their type.
            let _ = set(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32);
        }
        // SAFETY: a new mapping of the ring's length, wherever the kernel has room.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK * BLOCKS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let Some(memory) = NonNull::new(memory.cast()) else { return Err(io::ErrorKind::OutOfMemory.into()) };
        let ring = Self { socket, memory, block: 0 };
        bind(&ring.socket, interface, ETH_P_ALL)?;
        Ok(ring)
    }

    /// Blocks further packets: those of the protocol that it then waits for do not pass its filter.
    pub(super) fn close(&self) -> io::Result<()> {
        bind(&self.socket, 0, UNUSED)
    }

    /// Passes each packet of the next block to `each`, and returns the block to the kernel; `false` if none is ready.
    pub(super) fn take(&mut self, each: &mut dyn FnMut(Frame<'_>)) -> bool {
        // SAFETY: the block lies within the mapping, which lives as long as `self`, and is aligned to a page.
        let start = unsafe { self.memory.as_ptr().add(self.block * BLOCK) };
        // SAFETY: the status is an aligned word of the mapping that both sides only read and write whole.
        let status = unsafe { AtomicU32::from_ptr(start.add(BLOCK_STATUS).cast()) };
        if status.load(Ordering::Acquire) & USER == 0 {
            return false;
        }
        {
            // SAFETY: as long as the status says so, the block is this side's: the kernel does not write to it.
            let block = unsafe { std::slice::from_raw_parts(start, BLOCK) };
            packets_of(block, each);
        }
        status.store(0, Ordering::Release);
        self.block = (self.block + 1) % BLOCKS;
        true
    }

    /// Waits until a block is ready, at most `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
        let mut wanted = [PollFd::new(&self.socket, PollFlags::IN)];
        // An interface that went down reports it once; the next read comes after the wait all the same.
        let _ = rustix::event::poll(&mut wanted, Some(&limit));
    }

    /// Packets that found the ring full since the last call.
    pub(super) fn drops(&self) -> io::Result<u64> {
        // struct tpacket_stats_v3: packets, drops, and how often the ring was frozen.
        let stats: [u8; 12] = get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        Ok(word(&stats, 4).into())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference into it outlives `take`.
        unsafe {
            libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS);
        }
    }
}

/// Passes each packet of a block to `each`, as far as they lie within it.
pub(super) fn packets_of(block: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
    if block.len() < BLOCK_FIRST + size_of::<u32>() {
        return;
    }
    let mut at = word(block, BLOCK_FIRST) as usize;
    for _ in 0..word(block, BLOCK_PACKETS) {
        let Some((frame, next)) = frame(block, at) else { break };
        each(frame);
        // The last packet has no next one.
        if next == 0 {
            break;
        }
        at += next;
    }
}

/// The packet at `at` in a block, and how far the next one is; `None` for what does not lie within the block.
fn frame(block: &[u8], at: usize) -> Option<(Frame<'_>, usize)> {
    let header = block.get(at..)?;
    // The header and the address after it.
    let address = header.get(HEADER..HEADER + 20)?;
    let (link, network) = (half(header, LINK_HEADER), half(header, NETWORK_HEADER));
    let kept = word(header, KEPT) as usize;
    let data = header.get(usize::from(link)..usize::from(link) + kept)?;
    let frame = Frame {
        at: Duration::new(word(header, SECONDS).into(), word(header, NANOSECONDS)),
        length: word(header, LENGTH),
        data,
        network: usize::from(network.saturating_sub(link)),
        hardware: half(address, 8),
        outgoing: address[10] == OUTGOING,
    };
    Some((frame, word(header, NEXT) as usize))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

/// A packet socket with a filter that stays. Without a protocol it receives nothing until it is bound.
pub(super) fn packet_socket(filter: &[Instruction]) -> io::Result<OwnedFd> {
    // SAFETY: the call takes three numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and no other code knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let len = u16::try_from(filter.len()).map_err(io::Error::other)?;
    // The kernel copies the program; struct sock_filter has the layout of an Instruction.
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut().cast() };
    set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
    set(&socket, libc::SOL_SOCKET, libc::SO_LOCK_FILTER, &1_i32)?;
    Ok(socket)
}

/// Receives packets of a protocol on an interface, or on all with 0.
fn bind(socket: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: libc::c_int::try_from(interface).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the pointer and length describe a live address.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CPU time of the calling thread so far, ns.
pub(super) fn thread_ns() -> u64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}
