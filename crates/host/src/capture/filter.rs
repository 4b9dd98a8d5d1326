//! The kernel's filter of a capture: a program of the classic Berkeley packet filter (McCanne and Jacobson, 1993; the kernel's
//! Documentation/networking/filter.rst).

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// One instruction, as struct sock_filter of linux/filter.h has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    pub(super) jt: u8,
    pub(super) jf: u8,
    pub(super) k: u32,
}

/// Which packets to keep: those of one protocol, from or to one of the ports, and from or to the address if it is
/// known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Protocol number of IP: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Ports of the end that listens.
    pub ports: Vec<u16>,
    /// An address of one of the ends; `None` for any.
    pub address: Option<IpAddr>,
}

/// SKF_NET_OFF: where the network header begins, whatever the link's own header.
const NET: u32 = (-0x0010_0000_i32) as u32;
/// SKF_AD_OFF + SKF_AD_PROTOCOL: the Ethernet type, also if the link has no header for it.
const ETHERTYPE: u32 = (-0x1000_i32) as u32;
const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
/// The next header of an IPv6 fragment.
const FRAGMENT: u32 = 44;

const LD_WORD: u16 = 0x20;
const LD_HALF: u16 = 0x28;
const LD_BYTE: u16 = 0x30;
/// Relative to the index register.
const LD_HALF_AT: u16 = 0x48;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const TO_INDEX: u16 = 0x07;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// A jump target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Keep,
    Drop,
    V6,
    Source,
    Ports,
    Fragment,
}

