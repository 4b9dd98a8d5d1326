//! The options of a test: a row for each, and the type that holds what was given.

use std::path::PathBuf;

use crate::Program::{Iperf3, Netperf};
use crate::TestKind::{Curve, Rr, Stream, Transfer};
use crate::error::any;
use crate::reader::{AtLeast, Field, OneOf, Whole, put, range};
use crate::row::{Column, OptionRow, SpecValue, Topic, ValuePlace, WithPrograms};
use crate::values::{
    Address, BlockFlag, EngineFlag, PayloadFlag, RequestRate, SetFlag, above_zero, address, data_address, one_block,
    sending_rate,
};
use crate::{
    BitRate, ByteSize, CaptureSpec, Direction, EndOptions, Io, Mix, Nanos, Observe, Program, Spec, Strategy, TestKind,
    ValueError,
};

/// Makes [`TestOptions`] and the rows of a test. A line is the field that holds the option, the parser of its text, and its row.
macro_rules! options {
    ($($field:ident: $type:ty = $reader:expr, $row:expr;)*) => {
        /// The options that a test was given. `None`, `false` and an empty list are what was not given.
        #[derive(Debug, Clone, Default)]
        #[allow(missing_docs, clippy::struct_excessive_bools, reason = "the help of its row describes a field")]
        pub struct TestOptions {
            /// What is measured.
            pub test: TestKind,
            /// Whether HOST leads to an IPv6 address. Without `data` this decides the default block of datagrams.
            pub host_is_ipv6: bool,
            /// The socket and thread options of the near end.
            pub near: EndOptions,
            /// Those of the far end.
            pub far: EndOptions,
            $(pub $field: $type,)*
        }

        /// A row for each.
        pub(crate) const TEST_ROWS: &[OptionRow] = &[$(OptionRow {
            range: || range(&$reader),
            place: ValuePlace::Test {
                set: |options, text| put(&mut options.$field, &$reader, text),
                is_given: |options| options.$field.is_set(),
            },
            ..$row
        },)*];
    };
}

const TIMED: &[TestKind] = &[Stream, Rr, Curve];
const SINGLE: &[TestKind] = &[Stream, Rr, Transfer];
const TRIAL: &[TestKind] = &[Stream, Rr];
const SENDING: &[TestKind] = &[Stream, Transfer];
const ONE_WAY: &[TestKind] = &[Stream, Transfer, Curve];

/// An option that only this end carries out.
const NEAR: OptionRow = OptionRow { with_programs: WithPrograms::NearEnd, ..OptionRow::BASE };
/// An option whose value the code of each program checks.
const CHECKED: OptionRow = OptionRow { with_programs: WithPrograms::OwnCheck, ..OptionRow::BASE };
/// An option with a part for the far end that only an agent carries out.
const fn agents(asks: fn(&Spec) -> bool) -> WithPrograms {
    WithPrograms::FarEnd { asks, carried_by: &[] }
}

/// How threads wait.
const WAIT: &[(&str, Strategy)] = &[
    ("auto", Strategy::Auto),
    ("blocking", Strategy::Blocking),
    ("epoll", Strategy::Epoll),
    ("uring", Strategy::Uring),
];
/// System calls.
const IO: &[(&str, Io)] = &[("send-recv", Io::SendRecv), ("read-write", Io::ReadWrite)];
/// What observers read. TOML and JSON also write `off` as `false`.
const OBSERVE: &[(&str, Observe)] =
    &[("off", Observe::Off), ("counters", Observe::Counters), ("series", Observe::Series)];

