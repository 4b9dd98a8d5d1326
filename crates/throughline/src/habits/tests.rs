//! Each spelling of the table is accepted or answered as its row says.

use std::ffi::OsString;

use clap::Command;

use super::translate::{Line, of_no_command, translated};
use super::{Habit, Here, IPERF3, NETPERF, NETPERF_OF_TEST, Of};

const COMMANDS: [&str; 5] = ["stream", "rr", "transfer", "curve", "serve"];

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// A command line in our own options, or the error.
fn ours(line: &str) -> Result<String, String> {
    let words = translated(words(line), &crate::args::command()).map_err(|error| error.text().plain())?;
    Ok(words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
}

/// A text without its backticks.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// The words of a spelling with its value.
fn typed(row: &Habit, name: &str) -> String {
    let typed = if row.value.is_some() { format!("{name} {}", row.example) } else { name.to_owned() };
    if row.of == Of::NetperfTest { format!("-- {typed}") } else { typed }
}

/// What else a command line needs for this.
fn line(command: &str, row: &Habit, name: &str) -> String {
    let typed = typed(row, name);
    let host = match row.here {
        _ if command == "serve" => "",
        Here::Option("-H") | Here::Words(_, "HOST") => "",
        _ => "HOST",
    };
    let more = match name {
        "--username" => "--rsa-public-key-path f",
        "--rsa-public-key-path" | "--use-pkcs1-padding" if command == "stream" => {
            "--username n --rsa-public-key-path f"
        }
        "--rsa-private-key-path" => "--authorized-users-path f",
        _ if name.starts_with("--authorized") => "--rsa-private-key-path f",
        "--use-pkcs1-padding" | "--time-skew-threshold" => "--rsa-private-key-path f --authorized-users-path f",
        _ if command == "transfer" && !typed.contains("-n") && !typed.contains("-k") => "",
        _ => "",
    };
    let more = if more.starts_with(name) { "--username n" } else { more };
    format!("thru {command} {host} {more} {typed}")
}

/// Whether the parser takes a command line.
fn parses(line: &str) -> Result<(), String> {
    let taken = crate::args::command().try_get_matches_from(line.split_whitespace());
    match taken {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelp => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a row is the one of its spelling in a command.
fn is_reached(row: &Habit, name: &str, root: &Command) -> bool {
    let value = row.value.map(|_| row.example);
    COMMANDS.iter().any(|command| {
        let mut line = Line::new(root.find_subcommand(command).unwrap(), root);
        line.of_test = row.of == Of::NetperfTest;
        let found = line.row(name, value);
        found.is_err() || found.is_ok_and(|found| found.is_some_and(|found| std::ptr::eq(found, row)))
    })
}

#[test]
fn each_spelling_is_accepted_or_answered() {
    let root = crate::args::command();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (row, name) in [IPERF3, NETPERF, NETPERF_OF_TEST]
        .into_iter()
        .flatten()
        .flat_map(|row| row.names.iter().map(move |name| (row, *name)))
    {
        tried += 1;
        let lines: Vec<String> = COMMANDS.iter().map(|command| line(command, row, name)).collect();
        if !is_reached(row, name, &root) {
            // Commands have the same spelling, or another program's has it.
            let works = lines.iter().any(|line| ours(line).is_ok_and(|line| parses(&line).is_ok()));
            let answered =
                |said: String| matches!(row.here, Here::Answer(answer) if plain(&said).ends_with(&plain(answer)));
            let works = works || lines.iter().any(|line| ours(line).is_err_and(answered));
            if row.of == Of::NetperfTest || !works && row.note.is_empty() {
                wrong.push(format!("{}'s {name} leads nowhere", row.of.program()));
            }
            continue;
        }
        match row.here {
            Here::Answer(answer) => {
                let said: Vec<String> =
                    lines.iter().filter_map(|line| ours(line).err()).map(|said| plain(&said)).collect();
                if !said.iter().any(|said| said.ends_with(&plain(answer)) && said.contains(name)) {
                    wrong.push(format!("{name}: {said:?}"));
                }
            }
            _ => {
                let results: Vec<_> = lines.iter().map(|line| ours(line).and_then(|line| parses(&line))).collect();
                let is_only_ambiguous =
                    results.iter().any(|result| result.as_ref().is_err_and(|what| what.contains("for netperf: ")));
                if !is_only_ambiguous && !results.iter().any(Result::is_ok) {
                    wrong.push(format!("{name}: {results:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 150, "{tried}");
}

#[test]
fn options_of_iperf3_become_ours() {
    for (typed, meant) in [
        ("stream h -M 1400", "stream h --mss=1400"),
        ("stream h -uR -P4 -b 0", "stream h -u -R -P 4 --rate=max"),
        ("stream -c fd00::1 -p 7000", "stream -c [fd00::1]:7000"),
        ("stream -p 7000 --client h", "stream -H h:7000"),
        ("stream h --port=7000 -Z", "stream h:7000 --engine=sendfile"),
        ("stream h -S 0xb8 -O 2", "stream h --dscp=46 --warmup=2"),
        ("stream h -B 192.0.2.1%eth1 -A 1", "stream h --data-from=192.0.2.1 --device=eth1 --pin=1,"),
        ("stream h --parallel 4 --bitrate 10M --length 1K", "stream h --flows=4 -b 10M --block=1K"),
        ("stream h --congestion bbr --rcv-timeout 500", "stream h --cc=bbr --stall=500ms"),
        ("stream h --json-stream -k 1K", "stream h --live --count=1024"),
        ("stream h --json -t 2", "stream h --json -t 2"),
        ("stream h --json - -t 2", "stream h --json - -t 2"),
        ("rr h -- -r 1,8192", "rr h --block=1 --reply=8192"),
        ("rr h -r 64", "rr h --block=64 --reply=64"),
        ("stream h -m 1400", "stream h --block=1400"),
        ("stream -m h", "stream --transport=mptcp h"),
        ("stream h -- -s 64K -S 32K", "stream h --sndbuf=64K,32K --rcvbuf=64K,32K"),
        ("curve h -l 8", "curve h -l 8"),
        ("serve -p 7000 -1", "serve --once --listen=127.0.0.1:7000 --listen=[::1]:7000"),
        ("serve -B :: -p 7000", "serve --listen=[::]:7000"),
        ("serve --invite -p 7000", "serve --invite --listen=[::]:7000"),
        ("ab h --a -N --b x", "ab h --a -N --b x"),
        ("lab run dsl -- iperf3 -Z", "lab run dsl -- iperf3 -Z"),
    ] {
        assert_eq!(ours(&format!("thru {typed}")).unwrap(), format!("thru {meant}"));
    }
}

#[test]
fn others_are_answered() {
    for (typed, said) in [
        ("rr h -t TCP_RR", "netperf's -t TCP_RR is `thru rr HOST` here; -t is the time"),
        ("stream h -t TCP_STREAM", "netperf's -t TCP_STREAM is `thru stream HOST` here; -t is the time"),
        (
            "stream h -S 0x01",
            "iperf3's -S: 0x01 includes ECN bits, which --dscp leaves alone: --dscp 0, and with --udp also --ecn ect0 or ect1",
        ),
        ("stream h --forceflush", "iperf3's --forceflush is not needed: every line is written at once"),
        ("stream h:1 -p 2", "h:1 has a port already: leave out -p 2"),
        ("stream -p 2", "-p 2 is the port of HOST, which is missing: HOST:2"),
        ("stream h -Z --skip-rx-copy", "-Z and --skip-rx-copy are both --engine here: write that once"),
        ("rr h -l 10", "-l is --block for iperf3 and --time for netperf: write the one that you mean"),
        ("stream h -L 5", "iperf3's -L has no counterpart: the kernel chooses the IPv6 flow label"),
        ("stream -s", "iperf3's -s is the command `thru serve` here"),
        ("stream h -M", "-M needs a value: -M BYTES"),
        ("stream h -1", "iperf3's -1 is --once here, an option of `thru serve`"),
        (
            "check h -P 4",
            "iperf3's -P is --flows here, an option of `thru stream`, `thru rr`, `thru curve`, `thru transfer`, `thru advise`",
        ),
    ] {
        assert_eq!(ours(&format!("thru {typed}")).unwrap_err(), said);
    }
}

#[test]
fn a_line_without_a_command_is_answered() {
    let said = |line: &str| of_no_command(&words(line)).map(|error| error.text().plain());
    assert_eq!(said("thru -c h -P 4").unwrap(), "iperf3's -c HOST is `thru stream h -P 4` here");
    assert_eq!(said("thru -u -c h").unwrap(), "iperf3's -c HOST is `thru stream h -u` here");
    assert_eq!(said("thru -s").unwrap(), "iperf3's -s is `thru serve` here");
    assert_eq!(said("thru -H h -t TCP_RR").unwrap(), "netperf's -H h is `thru stream h` or `thru rr h` here");
    for line in ["thru stream -c h", "thru h", "thru --units bytes stream -c h", "thru -V"] {
        assert_eq!(said(line), None, "{line}");
    }
}
