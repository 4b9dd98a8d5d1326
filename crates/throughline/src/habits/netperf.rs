//! The options of netperf, as of version 2.7 (its help): its own, and after `--` those of its tests.

use super::spelling::Of::{Netperf, NetperfTest};
use super::spelling::{Habit, Here, dscp, is_absent, local, one};

const fn answer(names: &'static [&'static str], text: &'static str) -> Habit {
    Habit::answer(Netperf, names, text)
}

const fn of_test(names: &'static [&'static str], text: &'static str) -> Habit {
    Habit::answer(NetperfTest, names, text)
}

/// A test of netperf.
const fn test(name: &'static str, is: fn(Option<&str>) -> bool, text: &'static str) -> Habit {
    answer(&["-t"], text).value(name, name).only(is)
}

const NOT_NEEDED_CPU: &str = "is not needed: the CPU use of both ends is always recorded";
const NO_ALIGNMENT: &str = "has no counterpart: buffers begin at a page";
const UNITS: &str = "is not needed: rates choose their unit. `--units bytes` shows bytes per second";

fn has_comma(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.contains(','))
}

/// A row for each option.
pub static NETPERF: &[Habit] = &[
    answer(&["-a"], NO_ALIGNMENT).value("SIZES", "8"),
    answer(&["-A"], NO_ALIGNMENT).value("SIZES", "8"),
    answer(&["-b"], "has no counterpart: `--burst SIZE` is for a stream with `--rate`")
        .value("N", "4")
        .note("`-b` is iperf3's here"),
    Habit::option(Netperf, &["-B"], "--name").value("TEXT", "text").note("in `thru stream`, `-B` is iperf3's"),
    answer(&["-c"], NOT_NEEDED_CPU).only(is_absent).note("`-c HOST` is iperf3's here"),
    answer(&["-C"], NOT_NEEDED_CPU).only(is_absent).note("`-C NAME` is iperf3's here"),
    answer(&["-d"], "has no counterpart: `-v` prints the whole report, and `thru why` the evidence"),
    Habit::option(Netperf, &["-D"], "--interval").value("TIME", "1"),
    answer(&["-f"], UNITS).value("UNIT", "m"),
    Habit::words(Netperf, &["-F"], |file| one("--payload", file), "--payload FILE").value("FILE", "/dev/null"),
    Habit::option(Netperf, &["-H"], "-H").value("HOST", "HOST").note("HOST alone does the same"),
    answer(
        &["-i"],
        "is the default here: trials repeat until the interval is narrow enough. `--trials N` takes exactly N",
    )
    .value("MAX,MIN", "10,3")
    .only(has_comma),
    Habit::words(Netperf, &["-I"], interval, "--target PERCENT")
        .value("95,WIDTH", "95,5")
        .note("half the width: `--target 2.5%`"),
    answer(&["-j"], "is not needed: percentiles are always recorded"),
    answer(&["-k"], "is `--as netperf-k` here: KEY=VALUE").note("`-k N` is iperf3's here"),
    Habit::option(Netperf, &["-K"], "--cc").value("NAME[,NAME]", "cubic"),
    Habit::option(Netperf, &["-l"], "--time").value("TIME", "10").note("in `thru stream`, `-l` is iperf3's: the block"),
    Habit::words(
        Netperf,
        &["-L"],
        |host| one("--data-from", host.split(',').next().unwrap_or(host)),
        "--data-from ADDR",
    )
    .value("ADDR", "127.0.0.1"),
    answer(&["-n"], "is not needed: the number of CPUs is in the inventory of each run")
        .value("N", "2")
        .note("`-n SIZE` is iperf3's here"),
    answer(
        &["-N"],
        "has no counterpart: every measurement has a control connection. `--speak` measures with servers that have none",
    ),
    answer(&["-o"], "has no counterpart: `--as csv` prints a table").value("SIZES", "0"),
    Habit::option(Netperf, &["-O"], "--as").value("FORMAT", "netperf-k").note("in `thru stream`, `-O` is iperf3's"),
    Habit { here: Here::Port, ..answer(&["-p"], "") }.value("PORT", "6280"),
    answer(&["-P"], "is `--quiet` here: it prints no banner").value("0", "0").only(|value| value == Some("0")),
    answer(&["-s"], "has no counterpart: `sleep 5; thru ...`").value("SECONDS", "5"),
    answer(&["-S"], "is `--keepalive TIME` here").note("in `thru stream`, `-S` is iperf3's"),
    test("TCP_STREAM", |name| name == Some("TCP_STREAM"), "is `thru stream HOST` here; `-t` is the time"),
    test("TCP_MAERTS", |name| name == Some("TCP_MAERTS"), "is `thru stream HOST --reverse` here; `-t` is the time"),
    test(
        "TCP_SENDFILE",
        |name| name == Some("TCP_SENDFILE"),
        "is `thru stream HOST --engine sendfile` here; `-t` is the time",
    ),
    test(
        "UDP_STREAM",
        |name| name == Some("UDP_STREAM"),
        "is `thru stream HOST --udp --rate max` here; `-t` is the time",
    ),
    test("TCP_RR", |name| name == Some("TCP_RR"), "is `thru rr HOST` here; `-t` is the time"),
    test("UDP_RR", |name| name == Some("UDP_RR"), "is `thru rr HOST --udp` here; `-t` is the time"),
    test("TCP_CRR", |name| name == Some("TCP_CRR"), "is `thru rr HOST --connect` here; `-t` is the time"),
    test(
        "OMNI",
        is_other_test,
        "is a test of netperf: `thru stream` and `thru rr` are the ones here; `-t` is the time",
    ),
    Habit::words(Netperf, &["-T"], |cores| local("--pin", cores), "--pin N,M")
        .value("N[,M]", "0,1")
        .note("in `thru stream`, `-T` is iperf3's"),
    answer(&["-v"], "has no levels: `-v` prints the whole report").value("LEVEL", "2").only(is_level),
    answer(&["-V"], "is `thru --version` here").note("in `thru stream`, `-V` is iperf3's"),
    answer(&["-W"], "has no counterpart: buffers are as many as the calls need").value("SIZES", "8"),
    answer(&["-w"], "has no counterpart: `--rate RATE` paces a stream and the requests of `thru rr`")
        .value("TIME", "10")
        .note("`-w` is iperf3's window here"),
    Habit::words(Netperf, &["-y"], |value| one("--priority", value), "--priority N").value("N[,N]", "1"),
    Habit::words(Netperf, &["-Y"], dscp, "--dscp N").value("TOS", "0xb8").note("N is TOS / 4"),
    answer(&["-Z"], "is `--token-file FILE` here").value("SECRET", "secret").note("in `thru stream`, `-Z` is iperf3's"),
];

