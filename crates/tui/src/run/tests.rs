#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;

use model::{
    EndPass, EndTally, Ending, FlowReading, FlowTally, Ledger, Pass, Pattern, Reading, SocketFacts, Stop, TcpReading,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::*;
use crate::screen::DrawMoment;

const SECOND: u64 = 1_000_000_000;
const PLAIN: ViewLook = ViewLook { plain: true, rates: text::RateUnit::Bits };

fn drawn(view: &RunView, width: u16, height: u16, moment: DrawMoment) -> ratatui::buffer::Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, Duration::from_secs(7), moment)).unwrap().buffer.clone()
}

fn picture(view: &RunView) -> String {
    crate::screen::lines(&drawn(view, 80, 24, DrawMoment::Now)).join("\n")
}

fn started(title: &str, cells: Vec<model::Cell>) -> RunView {
    let mut view = RunView::new(title.to_owned(), PLAIN);
    view.take(RunNews::Event(Box::new(Event::Run(RunHeader { cells, ..RunHeader::default() }))));
    view
}

fn tell(view: &mut RunView, event: Event) {
    view.take(RunNews::Event(Box::new(event)));
    // What is left stays the same, however long the test takes.
    view.phase_began = Instant::now() + Duration::from_secs(3_600);
}

fn reading(end: &str, number: u32, flows: u32) -> Event {
    let flow = |flow: u32| {
        let bytes = u64::from(number) * 6_000_000 * u64::from(flow + 1);
        FlowReading {
            flow,
            connections: 1,
            direction: Direction::Send,
            bytes_sent: bytes,
            bytes_received: bytes,
            transactions: 0,
            tcp: Some(TcpReading {
                retransmits: u64::from(number * flow),
                rtt_ns: 10_000_000 + u64::from(number) * 500_000,
                cwnd_bytes: 128_000,
            }),
            datagrams: None,
        }
    };
    let reading = Reading {
        number,
        at_ns: u64::from(number) * SECOND,
        first_arrival_ns: Some(0),
        flows: (0..flows).map(flow).collect(),
        cpu: None,
    };
    Event::Reading { pass: 0, end: end.to_owned(), reading }
}

fn trial(cell: u32, value: f64) -> Trial {
    let flow = FlowTally {
        socket: SocketFacts { retransmits: Some(3), ..SocketFacts::default() },
        tcp: vec![model::TcpSample {
            busy_ns: Some(1_000),
            rwnd_limited_ns: Some(500),
            sndbuf_limited_ns: Some(100),
            ..model::TcpSample::default()
        }],
        ..FlowTally::default()
    };
    let near = EndTally { flows: vec![flow], ..EndTally::default() };
    Trial {
        cell,
        pass: 0,
        position: 0,
        near: near.into(),
        far: EndTally::default().into(),
        ledger: Ledger::default(),
        value: Some(value),
        verdicts: vec![],
    }
}

fn pass(busy: [u64; 2]) -> Event {
    let end = |busy: u64| EndPass {
        cpu: Some(CpuUse {
            window_ns: 100,
            resolution_ns: 1,
            cores: vec![
                model::CoreUse { core: 0, user_ns: busy, ..Default::default() },
                model::CoreUse { core: 1, softirq_ns: busy / 2, ..Default::default() },
            ],
        }),
        ..EndPass::default()
    };
    Event::Pass(Pass { near: end(busy[0]), far: end(busy[1]), ..Pass::default() })
}

fn stream() -> RunView {
    let spec = Spec { stop: Stop::TimeNs(10 * SECOND), flows: 2, ..Spec::new("tcp", Pattern::Stream) };
    let mut view = started("thru stream b --flows 2", vec![model::Cell::new(0, spec)]);
    tell(
        &mut view,
        Event::Phase(Phase { activity: "trial 1".into(), remaining_ns: Some(9 * SECOND), ..Phase::default() }),
    );
    for number in 1..=6 {
        tell(&mut view, reading("near", number, 2));
        tell(&mut view, reading("far", number, 2));
    }
    view
}

#[test]
fn a_stream_is_shown_over_time_with_its_flows() {
    let mut view = stream();
    insta::assert_snapshot!("stream", picture(&view));
    tell(&mut view, Event::Trial(trial(0, 144e6)));
    tell(&mut view, pass([95, 40]));
    insta::assert_snapshot!("stream_after_a_trial", picture(&view));
    view.switch_unit();
    assert!(picture(&view).contains("MB/s"));
}

