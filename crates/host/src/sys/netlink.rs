//! Queueing disciplines by rtnetlink (rtnetlink(7), tc(8)).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, recv, send, socket_with};

use super::Qdisc;

/// The kernel puts at most this much into one datagram of a dump to a reader with room for it.
const ROOM: usize = 32 << 10;

/// The disciplines of all interfaces of this network namespace.
pub(super) fn qdiscs() -> io::Result<Vec<Qdisc>> {
    // No protocol number means NETLINK_ROUTE, which is 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(), SendFlags::empty())?;
    let mut buffer = vec![0; ROOM];
    let mut found = Vec::new();
    loop {
        let (length, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(found),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(entry)) => {
                    found.extend(qdisc(&entry, &socket));
                }
                _ => {}
            }
            // Messages begin at multiples of four bytes.
            let step = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(step.max(4)..).unwrap_or_default();
        }
    }
}

/// RTM_GETQDISC for all interfaces.
fn request() -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(ask));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// What an entry of the dump says; `None` for an interface that is gone by now.
fn qdisc(entry: &TcMessage, socket: &OwnedFd) -> Option<Qdisc> {
    let index = u32::try_from(entry.header.index).ok()?;
    let interface = netdevice::index_to_name(socket.as_fd(), index).ok()?;
    let parent = match entry.header.parent {
        TcHandle::ROOT => "root".to_owned(),
        TcHandle::INGRESS => "ingress".to_owned(),
        TcHandle { major, minor } => format!("{major:x}:{minor:x}"),
    };
    let mut found = Qdisc { interface, parent, ..Qdisc::default() };
    for attribute in &entry.attributes {
        match attribute {
            TcAttribute::Kind(kind) => found.kind.clone_from(kind),
            TcAttribute::Stats2(parts) => {
                for part in parts {
                    match part {
                        TcStats2::Basic(basic) => (found.bytes, found.packets) = (basic.bytes, basic.packets),
                        TcStats2::Queue(queue) => {
                            (found.drops, found.overlimits) = (queue.drops, queue.overlimits);
                            (found.requeues, found.backlog, found.qlen) = (queue.requeues, queue.backlog, queue.qlen);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dump_of_this_namespace_can_be_read() {
        // Each interface that is up has a discipline, but for those that the kernel does not list (noqueue).
        for found in qdiscs().unwrap() {
            assert!(!found.interface.is_empty() && !found.kind.is_empty() && !found.parent.is_empty(), "{found:?}");
        }
    }
}