/// The options that its tests have after `--`.
pub static NETPERF_OF_TEST: &[Habit] = &[
    of_test(&["-b"], "has no counterpart: `thru rr --flows N` keeps N requests outstanding").value("N", "4"),
    Habit::words(NetperfTest, &["-C"], |_| Ok(vec!["--cork".into()]), "--cork"),
    Habit::words(NetperfTest, &["-D"], |_| Ok(vec!["--nodelay".into()]), "--nodelay"),
    of_test(&["-h"], "is `--help` here"),
    Habit::option(NetperfTest, &["-H"], "--data").value("ADDR", "127.0.0.1"),
    of_test(&["-k", "-o", "-O"], "is `--as netperf-k` here: KEY=VALUE. `--as csv` prints a table"),
    Habit::option(NetperfTest, &["-K"], "--cc").value("NAME[,NAME]", "cubic"),
    of_test(&["-l"], "is `--bytes SIZE` or `--count N` here").value("N", "5"),
    Habit::option(NetperfTest, &["-L"], "--data-from").value("ADDR", "127.0.0.1"),
    Habit::words(NetperfTest, &["-m"], |size| one("--block", size.split(',').next().unwrap_or(size)), "--block SIZE")
        .value("SIZE", "1400")
        .only(is_level),
    of_test(&["-M"], "has no counterpart: the receiver takes what has arrived, up to a buffer").value("SIZE", "1400"),
    of_test(&["-n", "-N"], "is not needed: datagram sockets are connected, and the run has its control connection"),
    of_test(&["-p"], "has no counterpart: `--data-port PORT` is the first local port").value("MIN,MAX", "7000,8000"),
    Habit::words(NetperfTest, &["-P"], |ports| local("--data-port", ports), "--data-port N,M").value("N[,M]", "7000"),
    Habit::words(NetperfTest, &["-r"], sizes, "--block N --reply M").value("N,M", "1,8192"),
    of_test(&["-R"], "has no counterpart: packets are routed").value("N", "1"),
    Habit::words(NetperfTest, &["-s"], |size| buffers(size, true), "--sndbuf V, --rcvbuf V,").value("SIZE", "64K"),
    Habit::words(NetperfTest, &["-S"], |size| buffers(size, false), "--sndbuf ,V --rcvbuf ,V").value("SIZE", "64K"),
    of_test(&["-t"], "is `--udp` or `--transport NAME` here").value("TYPE", "stream"),
    of_test(&["-T"], "is `--udp` or `--transport NAME` here").value("PROTOCOL", "udp"),
    of_test(&["-w"], "has no counterpart: `--rate RATE` paces a stream and the requests of `thru rr`")
        .value("TIME", "10"),
];

/// Another of netperf's tests: capitals with an underscore, or `OMNI`.
fn is_other_test(name: Option<&str>) -> bool {
    let is_name = |name: &str| name.chars().all(|letter| letter.is_ascii_uppercase() || "_46".contains(letter));
    name.is_some_and(|name| is_name(name) && (name.contains('_') || name == "OMNI"))
}

fn is_level(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// A level of confidence and the width of an interval, both in percent.
fn interval(value: &str) -> Result<Vec<String>, String> {
    let (level, width) = value.split_once(',').unwrap_or((value, "5"));
    match (level, width.parse::<f64>()) {
        ("95", Ok(width)) if width > 0.0 => one("--target", &format!("{}%", width / 2.0)),
        ("95", _) => Err(format!("'{width}' is no width in percent")),
        _ => Err("intervals are at 95 % here: `--target PERCENT` is half their width".into()),
    }
}

fn sizes(value: &str) -> Result<Vec<String>, String> {
    let (request, reply) = value.split_once(',').unwrap_or((value, value));
    Ok(vec![format!("--block={request}"), format!("--reply={reply}")])
}

/// The send and receive buffers of one end.
fn buffers(value: &str, near: bool) -> Result<Vec<String>, String> {
    let (send, receive) = value.split_once(',').unwrap_or((value, value));
    let at = |option: &str, size: &str| if near { format!("{option}={size},") } else { format!("{option}=,{size}") };
    Ok(vec![at("--sndbuf", send), at("--rcvbuf", receive)])
}
