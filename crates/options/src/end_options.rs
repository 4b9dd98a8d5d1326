//! The options of sockets and threads, with separate values for each end: a row for each option, and the type that the rows make.

use std::net::{IpAddr, SocketAddr};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Program::{Iperf2, Iperf3, Netperf, Netpipe, Nttcp, Nuttcp};
use crate::error::any;
use crate::reader::{Field, OneOf, Reader, Whole, Within, range};
use crate::row::{Needs, OptionRow, Topic, ValuePlace, WithPrograms};
use crate::values::{Cores, above_zero, dscp, name};
use crate::{BitRate, ByteSize, Nanos, StackRule, ValueError};

/// How the sender of a datagram reacts to marks, as its ECN field says (RFC 3168, RFC 9331).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ecn {
    /// It does not react to marks: routers drop its datagrams instead.
    Off,
    /// It reacts to marks.
    Ect0,
    /// It reacts to marks at once, as L4S requires.
    Ect1,
}

impl Ecn {
    /// All, by their names.
    const NAMES: &[(&str, Self)] = &[("off", Self::Off), ("ect0", Self::Ect0), ("ect1", Self::Ect1)];

    /// The two bits of the field.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Off => 0b00,
            Self::Ect0 => 0b10,
            Self::Ect1 => 0b01,
        }
    }
}

