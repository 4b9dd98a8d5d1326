//! Each process of a tuning plan, killed at random moments of its life: no finished trial is lost, every setting goes back, and
//! nothing is left (root only). `THRU_KILLS` says how often each one is killed, `THRU_KILLS_SEED` draws other moments.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and says what it saw"
)]

mod bed;
mod early;
mod events;
mod holder;
mod moments;
mod tally;
mod victim;

use bed::{Bed, End, LIMIT, comes_true};
use early::Early;
use moments::Moments;
use program::Agent;
use tally::Tally;
use victim::{Struck, Victim};

#[test]
fn killed_coordinators_lose_nothing() {
    kill_each("killed_coordinators_lose_nothing", Victim::Coordinator);
}

#[test]
fn killed_agents_lose_nothing() {
    kill_each("killed_agents_lose_nothing", Victim::Agent);
}

#[test]
fn killed_workers_lose_nothing() {
    kill_each("killed_workers_lose_nothing", Victim::Worker);
}

#[test]
fn killed_helpers_lose_nothing() {
    kill_each("killed_helpers_lose_nothing", Victim::Helper);
}

#[test]
fn coordinators_killed_with_their_agents_lose_nothing() {
    kill_each("coordinators_killed_with_their_agents_lose_nothing", Victim::Both);
}

#[test]
fn killed_holders_of_labs_lose_nothing() {
    holder::kill_each("killed_holders_of_labs_lose_nothing");
}

fn kill_each(test: &str, victim: Victim) {
    let Some(bed) = Bed::new(test) else { return };
    let (mut tally, mut agent) = (Tally::new(victim.name()), None);
    let (starts, life) = lives(&bed);
    // An agent and its helper are killed while they start, too.
    let starts = if victim.lives_with_the_agent() { starts } else { std::time::Duration::ZERO };
    let mut moments = Moments::new(victim.name(), starts + life);
    for kill in 0..moments.kills() {
        let moment = moments.next(kill);
        match moment.checked_sub(starts) {
            // It restores what is left first of all.
            None => Early { bed: &bed, victim }.kill(moments.earlier(moment), &mut tally),
            Some(mut moment) => loop {
                let fresh = agent.take().unwrap_or_else(|| bed.agent());
                let (struck, kept) = one(&bed, victim, fresh, kill, moment, &mut moments, &mut tally);
                agent = kept;
                if struck {
                    break;
                }
                // The plan was over before: another moment.
                moment = moments.earlier(moment);
            },
        }
    }
    drop(agent);
    bed.is_clean(&mut tally);
    tally.conclude();
}

/// How long an agent takes to start, and how long a plan lives that nobody kills; it keeps all of its trials and settings.
fn lives(bed: &Bed) -> (std::time::Duration, std::time::Duration) {
    let begun = std::time::Instant::now();
    let agent = bed.agent();
    let (starts, begun) = (begun.elapsed(), std::time::Instant::now());
    let finished = bed.plan(&agent).wait();
    let life = begun.elapsed();
    let announced = events::trials(&finished.stdout);
    assert_eq!((finished.code, announced.len()), (Some(0), bed::TRIALS), "{}", finished.stderr);
    assert_eq!((bed.stored(), bed.records()), (announced, 0));
    assert!(End::BOTH.into_iter().all(|end| bed.is_back(end)));
    (starts, life)
}

/// One kill of a process of a plan that `agent` serves; whether it was there, and the agent if it serves the next plan as well.
fn one(
    bed: &Bed,
    victim: Victim,
    mut agent: Agent,
    kill: usize,
    moment: std::time::Duration,
    moments: &mut Moments,
    tally: &mut Tally,
) -> (bool, Option<Agent>) {
    bed::forget_runs(&bed.sandbox);
    let mut client = if victim == Victim::Both && kill % 2 == 1 { bed.stream(&agent) } else { bed.plan(&agent) };
    std::thread::sleep(moment);
    let Some(Struck { below, changed, events }) = victim.strike(bed, &agent, &mut client, moments) else {
        let _ = client.wait();
        return (false, Some(agent));
    };
    let what = format!("kill {kill} of the {} after {moment:?}", victim.name());
    let finished = client.wait();
    tally.kill(events::in_a_trial(&events), changed);
    tally.trials(&what, &events::trials(&finished.stdout), &bed.stored());
    tally.check(finished.code.is_some() || victim.ends_the_coordinator(), || {
        format!("{what}: a signal ended the client")
    });
    tally.check(!finished.stderr.contains("panicked"), || format!("{what}: {}", finished.stderr));
    for end in victim.restored_at_once() {
        tally.check(comes_true(LIMIT, || bed.is_back(*end)), || {
            format!("{what}: {end:?} is not back: {:?}", bed.state(*end))
        });
    }
    let at_once = End::BOTH.into_iter().all(|end| bed.is_back(end));
    if victim.lives_with_the_agent() {
        let log = agent.log();
        tally.check(!log.contains("panicked"), || format!("{what}: {log}"));
        drop(agent);
        agent = bed.agent();
    }
    bed.recover(kill, at_once);
    let back = End::BOTH.into_iter().all(|end| bed.is_back(end));
    tally.settings(&what, at_once, back);
    tally.check(bed.records() == 0, || format!("{what}: the journal has {} files", bed.records()));
    tally.check(comes_true(LIMIT, || agent.workers().is_empty()), || format!("{what}: a worker is left"));
    let left = || below.iter().copied().filter(|pid| program::process::runs(*pid)).collect::<Vec<u32>>();
    tally.check(comes_true(LIMIT, || left().is_empty()), || format!("{what}: processes are left: {:?}", left()));
    (true, Some(agent))
}
