//! Sentences as other crates write them.

use text::{OptionsAs, RateUnit, Said, Span, Spelling, Text, say};
use thiserror::Error;

/// An error as libraries have them.
#[derive(Debug, Error, Said)]
enum Fault {
    #[error("`--flows {flows}` needs {bytes} B: use `--flows {}`", flows / 2)]
    Flows { flows: u32, bytes: u64 },
    #[error("cannot read {0}")]
    Read(String),
    #[error(transparent)]
    Within(#[from] Inner),
    #[error("no answer")]
    Silent,
    #[error("the far end: {cause}")]
    Far { cause: Inner },
}

#[derive(Debug, Error, Said)]
#[error("use `--wait {how}`, see `thru explain wait`")]
struct Inner {
    how: &'static str,
}

fn flags(rates: RateUnit) -> Spelling {
    Spelling { options: OptionsAs::Flags, rates }
}

#[test]
fn a_sentence_has_typed_spans() {
    let (rate, host) = (Text::from(Span::Rate(9.41e9)), "h`1`");
    let text = say!(
        "{host} carries {rate}, {share:.1} % in {}: use `--flows {n}`",
        Text::from(Span::Time(1.5e6)),
        share = 2.25,
        n = 4
    );
    assert_eq!(
        text.spans(),
        [
            Span::Words("h`1` carries ".into()),
            Span::Rate(9.41e9),
            Span::Words(", 2.2 % in ".into()),
            Span::Time(1.5e6),
            Span::Words(": use ".into()),
            Span::Option { key: "flows".into(), value: Some("4".into()), equals: false },
        ]
    );
    assert_eq!(text.plain(), "h`1` carries 9.41 Gbit/s, 2.2 % in 1.50 ms: use `--flows 4`");
    assert_eq!(text.shown(flags(RateUnit::Bits)), "h`1` carries 9.41 Gbit/s, 2.2 % in 1.50 ms: use --flows 4");
    let plan = Spelling { options: OptionsAs::Keys, rates: RateUnit::Bits };
    assert_eq!(text.shown(plan), "h`1` carries 9.41 Gbit/s, 2.2 % in 1.50 ms: use `flows = 4`");
    assert_eq!(say!("`--probe={}`, {{}} {0:?}", 4).shown(flags(RateUnit::Bits)), "--probe=4, {} 4");
}

#[test]
fn a_rate_is_rounded_once() {
    // 1.0049 Gbit/s is 125.61 MB/s; from the rounded 1.00 Gbit/s it would be 125 MB/s.
    let shown = |bps| Text::from(Span::Rate(bps)).shown(flags(RateUnit::Bytes));
    assert_eq!((shown(1_004_900_000.0), shown(1_134_900_000.0)), ("126 MB/s".into(), "142 MB/s".into()));
}

#[test]
fn a_text_within_a_text_keeps_its_spans() {
    let inner = say!("use `--reverse`");
    let outer = say!("too slow: {inner}, or `thru why` ({})", Text::from(Span::Size(131_069)));
    assert_eq!(outer.spans().len(), 7);
    assert_eq!(outer.shown(flags(RateUnit::Bits)), "too slow: use --reverse, or `thru why` (131069 B)");
}

#[test]
fn an_error_says_what_it_displays() {
    let errors = [
        Fault::Flows { flows: 4, bytes: 10 },
        Fault::Read("a".into()),
        Fault::Within(Inner { how: "spin" }),
        Fault::Silent,
        Fault::Far { cause: Inner { how: "epoll" } },
    ];
    for error in &errors {
        assert_eq!(error.say().plain(), error.to_string());
    }
    let [flows, .., far] = &errors;
    assert_eq!(flows.say().shown(Spelling::default()), "--flows 4 needs 10 B: use --flows 2");
    assert_eq!(far.say().shown(Spelling::default()), "the far end: use --wait epoll, see `thru explain wait`");
}
