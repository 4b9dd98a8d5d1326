//! A soak: two real agents, one of root with a helper and a token and one of an ordinary user, in a lab of their own, under up to a
//! thousand clients at once, under garbage, and under processes that are killed. `soak SECONDS [SEED]` prints what the agents used,
//! and fails when something grows or is left behind. `scripts/soak.sh` runs it; it needs root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "part of the tests: it stops at the first surprise, and says what it saw"
)]

mod checks;
mod counts;
mod crowd;
mod harm;
mod hostile;
mod load;
mod programs;
mod sample;
mod shared;
mod station;
mod world;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checks::Checks;
use load::Loads;
use programs::Programs;
use sample::Samples;
use world::World;

/// Draws all that is random.
const SEED: u64 = 20_261_125;
/// Time between two samples.
const STEP: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|word| word == "load") {
        load::run(&args[1..]);
        return ExitCode::SUCCESS;
    }
    let number = |at: usize, default| args.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    let (Ok(seconds), Ok(seed)) = (number(0, 3_600), number(1, SEED)) else {
        eprintln!("soak [SECONDS [SEED]]");
        return ExitCode::from(2);
    };
    if let Err(error) = lab::available() {
        println!("SKIPPED: soak: {error}");
        return ExitCode::SUCCESS;
    }
    let stop = stopped_by_signals();
    if soak(Duration::from_secs(seconds), seed, &stop) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether all checks hold.
fn soak(time: Duration, seed: u64, stop: &Arc<AtomicBool>) -> bool {
    println!("soak of {} s, seed {seed}", time.as_secs());
    let mut world = World::new();
    world.measure_once();
    let mut samples = Samples::begin(&world);
    let loads = Loads::start(&world, seed);
    let programs = Programs::start(&world, seed);
    let begun = Instant::now();
    while begun.elapsed() < time && !stop.load(Ordering::SeqCst) && world.runs() {
        let next = STEP.saturating_mul(samples.taken() + 1).min(time);
        while begun.elapsed() < next && !stop.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(100));
        }
        samples.take(&world, loads.clients() + programs.running());
    }
    let lasted = begun.elapsed();
    if stop.load(Ordering::SeqCst) {
        println!("interrupted after {} s", lasted.as_secs());
    }
    let mut done = programs.stop();
    done.append(&mut loads.stop());
    let mut checks = Checks::default();
    checks.afterwards(&mut world, &samples);
    checks.figures(&samples, lasted);
    println!("\nwhat the clients did:");
    done.iter().for_each(|(what, times)| println!("  {times:>9}  {what}"));
    samples.print();
    checks.end(world);
    checks.conclude(lasted)
}

/// Set by the first signal that ends a process.
fn stopped_by_signals() -> Arc<AtomicBool> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let [mut int, mut term, mut hup] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
                .map(|kind| signal(kind).unwrap());
            tokio::select! { _ = int.recv() => {}, _ = term.recv() => {}, _ = hup.recv() => {} }
            set.store(true, Ordering::SeqCst);
            // A further one changes nothing: cleaning up takes a minute.
            std::future::pending::<()>().await;
        });
    });
    stop
}
