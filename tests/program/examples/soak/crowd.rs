//! Clients that wait in the queue, and clients that look in: they connect, prove the token, ask something and leave.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Duration;

use model::SplitMix64;
use program::client::TOKEN;
use program::wire::Wire;
use serde_json::json;

use crate::shared::Load;

/// Clients that wait at the peak of a cycle.
const WAITING: usize = 1_030;
/// Threads that make them come; as many look in at the same time.
const HANDS: u64 = 8;
/// In each cycle the crowd grows and is kept up for so long, and has left so much later.
const GATHERED: Duration = Duration::from_secs(28);
const GONE: Duration = Duration::from_secs(34);
/// How long one keeps the machine that it waited for.
const TURN: Duration = Duration::from_millis(20);
/// An agent gives up a client that is silent for 10 s.
const PING: Duration = Duration::from_secs(3);
const STACK: usize = 256 << 10;

#[derive(Clone)]
struct Crowd {
    load: Load,
    waiting: Arc<AtomicUsize>,
    wires: Arc<Mutex<Vec<Wire>>>,
}

pub(crate) fn start(load: &Load) {
    let crowd = Crowd { load: load.clone(), waiting: Arc::default(), wires: Arc::default() };
    for hand in 0..HANDS {
        let (gathering, looking) = (crowd.clone(), load.clone());
        std::thread::spawn(move || gathering.gather());
        std::thread::spawn(move || look_in(&looking, hand));
    }
    let pinging = crowd.clone();
    std::thread::spawn(move || pinging.ping());
    std::thread::spawn(move || crowd.leave());
}

impl Crowd {
    fn gather(&self) {
        while self.load.goes_on() {
            let full = self.waiting.load(Ordering::SeqCst) >= WAITING;
            if full || self.load.phase() > GATHERED {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            self.waiting.fetch_add(1, Ordering::SeqCst);
            match catch_unwind(|| greeted(&self.load)).ok().flatten() {
                Some(wire) => self.clone().seat(wire),
                None => {
                    self.load.counts.add("clients that were not admitted");
                    self.waiting.fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
    }

    fn seat(self, wire: Wire) {
        self.load.clients.fetch_add(1, Ordering::SeqCst);
        self.load.counts.add("clients that waited");
        self.wires.lock().unwrap().push(wire.clone());
        let thread = Builder::new().stack_size(STACK).spawn(move || {
            let _ = catch_unwind(AssertUnwindSafe(|| self.wait(&wire)));
            wire.close();
            self.load.clients.fetch_sub(1, Ordering::SeqCst);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        });
        drop(thread.expect("a thread"));
    }

    fn wait(&self, wire: &Wire) {
        let asked = wire.try_send(&json!({"acquire": {"purpose": "nothing"}}));
        while let (Ok(()), Some(message)) = (&asked, wire.receive()) {
            if message.name == "granted" {
                self.load.counts.add("turns of waiting clients");
                std::thread::sleep(TURN);
                let _ = wire.try_send(&json!("release"));
                return;
            }
        }
    }

    fn ping(&self) {
        while self.load.goes_on() {
            let wires = self.wires.lock().unwrap().clone();
            let silent = |wire: &Wire| wire.try_send(&json!("ping")).is_err();
            let closed: Vec<bool> = wires.iter().map(silent).collect();
            let mut closed = closed.into_iter();
            // Others are only added at the end.
            self.wires.lock().unwrap().retain(|_| !closed.next().unwrap_or(false));
            std::thread::sleep(PING);
        }
    }

    /// Ends the crowd: half of it says so, half is just gone.
    fn leave(&self) {
        loop {
            let (on, phase) = (self.load.goes_on(), self.load.phase());
            if on && (phase < GATHERED || phase > GONE) {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            let leaving = std::mem::take(&mut *self.wires.lock().unwrap());
            for (at, wire) in leaving.into_iter().enumerate() {
                if at.is_multiple_of(2) {
                    let _ = wire.try_send(&json!("release"));
                }
                wire.close();
                std::thread::sleep(Duration::from_millis(if on { 2 } else { 0 }));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A client of the agent with a token; `None` if it refuses.
fn greeted(load: &Load) -> Option<Wire> {
    let wire = Wire::dial(&load.root);
    wire.authenticate(TOKEN);
    (wire.receive()?.name == "welcome").then_some(wire)
}

/// One client after the other, of either agent.
fn look_in(load: &Load, hand: u64) {
    let mut random = load.random(hand);
    while load.goes_on() {
        let looked = catch_unwind(AssertUnwindSafe(|| look(load, &mut random))).ok().flatten();
        load.counts.add(looked.unwrap_or("visits that the agent ended"));
        std::thread::sleep(Duration::from_millis(random.below(200) as u64));
    }
}

fn look(load: &Load, random: &mut SplitMix64) -> Option<&'static str> {
    let open = random.below(3) == 0;
    let wire = Wire::dial(if open { &load.open } else { &load.root });
    if random.below(8) == 0 {
        return Some("visits that ended after the handshake");
    }
    if open {
        wire.greet();
    } else {
        wire.authenticate(TOKEN);
        wire.receive().filter(|welcome| welcome.name == "welcome")?;
    }
    load.clients.fetch_add(1, Ordering::SeqCst);
    let asked = catch_unwind(AssertUnwindSafe(|| ask(&wire, random))).ok().flatten();
    load.clients.fetch_sub(1, Ordering::SeqCst);
    if random.below(2) == 0 {
        wire.close();
    }
    asked
}

fn ask(wire: &Wire, random: &mut SplitMix64) -> Option<&'static str> {
    let (request, what) = match random.below(4) {
        0 => (json!({"acquire": {"purpose": "nothing"}}), "visits to the queue"),
        1 => (json!({"watch": {"interval_ns": 100_000_000}}), "visits that watched"),
        2 => (json!({"nonsense": {"of": random.next_u64()}}), "visits with an unknown request"),
        _ => return Some("visits that left after the welcome"),
    };
    wire.try_send(&request).ok()?;
    let answered = wire.receive().is_some();
    (answered || what.ends_with("request")).then_some(what)
}
