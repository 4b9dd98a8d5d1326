//! Both ends of a measurement in one process.

use std::net::IpAddr;

use engine::transport::{FlowHello, Link, ListenOptions, Rendezvous, Transport, transport};
use engine::{LegTally, Signals, TrialPlan, now_ns, run};
use model::{EndTally, Leg, Pattern, Role, Spec, TransportName};

/// Both ends' tallies.
pub(crate) struct Pair {
    pub(crate) near: LegTally,
    pub(crate) far: LegTally,
}

impl Pair {
    pub(crate) fn last(&self) -> (&EndTally, &EndTally) {
        (self.near.legs.last().expect("near has a leg"), self.far.legs.last().expect("far has a leg"))
    }
}

/// The transports whose ends need no launcher and that this machine can run within itself; prints a line for each that
/// it cannot.
pub(crate) fn transports() -> impl Iterator<Item = &'static dyn Transport> {
    engine::transport::transports().filter(|transport| transport.launcher().is_none()).filter(
        |transport| match missing(*transport) {
            Some(reason) => {
                println!("SKIPPED: {} between two ends of one machine: {reason}", transport.name());
                false
            }
            None => true,
        },
    )
}

/// What this machine lacks for `transport`.
fn missing(transport: &'static dyn Transport) -> Option<String> {
    if let Err(error) = transport.check_host() {
        return Some(error.to_string());
    }
    if transport.name() != "vsock" {
        return None;
    }
    // The sockets exist as soon as the machine can reach another one; the loopback is a separate module.
    let spec = Spec::new(transport.name(), Pattern::Stream);
    let options = ListenOptions::new([127, 0, 0, 1].into(), std::env::temp_dir(), [5; 16]);
    let mut listener = transport.listen(&spec, &options).expect("listens");
    let to = listener.rendezvous();
    let far = std::thread::spawn(move || listener.accept(now_ns() + 300_000_000).is_ok());
    let error = transport.connect(&spec, &to, &hello(options.cookie, 0)).err();
    assert_eq!(far.join().expect("far end"), error.is_none());
    error.map(|error| error.to_string())
}

pub(crate) fn one_leg(spec: &Spec) -> Vec<Leg> {
    vec![Leg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 }]
}

pub(crate) fn plan(spec: &Spec, role: Role, legs: &[Leg]) -> TrialPlan {
    TrialPlan {
        spec: spec.clone(),
        role,
        trial: 7,
        flows: 0..spec.flows,
        legs: legs.to_vec(),
        path: model::PathTimes::default(),
    }
}

pub(crate) fn measure(spec: &Spec, legs: &[Leg], address: &str) -> Pair {
    engine::pattern::check(spec).expect("a valid spec");
    let transport = transport(spec.transport.as_str()).expect("a known transport");
    let directory = tempfile::tempdir().expect("a directory");
    let cookie = std::array::from_fn(|index| (now_ns() >> (index % 8)) as u8);
    let options = ListenOptions::new(address.parse::<IpAddr>().unwrap(), directory.path().into(), cookie);
    let near_plan = plan(spec, Role::Active, legs);
    let connect_and_run = |to: &Rendezvous| {
        let connect = |link: u32| transport.connect(spec, to, &hello(cookie, link)).expect("connects");
        let links = near_plan.links().iter().map(|link| connect(link.index)).collect();
        run(&near_plan, transport, links, &Signals::new(), &mut |_| {}).expect("runs")
    };
    if transport.capabilities().single_ended {
        let to = Rendezvous { cookie, ..Rendezvous::default() };
        let near = connect_and_run(&to);
        return Pair {
            near,
            far: LegTally {
                legs: vec![EndTally::default()],
                spans: vec![],
                failure: None,
                elapsed_ns: 0,
                warm: vec![],
            },
        };
    }
    let mut listener = transport.listen(spec, &options).expect("listens");
    let to = listener.rendezvous();
    let far_plan = plan(spec, Role::Passive, legs);
    let far = std::thread::spawn(move || {
        let mut links: Vec<(u32, Link)> = far_plan
            .links()
            .iter()
            .map(|_| {
                listener.accept(now_ns() + 5_000_000_000).map(|(hello, link)| (hello.link, link)).expect("accepts")
            })
            .collect();
        links.sort_by_key(|(index, _)| *index);
        run(&far_plan, transport, links.into_iter().map(|(_, link)| link).collect(), &Signals::new(), &mut |_| {})
            .expect("runs")
    });
    let near = connect_and_run(&to);
    Pair { near, far: far.join().expect("far end") }
}

pub(crate) fn hello(cookie: [u8; 16], link: u32) -> FlowHello {
    FlowHello::new(cookie, 7, link).expect("random numbers")
}

pub(crate) fn check_exact(spec: &Spec, pair: &Pair, what: &str) {
    assert!(pair.near.failure.is_none(), "{what}: near {:?}", pair.near.failure);
    assert!(pair.far.failure.is_none(), "{what}: far {:?}", pair.far.failure);
    let (near, far) = pair.last();
    assert!(!near.stalled && !far.stalled && !near.cut_short && !far.cut_short, "{what}");
    assert!(near.bytes_sent + far.bytes_sent > 0, "{what}: nothing moved: {near:?} {far:?}");
    if spec.transport == TransportName::Memcpy {
        assert_eq!(near.bytes_sent, near.bytes_received, "{what}");
        return;
    }
    let lost = near.datagrams.map_or(0, |d| d.sent) + far.datagrams.map_or(0, |d| d.sent)
        - near.datagrams.map_or(0, |d| d.received)
        - far.datagrams.map_or(0, |d| d.received);
    assert_eq!(
        near.bytes_sent + far.bytes_sent,
        near.bytes_received + far.bytes_received + lost * spec.block,
        "{what}: bytes"
    );
    for (end, name) in [(near, "near"), (far, "far")] {
        if !end.intervals.is_empty() {
            let sum = |pick: fn(&model::Interval) -> u64| end.intervals.iter().map(pick).sum::<u64>();
            assert_eq!(sum(|i| i.bytes_sent), end.bytes_sent, "{what}: {name} series");
            assert_eq!(sum(|i| i.bytes_received), end.bytes_received, "{what}: {name} series");
        }
        let flows: u64 = end.flows.iter().map(|flow| flow.bytes_sent).sum();
        assert_eq!(flows, end.bytes_sent, "{what}: {name} flows");
    }
}
