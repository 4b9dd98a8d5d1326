//! nttcp's codec: our two sides against each other, published lines, and invalid input. There is no recording
//! of the original program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::nttcp::{
    DEFAULT_FORMAT, Datagrams, Local, LocalAction, Options, PayloadPattern, Remote, RemoteAction, SEPARATED_FORMAT,
    Seen, Statistics, StatisticsFormat,
};
use peer_wire::{Turn, WireError};
use proptest::prelude::*;

fn counted() -> Statistics {
    Statistics { bytes: 8_388_608, buffer_bytes: 4096, buffers: 2048, calls: 2048, real_s: 0.0775, cpu_s: 0.05 }
}

/// Runs both sides of a session: the bytes of each, and the remote side's statistics as the local side parsed
/// them.
fn session(options: &Options) -> (Vec<u8>, Vec<u8>, Option<Statistics>) {
    let (mut here, mut there) = (Turn::default(), Turn::default());
    let mut local = Local::open(options, &mut here).unwrap();
    let mut remote = Remote::default();
    let (mut said, mut answered, mut theirs) = (Vec::new(), Vec::new(), None);
    loop {
        let (out, back) = (std::mem::take(&mut here.send), std::mem::take(&mut there.send));
        let quiet = out.is_empty() && back.is_empty();
        said.extend_from_slice(&out);
        answered.extend_from_slice(&back);
        remote.receive(&out, &mut there).unwrap();
        local.receive(&back, &mut here).unwrap();
        let (mut acts, mut acted) = (std::mem::take(&mut here.actions), std::mem::take(&mut there.actions));
        if quiet && acts.is_empty() && acted.is_empty() {
            break;
        }
        for action in acts.drain(..) {
            match action {
                LocalAction::Listen => local.listening(5038, &mut here).unwrap(),
                LocalAction::Transmit(port) => {
                    assert_eq!(port, 5039);
                    remote.counted(&counted(), &mut there).unwrap();
                }
                LocalAction::PeerStatistics(statistics) => theirs = Some(statistics),
                LocalAction::Verbose(line) => panic!("{line}"),
            }
        }
        for action in acted.drain(..) {
            match action {
                RemoteAction::Requested(requested) => {
                    assert_eq!(*requested, *options);
                    if !requested.transmits {
                        remote.listening(5039, &mut there).unwrap();
                    }
                }
                RemoteAction::Transmit(port) => {
                    assert_eq!(port, 5038);
                    remote.counted(&counted(), &mut there).unwrap();
                }
            }
        }
    }
    remote.ended().unwrap();
    local.ended(true).unwrap();
    (said, answered, theirs)
}

#[test]
fn the_line_is_the_one_that_was_seen() {
    // Of `nttcp -T -v -r -u host`.
    let options = Options { udp: true, verbose: true, ..Options::default() };
    let line = format!("nttcp@-t@-l4096@-n2048@-u@-v@-f@{DEFAULT_FORMAT}@-N1\n");
    assert_eq!(String::from_utf8(options.to_line()).unwrap(), line);
    assert_eq!(Options::from_line(line.trim_end()), Ok(options));
}

#[test]
fn either_side_may_transmit() {
    let (said, answered, theirs) = session(&Options { transmits: false, ..Options::default() });
    assert!(said.starts_with(b"nttcp@-r@") && answered.starts_with(b"dataport: 5039\n1  8388608"));
    let theirs = theirs.unwrap();
    assert_eq!((theirs.bytes, theirs.calls), (8_388_608, 2048));
    assert!((theirs.real_s - 0.0775).abs() < 1e-6, "{theirs:?}");
    let (said, answered, theirs) = session(&Options { nodelay: true, number: 2, ..Options::default() });
    assert!(said.ends_with(b"@-N2\ndataport: 5038\n") && answered.starts_with(b"2  8388608"));
    assert!(theirs.is_some());
}

