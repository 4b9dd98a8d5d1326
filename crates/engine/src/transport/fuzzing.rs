//! Entry points for coverage-guided tests of what this end decodes before or beside a trial.

use model::SocketFacts;

use super::handshake::{Admission, DatagramListener, FlowHello, HELLO_BYTES, SIGNAL_BYTES, Signal};
use super::tcp_info::TcpInfo;

/// The handshake of datagrams: decodes signals and hellos, and judges the datagrams of a sender that is not known.
///
/// # Panics
/// If a signal is not written as it was read, or if an answer is longer than the datagram.
pub fn signals(bytes: &[u8]) {
    let cookie = [7; 16];
    if let Some(hello) = FlowHello::decode(bytes, [&[0; 16], &cookie]) {
        assert_eq!(hello.encode(), bytes, "a hello is written as it was read");
    }
    for datagram in bytes.chunks(SIGNAL_BYTES) {
        let nonce = datagram.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let Some(signal) = Signal::decode(datagram, nonce) else { continue };
        assert_eq!(Signal::decode(&signal.encode(nonce), nonce), Some(signal), "a signal is read as it was written");
    }
    let Ok(mut listener) = DatagramListener::new() else { return };
    let from = ([192, 0, 2, 1], 9).into();
    // The first byte of a hello's nonce says whether a measurement expects it, so that both ways are taken.
    let read = |hello: &[u8; HELLO_BYTES]| {
        let known = FlowHello { cookie, trial: 0, link: u32::from(hello[8]), nonce: 1 };
        (hello[8] < 128).then_some(known)
    };
    for datagram in bytes.chunks(SIGNAL_BYTES) {
        let Admission::Answer(answer) = listener.judge(from, datagram, read) else { continue };
        assert!(answer.len() <= datagram.len(), "an answer is never longer");
        // The proof that only a receiver at the claimed address can send.
        let Some(Signal::Challenge(number)) = Signal::decode(&answer, 1) else { panic!("an answer is a challenge") };
        let Some(Signal::Hello(hello)) = Signal::read(datagram) else { panic!("only a hello is answered") };
        let proof = Signal::Proof(number, hello).encode(1);
        let _ = listener.judge(from, &proof, read);
        assert_eq!(listener.judge(from, &proof, read), Admission::Ignore, "a connection is admitted once");
    }
}

/// A kernel's answer to TCP_INFO, of any length and content.
pub fn tcp_info(bytes: &[u8]) {
    let Some(info) = TcpInfo::read(bytes) else { return };
    let _ = (info.sample(0), info.brief(), info.min_rtt_ns());
    info.negotiated(&mut SocketFacts::default());
}