/// A program whose jumps still have labels. Each test is followed by a long jump, because the jumps of a test reach
/// only 255 instructions.
#[derive(Default)]
struct Program {
    code: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Program {
    fn add(&mut self, code: u16, k: u32) {
        self.code.push(Instruction { code, jt: 0, jf: 0, k });
    }

    /// Jumps to `label` if the test holds.
    fn jump_if(&mut self, test: u16, k: u32, label: Label) {
        self.code.push(Instruction { code: test, jt: 0, jf: 1, k });
        self.jump(label);
    }

    /// Jumps to `label` if it does not.
    fn jump_unless(&mut self, test: u16, k: u32, label: Label) {
        self.code.push(Instruction { code: test, jt: 1, jf: 0, k });
        self.jump(label);
    }

    fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.add(JUMP, 0);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    /// Fills in the jumps since the last call, to labels since then.
    fn link(&mut self) {
        for (at, label) in std::mem::take(&mut self.jumps) {
            match self.labels.iter().find(|(name, _)| *name == label) {
                Some((_, to)) => self.code[at].k = (to - at - 1) as u32,
                None => self.jumps.push((at, label)),
            }
        }
    }

    /// Keeps the packet if one of two half-word loads yields one of the ports.
    fn ports(&mut self, load: u16, [source, destination]: [u32; 2], ports: &[u16]) {
        for offset in [source, destination] {
            self.add(load, offset);
            ports.iter().for_each(|port| self.jump_if(IF_EQUAL, u32::from(*port), Label::Keep));
        }
        self.jump(Label::Drop);
    }

    /// Jumps to [`Label::Ports`] if the words from `source` or those from `destination` equal `words`, else drops.
    fn address(&mut self, source: u32, destination: u32, words: &[u32]) {
        for (index, word) in (0_u32..).zip(words) {
            self.add(LD_WORD, NET.wrapping_add(source + 4 * index));
            self.jump_unless(IF_EQUAL, *word, Label::Source);
        }
        self.jump(Label::Ports);
        self.label(Label::Source);
        for (index, word) in (0_u32..).zip(words) {
            self.add(LD_WORD, NET.wrapping_add(destination + 4 * index));
            self.jump_unless(IF_EQUAL, *word, Label::Drop);
        }
    }
}

/// The program that keeps `snaplen` bytes of the wanted packets. Fragments after the first have no ports: they are
/// kept for their protocol and address.
pub(super) fn program(wanted: &Wanted, snaplen: u32) -> Vec<Instruction> {
    let mut program = Program::default();
    let at = |offset: u32| NET.wrapping_add(offset);
    let protocol = u32::from(wanted.protocol);
    program.add(LD_HALF, ETHERTYPE);
    program.jump_if(IF_EQUAL, IPV6, Label::V6);
    program.jump_unless(IF_EQUAL, IPV4, Label::Drop);
    match wanted.address {
        Some(IpAddr::V6(_)) => program.jump(Label::Drop),
        address => {
            program.add(LD_BYTE, at(9));
            program.jump_unless(IF_EQUAL, protocol, Label::Drop);
            if let Some(IpAddr::V4(address)) = address {
                program.address(12, 16, &[u32::from(address)]);
            }
            program.label(Label::Ports);
            program.add(LD_HALF, at(6));
            program.jump_if(IF_ANY_BIT, 0x1fff, Label::Keep);
            // The header's length in words of four bytes.
            program.add(LD_BYTE, at(0));
            program.add(AND, 0xf);
            program.add(SHIFT_LEFT, 2);
            program.add(TO_INDEX, 0);
            program.ports(LD_HALF_AT, [at(0), at(2)], &wanted.ports);
        }
    }
    program.link();
    // The second half reuses the label names.
    program.labels.clear();
    program.label(Label::V6);
    match wanted.address {
        Some(IpAddr::V4(_)) => program.jump(Label::Drop),
        address => {
            if let Some(IpAddr::V6(address)) = address {
                let words: Vec<u32> =
                    address.octets().as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
                program.address(8, 24, &words);
            }
            program.label(Label::Ports);
            program.add(LD_BYTE, at(6));
            program.jump_if(IF_EQUAL, FRAGMENT, Label::Fragment);
            program.jump_unless(IF_EQUAL, protocol, Label::Drop);
            program.ports(LD_HALF, [at(40), at(42)], &wanted.ports);
            program.label(Label::Fragment);
            program.add(LD_BYTE, at(40));
            program.jump_if(IF_EQUAL, protocol, Label::Keep);
        }
    }
    program.label(Label::Drop);
    program.add(RETURN, 0);
    program.label(Label::Keep);
    program.add(RETURN, snaplen);
    program.link();
    program.code
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    /// Emulates the kernel: the bytes that `code` keeps of a packet whose network header is `net`.
    fn run(code: &[Instruction], ethertype: u32, net: &[u8]) -> u32 {
        let load = |offset: u32, size: usize| -> Option<u32> {
            if offset == ETHERTYPE {
                return Some(ethertype);
            }
            let at = offset.wrapping_sub(NET) as usize;
            let bytes = net.get(at..at + size)?;
            Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let (mut at, mut a, mut x) = (0, 0_u32, 0_u32);
        loop {
            let Instruction { code, jt, jf, k } = code[at];
            at += 1;
            // A load beyond the packet ends the program with 0.
            let mut loaded = |offset, size| load(offset, size).map(|value| a = value).is_some();
            let there = match code {
                LD_WORD => loaded(k, 4),
                LD_HALF => loaded(k, 2),
                LD_BYTE => loaded(k, 1),
                LD_HALF_AT => loaded(k.wrapping_add(x), 2),
                _ => true,
            };
            if !there {
                return 0;
            }
            match code {
                AND => a &= k,
                SHIFT_LEFT => a <<= k,
                TO_INDEX => x = a,
                JUMP => at += k as usize,
                IF_EQUAL => at += usize::from(if a == k { jt } else { jf }),
                IF_ANY_BIT => at += usize::from(if a & k != 0 { jt } else { jf }),
                RETURN => return k,
                _ => {}
            }
        }
    }

    fn v4(protocol: u8, ends: [Ipv4Addr; 2], ports: [u16; 2], options: usize, fragment: u16) -> Vec<u8> {
        let mut packet = vec![0; 20 + 4 * options + 8];
        packet[0] = 0x45 + options as u8;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&ends[0].octets());
        packet[16..20].copy_from_slice(&ends[1].octets());
        let at = 20 + 4 * options;
        packet[at..at + 2].copy_from_slice(&ports[0].to_be_bytes());
        packet[at + 2..at + 4].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    fn v6(next: u8, ends: [Ipv6Addr; 2], ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0x60; 48];
        packet[6] = next;
        packet[8..24].copy_from_slice(&ends[0].octets());
        packet[24..40].copy_from_slice(&ends[1].octets());
        packet[40..42].copy_from_slice(&ports[0].to_be_bytes());
        packet[42..44].copy_from_slice(&ports[1].to_be_bytes());
        packet
    }

    proptest! {
        #[test]
        fn of_ipv4_what_is_wanted_is_kept(
            protocol in prop_oneof![Just(6_u8), Just(17), any::<u8>()],
            ends in [0_u32..3, 0_u32..3],
            ports in [0_u16..90, 0_u16..90],
            options in 0_usize..11,
            wanted_ports in prop::collection::vec(0_u16..90, 1..70),
            address in prop::option::of(0_u32..3),
        ) {
            let ends = ends.map(Ipv4Addr::from);
            let wanted = Wanted { protocol: 6, ports: wanted_ports, address: address.map(|n| Ipv4Addr::from(n).into()) };
            let keeps = protocol == 6
                && ports.iter().any(|port| wanted.ports.contains(port))
                && wanted.address.is_none_or(|address| ends.iter().any(|end| IpAddr::from(*end) == address));
            let code = program(&wanted, 96);
            prop_assert_eq!(run(&code, IPV4, &v4(protocol, ends, ports, options, 0)), if keeps { 96 } else { 0 });
            // Neither ARP nor data that only resembles IPv4.
            prop_assert_eq!(run(&code, 0x0806, &v4(protocol, ends, ports, options, 0)), 0);
        }

        #[test]
        fn of_ipv6_what_is_wanted_is_kept(
            next in prop_oneof![Just(17_u8), Just(6), Just(58)],
            ends in [0_u128..3, 0_u128..3],
            ports in [0_u16..90, 0_u16..90],
            wanted_ports in prop::collection::vec(0_u16..90, 1..70),
            address in prop::option::of(0_u128..3),
        ) {
            let ends = ends.map(|n| Ipv6Addr::from(n << 96 | n));
            let address = address.map(|n| Ipv6Addr::from(n << 96 | n).into());
            let wanted = Wanted { protocol: 17, ports: wanted_ports, address };
            let keeps = next == 17
                && ports.iter().any(|port| wanted.ports.contains(port))
                && wanted.address.is_none_or(|address| ends.iter().any(|end| IpAddr::from(*end) == address));
            prop_assert_eq!(run(&program(&wanted, 80), IPV6, &v6(next, ends, ports)), if keeps { 80 } else { 0 });
        }
    }

    #[test]
    fn later_fragments_are_kept_for_their_protocol() {
        let ends = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
        let wanted = Wanted { protocol: 17, ports: vec![6280], address: Some(ends[1].into()) };
        let code = program(&wanted, 96);
        assert_eq!(run(&code, IPV4, &v4(17, ends, [1, 2], 0, 185)), 96);
        assert_eq!(run(&code, IPV4, &v4(6, ends, [1, 2], 0, 185)), 0);
        let ends = [Ipv6Addr::LOCALHOST; 2];
        let code = program(&Wanted { address: None, ..wanted }, 96);
        // The fragment header's first byte is the protocol of the fragmented packet.
        assert_eq!(run(&code, IPV6, &v6(44, ends, [17 << 8, 0])), 96);
        assert_eq!(run(&code, IPV6, &v6(44, ends, [6 << 8, 6280])), 0);
    }

    #[test]
    fn the_kernel_takes_the_longest_program_that_there_can_be() {
        let wanted = Wanted { protocol: 6, ports: (0..64).collect(), address: None };
        // BPF_MAXINSNS.
        assert!(program(&wanted, 96).len() <= 4_096);
    }
}