options! {
    transport: Option<String> = any::<String>, OptionRow {
        key: "transport",
        value: Some("TRANSPORT"),
        help: "What carries the bytes [default: tcp]",
        fixes_search: true,
        columns: &[Column { name: "transport", value: |spec| Some(SpecValue::Name(spec.transport.to_string())) }],
        ..CHECKED
    };
    udp: bool = switch, OptionRow { key: "udp", short: Some('u'), help: "Short for --transport udp", fixes_search: true, ..CHECKED };
    flows: Option<u32> = Whole(1..=Spec::MAX_FLOWS), OptionRow {
        key: "flows",
        short: Some('P'),
        value: Some("N"),
        help: "Number of connections; with --both, in each direction [default: 1]",
        help_of: &[(Rr, "Number of connections [default: 1]")],
        fixes_search: true,
        columns: &[Column { name: "flows", value: |spec| Some(SpecValue::Count(spec.flows.into())) }],
        ..CHECKED
    };
    threads: Option<u32> = Whole(1..=Spec::MAX_FLOWS), OptionRow {
        key: "threads",
        value: Some("N"),
        topic: Topic::Calls,
        help: "Measuring threads at each end. Flows that share a thread share an epoll set or an io_uring [default: one per flow, \
               at most 64]",
        fixes_search: true,
        columns: &[Column { name: "threads", value: |spec| spec.threads.map(|count| SpecValue::Count(count.into())) }],
        ..NEAR
    };
    processes: Option<u32> = Whole(1..=Spec::MAX_FLOWS), OptionRow {
        key: "processes",
        value: Some("N"),
        default: Some("1"),
        topic: Topic::Calls,
        help: "Worker processes at each end; the flows are divided among them",
        fixes_search: true,
        with_programs: agents(|spec| spec.processes > 1),
        columns: &[Column { name: "processes", value: |spec| Some(SpecValue::Count(spec.processes.into())) }],
        ..OptionRow::BASE
    };
    reverse: bool = switch, OptionRow {
        key: "reverse",
        short: Some('R'),
        help: "Reverse direction: the far host sends, this host receives",
        fixes_search: true,
        columns: &[Column { name: "direction", value: |spec| named(spec.direction) }],
        ..CHECKED
    };
    both: bool = switch, OptionRow {
        key: "both",
        alias: Some("bidir"),
        help: "Both directions at the same time",
        help_of: &[(Rr, "")],
        fixes_search: true,
        ..CHECKED
    };
    spin: bool = switch, OptionRow {
        key: "spin",
        topic: Topic::Calls,
        help: "Busy-wait instead of sleeping. Lowest latency; uses one core per thread at each end",
        fixes_search: true,
        ..NEAR
    };
    wait: Option<Strategy> = OneOf(WAIT), OptionRow {
        key: "wait",
        value: Some("WAIT"),
        choices: &[
            ("auto", "Blocking calls with a thread per flow; io_uring or epoll where flows share a thread"),
            ("blocking", "Blocking calls only"),
            ("epoll", "One epoll set per thread"),
            ("uring", "One io_uring per thread: one call submits the sends and receives of all its flows"),
        ],
        topic: Topic::Calls,
        help: "How threads wait for sockets [default: auto]",
        fixes_search: true,
        columns: &[Column { name: "strategy", value: |spec| named(spec.strategy) }],
        ..NEAR
    };
    io: Option<Io> = OneOf(IO), OptionRow {
        key: "io",
        value: Some("IO"),
        choices: &[("send-recv", "send and recv"), ("read-write", "write and read")],
        default: Some("send-recv"),
        topic: Topic::Calls,
        help: "System calls that move the bytes of a stream",
        fixes_search: true,
        columns: &[Column { name: "io", value: |spec| named(spec.io) }],
        ..NEAR
    };
    payload: Option<PayloadFlag> = any::<PayloadFlag>, OptionRow {
        key: "payload",
        value: Some("KIND|FILE"),
        help: "Payload bytes: random, zeros, pattern (0 to 255), or a file of at most 64 KiB, repeated [default: random, and \
               different in each block where the path may compress them]",
        fixes_search: true,
        with_programs: agents(|spec| {
            spec.payload.is_some() && (!spec.is_stream() || spec.direction != Direction::Send)
        }),
        columns: &[Column {
            name: "payload",
            value: |spec| spec.payload.as_ref().map(|payload| SpecValue::Name(payload.to_string())),
        }],
        ..OptionRow::BASE
    };
    observe: Option<Observe> = observe, OptionRow {
        key: "observe",
        value: Some("OBSERVE"),
        choices: &[
            ("off", "CPU time per core only"),
            ("counters", "All counters before and after each pass"),
            ("series", "As counters, and cheap counters at each --observe-interval"),
        ],
        topic: Topic::Activity,
        help: "Counters to read on both hosts during the run [default: series; for a curve: counters]",
        fixes_search: true,
        ..NEAR
    };
    observe_interval: Option<Nanos> = AtLeast(Nanos(Spec::MIN_OBSERVE_INTERVAL_NS)), OptionRow {
        key: "observe-interval",
        value: Some("TIME"),
        default: Some("100ms"),
        topic: Topic::Activity,
        help: "Interval between two readings of --observe series",
        fixes_search: true,
        ..NEAR
    };

    data: Option<Address> = data_address, OptionRow {
        key: "data",
        value: Some("ADDR[:PORT]"),
        topic: Topic::Hosts,
        help: "Address of the far end's data sockets, with :PORT if a port is forwarded to the agent [default: the control \
               address]",
        fixes_search: true,
        with_programs: agents(|spec| spec.far.data_addr.is_some() || spec.far.data_at.is_some()),
        ..OptionRow::BASE
    };
    data_from: Option<Address> = address, OptionRow {
        key: "data-from",
        value: Some("ADDR"),
        topic: Topic::Hosts,
        help: "Address that the near end's data sockets bind to [default: the kernel's choice]",
        fixes_search: true,
        ..NEAR
    };
    ipv4: bool = switch, OptionRow {
        key: "ipv4",
        short: Some('4'),
        topic: Topic::Hosts,
        help: "Use IPv4 only",
        fixes_search: true,
        columns: &[Column { name: "family", value: |spec| named(spec.family) }],
        ..NEAR
    };
    ipv6: bool = switch, OptionRow {
        key: "ipv6", short: Some('6'), topic: Topic::Hosts, help: "Use IPv6 only", fixes_search: true, ..NEAR
    };
    speak: Option<Program> = Program::read, OptionRow {
        key: "speak",
        value: Some("PROGRAM"),
        topic: Topic::Hosts,
        help: "Measure against another program's server on HOST",
        ..CHECKED
    };

    block: Option<BlockFlag> = any::<BlockFlag>, OptionRow {
        key: "block",
        short: Some('l'),
        value: Some("SIZE"),
        help: "Bytes per send",
        tests: SENDING,
        columns: &[
            Column { name: "block", value: |spec| Some(SpecValue::Count(spec.block)) },
            Column {
                name: "mix",
                value: |spec| (!spec.mix.is_empty()).then(|| SpecValue::Name(Mix::of(&spec.mix).to_string())),
            },
        ],
        ..CHECKED
    };
    request: Option<ByteSize> = one_block, OptionRow {
        key: "block", value: Some("SIZE"), default: Some("1"), help: "Bytes per request", tests: &[Rr], ..CHECKED
    };
    sizes: Option<Vec<ByteSize>> = sizes, OptionRow {
        key: "block",
        value: Some("SIZE,..."),
        help: "List of sizes, separated by commas, instead of NetPIPE's",
        tests: &[Curve],
        ..CHECKED
    };
    reply: Option<ByteSize> = above_zero::<ByteSize>, OptionRow {
        key: "reply",
        value: Some("SIZE"),
        help: "Bytes per response [default: the size of the request]",
        tests: &[Rr],
        columns: &[Column { name: "reply", value: |spec| spec.reply.map(SpecValue::Count) }],
        ..CHECKED
    };
    first: Option<ByteSize> = above_zero::<ByteSize>, OptionRow {
        key: "first",
        short: Some('l'),
        value: Some("SIZE"),
        help: "Smallest block, bytes [default: 1]",
        tests: &[Curve],
        ..CHECKED
    };
    to: Option<ByteSize> = above_zero::<ByteSize>, OptionRow {
        key: "to",
        value: Some("SIZE"),
        help: "Largest block [default: 8MiB, or the transport's maximum]",
        tests: &[Curve],
        ..CHECKED
    };
    perturbation: Option<u64> = Whole(0..=Spec::MAX_BLOCK), OptionRow {
        key: "perturbation",
        value: Some("BYTES"),
        help: "Also measure each size plus and minus this many bytes; 0 for none [default: 3]",
        tests: &[Curve],
        ..CHECKED
    };
    stream: bool = switch, OptionRow {
        key: "stream",
        help: "Send blocks in one direction (NetPIPE -s) instead of round trips",
        tests: &[Curve],
        ..CHECKED
    };
    connect: bool = switch, OptionRow {
        key: "connect",
        help: "Open a new connection for each transaction (CRR): connect, request, response, close",
        tests: &[Rr],
        ..CHECKED
    };
    overlap_close: bool = switch, OptionRow {
        key: "overlap-close",
        help: "With --connect: close each connection only after the next one has sent its request, not before it opens. This raises \
               the rate; the result says so",
        tests: &[Rr],
        with_programs: agents(|spec| spec.overlap_close),
        columns: &[Column { name: "overlap_close", value: |spec| spec.overlap_close.then_some(SpecValue::Flag(true)) }],
        ..OptionRow::BASE
    };
    anatomy: bool = switch, OptionRow {
        key: "anatomy",
        help: "Break round trips down by the kernel's timestamps: sending, network, waking up and receiving, at each end. Only some \
               round trips are stamped; the figures of the others are not affected",
        tests: &[Rr],
        with_programs: agents(|spec| spec.anatomy),
        ..OptionRow::BASE
    };
    time: Option<Nanos> = above_zero::<Nanos>, OptionRow {
        key: "time",
        short: Some('t'),
        value: Some("TIME"),
        help: "Length of one trial [default: 1s]",
        help_of: &[
            (
                Stream,
                "Length of one trial, --warmup included [default: as long as the path needs to settle, at least 1s; with \
                 --responsiveness 20s]",
            ),
            (Curve, "Length of one trial of one size, at least 3 exchanges [default: computed from --budget]"),
        ],
        tests: TIMED,
        columns: &[
            Column { name: "stop", value: |spec| Some(SpecValue::Name(spec.stop.name().to_owned())) },
            Column { name: "stop_value", value: |spec| Some(SpecValue::Count(spec.stop.amount())) },
        ],
        ..CHECKED
    };
    bytes: Option<ByteSize> = above_zero::<ByteSize>, OptionRow {
        key: "bytes",
        short: Some('n'),
        value: Some("SIZE"),
        help: "End a trial after this many payload bytes instead of --time",
        help_of: &[(Transfer, "Number of bytes to transfer instead of --count, over all flows")],
        tests: SENDING,
        ..CHECKED
    };
    count: Option<u64> = Whole(1..=u64::MAX), OptionRow {
        key: "count",
        value: Some("N"),
        help: "End a trial after this many blocks instead of --time",
        help_of: &[
            (Rr, "End a trial after this many transactions instead of --time"),
            (Transfer, "Number of blocks to transfer, over all flows"),
        ],
        tests: SINGLE,
        ..CHECKED
    };
    warmup: Option<Nanos> = any::<Nanos>, OptionRow {
        key: "warmup",
        value: Some("TIME"),
        help: "Exclude this time at the start of each trial from the rates, instead of the start-up detected in the trial (TCP, \
               TLS, QUIC). 0s includes the start-up; byte counts always include it",
        help_of: &[(Rr, "Exclude this time at the start of each trial from the rate [default: 0s]")],
        tests: TRIAL,
        with_programs: WithPrograms::FarEnd { asks: |spec| spec.warmup_ns > 0, carried_by: &[Iperf3, Netperf] },
        columns: &[Column { name: "warmup_ns", value: |spec| Some(SpecValue::Count(spec.warmup_ns)) }],
        ..OptionRow::BASE
    };
    stall: Option<Nanos> = AtLeast(Nanos(Spec::MIN_STALL_NS)), OptionRow {
        key: "stall",
        value: Some("TIME"),
        default: Some("3s"),
        topic: Topic::Precision,
        help: "End a trial in which no byte moves for this long, and mark it stalled",
        ..NEAR
    };
    rate: Option<BitRate> = sending_rate, OptionRow {
        key: "rate",
        value: Some("RATE"),
        help: "Limit the sending rate, over all flows of a direction; max means no limit [default: max; for udp 1Mbit, except to \
               this host and in a lab]",
        help_of: &[(Curve, "With --stream: limit the sending rate [default: no limit]")],
        tests: ONE_WAY,
        columns: &[Column { name: "rate_bps", value: |spec| spec.rate_bps.map(SpecValue::Count) }],
        ..CHECKED
    };
    request_rate: Option<RequestRate> = any::<RequestRate>, OptionRow {
        key: "rate",
        value: Some("RATE"),
        help: "Send requests at a fixed rate without waiting for responses (open loop): 1000/s is requests per second, 1Mbit is a \
               rate of request bytes. Round trips are timed from when the request was due",
        tests: &[Rr],
        ..CHECKED
    };
    burst: Option<ByteSize> = above_zero::<ByteSize>, OptionRow {
        key: "burst",
        value: Some("SIZE"),
        help: "With --rate: most bytes to send at once to catch up after a delay [default: the bytes of 100 ms, not at once but \
               a tenth faster for each ms of delay]",
        tests: SENDING,
        ..NEAR
    };
    unpaced: bool = switch, OptionRow {
        key: "unpaced",
        help: "On udp without --rate: send as fast as this host can. Without this flag, the sender keeps to the free space in \
               the receiver's socket, so that only the path loses datagrams",
        help_of: &[(
            Curve,
            "With --stream on udp: send as fast as this host can, without regard to the free space of the receiver's socket",
        )],
        tests: ONE_WAY,
        ..CHECKED
    };
    drain: Option<BitRate> = above_zero::<BitRate>, OptionRow {
        key: "drain",
        value: Some("RATE"),
        help: "Limit the receiver's reading rate, over all flows of a direction, as a slow application does [default: no limit]",
        tests: &[Stream],
        with_programs: agents(|spec| spec.far.drain_bps.is_some()),
        ..OptionRow::BASE
    };
    find_no_loss: bool = switch, OptionRow {
        key: "find-no-loss",
        help: "Search for the highest rate of datagrams without loss, as RFC 2544 does. Each trial is a search of 8 steps of \
               --time each",
        tests: &[Stream],
        with_programs: agents(|spec| spec.no_loss),
        ..OptionRow::BASE
    };
    probe: Option<u32> = Whole(1..=Spec::MAX_PROBES), OptionRow {
        key: "probe",
        value: Some("N"),
        implied: Some("100"),
        help: "Send N small requests per second on a separate connection, before and during the stream [default: 100 if given \
               without N]. Reports latency without load and under load, bufferbloat, and responsiveness (RPM)",
        tests: &[Stream],
        with_programs: agents(|spec| spec.probe.is_some() && !spec.responsiveness),
        ..OptionRow::BASE
    };
    responsiveness: bool = switch, OptionRow {
        key: "responsiveness",
        help: "Measure responsiveness under working conditions (RPM, draft-ietf-ippm-responsiveness): one more flow each second, \
               up to 16 (--flows), and 100 requests per second (--probe), each on a new connection",
        tests: &[Stream],
        with_programs: agents(|spec| spec.responsiveness),
        ..OptionRow::BASE
    };
    interval: Option<Nanos> = AtLeast(Nanos(Spec::MIN_INTERVAL_NS)), OptionRow {
        key: "interval",
        short: Some('i'),
        value: Some("TIME"),
        default: Some("100ms"),
        help: "Length of one entry of the series and, from 200ms up, time between two lines [lines by default: 1s]",
        tests: SENDING,
        ..NEAR
    };
    engine: Option<EngineFlag> = any::<EngineFlag>, OptionRow {
        key: "engine",
        value: Some("SEND[,RECEIVE]"),
        default: Some("copy"),
        topic: Topic::Calls,
        help: "Send method and, after a comma, receive method. To send: copy; sendfile, splice, zerocopy (tcp); mmsg, gso (udp); \
               ktls (tls). To receive: copy; trunc, map (tcp); mmsg, gro (udp). auto measures each in a pilot trial and uses the \
               fastest",
        tests: SENDING,
        ..CHECKED
    };
    delayed_reads: bool = switch, OptionRow {
        key: "delayed-reads",
        topic: Topic::Calls,
        help: "Let a blocking receiver sleep 50 µs between reads where that raises the goodput, by saving sender wake-ups: on fast \
               TCP streams, and on datagrams received several per call. Applications do not read this way; the result says \
               that it was used",
        help_of: &[(
            Curve,
            "With --stream: let the receiver of a fast TCP stream sleep 50 µs between reads where that raises the \
             throughput, by saving sender wake-ups. Applications do not read this way; the result says that it was used",
        )],
        tests: ONE_WAY,
        with_programs: agents(|spec| spec.delayed_reads),
        columns: &[Column { name: "delayed_reads", value: |spec| spec.delayed_reads.then_some(SpecValue::Flag(true)) }],
        ..OptionRow::BASE
    };

    cc_rules: Option<PathBuf> = file, OptionRow {
        key: "cc-rules",
        value: Some("FILE"),
        topic: Topic::Sockets,
        help: "Congestion-control rules per destination: a wad.conf of Net100, in its own syntax or as TOML. Needs --cc highspeed",
        fixes_search: true,
        is_file: true,
        with_programs: agents(|spec| !spec.far.cc_rules.is_empty()),
        note: "one file for both ends ([stacks](stacks.md))",
        ..OptionRow::BASE
    };
    set: Vec<SetFlag> = any::<SetFlag>, OptionRow {
        key: "set",
        value: Some("[near:|far:]KEY=VALUE"),
        topic: Topic::Settings,
        help: "Change a host setting before the first trial and restore it after the last: KEY on both hosts, near:KEY or far:KEY \
               on one. May be repeated; `thru tune --help` lists the keys. A far host needs `thru serve --allow-tuning`",
        repeats: true,
        fixes_search: true,
        with_programs: agents(|spec| !spec.settings.is_empty()),
        ..OptionRow::BASE
    };
    capture: Option<PathBuf> = file, OptionRow {
        key: "capture",
        value: Some("DIR"),
        implied: Some("."),
        topic: Topic::Capture,
        help: "Capture the packets of each trial into pcapng files in DIR [default: the current folder]. The far end captures too \
               if its agent runs with --allow-capture",
        tests: SINGLE,
        with_programs: agents(|spec| spec.capture.is_some()),
        ..OptionRow::BASE
    };
    snaplen: Option<u32> = Whole(CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX), OptionRow {
        key: "snaplen",
        value: Some("N"),
        topic: Topic::Capture,
        help: "Bytes to keep of each packet [default: 96]",
        tests: SINGLE,
        ..NEAR
    };
    fetch: Option<ByteSize> = any::<ByteSize>, OptionRow {
        key: "fetch",
        value: Some("SIZE"),
        topic: Topic::Capture,
        help: "Fetch at most this much of the far host's capture into DIR after each trial. The agent then deletes its copy; 0 \
               leaves the file on the far host [default: 64MiB]",
        tests: SINGLE,
        ..NEAR
    };
}

/// The name that a value has in documents.
fn named<T: serde::Serialize>(value: T) -> Option<SpecValue> {
    serde_json::to_value(value).ok()?.as_str().map(|name| SpecValue::Name(name.to_owned()))
}

/// A switch, as TOML and JSON write it.
fn switch(text: &str) -> Result<bool, ValueError> {
    match text {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        other => Err(ValueError::Switch { text: other.to_owned(), yes: "true", no: "false" }),
    }
}

fn observe(text: &str) -> Result<Observe, ValueError> {
    crate::reader::Reader::read(&OneOf(OBSERVE), if text == "false" { "off" } else { text })
}

fn sizes(text: &str) -> Result<Vec<ByteSize>, ValueError> {
    text.split(',').map(|size| one_block(size.trim())).collect()
}

fn file(text: &str) -> Result<PathBuf, ValueError> {
    match text {
        "" => Err(ValueError::Empty { text: String::new(), remedy: "write the name of a file or folder" }),
        _ => Ok(text.into()),
    }
}