#[test]
fn published_lines_are_read_and_written() {
    let format = StatisticsFormat::new(DEFAULT_FORMAT).unwrap();
    assert_eq!(format.titles(), "     Bytes  Real s   CPU s Real-MBit/s  CPU-MBit/s   Calls  Real-C/s   CPU-C/s\n");
    for line in [
        "l  8388608    0.08    0.05    865.7309   1342.1773    2177  28084.16   43540.0",
        "l134217728    0.19    0.03   5706.0205  35793.7804    2048  10883.37   68271.2",
    ] {
        let (mark, counted) = Statistics::from_line(line).unwrap();
        let written = format.line(mark, &counted);
        // CPU time has two digits, and so its rates are not found again.
        assert_eq!((&written[..38], &written[50..68]), (&line[..38], &line[50..68]));
    }
    assert_eq!(Statistics::from_line("nttcp-1: got EOF"), None);
}

#[test]
fn columns_that_touch_are_kept_apart_for_programs() {
    let fast =
        Statistics { bytes: 2_097_152, calls: 512, real_s: 0.000_457, cpu_s: 0.003_655, ..Statistics::default() };
    let touching = StatisticsFormat::new(DEFAULT_FORMAT).unwrap().line('1', &fast);
    assert!(touching.contains("5121120350.11"), "{touching}");
    let apart = StatisticsFormat::new(SEPARATED_FORMAT).unwrap().line('1', &fast);
    let (mark, read) = Statistics::from_line(&apart).unwrap();
    assert_eq!((mark, read.bytes, read.calls, read.cpu_s), ('1', 2_097_152, 512, 0.003_655), "{apart}");
    assert!((read.real_s / fast.real_s - 1.0).abs() < 1e-6, "{apart}");
}

#[test]
fn fixed_sizes_and_several_marks_are_as_the_program_has_them() {
    let of = |line: &str| Options::from_line(line).unwrap();
    assert_eq!(of("nttcp@-r@-x1000000@-l1000").count, 1000);
    assert_eq!(of("nttcp@@@-r@-x@1000000@-n100").bytes, 10_000);
    assert_eq!(of("x@-t@-r@-l@10").bytes, 10);
    assert!(of("nttcp@-r@-c").streams_pattern() && !of("nttcp@-r@-c@-u").streams_pattern());
    assert_eq!(of(r"n@-r@-S@a\@b\\c").seed, r"a@b\c");
}

#[test]
fn a_failing_receiver_and_wrong_options_are_reported() {
    let mut turn = Turn::default();
    let mut local = Local::open(&Options { transmits: false, ..Options::default() }, &mut turn).unwrap();
    let error = local.receive(b"nttcp-1: hello\ndataport: -1\n", &mut turn).unwrap_err();
    assert!(
        error.to_string().contains("nttcp, while waiting for the data port: the other end has no data socket"),
        "{error}"
    );
    for (line, named) in [
        ("nttcp@-l0", "-l '0'"),
        ("nttcp@-l100000000", "-l"),
        ("nttcp@-n1000000000", "-n"),
        ("nttcp@-m1.2.3.4:5", "multicast"),
        ("nttcp@-Q", "-Q"),
        ("nttcp@rm", "'rm'"),
        ("nttcp@-f@%9q", "no value after %"),
        ("nttcp@-x5@-l10", "0 buffers"),
        ("nttcp@-l", "-l needs a value"),
    ] {
        let (mut remote, mut turn) = (Remote::default(), Turn::default());
        let error = remote.receive(format!("{line}\n").as_bytes(), &mut turn).unwrap_err();
        assert!(error.what.to_string().contains(named) && !turn.send.is_empty(), "{line}: {error}");
    }
    let long = Options { seed: "x".repeat(1100), compare: true, ..Options::default() };
    assert!(Local::open(&long, &mut Turn::default()).is_err());
}