/// Makes [`EndOptions`] and its rows. A line is the option's field in documents, the parser of its text, what the parsed value becomes in
/// the unit of the field, and the row. The fields in `others` belong to options of the test.
macro_rules! end_options {
    (
        rows { $($(#[$doc:meta])* $field:ident: $type:ty = $reader:expr, $unit:expr, $row:expr;)* }
        others { $($(#[$other_doc:meta])* $other:ident: $other_type:ty;)* }
    ) => {
        /// The socket and thread options of one end. Null means the kernel's default.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(default)]
        pub struct EndOptions {
            $($(#[$doc])* #[serde(skip_serializing_if = "is_unset")] pub $field: $type,)*
            $($(#[$other_doc])* #[serde(skip_serializing_if = "is_unset")] pub $other: $other_type,)*
        }

        impl EndOptions {
            /// The names of the fields in documents, in their order.
            pub const FIELDS: &[&str] = &[$(stringify!($field),)* $(stringify!($other),)*];
        }

        /// A row for each option.
        pub(crate) const END_ROWS: &[OptionRow] = &[$(OptionRow {
            range: || range(&$reader),
            place: ValuePlace::End {
                set: |end, text| {
                    end.$field = match text {
                        Some(text) => $unit(Reader::read(&$reader, text)?),
                        None => Default::default(),
                    };
                    Ok(())
                },
                is_set: |end| end.$field.is_set(),
            },
            ..$row
        },)*];
    };
}

/// What the rows have in common.
const SOCKET: OptionRow = OptionRow {
    topic: Topic::Sockets,
    fixes_search: true,
    with_programs: WithPrograms::AtFarEnd(&[]),
    place: ValuePlace::End { set: |_, _| Ok(()), is_set: |_| false },
    ..OptionRow::BASE
};
/// Those of TCP.
const TCP: OptionRow = OptionRow { needs: Needs::Tcp, ..SOCKET };
/// Those that are on or off.
const SWITCH: OptionRow = OptionRow { value: Some("on|off"), implied: Some("on"), ..TCP };

end_options! {
    rows {
        /// Requested SO_SNDBUF in bytes; `SocketFacts` has the obtained value.
        sndbuf: Option<u64> = above_zero::<ByteSize>, bytes, OptionRow {
            key: "sndbuf",
            value: Some("SIZE"),
            help: "Send buffer, SO_SNDBUF [default: the kernel's, which TCP autotunes]",
            own_listener: true,
            with_programs: WithPrograms::AtFarEnd(&[Iperf3, Netperf, Nttcp, Nuttcp, Iperf2]),
            note: "on shm: the ring",
            ..SOCKET
        };
        /// Requested SO_RCVBUF in bytes.
        rcvbuf: Option<u64> = above_zero::<ByteSize>, bytes, OptionRow {
            key: "rcvbuf",
            value: Some("SIZE"),
            help: "Receive buffer, SO_RCVBUF [default: the kernel's, which TCP autotunes]",
            own_listener: true,
            with_programs: WithPrograms::AtFarEnd(&[Iperf3, Netperf, Nttcp, Nuttcp, Iperf2]),
            ..SOCKET
        };
        /// TCP_NODELAY; null means on for round trips and off for streams.
        nodelay: Option<bool> = on_off, Some, OptionRow {
            key: "nodelay",
            help: "TCP_NODELAY [default: on for round trips, curves and streams with a rate, off for other streams]",
            with_programs: WithPrograms::AtFarEnd(&[Iperf3, Netperf, Netpipe, Nttcp, Nuttcp, Iperf2]),
            ..SWITCH
        };
        /// TCP_CORK.
        cork: Option<bool> = on_off, Some, OptionRow { key: "cork", help: "TCP_CORK [default: off]", ..SWITCH };
        /// TCP_CONGESTION: the name of a congestion control, or one that the agent loads, with its parameters (`fast:alpha=400`).
        cc: Option<String> = name, Some, OptionRow {
            key: "cc",
            short: Some('C'),
            value: Some("NAME[:P=V,...]"),
            help: "Congestion control: one of the kernel's, or one of `thru stacks list` with parameters, such as fast:alpha=400 \
                   [default: the kernel's]",
            needs: Needs::CongestionControl,
            with_programs: WithPrograms::AtFarEnd(&[Iperf3, Netperf]),
            note: "names: `thru host`; ordinary users may use those in `net.ipv4.tcp_allowed_congestion_control`; on quic `cubic`, `newreno` \
                   or `bbr`; [TCP stacks](stacks.md) of `thru`",
            ..SOCKET
        };
        /// TCP_MAXSEG in bytes.
        mss: Option<u32> = Whole(88..=32_767), Some, OptionRow {
            key: "mss",
            value: Some("BYTES"),
            help: "Maximum segment size in bytes, TCP_MAXSEG",
            own_listener: true,
            with_programs: WithPrograms::AtFarEnd(&[Iperf3]),
            ..TCP
        };
        /// Differentiated services code point, 0 to 63.
        dscp: Option<u8> = dscp, Some, OptionRow {
            key: "dscp",
            value: Some("N"),
            help: "Differentiated services code point (DSCP), 0 to 63 or a name such as ef, af41 or cs1",
            with_programs: WithPrograms::AtFarEnd(&[Iperf3, Netperf]),
            note: "IP_TOS or IPV6_TCLASS; names: `ef`, `va`, `af11` to `af43`, `cs0` to `cs7`, `le`, `df`",
            ..SOCKET
        };
        /// Explicit congestion notification of sent datagrams.
        ecn: Option<Ecn> = OneOf(Ecn::NAMES), Some, OptionRow {
            key: "ecn",
            value: Some("off|ect0|ect1"),
            help: "ECN field of sent datagrams [default: off]",
            needs: Needs::Datagrams,
            ..SOCKET
        };
        /// SO_PRIORITY: the band or class of the interface's queueing discipline.
        priority: Option<u32> = Whole(0..=2_147_483_647), Some, OptionRow {
            key: "priority",
            value: Some("N"),
            help: "Priority of the sent packets in this host's queues, SO_PRIORITY",
            note: "7 and more need CAP_NET_ADMIN; overrides what the kernel derives from `--dscp`",
            ..SOCKET
        };
        /// SO_BINDTODEVICE.
        device: Option<String> = name, Some, OptionRow {
            key: "device",
            value: Some("NAME"),
            help: "Network device of this end to bind to, SO_BINDTODEVICE; LOCAL,REMOTE for both ends",
            own_listener: true,
            is_local: true,
            note: "needs root before Linux 5.7",
            ..SOCKET
        };
        /// First local port: flow `i` of the near end uses port + `i`, the far end listens on the port.
        port: Option<u16> = Whole(1..=u16::MAX), Some, OptionRow {
            key: "data-port",
            value: Some("PORT"),
            help: "First port of this end's data sockets; LOCAL,REMOTE for both ends [default: any free port]",
            own_listener: true,
            is_local: true,
            with_programs: WithPrograms::AtFarEnd(&[Netperf]),
            note: "connection i takes PORT + i at the near end",
            ..SOCKET
        };
        /// SO_MAX_PACING_RATE in bit/s for each socket.
        max_pacing_bps: Option<u64> = above_zero::<BitRate>, |rate: BitRate| Some(rate.0), OptionRow {
            key: "pacing",
            value: Some("RATE"),
            help: "Kernel pacing rate of each socket, SO_MAX_PACING_RATE",
            with_programs: WithPrograms::AtFarEnd(&[Iperf3]),
            note: "udp needs the fq queueing discipline",
            ..SOCKET
        };
        /// TCP_NOTSENT_LOWAT in bytes.
        notsent_lowat: Option<u32> =
            Within(ByteSize(1)..=ByteSize(u32::MAX.into())), |size: ByteSize| u32::try_from(size.0).ok(), OptionRow {
            key: "notsent-lowat",
            value: Some("SIZE"),
            help: "Limit of unsent bytes above which a socket is not writable, TCP_NOTSENT_LOWAT",
            note: "default: two blocks of a stream with `--rate`, 16 KiB at least; else the kernel's",
            ..TCP
        };
        /// SO_KEEPALIVE with this idle time and interval in whole seconds, and three probes.
        keepalive_s: Option<u32> = Within(Nanos(SECOND_NS)..=Nanos(32_767 * SECOND_NS)), |time| rounded_up(time, SECOND_NS), OptionRow {
            key: "keepalive",
            value: Some("TIME"),
            help: "Send keepalive probes after this idle time and at this interval, 3 retries; rounded up to whole seconds",
            ..TCP
        };
        /// TCP_USER_TIMEOUT in milliseconds.
        user_timeout_ms: Option<u32> =
            Within(Nanos(MS_NS)..=Nanos(2_147_483_647 * MS_NS)), |time| rounded_up(time, MS_NS), OptionRow {
            key: "user-timeout",
            value: Some("TIME"),
            help: "Close a connection whose data is not acknowledged for this long, TCP_USER_TIMEOUT",
            note: "whole milliseconds, rounded up",
            ..TCP
        };
        /// SO_BUSY_POLL in microseconds.
        busy_poll_us: Option<u32> =
            Within(Nanos(0)..=Nanos(2_147_483_647 * US_NS)), |time: Nanos| u32::try_from(time.0 / US_NS).ok(), OptionRow {
            key: "busy-poll",
            value: Some("TIME"),
            help: "Busy-poll time of a blocking receive, SO_BUSY_POLL; kernel resolution 1 µs",
            note: "more than `net.core.busy_read` needs CAP_NET_ADMIN; `busy_poll_us` under `flows[].socket` is the value in force; acts on \
                   drivers with NAPI, not on loopback",
            ..SOCKET
        };
        /// Cores for the measuring threads: thread `i` is pinned to entry `i` modulo the length; empty for no pinning.
        pin: Vec<u32> = any::<Cores>, |cores: Cores| cores.0, OptionRow {
            key: "pin",
            value: Some("CORES"),
            help: "Cores for the measuring threads, such as 2, 0+2 or 0-3 [default: the scheduler's choice]",
            with_programs: WithPrograms::AtFarEnd(&[Iperf3]),
            note: "1,024 at most; thread i takes entry i; the list repeats if it is too short",
            ..SOCKET
        };

    }

    others {
        /// Rules of that congestion control for some destinations.
        cc_rules: Vec<StackRule>;
        /// Data address of this end: the far end listens on it (`--data`), the near end binds to it (`--data-from`).
        data_addr: Option<IpAddr>;
        /// Where the near end connects for data (an option of the far end), if the far end does not know it: a forwarded port, or a
        /// link-local address with its interface. Port 0 stands for the port at which the far end listens.
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        data_at: Option<SocketAddr>;
        /// Limit of this end's rate of reading a stream, bit/s over all flows that it receives; null for no limit.
        drain_bps: Option<u64>;
    }
}

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
const US_NS: u64 = 1_000;

fn is_unset<F: Field>(field: &F) -> bool {
    !field.is_set()
}

fn bytes(size: ByteSize) -> Option<u64> {
    Some(size.0)
}

fn rounded_up(time: Nanos, unit_ns: u64) -> Option<u32> {
    u32::try_from(time.0.div_ceil(unit_ns)).ok()
}

/// `on` or `off`, which TOML and JSON also write as `true` or `false`.
fn on_off(text: &str) -> Result<bool, ValueError> {
    match text {
        "on" | "yes" | "1" | "true" => Ok(true),
        "off" | "no" | "0" | "false" => Ok(false),
        _ => Err(ValueError::Switch { text: text.to_owned(), yes: "on", no: "off" }),
    }
}

impl EndOptions {
    /// Whether an option must be set on a listening socket before the handshake, so that the shared port cannot be used
    /// (tcp(7): buffer sizes affect the window scale only before `listen`).
    #[must_use]
    pub fn needs_own_listener(&self) -> bool {
        self.data_addr.is_some() || END_ROWS.iter().any(|row| row.own_listener && row.is_set(self))
    }
}
