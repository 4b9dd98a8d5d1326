//! The options of iperf3, as of version 3.18 (its manual page).

use super::spelling::Of::{Iperf3, Iperf3Server};
use super::spelling::{Habit, Here, dscp, is_absent, is_zero, local, milliseconds, one};

const fn same(names: &'static [&'static str], ours: &'static str) -> Habit {
    Habit::option(Iperf3, names, ours)
}

const fn answer(names: &'static [&'static str], text: &'static str) -> Habit {
    Habit::answer(Iperf3, names, text)
}

const NO_SCTP: &str = "has no counterpart: `thru` does not measure SCTP. `thru stream --help` lists the transports";

/// A row for each option.
pub static IPERF3: &[Habit] = &[
    Habit { here: Here::Port, ..same(&["-p", "--port"], "") }
        .value("PORT", "6280")
        .note("of `thru serve`: the port of each `--listen`. An agent's port is 6280, not 5201"),
    answer(&["-f", "--format"], "is not needed: rates choose their unit. `--units bytes` shows bytes per second")
        .value("UNIT", "m"),
    answer(&["-i", "--interval"], "is `--quiet` here: it prints no lines").value("0", "0").only(is_zero),
    same(&["-i", "--interval"], "--interval").value("TIME", "1").note("the lines come once per second without it"),
    answer(&["-I", "--pidfile"], "has no counterpart: `thru serve & echo $! > FILE`, or a unit of systemd")
        .value("FILE", "f"),
    Habit::words(Iperf3, &["-F", "--file"], |file| one("--payload", file), "--payload FILE")
        .value("FILE", "/dev/null")
        .note("at most 64 KiB, repeated"),
    Habit::words(Iperf3, &["-A", "--affinity"], |cores| local("--pin", cores), "--pin N,M").value("N[,M]", "0"),
    Habit::words(Iperf3, &["-B", "--bind"], bind, "--data-from ADDR").value("ADDR[%DEV]", "127.0.0.1"),
    Habit::words(Iperf3Server, &["-B", "--bind"], |address| one("--listen", address), "--listen ADDR")
        .value("ADDR", "127.0.0.1"),
    same(&["--bind-dev"], "--device").value("DEV", "lo"),
    same(&["-V", "--verbose"], "--verbose"),
    same(&["-J"], "-J").note("short for `--as iperf3-json`: iperf3's document"),
    same(&["--json"], "--json").note("`thru`'s own document; `-J` is iperf3's"),
    Habit::words(Iperf3, &["--json-stream"], |_| Ok(vec!["--live".into()]), "--live")
        .note("`thru`'s own events, one JSON object per line"),
    answer(&["--json-stream-full-output"], "is `--live --json FILE` here: events as lines, and the document in a file"),
    answer(&["--logfile"], "has no counterpart: redirect the output (`> FILE`). Every run is stored as well")
        .value("FILE", "f"),
    answer(&["--forceflush"], "is not needed: every line is written at once"),
    answer(
        &["--timestamps"],
        "has no counterpart: lines have the time since the start, and `--live` has the start and end of each interval",
    ),
    Habit::words(Iperf3, &["--rcv-timeout"], |time| milliseconds("--stall", time), "--stall TIME").value("MS", "3000"),
    Habit::words(Iperf3, &["--snd-timeout"], |time| milliseconds("--user-timeout", time), "--user-timeout TIME")
        .value("MS", "3000"),
    answer(&["-d", "--debug"], "has no counterpart: `-v` prints the whole report, and `thru why` the evidence"),
    same(&["-v"], "--verbose").note("iperf3's `-v` is `thru --version`"),
    same(&["-h", "--help"], "--help").note("`-h` lists the usual options, `--help` all of them"),
    Habit::answer(Iperf3Server, &["-s", "--server"], "is the command `thru serve` here").only(is_absent),
    Habit::answer(
        Iperf3Server,
        &["-D", "--daemon"],
        "has no counterpart: run `thru serve` as a unit of systemd, or in the background (`&`)",
    )
    .only(is_absent),
    Habit::words(Iperf3Server, &["-1", "--one-off"], |_| Ok(vec!["--once".into()]), "--once"),
    Habit::answer(
        Iperf3Server,
        &["--idle-timeout"],
        "is not needed: an agent drops a client that is silent for `--client-timeout`",
    )
    .value("SECONDS", "10"),
    Habit::words(
        Iperf3Server,
        &["--server-bitrate-limit"],
        |rate| one("--max-rate", rate.split('/').next().unwrap_or(rate)),
        "--max-rate RATE",
    )
    .value("RATE[/N]", "1G/5")
    .note("clients must then request a `--rate`; faster ones are refused before the test"),
    Habit::words(Iperf3Server, &["--server-max-duration"], |time| one("--max-time", time), "--max-time TIME")
        .value("SECONDS", "60"),
    Habit::option(Iperf3Server, &["--rsa-private-key-path"], "--rsa-private-key-path").value("FILE", "f"),
    Habit::option(Iperf3Server, &["--authorized-users-path"], "--authorized-users-path").value("FILE", "f"),
    Habit::option(Iperf3Server, &["--time-skew-threshold"], "--time-skew-threshold").value("SECONDS", "10"),
    same(&["--use-pkcs1-padding"], "--use-pkcs1-padding"),
    answer(&["-c", "--client"], "needs a HOST, as in `thru stream HOST`").only(|host| host.is_none()),
    same(&["-c"], "-H").value("HOST", "HOST").note("HOST alone does the same"),
    Habit::words(Iperf3, &["--client"], |host| Ok(vec!["-H".into(), host.to_owned()]), "HOST").value("HOST", "HOST"),
    answer(&["--sctp"], NO_SCTP),
    answer(&["-X", "--xbind"], NO_SCTP).value("NAME", "n"),
    answer(&["--nstreams"], NO_SCTP).value("N", "1"),
    same(&["-u", "--udp"], "--udp")
        .note("without a rate both send 1 Mbit/s; `thru` sets no limit to loopback addresses and in a lab"),
    answer(
        &["--connect-timeout"],
        "has no counterpart: `thru` gives up after 25 s. `timeout 5 thru ...` ends it earlier",
    )
    .value("MS", "500"),
    Habit::words(Iperf3, &["-b", "--bitrate", "--bandwidth"], |_| one("--rate", "max"), "--rate max")
        .value("0", "0")
        .only(is_zero),
    answer(&["-b", "--bitrate", "--bandwidth"], "is `-b RATE --burst SIZE` here")
        .value("RATE/N", "1M/10")
        .only(|rate| rate.is_some_and(|rate| rate.contains('/'))),
    same(&["-b"], "-b").value("RATE", "1M").note("of each flow; `--rate` is the total of all flows"),
    Habit::words(Iperf3, &["--bitrate", "--bandwidth"], |rate| Ok(vec!["-b".into(), rate.to_owned()]), "-b RATE")
        .value("RATE", "1M"),
    answer(&["--pacing-timer"], "has no counterpart: `--burst SIZE` limits how much is sent at once")
        .value("US", "1000"),
    Habit::words(Iperf3, &["--fq-rate"], |rate| one("--pacing", rate), "--pacing RATE").value("RATE", "1G"),
    answer(&["--no-fq-socket-pacing"], "is not needed: sockets are paced only with `--pacing`"),
    answer(
        &["-t", "--time"],
        "has no counterpart, because every trial ends: give a long time, `-t 24h`. Ctrl-C ends it with a result",
    )
    .value("0", "0")
    .only(is_zero),
    same(&["-t", "--time"], "--time")
        .value("TIME", "10")
        .note("of one trial; `--trials 1` measures once, as iperf3 does"),
    same(&["-n", "--bytes"], "--bytes").value("SIZE", "10M").note("over all flows"),
    Habit::words(Iperf3, &["-k", "--blockcount"], blocks, "--count N").value("N[KMG]", "10K").note("over all flows"),
    same(&["-l", "--length"], "--block").value("SIZE", "1400").note("`thru curve -l` is NetPIPE's: the smallest block"),
    Habit::words(Iperf3, &["--cport"], |port| local("--data-port", port), "--data-port PORT").value("PORT", "7000"),
    same(&["-P", "--parallel"], "--flows").value("N", "4"),
    same(&["-R", "--reverse"], "--reverse"),
    Habit::words(Iperf3, &["--bidir"], |_| Ok(vec!["--both".into()]), "--both"),
    same(&["-w", "--window"], "--window").value("SIZE", "64K"),
    same(&["-M", "--set-mss"], "--mss").value("BYTES", "1400"),
    Habit::words(Iperf3, &["-N", "--no-delay"], |_| Ok(vec!["--nodelay".into()]), "--nodelay"),
    same(&["-4", "--version4"], "--ipv4"),
    same(&["-6", "--version6"], "--ipv6"),
    Habit::words(Iperf3, &["-S", "--tos"], dscp, "--dscp N").value("TOS", "0xb8").note("N is TOS / 4"),
    same(&["--dscp"], "--dscp").value("N", "46"),
    answer(&["-L", "--flowlabel"], "has no counterpart: the kernel chooses the IPv6 flow label").value("N", "1"),
    Habit::words(Iperf3, &["-Z", "--zerocopy"], |_| one("--engine", "sendfile"), "--engine sendfile"),
    Habit::words(Iperf3, &["--skip-rx-copy"], |_| one("--engine", "copy,trunc"), "--engine copy,trunc"),
    Habit::words(Iperf3, &["--gsro"], |_| one("--engine", "gso,gro"), "--engine gso,gro").note("with `--udp`"),
    same(&["-O", "--omit"], "--warmup").value("TIME", "2"),
    same(&["-T", "--title"], "--name").value("TEXT", "text").note("the run's name in the store"),
    answer(&["--extra-data"], "has no counterpart: `--name TEXT` keeps a name with the run").value("TEXT", "text"),
    same(&["-C", "--congestion", "--linux-congestion"], "--cc").value("NAME", "cubic"),
    answer(&["--get-server-output"], "is not needed: every result has the far end's figures (`thru show last -v`)"),
    answer(
        &["--udp-counters-64bit"],
        "is not needed: datagrams are always counted with 64 bits between `thru` and `thru serve`",
    ),
    Habit::words(Iperf3, &["--repeating-payload"], |_| one("--payload", "pattern"), "--payload pattern"),
    answer(&["--dont-fragment"], "is not needed: datagrams are never fragmented (DF)"),
    same(&["--username"], "--username").value("NAME", "n").note("with `--speak iperf3`"),
    same(&["--rsa-public-key-path"], "--rsa-public-key-path").value("FILE", "f").note("with `--speak iperf3`"),
    Habit::words(Iperf3, &["-m", "--mptcp"], |_| one("--transport", "mptcp"), "--transport mptcp"),
    answer(&["--cntl-ka"], "is not needed: both ends watch the control connection. `--keepalive TIME` is for the data"),
];

/// An address, perhaps with a device.
fn bind(value: &str) -> Result<Vec<String>, String> {
    match value.split_once('%') {
        // The scope of a link-local address is part of it.
        Some((address, device)) if !address.to_ascii_lowercase().starts_with("fe80:") => {
            Ok(vec![format!("--data-from={address}"), format!("--device={device}")])
        }
        _ => one("--data-from", value),
    }
}

/// A count with a binary suffix.
fn blocks(value: &str) -> Result<Vec<String>, String> {
    let (digits, shift) = match value.char_indices().last() {
        Some((at, 'k' | 'K')) => (&value[..at], 10),
        Some((at, 'm' | 'M')) => (&value[..at], 20),
        Some((at, 'g' | 'G')) => (&value[..at], 30),
        _ => (value, 0),
    };
    let count = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
    let count = count.ok_or_else(|| format!("'{value}' is no number of blocks"))?;
    one("--count", &count.to_string())
}