#[test]
fn the_cores_are_those_of_the_last_second_and_after_a_trial_those_of_its_pass() {
    let mut view = stream();
    view.cores = [None, None];
    let busiest = |view: &RunView| view.cores.each_ref().map(|cpu| cpu.as_ref().map(|cpu| cpu.busiest()[0]));
    let Event::Pass(Pass { near, .. }) = pass([95, 40]) else { return };
    for (end, shown) in [("near", [Some(0.95), None]), ("far", [Some(0.95), Some(0.95)])] {
        let Event::Reading { pass, reading, .. } = reading(end, 1, 1) else { return };
        let reading = Reading { cpu: near.cpu.clone(), ..reading };
        tell(&mut view, Event::Reading { pass, end: end.to_owned(), reading });
        assert_eq!(busiest(&view), shown);
    }
    // A host that is not observed over time says nothing.
    tell(&mut view, reading("near", 2, 1));
    assert_eq!(busiest(&view), [Some(0.95); 2]);
    tell(&mut view, pass([30, 40]));
    assert_eq!(busiest(&view), [Some(0.3), Some(0.4)]);
}

#[test]
fn a_curve_grows_with_the_range_of_its_passes() {
    let point = |id: u32| {
        model::Cell::new(id, Spec { block: 1 << id, stop: Stop::AboutNs(1_000), ..Spec::new("tcp", Pattern::Pingpong) })
    };
    let mut view = started("thru curve b", (0..17).map(point).collect());
    assert!(picture(&view).contains("no size has been measured yet"));
    for id in 0..17 {
        for noise in [0.9, 1.0, 1.2] {
            tell(&mut view, Event::Trial(trial(id, noise * (20_000.0 + f64::from(1 << id)))));
        }
    }
    tell(
        &mut view,
        Event::Phase(Phase { activity: "pass 4".into(), cells: 17, cells_done: 5, remaining_ns: Some(12 * SECOND) }),
    );
    insta::assert_snapshot!("curve", picture(&view));
}

#[test]
fn the_cells_of_a_plan_fill() {
    let cell = |id: u32| {
        let spec = Spec { block: 1 << (10 + id), ..Spec::new("tcp", Pattern::Stream) };
        model::Cell {
            levels: BTreeMap::from([("block".to_owned(), format!("{} KiB", 1 << id))]),
            ..model::Cell::new(id, spec)
        }
    };
    let mut view = started("thru run sizes.toml", (0..4).map(cell).collect());
    for (id, value) in [(0, 1e9), (1, 2e9), (0, 1.1e9), (0, 1.2e9)] {
        tell(&mut view, Event::Trial(trial(id, value)));
    }
    insta::assert_snapshot!("plan", picture(&view));
}

#[test]
fn the_clock_goes_on_and_the_last_picture_has_no_keys() {
    let mut view = RunView::new("thru stream b".into(), PLAIN);
    view.take(RunNews::Status("waiting for b: 2 clients before this one".into()));
    insta::assert_snapshot!("before", picture(&view));
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let done = terminal.draw(|frame| view.draw(frame, Duration::from_secs(90), DrawMoment::Paused)).unwrap();
    let later = crate::screen::lines(done.buffer);
    assert!(later[0].contains("paused") && later[0].ends_with("90 s"), "{}", later[0]);
    tell(&mut view, Event::End(Ending { how: "interrupted".into(), ..Ending::default() }));
    let last = crate::screen::lines(&drawn(&view, 80, 24, DrawMoment::Last)).join("\n");
    assert!(last.contains("interrupted") && !last.contains("quit"), "{last}");
}

#[test]
fn text_of_others_and_any_size_are_harmless() {
    let mut view = stream();
    view.take(RunNews::Note("a host called \u{1b}[2J\u{7}".into()));
    let shown = picture(&view);
    assert!(!shown.contains('\u{1b}') && shown.contains("a host called"), "{shown}");
    for (width, height) in [(1, 1), (3, 40), (20, 6), (79, 23), (400, 120)] {
        drawn(&view, width, height, DrawMoment::Now);
    }
}

#[test]
fn without_colours_there_are_none() {
    let colours = |look: ViewLook| {
        let mut view = stream();
        view.look = look;
        let buffer = drawn(&view, 80, 24, DrawMoment::Now);
        buffer.content.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colours(PLAIN), 0);
    assert!(colours(ViewLook::default()) > 10);
}

#[test]
fn of_many_flows_the_total_the_median_and_the_extremes_are_shown() {
    let spec = model::Spec { flows: 16, ..model::Spec::new("tcp", Pattern::Stream) };
    let mut view = started("stream", vec![model::Cell::new(0, spec)]);
    for number in 1..3 {
        tell(&mut view, reading("near", number, 16));
        tell(&mut view, reading("far", number, 16));
    }
    let newest = view.newest();
    let rows: Vec<_> = newest.iter().map(|(name, point)| (name.as_str(), point.flow)).collect();
    assert_eq!(rows, [("all 16", None), ("lowest", Some(0)), ("median", Some(8)), ("highest", Some(15))]);
}
