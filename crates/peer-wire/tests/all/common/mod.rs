//! Recorded sessions, by sender.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;

use pcap_file::pcap::PcapReader;

/// A recording: each TCP connection in the order of their first bytes, and the UDP datagrams.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) connections: Vec<Connection>,
    /// From the client?, and the bytes.
    pub(crate) datagrams: Vec<(bool, Vec<u8>)>,
}

/// The bytes of the two ends of a connection.
#[derive(Default)]
pub(crate) struct Connection {
    client_port: u16,
    pub(crate) from_client: Vec<u8>,
    pub(crate) from_server: Vec<u8>,
}

/// Reads the recording called `name`, of a server that listened on `server_port`. Loopback loses and reorders nothing, so that the
/// bytes follow each other as the packets do.
pub(crate) fn recording(name: &str, server_port: u16) -> Recording {
    // Also for the crate in ../../fuzz, which has a folder of its own.
    let mut above =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|above| above.join("crates/peer-wire/tests/data"));
    let path = above.find(|folder| folder.is_dir()).unwrap().join(format!("{name}.pcap"));
    let mut reader = PcapReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let mut recording = Recording::default();
    let mut places: BTreeMap<u16, usize> = BTreeMap::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        // Ethernet, IPv4, then TCP or UDP.
        let ip = &packet.data[14..];
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let segment = &ip[usize::from(ip[0] & 15) * 4..length.min(ip.len())];
        let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        let from_client = port(2) == server_port;
        if ip[9] == 17 {
            recording.datagrams.push((from_client, segment[8..].to_vec()));
            continue;
        }
        let said = &segment[usize::from(segment[12] >> 4) * 4..];
        if said.is_empty() {
            continue;
        }
        let client_port = if from_client { port(0) } else { port(2) };
        let place = *places.entry(client_port).or_insert_with(|| {
            recording.connections.push(Connection { client_port, ..Connection::default() });
            recording.connections.len() - 1
        });
        let connection = &mut recording.connections[place];
        assert_eq!(connection.client_port, client_port);
        if from_client { &mut connection.from_client } else { &mut connection.from_server }.extend_from_slice(said);
    }
    recording
}