#[test]
fn marks_bound_the_datagrams_even_when_the_first_is_lost() {
    let mut seen = Datagrams::default();
    let all: Vec<Seen> = [4, 4096, 4096, 4, 4, 4].map(|bytes| seen.take(bytes)).to_vec();
    assert_eq!(all, [Seen::Start, Seen::Data, Seen::Data, Seen::End, Seen::End, Seen::End]);
    assert_eq!((seen.bytes, seen.count), (8192, 2));
    // The first end mark then counts as the start; a spare one ends the data.
    let mut seen = Datagrams::default();
    assert_eq!([4096, 4, 4].map(|bytes| seen.take(bytes)), [Seen::Data, Seen::Start, Seen::End]);
}

#[test]
fn the_pattern_goes_on_from_buffer_to_buffer_and_shows_each_wrong_byte() {
    let (mut one, mut two) = (PayloadPattern::new("seed"), PayloadPattern::new("seed"));
    let mut whole = [0; 1000];
    one.fill(&mut whole);
    let (first, second) = whole.split_at(300);
    assert_eq!((two.mismatches(first), two.mismatches(second)), (0, 0));
    whole[17] ^= 1;
    assert_eq!(PayloadPattern::new("seed").mismatches(&whole), 1);
    assert!(PayloadPattern::new("other").mismatches(&whole) > 900);
    let mut counts = [0_u32; 256];
    (0..256_000).for_each(|_| counts[usize::from(one.next_byte())] += 1);
    assert!(counts.iter().all(|count| (700..1300).contains(count)), "bytes are about evenly spread: {counts:?}");
}

fn serve<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(), WireError> {
    let (mut remote, mut turn) = (Remote::default(), Turn::default());
    for piece in pieces {
        remote.receive(piece, &mut turn)?;
        for action in std::mem::take(&mut turn.actions) {
            match action {
                RemoteAction::Requested(options) if !options.transmits => remote.listening(1, &mut turn)?,
                RemoteAction::Requested(_) => {}
                RemoteAction::Transmit(_) => remote.counted(&counted(), &mut turn)?,
            }
        }
    }
    remote.ended()
}

proptest! {
    #[test]
    fn options_are_parsed_as_written(
        flags in any::<[bool; 5]>(), bytes in 1..100_000_000_u64, count in 1..1_000_000_000_u64, gap_us in 0..10_000_000_u64,
        seed in "[ -~]{1,60}", window_kib in prop::option::of(1_u32..1 << 21), number in 0_u8..10,
    ) {
        let [transmits, nodelay, udp, verbose, compare] = flags;
        let options = Options {
            transmits, nodelay: nodelay && transmits, bytes, count, udp, verbose, compare, stream: compare, gap_us, window_kib, number,
            seed: if compare { seed } else { Options::default().seed }, ..Options::default()
        };
        let line = options.to_line();
        prop_assert_eq!(Options::from_line(std::str::from_utf8(&line).unwrap().trim_end_matches('\n')), Ok(options));
    }

    #[test]
    fn any_bytes_end_in_an_error_that_names_the_peer(said in prop::collection::vec(any::<u8>(), 0..1500)) {
        for piece in [1, said.len().max(1)] {
            prop_assert_eq!(serve(said.chunks(piece)).unwrap_err().peer, "nttcp");
        }
        let mut turn = Turn::default();
        let mut local = Local::open(&Options::default(), &mut turn).unwrap();
        if let Err(error) = local.receive(&said, &mut turn) {
            prop_assert_eq!(error.peer, "nttcp");
        }
        prop_assert!(local.ended(true).is_err());
    }

    #[test]
    fn any_line_and_any_format_are_taken_or_refused(line in "\\PC{0,80}", format in "[%.0-9a-z ]{0,40}") {
        let _ = (Statistics::from_line(&line), Options::from_line(&line));
        if let Ok(format) = StatisticsFormat::new(&format) {
            prop_assert!(format.line('l', &counted()).len() < 40 * 40);
        }
    }
}
